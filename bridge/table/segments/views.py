"""Which view's files a scan reads in place of a segment's facts.

The law: a view's files stand for the facts only if every column that the scan reads or compares is
in the view, and they were built from exactly these facts, read in exactly this way, for columns of
exactly these types. All that is in a stamp. It is computed anew from the version that is read, so
nothing has to be marked as stale when facts, columns or properties change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from bridge.storage.uri import join
from bridge.table.model import CatalogTable, TableName
from bridge.table.reader_spec import ReaderSpec
from bridge.table.segments.log import VIEWS
from bridge.table.segments.manifest import (
    FileReader,
    FileSet,
    Segment,
    TableDefinition,
    ViewFiles,
    ViewRecord,
)
from bridge.table.snapshot import Columns, ViewUse

_BUILDER = 1
"""Raised when an older builder's files must not be used any more."""
INDEX_ROOT = "skipbridge.index_root"
PROPERTY = "skipbridge.view"
"""Names the view in the `ReaderSpec` of its files."""
HELD = "skipbridge.view.columns"
"""Names the columns of the view there, separated by commas."""


def built_for(
    definition: TableDefinition,
    view: ViewRecord,
    readers: Sequence[FileReader],
    files: FileSet,
) -> str:
    """The stamp of a view's files; empty if the table lacks a column of the view.

    Args:
        readers, files: of the segment, as it is or will be committed.
    """
    columns = [definition.column(name) for name in view.columns]
    held = [(c.id, c.name, str(c.type)) for c in columns if c is not None]
    if len(held) < len(columns):
        return ""
    what = [
        _BUILDER,
        view.id,
        held,
        definition.format,
        definition.properties,
        [(r.format, r.properties, r.fields) for r in readers],
        files.blob.sha256,
        files.count,
    ]
    text = json.dumps(what, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def up_to_date_files(
    definition: TableDefinition, view: ViewRecord, segment: Segment
) -> ViewFiles | None:
    """The view's files that hold exactly the rows of a segment; None if there are none."""
    for held in segment.views:
        if held.view == view.name and held.view_id == view.id and not held.reason:
            stamp = built_for(definition, view, segment.readers, segment.files)
            return held if stamp and held.built_for == stamp else None
    return None


def usable(definition: TableDefinition) -> list[ViewRecord]:
    """The views that planners may use."""
    return [v for v in definition.views if v.enabled and not v.hidden]


def choose(definition: TableDefinition, segment: Segment, columns: Columns) -> ViewFiles | None:
    """The files to read in place of a segment's facts: the fewest bytes; None: read the facts."""
    if columns is None:
        return None
    columns = _of_files(definition, columns)
    found = [
        held
        for view in usable(definition)
        if columns <= set(view.columns)
        and (held := up_to_date_files(definition, view, segment)) is not None
    ]
    return min(found, key=lambda held: (held.files.bytes, held.view), default=None)


def _of_files(definition: TableDefinition, columns: frozenset[str]) -> frozenset[str]:
    """Without partition columns: each file of a view is of one partition, as those of facts are."""
    return columns - {column.name for column in definition.partition_columns}


def view_table(table: CatalogTable, view: ViewRecord) -> CatalogTable:
    """The directory of a view's files as a table of its own, which has an index of its own."""
    root = table.properties.get(INDEX_ROOT)
    return CatalogTable(
        TableName(table.name.schema, f"{table.name.table}${view.name}"),
        tuple(c for name in view.columns for c in table.columns if c.name == name),
        (),
        join(table.location, f"{VIEWS}/{view.id}"),
        properties={} if root is None else {INDEX_ROOT: f"{root}/views/{view.id}"},
    )


def reader_of(view: ViewRecord) -> ReaderSpec:
    """How the files of a view are read: as Parquet with columns of the table."""
    return ReaderSpec("parquet", ((PROPERTY, view.name), (HELD, ",".join(view.columns))))


def uses(
    definition: TableDefinition, segments: Sequence[Segment], columns: Columns
) -> list[ViewUse]:
    """What a scan of these columns makes of each view. With unknown columns it uses none."""
    found: list[ViewUse] = []
    if columns is not None:
        columns = _of_files(definition, columns)
    for view in usable(definition):
        if columns is None or not columns <= set(view.columns):
            lacking = tuple(sorted((columns or frozenset()) - set(view.columns)))
            found.append(ViewUse(view.name, lacking=lacking) if lacking else ViewUse(view.name))
            continue
        chosen = [(s, choose(definition, s, columns)) for s in segments]
        mine = [(s, held) for s, held in chosen if held is not None and held.view == view.name]
        absent = sum(up_to_date_files(definition, view, s) is None for s in segments)
        found.append(
            ViewUse(
                view.name,
                len(mine),
                sum(s.files.count for s, _ in mine),
                sum(held.files.count for _, held in mine),
                sum(held.files.bytes for _, held in mine),
                absent,
            )
        )
    return found
