"""All indexes of a file in one pass, in a child process: for formats whose library may crash.

See `FileFormat.values`. The child gathers each index from the values and sends the finished rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.file_formats.column_chunks import Batch
from bridge.file_formats.physical_column import PhysicalColumn
from bridge.file_formats.registry import file_format
from bridge.file_formats.statistics import FileStatistics
from bridge.index import registry
from bridge.index.kinds.definition import Definition
from bridge.index.kinds.kind import Arrays, FileFacts, Gathering, Row
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage

Found = tuple[FileStatistics, dict[str, list[Row]]]


def gather(
    storage: Storage, uri: str, size: int, format: str, definitions: Sequence[Definition]
) -> Found:
    """The file's statistics, and its rows by the signature of their definition.

    Errors: those of the format's reader.
    """
    read = file_format(format).values
    assert read is not None, f"{format} passes no values on"
    sink = _Gatherings(uri, size, definitions)
    statistics = read(storage, uri, size, sink)
    return statistics, {s: [dict(row) for row in g.finish()] for s, g in sink.found.items()}


class _Gatherings:
    """Implements `ValueSink`.

    Attributes:
        found: by signature, the gatherings whose columns are sure.
    """

    def __init__(self, uri: str, size: int, definitions: Sequence[Definition]) -> None:
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


READER: ChildReader[Found] = ChildReader(gather)
