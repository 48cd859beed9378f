"""What of an index is switched off, or not there yet: told in every report."""

from __future__ import annotations

import shlex

from bridge.index.kinds.definition import MINMAX
from bridge.planner.index_view import IndexView
from bridge.planner.report import IndexNotUsed


def uses_minmax(view: IndexView) -> bool:
    """Whether there is a generation whose min/max planners may ask."""
    return view.serving is not None and view.serving.manifest.settings.minmax_visible


def disabled_indexes(view: IndexView, table: str) -> list[IndexNotUsed]:
    """Indexes that planners are told not to ask, and a generation under way.

    Args:
        table: as commands name it.
    """
    if view.serving is None:
        return []
    manifest = view.serving.manifest
    hidden = [d.name for d in manifest.settings.definitions if not d.visible]
    if not manifest.settings.minmax_visible:
        hidden.insert(0, MINMAX)
    found = [
        IndexNotUsed(
            name,
            "INVISIBLE",
            "it is switched off",
            f"skipbridge index reveal {table} {shlex.quote(name)}",
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
                f"skipbridge index refresh {table}",
            )
        )
    return found
