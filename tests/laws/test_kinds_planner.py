"""The law asked of the whole planner with kinds: partitions, hidden columns, dynamic filters, files
that change under the index. Only the index differs from `tests.behaviour.test_planner_law`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from bridge.expression.function_catalog import call
from bridge.expression.nodes import BoundCall, BoundReference, Predicate, Reference
from bridge.expression.parsing.text import parse_call, parse_where
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kind
from bridge.kernel.types import STRING
from bridge.planner.request import ScanRequest
from tests.support.planner_world import MODES, World
from tests.support.strategies import Case, cases

asked: Counter[str] = Counter()


@settings(deadline=None, max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases())
def test_no_matching_file_is_lost(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    world = World.make(case, tmp_path_factory.mktemp("kinds"))
    columns = [".".join(p) for p in world.data.paths if p[0].startswith("c")]
    # One kind a column: where values are listed a filter has nothing left to say.
    definitions = [kind(world.rng.choice(("values", "bloom", "bloom"))).define(c) for c in columns]

    # What min/max has taken out no filter is asked about.
    unbounded = columns[: world.rng.choice((1, len(columns)))]

    def wanted(held: IndexSettings) -> IndexSettings:
        return held.adding(definitions).with_modes(dict.fromkeys(unbounded, "none"))

    planner = world.lake.planner()
    world.lake.build(settings=wanted)
    for step in range(8):
        node = world.predicate()
        mode = MODES[step % 3] if step < 5 else "live"  # the others are told what is stale
        world.check(planner, node, world.predicate(), mode)
        plan = planner.plan(ScanRequest(world.lake.table().name, node, semantics=case.semantics))
        list(plan.batches())
        report = plan.report()
        assert not [
            n for n in report.not_used if n.reason in ("INDEX_CORRUPT", "INDEX_KIND_FAILED")
        ]
        for stage in report.stages:
            asked[stage.index] += stage.total - stage.kept
        if step == 4:  # a file that the index knows in another state is read
            path = Path(min(uri for _, uri in world.rows).removeprefix("file://"))
            lake = world.lake
            values = next(v for v in lake.owners(path) if lake.directory(v) == path.parent)
            world.write(path.name, world.data.files[-1], values)
    planner.lister.close()


def test_kinds_did_prune() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["values"] > 20 and asked["bloom"] > 20, asked


def test_calls_are_never_taken_for_columns() -> None:
    """Whatever a column is called, a function of another is not it."""
    parsed, _ = parse_where("lower(c) = 'x'")
    assert isinstance(parsed, Predicate)
    call: Any = parsed.reference
    assert call.path[0] == "" and call != type(call).__base__(call.path)
    bound = BoundCall(call.path, STRING, False, "lower", ())
    assert bound != BoundReference(call.path, STRING)


def test_functions_of_two_columns_never_have_one_text() -> None:
    """Indexes of functions are found by their text, in which a column may have any name."""
    field, column = Reference(("a b", "c d")), Reference(('a b"."c d',))
    texts = [found.text for one in (field, column) if (found := call("lower", [one]))]
    assert texts == ['lower("a b"."c d")', 'lower("a b"".""c d")']
    for text, one in zip(texts, (field, column), strict=True):
        parsed = parse_call(text)
        assert parsed is not None and parsed.arguments == (one,)
