"""LIMIT, top-N and answers over real files: what is left out, and what stops that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.expression.nodes import Expression
from bridge.expression.parsing.text import parse_where
from bridge.kernel.errors import TableChanged
from bridge.kernel.types import DOUBLE, INTEGER, STRING, TIMESTAMP
from bridge.planner.answers.aggregate_pushdown import AggregateResult, aggregate
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest, SortKey
from bridge.table.model import Column
from tests.support.lake import NAME, Lake


def where(text: str) -> Expression:
    expression, _ = parse_where(text)
    return expression


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """In partition p = 1 .. 4 file i of 3 holds x from 100 p + 10 i on, ten rows."""
    made = Lake(
        tmp_path,
        (Column("x", INTEGER), Column("s", STRING), Column("d", DOUBLE), Column("t", TIMESTAMP)),
        (Column("p", INTEGER),),
    )
    made.partition_values = [(str(p),) for p in range(1, 5)]
    for p in range(1, 5):
        for i in range(3):
            # Without text bounds in the footer the build reads the text, and knows them exactly.
            made.write(
                f"{i}.parquet", rows(100 * p + 10 * i), (str(p),), write_statistics=["x", "d", "t"]
            )
    made.build(nan="scan")
    return made


def rows(start: int, x: list[int | None] | None = None) -> pa.Table:
    values = list(range(start, start + 10)) if x is None else x
    return pa.table(
        {
            "x": pa.array(values, pa.int32()),
            "s": pa.array([None if v is None else f"s{v}" for v in values], pa.string()),
            "d": pa.array([None if v is None else v / 2 for v in values], pa.float64()),
            "t": pa.array(list(values), pa.timestamp("us")),
        }
    )


def names(planner: Planner, text: str = "true", **request: Any) -> list[str]:
    """Files of a plan in its order, as p/i."""
    plan = planner.plan(ScanRequest(NAME, where(text), **request))
    found = [uri for batch in plan.batches() for uri in batch.files.paths.to_pylist()]
    report = plan.report()
    assert report.complete and report.files_kept == len(found)
    return ["/".join(uri.split("/")[-2:]).removesuffix(".parquet")[2:] for uri in found]


def ask(
    planner: Planner, *aggregates: str, by: tuple[str, ...] = (), text: str = "true", **request: Any
) -> AggregateResult:
    plan = planner.plan(ScanRequest(NAME, where(text), **request))
    parts = [a.partition(" ") for a in aggregates]
    question = AggregateRequest(
        tuple(Aggregate(f, plan.context.resolve(c) if c else None) for f, _, c in parts),
        tuple(plan.context.resolve(c) for c in by),
    )
    return aggregate(plan, question)


def test_a_limit_takes_one_file_that_suffices(lake: Lake) -> None:
    planner = lake.planner()
    assert len(names(planner, limit=10)) == 1
    assert len(names(planner, limit=11)) == 2
    assert len(names(planner, limit=120)) == 12
    assert len(names(planner, limit=1000)) == 12


def test_a_limit_counts_only_on_files_that_match_as_a_whole(lake: Lake) -> None:
    planner = lake.planner()
    assert names(planner, "x >= 210 AND p = 2", limit=10) in (["2/1"], ["2/2"])
    assert names(planner, "x >= 215 AND p = 2", limit=10) == ["2/2"]
    assert sorted(names(planner, "x >= 215 AND p = 2", limit=15)) == ["2/1", "2/2"]
    assert len(names(planner, "s LIKE '%1'", limit=1)) == 12


def test_without_pruning_and_without_an_index_a_limit_leaves_nothing_out(lake: Lake) -> None:
    assert len(names(lake.planner(), limit=1, pruning=False)) == 12
    for file in lake.path(".skipbridge").rglob("*.json"):
        file.unlink()
    assert len(names(lake.planner(), limit=1)) == 12


def test_a_limit_does_not_narrow(lake: Lake) -> None:
    plan = lake.planner().plan(ScanRequest(NAME, limit=10))
    (batch,) = plan.batches()
    plan.apply_dynamic_filter(where("x > 1000"))
    assert len(plan.refine(batch).files) == 1


@pytest.mark.parametrize(
    ("key", "limit", "expected"),
    [
        (SortKey("x", descending=True), 10, ["4/2"]),
        (SortKey("x", descending=True), 11, ["4/2", "4/1"]),
        (SortKey("x"), 20, ["1/0", "1/1"]),
        (SortKey("d"), 5, ["1/0"]),
        (SortKey("t", descending=True), 1, ["4/2"]),
        (SortKey("p", descending=True), 5, ["4/0", "4/1", "4/2"]),
        (SortKey("p"), 31, ["1/0", "1/1", "1/2", "2/0", "2/1", "2/2"]),
        (SortKey("$path"), 3, ["1/0"]),
        (SortKey("x"), 500, None),
    ],
)
def test_top_n_keeps_what_may_be_first(
    lake: Lake, key: SortKey, limit: int, expected: list[str] | None
) -> None:
    found = names(lake.planner(), limit=limit, order=(key,))
    if expected is None:
        assert len(found) == 12
    elif key.column == "p":
        assert sorted(found) == expected
    else:
        assert found == expected


def test_top_n_with_nulls_and_files_the_index_does_not_know(lake: Lake) -> None:
    planner = lake.planner()
    lake.write("nulls.parquet", rows(0, [None] * 10), ("1",))
    lake.build(nan="scan")
    lake.write("new.parquet", rows(5000), ("3",))
    first = names(planner, limit=10, order=(SortKey("x", True, nulls_first=True),))
    assert set(first) == {"1/nulls", "3/new"}
    last = names(planner, limit=10, order=(SortKey("x", True),))
    assert set(last) == {"4/2", "3/new"}
    assert len(names(planner, limit=125, order=(SortKey("x", True),))) == 14


def test_answers(lake: Lake) -> None:
    planner = lake.planner()
    found = ask(planner, "count", "count x", "min x", "max x", "min s", "max s", "min d", "max p")
    assert found.rows == ((120, 120, 100, 429, b"s100", b"s429", 50.0, 4),)
    assert found.enforced and found.files == 12


def test_answers_by_partition(lake: Lake) -> None:
    planner = lake.planner()
    found = ask(planner, "count", "max x", by=("p",))
    assert found.rows == tuple((p, 30, 100 * p + 29) for p in range(1, 5))
    assert ask(planner, by=("p",)).rows == ((1,), (2,), (3,), (4,))
    found = ask(planner, "count", by=("$partition",), text="p > 2")
    assert found.rows == ((b"p=3", 30), (b"p=4", 30))
    assert ask(planner, "count", by=("x",)).reason == "GROUPING"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("p = 2", 30),
        ("p IN (1, 4)", 60),
        ("x >= 400", 30),
        ("x >= 110 AND x < 120", 10),
        ("x IS NOT NULL", 120),
        ("x > 10000", 0),
        ("p = 7", 0),
        ("x >= 405", None),
        ("s LIKE '%1'", None),
        ("p = 2 AND s LIKE '%1'", None),
    ],
)
def test_answers_under_a_predicate(lake: Lake, text: str, count: int | None) -> None:
    found = ask(lake.planner(), "count", text=text)
    if count is None:
        assert (found.rows, found.enforced, found.reason) == (None, False, "NOT_ENFORCED")
    else:
        assert found.rows == ((count,),) and found.enforced


def test_an_empty_table_has_answers(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", INTEGER),))
    lake.build()
    found = ask(lake.planner(), "count", "min x")
    assert found.rows == ((0, None),)
    assert ask(lake.planner(), "count", by=()).rows == ((0,),)


def test_what_is_not_exact_is_not_answered(lake: Lake) -> None:
    planner = lake.planner()
    lake.write("new.parquet", rows(5000), ("1",))
    assert ask(planner, "count").reason == "UNKNOWN_FILES"
    assert ask(planner, "count", text="p = 2").rows == ((30,),)
    lake.build(nan="scan")
    assert ask(planner, "count", "max x").rows == ((130, 5009),)
    nan = pa.table({"x": pa.array([1], pa.int32()), "d": pa.array([float("nan")])})
    lake.write("nan.parquet", nan, ("1",))
    lake.build(nan="scan")
    assert ask(planner, "min d").reason in ("NAN", "NOT_EXACT")
    assert ask(planner, "count d").rows == ((131,),)
    assert ask(planner, "count", pruning=False).reason == "DISABLED"


def test_footers_do_not_tell_exact_text_but_another_file_may(lake: Lake) -> None:
    """Rule 3: writers cut long text; a blurred bound inside of an exact one does no harm."""
    planner = lake.planner()
    lake.write("cut.parquet", rows(0, [150]), ("1",))
    lake.build(nan="footer")
    assert ask(planner, "min s", "max s").rows == ((b"s100", b"s429"),)
    lake.write("cut2.parquet", rows(0, [999]), ("1",))
    lake.build(nan="footer")
    assert ask(planner, "min s").rows == ((b"s100",),)
    assert ask(planner, "max s").reason == "NOT_EXACT"


def test_an_enforced_predicate_that_no_longer_holds_is_an_error(lake: Lake) -> None:
    planner = lake.planner()
    assert ask(planner, text="x >= 400", query_id="q").enforced
    assert len(names(planner, "x >= 400", query_id="q", enforced=True)) == 3
    lake.write("new.parquet", rows(395), ("4",))
    # The pinned file set is what was answered for.
    assert len(names(planner, "x >= 400", query_id="q", enforced=True)) == 3
    with pytest.raises(TableChanged, match=r"db\.t was written to"):
        names(planner, "x >= 400", query_id="another", enforced=True)


def count_listings(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of partitions of each listing."""
    listed: list[int] = []
    each = planner.lister.each

    def counted(partitions: Any, *rest: Any, **named: Any) -> Any:
        listed.append(len(partitions))
        return each(partitions, *rest, **named)

    monkeypatch.setattr(planner.lister, "each", counted)
    return listed


def test_nothing_is_listed_where_less_tells(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = lake.planner()
    listed = count_listings(planner, monkeypatch)
    for text in ("p = 2", "p IN (1, 9)", "\"$partition\" = 'p=3'", "p = 2 OR p IS NULL"):
        assert ask(planner, text=text).enforced, text
    for text in ("x >= 405", "p = 2 AND x >= 215", "s LIKE '%1'"):
        assert not ask(planner, "count", text=text).enforced, text
    assert ask(planner, "max x", by=("x",)).reason == "GROUPING"
    for file in lake.path(".skipbridge").rglob("*.json"):
        file.unlink()
    bare = lake.planner()
    also = count_listings(bare, monkeypatch)
    assert ask(bare, "count").reason == "NO_INDEX"
    found = ask(bare, "count", text="p = 2")
    assert (found.enforced, found.reason) == (True, "NO_INDEX")
    assert not listed and not also


def test_scans_of_a_query_list_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = lake.planner()
    listed = count_listings(planner, monkeypatch)
    assert ask(planner, "count", query_id="q").rows == ((120,),)
    assert len(names(planner, query_id="q")) == 12
    assert len(names(planner, query_id="q", limit=5)) == 1
    assert sum(listed) == 4


def test_a_limit_of_a_plain_directory_lists_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file is looked at in place of them all; if it is not as the index knows it, all are."""
    lake = Lake(tmp_path, (Column("x", INTEGER),))
    for i in range(5):
        values = pa.array(range(i * 10, i * 10 + 10), pa.int32())
        lake.write(f"{i}.parquet", pa.table({"x": values}))
    lake.build()
    planner = lake.planner()
    listed = count_listings(planner, monkeypatch)
    assert len(names(planner, limit=5)) == 1
    assert len(names(planner, "x >= 20", limit=15)) == 2
    assert not listed
    plan = planner.plan(ScanRequest(NAME, limit=5))
    (batch,) = plan.batches()
    report = plan.report()
    assert [(s.index, s.total, s.kept) for s in report.stages] == [("index", 5, 5), ("limit", 5, 1)]
    chosen = Path(batch.files.paths[0].as_py().removeprefix("file://"))
    lake.write(chosen.name, pa.table({"x": pa.array([1], pa.int32())}))
    found = names(planner, limit=5)
    assert listed and len(found) == 1 and not found[0].endswith(chosen.stem)
    for file in (tmp_path / "t").glob("*.parquet"):
        file.unlink()
    assert names(planner, limit=5) == []
