"""Index pruning: what each index of a generation knows about the files of a batch.

The law: a slice is dropped only if the index entry of exactly its file (path, size, mtime, etag)
says NEVER. Files that are not indexed, or indexed in another state, are read. A slice whose logs
add rows is dropped only if every one of its logs is indexed and says NEVER too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

import numpy as np

from bridge.expression.function_catalog import FUNCTIONS, columns_of
from bridge.expression.nodes import (
    BoundCall,
    BoundComputed,
    BoundExpression,
    BoundFalse,
    BoundPredicate,
    BoundReference,
    BoundTrue,
    Op,
    reference_text,
)
from bridge.expression.prune import prune
from bridge.expression.residual import references
from bridge.expression.statistics import ColumnStatistics, Mask, PruningStatistics
from bridge.index.kinds.definition import MINMAX, column_text
from bridge.index.kinds.evaluate_indexes import Ask, has_or, never
from bridge.index.kinds.kind import Ordinals, predicates
from bridge.index.kinds.opened import OpenedKind
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import BridgeError, LimitExceeded
from bridge.kernel.types import Field, Semantics
from bridge.planner.reports.report import IndexNotUsed, Remedy
from bridge.table.model import CatalogTable
from bridge.table.slices import SliceBatch

_NULL_TESTS = (Op.IS_NULL, Op.IS_NOT_NULL)


class Index(Protocol):
    """One index of a generation, for example min/max.

    Attributes:
        kind: its kind, as reports show it.
        problem: why it cannot be read; None if nothing has failed.
    """

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def problem(self) -> BridgeError | None: ...

    def columns(self, predicate: BoundExpression) -> tuple[str, ...]:
        """The parts of the predicate that this index evaluates."""
        ...

    def concerns(self, expression: BoundExpression) -> bool:
        """Whether the index may know anything about an expression; reads nothing."""
        ...

    def never(self, expression: BoundExpression, ordinals: Ordinals) -> Mask | None:
        """Files in which no row satisfies the expression; None if the index knows nothing.

        Args:
            expression: one predicate, or a whole conjunction.
        """
        ...


class MinMaxIndex:
    """Bounds and counts; evaluates each expression once over all files of the generation."""

    kind = MINMAX
    name = MINMAX
    problem: BridgeError | None = None

    def __init__(self, index: IndexSnapshot, fields: Sequence[Field], semantics: Semantics) -> None:
        self._index = index
        self._semantics = semantics
        self.statistics: PruningStatistics = index.statistics(tuple(fields), semantics)
        self._never: dict[BoundExpression, Mask | None] = {}

    def concerns(self, expression: BoundExpression) -> bool:
        return not isinstance(expression, BoundTrue)

    def columns(self, predicate: BoundExpression) -> tuple[str, ...]:
        """Columns of the predicate for which the index holds statistics."""
        self._bring(predicate)
        known = (r for r in references(predicate) if self.statistics.column(r) is not None)
        return tuple(sorted(reference_text(r) for r in known))

    def never(self, expression: BoundExpression, ordinals: Ordinals) -> Mask | None:
        if not isinstance(expression, BoundPredicate):  # its parts are evaluated one by one
            return None
        found = self.over_all(expression)
        if found is None or ordinals is self._index.all_ordinals:
            return found
        return found[ordinals]

    def over_all(self, predicate: BoundExpression) -> Mask | None:
        """By ordinal over all files: True where no row can match; None if nothing is known."""
        if predicate not in self._never:
            self._never[predicate] = self._compute(predicate)
        return self._never[predicate]

    def _compute(self, predicate: BoundExpression) -> Mask | None:
        if isinstance(predicate, BoundTrue):
            return None
        if isinstance(predicate, BoundFalse):
            return np.ones(self.statistics.num_files, np.bool_)
        self._bring(predicate)
        return prune(predicate, self.statistics, self._semantics).never

    def _bring(self, predicate: BoundExpression) -> None:
        """Loads all columns of the predicate together, not one after the other."""
        columns = (c for r in references(predicate) for c in columns_of(r))
        asked = [c.path for c in columns if not c.partition]
        if len(asked) > 1:
            with suppress(BridgeError):  # such a column stays unknown, and the report names it
                self._index.prefetch(asked)


class KindIndex:
    """An index of another kind; evaluates only the files in question."""

    def __init__(
        self,
        opened: OpenedKind,
        semantics: Semantics,
        index: IndexSnapshot,
        columns: Sequence[Field],
    ) -> None:
        self._opened = opened
        self._semantics = semantics
        self._index, self._columns = index, columns

    @property
    def kind(self) -> str:
        return self._opened.definition.kind

    @property
    def name(self) -> str:
        return self._opened.name

    @property
    def problem(self) -> BridgeError | None:
        return self._opened.problem

    def columns(self, predicate: BoundExpression) -> tuple[str, ...]:
        return (self._opened.definition.on,)

    def concerns(self, expression: BoundExpression) -> bool:
        return self._opened.concerns(expression)

    def never(self, expression: BoundExpression, ordinals: Ordinals) -> Mask | None:
        found = self._opened.never(expression, ordinals, self._semantics)
        if found is None or not found.any():
            return found
        for predicate in predicates(expression):
            for column in columns_of(predicate.reference):
                if column.partition:
                    continue
                try:
                    certain = self._index.certain(column, self._columns, ordinals)
                except LimitExceeded:
                    raise
                except BridgeError:  # it is not known where the columns are
                    return None
                if certain is not None:
                    found = found & certain
        return found


class FilePruner:
    """The indexes of one generation under one engine's semantics.

    Attributes:
        minmax: None if it is switched off.
        indexes: all visible indexes, the cheapest first.
    """

    def __init__(self, table: CatalogTable, index: IndexSnapshot, semantics: Semantics) -> None:
        self.index = index
        self.minmax: MinMaxIndex | None = None
        self.indexes: list[Index] = []
        fields = [Field(c.name, c.type) for c in table.columns]
        if index.manifest.settings.minmax_visible:
            self.minmax = MinMaxIndex(index, fields, semantics)
            self.indexes.append(self.minmax)
        self.indexes += (KindIndex(opened, semantics, index, fields) for opened in index.kinds)

    @property
    def statistics(self) -> PruningStatistics | None:
        """Bounds and counts over all files; only they can prove ALWAYS."""
        return None if self.minmax is None else self.minmax.statistics

    def keep(
        self,
        batch: SliceBatch,
        predicate: BoundExpression,
        index: Index,
        positions: Ordinals | None = None,
    ) -> Mask | None:
        """Evaluates one index: False where a slice is dropped; None keeps all.

        Args:
            positions: the slices in question; None means the whole batch.
        """
        if isinstance(predicate, BoundTrue):
            return None
        ordinals, logs, has_base = batch.ordinals, batch.logs, batch.has_base
        if positions is not None:
            ordinals = ordinals[positions]
            logs = None if logs is None else logs.take(positions)
            has_base = None if has_base is None else has_base[positions]
        asks = self._asks(predicate, index)
        keep = self._keep_files(ordinals, predicate, index, asks)
        if keep is None or logs is None or not logs.adds_rows:
            return keep
        kept_logs = self._keep_files(logs.ordinals, predicate, index, asks)
        if kept_logs is None:
            kept_logs = np.ones(len(logs.ordinals), np.bool_)
        if has_base is not None:
            keep &= has_base
        np.logical_or.at(keep, np.repeat(np.arange(len(keep)), logs.counts), kept_logs)
        return keep

    def keep_files(
        self, ordinals: Ordinals, predicate: BoundExpression, index: Index
    ) -> Mask | None:
        """The same of files alone: False where a file holds no matching row; None keeps all."""
        return self._keep_files(ordinals, predicate, index, self._asks(predicate, index))

    def _keep_files(
        self, ordinals: Ordinals, predicate: BoundExpression, index: Index, asks: list[Ask]
    ) -> Mask | None:
        if index is self.minmax:  # evaluates whole expressions at once
            answer = self.minmax.over_all(predicate)
            if answer is None or not len(answer):  # an index without files knows nothing
                return None
            if ordinals is self.index.all_ordinals:
                return ~answer
            # -1 selects the last file's answer; the second operand overrules it.
            return ~answer[ordinals] | (ordinals < 0)
        known = np.flatnonzero(ordinals >= 0)
        found = never(predicate, ordinals[known], asks)
        if not found.any():
            return None
        keep = np.ones(len(ordinals), np.bool_)
        keep[known[found]] = False
        return keep

    def _asks(self, predicate: BoundExpression, index: Index) -> list[Ask]:
        """For an OR, includes the earlier indexes: several indexes may exclude a file together."""
        before = self.indexes[: self.indexes.index(index)] if has_or(predicate) else []
        return [partial(_ask, each) for each in (*before, index)]

    def unindexed_columns(self, predicate: BoundExpression) -> list[BoundReference]:
        """Columns of the predicate of which the index knows nothing that could decide it."""
        if self.minmax is None:
            return []
        column = self.minmax.statistics.column
        compared = compared_columns(predicate)
        return sorted(
            (
                r
                for r in references(predicate)
                if not r.partition and not isinstance(r, BoundCall)
                if (found := column(r)) is None or (r in compared and not _has_bounds(found))
            ),
            key=reference_text,
        )


def compared_columns(predicate: BoundExpression) -> set[BoundReference]:
    """What is compared with values, and not only with NULL."""
    return {p.reference for p in predicates(predicate) if p.op not in _NULL_TESTS}


def _has_bounds(found: ColumnStatistics) -> bool:
    """Whether a bound of some file is known, or that a file holds no value."""
    masks = (found.lower_known, found.upper_known)
    if any(mask is None or mask.any() for mask in masks):
        return True
    return found.all_null is not None and bool(found.all_null.any())


def unindexed_functions(
    predicate: BoundExpression, kinds: Sequence[OpenedKind]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Functions in the predicate that no index covers.

    Each comes with the options of ``index build`` that would cover it.
    """
    found = set()
    for asked in predicates(predicate):
        call = asked.reference
        if not isinstance(call, BoundCall) or isinstance(call, BoundComputed):
            continue
        if FUNCTIONS[call.function].apply is None:
            continue
        text = reference_text(call)
        if any(column.path[0].startswith("$") for column in columns_of(call)):
            continue  # hidden columns are answered from the listing alone
        # A damaged index is reported as such, not as missing.
        if any(kind.concerns(asked) or kind.definition.on == text for kind in kinds):
            continue
        option = ["--expression", text]
        if call.function == "like":  # only value lists can answer LIKE
            option = ["--values", column_text(columns_of(call)[0].path)]
        found.add((text, tuple(option)))
    return tuple(sorted(found))


def failed_indexes(indexes: Iterable[Index], table: str) -> list[IndexNotUsed]:
    """Why indexes that failed were not used.

    Args:
        table: as commands name it.
    """
    return [
        IndexNotUsed(index.name, problem.code, problem.message, Remedy("build", table))
        for index in indexes
        if (problem := index.problem) is not None
    ]


def _ask(index: Index, expression: BoundExpression, ordinals: Ordinals) -> Mask | None:
    return index.never(expression, ordinals) if index.concerns(expression) else None
