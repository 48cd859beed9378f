"""Publishing: engines without skipbridge read the clustered files of a partition, too.

A new directory gets the clustered files and copies of all other files. When it holds exactly the
rows of the old one, the metastore's location of the partition (or of the unpartitioned table) is
switched to it, in one update. The old directory stays as it was.

The law: a reader that lists the metastore's locations sees every row once, at every moment. A file
that a writer put into the old directory at or after the switch is copied into the new one by the
next run, once; until then such readers miss it. Where a writer deleted or overwrote files there, a
new file may hold their rows: it is named, and not copied (`bridge.clustering.late_files`). A file
whose writer has not ended is a late file. Nothing is ever renamed into a directory that is read,
except for late files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from bridge.clustering.late_files import LateFiles, LateReport
from bridge.clustering.publications import Publication, Publications, Records, states_of
from bridge.clustering.timeline import new_instant
from bridge.clustering.whole_files import unfinished
from bridge.index.replacements import FileState, Replacement, home
from bridge.storage.local import resolved
from bridge.storage.port import FileStat, Storage, data_files, same_state
from bridge.storage.uri import join, relative
from bridge.table.model import Table

_ATTEMPTS = 5
_COPIES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class OtherTable:
    """Another table of the metastore.

    Attributes:
        location: canonical URI.
        unreadable: the metastore does not tell all of its places; the location may be a guess.
        partitions: locations of those of its partitions that were asked for.
        unasked: it has more partitions than are looked at.
    """

    name: str
    location: str
    unreadable: bool = False
    partitions: tuple[str, ...] = ()
    unasked: bool = False


class Places(Protocol):
    """The locations that the metastore has of one table; canonical URIs by partition.

    The only partition of an unpartitioned table is ``""``.
    """

    def all(self) -> dict[str, str]: ...

    def others(self, near: Callable[[str], bool]) -> list[OtherTable]:
        """All other tables that have a location.

        Args:
            near: which locations of partitions are wanted.
        """
        ...

    def of(self, partition: str) -> str | None:
        """None: there is no such partition."""
        ...

    def move(self, partition: str, old: str, new: str) -> bool:
        """Switches a location in one update; False if it is not the old one (any more)."""
        ...

    def distrust(self, partition: str) -> None:
        """Tells engines that the metastore's row counts do not hold: files were added."""
        ...


@dataclass(slots=True)
class PublishReport(LateReport):
    """What a run did; see also `LateReport`.

    Attributes:
        published: partitions whose location was switched.
        copied, bytes: files put into new directories, and their size.
        kept: partition and reason: what could be published and was not.
    """

    published: list[str] = field(default_factory=list)
    copied: int = 0
    bytes: int = 0
    kept: list[tuple[str, str]] = field(default_factory=list)


class Publisher:
    """Publishes one table. Two at once are safe: one of them gives up.

    Args:
        recursive: engines read files in subdirectories of partitions.
        settled: seconds for which a late file must not have changed before it is brought over.
        memory: bytes of rows that are held at once, about, where rows are compared.
    """

    def __init__(
        self,
        table: Table,
        storage: Storage,
        places: Places,
        *,
        recursive: bool = False,
        settled: float = 0.0,
        memory: int = 1 << 30,
    ) -> None:
        self._storage, self._places, self._recursive = storage, places, recursive
        self._home = home(table.location)
        self._publications = Publications(storage, table.location, str(table.name))
        self._late = LateFiles(
            storage, places, self._publications, self._listed, settled, table.format, memory
        )
        self._late.report = self.report = PublishReport()

    def run(self, groups: Iterable[Replacement]) -> PublishReport:
        """Brings late files over, then publishes each partition in which a group holds.

        Args:
            groups: of the newest generation of the index.

        Errors:
            StorageFailure, StorageFull, MetastoreUnavailable, MetastoreFailure: run it again.
            FileCorrupt: a record is damaged.
        """
        records = self._publications.load()
        places = self._places.all()
        for name, held in records.items():
            self._abandon(held)
            if name in places:
                self._late.bring(name, places[name], held)
        by_partition: dict[str, list[Replacement]] = {}
        for group in groups:
            by_partition.setdefault(group.partition, []).append(group)
        instant = new_instant()
        for name, mine in by_partition.items():
            if name not in places:
                continue
            reason = self._publish(name, places, mine, records.get(name, Records()), instant)
            if reason:
                self.report.kept.append((name, reason))
        return self.report

    def bring_late_files(self) -> PublishReport:
        """Only brings late files over."""
        return self.run(())

    def _abandon(self, held: Records) -> None:
        """Ends attempts that a dead run has left open."""
        for attempt in held.attempts:
            if attempt.state == "open":
                self._publications.end(attempt, "abandoned")

    # one partition

    def _publish(
        self,
        name: str,
        places: Mapping[str, str],
        groups: Sequence[Replacement],
        held: Records,
        instant: str,
    ) -> str:
        """Why the partition is not published; empty if it is, or if no group holds."""
        old = places[name]
        listed = self._listed(old)
        if not _holding(listed, groups):
            return ""
        reason = self._obstacle(name, old, places)
        if reason:
            return reason
        attempt = self._publications.begin(name, held.next, old, instant)
        if attempt is None:
            return "another run publishes it"
        filled = self._fill(attempt, groups)
        if isinstance(filled, str):
            self._publications.end(attempt, "abandoned")
            return filled
        covered, files = filled
        if not self._publications.end(attempt, "switching", covered, files):
            return "another run publishes it"
        if self._places.move(name, old, attempt.new):
            reason = self._look_back(attempt, covered, files)
        else:
            reason = f"its location changed meanwhile, it is {self._places.of(name)}"
        if reason:
            self._undo(attempt)
            return reason
        self.report.published.append(name)
        self.report.copied += len(files)
        self.report.bytes += sum(file.size for file in files)
        held = self._publications.load([name])[name]
        self._late.bring(name, attempt.new, held)
        return ""

    def _obstacle(self, name: str, old: str, places: Mapping[str, str]) -> str:
        if not (lies_in(old, self._home) and lies_in(resolved(old), resolved(self._home))):
            return f"{old} lies outside of the table's location {self._home}"
        mine = resolved(old)
        for other, place in places.items():
            if other != name and lies_in(resolved(place), mine):
                return f"partition {other} lies there, too: {place}"
        if not self._recursive:
            whole = data_files(self._storage.list_all(old, recursive=True), old)
            for path in whole.paths.to_pylist():
                if "/" in (relative(old, path) or ""):
                    return (
                        f"{path} lies in a subdirectory, which some engines read; with the setting "
                        "planner.recursive it is published, too"
                    )
        return ""

    def _listed(self, directory: str) -> dict[str, FileState]:
        found = self._storage.list_all(directory, recursive=self._recursive)
        return {state.path: state for state in states_of(data_files(found, directory))}

    def _fill(
        self, attempt: Publication, groups: Sequence[Replacement]
    ) -> tuple[list[FileState], list[FileState]] | str:
        """Fills the new directory until it holds the rows of the old one.

        Returns:
            The files of the old directory and those of the new one, as both are at the end; or why
            it did not come to that.
        """
        made: dict[str, FileState] = {}
        growing: set[str] = set()
        for _ in range(_ATTEMPTS):
            before = _without(self._listed(attempt.old), growing)
            growing |= self._growing(before, groups)
            before = _without(before, growing)
            wanted = self._wanted(attempt, before, groups)
            for target in [t for t, source in made.items() if wanted.get(t) != source]:
                self._storage.delete(target)
                del made[target]
            missing = {t: source for t, source in wanted.items() if t not in made}
            with ThreadPoolExecutor(_COPIES_AT_ONCE, "skipbridge-copy") as pool:
                done = pool.map(self._copy, missing.values(), missing)
                made |= {t: missing[t] for t, good in zip(missing, done, strict=True) if good}
            after = self._listed(attempt.new)
            sizes = {path: state.size for path, state in after.items()}
            if sizes != {target: source.size for target, source in wanted.items()}:
                made = {t: s for t, s in made.items() if sizes.get(t) == s.size}
                continue
            if self._unchanged(attempt.old, before, growing):
                return list(before.values()), list(after.values())
        return "its files change all the time; publish it when fewer writers are at work"

    def _wanted(
        self, attempt: Publication, listed: Mapping[str, FileState], groups: Sequence[Replacement]
    ) -> dict[str, FileState]:
        """The files of the new directory, each with the file that it is a copy of."""
        replaced: set[str] = set()
        found: dict[str, FileState] = {}
        holding = _holding(listed, groups)
        new = [state for group in holding for state in group.new]
        with ThreadPoolExecutor(_COPIES_AT_ONCE, "skipbridge-look") as pool:
            there = dict(zip((s.path for s in new), pool.map(self._is_there, new), strict=True))
        for group in holding:
            if all(there[state.path] for state in group.new):
                replaced |= {state.path for state in group.old}
                for state in group.new:
                    found[_free(join(attempt.new, state.path.rpartition("/")[2]), state, found)] = (
                        state
                    )
        for path, state in listed.items():
            if path not in replaced:
                inner = relative(attempt.old, path) or ""
                found[_free(join(attempt.new, inner), state, found)] = state
        return found

    def _is_there(self, state: FileState) -> bool:
        now = self._storage.stat(state.path)
        return now is not None and same_state(state, now)

    def _copy(self, source: FileState, target: str) -> bool:
        stat = FileStat(source.path, source.size, source.modified, source.etag)
        return self._storage.copy(stat, target)

    def _growing(self, listed: Mapping[str, FileState], groups: Sequence[Replacement]) -> set[str]:
        """Files whose writers have not ended. They are late files, once they are whole."""
        replaced = {state.path for group in _holding(listed, groups) for state in group.old}
        others = [state for path, state in listed.items() if path not in replaced]
        return {state.path for state in unfinished(self._storage, others)}

    def _unchanged(
        self, directory: str, before: Mapping[str, FileState], without: Collection[str] = ()
    ) -> bool:
        now = _without(self._listed(directory), without)
        return now.keys() == before.keys() and all(
            same_state(before[path], state) for path, state in now.items()
        )

    def _look_back(
        self, attempt: Publication, covered: Sequence[FileState], files: Sequence[FileState]
    ) -> str:
        """Why the switch was taken back; empty if it holds.

        A writer that began before the switch may have overwritten or deleted old files while it was
        made. Nobody has used the new directory yet: the old one is the truth, and is so again.
        """
        now = self._places.of(attempt.partition)
        if now != attempt.new:
            return f"somebody else has switched its location, to {now}"
        old = self._listed(attempt.old)
        changed = [s.path for s in covered if s.path not in old or not same_state(s, old[s.path])]
        if changed and self._unchanged(attempt.new, {s.path: s for s in files}):
            return self._switch_back(attempt, changed[0])
        self.report.overwritten += changed
        return ""

    def _switch_back(self, attempt: Publication, changed: str) -> str:
        """Why the switch was taken back; empty if it holds, because clean has begun to delete.

        Clean announces that, and then looks at the location. So after the location was switched
        back, it has either seen that, or its announcement is seen here.
        """
        name, old, new = attempt.partition, attempt.old, attempt.new
        if self._publications.is_cleaned(attempt):
            return ""
        self._places.move(name, new, old)
        if self._publications.is_cleaned(attempt) and self._places.move(name, old, new):
            return ""
        return f"{changed} was overwritten or deleted while the location was switched"

    def _undo(self, attempt: Publication) -> None:
        """Records that a switch was not made, unless the partition's location rests on it."""
        now = self._places.of(attempt.partition)
        held = self._publications.load([attempt.partition]).get(attempt.partition, Records())
        if now is None or attempt.number not in {each.number for each in held.chain(now)}:
            self._publications.undo(attempt)


def lies_in(place: str, directory: str) -> bool:
    """Whether a place is a directory, or below it."""
    return place == directory or relative(directory, place) is not None


def _without(listed: Mapping[str, FileState], paths: Collection[str]) -> dict[str, FileState]:
    return {path: state for path, state in listed.items() if path not in paths}


def _holding(listed: Mapping[str, FileState], groups: Sequence[Replacement]) -> list[Replacement]:
    """The groups whose old files are all listed as they were rewritten."""
    return [
        group
        for group in groups
        if all(s.path in listed and same_state(s, listed[s.path]) for s in group.old)
    ]


def _free(target: str, source: FileState, taken: Mapping[str, FileState]) -> str:
    """The target, or another name in its directory if it is taken."""
    if target not in taken:
        return target
    directory, _, name = target.rpartition("/")
    return f"{directory}/{hashlib.sha256(source.path.encode()).hexdigest()[:12]}-{name}"
