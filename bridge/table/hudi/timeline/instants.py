"""Finds the instant that a query as of a time or of a version reads."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from bridge.kernel.errors import ReadVersionNotFound
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.timeline.pending_writes import refuse_open
from bridge.table.model import TableName

_INSTANT = re.compile(r"\d{14}(\d{3})?")
_FORM = "%Y%m%d%H%M%S"


def instant_at(name: TableName, view: FileSystemView, asked: str | datetime) -> str:
    """The newest completed write at an instant, by its request time as Spark takes it.

    A timeline in the zone LOCAL does not record which zone its writers were in. As Hudi's own
    readers do, a time is then taken in this process's zone.

    Args:
        asked: an instant's text, or a time with a zone.

    Errors:
        ReadVersionNotFound: the text is no instant, the table is younger, a write until then is
            pending, or what was written since a savepoint was archived.
        FileCorrupt: the archived timeline cannot be read.
    """
    if isinstance(asked, datetime):
        there = asked.astimezone(UTC if view.config.timeline_zone == "UTC" else None)
        text = there.strftime(_FORM) + f"{asked.microsecond // 1000:03d}"
    else:
        if not _INSTANT.fullmatch(asked):
            raise ReadVersionNotFound(
                f"{asked[:50]!r} is no instant of {name}", "an instant is yyyyMMddHHmmssSSS"
            )
        text = asked if len(asked) == 17 else f"{asked}999"
    refuse_open(view, f"the version as of {text}", text)
    found = max((i for i in view.timeline.completed if i <= text), default="")
    first = view.timeline.first_active
    # Archival leaves the commits of savepoints behind, and takes later ones.
    savepoint = "" < found < first and found not in (asked, text)
    if savepoint and any(found < i <= text for i in view.read_archived()):
        raise ReadVersionNotFound(
            f"{name} as of {text} is older than its active timeline, which starts at {first}",
            "name an instant of the active timeline, or a savepoint",
        )
    if not found:
        raise ReadVersionNotFound(
            f"{name} has no instant at or before {text}",
            f"its timeline begins at {first}" if first else "nothing was written to it yet",
        )
    return found
