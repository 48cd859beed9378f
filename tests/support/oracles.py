"""What the rows themselves say: the truth of predicates, and the order of values."""

from __future__ import annotations

import random
from typing import Any

from bridge.expression.evaluate import Oracle, Rounding, Row, Truth
from bridge.expression.nodes import (
    Unknown,
)
from bridge.kernel.types import Value
from bridge.planner.request import SortKey
from tests.support.strategies import Case, Table


def unknown(node: Unknown, row: Row) -> Truth:
    """Anything may hide behind an Unknown; the same for the same row."""
    return random.Random(f"{node.text}{sorted(row.items())}").choice((True, False, None))


def oracle(case: Case, data: Table, rounding: Rounding = Rounding.EXACT) -> Oracle:
    return Oracle(case.semantics, data.paths, rounding, unknown)


def place(value: Value | None, key: SortKey, nan_largest: bool) -> tuple[int, Any]:
    """Sorts as the order asks; NaN at either end, since engines differ."""
    if value is None:
        return (0 if key.nulls_first else 4, 0)
    if value != value:
        return (3 if nan_largest != key.descending else 1, 0)
    return (2, _Turned(value) if key.descending else value)


class _Turned:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Turned) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Turned) and self.value == other.value
