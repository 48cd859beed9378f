"""A directory of files of one format as a table; needs no metastore.

Directory names give the partitions (``month=1/day=2``), files give the columns.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow.compute as pc

from bridge.formats.registry import recognise
from bridge.kernel.errors import InvalidRequest, SchemaConflict, TableNotFound
from bridge.kernel.types import BIGINT, DATE, INTEGER, NOTHING, STRING, UNKNOWN, Type
from bridge.storage.port import FileTable, Storage
from bridge.table.directory.discovered import visible_files
from bridge.table.directory.foreign import refuse_foreign_root, refuse_hudi_parts, refuse_left
from bridge.table.directory.stray import (
    Stray,
    describe_stray_file,
    is_data,
    refuse_undescribed,
    without_data,
)
from bridge.table.infer import infer_readable, members_left_out, settle_columns
from bridge.table.model import (
    CatalogTable,
    Column,
    Partition,
    PartitionBatch,
    PartitionFetch,
    TableName,
    View,
)
from bridge.table.partition import parse_partition_name, unescape
from bridge.table.registry import table_formats
from bridge.table.snapshot import DefinesTables

SCHEMA = "directory"
_SAMPLE = 400
_BATCH = 1000
_NAMED = 10
_log = logging.getLogger(__name__)
_PADDED = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})")


class DirectoryCatalog:
    """Implements `bridge.table.model.Catalog` for one directory.

    Args:
        location: canonical URI.

    Attributes:
        strays: inspected files that are not part of the table, or cannot be read.
        left_out: members of columns whose type Hive does not have.
    """

    def __init__(self, storage: Storage, location: str) -> None:
        self._storage = storage
        self._location = location.rstrip("/")
        self._table: CatalogTable | None = None
        self._partitions: dict[str, Partition] = {}
        self.strays: tuple[Stray, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self._told: set[str] = set()
        self._defined: DefinesTables | None = None

    @property
    def name(self) -> TableName:
        return TableName(SCHEMA, self._location.rsplit("/", 1)[-1].lower())

    def schemas(self) -> list[str]:
        return [SCHEMA]

    def tables(self, schema: str) -> list[str]:
        return [self.name.table] if schema == SCHEMA else []

    def views(self, schema: str) -> list[str]:
        return []

    def view(self, name: TableName) -> View | None:
        return None

    def table(self, name: TableName, age: float = 0.0) -> CatalogTable:
        """The directory's table; inspected once.

        Errors:
            TableNotFound: there are no files.
            UnsupportedTable: the directory is the root of a Delta or Iceberg table, or holds parts
                of a Hudi table.
            SchemaConflict, FileCorrupt: see `bridge.table.infer`.
        """
        if name != self.name:
            raise TableNotFound(f"{name} is not {self.name}", "")
        if self._table is None:
            self._table = self._look()
        return self._table

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        self.table(self.name)
        return list(self._partitions)

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> PartitionFetch:
        self.table(self.name)
        return _Batches([self._partitions[n] for n in names])

    def forget(self, name: TableName) -> None:
        """Makes the next request inspect the directory again."""
        self._table = None

    def _look(self) -> CatalogTable:
        if self._defined is not None:
            with suppress(TableNotFound):  # it was dropped: look again
                return self._defined.define(self.name, self._location, self._storage)
            self._defined = None
        whole: FileTable | None = None
        if self._storage.has_directories(self._location):
            below = self._storage.list_directories(self._location)
        else:
            whole = self._storage.list_all(self._location)
            below = _first_directories(whole, self._location)
        markers = {d.rstrip("/").rsplit("/", 1)[-1] for d in below}
        for known in table_formats().values():
            if isinstance(known, DefinesTables) and known.marker in markers:
                self._defined = known
                return known.define(self.name, self._location, self._storage)
        refuse_foreign_root(self._location, markers)
        if whole is None:
            whole = self._storage.list_all(self._location)
        refuse_hudi_parts(self._storage, self._location, whole)
        refuse_left(self._storage, self._location, whole)
        listing = visible_files(whole, self._location)
        if not len(listing):
            raise TableNotFound(
                f"no data files below {self._location}",
                "give the directory that holds the files, or key=value directories",
            )
        paths: list[str] = listing.paths.to_pylist()
        self._require_names(paths)
        listing, paths, outside = self._inside(listing, paths)
        directories = self._directories(paths)
        keys = self._keys(directories)
        self._partitions = {
            name: Partition(
                name,
                tuple(v for _, v in parse_partition_name(name)) if name else (),
                f"{self._location}/{name}" if name else self._location,
            )
            for name in directories
        }
        sample = _sample(listing, paths)
        first = next((f for f in sample if is_data(self._storage, *f)), None)
        found = recognise(self._storage, *first) if first is not None else None
        if found is None:
            refuse_undescribed(self._storage, self._location, sample)
        format = found.name if found is not None else "parquet"
        columns, damaged = infer_readable(self._storage, sample, format)
        self.strays = (*outside, *damaged)
        for each in self.strays[:_NAMED]:
            self._warn(str(each))
        if len(self.strays) > _NAMED:
            self._warn(f"and {len(self.strays) - _NAMED} more files below {self._location}")
        names = {k.name for k in keys}
        # As in Hive, the partition key wins over a file column of the same name.
        columns = tuple(c for c in columns if c.name not in names)
        self.left_out = tuple(m for c in columns for m in members_left_out(c.name, c.type))
        columns = tuple(c if c.type == NOTHING else settle_columns([c])[0] for c in columns)
        self._warn_of_types([*(c.name for c in columns if c.type is UNKNOWN), *self.left_out])
        return CatalogTable(self.name, columns, keys, self._location, format)

    def _warn_of_types(self, names: Sequence[str]) -> None:
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            self._warn(
                f"columns left out below {self._location}: {', '.join(names[:_NAMED])}{more}: Hive "
                "has no such type, or a member has no value -> write a time of the day as string "
                "or bigint, a half float as float"
            )

    def _warn(self, text: str) -> None:
        """Once: a session looks at the directory for every scan."""
        if text not in self._told:
            self._told.add(text)
            _log.warning("%s", text)

    def _inside(
        self, listing: FileTable, paths: list[str]
    ) -> tuple[FileTable, list[str], tuple[Stray, ...]]:
        """Leaves out files beside key=value directories that hold no data, such as a README.

        No engine reads them as part of the table.
        """
        start = len(self._location) + 1
        directories = [path[start:].rpartition("/")[0] for path in paths]
        deepest = max((d.count("/") for d in directories if "=" in d), default=0)
        keyed = ["=" in d and d.count("/") == deepest for d in directories]
        if all(keyed) or not any(keyed):
            return listing, paths, ()
        others = [
            (p, int(size)) for p, size, k in zip(paths, listing.sizes, keyed, strict=True) if not k
        ]
        others = without_data(self._storage, others)
        left = {p for p, _ in others}
        kept = listing.filter(np.array([p not in left for p in paths], np.bool_))
        outside = tuple(describe_stray_file(self._storage, *file, read=False) for file in others)
        return kept, kept.paths.to_pylist(), outside

    def _require_names(self, paths: list[str]) -> None:
        start = len(self._location.removesuffix("/"))
        nameless = next((path for path in paths if "//" in path[start:]), None)
        if nameless is not None:
            raise InvalidRequest(
                f"{nameless} has an empty part (//) in its key, as no file of a table has",
                "rename the object, or delete it: Hive and Spark find it by no name, and write "
                "to the key without the empty part",
            )

    def _directories(self, paths: list[str]) -> dict[str, str]:
        """Directories that hold files, relative to the root, in path order; each with a file."""
        start = len(self._location) + 1
        found: dict[str, str] = {}
        for path in paths:
            found.setdefault(path[start:].rpartition("/")[0], path)
        return found

    def _keys(self, directories: dict[str, str]) -> tuple[Column, ...]:
        names: tuple[str, ...] | None = None
        example = ""
        for directory, path in directories.items():
            parts = directory.split("/") if directory else []
            plain = next((i for i, part in enumerate(parts) if "=" not in part), None)
            if plain is not None:
                named = "/".join([self._location, *parts[: plain + 1]])
                raise InvalidRequest(
                    f"{named} is not named key=value",
                    "give a directory whose files lie in it, or below key=value directories; "
                    "`skipbridge sync --extractor` (day, multi, ...) makes partitions of other "
                    "names. Engines read subdirectories only where they are set to: for them "
                    "register the table with `skipbridge sync`, and set planner.recursive",
                )
            here = tuple(unescape(part.partition("=")[0]).lower() for part in parts)
            if len(set(here)) < len(here):
                raise InvalidRequest(
                    f"{self._location}/{directory} names a partition key twice: {', '.join(here)}",
                    "rename the directories, so that each level has a key of its own",
                )
            if names is None:
                names, example = here, path
            elif here != names:
                raise SchemaConflict(
                    f"{example} lies below {'/'.join(names) or 'the root'}, and {path} below "
                    f"{'/'.join(here) or 'the root'}",
                    "all files of a table lie at the same levels: move those that are not its own",
                )
        assert names is not None
        values = [[v for _, v in parse_partition_name(d)] for d in directories if d]
        return tuple(key_column(names, i, [row[i] for row in values]) for i in range(len(names)))


def _first_directories(files: FileTable, root: str) -> list[str]:
    """The directories directly below the root that hold files, at any depth."""
    below = pc.utf8_slice_codeunits(files.paths, len(root) + 1)
    inside = below.filter(pc.match_substring(below, "/"))
    names: list[str] = pc.replace_substring_regex(inside, "/.*", "").unique().to_pylist()
    return names


def key_column(names: Sequence[str], place: int, values: Sequence[str | None]) -> Column:
    """One of the partition keys with its type; warns where leading zeros make it a text."""
    found, name = key_type(values), names[place]
    present = [v for v in values if v is not None]
    if found is STRING and present and all(_PADDED.fullmatch(v) for v in present):
        padded = next(v for v in present if not _NUMBER.fullmatch(v))
        _log.warning(
            "the partition key %s is a string, as %r has a leading zero: compare it with '%s'; for "
            "a number register the directory as a new table: skipbridge sync --partition-keys %s",
            name,
            padded,
            padded,
            ",".join([*names[:place], f"{name}:int", *names[place + 1 :]]),
        )
    return Column(name, found)


def key_type(values: Sequence[str | None]) -> Type:
    """The type of a partition key: int, bigint, date or string.

    '01' stays text, because a number would lose the zero.
    """
    present = [v for v in values if v is not None]
    if not present:
        return STRING
    if all(_NUMBER.fullmatch(v) for v in present):
        small = all(-(2**31) <= int(v) < 2**31 for v in present)
        return INTEGER if small else BIGINT
    return DATE if all(_is_date(v) for v in present) else STRING


def _is_date(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _sample(listing: FileTable, paths: list[str]) -> list[tuple[str, int]]:
    """The first file of every directory and 50 evenly spaced files, thinned to a limit."""
    first = [0] + [
        i + 1
        for i, (a, b) in enumerate(pairwise(paths))
        if a.rpartition("/")[0] != b.rpartition("/")[0]
    ]
    even = np.linspace(0, len(paths) - 1, 50).astype(int).tolist()
    chosen = sorted({*first, *even})
    if len(chosen) > _SAMPLE:
        chosen = [chosen[int(i)] for i in np.linspace(0, len(chosen) - 1, _SAMPLE)]
    return [(paths[i], int(listing.sizes[i])) for i in chosen]


class _Batches:
    def __init__(self, partitions: list[Partition]) -> None:
        self._batches: Iterator[PartitionBatch] = (
            PartitionBatch(tuple(partitions[i : i + _BATCH]))
            for i in range(0, len(partitions), _BATCH)
        )

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> PartitionBatch:
        return next(self._batches)

    def close(self) -> None:
        """Nothing is in flight."""
