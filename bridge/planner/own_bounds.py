"""Bounds of columns that a table's format keeps itself, for files that no index of ours knows.

The law: a slice is dropped only if it has no logs, our index does not know its base file, and the
format's bounds of exactly this file say NEVER.
"""

from __future__ import annotations

from bridge.expression.nodes import BoundExpression, BoundTrue, reference_text
from bridge.expression.prune import prune
from bridge.expression.residual import references
from bridge.expression.statistics import Mask
from bridge.index.kinds.kind import Ordinals
from bridge.kernel.errors import BridgeError
from bridge.kernel.types import Semantics
from bridge.table.slices import SliceBatch
from bridge.table.snapshot import OwnBounds


class OwnBoundsIndex:
    """What reports ask of an `Index`, and `keep`."""

    def __init__(self, bounds: OwnBounds, semantics: Semantics) -> None:
        self._bounds = bounds
        self._semantics = semantics
        self._never: dict[BoundExpression, Mask] = {}

    @property
    def kind(self) -> str:
        return self._bounds.source

    @property
    def name(self) -> str:
        return self._bounds.source

    @property
    def problem(self) -> BridgeError | None:
        return self._bounds.problem

    def columns(self, predicate: BoundExpression) -> tuple[str, ...]:
        """Columns of the predicate for which there are bounds."""
        known = (r for r in references(predicate) if self._bounds.column(r) is not None)
        return tuple(sorted(reference_text(r) for r in known))

    def concerns(self, batch: SliceBatch, predicate: BoundExpression) -> bool:
        """Whether there are bounds for a file that our index does not know."""
        unknown = batch.ordinals < 0
        if batch.merged is not None:
            unknown &= ~batch.merged
        return bool(unknown.any()) and bool(self.columns(predicate))

    def keep(
        self, batch: SliceBatch, predicate: BoundExpression, positions: Ordinals | None = None
    ) -> Mask | None:
        """False where a slice is dropped; None keeps all.

        Args:
            positions: the slices in question; None means the whole batch.
        """
        if isinstance(predicate, BoundTrue):
            return None
        if predicate not in self._never:
            self._never[predicate] = prune(predicate, self._bounds, self._semantics).never
        files, ordinals, merged = batch.files, batch.ordinals, batch.merged
        if positions is not None:
            files, ordinals = files.take(positions), ordinals[positions]
            merged = None if merged is None else merged[positions]
        places = self._bounds.match(files)
        keep: Mask = ~self._never[predicate][places] | (places < 0) | (ordinals >= 0)
        return keep if merged is None else keep | merged
