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
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import overload

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po

from bridge.clustering.data_files import Rejected, Writing, blaming
from bridge.clustering.orc_tail import KINDS, OrcTail
from bridge.file_formats.rows import all_rows, pieces
from bridge.storage.child import ChildReader, held
from bridge.storage.port import Storage
from bridge.storage.source import WHOLE, open_source

_CODECS = {
    "none": "uncompressed", "snappy": "snappy", "gzip": "zlib", "zlib": "zlib", "zstd": "zstd",
    "lz4": "lz4",
}  # fmt: skip
_UTC = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"})
_LOCAL_TIMES = "timestamp with local time zone"
_ACID = frozenset({"operation", "originaltransaction", "bucket", "rowid", "row"})
_PART = 128 << 20
"""Bytes that a child sends at once, about."""
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
    def about(self) -> _About:
        return _ABOUT.read(self._held, "an ORC file", len(self.content))

    @property
    def _held(self) -> Storage:
        return held(self.content)

    @property
    def num_rows(self) -> int:
        return self.about.rows

    @property
    def names(self) -> list[str]:
        return list(self.about.schema.names)

    def read(self, places: Sequence[int] | None = None) -> pa.Table:
        if places is None:
            return _checked(self._read(None))
        names = self.names
        wanted = [names[place] for place in places]
        # The reader finds columns by name, and treats a name with a dot as a path.
        count = Counter(names)
        if not wanted or any(count[name] > 1 or "." in name for name in wanted):
            return self._read(None).select(list(places))
        return self._read(wanted).select(wanted)

    def _read(self, names: list[str] | None) -> pa.Table:
        parts = list(_stripes(self._held, "an ORC file", len(self.content), names))
        return pa.concat_tables(parts) if parts else self.about.schema.empty_table()

    def batches(self) -> Iterator[pa.Table]:
        for part in _stripes(self._held, "an ORC file", len(self.content), None):
            yield _checked(part)


class OrcFiles:
    """Implements `DataFiles`."""

    suffix = "orc-data"

    def open(self, content: bytes) -> OrcFile:
        return OrcFile(content)

    def stream(self, storage: Storage, uri: str, size: int, memory: int) -> Iterator[pa.Table]:
        if size <= min(WHOLE, memory):
            yield from self.open(storage.read(uri)).batches()
            return
        _check(OrcTail(_Ranged(storage, uri, size)))
        for part in _stripes(storage, uri, size, None):
            yield _checked(part)

    def encode(self, table: pa.Table, like: OrcFile, writing: Writing, row_bytes: float) -> bytes:
        wanted = writing.compression or like.tail.compression
        if wanted not in _CODECS:
            raise Rejected(f"UNSUPPORTED: ORC files are not written with {wanted} compression")
        sink = BytesIO()
        po.write_table(
            table,
            sink,
            compression=_CODECS[wanted],
            stripe_size=max(writing.group_bytes, 1),
            row_index_stride=like.about.stride or 10_000,
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


@dataclass(frozen=True, slots=True)
class _About:
    """What Arrow tells of a file; ``stride`` is the number of rows of each entry of its index."""

    rows: int
    schema: pa.Schema
    stride: int


def about(storage: Storage, uri: str, size: int) -> _About:
    """Runs in the child, for a damaged file can end its process. Errors: FileCorrupt."""
    with blaming(uri):
        file = po.ORCFile(open_source(storage, uri, size))
        return _About(int(file.nrows), file.schema, int(file.row_index_stride))


def stripes(
    storage: Storage, uri: str, size: int, names: list[str] | None
) -> Iterator[pa.RecordBatch]:
    """The rows in parts. Runs in the child. Errors: FileCorrupt."""
    with blaming(uri):
        file = po.ORCFile(open_source(storage, uri, size))
        read = (file.read_stripe(stripe, columns=names) for stripe in range(file.nstripes))
        for batch in all_rows(read, int(file.nrows), uri):
            yield from pieces(batch, _PART)


def _stripes(storage: Storage, uri: str, size: int, names: list[str] | None) -> Iterator[pa.Table]:
    for batch in _STRIPES.stream(storage, uri, size, names):
        yield pa.Table.from_batches([batch])


_ABOUT: ChildReader[_About] = ChildReader(about)
_STRIPES: ChildReader[pa.RecordBatch] = ChildReader(stripes)


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
