"""When a partition without data is dropped from the metastore.

An absence is stated, not assumed (rule 43). An engine that overwrites a partition deletes its
directory first, and a share may be unmounted. So a drop waits for a second run, at least
``sync.drop_after`` later, and for jobs that are at work there. And there is a brake: if too many
partitions would go within a day, none goes.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bridge.sync.diff import RegisteredPartition, Wait, below
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.storage import SyncStorage
from bridge.table.directory.discovered import STAGING

DAY = 86400
_FEW = 5
_SHARE = 0.2


@dataclass(slots=True)
class Absence:
    """The drops of one run; called with the partitions below the root that hold no data.

    Args:
        root: canonical URI.
        begun: when the run began, milliseconds since the epoch: what it found itself proves nothing
            to it.
        registered: number of partitions in the metastore.
        recent: number of partitions that were dropped within the last day; None if it is lost.
        nothing: there is no data at all below the root, which ``--drop-all`` accepts.

    Attributes:
        held: how many drops the brake holds back.
    """

    storage: SyncStorage
    root: str
    request: SyncRequest
    settings: SyncSettings
    begun: int
    registered: int
    recent: int | None
    nothing: bool = False
    held: int = field(default=0, init=False)

    def __call__(self, absent: Sequence[RegisteredPartition]) -> list[Wait | None]:
        now = int(time.time() * 1000)
        # A time in the future is another machine's mistake: the wait begins now.
        found = {p.name: p.missing if p.missing and p.missing <= now else now for p in absent}
        reasons = dict.fromkeys(found, "")
        if not (self.request.drop_now or (self.request.drop_all and self.nothing)):
            due = self._due(now)
            reasons = {
                n: "" if found[n] < self.begun and found[n] <= due else self._until(found[n])
                for n in found
            }
            reasons |= self._staged([p for p in absent if not reasons[p.name]], found, now)
        ready = [n for n in reasons if not reasons[n]]
        recent = self.recent or 0
        most = max(_FEW, _SHARE * (self.registered + recent)) if self.recent is not None else 0
        if not self.request.drop_all and ready and len(ready) + recent > most:
            self.held = len(ready)
            before = f"after {recent}" if self.recent is not None else "after a lost number"
            brake = (
                f"{len(ready)} partitions of {self.registered} would be dropped, {before} in the "
                "last day: --drop-all drops them"
            )
            reasons |= dict.fromkeys(ready, brake)
        return [Wait(reasons[p.name], found[p.name]) if reasons[p.name] else None for p in absent]

    def _due(self, now: int) -> int:
        return now - int(self.settings.drop_after * 1000)

    def _until(self, found: int) -> str:
        since, until = (
            dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            for at in (found / 1000, found / 1000 + self.settings.drop_after)
        )
        return f"no data since {since}: dropped by a run after {until}, or by --drop-now"

    def _staged(
        self, absent: Sequence[RegisteredPartition], found: dict[str, int], now: int
    ) -> dict[str, str]:
        """The partitions that a job may be writing, and where it works."""
        around = {p.name: list(_up_to(self.root, p.location)) for p in absent}
        places = sorted({place for several in around.values() for place in several})
        staging = dict(zip(places, self.storage.list_staging(places, STAGING), strict=True))
        reasons = {}
        for name, several in around.items():
            for directory, newest in (s for place in several for s in staging[place]):
                # The age of a directory without files is unknown: it is that of the finding.
                at = newest / 1000 if newest is not None else found[name]
                if at > now - DAY * 1000:
                    reasons[name] = f"a job may be at work in {directory}: --drop-now drops it"
        return reasons


def _up_to(root: str, location: str) -> Iterable[str]:
    """The location, and the directories above it as far as the root."""
    while location != root and below(root, location):
        yield location
        location = location.rpartition("/")[0]
    yield root


def dropped_lately(dropped: Iterable[tuple[int, int]], now: float) -> list[tuple[int, int]]:
    """Those of the drops (seconds since the epoch, number) that the brake still counts."""
    return [(at, number) for at, number in dropped if at > now - DAY]
