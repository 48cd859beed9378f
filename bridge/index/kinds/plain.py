"""PLAIN bytes of values in a file's physical type, which Parquet's bloom filters hash (rule 17).

An int32 probed as int64, or an 11-byte decimal probed as 16 bytes, misses every value. A value has
no hash here unless every writer surely encodes it in the same way.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.formats.physical_column import PhysicalType
from bridge.index.generations.convert import convert, may_misread_scale
from bridge.index.kinds.xxh64 import Hashes, hash_bytes, hash_fixed, hash_numbers
from bridge.kernel.types import Kind, Semantics, Type, Value

_INTEGER = {"INT32": np.int32, "INT64": np.int64}
BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_DAYS_1900 = -25_567
_MICROS_1900 = _DAYS_1900 * 86_400 * 1_000_000


def hashable(stored: PhysicalType) -> bool:
    """Whether values of a stored type have only one known encoding."""
    if stored.logical == "timestamp":
        return stored.physical == "INT64" and stored.unit in ("ms", "us")
    if stored.logical == "decimal":
        return stored.physical != "BYTE_ARRAY" and stored.width <= 16
    return stored.holds in ("int", "float", "bytes") and stored.logical != "bool"


def hashes(stored: PhysicalType, values: pa.Array) -> Hashes | None:
    """Hashes of non-null values as Arrow reads them from a file; NaN has none."""
    if stored.holds == "bytes":
        return hash_bytes(values.cast(pa.large_binary()))
    if stored.is_floating:
        numbers = values.to_numpy(zero_copy_only=False)
        wanted = np.float32 if stored.logical == "float" else np.float64
        numbers = numbers[~np.isnan(numbers)].astype(wanted)
        return hash_numbers(numbers)
    if stored.logical == "decimal":
        return _decimals(stored, values)
    kind = values.type
    if pa.types.is_timestamp(kind):
        if kind.unit != stored.unit:
            return None
        values = values.cast(pa.int64())
    elif pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif not pa.types.is_integer(kind):
        return None
    numbers = values.to_numpy(zero_copy_only=False)
    return hash_numbers(numbers.astype(np.int64).astype(_INTEGER[stored.physical]))


def _decimals(stored: PhysicalType, values: pa.Array) -> Hashes | None:
    if not pa.types.is_decimal(values.type) or values.type.scale != stored.scale:
        return None
    if not pa.types.is_decimal128(values.type):
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    raw = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    little = raw[16 * values.offset :][: 16 * len(values)].reshape(-1, 16)
    if stored.physical in _INTEGER:
        width = np.dtype(_INTEGER[stored.physical]).itemsize
        return hash_fixed(np.ascontiguousarray(little[:, :width]))
    return hash_fixed(np.ascontiguousarray(little[:, : stored.width][:, ::-1]))


def spellings(
    stored: PhysicalType, target: Type, semantics: Semantics, value: Value
) -> tuple[bytes, ...] | None:
    """The PLAIN bytes that a file may hold where an engine reads ``value`` of the table's type.

    None if a row that equals the value may be encoded differently.
    """
    if not hashable(stored) or not maps_one_to_one(stored, target, semantics):
        return None
    if isinstance(value, bytes):
        return (value,)
    if isinstance(value, float):
        return _floats(stored, value)
    number = int(value)
    match stored.logical:
        case "int" | "uint":
            bits = stored.width - (stored.logical == "uint")
            least = 0 if stored.logical == "uint" else -(2 ** (stored.width - 1))
            greatest = 2**bits - 1 if stored.logical == "uint" else 2 ** (stored.width - 1) - 1
            if stored.width > BITS[target.kind] or not least <= number <= greatest:
                return None
        case "timestamp":
            if stored.unit == "ms":
                if number % 1000:
                    return None
                number //= 1000
        case "decimal":
            shift = 10 ** (target.scale - stored.scale)
            if number % shift:
                return None
            number //= shift
    return _number(stored, number)


def _number(stored: PhysicalType, number: int) -> tuple[bytes, ...] | None:
    try:
        if stored.physical in _INTEGER:
            return (struct.pack("<i" if stored.physical == "INT32" else "<q", number),)
        return (number.to_bytes(stored.width, "big", signed=True),)
    except (struct.error, OverflowError):
        return None


def _floats(stored: PhysicalType, value: float) -> tuple[bytes, ...] | None:
    if stored.logical == "float":
        with np.errstate(over="ignore"):
            if float(np.float32(value)) != value:
                return None
        layout = "<f"
    else:
        layout = "<d"
    if value == 0:  # rule 2: both zeros
        return struct.pack(layout, 0.0), struct.pack(layout, -0.0)
    return (struct.pack(layout, value),)


def maps_one_to_one(stored: PhysicalType, target: Type, semantics: Semantics) -> bool:
    """Whether engines map stored values to values of the table's type one to one."""
    if target.kind is Kind.CHAR or may_misread_scale(stored, target, semantics):
        return False
    empty: Any = np.empty(0, np.float64 if stored.is_floating else np.int64)
    if stored.holds == "bytes":
        empty = pa.array([], pa.large_binary())
    elif stored.holds == "wide":
        empty = pa.array([], pa.decimal128(38, stored.scale))
    return convert(stored, target, semantics, empty, empty) is not None


def before_1900(stored: PhysicalType, value: Value) -> bool:
    """Whether writers with the hybrid calendar may encode the value differently (rule 9)."""
    if stored.logical == "date":
        return int(value) < _DAYS_1900
    return stored.logical == "timestamp" and int(value) < _MICROS_1900


def matrix(spelled: list[bytes]) -> npt.NDArray[np.uint64]:
    """Hashes of some encoded values."""
    return hash_bytes(pa.array(spelled, pa.large_binary()))
