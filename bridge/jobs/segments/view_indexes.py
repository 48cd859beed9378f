"""Indexes over the files of views: each view has an index of its own, beside its files.

Min/max is always built, since a view's order makes it effective; other kinds where they are asked
for. The index of a view is never needed: without it all of the view's files are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bridge.config import Config
from bridge.errors import ColumnNotFound, IndexCorrupt, InvalidRequest
from bridge.index.build import add_files, build_index
from bridge.index.listed import Listed
from bridge.jobs.compose import index_store
from bridge.jobs.index_table import collector_of
from bridge.jobs.segments.opened import OpenSegments, open_segments
from bridge.storage.port import FileTable, concatenate
from bridge.table.segments.manifest import (
    IndexDefinition,
    Manifest,
    ViewDefinition,
    ViewFiles,
    sorted_properties,
)
from bridge.table.segments.views import current, view_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def index_view_files(
    opened: OpenSegments,
    views: Iterable[ViewDefinition],
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
    from bridge.jobs.segments.indexes import KINDS

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
        held = [current(definition, found, s) for s in opened.manifest.readable]
        sets = [opened.log.read_files(one.files).files for one in held if one is not None]
        files = concatenate(sets)
        if len(files):
            _index(opened, wanted, files, local=local, spark=spark, anew=True)

        def change(before: Manifest) -> Manifest:
            now = _named(before.definition.view(found.name), view, table)
            views = tuple(
                replace(v, indexes=(*v.indexes, made)) if v.id == now.id else v
                for v in before.definition.views
            )
            return replace(before, definition=replace(before.definition, views=views))

        version = opened.log.commit(f"CREATE INDEX {lower} ON {found.name}", change).version
    return {"index": lower, "view": found.name, "created": True, "version": version}


def _index(
    opened: OpenSegments,
    view: ViewDefinition,
    files: FileTable,
    *,
    local: bool,
    spark: SparkSession | None,
    anew: bool = False,
) -> None:
    from bridge.jobs.segments.indexes import requested

    table = view_table(opened.table, view)
    store = index_store(opened.config, opened.storage, table)
    listed = Listed(files, pa.array([""] * len(files), pa.large_string()))
    asked = requested(view.indexes).check(table)
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


def _all(opened: OpenSegments, view: ViewDefinition, files: FileTable) -> Listed:
    """The new files and those of all segments: a damaged index is built anew."""
    definition = opened.manifest.definition
    held = [current(definition, view, s) for s in opened.manifest.readable]
    sets = [opened.log.read_files(one.files).files for one in held if one is not None]
    whole = concatenate([files, *sets])
    return Listed(whole, pa.array([""] * len(whole), pa.large_string()))


def _named(found: ViewDefinition | None, view: str, table: str) -> ViewDefinition:
    if found is None:
        raise InvalidRequest(f"{table} has no view {view!r}", "see the views of the table")
    return found
