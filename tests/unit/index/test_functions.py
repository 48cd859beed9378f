"""Functions computed on values: what engines may answer differently, no index decides."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.expression.parsing.text import parse_call
from bridge.formats.physical_column import PhysicalType
from bridge.index.kinds.functions import evaluate

INT = PhysicalType("INT32", "int", 32)


@pytest.mark.parametrize(
    ("text", "more"),
    [("c + 1", 1), ("(c - 1) + 2", 1), ("(c + 1) - (-1)", 2), ("((c - 2) + 1) + 2", 1)],
)
def test_a_result_beyond_the_width_of_the_column_is_none_at_every_depth(
    text: str, more: int
) -> None:
    """Trino fails on it, and Hive wraps."""
    call = parse_call(text)
    assert call is not None
    greatest = 2**31 - 1
    assert evaluate(call, INT, np.array([5, greatest])) is None
    found = evaluate(call, INT, np.array([5, greatest - more]))
    assert found is not None
    assert found[0].tolist() == [5 + more, greatest]
