"""What queries ask, as predicates that can be asked of simulated files.

The log tells each predicate's columns and operators, and its values if
``planner.predicate_log_literals`` is on. Where it does not, values are drawn from sampled rows, the
same ones each time: `=` asks for the value of a row, a range is taken to hold a tenth of the rows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.clustering.planning.row_sample import RowSample, SampledColumn, comparable
from bridge.expression.fold import TRUE, conjunction, disjunction, membership
from bridge.expression.nodes import (
    BoundExpression,
    BoundPredicate,
    BoundReference,
    Op,
)
from bridge.kernel.types import Field, Type, Value
from bridge.planner.predicate_log import Logged

RANGE = 0.1
"""Share of the rows that a range of unknown values is taken to hold."""
_MOST = 300
_DRAWS = 8
_OPS = {op.value: op for op in Op}
_LOWER, _UPPER = frozenset({Op.GT, Op.GE}), frozenset({Op.LT, Op.LE})
_VALUES = frozenset({Op.EQ, Op.NULL_SAFE_EQ, Op.IN})
_COUNTS = frozenset({Op.IS_NULL, Op.IS_NOT_NULL, Op.IS_NAN, Op.IS_NOT_NAN})
_USEFUL = _LOWER | _UPPER | _VALUES | {Op.STARTS_WITH}


@dataclass(frozen=True, slots=True)
class Question:
    """A predicate on data columns.

    Attributes:
        weight: how many scans asked it.
    """

    predicate: BoundExpression
    weight: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What a table's log asks.

    Attributes:
        scans: in the log; ``regarded``: scans that the questions stand for.
        values: scans whose values are known.
    """

    questions: tuple[Question, ...]
    scans: int
    regarded: int
    values: int


def hot_columns(
    scans: Sequence[Logged], fields: Sequence[Field], answered: Collection[str] = ()
) -> list[tuple[str, int]]:
    """Columns by which files could be skipped, with the number of scans that ask about each.

    Args:
        fields: the table's data columns.
        answered: columns of which an index tells which values a file holds, in lower case. Scans
            that ask them for values come last.
    """
    known = {f.name.lower(): f for f in fields if comparable(f.type)}
    useful = {op.value for op in _USEFUL}
    values = {op.value for op in _VALUES}
    counts: Counter[str] = Counter()
    first: Counter[str] = Counter()
    for scan in scans:
        asked = {(c.lower(), op) for c, op in scan.asked if op in useful and c.lower() in known}
        counts.update({column for column, _ in asked})
        first.update({c for c, op in asked if op not in values or c not in answered})
    ordered = sorted(counts.items(), key=lambda item: (-first[item[0]], -item[1], item[0]))
    return [(known[name].name, count) for name, count in ordered]


def questions(scans: Sequence[Logged], fields: Sequence[Field], sample: RowSample) -> Asked:
    """The predicates of logged scans; equal ones are asked once, with their weight."""
    counted: Counter[str] = Counter()
    for scan in scans:
        tree = scan.tree if scan.tree is not None else ["and", *([c, o, 1] for c, o in scan.asked)]
        counted[json.dumps(tree)] += 1
    chosen = counted.most_common(_MOST)
    known = {f.name.lower(): f for f in fields}
    found: list[Question] = []
    values = regarded = 0
    for text, count in chosen:
        tree = json.loads(text)
        blank = _blank(tree)
        values += 0 if blank else count
        draws = max(1, min(_DRAWS, _MOST * 2 // len(chosen))) if blank else 1
        asked = [_Drawer(known, sample, n, draws).bound(tree) for n in range(draws)]
        regarded += count
        found += [Question(each, count / draws) for each in asked]
    return Asked(tuple(found), len(scans), regarded, values)


def _blank(tree: Any) -> bool:
    """Whether a leaf of a logged predicate has no values."""
    if not isinstance(tree, list):
        return False
    if tree and tree[0] in ("and", "or") and not _is_leaf(tree):
        return any(_blank(part) for part in tree[1:])
    return _is_leaf(tree) and isinstance(tree[2], int) and tree[2] > 0


def _is_leaf(tree: list[Any]) -> bool:
    return len(tree) == 3 and isinstance(tree[1], str) and isinstance(tree[2], int | list)


@dataclass(slots=True)
class _Drawer:
    """Binds one logged predicate; the ``number``-th of ``draws`` that stand for it."""

    fields: Mapping[str, Field]
    sample: RowSample
    number: int
    draws: int

    def bound(self, tree: Any) -> BoundExpression:
        if not isinstance(tree, list) or not tree:
            return TRUE
        if _is_leaf(tree):
            return self._leaf(tree, both=False)
        if tree[0] == "or":
            return disjunction([self.bound(part) for part in tree[1:]])
        if tree[0] != "and":
            return TRUE
        sides: dict[str, set[bool]] = {}
        for part in tree[1:]:
            if isinstance(part, list) and part and _is_leaf(part):
                op = _OPS.get(part[1])
                if op in _LOWER or op in _UPPER:
                    sides.setdefault(str(part[0]).lower(), set()).add(op in _LOWER)
        return conjunction(
            self._leaf(part, both=len(sides.get(str(part[0]).lower(), ())) == 2)
            if isinstance(part, list) and part and _is_leaf(part)
            else self.bound(part)
            for part in tree[1:]
        )

    def _leaf(self, leaf: list[Any], *, both: bool) -> BoundExpression:
        """Args: both: the column has a lower and an upper bound here."""
        name, op, given = str(leaf[0]), _OPS.get(leaf[1]), leaf[2]
        field = self.fields.get(name.lower())
        if field is None or op is None or not comparable(field.type):
            return TRUE
        reference = BoundReference((field.name,), field.type)
        if op in _COUNTS:
            return BoundPredicate(op, reference, ())
        if isinstance(given, list):
            values = tuple(_canonical(v, field.type) for v in given)
        else:
            values = self._drawn(op, name.lower(), given, both)
        if not values or any(v is None for v in values):
            return TRUE
        known = tuple(v for v in values if v is not None)
        if op in (Op.IN, Op.NOT_IN):
            return membership(op, reference, known)
        return BoundPredicate(op, reference, known[:1])

    def _drawn(self, op: Op, name: str, count: int, both: bool) -> tuple[Value | None, ...]:
        column = self.sample.columns.get(name)
        if column is None or op not in _USEFUL:
            return ()
        # One row for all leaves: values that occur together are asked together.
        row = (2 * self.number + 1) * len(self.sample) // (2 * self.draws)
        if op in _LOWER or op in _UPPER:
            return (_edge(column, row, op in _LOWER, both),)
        step = max(1, len(self.sample) // max(count, 1))
        rows = [(row + i * step) % max(len(self.sample), 1) for i in range(min(count, 100))]
        ranks = sorted({int(column.rank[r]) for r in rows} - {-1})
        found = [column.value(rank) for rank in ranks]
        if op is Op.STARTS_WITH:
            return tuple(v[: max(1, len(v) // 2)] for v in found[:1] if isinstance(v, bytes))
        return tuple(found) if op is Op.IN else tuple(found[:1])


def _edge(column: SampledColumn, row: int, lower: bool, both: bool) -> Value | None:
    """A bound of a range that holds a tenth of the rows: around a row, or at an end."""
    ordered = np.sort(column.rank[column.rank >= 0])
    if not len(ordered):
        return None
    span = int(len(ordered) * RANGE)
    if both:
        here = int(column.rank[row]) if column.rank[row] >= 0 else int(ordered[len(ordered) // 2])
        middle = int(np.searchsorted(ordered, here))
        place = max(0, middle - span // 2) if lower else min(len(ordered) - 1, middle + span // 2)
    else:
        place = len(ordered) - 1 - span if lower else span
    return column.value(int(ordered[min(max(place, 0), len(ordered) - 1)]))


def _canonical(value: Any, type: Type) -> Value | None:
    """A logged value, if the column still has its type."""
    if type.is_bytes:
        return value.encode() if isinstance(value, str) else None
    if type.is_floating:
        number = float(value) if isinstance(value, int | float) else math.nan
        return None if math.isnan(number) else number
    return value if isinstance(value, int) else None
