"""Adds fact files to a table as a new segment.

The law: one version names the segment with its files and views, and it is committed last. Whatever
fails before leaves the table as it was. Fact files are only read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bridge.formats.registry import file_format
from bridge.indexing.table import Progress, Say
from bridge.kernel.config import Config
from bridge.kernel.errors import SegmentConflict
from bridge.runtime.compose import is_location
from bridge.segments.commands.fact_files import find_fact_files
from bridge.segments.commands.hive_tables import (
    HiveFacts,
    facts_of_table,
    keys_of_table,
    require_columns,
)
from bridge.segments.commands.load import load_facts
from bridge.segments.commands.manage import HELD
from bridge.segments.commands.opened import OpenSegments, open_segments
from bridge.segments.commands.places import places_of, refuse_overlap
from bridge.segments.commands.registration import update_record_after_commit
from bridge.segments.commands.strict import require_castable
from bridge.storage.port import FileTable
from bridge.storage.reading.one_read import MEMORY, OneRead
from bridge.table.segments.format import segment_table
from bridge.table.segments.headers import readers_of
from bridge.table.segments.manifest import (
    Segment,
    SegmentColumn,
    SegmentManifest,
    Status,
    sorted_properties,
)
from bridge.table.segments.partition_columns import (
    find_keys,
    partitions_of,
    require_partition_types,
)
from bridge.table.segments.properties import check_properties, require_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CHECKED = ("id", "columns", "partition_columns")
_UNNUMBERED = "-1"
"""The id of a segment until it is committed."""


def _silent(*_: object) -> None:
    """For callers that want no news."""


def add_segment(
    config: Config,
    table: str,
    *,
    paths: Sequence[str] = (),
    from_table: str | None = None,
    partition: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    format: str | None = None,
    strict: bool = False,
    local: bool = False,
    spark: SparkSession | None = None,
    progress: Progress = _silent,
    say: Say = _silent,
) -> dict[str, Any]:
    """Adds files, and all files in directories and below, as one segment.

    Args:
        paths: each may hold several, separated by commas.
        from_table: a table of the metastore whose files are added instead, as its record has them
            read; of ``partition`` alone, values by partition key.
        properties: of these files, where they differ from the table's.
        format: of these files; None: the table's.
        strict: whether a value that cannot be cast, and would be NULL, refuses the files. They are
            read for that in this process.

    Errors:
        SegmentBadValue: only with ``strict``.
        SegmentOverlap: a file is there twice, or belongs to the table already.
        SegmentSchemaMismatch: a file cannot be read as the table.
        FileUnreadable: there is nothing at a path.
        OperationBlocked: the table has no segments.
        SegmentConflict: the table was altered meanwhile.
    """
    started = time.time_ns() // 1000
    with open_segments(config, table) as opened:
        definition = opened.manifest.definition
        hive = None
        if from_table is not None:
            hive = facts_of_table(config, opened.storage, from_table, partition or {})
            require_columns(definition, hive)
        found = find_fact_files(opened.storage, paths) if hive is None else hive.files
        refuse_overlap(opened.log, opened.manifest, {_UNNUMBERED: found.files})
        for uri in found.empty:
            say(f"left out, since it is empty: {uri}")
        if local and found.files.sizes.sum() <= MEMORY:  # for headers, indexes and views
            opened = replace(opened, storage=OneRead.over(opened.storage, found.files))
        own = (format or (definition.format if hive is None else hive.format)).lower()
        file_format(own)
        used = dict(definition.properties) if own == definition.format and hive is None else {}
        used |= {} if hive is None else check_properties(own, hive.properties)
        used |= check_properties(own, properties or {})
        require_together(own, used)
        keyed = with_partition_columns(opened, found.files, hive)
        readers, number = readers_of(
            opened.storage, found.files, own, sorted_properties(used), definition.columns
        )
        if strict:
            require_castable(opened.storage, found.files, number, readers, definition.columns)
        keys = keyed.manifest.definition.partition_columns
        partitions = None
        if keys:
            partitions = partitions_of(found.files, keys) if hive is None else hive.names(keys)
        files = opened.log.put_files(found.files, number, places_of(found.files), partitions)
        made = Segment(_UNNUMBERED, Status.SUCCESS, started, started, found.paths, readers, files)
        index, views = load_facts(
            keyed,
            made,
            local=local,
            spark=spark,
            progress=progress,
            say=say,
        )

        def change(held: SegmentManifest) -> SegmentManifest:
            require_same(held, opened)
            refuse_overlap(opened.log, held, {_UNNUMBERED: found.files})
            if keys != definition.partition_columns and _holds_segments(held):
                raise _changed(opened)
            id = str(held.definition.next_segment)
            known = {v.id for v in held.definition.views}
            segment = replace(
                made,
                id=id,
                finished=time.time_ns() // 1000,
                views=tuple(v for v in views if v.view_id in known),
            )
            following = replace(
                held.definition,
                next_segment=held.definition.next_segment + 1,
                next_column=max(held.definition.next_column, *(c.id + 1 for c in keys), 0),
                partition_columns=keys,
            )
            return replace(held, definition=following).with_segments(segment)

        committed = opened.log.commit("ADD SEGMENT", change)
        if not is_location(table) and (behind := update_record_after_commit(config, keyed.table)):
            say(behind)
        added = str(committed.definition.next_segment - 1)
    return {
        "table": str(opened.table.name),
        "segment": added,
        "version": committed.version,
        "files": files.count,
        "bytes": files.bytes,
        "indexed": None if index is None else index["read"] - len(index["failed"]),
        "views": [v.view for v in views],
    }


def require_same(held: SegmentManifest, opened: OpenSegments) -> None:
    """Errors: SegmentConflict: the table's columns changed since files were checked."""
    before, now = opened.manifest.definition, held.definition
    if any(getattr(before, name) != getattr(now, name) for name in _CHECKED):
        raise _changed(opened)


def _changed(opened: OpenSegments) -> SegmentConflict:
    return SegmentConflict(
        f"the columns of {opened.table.name} changed while files were checked",
        "run the command again",
    )


def with_partition_columns(
    opened: OpenSegments, files: FileTable, hive: HiveFacts | None
) -> OpenSegments:
    """The table with the partition columns that its first files bring, if it declares none.

    Args:
        hive: the table that the files are taken from; its partition keys are the columns.

    Errors:
        SegmentSchemaMismatch: directories disagree about them.
    """
    definition = opened.manifest.definition
    if definition.partition_columns or _holds_segments(opened.manifest):
        return opened
    known = [column.name for column in definition.columns]
    found = find_keys(files, known) if hive is None else keys_of_table(hive, known)
    keys = tuple(
        SegmentColumn(definition.next_column + i, key.name.lower(), key.type)
        for i, key in enumerate(found)
    )
    require_partition_types(keys)
    manifest = replace(opened.manifest, definition=replace(definition, partition_columns=keys))
    return replace(opened, manifest=manifest, table=segment_table(opened.table, manifest))


def _holds_segments(manifest: SegmentManifest) -> bool:
    return any(segment.status in HELD for segment in manifest.segments)
