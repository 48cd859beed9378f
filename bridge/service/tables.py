"""Describes a table to an engine: columns in the engine's words, with estimates where asked for."""

from __future__ import annotations

from bridge.engines.engine import Engine
from bridge.planner.table_statistics import ColumnEstimate, Estimate
from bridge.service._gen import ttypes
from bridge.table.model import Table, View

_UNKNOWN = ColumnEstimate()


def describe_table(table: Table, estimate: Estimate, engine: Engine) -> ttypes.Table:
    """The table for one engine; columns of types that the engine lacks are left out."""
    columns: list[ttypes.Column] = []
    for column, is_key in [(c, False) for c in table.columns] + [
        (c, True) for c in table.partition_keys
    ]:
        engine_type = engine.spell_type(column.type)
        if engine_type is None:
            continue
        known = estimate.columns.get(column.name, _UNKNOWN)
        columns.append(
            ttypes.Column(
                name=column.name,
                hive_type=str(column.type),
                engine_type=engine_type,
                partition_key=is_key,
                comment=column.comment,
                nulls_fraction=known.nulls_fraction,
                distinct_count=known.distinct,
                low=known.low,
                high=known.high,
            )
        )
    return ttypes.Table(
        schema_name=table.name.schema,
        table_name=table.name.table,
        columns=columns,
        row_count=estimate.rows,
        location=table.location,
        format=table.format,
        comment=table.properties.get("comment"),
    )


def describe_view(view: View) -> ttypes.Table:
    """A view that Trino made; its columns are in its definition."""
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
