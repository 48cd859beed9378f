"""Dynamic filters: those on partition keys prune names before anything is fetched or listed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bridge.expression.nodes import Expression
from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import BIGINT, INTEGER, STRING, Type, decimal
from bridge.planner import dynamic_filter_wait
from bridge.planner.dynamic_filter_wait import FilterWait, filter_wait
from bridge.planner.request import ScanRequest
from bridge.planner.splits.coalesce import SplitSettings
from bridge.planner.splits.source import SplitSource
from bridge.table.model import CatalogTable, Column, Partition, PartitionBatch
from tests.support.lake import NAME, Fetch, Lake, kept, owned

DAYS = 200


def where(text: str) -> Expression:
    expression, dropped = parse_where(text)
    assert not dropped
    return expression


class Watched(Lake):
    """Notes what is fetched and listed; fetches in batches of ten."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fetched: list[str] = []
        self.named = 0

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        self.named += 1
        return super().partition_names(table, age)

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> Fetch:
        known = {self.name_of(values): values for values in self.partition_values}

        def batches() -> list[PartitionBatch]:
            made = []
            for begin in range(0, len(names), 10):
                some = [n for n in names[begin : begin + 10] if n in known]
                found = [Partition(n, known[n], self._uri(self.directory(known[n]))) for n in some]
                made.append(PartitionBatch(tuple(found)))
            return made

        return _Noted(batches(), self.fetched)


class _Noted(Fetch):
    def __init__(self, batches: list[PartitionBatch], fetched: list[str]) -> None:
        super().__init__(batches)
        self._fetched = fetched

    def __iter__(self) -> _Noted:  # type: ignore[override]
        return self

    def __next__(self) -> PartitionBatch:
        batch = super().__next__()
        self._fetched += [p.name for p in batch.partitions]
        return batch


def by_day(root: Path, kind: Type = INTEGER, days: int = DAYS) -> Watched:
    """One file of ten rows per day, and one partition of no day."""
    lake = Watched(root, (Column("x", BIGINT), Column("s", STRING)), (Column("d", kind),))
    lake.partition_values = [(str(day),) for day in range(days)] + [(None,)]
    for number, values in enumerate(lake.partition_values):
        rows = {"x": [number * 10 + i for i in range(10)], "s": ["a"] * 10}
        lake.write("f.parquet", rows, values)
    lake.build()
    lake.fetched.clear()
    return lake


@pytest.fixture
def lake(tmp_path: Path) -> Watched:
    return by_day(tmp_path)


KEYED = frozenset({"d"})


@pytest.mark.parametrize("freshness", ["live", "snapshot"])
@pytest.mark.parametrize("announced", [frozenset(), KEYED])
def test_a_filter_on_a_key_prunes_names_before_the_fetch(
    lake: Watched, freshness: str, announced: frozenset[str]
) -> None:
    request = ScanRequest(NAME, freshness=freshness, dynamic_filter_columns=announced)
    plan = lake.planner().plan(request)
    found = owned(plan, where("d IN (7, 50, 199, 4000)"), after=-1)
    assert {name for name, _ in found} == {"d=7", "d=50", "d=199"}
    assert lake.fetched == ["d=7", "d=50", "d=199"]
    stages = [(s.name, s.index, s.total, s.kept) for s in plan.report().stages]
    assert stages[:2] == [
        ("partitions", "values", DAYS + 1, DAYS + 1),
        ("partitions", "dynamic-filters", DAYS + 1, 3),
    ]


def test_a_late_filter_prunes_the_partitions_that_follow(lake: Watched) -> None:
    plan = lake.planner().plan(ScanRequest(NAME, dynamic_filter_columns=KEYED))
    found = owned(plan, where("d = 190"), after=2)
    assert "d=190" in {name for name, _ in found}
    assert len(found) <= 31 and len(lake.fetched) <= 41
    report = plan.report()
    filtered = next(s for s in report.stages if s.name == "partitions" and s.index != "values")
    assert filtered.total == DAYS + 1 and filtered.kept <= 31


def test_filters_that_arrive_one_after_another_are_all_applied(lake: Watched) -> None:
    plan = lake.planner().plan(ScanRequest(NAME, dynamic_filter_columns=KEYED))
    plan.apply_dynamic_filter(where("d >= 100"))
    plan.apply_dynamic_filter(where("x >= 1500 AND d < 152"))
    found = {name for batch in plan.batches() for name in _names(plan.refine(batch))}
    assert found == {"d=150", "d=151"}
    assert len(lake.fetched) == 52


def _names(batch: object) -> list[str]:
    return [batch.partitions[i].name for i in batch.partition.tolist()]  # type: ignore[attr-defined]


def test_the_null_partition_stays_for_a_filter_that_keeps_nulls(lake: Watched) -> None:
    plan = lake.planner().plan(ScanRequest(NAME, dynamic_filter_columns=KEYED))
    found = owned(plan, where("d = 3 OR d IS NULL"), after=-1)
    assert {name for name, _ in found} == {"d=3", "d=__HIVE_DEFAULT_PARTITION__"}


def test_a_key_that_does_not_parse_stays(tmp_path: Path) -> None:
    lake = Watched(tmp_path, (Column("x", BIGINT),), (Column("d", INTEGER),))
    lake.partition_values = [("1",), ("abc",), ("02",)]
    for values in lake.partition_values:
        lake.write("f.parquet", {"x": [1]}, values)
    plan = lake.planner().plan(ScanRequest(NAME, dynamic_filter_columns=KEYED))
    assert {n for n, _ in owned(plan, where("d = 2"), after=-1)} == {"d=abc", "d=02"}


def test_wide_decimal_keys_prune_names(tmp_path: Path) -> None:
    lake = by_day(tmp_path, decimal(30, 2), days=5)
    assert {u.split("/")[-2] for u in kept(lake.planner(), where("d = 3"))} == {"d=3"}
    assert lake.fetched == ["d=3"]


def test_a_filter_on_data_leaves_names_alone(lake: Watched) -> None:
    plan = lake.planner().plan(ScanRequest(NAME, dynamic_filter_columns=frozenset({"x"})))
    found = owned(plan, where("x = 77"), after=-1)
    assert {name for name, _ in found} == {"d=7"}
    assert len(lake.fetched) == DAYS + 1


@pytest.mark.parametrize("announced", [frozenset({"x"}), KEYED])
def test_nothing_is_fetched_before_splits_are_asked_for(
    lake: Watched, announced: frozenset[str]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        plan = lake.planner().plan(ScanRequest(NAME, dynamic_filter_columns=announced))
        source = SplitSource(plan, pool, SplitSettings())
        pool.submit(lambda: None).result(10)
        pool.submit(lambda: None).result(10)
        if announced == KEYED:
            assert lake.fetched == []
        plan.apply_dynamic_filter(where("d = 5"))
        paths: list[str] = []
        token, finished = 0, False
        while not finished:
            batch = source.next(token, 100, 10.0)
            token, finished = batch.next_token, batch.finished
            paths += batch.splits.paths.to_pylist() if batch.splits is not None else []
        assert [p.split("/")[-2] for p in paths] == ["d=5"]
        if announced == KEYED:
            assert lake.fetched == ["d=5"]
        source.close()


def test_a_wait_pays_by_what_a_filter_can_save(
    lake: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advice(*columns: str, text: str = "true", **request: object) -> FilterWait:
        asked = ScanRequest(
            NAME,
            where(text),
            dynamic_filter_columns=frozenset(columns),
            **request,  # type: ignore[arg-type]
        )
        return filter_wait(lake.planner().plan(asked).context)

    wait = advice("d")
    assert wait.columns == ("d",) and wait.millis > 0
    assert advice("d", "x", "nope", "$path").columns == ("d", "x")
    assert advice() == FilterWait()
    assert advice("s") == FilterWait()  # every file holds the same text
    assert advice("d", text="d = 3") == FilterWait()  # one file is left: read it
    assert advice("d", pruning=False) == FilterWait()
    assert advice("d", limit=10) == FilterWait()

    # Rows of files that no filter skips, enough of them to pay for the wait.
    monkeypatch.setattr(dynamic_filter_wait, "_SECONDS_PER_ROW", 1.0)
    assert advice("s").columns == () and advice("s").millis > 0
    assert advice("d").columns == ("d",)
    assert advice("s", text="d = -1") == FilterWait()  # no row is left
    assert advice("s", limit=10) == FilterWait()

    bare = Watched(tmp_path / "bare", (Column("x", BIGINT),), (Column("d", INTEGER),))
    bare.partition_values = [("1",), ("2",)]
    asked = ScanRequest(NAME, dynamic_filter_columns=frozenset({"d", "x"}))
    unknown = filter_wait(bare.planner().plan(asked).context)
    assert unknown.columns == ("d",) and unknown.millis > 0


def test_a_wait_is_longer_beside_other_queries() -> None:
    wait = FilterWait(500, ("d",))
    assert [wait.beside(queries) for queries in (0.5, 1, 4)] == [
        wait,
        wait,
        FilterWait(2_000, ("d",)),
    ]
    assert wait.beside(1e6).millis == 20_000
    assert FilterWait().beside(100) == FilterWait()
