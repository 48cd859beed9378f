"""Writes that are not completed, and the answers that have to wait for them.

The law: an answer about an instant is the same whenever it is asked for. While an earlier write is
pending it would lack rows that come in later, so it is refused, by the name of that write.
Compactions and clusterings change no rows.
"""

from __future__ import annotations

from bridge.errors import ReadVersionNotFound
from bridge.table.hudi.clusterings import is_clustering
from bridge.table.hudi.file_system_view import FileSystemView

_WRITES = ("commit", "deltacommit", "replacecommit")


def refuse_open(view: FileSystemView, what: str, until: str, after: str = "") -> None:
    """Refuses an answer about a range of requested times, if a write of it is pending.

    Args:
        what: the answer, for the error.
        until: inclusive.
        after: exclusive.

    Errors:
        ReadVersionNotFound: the earliest such write is named.
        FileCorrupt: the plan of a clustering cannot be read.
    """
    for instant in sorted(view.timeline.pending_of(*_WRITES), key=lambda i: i.requested):
        if not after < instant.requested <= until or is_clustering(view, instant):
            continue
        raise ReadVersionNotFound(
            f"{what} of {view.config.name} is not closed: the {instant.action} "
            f"{instant.requested} is {instant.state.name.lower()}",
            f"name an instant before {instant.requested}, or ask again once that write is "
            "completed; if its writer died, let Hudi roll it back",
        )
