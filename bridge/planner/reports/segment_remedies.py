"""Remedies for tables of segments, whose indexes are made by statements: `index build` would not
index the segments that are added later.
"""

from __future__ import annotations

import re
from dataclasses import replace

from bridge.planner.reports.report import IndexNotUsed, Remedy
from bridge.table.snapshot import HasSegments


def by_statement(reason: IndexNotUsed, snapshot: HasSegments, table: str) -> IndexNotUsed:
    """The reason with a statement as remedy where one would help; else as it is.

    Args:
        table: as commands name it.
    """
    remedy = reason.remedy
    if reason.reason != "NO_INDEX" or remedy.action != "build":
        return reason
    named = f"`{table}`" if "/" in table else table
    held = snapshot.index_names()
    if remedy.options[:1] == ("--values",):
        column = remedy.options[1]
        name = re.sub(r"\W", "_", f"{column}_values")
        text = f'CREATE INDEX {name} ON TABLE {named} ({column}) AS "values"'
    elif remedy.options:  # statements have no such index
        return reason
    elif held:
        text = f"REFRESH INDEX {held[0]} ON {named}"
    else:
        text = f'CREATE INDEX bounds ON TABLE {named} AS "minmax"'
    return replace(reason, remedy=Remedy("sql", options=(text,)))
