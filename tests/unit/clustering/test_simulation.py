"""Simulated layouts: bounds and kept files equal brute force over the sampled rows."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.plan import ClusteringPlan, PlannedGroup
from bridge.clustering.planning.advice import _spread, choices
from bridge.clustering.planning.questions import Question, hot_columns, questions
from bridge.clustering.planning.row_sample import (
    RowSample,
    SampledFile,
    canonical_values,
    read_sample,
    sampled_column,
)
from bridge.clustering.planning.simulated_filters import Filter, SimulatedFilter
from bridge.clustering.planning.simulation import SimulatedFiles, simulate
from bridge.clustering.registry import layout
from bridge.expression.bind import bind
from bridge.expression.evaluate import Oracle
from bridge.expression.nodes import BoundPredicate, BoundReference, Op
from bridge.expression.parsing.text import parse_where
from bridge.expression.prune import prune
from bridge.index.generations.replacements import FileState
from bridge.kernel.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, TRINO, Field
from bridge.kernel.types import decimal as of
from bridge.planner.logged_predicate import to_plain
from bridge.planner.predicate_log import Logged
from bridge.storage.routed import open_storage
from tests.tiers import examples

EXAMPLES = examples(60, 60, 2000)
FIELDS = (
    Field("x", BIGINT),
    Field("s", STRING),
    Field("f", DOUBLE),
    Field("d", of(9, 2)),
    Field("w", of(30, 2)),
)
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-5, 5) | st.sampled_from([-(2**63), 2**63 - 1]),
        st.none() | st.sampled_from([b"", b"a", b"ab", b"b\xff", b"\xc3\xa9"]),
        st.none() | st.sampled_from([0.0, -1.5, 2.0, math.inf, -math.inf, math.nan]),
        st.none() | st.integers(-300, 300),
        st.none() | st.integers(-(10**28), 10**28),
    ),
    min_size=1,
    max_size=40,
)


def sample_of(rows: list[tuple[Any, ...]]) -> RowSample:
    forms = (pa.int64(), pa.large_binary(), pa.float64(), pa.int64(), pa.decimal128(38, 2))
    columns = {}
    for i, (field, form) in enumerate(zip(FIELDS, forms, strict=True)):
        values = [row[i] for row in rows]
        if field.name == "w":
            values = [None if v is None else decimal.Decimal(v).scaleb(-2) for v in values]
        columns[field.name] = sampled_column(field.type, pa.array(values, form))
    return RowSample(("file:///t/a",), np.zeros(len(rows), np.int64), columns)


PREDICATES = [
    "x = 3", "x >= 2 AND x < 4", "x < -4 OR s = 'ab'", "s IN ('a', 'b')", "s > 'a'", "x IS NULL",
    "s LIKE 'a%'", "f > 1", "f = 2", "f <= -1.5", "d BETWEEN 1.00 AND 2.50", "d IN (0.01, -3)",
    "w > 0", "w <= -10000000000000000000.5 OR w IS NULL", "x <> 3 AND s IS NOT NULL",
    "x = 1 AND (s = 'a' OR f < 0)",
]  # fmt: skip


def spans(values: list[Any]) -> tuple[Any, Any]:
    known = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    return (min(known), max(known)) if known else (None, None)


@settings(max_examples=EXAMPLES)
@given(ROWS, st.data())
def test_simulated_files_have_the_bounds_of_their_rows(
    rows: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    """Bounds, counts and NEVER equal those that a plain loop over the rows finds."""
    sample = sample_of(rows)
    order = np.array(data.draw(st.permutations(range(len(rows)))), np.int64)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(rows) - 1, 1)), max_size=5)))
    edges = np.array(sorted({0, *(c for c in cuts if c < len(rows)), len(rows)}), np.int64)
    files = SimulatedFiles(sample, order, edges)
    pieces = [[rows[i] for i in order[a:b]] for a, b in pairwise(edges)]
    assert files.num_files == len(pieces)
    for i, field in enumerate(FIELDS):
        found = files.column(BoundReference((field.name,), field.type))
        assert found is not None
        for n, piece in enumerate(pieces):
            values = [row[i] for row in piece]
            low, high = spans(values)
            assert bool(found.lower_known[n]) == (low is not None)
            if low is not None:
                bounds = [_plain(found.lower[n]), _plain(found.upper[n])]
                assert bounds == [low, high], field
            assert found.null_count[n] == sum(v is None for v in values)
            assert found.nan_count[n] == sum(v != v for v in values if v is not None)
            assert found.row_count[n] == len(values)
    oracle = Oracle(TRINO, {(f.name,): f.type for f in FIELDS})
    text = data.draw(st.sampled_from(PREDICATES))
    bound = bind(parse_where(text)[0], FIELDS, (), TRINO)
    never = prune(bound, files, TRINO).never
    for n, piece in enumerate(pieces):
        named = [{(f.name,): v for f, v in zip(FIELDS, row, strict=True)} for row in piece]
        if any(oracle.truth(bound, row) for row in named):
            assert not never[n], text


def _plain(value: Any) -> Any:
    found = value.as_py() if isinstance(value, pa.Scalar) else value.item()
    return int(found.scaleb(2)) if isinstance(found, decimal.Decimal) else found


def plan_of(groups: int, outputs: int, columns: tuple[str, ...] = ("x",)) -> ClusteringPlan:
    return ClusteringPlan(
        "1", "t", "file:///t", "overlap", "linear", columns,
        tuple(
            PlannedGroup(g, "", (FileState(f"file:///t/{g}", 1000, 0),), outputs)
            for g in range(groups)
        ),
    )  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=300),
    st.integers(1, 6),
    st.integers(0, 50),
    st.integers(0, 50),
)
def test_kept_bytes_equal_brute_force(values: list[int], outputs: int, low: int, high: int) -> None:
    """Rows sorted and cut by hand: a piece is kept if a range meets its least and greatest row."""
    sample = RowSample(
        ("file:///t/0",),
        np.zeros(len(values), np.int64),
        {"x": sampled_column(BIGINT, pa.array(values, pa.int64()))},
    )
    new = simulate(plan_of(1, outputs), sample, layout("linear", 1))
    pieces = min(outputs, len(values) // 8)
    bound = bind(parse_where(f"x >= {low} AND x <= {high}")[0], FIELDS[:1], (), TRINO)
    if not pieces:
        assert new.statistics is None and new.sum_kept(None) == (outputs, 1000)
        return
    assert new.statistics is not None
    never = prune(bound, new.statistics, TRINO).never
    cuts = np.linspace(0, len(values), pieces + 1).astype(int)
    ordered = sorted(values)
    kept = [
        (a, b) for a, b in pairwise(cuts) if ordered[a] <= high and ordered[b - 1] >= low <= high
    ]
    files, size = new.sum_kept(never)
    assert files == pytest.approx(len(kept) * outputs / pieces)
    assert size == pytest.approx(sum(b - a for a, b in kept) * 1000 / len(values))


def test_groups_without_sampled_rows_count_like_the_others() -> None:
    values = list(range(160))
    sample = RowSample(
        ("file:///t/0",),
        np.zeros(160, np.int64),
        {"x": sampled_column(BIGINT, pa.array(values, pa.int64()))},
    )
    new = simulate(plan_of(4, 10), sample, layout("linear", 1))
    assert new.statistics is not None and (new.all_files, new.all_bytes) == (40, 4000)
    bound = bind(parse_where("x = 3")[0], FIELDS[:1], (), TRINO)
    assert new.sum_kept(prune(bound, new.statistics, TRINO).never) == (4, 400)


def logged(text: str, fields: tuple[Field, ...] = FIELDS, literals: bool = True) -> Logged:
    bound = bind(parse_where(text)[0], fields, (), TRINO)
    from bridge.planner.predicate_log import leaves

    asked = tuple(sorted(set(leaves(bound))))
    return Logged("t", 0.0, 1, 1, asked, (), "", to_plain(bound, literals=literals))


@pytest.mark.parametrize("text", PREDICATES)
def test_logged_values_are_asked_again(text: str) -> None:
    rows: list[tuple[Any, ...]] = [(1, b"a", 1.0, 100, 5)]
    (found,) = questions([logged(text)] * 3, FIELDS, sample_of(rows)).questions
    assert found.weight == 3
    assert found == Question(bind(parse_where(text)[0], FIELDS, (), TRINO), 3.0)


def test_values_that_are_not_logged_are_drawn_from_rows() -> None:
    rows: list[tuple[Any, ...]] = [(v % 100, b"a%d" % (v % 7), v / 1, v, v) for v in range(1000)]
    sample = sample_of(rows)
    asked = questions([logged("x = 999", literals=False)] * 4, FIELDS, sample)
    assert (asked.scans, asked.regarded, asked.values) == (4, 4, 0)
    assert len(asked.questions) == 8 and sum(q.weight for q in asked.questions) == 4
    drawn = {q.predicate.values[0] for q in asked.questions}  # type: ignore[attr-defined]
    assert len(drawn) > 3 and drawn <= set(range(100))
    again = questions([logged("x = 999", literals=False)] * 4, FIELDS, sample)
    assert again == asked
    ((both,), (upper,)) = (
        [q.predicate for q in questions([logged(text, literals=False)], FIELDS, sample).questions][
            :1
        ]
        for text in ("x >= 0 AND x < 5", "x < 5")
    )
    (low, high) = sorted(child.values[0] for child in both.children)  # type: ignore[attr-defined]
    assert 8 <= high - low <= 12
    assert 8 <= upper.values[0] <= 12  # type: ignore[attr-defined]


def test_hot_columns_and_choices() -> None:
    scans = [logged("x = 1")] * 3 + [logged("s > 'a' AND x = 1")] + [logged("f IS NULL")]
    assert hot_columns(scans, FIELDS) == [("x", 4), ("s", 1)]
    found = choices(scans, FIELDS)
    assert found[0] == ("binpack", ())
    assert set(found[1:]) == {
        ("linear", ("x",)), ("linear", ("s",)), ("linear", ("x", "s")),
        ("kdtree", ("x", "s")), ("hilbert", ("x", "s")), ("zorder", ("x", "s")),
    }  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(ROWS, st.data())
def test_a_filter_never_skips_a_simulated_file_that_holds_the_value(
    rows: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    sample = sample_of(rows)
    order = np.array(data.draw(st.permutations(range(len(rows)))), np.int64)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(rows) - 1, 1)), max_size=5)))
    edges = np.array(sorted({0, *(c for c in cuts if c < len(rows)), len(rows)}), np.int64)
    number = data.draw(st.integers(0, len(FIELDS) - 1))
    field, column = FIELDS[number], sample.columns[FIELDS[number].name]
    most = data.draw(st.sampled_from([1, 3, 10**6]))
    tells = SimulatedFilter(
        Filter(field.name, most), column, order, edges, np.diff(edges) * data.draw(st.floats(1, 9))
    )
    held = [row[number] for row in rows if row[number] is not None and row[number] == row[number]]
    absent: Any = {"s": b"zz", "f": 77.5}.get(field.name, 77)
    values = data.draw(st.lists(st.sampled_from([*held, absent]), min_size=1, max_size=4))
    op = Op.EQ if len(values) == 1 else Op.IN
    asked = BoundPredicate(op, BoundReference((field.name,), field.type), tuple(values))
    some = sorted(data.draw(st.sets(st.integers(0, len(edges) - 2), min_size=1)))
    skipped = tells.never(asked, np.array(some, np.int64))
    if skipped is None:
        return
    for place, file in enumerate(some):
        piece = [rows[i][number] for i in order[edges[file] : edges[file + 1]]]
        assert not skipped[place] or not set(piece) & set(values)
        assert not skipped[place] or len({v for v in piece if v is not None and v == v}) <= most


def filtered(values: list[int], most: int = 10**6, whole: int = 0) -> Any:
    """A layout by ``y`` of rows whose column ``x`` has a filter; 10 files."""
    count = len(values)
    rng = np.random.default_rng(1)
    columns = {"x": values, "y": rng.permutation(count).tolist()}
    sample = RowSample(
        ("file:///t/0",),
        np.zeros(count, np.int64),
        {name: sampled_column(BIGINT, pa.array(v, pa.int64())) for name, v in columns.items()},
        whole,
    )
    return simulate(plan_of(1, 10, ("y",)), sample, layout("linear", 1), (Filter("x", most),))


def kept_files(new: Any, text: str) -> float:
    fields = (Field("x", BIGINT), Field("y", BIGINT))
    files: float = new.sum_kept(new.never(bind(parse_where(text)[0], fields, (), TRINO)))[0]
    return files


def test_filters_of_ids_of_frequent_and_of_rare_values() -> None:
    ids = filtered(list(range(1000)), whole=100_000)
    assert kept_files(ids, "x = 7") == 1
    assert kept_files(ids, "x IN (7, 8, 9)") <= 3
    assert kept_files(ids, "x = 7000") == 0  # bounds
    assert kept_files(filtered([2 * v for v in range(1000)]), "x = 7") == 1  # not sampled
    assert kept_files(ids, "x = 7 AND y < 100") <= 1
    assert kept_files(ids, "x = 7 OR x = 8") <= 2
    assert kept_files(ids, "x > 7") == 10
    # New files of so many rows hold more ids than a filter.
    assert kept_files(filtered(list(range(1000)), most=5000, whole=100_000), "x = 500") == 10
    often = filtered([v % 2 for v in range(1000)], most=5, whole=100_000)
    assert kept_files(often, "x = 1") == 10
    seldom = filtered([v % 200 for v in range(1000)], whole=100_000)
    assert kept_files(seldom, "x = 100") == 10  # 500 rows somewhere


def test_columns_that_a_filter_answers_come_last() -> None:
    scans = [logged("x = 1")] * 3 + [logged("s > 'a' AND x = 1")] + [logged("f > 1")] * 2
    assert hot_columns(scans, FIELDS, {"x"}) == [("f", 2), ("s", 1), ("x", 4)]
    assert hot_columns([*scans, *[logged("x > 1")] * 3], FIELDS, {"x"})[0] == ("x", 7)
    assert ("linear", ("f", "s")) in choices(scans, FIELDS, {"x"})


def test_partitions_are_spread() -> None:
    names = [f"p{i:02}" for i in range(13)]
    assert sorted(_spread(names)) == names and _spread(names)[:3] == ["p00", "p08", "p04"]
    assert _spread(["a"]) == ["a"] and _spread([]) == []


def test_rows_are_read_from_files(tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": pa.array([3, None, 1] * 1000, pa.int32()),
            "S": ["b", None, "a"] * 1000,
            "day": pa.array([dt.date(1970, 1, 3)] * 3000),
            "at": pa.array([dt.datetime(1970, 1, 1, 0, 0, 1)] * 3000, pa.timestamp("ns")),
            "ok": [True, False, None] * 1000,
            "d": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("-2.5")] * 1000),
        }
    )
    path = tmp_path / "a"
    pq.write_table(table, path, row_group_size=100)
    (tmp_path / "broken").write_bytes(b"PAR1 no PAR1")
    wanted = [
        Field("X", BIGINT), Field("s", STRING), Field("day", DATE), Field("at", TIMESTAMP),
        Field("ok", BOOLEAN), Field("d", of(9, 2)), Field("later", DOUBLE),
    ]  # fmt: skip
    files = [
        SampledFile(f"file://{tmp_path}/{name}", (tmp_path / name).stat().st_size, 3000)
        for name in ("a", "broken")
    ]
    found = read_sample(open_storage(), files, wanted, 1200)
    assert found.paths == (f"file://{path}",) and 300 <= len(found) <= 1500
    assert set(found.columns["x"].values.to_pylist()) <= {3, 1, None}
    assert found.columns["s"].distinct.to_pylist() == [b"a", b"b"]
    assert found.columns["day"].distinct.to_pylist() == [2]
    assert found.columns["at"].distinct.to_pylist() == [1_000_000]
    assert found.columns["ok"].distinct.to_pylist() == [0, 1]
    assert found.columns["d"].distinct.to_pylist() == [-250, 150]
    assert found.columns["later"].values.null_count == len(found)


def test_values_of_other_types_are_not_guessed() -> None:
    with pytest.raises(pa.ArrowInvalid):
        canonical_values(pa.chunked_array([["a"]]), BIGINT)
