"""Files of views of tables of segments: built for each segment, and merged by compaction.

The law: files of a view count only where a version names them beside the segment they were built
from. They are written first, and the version is committed last. A value that an engine might read
differently from the facts leaves the segment without the view, never the command without success.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bridge.indexing.table import spark_session
from bridge.kernel.errors import ColumnNotFound, FileCorrupt, FileUnreadable, UnsupportedType
from bridge.runtime.compose import storage_options
from bridge.segments.commands.opened import OpenSegments
from bridge.segments.commands.view_indexes import index_view_files
from bridge.segments.views.build import (
    BuildBeside,
    Built,
    Runner,
    ViewFile,
    ViewTarget,
    build,
    in_threads,
    merge,
)
from bridge.segments.views.definition import ViewDefinition as Layout
from bridge.segments.views.definition import define_view
from bridge.segments.views.facts import FactFile
from bridge.storage.port import FileTable
from bridge.table.recipes import recipe_of
from bridge.table.segments.log import SegmentFiles
from bridge.table.segments.manifest import FileReader, FileSet, Segment, ViewFiles, ViewRecord
from bridge.table.segments.properties import columns_of, reader_spec
from bridge.table.segments.views import built_for, up_to_date_files, view_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]


class SegmentViews:
    """The views to build of one segment's facts, and how its facts are read.

    Args:
        specs: the readers of the facts.
        file_set: the facts, as the segment names them.
    """

    def __init__(
        self,
        opened: OpenSegments,
        views: Sequence[ViewRecord],
        specs: Sequence[FileReader],
        file_set: FileSet,
    ) -> None:
        self._opened, self._views, self._specs, self._set = opened, views, specs, file_set
        self._targets = [_target(opened, view) for view in views]
        self._known = [t for t in self._targets if not isinstance(t, str)]
        self._facts = _facts(opened, opened.log.read_files(file_set), specs)

    def beside(self) -> BuildBeside:
        """Builds them in the pass that reads the facts for indexes."""
        return BuildBeside(self._facts, self._known, self._opened.storage)

    def build(self, run: Runner, beside: BuildBeside | None = None) -> tuple[ViewFiles, ...]:
        """Writes the rows of the facts for each view. No version names the result yet.

        Args:
            beside: what was built already.
        """
        made, left = ([], self._facts) if beside is None else beside.split_results()
        results = iter(build(left, self._known, self._opened.storage, run, made=made))
        found = []
        for view, target in zip(self._views, self._targets, strict=True):
            built = Built(reason=target) if isinstance(target, str) else next(results)
            found.append(_committed(self._opened, view, built, self._specs, self._set))
        return tuple(found)


def merge_views(
    opened: OpenSegments,
    segments: Sequence[Segment],
    *,
    specs: Sequence[FileReader],
    file_set: FileSet,
    local: bool = True,
    spark: SparkSession | None = None,
) -> tuple[ViewFiles, ...]:
    """Writes the rows of several segments' views as those of one segment.

    A view that is not built for one of them is left out: it is not built for the merged one. So is
    one whose files are damaged or gone.
    """
    definition = opened.manifest.definition
    merged: list[ViewFiles] = []
    for view in definition.views:
        held = [up_to_date_files(definition, view, segment) for segment in segments]
        parts = [_as_built(opened, one) for one in held if one is not None]
        target = _target(opened, view)
        if len(parts) < len(held) or isinstance(target, str):
            continue
        try:
            found = merge(parts, target, opened.storage)
        except (FileCorrupt, FileUnreadable) as error:
            found = Built(reason=error.message)  # a rebuild makes it of the facts
        merged.append(_committed(opened, view, found, specs, file_set))
    made = tuple(merged)
    index_view_files(opened, definition.views, [made], local=local, spark=spark)
    return made


def build_segments(
    opened: OpenSegments,
    wanted: Sequence[tuple[Segment, Sequence[ViewRecord]]],
    local: bool,
    spark: SparkSession | None,
    progress: Progress | None,
) -> dict[str, list[ViewFiles]]:
    """Files of views for segments that exist, by the segment's id.

    Args:
        wanted: each segment with the views to build for it; its facts are read once for them.
    """
    found: dict[str, list[ViewFiles]] = {}
    if not wanted:
        return found
    with spark_session(local, spark) as session:
        run = runner(opened, session)
        for number, (segment, views) in enumerate(wanted, 1):
            making = SegmentViews(opened, views, segment.readers, segment.files)
            found[segment.id] = list(making.build(run))
            if progress is not None:
                progress(number, len(wanted))
        views = list({v.id: v for _, some in wanted for v in some}.values())
        index_view_files(opened, views, found.values(), local=local, spark=session)
    return found


def runner(opened: OpenSegments, session: SparkSession | None) -> Runner:
    """Builds chunks on Spark; without a session in this process."""
    if session is None:
        return in_threads(opened.storage)
    from bridge.segments.views.spark_build import on_spark

    return on_spark(session, storage_options(opened.config))


def _facts(opened: OpenSegments, held: SegmentFiles, specs: Sequence[FileReader]) -> list[FactFile]:
    columns = columns_of(opened.manifest.definition)
    ways = [reader_spec(spec, columns) for spec in specs]
    recipes = [recipe_of(way, columns) for way in ways]
    return [
        FactFile(f.uri, f.size, f.modified, f.etag, ways[i].format, columns, recipes[i], partition)
        for f, i, partition in zip(
            held.files.stats(), held.reader.tolist(), held.partitions.to_pylist(), strict=True
        )
    ]


def _target(opened: OpenSegments, view: ViewRecord) -> ViewTarget | str:
    """What to build; or why that is not possible any more."""
    columns = columns_of(opened.manifest.definition)
    try:
        layout: Layout = define_view(
            view.name, columns, view.columns, view.sort_columns, dict(view.properties)
        ).view
    except (ColumnNotFound, UnsupportedType) as error:  # the columns were altered since
        return error.message
    known = {c.name: c for c in columns}
    place = view_table(opened.table, view).location
    return ViewTarget(layout, tuple(known[name] for name in layout.columns), place)


def _committed(
    opened: OpenSegments,
    view: ViewRecord,
    built: Built,
    specs: Sequence[FileReader],
    file_set: FileSet,
) -> ViewFiles:
    partitions = None
    if opened.manifest.definition.partition_columns:
        partitions = pa.array([f.partition for f in built.files], pa.large_string())
    files = opened.log.put_files(_table(built.files), partitions=partitions)
    stamp = built_for(opened.manifest.definition, view, specs, file_set)
    return ViewFiles(view.name, view.id, files, stamp, built.reason)


def _table(files: Sequence[ViewFile]) -> FileTable:
    return FileTable(
        pa.array([f.uri for f in files], pa.large_string()),
        np.array([f.size for f in files], np.int64),
        np.array([f.modified for f in files], np.int64),
        pa.array([f.etag for f in files], pa.large_string()),
    )


def _as_built(opened: OpenSegments, held: ViewFiles) -> Built:
    files = opened.log.read_files(held.files)
    both = zip(files.files.stats(), files.partitions.to_pylist(), strict=True)
    return Built(
        tuple(ViewFile(f.uri, f.size, f.modified, f.etag, partition=name) for f, name in both)
    )
