"""Indexes that are switched off or not complete yet; every report lists them."""

from __future__ import annotations

from bridge.index.kinds.definition import MINMAX
from bridge.planner.index_view import IndexView
from bridge.planner.report import IndexNotUsed, Remedy


def disabled_indexes(view: IndexView, table: str) -> list[IndexNotUsed]:
    """The invisible indexes, and a generation whose build has not finished.

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
    if not manifest.complete:
        found.append(
            IndexNotUsed(
                "all",
                "PARTIAL",
                f"generation {manifest.generation} knows {manifest.num_files} files, a build has "
                "not come to its end",
                Remedy("refresh", table),
            )
        )
    return found
