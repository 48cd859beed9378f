"""A snapshot's row filter on its way to an engine."""

from __future__ import annotations

from bridge.errors import UnsupportedTable
from bridge.expression.nodes import AlwaysTrue, Expression


def encode_row_filter(filter: Expression) -> str:
    """The filter as the wire carries it; empty: there is none.

    Errors:
        UnsupportedTable: engines cannot be told such a filter, and must not read without it.
    """
    if isinstance(filter, AlwaysTrue):
        return ""
    raise UnsupportedTable(
        f"the table's version has a row filter that engines are not told yet: {filter}",
        "read the table with the Python API",
    )
