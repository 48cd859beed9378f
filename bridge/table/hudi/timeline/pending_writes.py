"""Writes that are not completed, and the answers that have to wait for them.

The law: an answer about an instant is the same whenever it is asked for. While an earlier write is
pending it would lack rows that come in later, so it is refused, by the name of that write.
Compactions and clusterings change no rows.
"""

from __future__ import annotations

from bridge.kernel.errors import ReadVersionNotFound
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.timeline.clusterings import is_clustering

_WRITES = ("commit", "deltacommit", "replacecommit")


def refuse_open(
    view: FileSystemView, what: str, until: str, after: str = "", closed: str = ""
) -> None:
    """Refuses an answer about a range of requested times, if a write of it is pending.

    Args:
        what: the answer, for the error.
        until: inclusive.
        after: exclusive.
        closed: where an answer may end; empty: at the last write that was requested before.

    Errors:
        ReadVersionNotFound: the earliest such write is named, and where an answer may end.
        FileCorrupt: the plan of a clustering cannot be read.
    """
    for instant in sorted(view.timeline.pending_of(*_WRITES), key=lambda i: i.requested):
        if not after < instant.requested <= until or is_clustering(view, instant):
            continue
        closed = closed or max(
            (i for i in view.timeline.completed if after < i < instant.requested), default=""
        )
        raise ReadVersionNotFound(
            f"{what} of {view.config.name} is not closed: the {instant.action} "
            f"{instant.requested} is {instant.state.name.lower()}",
            (f"{closed} is closed: name it" if closed else "no instant before it is closed")
            + ", or ask again once that write is completed; if its writer died, let Hudi roll it "
            "back",
        )
