"""Commands on the views of tables of segments: create, rebuild, drop, enable, list."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidRequest, SegmentConflict, TableNotFound
from bridge.runtime.compose import hive_catalog_of
from bridge.segments.commands.opened import open_segments
from bridge.segments.commands.view_files import Progress, build_segments
from bridge.segments.views.definition import define_view
from bridge.table.model import TableName
from bridge.table.segments.format import NAME
from bridge.table.segments.manifest import (
    SegmentManifest,
    TableDefinition,
    ViewFiles,
    ViewRecord,
    sorted_properties,
)
from bridge.table.segments.properties import columns_of
from bridge.table.segments.snapshot import view_states
from bridge.table.segments.views import up_to_date_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        sort_by, properties: see `bridge.segments.views.definition.define_view`.

    Errors:
        InvalidRequest: there is a view of this name, or the definition is not valid.
        ColumnNotFound, UnsupportedType, OperationBlocked, SegmentConflict, StorageFailure.
    """
    with open_segments(config, table) as opened:
        known = columns_of(opened.manifest.definition)
        keys = {c.name for c in opened.manifest.definition.partition_columns}
        chosen = [c.name for c in known] if list(columns) == ["*"] else list(columns)
        # Each file of a view is of one partition, so that every view holds these.
        chosen, sort_by = (
            [c for c in names if c.strip().lower() not in keys] for names in (chosen, sort_by)
        )
        defined = define_view(name, known, chosen, sort_by, properties)
        layout = defined.view
        if opened.manifest.definition.view(layout.name) is not None:
            if if_not_exists:
                return {"view": layout.name, "created": False}
            raise _taken(layout.name, table)
        kept = {k.strip().upper(): v for k, v in (properties or {}).items()}
        kept.pop("SORT_COLUMNS", None)
        made = ViewRecord(
            layout.name,
            uuid.uuid4().hex,
            layout.columns,
            layout.sort_columns,
            sorted_properties(kept),
            deferred=deferred,
        )
        built = {}
        if not deferred:
            wanted = [(segment, [made]) for segment in opened.manifest.readable]
            built = build_segments(opened, wanted, local, spark, progress)

        def change(held: SegmentManifest) -> SegmentManifest:
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
        lacking = [
            (s, [v for v in views if up_to_date_files(definition, v, s) is None])
            for s in opened.manifest.readable
        ]
        wanted = [(segment, some) for segment, some in lacking if some]
        built = build_segments(opened, wanted, local, spark, progress)
        if not built:
            return {"views": {v.name: _states(opened.manifest, v) for v in views}}
        known = {v.id for v in views}

        def change(held: SegmentManifest) -> SegmentManifest:
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
    held: SegmentManifest, view: ViewRecord, built: Mapping[str, Sequence[ViewFiles]]
) -> None:
    """Errors: SegmentConflict: another command has built the view meanwhile."""
    for id, files in built.items():
        segment = held.segment(id)
        if segment is None or view.id not in {f.view_id for f in files}:
            continue
        if up_to_date_files(held.definition, view, segment) is not None:
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

        def change(held: SegmentManifest) -> SegmentManifest:
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

        def change(held: SegmentManifest) -> SegmentManifest:
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


def _with_files(held: SegmentManifest, built: Mapping[str, Sequence[ViewFiles]]) -> SegmentManifest:
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


def _states(manifest: SegmentManifest, view: ViewRecord) -> dict[str, str]:
    """The state of each segment, as lists of segments show it; of a disabled view ``disabled``."""
    if not view.enabled:
        return {s.id: "disabled" for s in manifest.readable}
    return {s.id: view_states(manifest, s)[view.name] for s in manifest.readable}


def _view(definition: TableDefinition, name: str, table: str) -> ViewRecord:
    found = definition.view(name.strip().lower())
    if found is None:
        known = ", ".join(v.name for v in definition.views) or "none"
        raise InvalidRequest(f"{table} has no view {name!r}", f"its views: {known}")
    return found


def _taken(name: str, table: str) -> InvalidRequest:
    return InvalidRequest(f"{table} has a view {name} already", "drop it, or use another name")
