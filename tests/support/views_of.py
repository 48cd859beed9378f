"""The views of a table of segments, with the state of each segment."""

from __future__ import annotations

from bridge.kernel.config import Config
from bridge.segments.commands.opened import open_segments
from bridge.table.segments.snapshot import view_states


def states_of_views(config: Config, table: str) -> dict[str, dict[str, str]]:
    """By view, the state of each segment."""
    with open_segments(config, table) as opened:
        found = {s.id: view_states(opened.manifest, s) for s in opened.manifest.readable}
        return {
            view.name: {segment: states[view.name] for segment, states in found.items()}
            for view in opened.manifest.definition.views
        }
