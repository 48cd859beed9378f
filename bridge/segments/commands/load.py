"""Indexes the facts of a segment and writes its views, in one pass over the facts.

Nothing here commits: nobody asks for entries or files before a version names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bridge.indexing.table import Progress, Say, spark_session
from bridge.segments.commands.indexes import index_new_files, is_indexed_now
from bridge.segments.commands.opened import OpenSegments
from bridge.segments.commands.view_files import SegmentViews, runner
from bridge.segments.commands.view_indexes import index_view_files
from bridge.table.segments.manifest import Segment, ViewFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load_facts(
    opened: OpenSegments,
    segment: Segment,
    *,
    local: bool,
    spark: SparkSession | None,
    progress: Progress,
    say: Say,
) -> tuple[dict[str, Any] | None, tuple[ViewFiles, ...]]:
    """Makes what the table has at once of every segment: immediate indexes and views.

    Args:
        segment: with the files' set and readers; it is not committed yet.

    Returns:
        The report of the index build, None if there was none; and the files of views.

    Errors: those of builds; all that was written is garbage then.
    """
    views = [v for v in opened.manifest.definition.views if v.enabled and not v.deferred]
    indexed = is_indexed_now(opened, [segment], say)
    if not views and not indexed:
        return None, ()
    with spark_session(local, spark) as session:
        if not views:
            return index_new_files(
                opened, [segment], local=local, spark=session, progress=progress, say=say
            ), ()
        making = SegmentViews(opened, views, segment.readers, segment.files)
        beside = making.beside()
        index = None
        try:
            if indexed:
                index = index_new_files(
                    opened,
                    [segment],
                    local=local,
                    spark=session,
                    beside=beside,
                    progress=progress,
                    say=say,
                )
            made = making.build(runner(opened, session), beside)
        except BaseException:
            beside.discard()
            raise
        if not indexed:
            progress(segment.files.count, segment.files.count)
        index_view_files(opened, views, [made], local=local, spark=session)
    return index, made
