"""Describes tables to an engine: columns in its type names, with estimates if requested."""

from __future__ import annotations

from bridge.engines.engine import Engine
from bridge.planner.answers.table_statistics import ColumnEstimate, Estimate
from bridge.service._gen import ttypes
from bridge.table.model import CatalogTable, Column, View
from bridge.table.read_version import NEWEST, ReadVersion

_UNKNOWN = ColumnEstimate()


def describe_table(
    table: CatalogTable,
    estimate: Estimate,
    engine: Engine,
    snapshot_id: str = "",
    read: ReadVersion = NEWEST,
) -> ttypes.Table:
    """The table for one engine.

    Args:
        snapshot_id, read: the described version.
    """
    columns: list[ttypes.Column] = []
    for column, is_key in [(c, False) for c in table.columns] + [
        (c, True) for c in table.partition_keys
    ]:
        described = describe_column(column, is_key, engine)
        known = estimate.columns.get(column.name, _UNKNOWN)
        described.nulls_fraction = known.nulls_fraction
        described.distinct_count = known.distinct
        described.low = known.low
        described.high = known.high
        described.data_bytes = known.data_bytes
        described.overlapping = known.overlapping
        columns.append(described)
    return ttypes.Table(
        schema_name=table.name.schema,
        table_name=table.name.table,
        columns=columns,
        row_count=estimate.rows,
        location=table.location,
        format=table.format,
        comment=table.properties.get("comment"),
        snapshot_id=snapshot_id,
        read_version=str(read),
        table_format=table.table_format,
    )


def describe_column(column: Column, is_key: bool, engine: Engine) -> ttypes.Column:
    """The column with the engine's type name; it is empty if the engine lacks the type.

    The column is still sent, because later columns are found by position.
    """
    return ttypes.Column(
        name=column.name,
        hive_type=str(column.type),
        engine_type=engine.spell_type(column.type) or "",
        partition_key=is_key,
        comment=column.comment,
    )


def describe_view(view: View) -> ttypes.Table:
    """A view created by Trino; its definition holds its columns."""
    return ttypes.Table(
        schema_name=view.name.schema,
        table_name=view.name.table,
        columns=[],
        location="",
        format="view",
        comment=view.comment,
        view=view.definition,
        owner=view.owner,
    )
