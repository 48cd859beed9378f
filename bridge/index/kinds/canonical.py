"""Canonical values: a file's values in the form of its bounds.

Packed values are bytes for every type: 8 for a number, 16 for a wide decimal. They are unpacked
for all files of one stored type at once. `bridge.index.generations.convert` then converts them to
the table's type, exactly or not at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.physical_column import INT_MAX, PhysicalType

_FLOOR_1900 = {"date": -25_567, "timestamp": -25_567 * 86_400 * 1_000_000}


def canonical(stored: PhysicalType, values: pa.ChunkedArray, *, legacy: bool = False) -> Any:
    """Converts non-null values of a file to the array type of ``stored.holds``.

    Args:
        legacy: see `FileFacts.legacy`.

    Returns:
        int64, float64, decimal128 or large_binary; None if a value has no exact form.
    """
    values = values.drop_null()
    form = stored.holds
    if form == "bytes":
        return _one(values.cast(pa.large_binary()))
    if form == "float":
        return np.asarray(values.to_numpy(), np.float64) + 0.0  # -0.0 becomes 0.0 (rule 2)
    if form == "wide":
        found = _one(values)
        return found if pa.types.is_decimal128(found.type) else None
    if form != "int":
        return None
    numbers = _integers(stored, values)
    if numbers is None:
        return None
    floor = _FLOOR_1900.get(stored.logical) if legacy else None
    return None if floor is not None and len(numbers) and numbers.min() < floor else numbers


def _one(values: pa.ChunkedArray) -> pa.Array:
    found = values.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], found.type)
    return found


def _integers(stored: PhysicalType, values: pa.ChunkedArray) -> npt.NDArray[np.int64] | None:
    match stored.logical:
        case "bool" | "int":
            return np.asarray(_one(values).cast(pa.int64()).to_numpy(), np.int64)
        case "uint":
            wide = _one(values).cast(pa.uint64()).to_numpy()
            return None if len(wide) and wide.max() > INT_MAX else wide.astype(np.int64)
        case "date":
            days = _one(values).cast(pa.int32()).to_numpy()
            return np.asarray(days, np.int64)
        case "timestamp":
            return _micros(stored, _one(values))
        case "decimal":
            return unscaled_values(_one(values))
    return None


def _micros(stored: PhysicalType, values: pa.Array) -> npt.NDArray[np.int64] | None:
    if not pa.types.is_timestamp(values.type) or values.type.unit != stored.unit:
        return None
    raw = np.asarray(values.cast(pa.int64()).to_numpy(), np.int64)
    if stored.unit == "ns":
        whole = raw // 1000
        return whole if bool((whole * 1000 == raw).all()) else None
    if stored.unit == "ms":
        limit = 2**63 // 1000 - 1
        return raw * 1000 if bool(((raw >= -limit) & (raw <= limit)).all()) else None
    return raw if stored.unit == "us" else None


def unscaled_values(values: pa.Array) -> npt.NDArray[np.int64] | None:
    """The unscaled values of decimals; None if one does not fit 64 bits."""
    if not pa.types.is_decimal(values.type):
        return None
    if not pa.types.is_decimal128(values.type):
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    words = np.frombuffer(values.buffers()[1] or b"", "<i8", 2 * len(values), 16 * values.offset)
    low, high = words[0::2], words[1::2]
    return low.copy() if bool((high == low >> 63).all()) else None


def distinct(values: Any) -> Any:
    """Distinct values, ascending."""
    if isinstance(values, np.ndarray):
        return np.unique(values)
    found = pc.unique(values)
    return found.take(pc.sort_indices(found))


def pack_values(values: Any) -> pa.Array:
    """Canonical values as bytes."""
    if isinstance(values, np.ndarray):
        raw = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        return _fixed(8, pa.py_buffer(raw.tobytes()), len(raw))
    if pa.types.is_decimal(values.type):
        whole = pa.concat_arrays([values])
        raw = np.frombuffer(whole.buffers()[1] or b"", np.uint8)
        return _fixed(
            16, pa.py_buffer(raw[16 * whole.offset :][: 16 * len(whole)].tobytes()), len(whole)
        )
    return values.cast(pa.large_binary())


def _fixed(width: int, data: pa.Buffer, count: int) -> pa.Array:
    fixed = pa.Array.from_buffers(pa.binary(width), count, [None, data])
    return fixed.cast(pa.binary()).cast(pa.large_binary())


def unpack_values(stored: PhysicalType, flat: pa.Array) -> Any:
    """The inverse of `pack_values`, for values of one stored type."""
    flat = flat.cast(pa.large_binary())
    if stored.holds == "bytes":
        return flat
    width = 16 if stored.holds == "wide" else 8
    start = (
        int(np.frombuffer(flat.buffers()[1], np.int64, 1, flat.offset * 8)[0]) if len(flat) else 0
    )
    data = flat.buffers()[2] or b""
    if stored.holds == "wide":
        raw = np.frombuffer(data, np.uint8, width * len(flat), start).tobytes()
        kind = pa.decimal128(38, stored.scale)
        return pa.Array.from_buffers(kind, len(flat), [None, pa.py_buffer(raw)])
    dtype = np.float64 if stored.holds == "float" else np.int64
    return np.frombuffer(data, dtype, len(flat), start)
