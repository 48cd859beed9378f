"""Takes up fact files of a table of segments that were rewritten since they were added."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.indexing.table import Progress, Say
from bridge.kernel.config import Config
from bridge.kernel.errors import FileUnreadable, SegmentConflict
from bridge.runtime.compose import is_location
from bridge.segments.commands.add import require_same
from bridge.segments.commands.fact_files import file_table, restat
from bridge.segments.commands.load import load_facts
from bridge.segments.commands.manage import HELD, chosen_segments
from bridge.segments.commands.opened import OpenSegments, open_segments
from bridge.segments.commands.places import places_of, refuse_overlap, refuse_own
from bridge.segments.commands.registration import is_recorded, update_record
from bridge.storage.port import FileTable
from bridge.table.segments.headers import readers_of
from bridge.table.segments.log import FactPlaces, SegmentFiles
from bridge.table.segments.manifest import FileReader, Segment, SegmentManifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _silent(*_: object) -> None:
    """For callers that want no news."""


def refresh_segments(
    config: Config,
    table: str,
    *,
    segments: Sequence[str] | None = None,
    forget_missing: bool = False,
    local: bool = False,
    spark: SparkSession | None = None,
    progress: Progress = _silent,
    say: Say = _silent,
) -> dict[str, Any]:
    """Looks at the files of segments again, and takes up those that were rewritten.

    New files beside them are not taken up: they are another segment. A record in the metastore by
    which Hive cannot read the table is written anew first.

    Args:
        segments: ids; None: all that are read or disabled.
        forget_missing: files that are gone leave their segments, instead of an error.

    Errors:
        FileUnreadable: a file is gone.
        SegmentOverlap: by a link that has moved, a file would be there twice.
        SegmentNotFound, SegmentSchemaMismatch, SegmentConflict.
    """
    present: dict[str, FileTable] = {}
    changed: dict[str, tuple[Segment, Segment]] = {}
    report: dict[str, Any] = {
        "segments": [],
        "changed_files": 0,
        "gone": [],
        "recorded": False,
    }
    with open_segments(config, table) as opened:
        if not is_location(table) and not is_recorded(config, opened.table):
            report["recorded"] = update_record(config, opened.table)
        for segment in chosen_segments(opened.manifest, opened.table.name, segments):
            held = opened.log.read_files(segment.files)
            now, gone = restat(opened.storage, held.files)
            if gone and not forget_missing:
                raise FileUnreadable(
                    f"{gone[0]} of segment {segment.id} is gone"
                    + (f", and {len(gone) - 1} more files" if len(gone) > 1 else ""),
                    "restore it, delete the segment, or refresh with --forget-missing: its rows "
                    "then leave the table",
                )
            files = file_table(now)
            present[segment.id], places = files, places_of(files)
            for uri, place in zip(files.paths.to_pylist(), places.places.to_pylist(), strict=True):
                refuse_own(uri, place)
            different = _changed(held, files, places)
            report["gone"] += gone
            if not different.any() and not gone:
                continue
            report["changed_files"] += int(different.sum())
            report["segments"].append(segment.id)
            readers, number = _again(opened, segment, files, different)
            named = None
            if opened.manifest.definition.partition_columns:
                before = dict(
                    zip(held.files.paths.to_pylist(), held.partitions.to_pylist(), strict=True)
                )
                own = [before[path] for path in files.paths.to_pylist()]
                named = pa.array(own, pa.large_string())
            file_set = opened.log.put_files(files, number, places, named)
            done = time.time_ns() // 1000
            made = replace(segment, readers=readers, files=file_set, views=(), finished=done)
            _, views = load_facts(
                opened, made, local=local, spark=spark, progress=progress, say=say
            )
            changed[segment.id] = segment, replace(made, views=views)

        def change(held: SegmentManifest) -> SegmentManifest:
            require_same(held, opened)
            now: list[Segment] = []
            for id, (before, after) in changed.items():
                current = held.segment(id)
                merged = current is not None and current.merged_into is not None
                if current is None or merged or current.files != before.files:
                    raise SegmentConflict(
                        f"segment {id} of {opened.table.name} changed while it was refreshed",
                        "run the command again",
                    )
                known = {v.id for v in held.definition.views}
                views = tuple(v for v in after.views if v.view_id in known)
                now.append(replace(after, status=current.status, views=views))
            mine = {s.id for s in held.segments if s.status in HELD}
            refuse_overlap(opened.log, held, {id: f for id, f in present.items() if id in mine})
            return held.with_segments(*now) if now else held

        committed = opened.log.commit("REFRESH SEGMENT " + ", ".join(changed), change)
    return {"table": str(opened.table.name), "version": committed.version, **report}


def _again(
    opened: OpenSegments, segment: Segment, files: FileTable, changed: npt.NDArray[np.bool_]
) -> tuple[tuple[FileReader, ...], npt.NDArray[np.int32]]:
    """The readers of a segment's files as they are now; unchanged files keep theirs."""
    held = opened.log.read_files(segment.files)
    before = dict(zip(held.files.paths.to_pylist(), held.reader.tolist(), strict=True))
    was = np.array([before[path] for path in files.paths.to_pylist()], np.int32)
    number = was.copy()
    readers = {reader: i for i, reader in enumerate(segment.readers)}
    for i in np.unique(was[changed]).tolist():
        mask = changed & (was == i)
        reader = segment.readers[i]
        columns = opened.manifest.definition.columns
        found, own = readers_of(
            opened.storage, files.filter(mask), reader.format, reader.properties, columns
        )
        mine = [readers.setdefault(one, len(readers)) for one in found]
        number[mask] = np.array(mine, np.int32)[own]
    return tuple(readers), number


def _changed(before: SegmentFiles, now: FileTable, places: FactPlaces) -> npt.NDArray[np.bool_]:
    """Which of the files are others than they were, or lie elsewhere."""
    held = set(before.files.stats())
    paths = before.files.paths.to_pylist()
    lay = dict(zip(paths, before.places.places.to_pylist(), strict=True))
    return np.array(
        [
            one not in held or lay[one.uri] not in (None, place)
            for one, place in zip(now.stats(), places.places.to_pylist(), strict=True)
        ],
        np.bool_,
    )
