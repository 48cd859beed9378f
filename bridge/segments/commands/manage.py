"""Lists, deletes, disables and cleans the segments of a table. Fact files are never touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bridge.index.generations.entries import live_entries
from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidRequest, ReadVersionNotFound, SegmentNotFound
from bridge.segments.commands.opened import OpenSegments, open_segments
from bridge.table.model import TableName
from bridge.table.segments.manifest import Segment, SegmentManifest, Status, order
from bridge.table.segments.snapshot import view_states

HELD = (Status.SUCCESS, Status.DISABLED)
"""States of segments whose files belong to the table."""


def list_segments(config: Config, table: str, *, history: bool = False) -> dict[str, Any]:
    """The segments of a table, with the state of its index and views for each.

    Args:
        history: also those that `clean` has forgotten, as far as a kept version has them.

    Returns:
        ``segments``: dicts with ``indexed_files`` (None: there is no index), ``views`` (``built``,
        ``absent`` or why it is not there), and sizes as of when the files were added.

    Errors:
        OperationBlocked: the table has no segments.
    """
    with open_segments(config, table) as opened:
        known = _indexed(opened)
        found = [*opened.manifest.segments, *(_forgotten(opened) if history else ())]
        return {
            "table": str(opened.table.name),
            "version": opened.manifest.version,
            "segments": [
                _described(opened, s, known) for s in sorted(found, key=lambda s: order(s.id))
            ],
        }


def _forgotten(opened: OpenSegments) -> list[Segment]:
    """Segments that only older versions of this table have, as the newest of those has them."""
    held = {s.id for s in opened.manifest.segments}
    found: dict[str, Segment] = {}
    for number in reversed(opened.log.versions()):
        try:
            old = opened.log.manifest(number)
        except ReadVersionNotFound:  # cleaned since it was listed
            continue
        if old.definition.id == opened.manifest.definition.id:
            for segment in old.segments:
                if segment.id not in held:
                    found.setdefault(segment.id, segment)
    return list(found.values())


def delete_segments(config: Config, table: str, *, ids: Sequence[str]) -> dict[str, Any]:
    """Takes segments out of the table; their files stay where they are.

    Errors:
        SegmentNotFound: a segment does not exist, or is compacted or deleted.
    """
    return _change(config, table, "DELETE SEGMENT", ids, Status.DELETED, HELD)


def delete_segments_before(config: Config, table: str, *, time: datetime) -> dict[str, Any]:
    """Takes out segments whose adding began before a time.

    Errors:
        OperationBlocked.
    """
    limit = int(time.timestamp() * 1_000_000)

    def choose(held: SegmentManifest) -> list[str]:
        return [s.id for s in held.segments if s.status in HELD and s.started < limit]

    return _change(config, table, "DELETE SEGMENT", choose, Status.DELETED, HELD)


def switch_segments(
    config: Config, table: str, *, ids: Sequence[str], enabled: bool
) -> dict[str, Any]:
    """Hides segments from queries, or shows them again. Errors: SegmentNotFound."""
    status = Status.SUCCESS if enabled else Status.DISABLED
    operation = f"{'ENABLE' if enabled else 'DISABLE'} SEGMENT"
    return _change(config, table, operation, ids, status, HELD)


def clean(
    config: Config,
    table: str,
    *,
    keep: int = 3,
    older_than: float = 3600.0,
    running: float = 0.0,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Forgets deleted and compacted segments, old versions, and files of the table's own.

    Args:
        keep: how many of the newest versions to keep.
        older_than: seconds; younger versions and files are kept.
        running: seconds; younger files that no version names are kept in any case: a command that
            runs may commit them.
        dry_run: tells what would be forgotten and deleted now, and does nothing.

    Errors:
        InvalidRequest, OperationBlocked, SegmentLogCorrupt.
    """
    if keep < 1 or older_than < 0:
        raise InvalidRequest(f"keep={keep}, older_than={older_than}", "give 1 and 0 or more")
    gone: list[str] = []

    def change(held: SegmentManifest) -> SegmentManifest:
        gone[:] = [s.id for s in held.segments if s.status not in HELD]
        kept = tuple(s for s in held.segments if s.status in HELD)
        return replace(held, segments=kept) if gone else held

    with open_segments(config, table) as opened:
        committed = opened.manifest
        if dry_run:
            wanted = change(committed)
            if gone:
                wanted = replace(wanted, version=committed.version + 1)
            deleted = opened.log.clean(keep, older_than, running=running, dry_run=wanted)
        else:
            committed = opened.log.commit("CLEAN SEGMENTS", change)
            deleted = opened.log.clean(keep, older_than, running=running)
    return {
        "table": str(opened.table.name),
        "version": committed.version,
        "segments": gone,
        "deleted_files": deleted,
        "dry_run": dry_run,
    }


def chosen_segments(
    manifest: SegmentManifest,
    name: TableName,
    ids: Sequence[str] | None,
    allowed: Sequence[Status] = HELD,
) -> list[Segment]:
    """Segments by their ids; None: all in an allowed state. Errors: SegmentNotFound."""
    if ids is None:
        return [s for s in manifest.segments if s.status in allowed]
    found: list[Segment] = []
    for id in dict.fromkeys(one.strip() for one in ids):
        segment = manifest.segment(id)
        if segment is None or segment.status not in allowed:
            raise missing_segment(manifest, name, id)
        found.append(segment)
    return found


def missing_segment(manifest: SegmentManifest, name: TableName, id: str) -> SegmentNotFound:
    """The error for a segment that is not there, or not in the table any more."""
    found = manifest.segment(id)
    held = ", ".join(s.id for s in manifest.segments if s.status in HELD) or "none"
    if found is None:
        return SegmentNotFound(f"{name} has no segment {id!r}", f"it has {held}")
    if found.merged_into is not None:
        return SegmentNotFound(
            f"segment {id} of {name} was compacted into {found.merged_into}",
            f"name segment {found.merged_into}",
        )
    return SegmentNotFound(f"segment {id} of {name} is {found.status.value!r}", f"it has {held}")


def _change(
    config: Config,
    table: str,
    operation: str,
    ids: Sequence[str] | Callable[[SegmentManifest], list[str]],
    status: Status,
    allowed: Sequence[Status],
) -> dict[str, Any]:
    if not callable(ids) and not ids:
        raise InvalidRequest(f"{operation} names no segment", "name segments by their ids")
    done: list[str] = []
    with open_segments(config, table) as opened:

        def change(held: SegmentManifest) -> SegmentManifest:
            wanted = ids(held) if callable(ids) else ids
            found = chosen_segments(held, opened.table.name, wanted, allowed)
            now = [replace(s, status=status) for s in found if s.status is not status]
            done[:] = [s.id for s in now]
            return held.with_segments(*now) if now else held

        named = "" if callable(ids) else " " + ", ".join(ids)
        committed = opened.log.commit(operation + named, change)
    return {"table": str(opened.table.name), "version": committed.version, "segments": done}


def _described(
    opened: OpenSegments, segment: Segment, known: dict[str, tuple[int, int]] | None
) -> dict[str, Any]:
    indexed: int | None = None
    if known is not None:
        files = opened.log.read_files(segment.files).files
        identities = zip(files.sizes.tolist(), files.modified.tolist(), strict=True)
        indexed = sum(
            known.get(path) == identity
            for path, identity in zip(files.paths.to_pylist(), identities, strict=True)
        )
    return {
        "id": segment.id,
        "status": segment.status.value,
        "started": segment.started,
        "finished": segment.finished,
        "format": segment.format,
        "files": segment.files.count,
        "bytes": segment.files.bytes,
        "indexed_files": indexed,
        "views": view_states(opened.manifest, segment),
        "merged_from": list(segment.merged_from),
        "merged_into": segment.merged_into,
        "paths": list(segment.paths),
    }


def _indexed(opened: OpenSegments) -> dict[str, tuple[int, int]] | None:
    """Size and time of each file that the newest index knows; None: there is none to be read."""
    try:
        manifest = opened.index.latest()
        if manifest is None:
            return None
        files = live_entries(manifest, opened.index).files
    except BridgeError:
        return None
    files = files.filter(files["problem"].is_null())
    return {
        row["path"]: (row["size"], row["modified"])
        for row in files.select(["path", "size", "modified"]).to_pylist()
    }
