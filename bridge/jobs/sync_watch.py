"""Sync that stays: at intervals, and upon events of the metastore.

The metastore's events tell of tables that others have changed; storage tells nothing by itself, so
files are looked for at intervals. Events that one's own writes cause are answered by a comparison
that finds nothing to do, and that causes none.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bridge.errors import BridgeError, MetastoreFailure
from bridge.jobs.sync_job import Say, SyncJob
from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient

log = logging.getLogger(__name__)
_EVENTS = 1000
_DROPPED = "DROP_TABLE"
_CONCERNING = frozenset(
    {
        "CREATE_TABLE",
        "ALTER_TABLE",
        "ADD_PARTITION",
        "ALTER_PARTITION",
        "ALTER_PARTITIONS",
        "DROP_PARTITION",
        "INSERT",
    }
)


@dataclass(slots=True)
class Events:
    """The metastore's events since one looked last.

    Attributes:
        last: number of the newest event seen.
    """

    client: MetastoreClient
    last: int = 0

    def begin(self) -> None:
        """Events up to now are not told."""
        try:
            self.last = self.client.get_current_notification_id()
        except MetastoreFailure as error:
            raise MetastoreFailure(
                f"the metastore tells no events: {error.message}",
                "a listener must record them (hive.metastore.transactional.event.listeners); "
                "--watch needs none",
            ) from error

    def touched(self) -> tuple[set[str], set[str], bool]:
        """Tables (``schema.table``) changed and tables dropped since, and whether events are
        missing in between, so that any table may have changed.
        """
        changed: set[str] = set()
        dropped: set[str] = set()
        gap = False
        while True:
            events = self.client.get_next_notifications(self.last, _EVENTS)
            if not events:
                return changed, dropped, gap
            gap |= events[0].eventId > self.last + 1
            self._sort(events, changed, dropped)
            self.last = events[-1].eventId

    def _sort(
        self, events: Iterable[ttypes.NotificationEvent], changed: set[str], dropped: set[str]
    ) -> None:
        for event in events:
            name = f"{event.dbName}.{event.tableName}".lower()
            if event.eventType == _DROPPED:
                dropped.add(name)
            elif event.eventType in _CONCERNING:
                changed.add(name)
                dropped.discard(name)


@dataclass(slots=True)
class Watch:
    """Runs jobs until it is told to stop.

    Attributes:
        jobs: all of them; run once at the start.
        run: brings some of them in step; raises for nothing.
        every: seconds between looks at storage; None: never again after the first.
        events: to listen to; None: to none.
        poll: seconds between looks for events.
        stop: set by a signal; the run under way is finished.
    """

    jobs: Sequence[SyncJob]
    run: Callable[[Sequence[SyncJob]], None]
    say: Say
    stop: threading.Event
    every: float | None = None
    events: Events | None = None
    poll: float = 2.0
    _gone: set[str] = field(default_factory=set)

    def loop(self) -> None:
        if self.events is not None:
            self.events.begin()
            if self.events.last == 0:
                self.say(
                    "the metastore has recorded no event so far; if it records none at all "
                    "(hive.metastore.transactional.event.listeners), use --watch"
                )
        self.run(self.jobs)
        due = time.monotonic() + (self.every or 0)
        while not self.stop.wait(self._pause(due)):
            if self.every is not None and time.monotonic() >= due:
                self._run([j for j in self.jobs if self._name(j) not in self._gone])
                due = time.monotonic() + self.every
            if self.events is not None:
                self._answer(self.events)

    def _pause(self, due: float) -> float:
        left = due - time.monotonic() if self.every is not None else self.poll
        return max(0.0, min(left, self.poll) if self.events is not None else left)

    def _answer(self, events: Events) -> None:
        try:
            changed, dropped, gap = events.touched()
        except BridgeError as error:  # it may come back
            log.warning("events cannot be read: %s", error.message)
            return
        for job in self.jobs:
            name = self._name(job)
            if name in dropped and name not in self._gone:
                self._gone.add(name)
                self.say(f"{name} was dropped by somebody: it is not made anew")
            elif name in changed:
                self._gone.discard(name)
        self._run(
            [
                j
                for j in self.jobs
                if self._name(j) not in self._gone and (gap or self._name(j) in changed)
            ]
        )

    def _run(self, jobs: Sequence[SyncJob]) -> None:
        if jobs:
            self.run(jobs)

    def _name(self, job: SyncJob) -> str:
        return str(job.request.name)
