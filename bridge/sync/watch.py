"""Repeats a sync at intervals and on events of the metastore.

The metastore's events name tables that others have changed. Storage sends no events, so it is
listed at intervals. An event caused by this job leads to a comparison that finds nothing to do and
causes no further event. No digest of the last run covers an altered partition, so after such an
event every partition is compared, unless its parameters alone were altered, as by our own mark
of missing data.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from bridge.kernel.errors import BridgeError, MetastoreFailure
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.metastore.notifications import changed_tables, leaves_data_alone
from bridge.sync.job import Say, SyncJob

log = logging.getLogger(__name__)
_EVENTS = 1000
_DROPPED = "DROP_TABLE"
_ALTERED = frozenset({"ALTER_PARTITION", "ALTER_PARTITIONS"})
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
class TouchedTables:
    """What events have reported, with tables as ``schema.table``.

    Attributes:
        changed: existing tables that were changed.
        altered: those of them in which single partitions were altered.
        dropped: tables that were dropped.
        gap: events are missing, so any table may have changed in any way.
    """

    changed: set[str] = field(default_factory=set)
    altered: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    gap: bool = False

    def take(self, event: records.NotificationEvent) -> None:
        name = f"{event.dbName}.{event.tableName}".lower()
        if event.eventType == "ALTER_TABLE":  # renamed: the old name is gone
            names = {f"{database}.{table}" for database, table in changed_tables(event) if table}
            self.dropped |= names - {name}
            self.changed -= names - {name}
        if event.eventType == _DROPPED:
            self.dropped.add(name)
        elif event.eventType in _CONCERNING:
            self.changed.add(name)
            self.dropped.discard(name)
            if event.eventType in _ALTERED and not leaves_data_alone(event):
                self.altered.add(name)


@dataclass(slots=True)
class Events:
    """The metastore's events since the last call.

    Attributes:
        last: number of the newest event received.
    """

    client: MetastoreClient
    last: int = 0

    def begin(self) -> None:
        """Skips all events up to now."""
        try:
            self.last = self.client.get_current_notification_id()
        except MetastoreFailure as error:
            raise MetastoreFailure(
                f"the metastore provides no events: {error.message}",
                "a listener must record them (hive.metastore.transactional.event.listeners); "
                "--watch needs none",
            ) from error

    def find_touched(self) -> TouchedTables:
        """What has changed since the last call; after an error the next call tells all of it."""
        found, last = TouchedTables(), self.last
        while events := self.client.get_next_notifications(last, _EVENTS):
            found.gap |= events[0].eventId > last + 1
            for event in events:
                found.take(event)
            last = events[-1].eventId
        self.last = last
        return found


@dataclass(slots=True)
class Watch:
    """Runs jobs until it is stopped.

    Attributes:
        jobs: all jobs; each runs once at the start.
        run: syncs some of them; never raises.
        every: seconds between listings of storage; None: only at the start.
        events: the events to listen to; None: no events.
        poll: seconds between polls for events.
        stop: set by a signal; the current run is finished first.
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
            if self.events is not None:  # first: a table that was dropped is not created again
                self._answer(self.events)
            if self.every is not None and time.monotonic() >= due:
                self._run([j for j in self.jobs if self._name(j) not in self._gone])
                due = time.monotonic() + self.every

    def _pause(self, due: float) -> float:
        left = due - time.monotonic() if self.every is not None else self.poll
        return max(0.0, min(left, self.poll) if self.events is not None else left)

    def _answer(self, events: Events) -> None:
        try:
            touched = events.find_touched()
        except BridgeError as error:  # the metastore may come back
            log.warning("events cannot be read: %s", error.message)
            return
        due: list[SyncJob] = []
        for job in self.jobs:
            name = self._name(job)
            if name in touched.dropped and name not in self._gone:
                self._gone.add(name)
                self.say(f"{name} was dropped by another job: it is not created again")
            elif name in touched.changed:
                self._gone.discard(name)
            if name in self._gone or not (touched.gap or name in touched.changed):
                continue
            if touched.gap or name in touched.altered:
                job = replace(job, request=replace(job.request, full=True))
            due.append(job)
        self._run(due)

    def _run(self, jobs: Sequence[SyncJob]) -> None:
        if jobs:
            self.run(jobs)

    def _name(self, job: SyncJob) -> str:
        return str(job.request.name)
