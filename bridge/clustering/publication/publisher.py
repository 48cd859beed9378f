"""Publishes partitions, and takes publications back: a publication in the other direction.

The law: a reader that lists the metastore's locations sees every row once, at every moment. Each
row that anybody has written lies in a directory in force, or in a file that `left` names.

One publication, in this order:

1. The directory must be quiet. A new one is filled, compared and listed.
2. The old one is listed again and must be equal. A record says that all is ready.
3. A marker is left in the old one, and the location is switched if it is still the old one.
4. `left` lists the old directory once more.

If a run dies, the same command completes a record that is ready. It gives the record up if the
directories are no longer what the record says. Nothing else undoes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.clustering.publication.copies import Copies, Unequal, complete_groups
from bridge.clustering.publication.left import list_reached_directories, switch_in_force_again
from bridge.clustering.publication.places import Places, lies_in
from bridge.clustering.publication.quiet import data_of, list_all_files, reason_not_quiet
from bridge.clustering.publication.switches import Switch, Switches, changed_files
from bridge.clustering.timeline import new_instant
from bridge.index.generations.replacements import FileState, Replacement
from bridge.kernel.errors import MetastoreFailure, StorageFailure
from bridge.storage.local_disk.local import resolve_links
from bridge.storage.port import FileTable, Storage, data_files
from bridge.storage.reading.ahead import REQUESTS, ask_all
from bridge.storage.uri import relative
from bridge.table.model import CatalogTable

_BUSY = "another run publishes it"
_LOCAL = (8, 64)
"""Files that are copied at once on a local disk, and small ones that are compared as one."""


@dataclass(slots=True)
class PublishReport:
    """What a run did.

    Attributes:
        published: partitions whose location was switched.
        files, bytes: the files in these directories, and their size.
        kept: partition and reason: what could be published and was not.
        dead: staging directories that are so old that they counted as dead.
    """

    published: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    kept: list[tuple[str, str]] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)


class Publisher:
    """Publishes one table, once. Two at once are safe: one of them gives up.

    On a remote store it works at many partitions at once.

    Args:
        recursive: engines read files in subdirectories of partitions.
        settled: seconds for which nothing in a partition may have changed.
        memory: bytes of rows that are held at once, about, where rows are compared.
        verify: whether checksums of rows are compared.
    """

    def __init__(
        self,
        table: CatalogTable,
        storage: Storage,
        places: Places,
        *,
        recursive: bool = False,
        settled: float = 86_400.0,
        memory: int = 1 << 30,
        verify: bool = True,
    ) -> None:
        self._storage, self._places, self._recursive = storage, places, recursive
        self._switches = Switches(storage, table.location, str(table.name))
        self._settled = int(settled * 1e6)
        remote = storage.is_remote(table.location)
        self._copies = Copies(storage, memory, verify, *((REQUESTS, 1) if remote else _LOCAL))
        self._lock = threading.Lock()
        self._others: dict[str, str] | None = None
        self._real: dict[str, str] = {}  # partitions' places without links
        self._failures: list[StorageFailure | MetastoreFailure] = []
        self.report = PublishReport()

    def publish(self, groups: Iterable[Replacement]) -> PublishReport:
        """Publishes each partition in which a group holds, and completes what died.

        Args:
            groups: of the newest generation of the index.

        Errors:
            StorageFailure, MetastoreFailure: of each partition; of some, these are left alone.
            StorageFull, MetastoreUnavailable: run it again.
            FileCorrupt: a record is damaged.
        """
        held = self._switches.load()
        mended = self._all(held, lambda name: self._mend(name, held[name], revert=False))
        busy = {name for name, done in mended.items() if not done}
        instant = new_instant()
        places = self._all_places()
        owners = {place: name for name, place in places.items()}
        by_partition: dict[str, list[Replacement]] = {}
        for group in groups:
            name = group.partition
            if name not in places:  # a partition that was renamed keeps its location
                name = owners.get(group.old[0].path.rpartition("/")[0], name)
            by_partition.setdefault(name, []).append(group)
        free = places.keys() - busy - set(self.report.published)

        def work(name: str) -> bool:
            mine = by_partition[name]
            self._note(name, self._publish(name, places, mine, held.get(name, ()), instant))
            return True

        self._all([name for name in by_partition if name in free], work)
        return self._reported()

    def revert(self, wanted: Collection[str] | None = None) -> PublishReport:
        """Switches published partitions back to the directories that they were published from.

        Args:
            wanted: names of partitions; None: all.

        Errors: as `publish`.
        """
        held, places = self._switches.load(), self._all_places()

        def work(name: str) -> bool:
            if self._mend(name, held[name], revert=True) and name not in self.report.published:
                self._note(name, self._revert(name, places, held[name]))
            return True

        names = sorted(held.keys() & places.keys())
        self._all([name for name in names if wanted is None or name in wanted], work)
        return self._reported()

    def _all_places(self) -> dict[str, str]:
        places = self._places.all()
        self._real = {name: resolve_links(place) for name, place in places.items()}
        return places

    def _all(self, names: Iterable[str], work: Callable[[str], bool]) -> dict[str, bool]:
        """What the work on each partition returns; where it fails, the others go on."""

        def apart(name: str) -> bool:
            try:
                return work(name)
            except (StorageFailure, MetastoreFailure) as error:
                self._failures.append(error)
                self._note(name, f"{error.code}: {error.message}")
                return False

        wanted = list(names)
        done = ask_all(self._storage, apart, wanted, self._switches.home)
        return dict(zip(wanted, done, strict=True))

    def _reported(self) -> PublishReport:
        self._copies.close()
        done = self.report.published or len(self.report.kept) > len(self._failures)
        if self._failures and not done:
            raise self._failures[0]
        return self.report

    def _note(self, name: str, reason: str | None) -> None:
        if reason is None:
            self.report.published.append(name)
        elif reason:
            self.report.kept.append((name, reason))

    # what an earlier run has left

    def _mend(self, name: str, held: Sequence[Switch], *, revert: bool) -> bool:
        """Completes, or gives up, what died. False: the partition is to be left alone."""
        for each in held:
            if each.state == "open":
                self._switches.abandon(each)
        present = self._places.of(name)
        if present is None:
            return False
        for each in held:
            # Given up by another run while the metastore made it: the new directory tells.
            overtaken = each.state == "undone" and not each.back and present == each.new
            if each.state != "ready" and not overtaken:
                continue
            if present == each.new:
                self._made(each)
            elif each.back != revert:
                verb = "revert" if each.back else "publish"
                self._note(name, f"a {verb} of it has begun: run skipbridge cluster {verb}")
                return False
            elif present == each.old and not self._changed(each):
                reason = self._switch(each)
                self._note(name, reason)
                return reason is None
            else:
                self._give_up(each)
        # The marker of a directory in force is taken away, unless somebody else has put the
        # directory in force: that is listed.
        if self._switches.read_marker(present) is not None:
            if switch_in_force_again(present, held) is not None:
                self._note(name, f"somebody has put {present} in force again, which was left")
                return False
            self._switches.unmark(present)
        for each in list_reached_directories(present, held).values():
            self._remark(each)
        return True

    def _changed(self, each: Switch) -> bool:
        """Whether the directories are no longer what a ready record says."""
        old, new = self._listed(each.old), self._listed(each.new)
        if changed_files(each.went, old) or changed_files(each.wrote, new):
            return True
        return len(old) != len(each.went) or (not each.back and len(new) != len(each.wrote))

    def _give_up(self, each: Switch) -> None:
        self._switches.undo(each)
        if self._places.of(each.partition) == each.old:
            self._switches.unmark(each.old)

    def _remark(self, each: Switch) -> None:
        """Leaves the marker again if it is gone, and every file is one that went over.

        Else the directory was overwritten, which `left` tells.
        """
        if self._switches.read_marker(each.old) == (each.partition, each.number):
            return
        listed = self._listed(each.old)
        known = {state.path: state for state in each.went}
        if listed and not changed_files(listed.values(), known):
            self._switches.mark(each)

    # one partition

    def _publish(
        self,
        name: str,
        places: Mapping[str, str],
        groups: Sequence[Replacement],
        held: Sequence[Switch],
        instant: str,
    ) -> str | None:
        """Why the partition is not published; None if it is; empty if no group holds."""
        old = places[name]
        if not complete_groups(self._listed(old), groups):
            return ""
        attempt = self._switches.begin(name, _next(held), old, instant)
        if attempt is None:
            return _BUSY
        ready = self._ready(attempt, groups)
        if isinstance(ready, str):
            self._switches.abandon(attempt)
            return ready
        return self._switch(ready)

    def _ready(self, attempt: Switch, groups: Sequence[Replacement]) -> Switch | str:
        """Fills the new directory and makes the attempt ready; else says why not."""
        before = list_all_files(self._storage, attempt.old)
        reason = self._obstacle(attempt) or self._unrest(attempt, before)
        if reason:
            return reason
        data = data_of(before, attempt.old, self._recursive)
        mine = complete_groups(data, groups)
        if not mine:  # as if an INSERT OVERWRITE has deleted them, which has not committed yet
            return "its clustered files were written or deleted meanwhile"
        try:
            self._copies.fill(attempt.old, attempt.new, data, mine)
        except Unequal as error:
            return str(error)
        new = self._listed(attempt.new)
        reason = self._moved_on(attempt.old, data)
        return reason or self._switches.end(attempt, data.values(), new.values()) or _BUSY

    def _revert(self, name: str, places: Mapping[str, str], held: Sequence[Switch]) -> str | None:
        """Why the partition is not reverted; None if it is; empty if it is not published."""
        there = places[name]
        last = next((s for s in held if s.state == "made" and s.new == there and not s.back), None)
        if last is None:
            return ""
        before = list_all_files(self._storage, there)
        data = data_of(before, there, self._recursive)
        strange = sorted({*changed_files(last.wrote, data), *(data.keys() - _paths(last.wrote))})
        gone = changed_files(last.went, self._listed(last.old))
        if strange or gone:
            what = "has changed since it was published" if strange else "is not as it was left"
            more = len(strange) + len(gone) - 1
            return f"{(strange + gone)[0]} {what}" + (f", and {more} more files" if more else "")
        attempt = self._switches.begin(name, _next(held), there, "", to=last.old)
        if attempt is None:
            return _BUSY
        reason = self._obstacle(attempt) or self._unrest(attempt, before)
        reason = reason or self._moved_on(there, data)
        if reason:
            self._switches.abandon(attempt)
            return reason
        ready = self._switches.end(attempt, last.wrote, last.went)
        return _BUSY if ready is None else self._switch(ready)

    def _switch(self, each: Switch) -> str | None:
        """Switches the location to the new directory of a ready attempt; why not, or None."""
        self._switches.mark(each)
        # A static INSERT OVERWRITE of Spark deletes the partition's usual directory, too.
        gone = changed_files(each.wrote, self._listed(each.new))
        if gone:
            self._give_up(each)
            return f"{gone[0]} was written or deleted meanwhile"
        with self._lock:  # alterations of one table wait for each other, or deadlock
            moved = self._places.move(each.partition, each.old, each.new)
        now = each.new if moved else self._places.of(each.partition)
        if now != each.new:
            self._give_up(each)
            return f"its location changed meanwhile, it is {now}"
        self._made(each)
        with self._lock:
            self.report.files += len(each.wrote)
            self.report.bytes += sum(state.size for state in each.wrote)
        # Who has given up the same attempt meanwhile took the marker away.
        if self._switches.read_marker(each.old) != (each.partition, each.number):
            self._switches.mark(each)
        return None

    def _made(self, each: Switch) -> None:
        """Ends a switch that the metastore has made."""
        self._switches.record_move(each)
        if each.back:
            self._switches.unmark(each.new)

    # looks

    def _listed(self, directory: str) -> dict[str, FileState]:
        listed = self._storage.list_all(directory, recursive=self._recursive)
        return data_of(listed, directory, self._recursive)

    def _moved_on(self, directory: str, before: Mapping[str, FileState]) -> str:
        """Why a directory is no longer as it was listed; empty if it is."""
        now = self._listed(directory)
        changed = sorted({*changed_files(before.values(), now), *(now.keys() - before.keys())})
        return f"{changed[0]} was written or deleted meanwhile" if changed else ""

    def _unrest(self, attempt: Switch, before: FileTable) -> str:
        reason, dead = reason_not_quiet(
            self._storage,
            attempt.old,
            self._switches.home,
            before,
            attempt.since,
            self._settled,
        )
        with self._lock:
            self.report.dead += [each for each in dead if each not in self.report.dead]
        return reason

    def _obstacle(self, attempt: Switch) -> str:
        old, root = attempt.old, self._switches.home
        mine = resolve_links(old)
        if not (lies_in(old, root) and lies_in(mine, resolve_links(root))):
            return f"{old} lies outside of the table's location {root}"
        for other, place in self._real.items():
            if other != attempt.partition and lies_in(place, mine):
                return f"partition {other} lies there, too: {place}"
        for place, name in self._read_by_others().items():
            above = self._recursive and lies_in(mine, place)
            if lies_in(place, mine) or above:
                return f"table {name} reads {place}, too"
        if not self._recursive:
            whole = data_files(list_all_files(self._storage, old), old)
            for path in whole.paths.to_pylist():
                if "/" in (relative(old, path) or ""):
                    return (
                        f"{path} lies in a subdirectory, which some engines read; with the setting "
                        "planner.recursive it is published, too"
                    )
        return ""

    def _read_by_others(self) -> dict[str, str]:
        """The other table that reads each place near this one, without links."""
        ours = resolve_links(self._switches.home)

        def near(location: str) -> bool:
            place = resolve_links(location)
            return lies_in(place, ours) or lies_in(ours, place)

        with self._lock:
            if self._others is None:
                self._others = {
                    resolve_links(place): other.name
                    for other in self._places.others(near)
                    for place in (other.location, *other.partitions)
                }
            return self._others


def _next(held: Sequence[Switch]) -> int:
    return 1 + max((each.number for each in held), default=0)


def _paths(states: Iterable[FileState]) -> set[str]:
    return {state.path for state in states}
