"""Index kinds by name: a new kind is a new file and an entry point, and edits nothing here.

A kind answers `PruningStatistics` over all live files of an opened generation. The planner asks the
kinds in the order of their cost; min/max comes first. Distributions add kinds in the entry point
group ``skipbridge.index_kinds``: the entry's name is the kind's, its value an `IndexKind`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol

from bridge.expression.statistics import PruningStatistics
from bridge.index.serving import ServingIndex
from bridge.types import Field, Semantics

GROUP = "skipbridge.index_kinds"


class IndexKind(Protocol):
    """What is known about files, of one sort.

    Attributes:
        name: as manifests and reports spell it.
        cost: relative cost of an answer; cheaper kinds are asked first.
    """

    name: str
    cost: float

    def statistics(
        self, index: ServingIndex, columns: Sequence[Field], semantics: Semantics
    ) -> PruningStatistics | None:
        """Statistics over all files of the generation; None if it holds none of this kind."""
        ...


class MinMax:
    """Bounds and counts, from footers or scans."""

    name = "minmax"
    cost = 1.0

    def statistics(
        self, index: ServingIndex, columns: Sequence[Field], semantics: Semantics
    ) -> PruningStatistics | None:
        if self.name not in index.manifest.kinds:
            return None
        return index.statistics(columns, semantics)


@cache
def kinds() -> tuple[IndexKind, ...]:
    """All kinds that are installed, cheapest first; a name is taken by the first that has it."""
    found: dict[str, IndexKind] = {"minmax": MinMax()}
    for entry in entry_points(group=GROUP):
        kind: IndexKind = entry.load()
        found.setdefault(kind.name, kind)
    return tuple(sorted(found.values(), key=lambda kind: (kind.cost, kind.name)))
