"""The law over real ORC files: written, indexed by a scan, pruned, and scanned by rows.

Files differ in what Hive may trip over: columns in another order, under other names or without
names, in narrower types, or missing. Hive finds a column by its place or by its name, as it is set
up: a file may only be skipped if neither way finds a matching row.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.orc as po
import pytest
from hypothesis import HealthCheck, given, settings

from bridge.expression.bind import bind
from bridge.expression.evaluate import Oracle, Row
from bridge.expression.nodes import BoundExpression
from bridge.expression.prune import prune
from bridge.expression.statistics import Mask
from bridge.index.kinds.evaluate_indexes import never
from bridge.index.kinds.kind import Ordinals
from bridge.index.kinds.registry import kind
from bridge.kernel.types import BIGINT, HIVE, INTEGER, SMALLINT, TINYINT, Field, Kind
from bridge.planner.file_pruner import FilePruner, Index
from bridge.table.model import Column
from tests.support.arrow import arrow_column, arrow_type
from tests.support.lake import Lake, age
from tests.support.strategies import Case, Table, cases, expression, table

FILES, PREDICATES = 8, 12
NARROWER = {SMALLINT: TINYINT, INTEGER: SMALLINT, BIGINT: INTEGER}
_DATED = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ)
asked: Counter[str] = Counter()


@dataclass
class OrcLake(Lake):
    format: str = "orc"

    def write_orc(self, name: str, arrays: Sequence[pa.Array], names: Sequence[str]) -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        po.write_table(pa.table(list(arrays), names=list(names)), str(path), stripe_size=64 * 1024)
        age(path)


@dataclass
class Written:
    """What a file holds by the table's column, as it is found by place and by name."""

    by_place: list[Row]
    by_name: list[Row]


def write(lake: OrcLake, name: str, data: Table, rows: list[Row], rng: random.Random) -> Written:
    columns = list(data.columns)
    layout = rng.choice(("same", "same", "same", "swapped", "nameless", "missing", "renamed"))
    if layout == "swapped":
        rng.shuffle(columns)
    elif layout == "missing" and len(columns) > 1:
        columns = columns[:-1]
    names = [c.name for c in columns]
    if layout == "nameless":
        names = [f"_col{i}" for i in range(len(names))]
    elif layout == "renamed":
        names[0] = "other"
    elif layout == "same" and rng.random() < 0.3:
        names = [n.upper() for n in names]
    arrays = []
    for column in columns:
        array = arrow_column(column, rows)
        narrower = NARROWER.get(column.type)
        if narrower is not None and rng.random() < 0.3:
            with contextlib.suppress(pa.ArrowInvalid):
                array = array.cast(arrow_type(narrower))
        arrays.append(array)
    lake.write_orc(name, arrays, names)
    by_place, by_name = [], []
    for row in rows:
        stored = [row[leaf(c)] for c in columns]
        placed: Row = {}
        named: Row = {}
        for i, c in enumerate(data.columns):
            same = i < len(columns) and columns[i].type == c.type
            placed[leaf(c)] = stored[i] if same else None
            at = next((j for j, n in enumerate(names) if n == c.name), None)
            named[leaf(c)] = None if at is None else stored[at]
        by_place.append(placed)
        by_name.append(placed if layout == "nameless" else named)
    return Written(by_place, by_name)


def ask(index: Index, expression: BoundExpression, ordinals: Ordinals) -> Mask | None:
    return index.never(expression, ordinals) if index.concerns(expression) else None


def leaf(column: Field) -> tuple[str, ...]:
    """The path of what a predicate may name: the last column of a table is a struct."""
    return (column.name, *(f.name for f in column.type.fields))


@settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases())
def test_the_law_holds_of_orc_files_found_by_place_and_by_name(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    rng = case.rng()
    # Two columns of a type, so that one may stand in the other's place.
    data = table(rng, (*case.types[:2], *case.types), FILES)
    lake = OrcLake(
        tmp_path_factory.mktemp("orc"),
        tuple(Column(c.name, c.type) for c in data.columns),
        recursive=True,
    )
    kept: list[Written] = []
    for i, rows in enumerate(data.files):
        try:
            kept.append(write(lake, f"f{i}", data, rows, rng))
        except (pa.ArrowException, OSError):  # a time that ORC's writer does not take
            rows = [
                {p: None if t.kind in _DATED else row[p] for p, t in data.paths.items()}
                for row in rows
            ]
            kept.append(write(lake, f"f{i}", data, rows, rng))
    wanted = [
        kind(name).define(c.name)
        for c in data.columns
        for name in ("values", "bloom")
        if not c.type.is_nested
    ]
    assert not lake.build(settings=lambda held: held.adding(wanted)).failed
    serving = lake.snapshot()
    pruner = FilePruner(lake.table(), serving, HIVE)
    kinds = [partial(ask, index) for index in pruner.indexes[1:]]
    statistics = serving.statistics(data.columns, HIVE)
    assert serving.match(lake.listed()).tolist() == list(range(FILES))
    oracle = Oracle(HIVE, data.paths)
    for _ in range(PREDICATES):
        node = expression(rng, data, depth=rng.choice((0, 1, 2)))
        bound = bind(node, data.columns, (), HIVE)
        answers = prune(bound, statistics, HIVE)
        always = answers.always
        by_kinds = never(bound, serving.all_ordinals, kinds)
        for i, written in enumerate(kept):
            for rows in (written.by_place, written.by_name):
                truth = [oracle.truth(node, row) is True for row in rows]
                assert not (answers.never[i] and any(truth)), (node, rows)
                assert not (by_kinds[i] and any(truth)), (node, rows)
                assert not (always[i] and not all(truth)), (node, rows)
        asked["pairs"] += FILES
        asked["never"] += int(answers.never.sum())
        asked["kinds"] += int(by_kinds.sum())


def test_it_was_asked_and_pruning_did_happen() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["never"] > asked["pairs"] // 20
    assert asked["kinds"] > asked["pairs"] // 40
