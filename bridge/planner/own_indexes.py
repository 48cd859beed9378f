"""Indexes that a table's format keeps itself, for files that no index of ours knows.

The law: a slice is dropped only if it has no logs, our index does not know its base file, and what
the format knows of exactly this file says NEVER.
"""

from __future__ import annotations

from bridge.expression.nodes import BoundExpression, BoundTrue
from bridge.expression.statistics import Mask
from bridge.index.kinds.kind import Ordinals
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import BridgeError
from bridge.kernel.types import Semantics
from bridge.planner.reports.report import IndexNotUsed, Remedy
from bridge.storage.port import EMPTY, FileTable
from bridge.table.slices import SliceBatch
from bridge.table.snapshot import OwnIndex


def any_unknown(batch: SliceBatch) -> bool:
    """Whether a slice has no logs, and a base file that our index does not know."""
    unknown = batch.ordinals < 0
    if batch.merged is not None:
        unknown &= ~batch.merged
    return bool(unknown.any())


class FormatIndex:
    """What reports ask of an `Index`, and `keep`."""

    def __init__(self, own: OwnIndex, semantics: Semantics) -> None:
        self._own = own
        self._semantics = semantics
        self._never: dict[BoundExpression, Mask | None] = {}

    @property
    def kind(self) -> str:
        return self._own.source

    @property
    def name(self) -> str:
        return self._own.source

    @property
    def num_files(self) -> int:
        return self._own.num_files

    @property
    def problem(self) -> BridgeError | None:
        return self._own.problem

    def not_used(self) -> tuple[IndexNotUsed, ...]:
        """Why nothing is known, for reports."""
        if (problem := self.problem) is None:
            return ()
        return (IndexNotUsed(self.name, problem.code, problem.message, Remedy(text=problem.hint)),)

    def columns(self, predicate: BoundExpression) -> tuple[str, ...]:
        """Columns of the predicate of which something is known."""
        return self._own.columns(predicate)

    def ask(self, predicate: BoundExpression) -> None:
        """Begins to read what is not known yet, so that all indexes are waited for together."""
        self._own.ask(predicate)

    def concerns(self, predicate: BoundExpression) -> bool:
        """Whether something is known of files."""
        return bool(self.columns(predicate))

    def keep(
        self, batch: SliceBatch, predicate: BoundExpression, positions: Ordinals | None = None
    ) -> Mask | None:
        """False where a slice is dropped; None keeps all.

        Args:
            positions: the slices in question; None means the whole batch.
        """
        if isinstance(predicate, BoundTrue):
            return None
        never = self._over_all(predicate)
        if never is None:
            return None
        files, ordinals, merged = batch.files, batch.ordinals, batch.merged
        if positions is not None:
            files, ordinals = files.take(positions), ordinals[positions]
            merged = None if merged is None else merged[positions]
        places = self._own.match(files)
        keep: Mask = ~never[places] | (places < 0) | (ordinals >= 0)
        return keep if merged is None else keep | merged

    def list_excluded(self, predicate: BoundExpression, index: IndexSnapshot | None) -> FileTable:
        """The base files that hold no matching row, without those that our index knows."""
        never = self._over_all(predicate)
        if never is None or not never.any():
            return EMPTY
        files = self._own.files.filter(never)
        return files if index is None else files.filter(index.match(files) < 0)

    def _over_all(self, predicate: BoundExpression) -> Mask | None:
        if predicate not in self._never:
            self._never[predicate] = self._own.never(predicate, self._semantics)
        return self._never[predicate]
