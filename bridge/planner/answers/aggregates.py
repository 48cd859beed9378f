"""Exact count, min and max from file statistics.

The law: an answer equals what the engine would compute by reading every row that satisfies the
predicate. Every remaining file must therefore be indexed in its present state, match the predicate
in all of its rows, and have exact statistics (rule 22). If one file does not, there is no answer.

A minimum needs one file that is known to hold it. Bounds of other files may be inexact as long as
none of them is lower. The maximum works the same way. NaN is not answered, nor is a zero whose
sign the bounds do not record.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.nodes import BoundExpression, BoundReference
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics, Counts, Mask, PruningStatistics
from bridge.kernel.types import Kind, Semantics, Type, Value
from bridge.table.partition import UnparsableValue

Group = tuple[Value | None, ...]
_MAX_GROUPS = 10_000
# Enough digits for any decimal128 without rounding.
_DIGITS = decimal.Context(prec=76)
# Key types that planner and engine parse alike and whose values have exactly one spelling.
_GROUPED = frozenset(
    {Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.STRING}
)


class NotAnswerable(Exception):
    """Statistics do not give an exact answer; ``reason`` is a code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``count``, ``min`` or ``max`` of a column; ``count`` without a column counts rows."""

    function: str
    column: BoundReference | None = None


@dataclass(frozen=True, slots=True)
class AggregateRequest:
    """Aggregates by group; a group is one distinct combination of partition values."""

    aggregates: tuple[Aggregate, ...] = ()
    group_by: tuple[BoundReference, ...] = ()


class Known(PruningStatistics, Protocol):
    """Statistics of listed files; `CompositePruningStatistics` is one."""

    @property
    def rows(self) -> Counts: ...


@dataclass(slots=True)
class Tally:
    """Accumulates one request over batches of files.

    Attributes:
        files: number of files added so far.
    """

    request: AggregateRequest
    files: int = 0
    _groups: dict[Group, list[_Cell]] = field(default_factory=dict)

    def add(self, known: Known, groups: Iterable[tuple[Group, npt.NDArray[np.int64]]]) -> None:
        """Adds files in which every row satisfies the predicate.

        Args:
            groups: for each combination of ``group_by`` values, the positions of its files.

        Errors:
            NotAnswerable: the statistics of a file are unknown or inexact.
        """
        if not known.num_files:
            return
        if bool((known.rows < 0).any()):
            raise NotAnswerable("UNKNOWN_FILES")
        self.files += known.num_files
        columns = [
            None if a.column is None else _column(known, a.column) for a in self.request.aggregates
        ]
        for key, positions in groups:
            rows = known.rows[positions]
            if self.request.group_by and not rows.any():
                continue  # a group without rows does not appear in the result
            cells = self._groups.get(key)
            if cells is None:
                cells = [_Cell(a.function) for a in self.request.aggregates]
                self._groups[key] = cells
                if len(self._groups) > _MAX_GROUPS:
                    raise NotAnswerable("TOO_MANY_GROUPS")
            for cell, column in zip(cells, columns, strict=True):
                cell.add(column, rows, positions)

    def rows(self) -> list[tuple[Group, tuple[Value | None, ...]]]:
        """One row per group; without ``group_by`` exactly one row, even if nothing was added.

        Errors:
            NotAnswerable: no aggregate of a group has an exact value.
        """
        if not self.request.group_by and not self._groups:
            self._groups[()] = [_Cell(a.function) for a in self.request.aggregates]
        return [(key, tuple(c.result() for c in cells)) for key, cells in self._groups.items()]


def _column(known: Known, reference: BoundReference) -> ColumnStatistics:
    column = known.column(reference)
    if column is None:
        raise NotAnswerable("NOT_EXACT")
    return column


class _Cell:
    """One aggregate of one group."""

    __slots__ = ("_attained", "_best", "_count", "_function", "_type")

    def __init__(self, function: str) -> None:
        self._function = function
        self._count = 0
        self._best: Any = None
        self._attained = True
        self._type: Type | None = None

    def add(
        self, column: ColumnStatistics | None, rows: Counts, positions: npt.NDArray[np.int64]
    ) -> None:
        if column is None:
            self._count += int(rows.sum())
            return
        nulls = column.null_count[positions]
        if self._function == "count":
            if bool(((nulls < 0) & (rows > 0)).any()):
                raise NotAnswerable("NOT_EXACT")
            self._count += int((rows - np.maximum(nulls, 0)).sum())
            return
        self._type = column.type
        blank = (rows == 0) | (nulls == rows)
        if column.all_null is not None:
            blank |= column.all_null[positions]
        left = positions[~blank]
        if len(left):
            self._bound(column, left)

    def _bound(self, column: ColumnStatistics, left: npt.NDArray[np.int64]) -> None:
        least = self._function == "min"
        known = column.lower_known if least else column.upper_known
        if known is not None and not known[left].all():
            raise NotAnswerable("NOT_EXACT")
        if column.type.is_floating and not bool((column.nan_count[left] == 0).all()):
            raise NotAnswerable("NAN")
        if column.type.is_floating and bool(
            (np.isnan(column.lower[left]) | np.isnan(column.upper[left])).any()
        ):
            raise NotAnswerable("NAN")  # NaN is not a bound (rule 1)
        if column.type.kind is Kind.BOOLEAN and bool((column.lower > column.upper)[left].any()):
            raise NotAnswerable("NOT_EXACT")
        bounds = column.lower if least else column.upper
        best, where = _extreme(bounds, left, least=least)
        attained = column.exact is None or bool(column.exact[left][where].any())
        better = self._best is None or (best < self._best if least else best > self._best)
        if better:
            self._best, self._attained = best, attained
        elif best == self._best:
            self._attained |= attained

    def result(self) -> Value | None:
        if self._function == "count":
            return self._count
        if self._best is None:
            return None
        assert self._type is not None
        if not self._attained:
            raise NotAnswerable("NOT_EXACT")
        if self._type.is_floating and self._best == 0:
            raise NotAnswerable("SIGNED_ZERO")
        best: Value = bool(self._best) if self._type.kind is Kind.BOOLEAN else self._best
        return best


def _extreme(bounds: Any, left: npt.NDArray[np.int64], *, least: bool) -> tuple[Any, Mask]:
    """The least or greatest bound in canonical form, and a mask of the files that have it."""
    if isinstance(bounds, np.ndarray):
        values = bounds[left]
        best = values.min() if least else values.max()
        return best.item(), values == best
    taken = bounds.take(pa.array(left))
    scalar = (pc.min if least else pc.max)(taken)
    same = pc.equal(taken, scalar).to_numpy(zero_copy_only=False)
    found = scalar.as_py()
    if isinstance(found, decimal.Decimal):
        found = int(found.scaleb(taken.type.scale, _DIGITS))
    return found, same


def check_groups(group_by: Sequence[BoundReference]) -> None:
    """Errors: NotAnswerable: a key is not a partition value, or its type has several spellings."""
    for reference in group_by:
        if not (reference.partition or reference.path == ("$partition",)):
            raise NotAnswerable("GROUPING")
        if reference.type.kind not in _GROUPED:
            raise NotAnswerable("GROUPING")


def group_values(values: Sequence[Any]) -> Group:
    """Errors: NotAnswerable: a partition value does not parse as its type."""
    if any(isinstance(v, UnparsableValue) for v in values):
        raise NotAnswerable("PARTITION_VALUE")
    return tuple(values)


def require_always(predicate: BoundExpression, known: Known, semantics: Semantics) -> None:
    """Errors: NotAnswerable: a file may hold rows that do not satisfy the predicate."""
    if known.num_files and not bool(prune(predicate, known, semantics).always.all()):
        raise NotAnswerable("NOT_ENFORCED")
