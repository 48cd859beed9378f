"""A leaf column as stored in a file: its physical and logical type, and its bounds as bytes.

Bounds are stored as PLAIN bytes of the FILE's physical type, never as text or in the table's type:
``0.1f`` is not 0.1, and a table's type may change while its files do not (correctness 10, 15, 16).
Bounds are decoded for all files of one stored type at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
NAMELESS = ("", "$nameless")
"""The path of every column in files without column names. Only the position differs."""


@dataclass(frozen=True, slots=True)
class PhysicalType:
    """A leaf's type in a file.

    Attributes:
        physical: Parquet's physical type: such as ``INT32`` or ``BYTE_ARRAY``.
        logical: ``bool``, ``int``, ``uint``, ``float``, ``double``, ``decimal``, ``date``,
            ``timestamp``, ``string``, ``binary``; ``repeated`` below lists and maps; ``other``.
        width: bits of integers; bytes of FIXED_LEN_BYTE_ARRAY.
        precision, scale: of a decimal.
        unit: of a timestamp: ``ms``, ``us``, ``ns``; empty for INT96.
        utc: a timestamp adjusted to UTC.
    """

    physical: str
    logical: str
    width: int = 0
    precision: int = 0
    scale: int = 0
    unit: str = ""
    utc: bool = False

    @property
    def is_floating(self) -> bool:
        return self.logical in ("float", "double")

    @property
    def holds(self) -> str:
        """The representation of decoded bounds: int, float, wide (decimal128), bytes, or none."""
        if self.physical == "INT96":
            return "none"
        if self.logical == "decimal":
            return "int" if self.precision <= 18 else "wide"
        if self.logical in ("bool", "int", "uint", "date", "timestamp"):
            return "int"
        if self.is_floating:
            return "float"
        return "bytes" if self.logical in ("string", "binary") else "none"


@dataclass(frozen=True, slots=True)
class PhysicalColumn:
    """A leaf column of a file. Columns with the same path and different types are different.

    Attributes:
        path: the names from the top-level column down to the leaf.
        position: its position among the file's columns, if engines may find it by position; None
            if only names count. See `bridge.index.reading.column_resolution`.
    """

    path: tuple[str, ...]
    type: PhysicalType
    position: int | None = None

    def key(self) -> str:
        """The column as text, for the dictionary-encoded column of a shard."""
        t = self.type
        parts = [t.physical, t.logical, t.width, t.precision, t.scale, t.unit, t.utc]
        place = [] if self.position is None else [self.position]
        whole = [list(self.path), parts, *place]
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def parse_key(key: str) -> PhysicalColumn:
    """The inverse of `PhysicalColumn.key`."""
    path, parts, *place = json.loads(key)
    return PhysicalColumn(tuple(path), PhysicalType(*parts), *place)


_NUMPY = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8", "BOOLEAN": "|i1"}


def encode(physical: str, values: Sequence[Any]) -> pa.Array:
    """Encodes bounds (None: unknown) as PLAIN bytes. A boolean is one byte."""
    dtype = _NUMPY.get(physical)
    if dtype is None:
        return pa.array(values, pa.large_binary())
    known = [value is not None for value in values]
    numbers = np.array([0 if value is None else value for value in values], dtype)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(numbers.itemsize), len(numbers), [None, pa.py_buffer(numbers.tobytes())]
    )
    plain = fixed.cast(pa.binary()).cast(pa.large_binary())
    if all(known):
        return plain
    return pa.compute.if_else(pa.array(known), plain, pa.scalar(None, pa.large_binary()))


@dataclass(frozen=True, slots=True)
class DecodedBounds:
    """One bound of many files. The values of slots that are not ``known`` are arbitrary."""

    values: Any
    known: npt.NDArray[np.bool_]
    rounded: npt.NDArray[np.bool_] | None = None


def decode(stored: PhysicalType, plain: pa.Array, *, upper: bool) -> DecodedBounds:
    """Decodes bounds of one stored type: int64, float64, decimal128(38, s) or large_binary.

    Nanoseconds are rounded outward. NaN is an unknown bound (correctness 1, 9).
    """
    known = plain.is_valid().to_numpy(zero_copy_only=False)
    if stored.holds == "bytes":
        return DecodedBounds(plain.cast(pa.large_binary()), known)
    if stored.logical == "decimal" and stored.physical.endswith("BYTE_ARRAY"):
        return _decimal(stored, plain, known)
    dtype = _NUMPY[stored.physical]
    if stored.logical == "uint":
        dtype = dtype.replace("i", "u")
    numbers = _numbers(plain, known, dtype)
    if stored.is_floating:
        wide = numbers.astype(np.float64)
        return DecodedBounds(wide, known & ~np.isnan(wide))
    if stored.logical == "uint" and stored.physical == "INT64":
        known = known & (numbers <= INT_MAX)
    result = numbers.astype(np.int64)
    if stored.logical == "timestamp":
        return _micros(stored.unit, result, known, upper)
    if stored.holds == "wide":  # more than 18 digits in INT64: no writer does this
        return DecodedBounds(_wide(result >> 63, result, stored.scale), known)
    return DecodedBounds(result, known)


def _numbers(plain: pa.Array, known: npt.NDArray[np.bool_], dtype: str) -> npt.NDArray[Any]:
    width = np.dtype(dtype).itemsize
    lengths = pa.compute.binary_length(plain)
    right = pa.compute.fill_null(pa.compute.equal(lengths, width), False)
    if not pa.compute.all(right).as_py():
        known &= right.to_numpy(zero_copy_only=False)
        plain = pa.compute.if_else(pa.array(known), plain, pa.scalar(bytes(width), plain.type))
    plain = plain.cast(pa.large_binary())
    start = np.frombuffer(plain.buffers()[1], np.int64, len(plain) + 1, plain.offset * 8)[0]
    return np.frombuffer(plain.buffers()[2] or b"", dtype, len(plain), int(start))


def _micros(
    unit: str, values: npt.NDArray[np.int64], known: npt.NDArray[np.bool_], upper: bool
) -> DecodedBounds:
    if unit == "ms":
        fits = (values >= INT_MIN // 1000 + 1) & (values <= INT_MAX // 1000)
        return DecodedBounds(np.where(fits, values, 0) * 1000, known & fits)
    if unit == "ns":
        whole = values // 1000
        rounded = whole * 1000 != values
        return DecodedBounds(whole + rounded if upper else whole, known, rounded)
    return DecodedBounds(values, known)


def _decimal(stored: PhysicalType, plain: pa.Array, known: npt.NDArray[np.bool_]) -> DecodedBounds:
    width = stored.width
    if stored.physical == "BYTE_ARRAY" or width > 16:
        values = [
            None if v is None else int.from_bytes(v, "big", signed=True) for v in plain.to_pylist()
        ]
        fits = np.array([v is not None and -(2**127) <= v < 2**127 for v in values], bool)
        raw = b"".join(
            (v if ok and v is not None else 0).to_bytes(16, "big", signed=True)
            for v, ok in zip(values, fits, strict=True)
        )
        known, big = known & fits, np.frombuffer(raw, np.uint8).reshape(-1, 16)
    else:
        flat = _numbers(plain, known, f"|V{width}")
        narrow = np.frombuffer(flat.tobytes(), np.uint8).reshape(-1, width)
        big = np.empty((len(narrow), 16), np.uint8)
        big[:, 16 - width :] = narrow
        big[:, : 16 - width] = np.where(narrow[:, :1] >= 128, 255, 0)
    words = np.ascontiguousarray(big[:, ::-1]).view("<i8")
    low, high = words[:, 0].copy(), words[:, 1].copy()
    if stored.holds == "int":
        known = known & (high == low >> 63)  # more digits than declared: corrupt
        return DecodedBounds(low, known)
    return DecodedBounds(_wide(high, low, stored.scale), known)


def _wide(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64], scale: int = 0) -> pa.Array:
    pairs = np.stack([low, high], axis=1)
    buffer = pa.py_buffer(np.ascontiguousarray(pairs).tobytes())
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(low), [None, buffer])
