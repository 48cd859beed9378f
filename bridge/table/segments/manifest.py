"""Versions of a table of segments: one JSON document each, with a checksum of itself.

A version names everything that the table consists of: its columns, its segments with their fact
files, the files of its views, and its indexes. What no version names does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from bridge.kernel.errors import BridgeError, SegmentLogCorrupt
from bridge.kernel.types import Type, parse_hive_type
from bridge.storage.commit_log import checksum, seal

FORMAT = "skipbridge-segments"
VERSION = 2
"""What this program reads. Tables without partition columns are written as version 1, which earlier
programs read as well."""
REMEDY = (
    "restore the file from a backup, or drop the table and add its segments again; fact files are "
    "untouched"
)
Properties = tuple[tuple[str, str], ...]
"""Names and values, sorted by name."""


class Status(Enum):
    """The state of a segment. Only segments with SUCCESS are read."""

    SUCCESS = "Success"
    DISABLED = "Disabled"
    COMPACTED = "Compacted"
    DELETED = "Marked for Delete"


@dataclass(frozen=True, slots=True)
class SegmentColumn:
    """A column as it is declared.

    Attributes:
        id: never used again for another column of the table.
    """

    id: int
    name: str
    type: Type
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class FileReader:
    """How some of a segment's files are read.

    Attributes:
        format: a name in the registry of file formats.
        properties: those of the table at the time, with the segment's own.
        fields: names of the files' fields in their order, in lower case; None: the files tell.
    """

    format: str
    properties: Properties = ()
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LogFile:
    """An immutable file of the table's own. ``name`` is relative to the table's root."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FileSet:
    """A list of files, in a blob.

    Attributes:
        count: number of files.
        bytes: their size.
    """

    blob: LogFile
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ViewFiles:
    """The files of one view that hold the rows of one segment.

    Attributes:
        view_id: of the definition they were written for.
        built_for: a stamp of all that they were made from; another one now: the facts are read.
        reason: why there are no files for the segment; empty: there are.
    """

    view: str
    view_id: str
    files: FileSet
    built_for: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """Some fact files that were added at once, or merged from several segments.

    Attributes:
        id: ``"0"``, ``"1"``; ``"0.1"`` after a compaction.
        started, finished: microseconds since the epoch.
        paths: what was added, as canonical URIs: files and directories.
        readers: how the files are read; the file set tells the reader of each.
        views: the views that are built for it.
        merged_from: ids of the segments it was merged from.
        merged_into: the segment that holds its files now; None: it was not compacted.
    """

    id: str
    status: Status
    started: int
    finished: int
    paths: tuple[str, ...]
    readers: tuple[FileReader, ...]
    files: FileSet
    views: tuple[ViewFiles, ...] = ()
    merged_from: tuple[str, ...] = ()
    merged_into: str | None = None

    @property
    def format(self) -> str:
        """``csv``; of a merged segment several names may be joined."""
        return ", ".join(sorted({reader.format for reader in self.readers}))


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index by its name.

    Attributes:
        kind: ``minmax`` or another index kind.
        columns: none: all columns.
        visible: whether planners use it.
        deferred: adding a segment does not build it.
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()
    options: Properties = ()
    visible: bool = True
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """Hot columns that are kept as sorted Parquet beside the facts.

    Attributes:
        id: unique; changes whenever the definition does.
        enabled: adding a segment builds it, and planners use it.
        hidden: planners do not use it; it stays up to date.
        deferred: adding a segment does not build it.
    """

    name: str
    id: str
    columns: tuple[str, ...]
    sort_columns: tuple[str, ...] = ()
    properties: Properties = ()
    enabled: bool = True
    hidden: bool = False
    deferred: bool = False
    indexes: tuple[IndexDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What a table of segments is, without its segments.

    Attributes:
        id: unique; a table created anew at the same place has another.
        format: of segments that name none.
        next_segment, next_column: the numbers that come next.
        partition_columns: their values are those of the file lists: files do not hold them.
    """

    id: str
    columns: tuple[SegmentColumn, ...]
    format: str
    properties: Properties = ()
    indexes: tuple[IndexDefinition, ...] = ()
    views: tuple[ViewRecord, ...] = ()
    next_segment: int = 0
    next_column: int = 0
    comment: str | None = None
    partition_columns: tuple[SegmentColumn, ...] = ()

    def column(self, name: str) -> SegmentColumn | None:
        """A column of the files by its name in any case."""
        wanted = name.lower()
        return next((c for c in self.columns if c.name == wanted), None)

    def index(self, name: str) -> IndexDefinition | None:
        return next((i for i in self.indexes if i.name == name.lower()), None)

    def view(self, name: str) -> ViewRecord | None:
        return next((v for v in self.views if v.name == name.lower()), None)


@dataclass(frozen=True, slots=True)
class SegmentManifest:
    """One version of a table.

    Attributes:
        committer: unique id of the command that committed it; tells whose write won.
        created: microseconds since the epoch.
        operation: ``ADD SEGMENT 3``; for people.
        dropped: the table was dropped. A table created here starts with the next version.
        segments: in the order of their ids.
        root: where the table lay when it was committed; empty: not recorded.
    """

    version: int
    committer: str
    created: int
    operation: str
    definition: TableDefinition
    segments: tuple[Segment, ...] = ()
    dropped: bool = False
    root: str = field(default="", compare=False)
    checksum: str = field(default="", compare=False)

    @property
    def readable(self) -> tuple[Segment, ...]:
        """The segments that queries read."""
        return tuple(s for s in self.segments if s.status is Status.SUCCESS)

    def segment(self, id: str) -> Segment | None:
        return next((s for s in self.segments if s.id == id), None)

    def with_segments(self, *changed: Segment) -> SegmentManifest:
        """The manifest with these segments in place of, or beside, those of the same ids."""
        held = {s.id: s for s in self.segments} | {s.id: s for s in changed}
        return replace(self, segments=tuple(sorted(held.values(), key=lambda s: order(s.id))))

    def blobs(self) -> list[LogFile]:
        """Every file list that this version names. Files of views are named in those."""
        sets = [s.files for s in self.segments]
        sets += [v.files for s in self.segments for v in s.views]
        return [one.blob for one in sets]

    def to_bytes(self) -> bytes:
        return seal(_body(self))


def order(id: str) -> tuple[int, ...]:
    """Sorts ids: 0, 0.1, 1, 2, 10."""
    return tuple(int(part) for part in id.split("."))


def sorted_properties(properties: dict[str, str]) -> Properties:
    return tuple(sorted(properties.items()))


def parse_manifest(raw: bytes, name: str) -> SegmentManifest:
    """Reads a version.

    Errors:
        SegmentLogCorrupt: not a version, one of a later program, or damaged.
    """
    try:
        body = json.loads(raw)
        if body["format"] != FORMAT:
            raise SegmentLogCorrupt(f"{name} is no version of a table of segments", REMEDY)
        stated = body.pop("checksum")
        if stated != checksum(body):
            raise SegmentLogCorrupt(f"{name} does not match its checksum {stated[:12]}", REMEDY)
        if body["format_version"] not in range(1, VERSION + 1):
            raise SegmentLogCorrupt(
                f"{name} has format version {body['format_version']}, this program reads {VERSION}",
                "upgrade this program",
            )
        return SegmentManifest(
            body["version"],
            body["committer"],
            body["created"],
            body["operation"],
            _definition(body["definition"]),
            tuple(_segment(s) for s in body["segments"]),
            body["dropped"],
            body.get("root", ""),
            stated,
        )
    except SegmentLogCorrupt:
        raise
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        BridgeError,
    ) as error:
        raise SegmentLogCorrupt(
            f"{name} is no version of a table of segments: {type(error).__name__} {error}", REMEDY
        ) from error


def _definition(body: dict[str, Any]) -> TableDefinition:
    return TableDefinition(
        body["id"],
        _columns(body["columns"]),
        body["format"],
        sorted_properties(body["properties"]),
        tuple(_index(i) for i in body["indexes"]),
        tuple(
            ViewRecord(
                v["name"],
                v["id"],
                tuple(v["columns"]),
                tuple(v["sort_columns"]),
                sorted_properties(v["properties"]),
                v["enabled"],
                v["hidden"],
                v["deferred"],
                tuple(_index(i) for i in v["indexes"]),
            )
            for v in body["views"]
        ),
        body["next_segment"],
        body["next_column"],
        body["comment"],
        _columns(body.get("partition_columns", ())),
    )


def _columns(bodies: Sequence[dict[str, Any]]) -> tuple[SegmentColumn, ...]:
    return tuple(
        SegmentColumn(c["id"], c["name"], parse_hive_type(c["type"]), c["comment"]) for c in bodies
    )


def _index(body: dict[str, Any]) -> IndexDefinition:
    return IndexDefinition(
        body["name"],
        body["kind"],
        tuple(body["columns"]),
        sorted_properties(body["options"]),
        body["visible"],
        body["deferred"],
    )


def _segment(body: dict[str, Any]) -> Segment:
    order(body["id"])
    return Segment(
        body["id"],
        Status(body["status"]),
        body["started"],
        body["finished"],
        tuple(body["paths"]),
        tuple(
            FileReader(
                r["format"],
                sorted_properties(r["properties"]),
                None if r["fields"] is None else tuple(r["fields"]),
            )
            for r in body["readers"]
        ),
        _file_set(body["files"]),
        tuple(
            ViewFiles(v["view"], v["view_id"], _file_set(v["files"]), v["built_for"], v["reason"])
            for v in body["views"]
        ),
        tuple(body["merged_from"]),
        body["merged_into"],
    )


def _file_set(body: dict[str, Any]) -> FileSet:
    return FileSet(
        LogFile(body["name"], body["size"], body["sha256"]), body["count"], body["bytes"]
    )


def _body(manifest: SegmentManifest) -> dict[str, Any]:
    held = manifest.definition
    return {
        "format": FORMAT,
        "format_version": VERSION if held.partition_columns else 1,
        "version": manifest.version,
        "committer": manifest.committer,
        "created": manifest.created,
        "operation": manifest.operation,
        "dropped": manifest.dropped,
        "root": manifest.root,
        "definition": {
            "id": held.id,
            "columns": _column_bodies(held.columns),
            "format": held.format,
            "properties": dict(held.properties),
            "indexes": [_index_body(i) for i in held.indexes],
            "views": [
                {
                    "name": v.name,
                    "id": v.id,
                    "columns": list(v.columns),
                    "sort_columns": list(v.sort_columns),
                    "properties": dict(v.properties),
                    "enabled": v.enabled,
                    "hidden": v.hidden,
                    "deferred": v.deferred,
                    "indexes": [_index_body(i) for i in v.indexes],
                }
                for v in held.views
            ],
            "next_segment": held.next_segment,
            "next_column": held.next_column,
            "comment": held.comment,
            **(
                {"partition_columns": _column_bodies(held.partition_columns)}
                if held.partition_columns
                else {}
            ),
        },
        "segments": [
            {
                "id": s.id,
                "status": s.status.value,
                "started": s.started,
                "finished": s.finished,
                "paths": list(s.paths),
                "readers": [
                    {
                        "format": r.format,
                        "properties": dict(r.properties),
                        "fields": None if r.fields is None else list(r.fields),
                    }
                    for r in s.readers
                ],
                "files": _file_set_body(s.files),
                "views": [
                    {
                        "view": v.view,
                        "view_id": v.view_id,
                        "files": _file_set_body(v.files),
                        "built_for": v.built_for,
                        "reason": v.reason,
                    }
                    for v in s.views
                ],
                "merged_from": list(s.merged_from),
                "merged_into": s.merged_into,
            }
            for s in manifest.segments
        ],
    }


def _column_bodies(columns: Sequence[SegmentColumn]) -> list[dict[str, Any]]:
    return [
        {"id": c.id, "name": c.name, "type": str(c.type), "comment": c.comment} for c in columns
    ]


def _index_body(index: IndexDefinition) -> dict[str, Any]:
    return {
        "name": index.name,
        "kind": index.kind,
        "columns": list(index.columns),
        "options": dict(index.options),
        "visible": index.visible,
        "deferred": index.deferred,
    }


def _file_set_body(files: FileSet) -> dict[str, Any]:
    return {
        "name": files.blob.name,
        "size": files.blob.size,
        "sha256": files.blob.sha256,
        "count": files.count,
        "bytes": files.bytes,
    }
