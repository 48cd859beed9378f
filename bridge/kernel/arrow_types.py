"""The Arrow form of a table's types and of canonical values; what a scan returns.

CHAR is text padded with spaces to its length, as engines show it. Both kinds of timestamp are in
microseconds, one without zone and one in UTC.
"""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa

from bridge.kernel.types import NOTHING, Kind, Type, Value

_SIMPLE: dict[Kind, pa.DataType] = {
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
    Kind.STRING: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.CHAR: pa.string(),
    Kind.BINARY: pa.binary(),
}
_DIGITS = decimal.Context(prec=76)


def arrow_type(type: Type) -> pa.DataType | None:
    """The Arrow type of a table's type; None where Arrow or Hive has none.

    >>> from bridge.kernel.types import parse_hive_type
    >>> str(arrow_type(parse_hive_type("array<struct<a:int,b:decimal(5,2)>>")))
    'list<element: struct<a: int32, b: decimal128(5, 2)>>'
    """
    if type.kind in _SIMPLE:
        return _SIMPLE[type.kind]
    if type.kind is Kind.DECIMAL:
        return pa.decimal128(type.precision, type.scale)
    if type == NOTHING:
        return pa.null()
    inner = [(f.name, arrow_type(f.type)) for f in type.fields]
    if not inner or any(t is None for _, t in inner):
        return None
    match type.kind:
        case Kind.ARRAY:
            return pa.list_(pa.field("element", inner[0][1]))
        case Kind.MAP:
            return pa.map_(inner[0][1], inner[1][1])
    return pa.struct([pa.field(name, t) for name, t in inner])


def arrow_scalar(value: Value | None, type: Type) -> Any:
    """A canonical value as an Arrow scalar of `arrow_type`.

    >>> from bridge.kernel.types import DATE, char, decimal
    >>> [arrow_scalar(v, t).as_py() for v, t in ((150, decimal(5, 2)), (0, DATE), (b"a", char(3)))]
    [Decimal('1.50'), datetime.date(1970, 1, 1), 'a  ']
    """
    target = arrow_type(type)
    if value is None:
        return pa.scalar(None, target)
    if isinstance(value, bytes):
        text = value if type.kind is Kind.BINARY else value.decode("utf-8", "replace")
        return pa.scalar(text.ljust(type.length) if type.kind is Kind.CHAR else text, target)
    if type.kind is Kind.DECIMAL:
        exact = decimal.Decimal(int(value)).scaleb(-type.scale, _DIGITS)
        return pa.scalar(exact, target)
    if type.kind is Kind.DATE:
        return pa.scalar(value, pa.int32()).cast(target)
    if type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_TZ):
        return pa.scalar(value, pa.int64()).cast(target)
    return pa.scalar(value, target)


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array that can be sorted: without chunks, dictionaries and 32-bit offsets."""
    type = column.type
    if pa.types.is_dictionary(type):
        column, type = column.cast(type.value_type), type.value_type
    if pa.types.is_string(type) or pa.types.is_string_view(type):
        column = column.cast(pa.large_string())
    elif (
        pa.types.is_binary(type)
        or pa.types.is_binary_view(type)
        or pa.types.is_fixed_size_binary(type)
    ):
        column = column.cast(pa.large_binary())
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column
