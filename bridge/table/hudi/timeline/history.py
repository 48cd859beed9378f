"""A Hudi timeline, and what wrote each file, as system tables show them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bridge.table.hudi.timeline.timeline import HudiTimeline
from bridge.table.snapshot import TimelineEntry


def entries(timeline: HudiTimeline) -> list[TimelineEntry]:
    """The actions on the active timeline; archived ones are left out."""
    return [
        TimelineEntry(
            each.requested,
            each.completion,
            each.action,
            each.state.name.lower(),
            each.size,
            each.modified,
        )
        for each in timeline.instants
    ]


def written_by(paths: pa.Array) -> list[str | None]:
    """The instant in the name of each base file; None where there is none.

    >>> written_by(pa.array(["file:/t/f1-0_0-1-2_20240101000000000.parquet", ""]))
    ['20240101000000000', None]
    """
    found = pc.extract_regex(paths, r"_(?P<instant>\d+)\.[^./]+$").field("instant")
    return [text or None for text in found.to_pylist()]
