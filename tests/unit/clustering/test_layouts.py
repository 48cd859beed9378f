"""Orders of rows: permutations of all rows, along curves that keep neighbours together."""

from __future__ import annotations

import datetime as dt
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.layouts.layout import arrange
from bridge.clustering.registry import layout, layouts
from bridge.clustering.rewriting.curves import hilbert, z_order
from bridge.clustering.rewriting.ranks import boundaries, rank, scaled_ranks
from bridge.kernel.errors import InvalidConfiguration
from tests.tiers import examples

EXAMPLES = examples(60, 60, 2000)


@pytest.mark.parametrize(("axes", "bits"), [(2, 4), (3, 3), (4, 2), (6, 1)])
def test_curves_visit_every_point_once(axes: int, bits: int) -> None:
    grid = np.indices((1 << bits,) * axes).reshape(axes, -1).astype(np.uint64)
    for curve in (z_order, hilbert):
        place = curve(list(grid), bits)
        assert sorted(place.tolist()) == list(range(1 << (axes * bits)))


@pytest.mark.parametrize(("axes", "bits"), [(2, 5), (3, 3), (5, 2)])
def test_steps_of_the_hilbert_curve_are_of_length_one(axes: int, bits: int) -> None:
    grid = np.indices((1 << bits,) * axes).reshape(axes, -1).astype(np.int64)
    order = np.argsort(hilbert([g.astype(np.uint64) for g in grid], bits))
    steps = np.abs(np.diff(grid[:, order], axis=1)).sum(axis=0)
    assert (steps == 1).all()


COLUMNS = {
    "bigint": pa.array([5, None, -3, 2**62, 5, 0], pa.int64()),
    "double": pa.array([float("nan"), -0.0, None, float("inf"), 1.5, -1e300]),
    "text": pa.array(["b", "", None, "ä", "b", "zz"]),
    "binary": pa.array([b"\xff", b"", None, b"a", b"b", b"\x00"]),
    "decimal": pa.array(
        [decimal.Decimal("1.10"), None, decimal.Decimal("-9.99")] * 2, pa.decimal128(30, 5)
    ),
    "date": pa.array([dt.date(2026, 1, i + 1) for i in range(5)] + [None]),
    "time": pa.array([dt.datetime(2026, 1, i + 1) for i in range(5)] + [None], pa.timestamp("ns")),
    "flag": pa.array([True, None, False, True, False, True]),
    "coded": pa.array(["x", "y", None, "x", "a", "y"]).dictionary_encode(),
    "fixed": pa.array([b"ab", b"aa", None, b"zz", b"ab", b"aa"], pa.binary(2)),
    "nothing": pa.array([None] * 6, pa.string()),
}


@pytest.mark.parametrize("name", sorted(layouts()))
@pytest.mark.parametrize("first", sorted(COLUMNS))
def test_every_layout_permutes_rows_of_every_type(name: str, first: str) -> None:
    found = layouts()[name]
    for second in COLUMNS:
        for chunks in (1, 2):
            table = pa.table({"a": COLUMNS[first], "b": COLUMNS[second]})
            if chunks == 2:
                table = pa.concat_tables([table.slice(0, 2), table.slice(2)])
            order = found.order(table)
            if order is not None:
                assert sorted(order.tolist()) == list(range(6))


@pytest.mark.parametrize("name", sorted(layouts()))
def test_an_empty_table(name: str) -> None:
    order = layouts()[name].order(
        pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    )
    assert order is None or len(order) == 0


def test_linear_sorts_by_the_first_column_then_the_second() -> None:
    table = pa.table({"a": [2, 1, None, 1], "b": ["x", "z", "a", "y"]})
    order = layout("linear", 2).order(table)
    assert order is not None
    assert table.take(order).to_pylist() == [
        {"a": 1, "b": "y"},
        {"a": 1, "b": "z"},
        {"a": 2, "b": "x"},
        {"a": None, "b": "a"},
    ]


def test_ranks_follow_the_order_of_values_with_nan_and_null_last() -> None:
    values = pa.array([3.0, None, float("nan"), 1.0, 2.0])
    found = rank(values, boundaries(values, 10))
    assert found.tolist() == [2, 4, 3, 0, 1]


def test_a_frequent_value_takes_one_rank() -> None:
    values = pa.array([7] * 9_000 + list(range(1000)))
    edges = boundaries(values, 64)
    assert len(edges) == len(edges.unique())
    ranks = scaled_ranks(values, 8)
    assert ranks.min() == 0 and ranks.max() == 255


def test_text_is_ranked_beyond_its_first_bytes() -> None:
    values = pa.array([f"https://example.org/{i:05}" for i in range(500)])
    ranks = scaled_ranks(values, 8)
    assert len(set(ranks.tolist())) > 200
    assert (np.diff(ranks.astype(np.int64)) >= 0).all()


@pytest.mark.parametrize("name", ["zorder", "hilbert"])
def test_both_columns_of_a_curve_prune(name: str) -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "a": rng.lognormal(0, 3, 20_480),
            "b": pa.array([f"u{i:06}" for i in rng.integers(0, 100_000, 20_480)]),
        }
    )
    order = layout(name, 2).order(table)
    ranks = np.stack([scaled_ranks(c, 16) for c in table.columns])[:, order]
    for column in ranks.reshape(2, 64, -1).astype(np.int64):
        touched = [(file.min() <= 20_000) & (file.max() >= 20_000) for file in column]
        assert sum(touched) <= 24  # of 64: without an order every file is touched


def test_layouts_refuse_a_wrong_number_of_columns() -> None:
    with pytest.raises(InvalidConfiguration, match="2 to 6 columns, and 1"):
        layout("hilbert", 1)
    with pytest.raises(InvalidConfiguration, match="0 to 0 columns, and 2"):
        layout("binpack", 2)
    with pytest.raises(InvalidConfiguration, match="no layout 'spiral'"):
        layout("spiral", 1)


@st.composite
def skewed(draw: st.DrawFn) -> pa.Array:
    """A column: even, of few values, mostly one value, all one value, or NULL."""
    count, shape = draw(st.shared(st.integers(1, 3000), key="rows")), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    most = (10**6, draw(st.integers(2, 9)), 50, 1, 1)[shape]
    values = rng.integers(0, most, count)
    if shape == 2:
        values[rng.random(count) < 0.9] = 7
    absent = rng.random(count) < (1 if shape == 4 else draw(st.sampled_from([0, 0, 0.3])))
    column = pa.array(values, mask=absent)
    kind = draw(st.sampled_from(["number", "text", "chunks"]))
    if kind == "chunks":
        return pa.chunked_array([column.slice(0, count // 2), column.slice(count // 2)])
    return column.cast(pa.string()) if kind == "text" else column


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(skewed(), min_size=2, max_size=4), st.integers(1, 40))
def test_every_layout_puts_every_row_into_one_file_of_a_fair_size(
    columns: list[pa.Array], files: int
) -> None:
    table = pa.table(columns, [f"c{i}" for i in range(len(columns))])
    count = len(table)
    for each in layouts().values():
        if not each.fewest <= len(columns) <= each.most:
            continue
        order, cuts = arrange(each, table, count, files)
        assert order is not None and sorted(order.tolist()) == list(range(count))
        assert (cuts[0], cuts[-1], len(cuts)) == (0, count, files + 1)
        sizes = np.diff(cuts)
        assert (sizes >= 0).all()
        assert sizes.max() <= math.ceil(1.2 * max(count / files, 1)) + files.bit_length()
        if count >= 4 * files:
            assert sizes.min() > 0
        again, same = arrange(each, table, count, files)
        assert same == cuts and np.array_equal(order, again)


def _kept(
    name: str, columns: list[np.ndarray], files: int, asked: list[list[tuple[int, int]]]
) -> float:
    """The mean share of rows in files whose bounds meet all ranges."""
    table = pa.table({f"c{i}": column for i, column in enumerate(columns)})
    order, cuts = arrange(layout(name, len(columns)), table, len(table), files)
    sizes = np.diff(cuts)
    low = [np.minimum.reduceat(c[order], cuts[:-1]) for c in columns]
    high = [np.maximum.reduceat(c[order], cuts[:-1]) for c in columns]
    shares = []
    for ranges in asked:
        read = np.ones(files, np.bool_)
        for i, (least, most) in enumerate(ranges):
            read &= (low[i] <= most) & (high[i] >= least)
        shares.append(sizes[read].sum() / sizes.sum())
    return float(np.mean(shares))


def test_a_tree_keeps_fewest_bytes_on_four_columns() -> None:
    """An even column, a skewed one, one of seven values, and one that rises with the first."""
    rng = np.random.default_rng(19)
    count, files = 40_000, 48
    even = rng.integers(0, 100_000, count)
    skewed = np.exp(rng.normal(0, 2, count) * 2 + 8).astype(np.int64)
    few = rng.integers(0, 7, count)
    rising = even + rng.integers(0, 2000, count)
    columns = [even, skewed, few, rising]
    ordered = [np.sort(column) for column in columns]
    asked = []
    for _ in range(200):
        ranges = []
        for column, held in zip(columns, ordered, strict=True):
            begin = rng.uniform(0, 0.85)
            picked = [held[int(begin * count)], held[int((begin + 0.15) * count)]]
            ranges.append((picked[0], picked[0]) if column is few else tuple(picked))
        asked.append(ranges)
    shares = {
        name: _kept(name, columns, files, asked)
        for name in ("kdtree", "hilbert", "zorder", "linear")
    }
    assert shares["kdtree"] < 0.75 * min(shares[n] for n in ("hilbert", "zorder", "linear"))
    for i in range(len(columns)):  # no predicate on one column pays for it
        alone = [[(-1, 10**18)] * i + [r[i]] + [(-1, 10**18)] * (3 - i) for r in asked]
        assert _kept("kdtree", columns, files, alone) < 0.8
