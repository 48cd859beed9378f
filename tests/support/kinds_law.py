"""The law asked of index kinds over real files, with an oracle that is as fast as it is plain.

The oracle of `bridge.expression.evaluate` is asked once for each value that a column holds and each
leaf of a predicate; AND, OR and NOT are then Kleene's over all rows at once.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.bind import bind
from bridge.expression.evaluate import Oracle
from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundExpression,
    BoundPredicate,
    Call,
    Expression,
    Not,
    Or,
    Predicate,
    Reference,
    Unknown,
)
from bridge.expression.prune import prune
from bridge.index.building.draft import SettingsChange
from bridge.index.kinds import evaluate_indexes
from bridge.index.kinds.definition import column_text
from bridge.index.kinds.opened import OpenedKind
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import Kind, Semantics, Type
from tests.support import functions
from tests.support.arrow import arrow_table
from tests.support.lake import Lake
from tests.support.strategies import Case, Table

Truths = npt.NDArray[np.int8]
"""By row: 1 true, 0 false, -1 NULL."""


class RowsOracle:
    """What predicates say of all rows of a table, and of its files."""

    def __init__(self, data: Table, judge: Oracle) -> None:
        self._judge = judge
        rows = [row for file in data.files for row in file]
        sizes = [len(file) for file in data.files]
        self._rows = len(rows)
        self._owner = np.repeat(np.arange(len(sizes)), sizes)
        self._files = len(sizes)
        self._values: dict[tuple[str, ...], list[Any]] = {}
        self._codes: dict[tuple[str, ...], npt.NDArray[np.int64]] = {}
        for path in data.paths:
            codes: dict[str, int] = {}
            values: list[Any] = []
            found = []
            for row in rows:
                code = codes.setdefault(repr(row[path]), len(codes))
                if code == len(values):
                    values.append(row[path])
                found.append(code)
            self._values[path], self._codes[path] = values, np.array(found, np.int64)

    def matching(self, expression: Expression) -> npt.NDArray[np.bool_]:
        """Files with a row that satisfies it."""
        hit = np.zeros(self._files, np.bool_)
        hit[self._owner[self._truths(expression) == 1]] = True
        return hit

    def _truths(self, expression: Expression) -> Truths:
        match expression:
            case And(children):
                return reduce(_and, map(self._truths, children))
            case Or(children):
                return _not(reduce(_and, [_not(self._truths(c)) for c in children]))
            case Not(child):
                return _not(self._truths(child))
            case AlwaysTrue() | Unknown():  # anything may hide there: it may be true of all rows
                return np.ones(self._rows, np.int8)
            case AlwaysFalse():
                return np.zeros(self._rows, np.int8)
            case Predicate():
                path = expression.reference.path
                if isinstance(expression.reference, Call):
                    path = functions._column(expression.reference)
                said = [self._leaf(expression, path, v) for v in self._values[path]]
                coded = np.array([-1 if t is None else int(t) for t in said] or [0], np.int8)
                return coded[self._codes[path]]
        raise AssertionError(expression)

    def _leaf(self, leaf: Predicate, path: tuple[str, ...], value: Any) -> bool | None:
        """What a predicate says of one value of a column, or of a function of it."""
        if not isinstance(leaf.reference, Call):
            return self._judge.truth(leaf, {path: value})
        found, kind = functions.apply(leaf.reference, value, self._judge.types[path])
        plain = Predicate(leaf.op, Reference(("f",)), leaf.literals)
        return Oracle(self._judge.semantics, {("f",): kind}).truth(plain, {("f",): found})


def _and(one: Truths, other: Truths) -> Truths:
    false = (one == 0) | (other == 0)
    null = (one == -1) | (other == -1)
    return np.where(false, 0, np.where(null, -1, 1)).astype(np.int8)


def _not(one: Truths) -> Truths:
    return np.where(one == -1, -1, 1 - one).astype(np.int8)


def write(lake: Lake, data: Table, rng: random.Random) -> None:
    """Files as different writers would have them: narrower types, row groups, filters, units."""
    for i, rows in enumerate(data.files):
        table = arrow_table(data, rows)
        if rng.random() < 0.4:
            table = narrowed(table)
        names = [leaf for leaf in _leaves(table) if rng.random() < 0.5]
        filters = {name: {"ndv": 8, "fpp": 0.1} for name in names if rng.random() < 0.5}
        lake.write(
            f"f{i:04d}",
            table,
            row_group_size=rng.choice((1, 2, 100)),
            write_statistics=rng.choice((True, True, False)),
            store_decimal_as_integer=rng.random() < 0.5,
            bloom_filter_options=filters or None,
        )


def _leaves(table: pa.Table) -> list[str]:
    found = []
    for field in table.schema:
        if pa.types.is_struct(field.type):
            found += [
                f"{field.name}.{f.name}" for f in field.type if not pa.types.is_boolean(f.type)
            ]
        elif not pa.types.is_boolean(field.type):
            found.append(field.name)
    return found


def narrowed(table: pa.Table) -> pa.Table:
    """Columns in a narrower type that holds their values exactly, as files before a widening."""
    for i, field in enumerate(table.schema):
        for target in _NARROWER.get(field.type.id, ()):
            try:
                smaller = table.column(i).cast(target)
            except pa.ArrowInvalid:
                continue
            if smaller.cast(field.type).equals(table.column(i)):
                table = table.set_column(i, field.name, smaller)
                break
        if pa.types.is_decimal128(field.type) and field.type.precision > 18:
            target = pa.decimal128(field.type.precision - 5, max(field.type.scale - 5, 0))
            try:
                table = table.set_column(i, field.name, table.column(i).cast(target))
            except pa.ArrowInvalid:
                continue
    return table


_NARROWER = {
    pa.int64().id: (pa.int8(), pa.int32()),
    pa.int32().id: (pa.int16(),),
    pa.float64().id: (pa.float32(),),
}


@dataclass
class RequestedIndexes:
    """A table whose index is open, and what its files hold."""

    serving: IndexSnapshot
    data: Table
    semantics: Semantics
    oracle: RowsOracle
    counts: Counter[str]

    @classmethod
    def build(
        cls,
        directory: Path,
        case: Case,
        data: Table,
        settings: SettingsChange,
        counts: Counter[str],
        **options: Any,
    ) -> RequestedIndexes:
        lake = Lake(directory, recursive=True)
        write(lake, data, case.rng())
        report = lake.build(settings=settings, **options)
        assert not report.failed, report.failed
        judge = Oracle(case.semantics, data.paths)
        oracle = RowsOracle(data, judge)
        return cls(lake.snapshot(), data, case.semantics, oracle, counts)

    def ask(self, expression: Expression) -> None:
        """Holds every kind alone, and all together, to the law."""
        columns = self.data.columns
        bound = bind(expression, columns, (), self.semantics)
        truth = self.oracle.matching(expression)
        statistics = self.serving.statistics(columns, self.semantics)
        bounds = prune(bound, statistics, self.semantics).never
        everything = np.arange(self.serving.num_files)
        self._hold("minmax", bounds, truth, expression)
        leaves: dict[BoundPredicate, Any] = {}

        def by_bounds(leaf: BoundExpression, ordinals: Any) -> Any:
            if not isinstance(leaf, BoundPredicate):
                return None
            if leaf not in leaves:
                leaves[leaf] = prune(leaf, statistics, self.semantics).never
            return leaves[leaf][ordinals]

        asks = [partial(_kind, opened, self.semantics) for opened in self.serving.kinds]
        for name in dict.fromkeys(opened.kind.name for opened in self.serving.kinds):
            alone = [
                ask
                for ask, opened in zip(asks, self.serving.kinds, strict=True)
                if opened.kind.name == name
            ]
            self._hold(name, evaluate_indexes.never(bound, everything, alone), truth, expression)
        together = evaluate_indexes.never(bound, everything, [by_bounds, *asks])
        self._hold("together", together, truth, expression)
        assert (together | ~bounds).all(), expression
        for opened in self.serving.kinds:
            assert opened.problem is None, opened.problem

    def _hold(self, name: str, never: Any, truth: Any, expression: Expression) -> None:
        wrong = np.flatnonzero(never & truth)
        assert not len(wrong), (name, expression, self.data.files[wrong[0]])
        self.counts[f"{name} pairs"] += len(truth)
        self.counts[f"{name} never"] += int(never.sum())


def _kind(
    opened: OpenedKind, semantics: Semantics, expression: BoundExpression, ordinals: Any
) -> Any:
    return opened.never(expression, ordinals, semantics) if opened.concerns(expression) else None


def leaf_names(data: Table) -> list[tuple[str, Type]]:
    """Columns as definitions spell them."""
    return [(column_text(path), kind) for path, kind in data.paths.items()]


def is_plain(kind: Type) -> bool:
    return kind.kind is not Kind.CHAR
