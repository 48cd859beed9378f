"""Runs a text of statements about tables of segments.

The law: the whole text is understood before any of it runs, and each statement is one job, whole or
not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bridge.kernel.errors import BridgeError
from bridge.segments.sql import statements as s
from bridge.segments.sql.parser import parse
from bridge.segments.statements import objects, segments, tables
from bridge.segments.statements.context import SqlContext, SqlResult

_RUN: dict[type[s.Statement], Callable[[SqlContext, Any], SqlResult]] = {
    s.AddSegment: segments.add,
    s.ChangeType: tables.change_type,
    s.CleanFiles: segments.clean,
    s.Compact: segments.compact,
    s.CreateIndex: objects.create_index,
    s.CreateTable: tables.create,
    s.CreateView: objects.create_view,
    s.DeleteSegments: segments.delete,
    s.DeleteSegmentsBefore: segments.delete_before,
    s.Describe: tables.describe,
    s.DropColumns: tables.drop_columns,
    s.DropObject: objects.drop,
    s.DropTable: tables.drop,
    s.RebuildObject: objects.rebuild,
    s.RefreshSegments: segments.refresh,
    s.RenameTable: tables.rename,
    s.SetProperties: tables.set_properties,
    s.ShowCreateTable: tables.show_create,
    s.ShowObjects: objects.show,
    s.ShowSegments: segments.show,
    s.SwitchObject: objects.switch,
    s.SwitchSegments: segments.switch,
    s.UnsetProperties: tables.unset_properties,
}


def run_sql(context: SqlContext, text: str) -> Iterator[SqlResult]:
    """Runs statements one after the other; each runs when its result is asked for.

    Errors:
        InvalidStatement, OperationBlocked, UnsupportedType: at once; nothing has run.
        BridgeError: of the job; names the statement if there are several. Earlier ones stay done.
    """
    return _run(context, parse(text))


def _run(context: SqlContext, found: tuple[s.Statement, ...]) -> Iterator[SqlResult]:
    for number, statement in enumerate(found, 1):
        try:
            yield _RUN[type(statement)](context, statement)
        except BridgeError as e:
            if len(found) > 1:
                e.message = f"statement {number} of {len(found)}: {e.message}"
            raise
