"""ORC files as clustering reads and writes them; implements `DataFiles`.

Arrow decodes and encodes the values. What it does not write is taken over from the old file's
footer: the types with their lengths and attributes, the calendar and the user metadata.

Rejected by name: what Arrow does not keep bit by bit, or what some engine then reads otherwise.
A timestamp of a writer in a zone other than UTC is an instant to some readers and a wall clock to
others; Arrow returns the wall clock alone. Trino does not read the fractions of seconds that Arrow
writes before 1970.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from typing import cast, overload

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po

from bridge.clustering.data_files import Rejected, Writing
from bridge.clustering.orc_tail import KINDS, OrcTail
from bridge.errors import FileCorrupt
from bridge.file_formats.rows import all_rows, expect_rows
from bridge.storage.child import ChildReader
from bridge.storage.port import Range, Storage
from bridge.storage.source import WHOLE, is_passing, open_source

_CODECS = {
    "none": "uncompressed", "snappy": "snappy", "gzip": "zlib", "zlib": "zlib", "zstd": "zstd",
    "lz4": "lz4",
}  # fmt: skip
_UTC = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"})
_LOCAL_TIMES = "timestamp with local time zone"
_ACID = frozenset({"operation", "originaltransaction", "bucket", "rowid", "row"})
_ONE_FILE = (b"presto_query_id", b"trino_query_id")
"""Properties that tell of the writing of one file."""
_TEXT = frozenset({"string", "varchar", "char"})
_DICTIONARY = 0.8
"""A stripe's text is coded by a dictionary if at most this part of its values is distinct."""
_SECOND = 1_000_000_000


class OrcFile:
    """Implements `DataFile`."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.tail = OrcTail(content)
        _check(self.tail)

    @property
    def fingerprint(self) -> Hashable:
        tail = self.tail
        properties = tuple(sorted(_properties(tail).items()))
        return tuple(tail.raw_types), tail.calendar, properties

    @cached_property
    def _file(self) -> po.ORCFile:
        # A damaged file can end the process that reads it: a child reads all of it first.
        held = cast(Storage, _Held(self.content))
        _CHILD.read(held, "an ORC file", len(self.content))
        return po.ORCFile(pa.BufferReader(self.content))

    @property
    def num_rows(self) -> int:
        return int(self._file.nrows)

    @property
    def names(self) -> list[str]:
        return list(self._file.schema.names)

    def read(self, places: Sequence[int] | None = None) -> pa.Table:
        if places is None:
            return _checked(self._all())
        names = self._file.schema.names
        wanted = [names[place] for place in places]
        # The reader finds columns by name, and treats a name with a dot as a path.
        count = Counter(names)
        if not wanted or any(count[name] > 1 or "." in name for name in wanted):
            return self._all().select(list(places))
        return self._all(wanted).select(wanted)

    def _all(self, columns: list[str] | None = None) -> pa.Table:
        table = self._file.read(columns)
        expect_rows(table.num_rows, self._file.nrows, "an ORC file")
        return table

    def batches(self) -> Iterator[pa.Table]:
        return _stripes(self._file, "an ORC file")


class OrcFiles:
    """Implements `DataFiles`."""

    suffix = "orc"

    def open(self, content: bytes) -> OrcFile:
        return OrcFile(content)

    def stream(self, storage: Storage, uri: str, size: int, memory: int) -> Iterator[pa.Table]:
        if size <= min(WHOLE, memory):
            yield from self.open(storage.read(uri)).batches()
            return
        _check(OrcTail(_Ranged(storage, uri, size)))
        _STRIPES.read(storage, uri, size)
        yield from _stripes(po.ORCFile(open_source(storage, uri, size)), uri)

    def encode(self, table: pa.Table, like: OrcFile, writing: Writing, row_bytes: float) -> bytes:
        wanted = writing.compression or like.tail.compression
        if wanted not in _CODECS:
            raise Rejected(f"UNSUPPORTED: ORC files are not written with {wanted} compression")
        old = po.ORCFile(pa.BufferReader(like.content))
        sink = BytesIO()
        po.write_table(
            table,
            sink,
            compression=_CODECS[wanted],
            stripe_size=max(writing.group_bytes, 1),
            row_index_stride=old.row_index_stride or 10_000,
            dictionary_key_size_threshold=_DICTIONARY,
        )
        written = OrcTail(sink.getvalue())
        _check_types(like.tail, written)
        return written.described_as(like.tail, _properties(like.tail))

    def check(self, old: OrcFile, new: OrcFile) -> None:
        if old.fingerprint != new.fingerprint:
            raise Rejected("UNSUPPORTED: types, calendar or user metadata would change")
        if _is_timed(new.tail) and not new.tail.zones <= _UTC:
            raise Rejected(f"UNSUPPORTED: timestamps would be of the zone {new.tail.zones}")


def _stripes(file: po.ORCFile, uri: str) -> Iterator[pa.Table]:
    """All rows, stripe by stripe. Errors: FileCorrupt: rows are missing."""
    stripes = (file.read_stripe(stripe) for stripe in range(file.nstripes))
    for batch in all_rows(stripes, file.nrows, uri):
        yield _checked(pa.Table.from_batches([batch]))


def _probe(storage: Storage, uri: str, size: int) -> int:
    """Decodes all of a file; returns its rows. Errors: FileCorrupt."""
    with _blaming(uri):
        return int(po.ORCFile(open_source(storage, uri, size)).read().num_rows)


def _probe_stripes(storage: Storage, uri: str, size: int) -> int:
    """As `_probe`, with one stripe in memory."""
    with _blaming(uri):
        file = po.ORCFile(open_source(storage, uri, size))
        return sum(file.read_stripe(stripe).num_rows for stripe in range(file.nstripes))


@contextmanager
def _blaming(uri: str) -> Iterator[None]:
    """Errors: FileCorrupt: Arrow cannot decode the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri} cannot be decoded: {first}", "rewrite it") from error


_CHILD, _STRIPES = ChildReader(_probe), ChildReader(_probe_stripes)


class _Ranged:
    """The bytes of a file, read where they are asked for."""

    def __init__(self, storage: Storage, uri: str, size: int) -> None:
        self._storage, self._uri, self._size = storage, uri, size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> bytes: ...

    def __getitem__(self, at: int | slice) -> int | bytes:
        one = slice(at, at + 1) if isinstance(at, int) else at
        begin, end, _ = one.indices(self._size)
        part = b"" if end <= begin else self._storage.read_ranges(self._uri, [(begin, end)])[0]
        return part[0] if isinstance(at, int) else part


class _Held:
    """The storage of a child: one file that is in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, uri: str) -> bytes:
        return self._content

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        return [self._content[begin:end] for begin, end in ranges]


def _properties(tail: OrcTail) -> dict[bytes, bytes]:
    """User metadata that new files take over."""
    return {key: v for key, v in tail.user_metadata.items() if key not in _ONE_FILE}


def _is_timed(tail: OrcTail) -> bool:
    return any(each.kind in ("timestamp", _LOCAL_TIMES) for each in tail.types)


def _check(tail: OrcTail) -> None:
    """Errors: Rejected: such a file is not rewritten."""
    if tail.is_encrypted:
        raise Rejected("UNSUPPORTED: columns are encrypted")
    names = {name.lower() for name in tail.types[0].names} if tail.types else set()
    if names >= _ACID or any(key.startswith(b"hive.acid") for key in tail.user_metadata):
        raise Rejected("UNSUPPORTED: it is a file of an ACID table")
    for number, each in enumerate(tail.types):
        name = tail.name_of(number)
        if each.kind in ("uniontype", _LOCAL_TIMES) or each.kind not in KINDS:
            raise Rejected(f"UNSUPPORTED: {name} is a {each.kind}, which is not kept exactly")
        if each.kind == "decimal" and not each.precision:
            raise Rejected(f"UNSUPPORTED: {name} is a decimal without a precision")
        if each.kind == "timestamp" and not tail.zones <= _UTC:
            zone = ", ".join(sorted(repr(z) for z in tail.zones - _UTC))
            raise Rejected(
                f"UNSUPPORTED: {name} is a timestamp, and its writer's time zone is {zone}, not UTC"
            )


def _check_types(old: OrcTail, new: OrcTail) -> None:
    """Errors: Rejected: a type is stored in another way than the old one."""
    for number, (one, other) in enumerate(zip(old.types, new.types, strict=False)):
        same = one.kind == other.kind or (one.kind in _TEXT and other.kind in _TEXT)
        if not same or (one.children, one.names) != (other.children, other.names):
            raise Rejected(
                f"UNSUPPORTED: {old.name_of(number) or 'the row'} is a {one.kind}, and would be "
                f"a {other.kind}"
            )
    if len(old.types) != len(new.types):
        raise Rejected("UNSUPPORTED: columns would change")


def _checked(table: pa.Table) -> pa.Table:
    """A table. Errors: Rejected: it has a fraction of a second before 1970, at any depth."""
    for column, name in zip(table.columns, table.column_names, strict=True):
        for leaf, path in (each for chunk in column.chunks for each in _leaves(chunk, name)):
            if not pa.types.is_timestamp(leaf.type):
                continue
            values = leaf.cast(pa.int64()).drop_null()
            early = values.filter(pc.less(values, 0))
            seconds = pc.multiply(pc.divide(early, _SECOND), _SECOND)
            if pc.any(pc.not_equal(seconds, early)).as_py():
                raise Rejected(
                    f"UNSUPPORTED: {path} has a timestamp before 1970 with a fraction of a second"
                )
    return table


def _leaves(array: pa.Array, path: str) -> Iterator[tuple[pa.Array, str]]:
    type = array.type
    if pa.types.is_struct(type):
        for i, child in enumerate(array.flatten()):
            yield from _leaves(child, f"{path}.{type.field(i).name}")
    elif pa.types.is_map(type):
        yield from _leaves(array.keys, path)
        yield from _leaves(array.items, path)
    elif pa.types.is_list(type) or pa.types.is_large_list(type):
        yield from _leaves(array.flatten(), path)
    else:
        yield array, path


FILES = OrcFiles()
