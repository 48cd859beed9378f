"""Merges segments: their lists of files become one. Fact files stay as and where they are.

Index entries belong to files and not to segments, so they hold as before. Views are merged, so that
each has one sorted file set for the new segment.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidRequest, SegmentConflict
from bridge.segments.commands.manage import chosen_segments
from bridge.segments.commands.opened import OpenSegments, open_segments
from bridge.segments.commands.view_files import merge_views
from bridge.storage.port import join_tables
from bridge.table.segments.log import FactPlaces
from bridge.table.segments.manifest import FileReader, Segment, SegmentManifest, Status, order

Kind = Literal["minor", "major", "custom"]
MAJOR_SIZE = 1 << 30
THRESHOLD = (4, 3)
_ATTEMPTS = 5


class _Moved(Exception):
    """Another command changed one of the segments meanwhile."""


def compact(
    config: Config,
    table: str,
    *,
    kind: Kind = "minor",
    ids: Sequence[str] = (),
) -> dict[str, Any]:
    """Merges segments that are read; disabled ones stay as they are.

    Args:
        kind: ``minor`` merges ``THRESHOLD[0]`` segments that were never merged into one, and then
            ``THRESHOLD[1]`` of those. ``major`` merges neighbours that hold ``MAJOR_SIZE`` bytes
            together at most. ``custom`` merges ``ids``.

    Errors:
        InvalidRequest: fewer than two ids.
        SegmentNotFound, SegmentConflict.
    """
    if kind not in ("minor", "major", "custom"):
        raise InvalidRequest(f"there is no compaction {kind!r}", "give minor, major or custom")
    if kind == "custom" and len(set(ids)) < 2:
        raise InvalidRequest("a custom compaction merges at least two segments", "name their ids")
    if kind != "custom" and ids:
        raise InvalidRequest(f"a {kind} compaction chooses segments itself", "leave the ids out")
    merged: dict[str, list[str]] = {}
    for _ in range(_ATTEMPTS):
        with open_segments(config, table) as opened:
            try:
                while groups := _groups(opened, kind, ids):
                    for group in groups:
                        made = _merge(opened, group, kind)
                        merged[made.id] = [s.id for s in group]
                    opened = replace(opened, manifest=opened.log.latest())
                    if kind != "minor":
                        break
            except _Moved:
                continue
            version = opened.log.latest().version
        return {"table": str(opened.table.name), "version": version, "merged": merged}
    raise SegmentConflict(
        f"other commands change the segments of {table} all the time", "run the command again"
    )


def _groups(opened: OpenSegments, kind: Kind, ids: Sequence[str]) -> list[list[Segment]]:
    """Segments to merge, each group into one."""
    readable = list(opened.manifest.readable)
    if kind == "custom":
        chosen = chosen_segments(opened.manifest, opened.table.name, ids, (Status.SUCCESS,))
        return [sorted(chosen, key=lambda s: order(s.id))]
    if kind == "major":
        return _neighbours(readable)
    for level, count in enumerate(THRESHOLD):
        at_level = [s for s in readable if _level(s) == level]
        whole = len(at_level) // count * count
        if whole:
            return [at_level[i : i + count] for i in range(0, whole, count)]
    return []


def _neighbours(segments: Sequence[Segment]) -> list[list[Segment]]:
    groups: list[list[Segment]] = []
    held = 0
    for segment in segments:
        if groups and held + segment.files.bytes <= MAJOR_SIZE:
            groups[-1].append(segment)
            held += segment.files.bytes
        else:
            groups.append([segment])
            held = segment.files.bytes
    return [group for group in groups if len(group) > 1]


def _level(segment: Segment) -> int:
    parts = order(segment.id)
    return parts[1] if len(parts) > 1 else 0


def _merge(opened: OpenSegments, group: Sequence[Segment], kind: Kind) -> Segment:
    """Commits one segment in place of several. Errors: _Moved."""
    started = time.time_ns() // 1000
    readers: dict[FileReader, int] = {}
    tables, numbers, places, partitions = [], [], [], []
    for segment in group:
        held = opened.log.read_files(segment.files)
        own = [readers.setdefault(reader, len(readers)) for reader in segment.readers]
        tables.append(held.files)
        places.append(held.places)
        partitions.append(held.partitions.dictionary_decode())
        numbers.append(np.array(own, np.int32)[held.reader])
    joined = FactPlaces.join(places)
    named = pa.concat_arrays(partitions) if opened.manifest.definition.partition_columns else None
    files = opened.log.put_files(join_tables(tables), np.concatenate(numbers), joined, named)
    views = merge_views(opened, group, specs=tuple(readers), file_set=files)
    base = order(group[0].id)[0]
    made = Segment(
        f"{base}.{max(_level(s) for s in group) + 1}",
        Status.SUCCESS,
        started,
        started,
        tuple(dict.fromkeys(path for s in group for path in s.paths)),
        tuple(readers),
        files,
        merged_from=tuple(s.id for s in group),
    )

    def change(held: SegmentManifest) -> SegmentManifest:
        for segment in group:
            now = held.segment(segment.id)
            if now is None or now.status is not segment.status or now.files != segment.files:
                raise _Moved
        known = {v.id for v in held.definition.views}
        levels = [_level(s) for s in held.segments if order(s.id)[0] == base]
        id = f"{base}.{max([*levels, *(_level(s) for s in group)]) + 1}"
        nonlocal made
        made = replace(
            made,
            id=id,
            finished=time.time_ns() // 1000,
            views=tuple(v for v in views if v.view_id in known),
        )
        old = (replace(s, status=Status.COMPACTED, merged_into=id, views=()) for s in group)
        return held.with_segments(made, *old)

    opened.log.commit(f"COMPACT {kind.upper()} {', '.join(s.id for s in group)}", change)
    return made
