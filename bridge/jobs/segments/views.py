"""Views of tables of segments: made, built for each segment, merged by compaction, and dropped.

The law: files of a view count only where a version names them beside the segment they were built
from. They are written first, and the version is committed last. A value that an engine might read
differently from the facts leaves the segment without the view, never the command without success.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.config import Config
from bridge.errors import (
    BridgeError,
    ColumnNotFound,
    FileCorrupt,
    FileUnreadable,
    InvalidRequest,
    SegmentConflict,
    TableNotFound,
    UnsupportedType,
)
from bridge.jobs.compose import hive_catalog_of, storage_options
from bridge.jobs.segments.opened import OpenSegments, open_segments
from bridge.jobs.segments.view_indexes import index_view_files
from bridge.storage.port import FileTable
from bridge.table.model import TableName
from bridge.table.recipes import recipe_of
from bridge.table.segments.format import NAME
from bridge.table.segments.manifest import (
    Definition,
    FileReader,
    FileSet,
    Manifest,
    Segment,
    ViewDefinition,
    ViewFiles,
    sorted_properties,
)
from bridge.table.segments.properties import columns_of, reader_spec
from bridge.table.segments.snapshot import view_states
from bridge.table.segments.views import built_for, current, view_table
from bridge.views.build import Built, Runner, Target, ViewFile, build, in_threads, merge
from bridge.views.definition import ViewDefinition as Layout
from bridge.views.definition import define_view
from bridge.views.facts import FactFile
from bridge.views.query import parse_view_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]


def create_view(
    config: Config,
    table: str,
    *,
    name: str,
    columns: Sequence[str],
    sort_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    deferred: bool = False,
    if_not_exists: bool = False,
    local: bool = False,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Defines a view, and builds it for all segments unless it is deferred.

    Args:
        columns: ``*`` alone takes all.
        sort_by, properties: see `bridge.views.definition.define_view`.

    Errors:
        InvalidRequest: there is a view of this name, or the definition is not valid.
        ColumnNotFound, UnsupportedType, OperationBlocked, SegmentConflict, StorageFailure.
    """
    with open_segments(config, table) as opened:
        known = columns_of(opened.manifest.definition)
        chosen = [c.name for c in known] if list(columns) == ["*"] else list(columns)
        defined = define_view(name, known, chosen, sort_by, properties)
        layout = defined.view
        if opened.manifest.definition.view(layout.name) is not None:
            if if_not_exists:
                return {"view": layout.name, "created": False}
            raise _taken(layout.name, table)
        kept = {k.strip().upper(): v for k, v in (properties or {}).items()}
        kept.pop("SORT_COLUMNS", None)
        made = ViewDefinition(
            layout.name,
            uuid.uuid4().hex,
            layout.columns,
            layout.sort_columns,
            sorted_properties(kept),
            deferred=deferred,
        )
        built = {}
        if not deferred:
            segments = opened.manifest.readable
            built = _build_segments(opened, [made], segments, local, spark, progress)

        def change(held: Manifest) -> Manifest:
            if held.definition.view(made.name) is not None:
                raise _taken(made.name, table)
            views = (*held.definition.views, made)
            following = replace(held, definition=replace(held.definition, views=views))
            return _with_files(following, built)

        committed = opened.log.commit(f"CREATE MATERIALIZED VIEW {made.name}", change)
    return {
        "view": made.name,
        "created": True,
        "table": str(opened.table.name),
        "columns": list(made.columns),
        "sort_columns": list(made.sort_columns),
        "sort_scope": layout.sort_scope.value,
        "segments": _states(committed, made),
        "notices": list(defined.notices),
        "version": committed.version,
    }


def create_view_of_query(
    config: Config, name: str, *, query: str, schema: str, **options: Any
) -> dict[str, Any]:
    """Makes a view of ``SELECT a, b FROM t``.

    Args:
        schema: of a table that the query names without one.
        options: of `create_view`, except ``columns``.

    Errors:
        InvalidRequest: the query does more than name columns of one table; and as `create_view`.
    """
    asked = parse_view_query(query)
    table = f"{asked.schema or schema}.{asked.table}"
    return create_view(config, table, name=name, columns=asked.columns, **options)


def rebuild_view(
    config: Config,
    table: str,
    *,
    name: str | None = None,
    local: bool = False,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Builds a view, or all enabled ones, for the segments that lack current files of it.

    Errors:
        InvalidRequest: there is no such view.
        SegmentConflict: another command builds it at the same time.
        OperationBlocked, StorageFailure.
    """
    with open_segments(config, table) as opened:
        definition = opened.manifest.definition
        views = [_view(definition, name, table)] if name is not None else list(definition.views)
        built: dict[str, list[ViewFiles]] = {}
        for view in views:
            lacking = [s for s in opened.manifest.readable if current(definition, view, s) is None]
            for id, files in _build_segments(
                opened, [view], lacking, local, spark, progress
            ).items():
                built.setdefault(id, []).extend(files)
        if not built:
            return {"views": {v.name: _states(opened.manifest, v) for v in views}}
        known = {v.id for v in views}

        def change(held: Manifest) -> Manifest:
            alive = {v.id for v in held.definition.views} & known
            for view in views:
                _require_lacking(held, view, built)
            left = {id: [f for f in files if f.view_id in alive] for id, files in built.items()}
            return _with_files(held, left)

        words = ", ".join(v.name for v in views)
        committed = opened.log.commit(f"REFRESH MATERIALIZED VIEW {words}", change)
    return {
        "views": {v.name: _states(committed, v) for v in views},
        "version": committed.version,
    }


def _require_lacking(
    held: Manifest, view: ViewDefinition, built: Mapping[str, Sequence[ViewFiles]]
) -> None:
    """Errors: SegmentConflict: another command has built the view meanwhile."""
    for id, files in built.items():
        segment = held.segment(id)
        if segment is None or view.id not in {f.view_id for f in files}:
            continue
        if current(held.definition, view, segment) is not None:
            raise SegmentConflict(
                f"another command has built view {view.name} for segment {id} meanwhile",
                "nothing is left to do; one rebuild at a time suffices",
            )


def drop_view(config: Config, table: str, *, name: str, if_exists: bool = False) -> dict[str, Any]:
    """Drops a view; a cleanup deletes its files. Errors: InvalidRequest: there is none."""
    with open_segments(config, table) as opened:
        lower = name.strip().lower()
        if if_exists and opened.manifest.definition.view(lower) is None:
            return {"view": lower, "dropped": False}

        def change(held: Manifest) -> Manifest:
            dropped = _view(held.definition, name, table)
            views = tuple(v for v in held.definition.views if v.id != dropped.id)
            segments = tuple(
                replace(s, views=tuple(v for v in s.views if v.view_id != dropped.id))
                for s in held.segments
            )
            definition = replace(held.definition, views=views)
            return replace(held, definition=definition, segments=segments)

        version = opened.log.commit(f"DROP MATERIALIZED VIEW {lower}", change).version
    return {"view": lower, "dropped": True, "version": version}


def enable_view(config: Config, table: str, *, name: str, enabled: bool) -> dict[str, Any]:
    """Lets planners use a view, or not. A disabled view is not built for new segments.

    Errors:
        InvalidRequest: there is no such view.
    """
    with open_segments(config, table) as opened:

        def change(held: Manifest) -> Manifest:
            found = _view(held.definition, name, table)
            if found.enabled == enabled:
                return held
            views = tuple(
                replace(v, enabled=enabled) if v.id == found.id else v
                for v in held.definition.views
            )
            return replace(held, definition=replace(held.definition, views=views))

        words = "ENABLE" if enabled else "DISABLE"
        committed = opened.log.commit(f"{words} MATERIALIZED VIEW {name.lower()}", change)
        view = _view(committed.definition, name, table)
    return {
        "view": view.name,
        "enabled": enabled,
        "segments": _states(committed, view),
        "version": committed.version,
    }


def list_views(config: Config, table: str) -> dict[str, Any]:
    """The views of a table, with the state of each segment."""
    with open_segments(config, table) as opened:
        definition = opened.manifest.definition
        found = []
        for view in definition.views:
            held = [current(definition, view, s) for s in opened.manifest.readable]
            sets = [one.files for one in held if one is not None]
            found.append(
                {
                    "name": view.name,
                    "columns": list(view.columns),
                    "sort_columns": list(view.sort_columns),
                    "properties": dict(view.properties),
                    "enabled": view.enabled,
                    "hidden": view.hidden,
                    "deferred": view.deferred,
                    "indexes": [i.name for i in view.indexes],
                    "files": sum(one.count for one in sets),
                    "bytes": sum(one.bytes for one in sets),
                    "segments": _states(opened.manifest, view),
                }
            )
    return {"table": str(opened.table.name), "views": found}


def find_view(config: Config, schema: str, name: str) -> str:
    """The table of a view, among the tables of segments of one schema.

    Errors:
        TableNotFound: no table has such a view, or several have.
    """
    catalog = hive_catalog_of(config)
    found: list[str] = []
    for table in catalog.tables(schema):
        try:
            described = catalog.table(TableName(schema, table))
            if described.table_format != NAME:
                continue
            with open_segments(config, f"{schema}.{table}") as opened:
                if opened.manifest.definition.view(name.strip().lower()) is not None:
                    found.append(f"{schema}.{table}")
        except BridgeError:  # a table that cannot be opened must not hide the others
            continue
    if len(found) != 1:
        where = f"tables {', '.join(found)} have each" if found else f"no table of {schema} has"
        raise TableNotFound(f"{where} a view {name!r}", "name the table: ON TABLE")
    return found[0]


def build_views(
    opened: OpenSegments,
    files: FileTable,
    readers: npt.NDArray[np.int32],
    specs: Sequence[FileReader],
    *,
    file_set: FileSet,
    local: bool = False,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> tuple[ViewFiles, ...]:
    """Writes the rows of a segment's files for each view. No version names the result yet.

    Args:
        file_set: the same files, as the segment will name them.
    """
    views = [v for v in opened.manifest.definition.views if v.enabled and not v.deferred]
    if not views:
        return ()
    with _runner(opened, local, spark) as run:
        made = _build(opened, views, files, readers, specs, file_set, run)
    if progress is not None:
        progress(len(files), len(files))
    index_view_files(opened, views, [made], local=local, spark=spark)
    return made


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
        held = [current(definition, view, segment) for segment in segments]
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


def _build_segments(
    opened: OpenSegments,
    views: Sequence[ViewDefinition],
    segments: Sequence[Segment],
    local: bool,
    spark: SparkSession | None,
    progress: Progress | None,
) -> dict[str, list[ViewFiles]]:
    """Files of views for segments that exist, by the segment's id."""
    found: dict[str, list[ViewFiles]] = {}
    if not segments:
        return found
    with _runner(opened, local, spark) as run:
        for number, segment in enumerate(segments, 1):
            held = opened.log.read_files(segment.files)
            made = _build(
                opened, views, held.files, held.reader, segment.readers, segment.files, run
            )
            found[segment.id] = list(made)
            if progress is not None:
                progress(number, len(segments))
    index_view_files(opened, views, found.values(), local=local, spark=spark)
    return found


def _build(
    opened: OpenSegments,
    views: Sequence[ViewDefinition],
    files: FileTable,
    readers: npt.NDArray[np.int32],
    specs: Sequence[FileReader],
    file_set: FileSet,
    run: Runner,
) -> tuple[ViewFiles, ...]:
    targets = [_target(opened, view) for view in views]
    known = [t for t in targets if not isinstance(t, str)]
    results = iter(build(_facts(opened, files, readers, specs), known, opened.storage, run))
    made = []
    for view, target in zip(views, targets, strict=True):
        built = Built(reason=target) if isinstance(target, str) else next(results)
        made.append(_committed(opened, view, built, specs, file_set))
    return tuple(made)


def _facts(
    opened: OpenSegments,
    files: FileTable,
    readers: npt.NDArray[np.int32],
    specs: Sequence[FileReader],
) -> list[FactFile]:
    columns = columns_of(opened.manifest.definition)
    ways = [reader_spec(spec, columns) for spec in specs]
    recipes = [recipe_of(way, columns) for way in ways]
    etags = [None] * len(files) if files.etags is None else files.etags.to_pylist()
    return [
        FactFile(uri, size, modified, etag, ways[way].format, columns, recipes[way])
        for uri, size, modified, etag, way in zip(
            files.paths.to_pylist(),
            files.sizes.tolist(),
            files.modified.tolist(),
            etags,
            readers.tolist(),
            strict=True,
        )
    ]


def _target(opened: OpenSegments, view: ViewDefinition) -> Target | str:
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
    return Target(layout, tuple(known[name] for name in layout.columns), place)


def _committed(
    opened: OpenSegments,
    view: ViewDefinition,
    built: Built,
    specs: Sequence[FileReader],
    file_set: FileSet,
) -> ViewFiles:
    files = opened.log.put_files(_table(built.files))
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
    files = opened.log.read_files(held.files).files
    etags = [None] * len(files) if files.etags is None else files.etags.to_pylist()
    found = tuple(
        ViewFile(uri, size, modified, etag)
        for uri, size, modified, etag in zip(
            files.paths.to_pylist(),
            files.sizes.tolist(),
            files.modified.tolist(),
            etags,
            strict=True,
        )
    )
    return Built(found)


def _with_files(held: Manifest, built: Mapping[str, Sequence[ViewFiles]]) -> Manifest:
    """The version with new files of views. The stamp decides whether they still fit a segment."""
    changed = []
    for id, files in built.items():
        segment = held.segment(id)
        if segment is None or not files:
            continue
        replaced = {f.view_id for f in files}
        kept = tuple(v for v in segment.views if v.view_id not in replaced)
        changed.append(replace(segment, views=(*kept, *files)))
    return held.with_segments(*changed) if changed else held


def _states(manifest: Manifest, view: ViewDefinition) -> dict[str, str]:
    """The state of each segment, as lists of segments show it; of a disabled view ``disabled``."""
    if not view.enabled:
        return {s.id: "disabled" for s in manifest.readable}
    return {s.id: view_states(manifest, s)[view.name] for s in manifest.readable}


@contextmanager
def _runner(opened: OpenSegments, local: bool, spark: SparkSession | None) -> Iterator[Runner]:
    if spark is None and local:
        yield in_threads(opened.storage)
        return
    from bridge.jobs.spark_log_filter import filter_spark_log
    from bridge.spark.build_view import on_spark
    from bridge.spark.session import open_session

    options = storage_options(opened.config)
    if spark is not None:
        yield on_spark(spark, options)
        return
    with filter_spark_log():
        session = open_session(name="skipbridge views")
    try:
        yield on_spark(session, options)
    finally:
        session.stop()


def _view(definition: Definition, name: str, table: str) -> ViewDefinition:
    found = definition.view(name.strip().lower())
    if found is None:
        known = ", ".join(v.name for v in definition.views) or "none"
        raise InvalidRequest(f"{table} has no view {name!r}", f"its views: {known}")
    return found


def _taken(name: str, table: str) -> InvalidRequest:
    return InvalidRequest(f"{table} has a view {name} already", "drop it, or use another name")
