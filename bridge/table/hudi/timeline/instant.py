"""Instants: the states of actions on a Hudi timeline, as the names of its files say them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

_NAME = {
    1: re.compile(r"([0-9]+)()((?:\.[a-z]+){1,2})"),
    2: re.compile(r"([0-9]+)(?:_([0-9]+))?((?:\.[a-z]+){1,2})"),
}
_WRITES = ("commit", "deltacommit", "replacecommit")
_COMPLETED = (*_WRITES, "clean", "rollback", "restore", "savepoint", "indexing", "schemacommit")
# A completed compaction is a commit, a completed clustering a replacecommit.
_PENDING = (*_COMPLETED, "compaction", "logcompaction")
WRITE_ACTIONS = frozenset((*_WRITES, "clustering", "compaction", "logcompaction"))
"""Actions that write data files. Requests of instants count from the first of these on."""
_SAME = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}


class State(IntEnum):
    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True)
class Instant:
    """An action on the timeline, in its latest state.

    Attributes:
        requested: when it was requested. Compared as text: the zone may be the writer's own.
        action: ``commit``, ``deltacommit``, ``replacecommit``, ``clustering``, ``compaction``,
            ``logcompaction``, ``clean``, ``rollback``, ``restore``, ``savepoint``, ``indexing`` or
            ``schemacommit``. Before version 8 a pending clustering is a ``replacecommit``.
        completion: when it was completed; None if it is pending, and before version 8.
        name: of its file.
        size: of its file, in bytes.
        modified: of its file, in microseconds since the epoch.
    """

    requested: str
    action: str
    state: State
    completion: str | None
    name: str
    size: int = 0
    modified: int = 0

    @property
    def completed(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def is_write(self) -> bool:
        """Whether the action writes data files."""
        return self.action in WRITE_ACTIONS

    @property
    def key(self) -> tuple[str, str]:
        """The same for all states of one action."""
        return self.requested, _SAME.get(self.action, self.action)


def parse_instant(name: str, layout: int, size: int = 0, modified: int = 0) -> Instant | None:
    """The instant that a file on the timeline stands for; None if Hudi ignores such a name.

    A completed instant of layout 2 without a completion time, as an unfinished upgrade leaves it,
    has the completion ``""``.

    >>> parse_instant("20240101000000000_20240101000001000.commit", 2).completion
    '20240101000001000'
    >>> parse_instant("20240101000000000.inflight", 1).action
    'commit'
    """
    match = _NAME[layout].fullmatch(name)
    if match is None:
        return None
    action, _, ending = match[3][1:].partition(".")
    if match[3] == ".inflight":
        action, ending = "commit", "inflight"
    if not ending:
        if action not in _COMPLETED:
            return None
        completion = (match[2] or "") if layout == 2 else None
        return Instant(match[1], action, State.COMPLETED, completion, name, size, modified)
    if ending not in ("requested", "inflight"):
        return None
    if action not in _PENDING and not (layout == 2 and action == "clustering"):
        return None
    # Names that no writer makes and Hudi does not look for.
    if (action, ending) in (("savepoint", "requested"), ("commit", "inflight")) and (
        match[3] != ".inflight"
    ):
        return None
    state = State.REQUESTED if ending == "requested" else State.INFLIGHT
    return Instant(match[1], action, state, None, name, size, modified)
