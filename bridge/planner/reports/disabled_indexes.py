"""Indexes that are switched off, not installed or not complete; every report lists them."""

from __future__ import annotations

from bridge.index.kinds.definition import MINMAX
from bridge.index.kinds.registry import kinds
from bridge.planner.index_view import IndexView
from bridge.planner.reports.report import IndexNotUsed, Remedy


def disabled_indexes(view: IndexView, table: str) -> list[IndexNotUsed]:
    """Invisible indexes, those of kinds that are not installed, and an unfinished generation.

    Args:
        table: the table as commands name it.
    """
    if view.index is None:
        return []
    manifest = view.index.manifest
    hidden = [d.name for d in manifest.settings.definitions if not d.visible]
    if not manifest.settings.minmax_visible:
        hidden.insert(0, MINMAX)
    found = [
        IndexNotUsed(
            name,
            "INVISIBLE",
            "it is switched off",
            Remedy("reveal", table, (name,)),
        )
        for name in hidden
    ]
    installed = kinds()
    found += [
        IndexNotUsed(
            d.name,
            "NOT_INSTALLED",
            f"the index kind {d.kind!r} is not installed here",
            Remedy(text="install the distribution that brings it, here and where builds run"),
        )
        for d in manifest.settings.definitions
        if d.visible and d.kind not in installed
    ]
    if not manifest.complete:
        found.append(
            IndexNotUsed(
                "all",
                "PARTIAL",
                f"generation {manifest.generation} knows {manifest.num_files} files, and its build "
                "has not finished",
                Remedy("refresh", table),
            )
        )
    return found
