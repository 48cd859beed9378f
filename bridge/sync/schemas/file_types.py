"""Which types the files of single partitions need.

The law: a type in a partition's record stays, unless a file of that partition that was read holds
values that need a wider one. It then becomes the narrowest type that holds both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.kernel.errors import SchemaConflict
from bridge.kernel.types import parse_hive_type
from bridge.storage.uri import relative
from bridge.sync.diff import RegisteredPartition, SpelledColumns, WiderTypes
from bridge.sync.schemas.schema import grown_type
from bridge.table.directory.discovered import Discovered
from bridge.table.infer import merge_schemas, settle_columns

Schemas = Sequence[tuple[str, pa.Schema]]
"""URIs of files, and their schemas."""
ByDirectory = dict[str, list[tuple[str, pa.Schema]]]


class FileTypes:
    """Called with partitions, of which it returns the columns whose types their files widen.

    Args:
        columns: of the table after this run. Only types that differ from it are looked at.
        known: files that this run has read.
        due: rows of directories that may hold other types than the last run has seen; if no file of
            theirs was read, some are.
        read: reads files of rows.
        recursive: files in subdirectories of a partition belong to it.
    """

    def __init__(
        self,
        directories: Discovered,
        columns: SpelledColumns,
        known: Schemas,
        due: npt.NDArray[np.bool_],
        read: Callable[[Sequence[int]], Schemas],
        recursive: bool,
    ) -> None:
        self._root = directories.root
        self._paths = directories.paths
        self._columns = columns
        self._types = dict(columns)
        self._due = due
        self._read = read
        self._recursive = recursive
        self._known = self._by_directory(known)

    def __call__(self, partitions: Sequence[RegisteredPartition]) -> list[WiderTypes]:
        rows = {p.name: self._rows(p.location) for p in partitions if self._differs(p)}
        unread = {r for several in rows.values() for r in several if self._due[r]}
        unread = {r for r in unread if self._paths[r] not in self._known}
        found = self._by_directory(self._read(sorted(unread))) if unread else {}
        return [self._retyped(p, rows.get(p.name, ()), found) for p in partitions]

    def _differs(self, partition: RegisteredPartition) -> bool:
        if partition.columns == self._columns:
            return False
        return any(self._types.get(name, type_) != type_ for name, type_ in partition.columns)

    def _rows(self, location: str) -> list[int]:
        path = self._path(location)
        if path is None:
            return []
        at = bisect_left(self._paths, path)
        found = [at] if self._paths[at : at + 1] == [path] else []
        inside = f"{path}/" if path else ""
        at = bisect_left(self._paths, inside)
        while self._recursive and at < len(self._paths) and self._paths[at].startswith(inside):
            found.append(at)
            at += 1
        return found

    def _path(self, directory: str) -> str | None:
        return "" if directory == self._root else relative(self._root, directory)

    def _retyped(
        self, partition: RegisteredPartition, rows: Iterable[int], found: ByDirectory
    ) -> WiderTypes:
        paths = {self._paths[r] for r in rows}
        schemas = list(chain.from_iterable(found.get(p, self._known.get(p, ())) for p in paths))
        if not schemas:
            return ()
        try:
            files = {c.name: c.type for c in settle_columns(merge_schemas(schemas))}
        except SchemaConflict:  # of files beyond the sample: no type holds them
            return ()
        retyped = []
        for name, text in partition.columns:
            if name in files and self._types.get(name, text) != text:
                grown = grown_type(parse_hive_type(text), files[name])
                if grown is not None:
                    retyped.append((name, text, grown))
        return tuple(retyped)

    def _by_directory(self, schemas: Schemas) -> ByDirectory:
        found: ByDirectory = {}
        for uri, schema in schemas:
            path = self._path(uri.rpartition("/")[0])
            if path is not None:
                found.setdefault(path, []).append((uri, schema))
        return found
