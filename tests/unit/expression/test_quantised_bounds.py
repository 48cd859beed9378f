"""Rounded bounds: what they are sure of is so, and what they do not doubt is not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bridge.expression import quantised_bounds as module
from bridge.expression.bounds import successor
from bridge.expression.nodes import Op
from bridge.expression.quantised_bounds import QuantisedBounds
from bridge.kernel.types import Value

OPERATORS = (Op.EQ, Op.NE, Op.IN, Op.NOT_IN, Op.LT, Op.LE, Op.GT, Op.GE)
INFINITE = (-(2**63), 2**63 - 1)


def never(op: Op, low: Value, high: Value, values: tuple[Value, ...]) -> bool:
    """Of one file, by the definition; a text bound that is None is unknown."""
    below = [high is not None and high < v for v in values]  # type: ignore[operator]
    above = [low is not None and low > v for v in values]  # type: ignore[operator]
    match op:
        case Op.EQ | Op.IN:
            return all(b or a for b, a in zip(below, above, strict=True))
        case Op.NE | Op.NOT_IN:
            return low is not None and low == high and low in values
        case Op.LT:
            return low is not None and low >= values[0]  # type: ignore[operator]
        case Op.LE:
            return above[0]
        case Op.GT:
            return high is not None and high <= values[0]  # type: ignore[operator]
        case Op.GE:
            return below[0]
    assert isinstance(values[0], bytes)
    after = successor(values[0])
    outside = after is not None and low is not None and low >= after  # type: ignore[operator]
    return below[0] or outside


def ask(
    cells: QuantisedBounds, lower: list[Value], upper: list[Value], op: Op, *values: Value
) -> int:
    """How many files are decided without a doubt."""
    found = cells.never(op, values)
    assert found is not None
    exact = np.array([never(op, a, b, values) for a, b in zip(lower, upper, strict=True)])
    sure, doubt = found
    assert not (sure & ~exact).any(), (op, values)
    assert not (exact & ~sure & ~doubt).any(), (op, values)
    some = np.flatnonzero(np.arange(len(lower)) % 3 == 1)
    few = cells.never(op, values, some)
    assert few is not None
    assert few[0].tolist() == sure[some].tolist() and few[1].tolist() == doubt[some].tolist()
    return int(np.count_nonzero(~doubt))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [3, 17, 1 << 16])
@pytest.mark.parametrize("real", [False, True])
def test_numbers(seed: int, most: int, real: bool) -> None:
    rng = np.random.default_rng(seed)
    low = rng.integers(-400, 400, 300)
    high = low + rng.integers(0, (3, 300)[seed % 2], 300)
    low[rng.random(300) < 0.05], high[rng.random(300) < 0.05] = INFINITE
    lower, upper = (low / 8, high / 8) if real else (low, high)
    if real:
        lower[low == INFINITE[0]], upper[high == INFINITE[1]] = -np.inf, np.inf
    cells = QuantisedBounds.of(lower, upper, most)
    assert cells is not None
    decided = 0
    for _ in range(20):
        number = sorted({int(n) for n in rng.integers(-450, 450, 4)})
        values: list[Value] = [n / 8 for n in number] if real else list(number)
        for op in OPERATORS:
            several = op in (Op.IN, Op.NOT_IN)
            asked = values if several else values[:1]
            decided += ask(cells, lower.tolist(), upper.tolist(), op, *asked)
    assert decided > 20 * 8 * 300 * (0.2 if most == 3 else 0.7)
    edge: tuple[Value, ...] = (-np.inf, np.inf) if real else INFINITE
    for op in OPERATORS:
        ask(cells, lower.tolist(), upper.tolist(), op, *(edge if op is Op.IN else edge[:1]))


@pytest.mark.parametrize("seed", range(12))
def test_slots_find_the_same_cells(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MANY", 0)
    rng = np.random.default_rng(seed)
    shapes = {
        "even": rng.integers(-(10**9), 10**9, 2000),
        "skewed": (rng.pareto(0.3, 2000) * 10).clip(0, 2.0**62).astype(np.int64),
        "whole range": rng.integers(*INFINITE, 2000, endpoint=True),
        "few": rng.integers(0, 5, 2000),
        "one": np.full(2000, 7),
        "unknown": np.where(rng.random(2000) < 0.4, rng.choice(INFINITE, 2000), 5),
        "real": rng.normal(0, 1e300, 2000),
        "infinite": np.where(rng.random(2000) < 0.4, rng.choice((-np.inf, np.inf), 2000), 1.5),
        "tiny": rng.random(2000) * 5e-324 * 100,
        "words": rng.integers(0, 2**64, 2000, dtype=np.uint64, endpoint=False),
    }
    for name, values in shapes.items():
        for count in (1, 2, 70, 900):
            edges = np.unique(rng.choice(values, count))
            slow = edges.searchsorted(values, side="right")
            assert module._many_cells(edges, values).tolist() == slow.tolist(), (name, count)


def test_what_has_no_cell_is_not_answered() -> None:
    numbers = QuantisedBounds.of(np.arange(99), np.arange(99))
    assert numbers is not None
    assert numbers.never(Op.EQ, (2**63,)) is None
    assert numbers.never(Op.IS_NULL, ()) is None
    reals = QuantisedBounds.of(np.arange(99.0), np.arange(99.0))
    assert reals is not None
    assert reals.never(Op.LT, (float("nan"),)) is None
    assert QuantisedBounds.of(np.zeros(99, np.int64), np.ones(99, np.int64)) is None
    assert QuantisedBounds.of(np.zeros(0, np.int64), np.zeros(0, np.int64)) is None
    wide = pa.array([1, 2], pa.decimal128(30, 0))
    assert QuantisedBounds.of(wide, wide) is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("prefix", [b"", b"customer#\xff", b"\x00"])
def test_texts(seed: int, prefix: bytes) -> None:
    rng = np.random.default_rng(seed)
    letters = [b"", b"\x00", b"a", b"b", b"\xc3", b"\xff"]

    def word() -> bytes:
        return prefix + b"".join(letters[i] for i in rng.integers(0, 6, rng.integers(1, 12)))

    pairs = [sorted([word(), word()]) for _ in range(300)]
    lower: list[Value] = [a if rng.random() > 0.05 else None for a, _ in pairs]  # type: ignore[misc]
    upper: list[Value] = [b if rng.random() > 0.05 else None for _, b in pairs]  # type: ignore[misc]
    kind = pa.large_binary() if seed % 2 else pa.binary()
    padding = pa.array([b"zz"], kind)  # so that offsets do not begin at nothing
    whole = [pa.concat_arrays([padding, pa.array(b, kind)])[1:] for b in (lower, upper)]
    cells = QuantisedBounds.of(*whole, most=(1 << 16, 40)[seed % 2])
    assert cells is not None
    decided = 0
    for _ in range(10):
        words: list[Value] = sorted({word(), word(), prefix[:2], b"zz", word() + b"\xff\xff"})
        for op in OPERATORS:
            asked = words if op in (Op.IN, Op.NOT_IN) else [words[rng.integers(len(words))]]
            decided += ask(cells, lower, upper, op, *asked)
        start = words[rng.integers(len(words))]
        ask(cells, lower, upper, Op.STARTS_WITH, start)
        ask(cells, lower, upper, Op.STARTS_WITH, prefix + (b"a", b"\xff", b"\xff" * 20)[seed % 3])
    assert decided > 10 * 8 * 300 * 0.4
