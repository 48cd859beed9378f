"""Deletes the records of plans that ended long ago, if nobody can ask for them any more.

It keeps the records of

- a plan that waits;
- a plan whose new files are still there: to read, clean or cluster them again takes its records;
- the plan that was completed last: triggers count from it, and the next plan takes its layout.

A list of refused files stays as long as one of the files is unchanged.

The law: whenever a run dies, the records that are left say of no plan that it waits. So the request
goes first, without which there is no plan, and how it ended goes last.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from bridge.clustering.timeline import PlanState, Timeline
from bridge.index.generations.replacements import FileState, states_of
from bridge.index.generations.store import now_micros
from bridge.storage.port import Storage, same_state
from bridge.storage.reading.ahead import ask_all

_RECORD = re.compile(r"/(\d{17})\.([a-z]+)(?:-\d+)?\.json$")
_FIRST, _LAST = "requested", ("ended", "rejected")
_DEAD = 3_600_000_000
"""Microseconds after which a run that has not gone on counts as dead."""


def expired_plans(states: Collection[PlanState], with_files: Collection[str]) -> set[str]:
    """Plans that ended and are not asked for; they may be too young.

    Args:
        with_files: instants whose directories hold files.
    """
    completed = [each.instant for each in states if each.state == "completed"]
    kept = {*with_files, *completed[-1:]}
    return {each.instant for each in states if not each.pending and each.instant not in kept}


class OldPlans:
    """Deletes records.

    Args:
        before: microseconds since the epoch: a plan with a later record is kept whole.
        dry_run: only counts.
    """

    def __init__(
        self, storage: Storage, timeline: Timeline, before: int, *, dry_run: bool = False
    ) -> None:
        self._storage, self._timeline = storage, timeline
        self._before, self._dry_run = before, dry_run

    def forget(self, states: Collection[PlanState], with_files: Collection[str]) -> int:
        """Deletes the records of all plans that `expired_plans` names and that are old enough.

        Also what a run has left of such plans that died while it deleted them.

        Args:
            states: of all plans, from before this call.

        Returns:
            How many plans have lost records.

        Errors:
            FileCorrupt, StorageFailure.
        """
        free = expired_plans(states, with_files)
        known = {each.instant for each in states}
        count = 0
        for instant, records in self._records():
            before = self._before
            if instant not in known:  # left of a plan
                if records[0][0] == _FIRST:  # no: requested since
                    continue
                before = min(before, now_micros() - _DEAD)
            elif instant not in free:
                continue
            if any(state.modified >= before for _, state in records):
                continue
            gone = [(kind, s) for kind, s in records if kind != "refused" or not self._needed(s)]
            count += bool(gone)
            for _, state in gone if not self._dry_run else ():
                self._storage.delete(state.path)
        return count

    def _records(self) -> Iterator[tuple[str, list[tuple[str, FileState]]]]:
        """Each plan's records with their kinds, in the order in which they are deleted."""
        found: dict[str, list[tuple[str, FileState]]] = {}
        for state in states_of(self._timeline.records()):
            named = _RECORD.search(state.path)
            if named is not None:
                found.setdefault(named[1], []).append((named[2], state))
        for instant in sorted(found):
            yield instant, sorted(found[instant], key=lambda each: _rank(each[0]))

    def _needed(self, record: FileState) -> bool:
        """Whether a file that a record names as refused is still as it was."""
        files = self._timeline.read_refused(record.path)
        paths = [file.path for file in files]
        now = ask_all(self._storage, self._storage.stat, paths, record.path)
        return any(
            stat is not None and same_state(file, stat)
            for file, stat in zip(files, now, strict=True)
        )


def _rank(kind: str) -> int:
    return 0 if kind == _FIRST else 2 if kind in _LAST else 1
