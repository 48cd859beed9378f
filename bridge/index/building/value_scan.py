"""All indexes of a file in one pass, in a child process.

The bytes of a file may end the library that reads it, or state any amount of memory. The child
gathers each index from the values and sends the finished rows. Parquet has its statistics in the
footer, which the builder reads itself; see `EntryBuilder.from_values` for other formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa

from bridge.formats.column_chunks import Batch, ValueReader
from bridge.formats.parquet.statistics import FooterReader
from bridge.formats.physical_column import PhysicalColumn
from bridge.formats.statistics import FileStatistics, LeafStatistics
from bridge.index.building.sample import SIGNATURE, Sampling, sample_file
from bridge.index.building.scan import find_far, leaf_scans, scan
from bridge.index.kinds import registry
from bridge.index.kinds.definition import KindDefinition
from bridge.index.kinds.kind import Arrays, FileFacts, Gathering, IndexKind, Row
from bridge.kernel.errors import FileCorrupt, FileUnreadable
from bridge.storage.child import ChildReader
from bridge.storage.port import Range, Storage
from bridge.storage.reading.source import RangeSource

FileValues = tuple[FileStatistics, dict[str, list[Row]]]


def gather(
    storage: Storage, uri: str, size: int, read: ValueReader, definitions: Sequence[KindDefinition]
) -> FileValues:
    """The file's statistics, and its rows by the signature of their definition.

    Errors: those of the format's reader.
    """
    sink = _Gatherings(uri, size, definitions)
    statistics = read(storage, uri, size, sink)
    return statistics, {s: [dict(row) for row in g.finish()] for s, g in sink.found.items()}


class _Gatherings:
    """Implements `ValueSink`.

    Attributes:
        found: by signature, the gatherings whose columns are sure.
    """

    def __init__(self, uri: str, size: int, definitions: Sequence[KindDefinition]) -> None:
        self._uri, self._size, self._definitions = uri, size, definitions
        self.found: dict[str, Gathering] = {}

    def begin(self, leaves: tuple[PhysicalColumn, ...], sure: set[int]) -> None:
        # Writers of ORC differ in the calendar of days before 1900.
        facts = FileFacts(self._uri, self._size, None, leaves, True, lambda ranges: [])
        known = registry.kinds()
        for definition in self._definitions:
            kind = known.get(definition.kind)
            gathering = None if kind is None else kind.gather(definition, facts)
            if gathering is not None and set(gathering.leaves) <= sure:
                self.found[definition.signature] = gathering

    def add(self, batch: Batch) -> None:
        arrays = Arrays(batch)
        for gathering in self.found.values():
            gathering.update(arrays)

    def drop(self, leaf: int) -> None:
        self.found = {s: g for s, g in self.found.items() if leaf not in g.leaves}


READER: ChildReader[FileValues] = ChildReader(gather)


Deep = tuple[list[LeafStatistics], dict[str, list[Row]], tuple[int, ...] | None, str | None]
"""Statistics of the leaves, rows by signature, `StoredFile.far`, and a problem if the values cannot
be read."""


def gather_parquet(
    storage: Storage,
    uri: str,
    size: int,
    tail: bytes,
    counted: bool,
    kinds: Sequence[tuple[IndexKind, KindDefinition]],
    sampling: Sampling | None,
) -> Deep:
    """What the values of a Parquet file say. Runs in the child.

    Args:
        tail: the end of the file, with its footer.
        counted: statistics that the footer lacks are made of the values.
        sampling: None: the file is not sampled.

    Errors:
        FileCorrupt: the footer is damaged.
        FileUnreadable, StorageFailure.
    """
    footer = FooterReader().read(tail, size, uri)
    file = _File(storage, uri, size, tail)
    rows: dict[str, list[Row]] = {}
    if sampling is not None:
        rows[SIGNATURE] = sample_file(sampling, footer, cast(Storage, file), uri, size)
    columns = tuple(leaf.column for leaf in footer.leaves)
    facts = FileFacts(
        uri, size, footer.groups, columns, footer.legacy, lambda r: file.read_ranges(uri, r)
    )
    found = {d.signature: kind.gather(d, facts) for kind, d in kinds}
    wrapped = {i for i, leaf in enumerate(footer.leaves) if _is_wrapped(leaf)}
    gatherings = {s: g for s, g in found.items() if g is not None and not wrapped & {*g.leaves}}
    scans = leaf_scans(footer) if counted else []
    far = None
    try:
        lost = scan(footer, [*scans, *gatherings.values()], file, uri)
        for i, each in enumerate(scans):
            if i not in lost:
                each.finish()
        for i, (signature, gathering) in enumerate(gatherings.items(), len(scans)):
            if i not in lost:
                rows[signature] = [dict(row) for row in gathering.finish()]
        if counted:
            far = find_far(footer, file)
    except FileCorrupt as error:
        return footer.leaves, rows, far, f"{error.code}: {error.message}"
    problem = next((f"{FileUnreadable.code}: {why}" for why in lost.values()), None)
    return footer.leaves, rows, far, problem


def _is_wrapped(leaf: LeafStatistics) -> bool:
    """Whether values are out of the range that the file declares: the library cuts their bits."""
    type = leaf.column.type
    if type.physical != "INT32" or type.logical not in ("int", "uint") or type.width >= 32:
        return False
    low = 0 if type.logical == "uint" else -(1 << (type.width - 1))
    return any(end is not None and not low <= end < low + (1 << type.width)
               for end in (leaf.lower, leaf.upper))  # fmt: skip


class _File:
    """A file whose end is in memory; implements what `scan` and `sample_file` read of it."""

    def __init__(self, storage: Storage, uri: str, size: int, tail: bytes) -> None:
        self._storage, self._uri, self._size, self._tail = storage, uri, size, tail

    def source(self) -> Any:
        if len(self._tail) == self._size:
            return pa.BufferReader(self._tail)
        return pa.PythonFile(RangeSource(self, self._uri, self._size), mode="r")

    def read(self, uri: str) -> bytes:
        return self._storage.read(uri)

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        start = self._size - len(self._tail)
        if all(begin >= start for begin, _ in ranges):
            return [self._tail[begin - start : end - start] for begin, end in ranges]
        return self._storage.read_ranges(uri, ranges)


DEEP: ChildReader[Deep] = ChildReader(gather_parquet)
