"""File pruning: one vectorised pass per index kind over all indexed files, then a look-up per
batch.

The law: a file is dropped only if the entry of exactly that file (path, size, mtime, etag) says
NEVER; files that the index does not know, or knows in another state, are read.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.errors import BridgeError
from bridge.expression.function_catalog import FUNCTIONS, columns_of
from bridge.expression.nodes import (
    BoundAnd,
    BoundCall,
    BoundExpression,
    BoundFalse,
    BoundPredicate,
    BoundReference,
    BoundTrue,
    spelled,
)
from bridge.expression.prune import prune
from bridge.expression.residual import references
from bridge.expression.statistics import ColumnStatistics, Mask, PruningStatistics
from bridge.index.kinds.definition import column_text
from bridge.index.kinds.evaluate_indexes import Ask, has_or, never
from bridge.index.kinds.kind import predicates
from bridge.index.kinds.opened import OpenedKind
from bridge.planner.disabled_indexes import uses_minmax
from bridge.planner.index_view import IndexView
from bridge.planner.partitions import PARTITION_COLUMN
from bridge.table.model import FileList, Table
from bridge.types import BIGINT, STRING, TIMESTAMP_TZ, Field, Semantics

PATH_COLUMN = "$path"
SIZE_COLUMN = "$file_size"
MODIFIED_COLUMN = "$file_modified_time"
HIDDEN_COLUMNS: tuple[Field, ...] = (
    Field(PATH_COLUMN, STRING),
    Field(SIZE_COLUMN, BIGINT),
    Field(MODIFIED_COLUMN, TIMESTAMP_TZ),
    Field(PARTITION_COLUMN, STRING),
)
_FILE_COLUMNS = frozenset({PATH_COLUMN, SIZE_COLUMN, MODIFIED_COLUMN})

Ordinals = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SplitPredicate:
    """A predicate's conjuncts by what can answer them: the index, or the listing itself."""

    data: BoundExpression
    attributes: BoundExpression


def split_by_source(predicate: BoundExpression) -> SplitPredicate:
    """Conjuncts over hidden file columns apart; one that mixes both kinds is answered by
    neither.
    """
    conjuncts = predicate.children if isinstance(predicate, BoundAnd) else (predicate,)
    data: list[BoundExpression] = []
    attributes: list[BoundExpression] = []
    for conjunct in conjuncts:
        names = {r.path[0] for r in references(conjunct)}
        if not names & _FILE_COLUMNS:
            data.append(conjunct)
        elif names <= _FILE_COLUMNS:
            attributes.append(conjunct)
    return SplitPredicate(_conjunction(data), _conjunction(attributes))


def _conjunction(parts: list[BoundExpression]) -> BoundExpression:
    if not parts:
        return BoundTrue()
    return parts[0] if len(parts) == 1 else BoundAnd(tuple(parts))


class FileAttributes:
    """Path, size and modification time as statistics: known, exact, one slot a listed file."""

    def __init__(self, files: FileList) -> None:
        self._files = files

    @property
    def num_files(self) -> int:
        return len(self._files)

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        n = len(self._files)
        bounds: pa.Array | npt.NDArray[np.int64]
        match reference.path[0]:
            case "$path":
                bounds = self._files.paths.cast(pa.large_binary())
            case "$file_size":
                bounds = self._files.sizes
            case "$file_modified_time":
                # Engines see milliseconds; the listing may know more.
                bounds = self._files.modified // 1000 * 1000
            case _:
                return None
        zeros = np.zeros(n, np.int64)
        return ColumnStatistics(
            type=reference.type,
            lower=bounds,
            upper=bounds,
            lower_known=None,
            upper_known=None,
            exact=None,
            null_count=zeros,
            nan_count=zeros,
            row_count=np.ones(n, np.int64),
            all_null=None,
        )


class FilePruner:
    """Prunes files of one plan; answers are computed once per distinct residual over all indexed
    files.
    """

    def __init__(self, table: Table, view: IndexView, semantics: Semantics) -> None:
        self._view = view
        self._semantics = semantics
        self._statistics: PruningStatistics | None = None
        if view.serving is not None and uses_minmax(view):
            fields = tuple(Field(c.name, c.type) for c in table.columns)
            self._statistics = view.serving.statistics(fields, semantics)
        self._never: dict[BoundExpression, Mask | None] = {}

    def never(self, predicate: BoundExpression) -> Mask | None:
        """Over all indexed files: True where no row can match; None where nothing is known."""
        if predicate not in self._never:
            self._never[predicate] = self._compute(predicate)
        return self._never[predicate]

    def _compute(self, predicate: BoundExpression) -> Mask | None:
        if self._statistics is None or isinstance(predicate, BoundTrue):
            return None
        if isinstance(predicate, BoundFalse):
            return np.ones(self._statistics.num_files, np.bool_)
        self._bring(predicate)
        return prune(predicate, self._statistics, self._semantics).never

    def _bring(self, predicate: BoundExpression) -> None:
        """Columns are brought together, not one after the other."""
        serving = self._view.serving
        asked = [r.path for r in references(predicate) if not r.partition]
        if serving is not None and len(asked) > 1:
            with suppress(BridgeError):  # what cannot be brought is unknown, and told by column
                serving.prefetch(asked)

    def keep(
        self, ordinals: Ordinals, predicate: BoundExpression, kind: OpenedKind | None = None
    ) -> Mask | None:
        """For listed files (by ordinal, -1 unknown): False where dropped; None keeps all.

        Args:
            kind: asks this one, and about nothing but these files; None asks min/max.
        """
        if kind is not None:
            return self._keep_by_kind(ordinals, predicate, kind)
        never = self.never(predicate)
        if never is None:
            return None
        if ordinals is self._view.everything:
            return ~never
        # -1 picks the last file's answer and is then overruled.
        return ~never[ordinals] | (ordinals < 0)

    def kinds(self, predicate: BoundExpression) -> list[OpenedKind]:
        """The indexes beside min/max that may know something, cheapest first."""
        serving = self._view.serving
        return [k for k in serving.kinds if k.concerns(predicate)] if serving is not None else []

    def _keep_by_kind(
        self, ordinals: Ordinals, predicate: BoundExpression, kind: OpenedKind
    ) -> Mask | None:
        if isinstance(predicate, BoundTrue):
            return None
        asks: list[Ask] = [partial(_ask, kind, self._semantics)]
        if has_or(predicate):  # what this one leaves open of an OR another may know
            others = self.kinds(predicate)
            before = others[: others.index(kind)] if kind in others else []
            asks = [self._bounds, *(partial(_ask, k, self._semantics) for k in before), *asks]
        known = np.flatnonzero(ordinals >= 0)
        found = never(predicate, ordinals[known], asks)
        if not found.any():
            return None
        keep = np.ones(len(ordinals), np.bool_)
        keep[known[found]] = False
        return keep

    def _bounds(self, expression: BoundExpression, ordinals: Ordinals) -> Mask | None:
        if not isinstance(expression, BoundPredicate):
            return None
        found = self.never(expression)
        return None if found is None else found[ordinals]

    def columns(self, predicate: BoundExpression) -> tuple[str, ...]:
        """Columns of the predicate that the index holds something about."""
        if self._statistics is None:
            return ()
        self._bring(predicate)
        return tuple(
            sorted(
                spelled(r) for r in references(predicate) if self._statistics.column(r) is not None
            )
        )

    def unindexed(self, predicate: BoundExpression) -> tuple[str, ...]:
        """Columns of the predicate that the index holds nothing about."""
        if self._statistics is None:
            return ()
        return tuple(
            sorted(
                spelled(r)
                for r in references(predicate)
                if self._statistics.column(r) is None
                and not r.partition
                and not isinstance(r, BoundCall)
            )
        )

    def unindexed_functions(self, predicate: BoundExpression) -> tuple[tuple[str, str], ...]:
        """Functions of columns in the predicate that no index says anything of, and the option of
        ``index build`` that would remedy it.
        """
        if self._view.serving is None:
            return ()
        kinds = self._view.serving.kinds
        found = set()
        for asked in predicates(predicate):
            call = asked.reference
            if not isinstance(call, BoundCall) or FUNCTIONS[call.function].apply is None:
                continue
            text = spelled(call)
            # What is damaged is told as such.
            if any(kind.concerns(asked) or kind.definition.on == text for kind in kinds):
                continue
            option = ["--expression", text]
            if call.function == "like":  # nothing but lists answers that
                option = ["--values", column_text(columns_of(call)[0].path)]
            found.add((text, shlex.join(option)))
        return tuple(sorted(found))


def _ask(
    kind: OpenedKind, semantics: Semantics, expression: BoundExpression, ordinals: Ordinals
) -> Mask | None:
    return kind.never(expression, ordinals, semantics) if kind.concerns(expression) else None


def keep_by_attributes(
    files: FileList, predicate: BoundExpression, semantics: Semantics
) -> Mask | None:
    """For listed files: False where path, size or time exclude them; None keeps all."""
    if isinstance(predicate, BoundTrue):
        return None
    if isinstance(predicate, BoundFalse):
        return np.zeros(len(files), np.bool_)
    return ~prune(predicate, FileAttributes(files), semantics).never


def take(files: FileList, ordinals: Sequence[int] | npt.NDArray[np.int64]) -> FileList:
    """The files at the given positions."""
    index = np.asarray(ordinals, np.int64)
    arrow = pa.array(index)
    return FileList(
        paths=files.paths.take(arrow),
        sizes=files.sizes[index],
        modified=files.modified[index],
        partition=files.partition[index],
        etags=files.etags.take(arrow) if files.etags is not None else None,
    )
