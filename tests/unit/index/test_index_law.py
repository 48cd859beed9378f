"""The law over real files: random tables written as Parquet, indexed, pruned, scanned by rows."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from bridge.expression import prune as prune_module
from bridge.expression.bind import bind
from bridge.expression.evaluate import Oracle
from bridge.expression.nodes import BoundReference
from bridge.expression.prune import prune
from bridge.index.reading.local_cache import CacheLimits
from tests.support.arrow import arrow_table
from tests.support.lake import Lake
from tests.support.strategies import Case, cases, expression, table

FILES, PREDICATES = 8, 12
asked: Counter[str] = Counter()


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases())
def test_the_law_holds_of_footers_and_of_scans(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    rng = case.rng()
    mixed = rng.random() < 0.4
    data = table(rng, case.types, FILES, alike=mixed)
    lake = Lake(tmp_path_factory.mktemp("law"), recursive=True)
    for i, rows in enumerate(data.files):
        names = [c.name for c in data.columns]
        lake.write(
            f"f{i}",
            arrow_table(data, rows, rng if mixed else None),
            row_group_size=rng.choice((1, 2, 100)),
            write_statistics=rng.choice((True, True, False, names[:1])),
            store_decimal_as_integer=rng.random() < 0.5,
        )
    oracle = Oracle(case.semantics, data.paths)
    asks, plain = [], []
    for _ in range(PREDICATES):
        node = expression(rng, data, depth=rng.choice((0, 1, 2)))
        truth = [[oracle.truth(node, row) is True for row in rows] for rows in data.files]
        asks.append((bind(node, data.columns, (), case.semantics), truth, node))
    for nan in ("footer", "scan"):
        lake.build(nan=nan)
        serving = lake.snapshot()
        assert serving.match(lake.listed()).tolist() == list(range(FILES))
        statistics = serving.statistics(data.columns, case.semantics)
        for bound, truth, node in asks:
            answers = prune(bound, statistics, case.semantics)
            always = answers.always
            for i, matched in enumerate(truth):
                assert not (answers.never[i] and any(matched)), (nan, node, data.files[i])
                assert not (always[i] and not all(matched)), (nan, node, data.files[i])
            asked["pairs"] += FILES
            asked[f"never {nan}"] += int(answers.never.sum())
            plain.append(answers.never.tolist())
    with pytest.MonkeyPatch.context() as patch:  # the local form that large tables have
        patch.setattr(prune_module, "MANY_FILES", 0)
        patch.setattr(prune_module, "_FEW", 0)
        shutil.rmtree(lake.root / "cache")
        limits = CacheLimits(cells_from=0, fewest_edges=1)
        statistics = lake.snapshot(limits).statistics(data.columns, case.semantics)
        for (bound, _, node), never in zip(asks, plain[-len(asks) :], strict=True):
            answers = prune(bound, statistics, case.semantics)
            assert answers.never.tolist() == never, (node, data.files)
        columns = [statistics.column(BoundReference((c.name,), c.type)) for c in data.columns]
        asked["with cells"] += sum(c is not None and c.cells is not None for c in columns)


def test_it_was_asked_and_pruning_did_happen() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["never footer"] > asked["pairs"] // 20
    assert asked["never scan"] > asked["never footer"]
    assert asked["with cells"] > 8
