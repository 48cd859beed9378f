"""Describes a table to an engine: columns in the engine's words, and statistics for its
optimiser.
"""

from __future__ import annotations

import numpy as np

from bridge.engines.trino.types import to_trino
from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics
from bridge.planner.index_view import IndexView
from bridge.service._gen import ttypes
from bridge.table.model import Column, Table
from bridge.types import TRINO, Field, Kind

_MAX_COLUMNS_WITH_STATISTICS = 500


def describe_table(table: Table, view: IndexView, engine: str) -> ttypes.Table:
    """The table for one engine; columns of types that the engine lacks are left out for Trino."""
    serving = view.serving
    rows: float | None = None
    bounds = None
    if serving is not None and bool((serving.rows >= 0).all()):
        # As of the index's generation: an estimate for the optimiser, never an answer.
        rows = float(serving.rows.sum())
        if len(table.columns) <= _MAX_COLUMNS_WITH_STATISTICS:
            bounds = serving.statistics(tuple(Field(c.name, c.type) for c in table.columns), TRINO)
    columns: list[ttypes.Column] = []
    for column, is_key in [(c, False) for c in table.columns] + [
        (c, True) for c in table.partition_keys
    ]:
        engine_type = to_trino(column.type) if engine == "trino" else str(column.type)
        if engine_type is None:
            continue
        described = ttypes.Column(
            name=column.name,
            hive_type=str(column.type),
            engine_type=engine_type,
            partition_key=is_key,
            comment=column.comment,
        )
        if bounds is not None and not is_key and not column.type.is_nested:
            known = bounds.column(BoundReference((column.name,), column.type))
            if known is not None:
                _statistics(described, column, known)
        columns.append(described)
    return ttypes.Table(
        schema_name=table.name.schema,
        table_name=table.name.table,
        columns=columns,
        row_count=rows,
        location=table.location,
        format=table.format,
    )


def _statistics(described: ttypes.Column, column: Column, known: ColumnStatistics) -> None:
    """Fills in what holds for all files; a file of which nothing is known leaves a field out."""
    rows = known.row_count
    total = float(rows.sum())
    if total > 0 and bool((known.null_count >= 0).all()):
        described.nulls_fraction = float(known.null_count.sum()) / total
    numeric = (
        column.type.is_integer
        or column.type.is_floating
        or column.type.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL)
    )
    if not numeric or not isinstance(known.lower, np.ndarray):
        return
    upper = known.upper
    assert isinstance(upper, np.ndarray)
    present = np.ones(len(rows), np.bool_) if known.all_null is None else ~known.all_null
    for mask in (known.lower_known, known.upper_known):
        if mask is not None and not mask[present].all():
            return
    if not present.any():
        return
    scale = 10.0**column.type.scale if column.type.kind is Kind.DECIMAL else 1.0
    described.low = float(known.lower[present].min()) / scale
    described.high = float(upper[present].max()) / scale
