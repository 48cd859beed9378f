"""What a client selects may make it show other rows or values: such scans are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bridge.formats.parquet.stored_file import StoredFile
from bridge.iceberg_rest.clients import Client
from bridge.iceberg_rest.expressions import Filter, terms
from bridge.iceberg_rest.far_times import require_near_times
from bridge.iceberg_rest.footers import Footers
from bridge.iceberg_rest.layout import IcebergLayout
from bridge.kernel.errors import InvalidRequest, UnsupportedTable
from bridge.kernel.types import Kind, Type
from bridge.storage.port import FileStat


@dataclass(frozen=True, slots=True)
class Selection:
    """What a client says with the first page of a plan that it will read."""

    client: Client
    filter: Filter
    select: Any

    def require(self, layout: IcebergLayout) -> None:
        """Errors: InvalidRequest, UnsupportedTable: the client would show other rows or values."""
        if self.client is Client.PYICEBERG:
            _require_keys(layout, self.filter, self.select)
        if self.client is not Client.JAVA:
            _refuse_structs_in_lists(layout, self.select)

    def require_times(
        self,
        layout: IcebergLayout,
        files: Sequence[FileStat],
        stored: Sequence[StoredFile],
        footers: Footers,
    ) -> None:
        """Errors: of `require_near_times`, save for Java, which reads all times of INT96."""
        if self.client is not Client.JAVA:
            wanted = _columns_read(self.filter, self.select)
            require_near_times(layout, wanted, files, stored, footers)


def _columns_read(filter: Filter, select: Any) -> frozenset[str] | None:
    """Top-level columns that a scan reads, in lower case; None: all of them."""
    named = terms(filter)
    if named is None or not isinstance(select, list):
        return None
    tops = {str(name).lower().partition(".")[0] for name in (*select, *named)}
    return None if "*" in tops else frozenset(tops)


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
