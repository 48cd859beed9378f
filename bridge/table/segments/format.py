"""Tables of segments as a table format: a version of the log is a version of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import (
    ReadVersionNotFound,
    ReadVersionUnsupported,
    SegmentNotFound,
    SnapshotExpired,
    TableNotFound,
)
from bridge.storage.port import Storage
from bridge.table.directory.discovered import Discovered, combine, summarise
from bridge.table.model import CatalogTable, TableName
from bridge.table.read_version import AsOfTime, AsOfVersion, ChangesBetween, Newest, ReadVersion
from bridge.table.segments.log import DIRECTORY, SegmentLog
from bridge.table.segments.manifest import Segment, SegmentManifest, Status
from bridge.table.segments.properties import columns_of, keys_of
from bridge.table.segments.snapshot import SegmentSnapshot
from bridge.table.snapshot import TableContext

INPUT_FORMAT = "io.skipbridge.hive.SegmentInputFormat"
"""In the metastore's record."""
NAME = "segments"
_ID = re.compile(r"version:(\d{1,18}):([0-9a-f]{16})")
_LOGS = 1000


class SegmentsFormat:
    """Implements `TableFormat` and `DefinesTables`.

    A query lists the versions and reads the newest one. Fact files are not listed: a file that was
    changed since it was added makes the query fail.
    """

    name = NAME
    versioned = True
    marker = DIRECTORY

    def __init__(self) -> None:
        self._logs: BoundedCache[tuple[int, str], SegmentLog] = BoundedCache(_LOGS)

    def recognises(self, properties: Mapping[str, str], input_format: str) -> bool:
        """By the input format; the property ``skipbridge.table_format`` names them besides.

        Without either, a table would be taken for its own directory, which holds no rows.
        """
        return input_format == INPUT_FORMAT

    def snapshot(
        self, table: CatalogTable, read: ReadVersion, context: TableContext, id: str = ""
    ) -> SegmentSnapshot:
        log = self.log(context.storage, table.location)
        manifest = _reopened(log, table, id) if id else _version(log, table, read)
        chosen = manifest.readable
        if read.segments:
            ids = dict.fromkeys(read.segments)  # a segment that is named twice is read once
            chosen = tuple(_chosen(manifest, table.name, one) for one in ids)
        return SegmentSnapshot(segment_table(table, manifest), manifest, chosen, log, context)

    def discover(self, location: str, storage: Storage, threads: int = 16) -> Discovered:
        log = self.log(storage, location)
        manifest = log.latest()
        held = [log.read_files(s.files).files for s in manifest.readable]
        return Discovered(location, combine([summarise(files, location) for files in held]))

    def define(self, name: TableName, location: str, storage: Storage) -> CatalogTable:
        log = self.log(storage, location)
        if log.newest() is None:
            raise TableNotFound(f"there is no table of segments at {location}", "create it")
        return segment_table(CatalogTable(name, (), (), location, table_format=NAME), log.latest())

    def log(self, storage: Storage, location: str) -> SegmentLog:
        """The log of a table; it remembers the version that it read last."""
        key = (id(storage), location)
        # A log holds its storage, so that the storage's id stays its own.
        return self._logs.get_or_put(key, lambda: SegmentLog(storage, location))


def segment_table(table: CatalogTable, manifest: SegmentManifest) -> CatalogTable:
    """The table as a version defines it; the metastore's copy of the columns may lag behind."""
    definition = manifest.definition
    return CatalogTable(
        table.name,
        columns_of(definition),
        keys_of(definition),
        table.location,
        definition.format,
        table.properties,
        NAME,
        table.input_format,
    )


def _version(log: SegmentLog, table: CatalogTable, read: ReadVersion) -> SegmentManifest:
    match read.point:
        case Newest():
            return log.latest()
        case AsOfVersion(version):
            if not version.isascii() or not version.isdigit() or len(version) > 18:
                raise ReadVersionNotFound(
                    f"{version[:50]!r} is no version of {table.name}", "a version is a number"
                )
            return _same_table(log, table, log.manifest(int(version)))
        case AsOfTime(millis):
            return _as_of(log, table, millis * 1000 + 999)
        case ChangesBetween():
            raise ReadVersionUnsupported(
                f"{table.name} is a table of segments: it tells no changes between versions",
                "read the segments that were added: option segments",
            )


def _as_of(log: SegmentLog, table: CatalogTable, micros: int) -> SegmentManifest:
    for number in reversed(log.versions()):
        found = log.manifest(number)
        if found.created <= micros:
            return _same_table(log, table, found)
    raise ReadVersionNotFound(
        f"{table.name} has no version of that time", f"kept are the versions {log.versions()}"
    )


def _same_table(log: SegmentLog, table: CatalogTable, found: SegmentManifest) -> SegmentManifest:
    """Errors: ReadVersionNotFound: the version is of an earlier table at the same place."""
    if found.dropped or found.definition.id != log.latest().definition.id:
        raise ReadVersionNotFound(
            f"version {found.version} at {table.location} is of a table that was dropped",
            f"read a later version of {table.name}",
        )
    return found


def _reopened(log: SegmentLog, table: CatalogTable, id: str) -> SegmentManifest:
    """Errors: SnapshotExpired."""
    match = _ID.fullmatch(id)
    if match is None:
        raise SnapshotExpired(f"{id!r} is no snapshot of {table.name}", "run the query again")
    try:
        found = log.manifest(int(match[1]))
    except ReadVersionNotFound as error:
        raise SnapshotExpired(error.message, "run the query again") from error
    if not found.checksum.startswith(match[2]):
        raise SnapshotExpired(f"{table.name} was made anew meanwhile", "run the query again")
    return found


def _chosen(manifest: SegmentManifest, name: TableName, id: str) -> Segment:
    found = manifest.segment(id)
    if found is None or found.status is not Status.SUCCESS:
        state = "does not exist" if found is None else f"is {found.status.value!r}"
        if found is not None and found.merged_into is not None:
            state += f", its files are in segment {found.merged_into}"
        readable = ", ".join(s.id for s in manifest.readable) or "none"
        raise SegmentNotFound(f"segment {id} of {name} {state}", f"readable are {readable}")
    return found


TABLE_FORMAT = SegmentsFormat()
