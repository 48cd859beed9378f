"""Pruning: one vectorised pass over the statistics of all files.

The law: a file with a row that satisfies the predicate is not NEVER. ALWAYS means that every row of
the file satisfies it. It has rules of its own and is not inferred from NOT(NEVER) (M1).

For ``5 <= x AND x < 9`` and bounds [lower, upper] of x:

    never  = upper < 5  OR  lower >= 9
    always = lower >= 5 AND upper < 9 AND there is no NULL (and no NaN)

Unknown bounds are infinite, so neither comparison needs a mask. AND uses whichever half is known;
OR needs both (M4). Nothing is cached between calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from bridge.expression.bounds import (
    compare,
    compare_lower,
    compare_upper,
    enclosing_none,
    holds_one_of,
    single_value_in,
    successor,
)
from bridge.expression.computed import constants
from bridge.expression.nodes import (
    BoundAnd,
    BoundCall,
    BoundExpression,
    BoundFalse,
    BoundOr,
    BoundPredicate,
    BoundTrue,
    Op,
)
from bridge.expression.statistics import ColumnStatistics, Mask, Places, PruningStatistics
from bridge.expression.statistics_subset import bounds_of, take_files
from bridge.kernel.types import Kind, NanOrder, Semantics, Value

MANY_FILES = 50_000
_FEW = 16
_COUNTED = frozenset((Op.IS_NULL, Op.IS_NOT_NULL, Op.IS_NAN, Op.IS_NOT_NAN, Op.NULL_SAFE_NE))


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The answers for all files of a batch. A file that is neither NEVER nor ALWAYS is MAYBE.

    Attributes:
        never: files without a matching row. A file without rows may be both NEVER and ALWAYS.
    """

    never: Mask
    _expression: BoundExpression = field(repr=False)
    _statistics: PruningStatistics = field(repr=False)
    _semantics: Semantics = field(repr=False)

    @property
    def always(self) -> Mask:
        """Files where all rows match. Computed on each call, because few callers need it."""
        return _Always(self._statistics, self._semantics).of(self._expression)


def prune(
    expression: BoundExpression, statistics: PruningStatistics, semantics: Semantics
) -> Answers:
    """Answers for every file that the statistics describe.

    Args:
        semantics: those of the requesting engine, with which the expression was bound.
    """
    never = _Never(statistics, semantics).of(expression)
    if never is None:
        never = np.zeros(statistics.num_files, dtype=np.bool_)
    return Answers(never, expression, statistics, semantics)


def _order_of_zero_differs(predicate: BoundPredicate, semantics: Semantics) -> bool:
    """Hive compares doubles row by row with Java's Double.compare, where -0.0 < 0.0 (rule 2)."""
    return (
        semantics.nan is NanOrder.LARGEST
        and predicate.reference.type.is_floating
        and 0 in predicate.values
    )


@dataclass(frozen=True, slots=True)
class _Never:
    """Computes NEVER of each node. None stands for an all-False mask, to avoid allocating it."""

    statistics: PruningStatistics
    semantics: Semantics

    def of(self, expression: BoundExpression) -> Mask | None:
        match expression:
            case BoundFalse():
                return np.ones(self.statistics.num_files, dtype=np.bool_)
            case BoundAnd(children):
                return self._and(children)
            case BoundOr(children):
                return self._or(children)
            case BoundPredicate():
                return self._by_statistics(expression)
        return None

    def _and(self, children: tuple[BoundExpression, ...]) -> Mask | None:
        """Uses every known child (M4).

        If earlier conjuncts kept only few of many files, the next is evaluated only on these.
        """
        result: Mask | None = None
        count = self.statistics.num_files
        for child in children:
            if result is not None and count >= MANY_FILES:
                left = np.flatnonzero(np.logical_not(result))
                if len(left) * _FEW < count:
                    few = self._few(child, left)
                    if few is not None:
                        result[left[few]] = True
                    continue
            mask = self.of(child)
            if mask is not None:
                result = mask if result is None else _or_into(result, mask)
        return result

    def _few(self, child: BoundExpression, left: Places) -> Mask | None:
        """NEVER of the files at the given places."""
        if not isinstance(child, BoundPredicate) or _is_counted(child):
            return _Never(take_files(self.statistics, left), self.semantics).of(child)
        column = self.statistics.column(child.reference)
        return None if column is None else self._compared(child, column, left)

    def _or(self, children: tuple[BoundExpression, ...]) -> Mask | None:
        result: Mask | None = None
        for child in children:
            mask = self.of(child)
            if mask is None:
                return None  # OR needs both sides (M4)
            result = mask if result is None else np.logical_and(result, mask, out=result)
        return result

    def _by_statistics(self, predicate: BoundPredicate) -> Mask | None:
        column = self.statistics.column(predicate.reference)
        if column is None:
            is_call = isinstance(predicate.reference, BoundCall)
            return constants(predicate, self.statistics) if is_call else None
        op = predicate.op
        if op not in _COUNTED:
            return self._compared(predicate, column, None)
        match op:
            case Op.IS_NULL:
                no_null: Mask = np.equal(column.null_count, 0)
                return no_null
            case Op.IS_NOT_NULL:
                return _all_null(column)
            case Op.IS_NAN:
                return _with_all_null(np.equal(column.nan_count, 0), column)
            case Op.IS_NOT_NAN:
                rest = column.row_count - column.null_count - column.nan_count
                return _with_all_null(_counted(column, nan=True) & (rest == 0), column)
        return None  # NULL_SAFE_NE matches NULL; binding leaves none

    def _compared(
        self, predicate: BoundPredicate, column: ColumnStatistics, at: Places | None
    ) -> Mask:
        """NEVER by bounds, for all files or for those at the given places.

        If there are cells, they decide most files. The others are compared by exact bounds.
        """
        rough = None if _searched(predicate, column, at) else _by_cells(predicate, column, at)
        if rough is None:
            some = column if at is None else bounds_of(column, at)
            never = self._by_bounds(predicate, some)
        else:
            never, rest = rough
            if len(rest):
                some = bounds_of(column, rest if at is None else at[rest])
                never[rest] = self._by_bounds(predicate, some)
            if predicate.op in (Op.GT, Op.GE) and self.semantics.nan is NanOrder.LARGEST:
                never = _no_nan(never, column, at)  # NaN is greater (rule 1)
        if column.all_null is None:
            return never
        return np.logical_or(never, column.all_null if at is None else column.all_null[at])

    def _by_bounds(self, predicate: BoundPredicate, column: ColumnStatistics) -> Mask:
        """Files without a non-null value that satisfies a comparison."""
        op, values = predicate.op, predicate.values
        zero = _order_of_zero_differs(predicate, self.semantics)
        match op:
            case Op.EQ | Op.NULL_SAFE_EQ:
                never = compare_upper(column, "<", values[0])
                np.logical_or(never, compare_lower(column, ">", values[0]), out=never)
            case Op.IN:
                never = enclosing_none(column, values)
            case Op.NE | Op.NOT_IN:
                never = _no_nan(single_value_in(column, values), column)
                if zero:
                    never &= False
            case Op.LT:
                never = compare_lower(column, ">" if zero else ">=", values[0])
            case Op.LE:
                never = compare_lower(column, ">", values[0])
            case Op.GT | Op.GE:
                strict = op is Op.GE or zero
                never = compare_upper(column, "<" if strict else "<=", values[0])
                if self.semantics.nan is NanOrder.LARGEST:
                    never = _no_nan(never, column)  # NaN is greater (rule 1)
            case Op.STARTS_WITH:
                never = _outside_prefix(column, values[0])
            case _:
                never = _inside_prefix(column, values[0])
        return _trusted(never, column)


def _is_counted(predicate: BoundPredicate) -> bool:
    """Whether bounds alone do not decide a predicate."""
    return predicate.op in _COUNTED or isinstance(predicate.reference, BoundCall)


@dataclass(frozen=True, slots=True)
class _Always:
    """Computes ALWAYS of each node, by rules of its own."""

    statistics: PruningStatistics
    semantics: Semantics

    def of(self, expression: BoundExpression) -> Mask:
        size = self.statistics.num_files
        match expression:
            case BoundTrue(exact):
                return np.full(size, exact, dtype=np.bool_)
            case BoundAnd(children):
                return reduce(np.logical_and, map(self.of, children))
            case BoundOr(children):
                return reduce(np.logical_or, map(self.of, children))
            case BoundPredicate():
                column = self.statistics.column(expression.reference)
                if column is not None:
                    return self._predicate(expression, column)
        return np.zeros(size, dtype=np.bool_)

    def _predicate(self, predicate: BoundPredicate, column: ColumnStatistics) -> Mask:
        no_null: Mask = np.equal(column.null_count, 0)
        match predicate.op:
            case Op.IS_NULL:
                return _all_null(column)
            case Op.IS_NOT_NULL:
                return no_null
            case Op.IS_NAN:
                every: Mask = (column.nan_count >= 0) & (column.nan_count == column.row_count)
                return np.logical_and(every, no_null)
            case Op.IS_NOT_NAN:
                return _no_nan(no_null, column)
            case Op.NULL_SAFE_NE:
                return np.zeros(len(no_null), dtype=np.bool_)
        return _trusted(self._by_bounds(predicate, column), column) & no_null

    def _by_bounds(self, predicate: BoundPredicate, column: ColumnStatistics) -> Mask:
        """Files all of whose non-null values satisfy a comparison."""
        op, values = predicate.op, predicate.values
        zero = _order_of_zero_differs(predicate, self.semantics)
        largest = self.semantics.nan is NanOrder.LARGEST
        match op:
            case Op.EQ | Op.IN | Op.NULL_SAFE_EQ:
                every = _no_nan(single_value_in(column, values), column)
                return every & False if zero else every
            case Op.NE | Op.NOT_IN:
                # NaN differs from every value under either order.
                return np.logical_not(holds_one_of(column, values))
            case Op.LT | Op.LE:
                strict = op is Op.LT or zero
                every = compare(column.upper, "<" if strict else "<=", values[0])
                return _no_nan(every, column)
            case Op.GT | Op.GE:
                strict = op is Op.GT or zero
                every = compare(column.lower, ">" if strict else ">=", values[0])
                return every if largest else _no_nan(every, column)
            case Op.STARTS_WITH:
                return _inside_prefix(column, values[0])
        return _outside_prefix(column, values[0])


def _searched(predicate: BoundPredicate, column: ColumnStatistics, at: Places | None) -> bool:
    """Whether a long list of numbers is searched; see `enclosing_none`."""
    return predicate.op is Op.IN and at is None and isinstance(column.lower, np.ndarray)


def _by_cells(
    predicate: BoundPredicate, column: ColumnStatistics, at: Places | None
) -> tuple[Mask, Places] | None:
    """NEVER as far as cells decide it, and the undecided positions.

    None if there are no cells, or if too many files share a cell with a value.
    """
    rough = None
    if column.cells is not None:
        rough = column.cells.never(predicate.op, predicate.values, at)
    if rough is None:
        return None
    never, doubt = rough
    rest = np.flatnonzero(doubt)
    return None if at is None and len(rest) * _FEW > len(doubt) else (never, rest)


def _or_into(left: Mask, right: Mask) -> Mask:
    return np.logical_or(left, right, out=left)


def _counted(column: ColumnStatistics, *, nan: bool = False) -> Mask:
    known = (column.null_count >= 0) & (column.row_count >= 0)
    return known & (column.nan_count >= 0) if nan else known


def _all_null(column: ColumnStatistics) -> Mask:
    """Files known to hold only NULLs, including files without rows."""
    counted = _counted(column) & (column.null_count == column.row_count)
    return _with_all_null(counted, column)


def _with_all_null(mask: Mask, column: ColumnStatistics) -> Mask:
    return mask if column.all_null is None else np.logical_or(mask, column.all_null)


def _no_nan(mask: Mask, column: ColumnStatistics, at: Places | None = None) -> Mask:
    """Keeps the mask only where the column is known to hold no NaN."""
    if not column.type.is_floating:
        return mask
    counts = column.nan_count if at is None else column.nan_count[at]
    without: Mask = np.logical_and(mask, counts == 0)
    return without


def _trusted(mask: Mask, column: ColumnStatistics) -> Mask:
    """Rule 13: a boolean's minimum above its maximum is corrupt."""
    if column.type.kind is not Kind.BOOLEAN:
        return mask
    return np.logical_and(mask, np.less_equal(column.lower, column.upper))


def _outside_prefix(column: ColumnStatistics, prefix: Value) -> Mask:
    """Rule 7: values that start with p lie in [p, successor of p)."""
    assert isinstance(prefix, bytes)
    outside = compare(column.upper, "<", prefix)
    after = successor(prefix)
    if after is not None:
        np.logical_or(outside, compare(column.lower, ">=", after), out=outside)
    return outside


def _inside_prefix(column: ColumnStatistics, prefix: Value) -> Mask:
    """Both bounds start with p, so all values between them do."""
    assert isinstance(prefix, bytes)
    inside = compare(column.lower, ">=", prefix)
    after = successor(prefix)
    # Without a successor (p is all 0xFF) every value >= p starts with p; this check is stricter.
    below = (
        compare(column.upper, "<=", prefix) if after is None else compare(column.upper, "<", after)
    )
    return np.logical_and(inside, below)
