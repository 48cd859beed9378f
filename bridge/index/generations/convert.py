"""Converts bounds from a file's stored type to the table's type: exactly, or not at all.

Every conversion keeps order and loses nothing, so bounds stay bounds (correctness 8-12, 15, 16).
An integer under a floating-point type is the exception: engines cast it, which rounds. Its bounds
go through the same `cast`, which keeps order too, and are never exact.
Bounds are unknown where an engine may convert values differently: to a narrower integer, to a
decimal with fewer digits, from text to a number, or of values out of the range that their own file
declares. Counts stay known where no conversion turns a value into NULL or NULL into a value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.bounds import arrow_scalar
from bridge.formats.physical_column import INT_MAX, INT_MIN, PhysicalType
from bridge.kernel.types import INTEGER_RANGE, TRINO, Kind, Semantics, Type

Mask = npt.NDArray[np.bool_]
_WIDE = pa.decimal128(38, 0)
_NUMBERS = (Kind.FLOAT, Kind.DOUBLE)


@dataclass(frozen=True, slots=True)
class Converted:
    """Bounds in canonical values of the table's type.

    Attributes:
        doubtful: slots whose bounds are unknown.
        kept: the bounds equal the stored ones, so forms derived from the stored ones stay valid.
        rounded: the conversion may have rounded values, so no bound is exact.
        to_null: slots of which some engine may read a value as NULL.
    """

    lower: Any
    upper: Any
    doubtful: Mask | None = None
    kept: bool = False
    rounded: bool = False
    to_null: Mask | None = None


def bound_representation(target: Type) -> str:
    """How bounds of a table's type are represented; see `PhysicalType.holds`."""
    if target.kind is Kind.DECIMAL:
        return "int" if target.precision <= 18 else "wide"
    if target.kind in _NUMBERS:
        return "float"
    if target.is_bytes:
        return "bytes"
    if target.kind in (Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ):
        return "int"
    return "int" if target.is_integer else "none"


def keeps_nulls(stored: PhysicalType, target: Type) -> bool:
    """Whether reading the stored type as ``target`` keeps which rows are NULL.

    Hive reads text that is not a number, and decimals that do not fit, as NULL. `Converted.to_null`
    has the files whose values do not fit where the types do.
    """
    if target.is_text and stored.logical in ("string", "binary"):
        return True
    if target.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_TZ) and stored.logical == "timestamp":
        return True
    empty: Any = np.empty(0, np.float64 if stored.holds == "float" else np.int64)
    if stored.holds in ("bytes", "wide"):
        empty = pa.array([], pa.large_binary() if stored.holds == "bytes" else _WIDE)
    return stored.holds != "none" and convert(stored, target, TRINO, empty, empty) is not None


def may_misread_scale(stored: PhysicalType, target: Type, semantics: Semantics) -> bool:
    """Whether an engine may read a decimal with the table's scale in place of the file's."""
    return (
        not semantics.rescales_decimals
        and stored.logical == "decimal"
        and stored.physical in ("INT32", "INT64")
        and stored.scale != target.scale
    )


def convert(
    stored: PhysicalType, target: Type, semantics: Semantics, lower: Any, upper: Any
) -> Converted | None:
    """Converts bounds of many files; None if the types are not compatible."""
    kind = target.kind
    same = {
        Kind.BOOLEAN: "bool",
        Kind.DATE: "date",
        Kind.FLOAT: "float",
        Kind.STRING: "bytes",
        Kind.BINARY: "bytes",
    }.get(kind)
    if same == "bytes":
        return Converted(lower, upper) if stored.holds == "bytes" else None
    if same is not None:
        return Converted(lower, upper) if stored.logical == same else None
    if kind is Kind.DOUBLE:
        return Converted(lower, upper) if stored.is_floating else None
    if target.is_integer:
        return _integer(stored, target, lower, upper)
    if kind is Kind.DECIMAL:
        found = _decimal(stored, target, lower, upper)
        if found is None or not may_misread_scale(stored, target, semantics):
            return found
        return replace(found, doubtful=np.ones(len(lower), np.bool_))
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_TZ):
        if stored.logical != "timestamp" or stored.holds != "int":
            return None
        wanted = kind is Kind.TIMESTAMP_TZ
        if stored.utc != wanted and not semantics.raw_timestamps:
            return None
        return Converted(lower, upper)
    if kind is Kind.VARCHAR:
        return _varchar(stored, target, lower, upper)
    return None  # CHAR: padded, rule 11


def _integer(stored: PhysicalType, target: Type, lower: Any, upper: Any) -> Converted | None:
    if stored.logical not in ("int", "uint"):
        return None
    low, high = INTEGER_RANGE[target.kind]
    if stored.logical == "uint":
        high = min(high, _surely(stored))
    elif 1 << (stored.width - 1) <= high + 1:
        if stored.width >= 32:  # of its physical type
            return Converted(lower, upper)
        most = (1 << (stored.width - 1)) - 1
        return _within(-most - 1, most, lower, upper)[0]
    outside = (lower < low) | (upper > high)
    return Converted(lower, upper, outside, to_null=outside)


def _within(low: int, high: int, lower: Any, upper: Any) -> tuple[Converted, Mask]:
    """Bounds as they are, doubtful where the file has values out of the range that it declares.

    Hive reads such a value as NULL, Spark cuts its bits, and Trino shows it or fails. Also
    returned: slots with a bound that is out of the range or unknown.
    """
    if isinstance(lower, np.ndarray):
        outside = (lower < low) | (upper > high)
        unknown = (lower == INT_MIN) & (upper == INT_MAX)
    else:
        inside = pc.and_(
            pc.greater_equal(lower, arrow_scalar(low, lower.type)),
            pc.less_equal(upper, arrow_scalar(high, upper.type)),
        )
        outside = ~pc.fill_null(inside, False).to_numpy(zero_copy_only=False)
        unknown = pc.and_(lower.is_null(), upper.is_null()).to_numpy(zero_copy_only=False)
    return Converted(lower, upper, outside & ~unknown, to_null=outside), outside


def _surely(stored: PhysicalType) -> int:
    """The largest unsigned integer that all engines read alike.

    Some read it as a signed integer of the same width, so a bound is certain only while the top
    bit is clear. INT_MAX stands for an unknown bound, which may have the top bit set; the other
    bound is then doubtful, too.
    """
    return min((1 << (stored.width - 1)) - 1, INT_MAX - 1)


def cast(stored: PhysicalType, target: Type, lower: Any, upper: Any) -> Converted | None:
    """Bounds of integers under a floating-point type, rounded to the nearest number as Java does.

    None if the types are others. Only bounds may be cast: two values may become one.
    """
    if target.kind not in _NUMBERS or stored.logical not in ("int", "uint"):
        return None
    narrow = np.float32 if target.kind is Kind.FLOAT else np.float64
    doubtful = upper > _surely(stored) if stored.logical == "uint" else None
    low, high = (values.astype(narrow).astype(np.float64) for values in (lower, upper))
    return Converted(low, high, doubtful, rounded=True)


def _decimal(stored: PhysicalType, target: Type, lower: Any, upper: Any) -> Converted | None:
    if stored.logical != "decimal" or target.scale < stored.scale:
        return None
    if target.precision - target.scale < stored.precision - stored.scale:
        return None
    most = 10**stored.precision - 1
    found, outside = _within(-most, most, lower, upper)
    shift = target.scale - stored.scale
    if bound_representation(target) == "int":
        if shift == 0:
            return found
        factor = 10**shift
        lower, upper = (np.where(outside, 0, values) * factor for values in (lower, upper))
        return replace(found, lower=lower, upper=upper)
    if stored.holds == "int":
        lower, upper = _widen(lower, stored.scale), _widen(upper, stored.scale)
    if shift:
        unfit, wanted = pa.array(outside), pa.decimal128(38, target.scale)
        lower, upper = (
            pc.if_else(unfit, pa.scalar(None, values.type), values).cast(wanted)
            for values in (lower, upper)
        )
    return replace(found, lower=lower, upper=upper)


def _widen(values: npt.NDArray[np.int64], scale: int) -> pa.Array:
    pairs = np.stack([values, values >> 63], axis=1)
    raw = pa.py_buffer(np.ascontiguousarray(pairs).tobytes())
    wide = pa.Array.from_buffers(pa.decimal128(38, scale), len(values), [None, raw])
    # Unknown bounds are infinite integers of 19 digits: keep them from being scaled out of range.
    edge = pa.array((values == INT_MIN) | (values == INT_MAX))
    return pc.if_else(edge, pa.scalar(None, wide.type), wide)


def _varchar(stored: PhysicalType, target: Type, lower: Any, upper: Any) -> Converted | None:
    """Engines truncate longer values, so bounds that would be truncated are not used."""
    if stored.holds != "bytes":
        return None
    # A string of n bytes has at most n characters. Values between the bounds may be longer than
    # both, but truncation keeps order, so only bounds that exceed the limit are doubtful. A
    # truncated lower bound would be valid, but not exact.
    long = [
        pc.fill_null(pc.greater(pc.binary_length(values), target.length), False).to_numpy(
            zero_copy_only=False
        )
        for values in (lower, upper)
    ]
    return Converted(lower, upper, long[0] | long[1])
