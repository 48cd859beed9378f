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
from bridge.segments.commands.load import load_facts
from bridge.segments.commands.opened import OpenSegments, open_segments
from bridge.segments.commands.places import places_of, refuse_overlap
from bridge.segments.commands.registration import follow
from bridge.segments.commands.strict import require_castable
from bridge.storage.reading.one_read import MEMORY, OneRead
from bridge.table.segments.headers import readers_of
from bridge.table.segments.manifest import Segment, SegmentManifest, Status, sorted_properties
from bridge.table.segments.properties import check_properties, require_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_UNNUMBERED = "-1"
"""The id of a segment until it is committed."""


def _silent(*_: object) -> None:
    """For callers that want no news."""


def add_segment(
    config: Config,
    table: str,
    *,
    paths: Sequence[str],
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
        found = find_fact_files(opened.storage, paths)
        refuse_overlap(opened.log, opened.manifest, {_UNNUMBERED: found.files})
        for uri in found.empty:
            say(f"left out, since it is empty: {uri}")
        if local and found.files.sizes.sum() <= MEMORY:  # for headers, indexes and views
            opened = replace(opened, storage=OneRead.over(opened.storage, found.files))
        own = (format or definition.format).lower()
        file_format(own)
        used = dict(definition.properties) if own == definition.format else {}
        used |= check_properties(own, properties or {})
        require_together(own, used)
        readers, number = readers_of(
            opened.storage, found.files, own, sorted_properties(used), definition.columns
        )
        if strict:
            require_castable(opened.storage, found.files, number, readers, definition.columns)
        files = opened.log.put_files(found.files, number, places_of(found.files))
        made = Segment(_UNNUMBERED, Status.SUCCESS, started, started, found.paths, readers, files)
        index, views = load_facts(
            opened,
            made,
            found.files,
            number,
            local=local,
            spark=spark,
            progress=progress,
            say=say,
        )

        def change(held: SegmentManifest) -> SegmentManifest:
            require_same(held, opened)
            refuse_overlap(opened.log, held, {_UNNUMBERED: found.files})
            id = str(held.definition.next_segment)
            known = {v.id for v in held.definition.views}
            segment = replace(
                made,
                id=id,
                finished=time.time_ns() // 1000,
                views=tuple(v for v in views if v.view_id in known),
            )
            following = replace(held.definition, next_segment=held.definition.next_segment + 1)
            return replace(held, definition=following).with_segments(segment)

        committed = opened.log.commit("ADD SEGMENT", change)
        if not is_location(table) and (behind := follow(config, opened.table)):
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
    if (before.id, before.columns) != (now.id, now.columns):
        raise SegmentConflict(
            f"the columns of {opened.table.name} changed while files were checked",
            "run the command again",
        )
