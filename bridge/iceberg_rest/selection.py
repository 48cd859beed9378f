"""What a client selects may make it show other rows or values: such scans are refused."""

from __future__ import annotations

from typing import Any

from bridge.iceberg_rest.clients import Client
from bridge.iceberg_rest.expressions import Filter, terms
from bridge.iceberg_rest.layout import IcebergLayout
from bridge.kernel.errors import InvalidRequest, UnsupportedTable
from bridge.kernel.types import Kind, Type


def require_selection(client: Client, filter: Filter, select: Any, layout: IcebergLayout) -> None:
    """Errors: InvalidRequest, UnsupportedTable: a client would show other rows or values."""
    if client is Client.PYICEBERG:
        _require_keys(layout, filter, select)
    if client is not Client.JAVA:
        _refuse_structs_in_lists(layout, select)


def _require_keys(layout: IcebergLayout, filter: Filter, select: Any) -> None:
    """PyIceberg fills in the keys that it selects; a filter on another one would find no row.

    Errors:
        InvalidRequest.
    """
    if not isinstance(select, list):
        return
    selected = {str(name).lower() for name in select}
    if "*" in selected:
        return
    named = terms(filter)
    for key in layout.table.partition_keys:
        name = key.name.lower()
        used = named is None or any(term.lower() == name for term in named)
        if used and name not in selected:
            raise InvalidRequest(
                f"the filter may use the partition key {name}, which is not selected: PyIceberg "
                "would find no rows",
                f"add {name!r} to selected_fields",
            )


def _refuse_structs_in_lists(layout: IcebergLayout, select: Any) -> None:
    """PyIceberg shows a NULL list of structs as an empty list.

    Errors:
        UnsupportedTable: such a column is read.
    """
    names = select if isinstance(select, list) else ["*"]
    wanted = {str(name).lower().partition(".")[0] for name in names}
    for field in layout.table.schema:
        top = field.name.lower()
        if not wanted.isdisjoint((top, "*")) and _holds_structs_in_lists(field.type):
            raise UnsupportedTable(
                f"{layout.table.name}: the column {top} is {field.type}, whose NULLs PyIceberg "
                "shows as empty lists or maps",
                "select other columns (selected_fields), or read it with Spark or Trino",
            )


def _holds_structs_in_lists(type: Type) -> bool:
    if type.kind in (Kind.ARRAY, Kind.MAP) and type.fields[-1].type.kind is Kind.STRUCT:
        return True
    return any(_holds_structs_in_lists(field.type) for field in type.fields)
