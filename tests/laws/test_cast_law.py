"""Integers of files under floating-point columns: no file with a row that matches is skipped.

Engines cast the integers as Java does, to the nearest number. Some neighbours become equal so.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bridge.expression.nodes import Literal, Not, Op, Predicate, Reference
from bridge.index.kinds.registry import kind
from bridge.kernel.types import DOUBLE, FLOAT, Kind, Type
from bridge.table.model import Column
from tests.support.lake import Lake, kept
from tests.tiers import examples, seed

_STORED = (pa.int32(), pa.int64(), pa.uint32(), pa.int16(), pa.float32())
_EDGES = (0, 1, -1, 2**24, 2**24 + 1, 2**31 - 1, 2**31 - 65, 2**53, 2**53 + 1, 2**62, -(2**63))
_COMPARISONS = {
    Op.EQ: np.equal,
    Op.NE: np.not_equal,
    Op.LT: np.less,
    Op.LE: np.less_equal,
    Op.GT: np.greater,
    Op.GE: np.greater_equal,
}


@pytest.mark.rule("16")
@pytest.mark.parametrize("type", [FLOAT, DOUBLE])
@pytest.mark.parametrize("number", range(examples(2, 4, 30)))
def test_no_row_is_lost_to_a_cast(number: int, type: Type, tmp_path: Path) -> None:
    draw = random.Random(seed(number))
    narrow = np.float32 if type.kind is Kind.FLOAT else np.float64
    lake = Lake(tmp_path, (Column("c", type),))
    held, integers = {}, set()
    for i in range(40):
        stored = draw.choice(_STORED)
        values = _values(draw, stored)
        path = lake.write(f"f{i}", {"c": pa.array([*values, None], stored)})
        if stored != pa.float32():
            integers.add(f"file://{path}")
        exact = np.array(values, np.float64 if stored == pa.float32() else np.int64)
        held[f"file://{path}"] = exact.astype(narrow)
    name = draw.choice(("", "bloom", "values"))
    if name:
        lake.build(settings=lambda kept: kept.adding([kind(name).define("c")]))
    else:
        lake.build()
    planner = lake.planner()
    skipped = 0
    for _ in range(60):
        op = draw.choice(list(_COMPARISONS))
        asked = narrow(draw.choice(_EDGES) + draw.choice((0, 0, 1, -1, 1000)))
        predicate = Predicate(op, Reference(("c",)), (Literal(float(asked), type),))
        for expression, negated in ((predicate, False), (Not(predicate), True)):
            found = kept(planner, expression)
            matching = {
                uri
                for uri, values in held.items()
                if (_COMPARISONS[op](values, asked) != negated).any()
            }
            assert matching <= found, (op, asked, negated)
            skipped += len(integers - found)
    assert skipped > 100


def _values(draw: random.Random, stored: pa.DataType) -> list[float]:
    if stored == pa.float32():
        return [float(np.float32(draw.choice(_EDGES) / 2))]
    most = 2 ** (stored.bit_width - (0 if pa.types.is_unsigned_integer(stored) else 1)) - 1
    least = 0 if pa.types.is_unsigned_integer(stored) else -most - 1
    middle = draw.choice(_EDGES)
    near = [middle + draw.randint(-2, 2) for _ in range(draw.randint(1, 4))]
    return [min(max(value, least), most) for value in near]
