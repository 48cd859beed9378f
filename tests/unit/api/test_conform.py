"""Columns of files in the table's types."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from bridge.app.api.conform import conform
from bridge.kernel.errors import SchemaConflict
from bridge.kernel.types import BIGINT, DOUBLE, FLOAT, INTEGER, Field, Type, array, decimal, struct


@pytest.mark.parametrize(
    ("stored", "target", "wanted"),
    [
        (pa.array([16_777_217, -5, None], pa.int32()), FLOAT, [16_777_216.0, -5.0, None]),
        (pa.array([2**53 + 1, 2**63 - 1]), DOUBLE, [float(2**53), float(2**63)]),
        (pa.array([2**64 - 1], pa.uint64()), DOUBLE, [float(2**64)]),
        (pa.array([2**32 - 1], pa.uint32()), BIGINT, [2**32 - 1]),
    ],
)
def test_integers_are_cast_as_engines_cast_them(
    stored: pa.Array, target: Type, wanted: list[float | None]
) -> None:
    assert conform(stored, target, "trino", "c", "f").to_pylist() == wanted
    nested = pa.StructArray.from_arrays([stored], ["a"])
    found = conform(nested, struct(Field("a", target)), "trino", "c", "f")
    assert [row["a"] for row in found.to_pylist()] == wanted


def test_an_integer_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(SchemaConflict):
        conform(pa.array([2**32 - 1], pa.uint32()), INTEGER, "trino", "c", "f")


@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()])
@pytest.mark.parametrize("target", [decimal(5, 1), decimal(18, 14), decimal(38, 34)], ids=str)
def test_an_integer_under_a_decimal_that_is_too_narrow_for_its_type(
    kind: pa.DataType, target: Type
) -> None:
    """It is the number if that fits, else an error; never a number of more digits."""
    fits, too_large = pa.array([9_999, None], kind), pa.array([1, 10_000], kind)
    assert conform(fits, target, "trino", "c", "f").to_pylist() == [Decimal(9_999), None]
    offsets = pa.array([0, 2], pa.int32())
    found = conform(pa.ListArray.from_arrays(offsets, fits), array(target), "trino", "c", "f")
    assert found.to_pylist() == [[Decimal(9_999), None]]
    for held, wanted in (
        (too_large, target),
        (pa.ListArray.from_arrays(offsets, too_large), array(target)),
        (pa.StructArray.from_arrays([too_large], ["a"]), struct(Field("a", target))),
    ):
        with pytest.raises(SchemaConflict, match="does not fit"):
            conform(held, wanted, "trino", "c", "f")


@pytest.mark.parametrize("nested", [False, True])
def test_a_decimal_of_more_digits_than_its_file_declares_is_an_error(nested: bool) -> None:
    whole = pa.py_buffer(b"".join(n.to_bytes(16, "little") for n in (150, 12_345_678)))
    values: pa.Array = pa.Array.from_buffers(pa.decimal128(5, 2), 2, [None, whole])
    type: Type = decimal(5, 2)
    if nested:
        values, type = pa.ListArray.from_arrays([0, 2], values), array(type)
    with pytest.raises(SchemaConflict, match="12345678"):
        conform(values, type, "trino", "d", "file:///f")
