"""Values of a file in canonical form: exactly, or not at all."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bridge.formats.physical_column import INT_MAX, INT_MIN, PhysicalType
from bridge.index.kinds.canonical import canonical


@pytest.mark.rule("9")
@pytest.mark.parametrize("millis", [INT_MIN, INT_MIN + 1, INT_MAX, INT_MAX // 1000 + 1])
def test_milliseconds_beyond_the_range_of_microseconds_are_not_told(millis: int) -> None:
    stored = PhysicalType("INT64", "timestamp", 64, unit="ms")
    values = pa.chunked_array([pa.array([0, millis], pa.timestamp("ms"))])
    assert canonical(stored, values) is None


def test_milliseconds_become_microseconds() -> None:
    stored = PhysicalType("INT64", "timestamp", 64, unit="ms")
    for millis in ([], [0], [-1, 5], [INT_MAX // 1000 - 1]):
        found = canonical(stored, pa.chunked_array([pa.array(millis, pa.timestamp("ms"))]))
        assert found.tolist() == [1000 * m for m in millis]
