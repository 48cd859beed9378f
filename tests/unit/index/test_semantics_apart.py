"""What one engine's semantics make of stored values is never what another engine is answered."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from bridge.expression.nodes import BoundPredicate, BoundReference, Op
from bridge.expression.prune import prune
from bridge.index.kinds.registry import kind
from bridge.kernel.types import HIVE, TRINO, Semantics, decimal
from tests.support.lake import Lake

ELSEWHERE = replace(TRINO, raw_timestamps=False)
"""Trino's in a zone other than UTC: the timestamps are read as Hive reads them."""


@pytest.mark.rule("23")
@pytest.mark.parametrize("order", [*permutations((TRINO, ELSEWHERE, HIVE))])
def test_23_each_engine_has_its_own_answer_whoever_asked_before(
    lake: Lake, order: tuple[Semantics, ...]
) -> None:
    """Hive may show 0.0125 for the 1.25 of a file, where the table's scale is 4."""
    table = pa.table({"c": pa.array([Decimal("1.25")], pa.decimal128(9, 2))})
    lake.write("a", table, store_decimal_as_integer=True)
    lake.build(settings=lambda held: held.adding([kind("values").define("c")]))
    column = BoundReference(("c",), decimal(14, 4))
    asked = BoundPredicate(Op.EQ, column, (125,))
    serving = lake.snapshot()
    (lists,) = serving.kinds
    for semantics in order:
        by_bounds = prune(asked, serving.statistics((), semantics), semantics).never
        by_values = lists.never(asked, np.arange(1), semantics)
        skipped = semantics is not HIVE
        assert by_bounds.tolist() == [skipped]
        assert (by_values is not None and by_values.tolist() == [True]) == skipped
