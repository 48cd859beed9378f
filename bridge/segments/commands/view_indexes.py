"""Indexes over the files of views: each view has an index of its own, beside its files.

Min/max is always built, since a view's order makes it effective; other kinds where they are asked
for. The index of a view is never needed: without it all of the view's files are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bridge.index.building.alter_index import change_settings
from bridge.index.building.build import add_files, build_index
from bridge.index.building.listed import Listed
from bridge.index.kinds.definition import MINMAX, IndexSettings
from bridge.indexing.table import collector_of
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    ColumnNotFound,
    GenerationNotFound,
    IndexCorrupt,
    InvalidConfiguration,
    InvalidRequest,
)
from bridge.runtime.compose import index_store
from bridge.segments.commands.indexes import KINDS, requested_indexes, signatures
from bridge.segments.commands.opened import OpenSegments, open_segments
from bridge.storage.port import FileTable, concatenate
from bridge.table.segments.manifest import (
    IndexDefinition,
    SegmentManifest,
    TableDefinition,
    ViewFiles,
    ViewRecord,
    sorted_properties,
)
from bridge.table.segments.views import up_to_date_files, view_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def index_view_files(
    opened: OpenSegments,
    views: Iterable[ViewRecord],
    made: Iterable[Sequence[ViewFiles]],
    *,
    local: bool = False,
    spark: SparkSession | None = None,
) -> None:
    """Indexes files that were just written. Nobody asks for them before a version names them."""
    every = [one for files in made for one in files]
    for view in views:
        parts = [opened.log.read_files(one.files).files for one in every if one.view_id == view.id]
        files = concatenate(parts)
        if len(files):
            _index(opened, view, files, local=local, spark=spark)


def create_view_index(
    config: Config,
    table: str,
    *,
    view: str,
    name: str,
    kind: str,
    columns: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    local: bool = False,
    spark: SparkSession | None = None,
) -> dict[str, Any]:
    """Defines an index of a view, and builds it over the view's files.

    Errors:
        InvalidRequest: there is no such view, or it has an index of this name.
        ColumnNotFound: the view does not hold the column.
    """
    lower = name.strip().lower()
    with open_segments(config, table) as opened:
        definition = opened.manifest.definition
        found = _named(definition.view(view.strip().lower()), view, table)
        for column in columns:
            if column.strip().lower() not in found.columns:
                raise ColumnNotFound(
                    f"view {found.name} does not hold column {column}",
                    f"it holds {', '.join(found.columns)}",
                )
        if any(i.name == lower for i in found.indexes):
            raise InvalidRequest(f"view {found.name} has an index {lower} already", "drop it")
        made = IndexDefinition(
            lower,
            KINDS.get(kind.lower(), kind.lower()),
            tuple(c.strip().lower() for c in columns),
            sorted_properties(dict(options or {})),
        )
        wanted = replace(found, indexes=(*found.indexes, made))
        files = _current_files(opened, found)
        if len(files):
            _index(opened, wanted, files, local=local, spark=spark, anew=True)

        def change(before: SegmentManifest) -> SegmentManifest:
            now = _named(before.definition.view(found.name), view, table)
            return _with_indexes(before, now.name, lambda indexes: [*indexes, made])

        version = opened.log.commit(f"CREATE INDEX {lower} ON {found.name}", change).version
    return {"index": lower, "view": found.name, "created": True, "version": version}


def drop_view_index(config: Config, table: str, *, view: str, name: str) -> dict[str, Any]:
    """Drops one index of a view; the view and its other indexes stay.

    Min/max of the view's files stays, too: it is always built.

    Errors:
        InvalidRequest: there is no such view or index.
    """
    with open_segments(config, table) as opened:
        dropped = _index_named(opened.manifest.definition, table, view, name)

        def change(before: SegmentManifest) -> SegmentManifest:
            _index_named(before.definition, table, view, name)
            return _with_indexes(
                before, view, lambda held: [i for i in held if i.name != dropped.name]
            )

        committed = opened.log.commit(f"DROP INDEX {dropped.name} ON {view}", change)
        left = _named(committed.definition.view(view.lower()), view, table)
        gone = signatures(dropped).difference(*map(signatures, left.indexes))
        _settle(opened, left, lambda held: _without(held, gone))
    return {"index": dropped.name, "view": left.name, "dropped": True, "version": committed.version}


def rebuild_view_index(
    config: Config,
    table: str,
    *,
    view: str,
    name: str,
    local: bool = False,
    spark: SparkSession | None = None,
) -> dict[str, Any]:
    """Builds an index of a view anew, over all files of the view.

    Errors:
        InvalidRequest: there is no such view or index.
    """
    with open_segments(config, table) as opened:
        definition = opened.manifest.definition
        found = _index_named(definition, table, view, name)
        held = _named(definition.view(view.lower()), view, table)
        files = _current_files(opened, held)
        if len(files):
            _index(opened, held, files, local=local, spark=spark, anew=True)
            for hidden in [i for i in held.indexes if not i.visible]:
                _show(opened, held, hidden, False)
    return {"index": found.name, "view": held.name, "files": len(files)}


def show_view_index(
    config: Config, table: str, *, view: str, name: str, visible: bool
) -> dict[str, Any]:
    """Makes an index of a view visible or invisible to planners.

    Errors:
        InvalidRequest: there is no such view or index.
    """
    with open_segments(config, table) as opened:
        changed = _index_named(opened.manifest.definition, table, view, name)

        def change(before: SegmentManifest) -> SegmentManifest:
            now = _index_named(before.definition, table, view, name)
            if now.visible == visible:
                return before
            after = replace(now, visible=visible)
            return _with_indexes(before, view, lambda h: [after if i == now else i for i in h])

        words = "SHOW" if visible else "HIDE"
        committed = opened.log.commit(f"{words} INDEX {changed.name} ON {view}", change)
        held = _named(committed.definition.view(view.lower()), view, table)
        _show(opened, held, changed, visible)
    return {
        "index": changed.name,
        "view": held.name,
        "visible": visible,
        "version": committed.version,
    }


def _show(opened: OpenSegments, view: ViewRecord, index: IndexDefinition, visible: bool) -> None:
    for name in sorted(signatures(index) or {MINMAX}):
        _settle(opened, view, lambda held, name=name: held.with_visibility(name, visible))  # type: ignore[misc]


def _settle(
    opened: OpenSegments, view: ViewRecord, change: Callable[[IndexSettings], IndexSettings]
) -> None:
    """Changes the settings of a view's index, if there is one."""
    store = index_store(opened.config, opened.storage, view_table(opened.table, view))
    with suppress(GenerationNotFound, InvalidConfiguration):
        change_settings(store, change)


def _without(held: IndexSettings, names: Iterable[str]) -> IndexSettings:
    for name in sorted(names):
        held = held.without(name)
    return held


def _index_named(definition: TableDefinition, table: str, view: str, name: str) -> IndexDefinition:
    held = _named(definition.view(view.lower()), view, table)
    found = next((i for i in held.indexes if i.name == name.lower()), None)
    if found is None:
        known = ", ".join(i.name for i in held.indexes) or "none"
        raise InvalidRequest(f"view {held.name} has no index {name!r}", f"it has {known}")
    return found


def _with_indexes(
    before: SegmentManifest,
    view: str,
    change: Callable[[Sequence[IndexDefinition]], Sequence[IndexDefinition]],
) -> SegmentManifest:
    views = tuple(
        replace(v, indexes=tuple(change(v.indexes))) if v.name == view.lower() else v
        for v in before.definition.views
    )
    return replace(before, definition=replace(before.definition, views=views))


def _current_files(opened: OpenSegments, view: ViewRecord) -> FileTable:
    """The files of a view that queries read now."""
    definition = opened.manifest.definition
    held = [up_to_date_files(definition, view, s) for s in opened.manifest.readable]
    return concatenate([opened.log.read_files(one.files).files for one in held if one is not None])


def _index(
    opened: OpenSegments,
    view: ViewRecord,
    files: FileTable,
    *,
    local: bool,
    spark: SparkSession | None,
    anew: bool = False,
) -> None:
    table = view_table(opened.table, view)
    store = index_store(opened.config, opened.storage, table)
    listed = Listed(files, pa.array([""] * len(files), pa.large_string()))
    asked = requested_indexes(view.indexes).check(table)
    with collector_of(opened.config, opened.storage, local, spark) as collector:
        try:
            if not anew and store.generations():
                add_files(table, listed, store, collector=collector)
                return
        except IndexCorrupt:
            listed = _all(opened, view, files)
        build_index(
            table, lambda: listed, store, collector=collector, full=anew, settings=asked.change
        )


def _all(opened: OpenSegments, view: ViewRecord, files: FileTable) -> Listed:
    """The new files and those of all segments: a damaged index is built anew."""
    whole = concatenate([files, _current_files(opened, view)])
    return Listed(whole, pa.array([""] * len(whole), pa.large_string()))


def _named(found: ViewRecord | None, view: str, table: str) -> ViewRecord:
    if found is None:
        raise InvalidRequest(f"{table} has no view {view!r}", "see the views of the table")
    return found
