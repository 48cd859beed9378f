"""The law over real files: random tables written as Parquet, indexed, pruned, scanned by rows."""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from index_lake import Lake

from bridge.expression import prune as prune_module
from bridge.expression import quantised_bounds
from bridge.expression.bind import bind
from bridge.expression.evaluate import Oracle
from bridge.expression.nodes import BoundReference
from bridge.expression.prune import prune
from bridge.index import local_cache
from bridge.types import Field, Kind, Type

sys.path.insert(0, str(Path(__file__).parents[2] / "laws"))
from strategies import Case, Table, cases, expression, table

FILES, PREDICATES = 8, 12
asked: Counter[str] = Counter()

_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMP_TZ: pa.timestamp("us", "UTC"),
    Kind.BINARY: pa.binary(),
}


def arrow_type(kind: Type) -> pa.DataType:
    if kind.kind is Kind.DECIMAL:
        return pa.decimal128(kind.precision, kind.scale)
    if kind.kind is Kind.STRUCT:
        return pa.struct([(f.name, arrow_type(f.type)) for f in kind.fields])
    return pa.string() if kind.is_text else _ARROW[kind.kind]


def arrow_array(values: list[Any], kind: Type) -> pa.Array:
    target = arrow_type(kind)
    if kind.kind is Kind.DECIMAL:
        exact = [None if v is None else _scaled(v, kind.scale) for v in values]
        return pa.array(exact, target)
    if kind.kind is Kind.DATE:
        return pa.array(values, pa.int32()).cast(target)
    if kind.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_TZ):
        return pa.array(values, pa.int64()).cast(target)
    if kind.is_text:
        return pa.array([None if v is None else v.decode("utf-8", "strict") for v in values])
    return pa.array(values, target)


def _scaled(unscaled: int, scale: int) -> Decimal:
    digits = tuple(int(d) for d in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))  # scaleb would round to 28 digits


def arrow_table(data: Table, rows: list[Any], rng: random.Random | None = None) -> pa.Table:
    """A file of these rows.

    Args:
        rng: for a file that is not as the table says: columns in another order or another case,
            columns missing that are all NULL here, others that the table does not have.
    """
    columns = {c.name: _column(c, rows) for c in data.columns}
    if rng is None:
        return pa.table(columns)
    for column in data.columns:
        paths = [path for path in data.paths if path[0] == column.name]
        if rng.random() < 0.6 and all(row[path] is None for row in rows for path in paths):
            del columns[column.name]
    if rng.random() < 0.3 or not columns:
        model = rng.choice(data.columns)
        path = next(path for path in data.paths if path[0] == model.name)
        foreign = [{path: rng.choice(data.pools[path])} for _ in rows]
        columns["foreign"] = _column(model, foreign)
    named = [(_recased(rng, n), _renamed(rng, values)) for n, values in columns.items()]
    rng.shuffle(named)
    return pa.table([values for _, values in named], names=[name for name, _ in named])


def _recased(rng: random.Random, name: str) -> str:
    return name.upper() if rng.random() < 0.2 else name


def _renamed(rng: random.Random, values: pa.Array) -> pa.Array:
    if not pa.types.is_struct(values.type):
        return values
    return pa.StructArray.from_arrays([values.field(0)], [_recased(rng, values.type.field(0).name)])


def _column(column: Field, rows: list[Any]) -> pa.Array:
    if column.type.kind is not Kind.STRUCT:
        return arrow_array([row[(column.name,)] for row in rows], column.type).cast(
            arrow_type(column.type)
        )
    (leaf,) = column.type.fields
    values = arrow_array([row[(column.name, leaf.name)] for row in rows], leaf.type)
    return pa.StructArray.from_arrays([values.cast(arrow_type(leaf.type))], [leaf.name])


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
    lake = Lake(tmp_path_factory.mktemp("law"))
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
        serving = lake.serving()
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
        patch.setattr(local_cache, "MANY_FILES", 0)
        patch.setattr(quantised_bounds, "_FEWEST", 1)
        patch.setattr(prune_module, "MANY_FILES", 0)
        patch.setattr(prune_module, "_FEW", 0)
        shutil.rmtree(lake.directory / "cache")
        statistics = lake.serving().statistics(data.columns, case.semantics)
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
