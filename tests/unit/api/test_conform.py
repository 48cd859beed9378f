"""Columns of files in the table's types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bridge.api.conform import conform
from bridge.errors import SchemaConflict
from bridge.types import BIGINT, DOUBLE, FLOAT, INTEGER, Field, Type, struct


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
