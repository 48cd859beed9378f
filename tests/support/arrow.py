"""Rows of the random tables as Arrow, for files."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from bridge.kernel.types import Field, Kind, Type
from tests.support.strategies import Table

_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMP_TZ: pa.timestamp("us", "UTC"),
    Kind.BINARY: pa.binary(),
}


def arrow_type(kind: Type) -> pa.DataType:
    if kind.kind is Kind.DECIMAL:
        return pa.decimal128(kind.precision, kind.scale)
    if kind.kind is Kind.STRUCT:
        return pa.struct([(f.name, arrow_type(f.type)) for f in kind.fields])
    return pa.string() if kind.is_text else _ARROW[kind.kind]


def arrow_array(values: list[Any], kind: Type) -> pa.Array:
    target = arrow_type(kind)
    if kind.kind is Kind.DECIMAL:
        exact = [None if v is None else _scaled(v, kind.scale) for v in values]
        return pa.array(exact, target)
    if kind.kind is Kind.DATE:
        return pa.array(values, pa.int32()).cast(target)
    if kind.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_TZ):
        return pa.array(values, pa.int64()).cast(target)
    if kind.is_text:
        return pa.array([None if v is None else v.decode("utf-8", "strict") for v in values])
    return pa.array(values, target)


def _scaled(unscaled: int, scale: int) -> Decimal:
    digits = tuple(int(d) for d in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))  # scaleb would round to 28 digits


def arrow_table(data: Table, rows: list[Any], rng: random.Random | None = None) -> pa.Table:
    """A file of these rows.

    Args:
        rng: for a file that is not as the table says: columns in another order or another case,
            columns missing that are all NULL here, others that the table does not have.
    """
    columns = {c.name: arrow_column(c, rows) for c in data.columns}
    if rng is None:
        return pa.table(columns)
    for column in data.columns:
        paths = [path for path in data.paths if path[0] == column.name]
        if rng.random() < 0.6 and all(row[path] is None for row in rows for path in paths):
            del columns[column.name]
    if rng.random() < 0.3 or not columns:
        model = rng.choice(data.columns)
        path = next(path for path in data.paths if path[0] == model.name)
        foreign = [{path: rng.choice(data.pools[path])} for _ in rows]
        columns["foreign"] = arrow_column(model, foreign)
    named = [(_recased(rng, n), _renamed(rng, values)) for n, values in columns.items()]
    rng.shuffle(named)
    return pa.table([values for _, values in named], names=[name for name, _ in named])


def _recased(rng: random.Random, name: str) -> str:
    return name.upper() if rng.random() < 0.2 else name


def _renamed(rng: random.Random, values: pa.Array) -> pa.Array:
    if not pa.types.is_struct(values.type):
        return values
    return pa.StructArray.from_arrays([values.field(0)], [_recased(rng, values.type.field(0).name)])


def arrow_column(column: Field, rows: list[Any]) -> pa.Array:
    if column.type.kind is not Kind.STRUCT:
        return arrow_array([row[(column.name,)] for row in rows], column.type).cast(
            arrow_type(column.type)
        )
    (leaf,) = column.type.fields
    values = arrow_array([row[(column.name, leaf.name)] for row in rows], leaf.type)
    return pa.StructArray.from_arrays([values.cast(arrow_type(leaf.type))], [leaf.name])
