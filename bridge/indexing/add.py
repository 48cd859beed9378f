"""Adds newly written files to their table's index without listing the table.

The law: as in a build, an entry describes exactly the bytes that (path, size, mtime, etag)
identify. Files outside the table's locations are refused before any of them is read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.registry import file_format, inferred_formats, recognise, spell_formats
from bridge.index.building.build import add_files
from bridge.index.building.collect import Nan
from bridge.index.building.listed import Listed, owners_text
from bridge.index.kinds.request import by_properties
from bridge.indexing.table import Progress, Say, collector_of, open_indexed_table, report_build
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    FileUnreadable,
    InvalidRequest,
    InvalidUri,
    OperationBlocked,
    StorageFailure,
    UnsupportedTable,
)
from bridge.kernel.threads import Threads
from bridge.runtime.compose import absolute_location, index_store, is_location, storage_of
from bridge.storage.object_store.key_ranges import lists_from_anywhere
from bridge.storage.port import FileStat, FileTable, Storage, data_files
from bridge.storage.uri import canonical, join, parent, relative
from bridge.table.directory.catalog import SCHEMA
from bridge.table.model import Catalog, CatalogTable, TableName
from bridge.table.partition import parse_partition_name, partition_name
from bridge.table.segments.format import NAME as SEGMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THREADS = 16
_LISTED = 20
"""From so many files of a directory on, pages of its listing are asked for instead of each file. At
most one page for so many files."""


def add_to_index(
    config: Config,
    table: str,
    files: Iterable[str],
    *,
    nan: Nan = "footer",
    spark: SparkSession | None = None,
    progress: Progress,
    say: Say,
) -> dict[str, Any]:
    """Indexes some files of a table and commits one generation on top of the newest.

    Args:
        files: paths or URIs; a directory stands for all data files below it.
        spark: a session that reads the files; None uses threads of this process.

    Errors:
        InvalidRequest: no file, a file outside the table, or a file that no engine reads as data.
        FileUnreadable: a file does not exist.
        IndexCorrupt: the index must be rebuilt first.
        TableNotFound, UnsupportedTable, IndexConflict, StorageFull, StorageFailure.
    """
    uris = sorted({canonical(absolute_location(each)) for each in files})
    if not uris:
        raise InvalidRequest(f"no files to add to the index of {table}", "give at least one")
    if is_location(table):
        storage = storage_of(config)
        place: _Place = _Directory(canonical(absolute_location(table)))
        stats = _look(storage, uris, place)
        found = CatalogTable(place.name, (), (), place.location, _format(storage, stats[0]))
        store = index_store(config, storage, found)
    else:
        with open_indexed_table(config, table) as (storage, catalog, found, store):
            _refuse_segments(found)
            _refuse_declared(found)
            place = _Registered(found, catalog, recursive=config.flag("planner.recursive"))
            stats = _look(storage, uris, place)
    listed = _listed(stats, place)
    wanted, _ = by_properties(found.properties).sift(found)
    with collector_of(config, storage, local=True, spark=spark) as collector:
        report = add_files(
            found,
            listed,
            store,
            collector=collector,
            nan=nan,
            progress=progress,
            settings=wanted.change,
        )
    return report_build(report, str(found.name), say)


def _refuse_segments(table: CatalogTable) -> None:
    """Errors: OperationBlocked: the table's log names its files, not a listing."""
    if table.table_format == SEGMENTS:
        raise OperationBlocked(
            f"{table.name} is a table of segments: files join it, and its index, as segments",
            "skipbridge segment add; files that were rewritten: skipbridge segment refresh",
        )


class _Place(Protocol):
    """The locations where a table's files may be, and the partitions that they belong to."""

    @property
    def location(self) -> str: ...

    @property
    def name(self) -> TableName: ...

    def holds(self, uri: str) -> bool:
        """Whether the URI is, or is inside, one of the table's locations."""
        ...

    def owners(self, directories: Sequence[str]) -> dict[str, tuple[str, str]]:
        """For each directory, the partitions that own its files, as in entries, and their location.

        Errors:
            InvalidRequest: no partition owns a file there.
        """
        ...


class _Directory:
    """A directory used as a table; its ``key=value`` directories are the partitions."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.name = TableName(SCHEMA, location.rsplit("/", 1)[-1].lower())

    def holds(self, uri: str) -> bool:
        return uri == self.location or relative(self.location, uri) is not None

    def owners(self, directories: Sequence[str]) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for directory in directories:
            name = relative(self.location, directory) or ""
            if name and not all("=" in level for level in name.split("/")):
                raise _outside(directory, self.location)
            found[directory] = name, directory
        return found


class _Registered:
    """A table of a metastore; a partition not registered yet gets its name from its path."""

    def __init__(self, table: CatalogTable, catalog: Catalog, *, recursive: bool) -> None:
        self._table, self._catalog, self._recursive = table, catalog, recursive
        self.location = table.location
        self.name = table.name

    def holds(self, uri: str) -> bool:
        if uri == self.location or relative(self.location, uri) is not None:
            return True
        return any(uri == at or relative(at, uri) is not None for at in self._locations)

    def owners(self, directories: Sequence[str]) -> dict[str, tuple[str, str]]:
        keys = self._table.partition_keys
        if not keys:
            return {d: ("", self._around(d, {self.location})) for d in directories}
        spelled = {d: self._by_path(d) for d in directories}
        names = sorted({name for name, _ in filter(None, spelled.values())})
        fetched = self._catalog.partitions(self._table, names)
        known = {p.name: p.location for batch in fetched for p in batch.partitions}
        found: dict[str, tuple[str, str]] = {}
        for directory, by_path in spelled.items():
            if by_path is not None and known.get(by_path[0], by_path[1]) == by_path[1]:
                found[directory] = by_path
                continue
            root = self._around(directory, self._locations)
            found[directory] = owners_text(self._locations[root]), root
        return found

    def _by_path(self, directory: str) -> tuple[str, str] | None:
        """The partition that a directory below the table's belongs to by its path, and its root."""
        keys = self._table.partition_keys
        levels = (relative(self.location, directory) or "").split("/")
        if len(levels) < len(keys) or (len(levels) > len(keys) and not self._recursive):
            return None
        path = "/".join(levels[: len(keys)])
        pairs = parse_partition_name(path)
        if [k.lower() for k, _ in pairs] != [k.name.lower() for k in keys]:
            return None
        name = partition_name([k.name for k in keys], [value for _, value in pairs])
        return name, join(self.location, path)

    def _around(self, directory: str, locations: Collection[str]) -> str:
        """The location that is, or with recursive listing contains, the directory."""
        at = directory
        while at not in locations:
            above = parent(at)
            if not self._recursive or above == at:
                raise _outside(directory, self.location)
            at = above
        return at

    @cached_property
    def _locations(self) -> dict[str, list[str]]:
        """Names of all partitions by location; fetched only if paths do not decide."""
        found: dict[str, list[str]] = {}
        names = self._catalog.partition_names(self._table)
        for batch in self._catalog.partitions(self._table, names):
            for partition in batch.partitions:
                found.setdefault(partition.location, []).append(partition.name)
        return found


def _outside(uri: str, location: str) -> InvalidRequest:
    return InvalidRequest(
        f"{uri} is outside the table at {location}",
        "give files in the table's own directories; skipbridge sync registers new partitions",
    )


def _look(storage: Storage, uris: Sequence[str], place: _Place) -> list[FileStat]:
    """The present state of the files, sorted by path, without duplicates.

    Errors:
        InvalidRequest: a file is outside the table; no file was inspected.
        FileUnreadable: a file does not exist.
    """
    for uri in uris:
        if not place.holds(uri):
            raise _outside(uri, place.location)
    directories: dict[str, list[str]] = {}
    for uri in uris:
        directories.setdefault(parent(uri), []).append(uri)
    with Threads(_THREADS, "add") as pool:
        files: dict[str, FileStat] = {}
        for listed in pool.map(lambda each: _by_pages(storage, *each), directories.items()):
            files |= listed
        others = [uri for uri in uris if uri not in files]
        for stats in pool.map(lambda uri: _stat(storage, uri, place.location), others):
            files |= {stat.uri: stat for stat in stats}
    return [files[uri] for uri in sorted(files)]


def _by_pages(storage: Storage, directory: str, uris: Sequence[str]) -> dict[str, FileStat]:
    """Those of the sorted files that a few pages of the directory's listing tell.

    None of them if the directory may not be listed.
    """
    found: dict[str, FileStat] = {}
    if len(uris) < _LISTED or not lists_from_anywhere(directory):
        return found
    wanted = pa.array(uris, pa.large_string())
    # what is shorter sorts before
    pages = storage.pages(directory, start_after=uris[0][:-1])
    with suppress(StorageFailure):  # each file is looked at then, which tells of other faults
        for page in islice(pages, len(uris) // _LISTED):
            named = pc.is_in(page.paths, wanted).to_numpy(zero_copy_only=False)
            # what is empty may mark a directory of this name
            found |= {stat.uri: stat for stat in page.filter(named & (page.sizes > 0)).stats()}
            if page.paths[-1].as_py() >= uris[-1]:
                break
    return found


def _stat(storage: Storage, uri: str, location: str) -> list[FileStat]:
    _refuse_link(uri, location)
    stat = storage.stat(uri)
    if stat is not None:
        return [stat]
    listing = data_files(storage.list_all(uri), uri)
    if not len(listing):
        raise FileUnreadable(
            f"there is no data file {uri}", "give files that were written completely"
        )
    return listing.stats()


def _listed(stats: Sequence[FileStat], place: _Place) -> Listed:
    """The files with their owners. Errors: InvalidRequest: a file is empty or hidden."""
    owners = place.owners(sorted({parent(stat.uri) for stat in stats}))
    for stat in stats:
        _, root = owners[parent(stat.uri)]
        below = (relative(root, stat.uri) or "").split("/")
        if not stat.size or any(name.startswith(("_", ".")) for name in below):
            raise InvalidRequest(
                f"{stat.uri} is empty or hidden: no engine reads it as data", "leave it out"
            )
    etags = [stat.etag for stat in stats]
    return Listed(
        FileTable(
            pa.array([stat.uri for stat in stats], pa.large_string()),
            np.array([stat.size for stat in stats], np.int64),
            np.array([stat.modified for stat in stats], np.int64),
            pa.array(etags, pa.large_string()) if any(etags) else None,
        ),
        pa.array([owners[parent(stat.uri)][0] for stat in stats], pa.large_string()),
    )


def _refuse_declared(table: CatalogTable) -> None:
    """Errors: UnsupportedTable: its files do not say themselves how they are read."""
    if file_format(table.format).chunks is not None:
        raise UnsupportedTable(
            f"{table.name} is stored as {table.format}: its partitions say how files are read",
            f"skipbridge index refresh {table.name}",
        )


def _format(storage: Storage, stat: FileStat) -> str:
    """The format of a directory's files. Errors: UnsupportedTable."""
    found = recognise(storage, stat.uri, stat.size)
    if found is None or found.name not in inferred_formats():
        raise UnsupportedTable(
            f"{stat.uri} is not a {spell_formats(inferred_formats())} file",
            "skipbridge indexes files of these formats",
        )
    return found.name


def _refuse_link(uri: str, location: str) -> None:
    """Errors: InvalidUri: a local link that leads out of the table; listings refuse it as well."""
    path = uri.removeprefix("file://")
    if path == uri or not Path(path).is_symlink():
        return
    target = os.path.realpath(path)
    roots = (
        os.path.realpath(root) for root in (location.removeprefix("file://"), Path(path).parent)
    )
    if not any((target + os.sep).startswith(root + os.sep) for root in roots):
        raise InvalidUri(f"{uri} is a link to {target}, outside {location}", "name the file itself")
