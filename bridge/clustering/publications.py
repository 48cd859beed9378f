"""Publications: records of partitions whose location was switched to a new directory.

::

    <home>/.skipbridge_clustered/published-<instant>/<partition>/       the new directory
    <home>/.skipbridge_clustered/publications/<key>-00001.requested.json
    <home>/.skipbridge_clustered/publications/<key>-00001.ended.json    switching or abandoned
    <home>/.skipbridge_clustered/publications/<key>-00001.undone.json   was taken back
    <home>/.skipbridge_clustered/publications/<key>-00001.cleaned.json  clean began to delete
    <home>/.skipbridge_clustered/publications/<key>.bringing-<id>.json  files that are to be brought
    <home>/.skipbridge_clustered/publications/<key>.late-<id>.json      files brought over later
    <home>/.skipbridge_clustered/publications/<key>.looked-<id>.json    no compaction was recognised

Each record is created once and never changed. The metastore alone says which directory is in force:
a publication counts if it is ``switching`` and the partition's location is its new directory, or
the old directory of a later one that counts. So a crash needs no repair. The records lie beside the
data, since they must outlive the index.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import uuid4

from bridge.errors import FileCorrupt, FileUnreadable
from bridge.index.replacements import DIRECTORY, PUBLISHED, FileState, home
from bridge.storage.port import FileTable, Storage, same_state
from bridge.storage.uri import is_unusual, join, relative

_NAME = re.compile(
    r"/(?P<key>[0-9a-f]{16})(?:-(?P<number>\d{5})\.(?P<kind>requested|ended|undone|cleaned)"
    r"|\.(?P<files>late|bringing|looked)-[0-9a-f]{32})\.json$"
)
_AT_ONCE = 16
_LATE = re.compile(r"late-[0-9a-f]{12}-")


@dataclass(frozen=True, slots=True)
class Publication:
    """One attempt to publish one partition.

    Attributes:
        number: of the attempt, from 1 in each partition.
        old, new: the directories, canonical URIs.
        state: ``open``, ``switching``, ``abandoned`` or ``undone`` (was switching).
        since: microseconds since the epoch, by the store's clock: when it got this state.
        covered: the files of the old directory whose rows are in the new one; if it is switching.
        files: the files that were put into the new directory; if it is switching.
        table: whose partition it is; empty in records that do not say it.
        missing: what writers had deleted in the old directory when clean began to delete there;
            None: it has not begun.
    """

    partition: str
    number: int
    old: str
    new: str
    state: str = "open"
    since: int = 0
    covered: tuple[FileState, ...] = ()
    files: tuple[FileState, ...] = ()
    table: str = ""
    missing: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Bringing:
    """Files that a run has begun to bring over.

    Attributes:
        uri: of the record.
        since: microseconds since the epoch, by the store's clock.
        to: the directory.
        files: as they were listed in old directories, with the URIs of their copies.
    """

    uri: str
    since: int
    to: str
    files: tuple[tuple[FileState, str], ...]


@dataclass(slots=True)
class Records:
    """What is recorded of one partition.

    Attributes:
        attempts: by number, ascending.
        late: files of old directories that were brought over after the switch; of all tables
            that lie in the same place, unless `only` was called.
        copies: of these, as they were made.
        bringing: of runs that bring files over now, or have died doing so.
        looked: states of old directories that were searched for a compaction in vain.
        names: URIs of the records, by the number of the attempt; 0: those of late files.
    """

    partition: str = ""
    attempts: list[Publication] = field(default_factory=list)
    late: list[FileState] = field(default_factory=list)
    copies: list[FileState] = field(default_factory=list)
    batches: list[tuple[str, list[FileState], list[FileState]]] = field(default_factory=list)
    bringing: list[Bringing] = field(default_factory=list)
    looked: set[str] = field(default_factory=set)
    names: dict[int, list[str]] = field(default_factory=dict)

    def chain(self, present: str) -> list[Publication]:
        """The publications in force, the last one first.

        Args:
            present: the partition's location.
        """
        by_new = {p.new: p for p in self.attempts if p.state == "switching"}
        found, at = [], present
        while at in by_new:
            found.append(by_new.pop(at))
            at = found[-1].old
        return found

    def only(self, present: str) -> None:
        """Forgets late files that another table, of which this one knows nothing, has got.

        Args:
            present: the location of this table's partition.
        """
        mine = {"", present, *(each.new for each in self.chain(present))}
        batches = [each for each in self.batches if each[0] in mine]
        self.late = [state for _, late, _ in batches for state in late]
        self.copies = [state for _, _, copies in batches for state in copies]
        self.bringing = [each for each in self.bringing if each.to in mine]

    def missing(self, attempt: Publication, listed: Collection[str]) -> list[str]:
        """The files that writers have deleted in an old directory since it was left.

        Args:
            attempt: in force.
            listed: paths of the files that are there.
        """
        if attempt.missing is not None:
            return list(attempt.missing)
        held = list(attempt.covered)
        from_here = [a for a in self.attempts if a.old == attempt.old and a.covered]
        if from_here == [attempt]:  # else late files may be of an earlier time
            below = [a.new for a in self.attempts if relative(attempt.old, a.new) is not None]
            held += [
                state
                for state in self.late
                if relative(attempt.old, state.path) is not None
                and all(relative(new, state.path) is None for new in below)
            ]
        return [state.path for state in held if state.path not in listed]

    @property
    def next(self) -> int:
        return 1 + max(self.names, default=0)


class Publications:
    """The records below one location. Several tables may share it.

    Args:
        location: of the table, today or before.
        table: its name, for new records.
    """

    def __init__(self, storage: Storage, location: str, table: str = "") -> None:
        self._storage, self._table = storage, table
        self._home = home(location)
        self._directory = join(self._home, f"{DIRECTORY}/publications")

    def load(self, partitions: Iterable[str] | None = None) -> dict[str, Records]:
        """What is recorded, by partition.

        Args:
            partitions: only of these; None: of all.

        Errors:
            FileCorrupt: a record is damaged, or names a directory that cannot be the table's.
        """
        listed = self._storage.list_all(self._directory, recursive=False)
        keys = None if partitions is None else {_key(name) for name in partitions}
        wanted: dict[str, re.Match[str]] = {}
        times = dict(zip(listed.paths.to_pylist(), listed.modified.tolist(), strict=True))
        for path in times:
            found = _NAME.search(path)
            if found is not None and (keys is None or found["key"] in keys):
                wanted[path] = found
        if not wanted:
            return {}
        with ThreadPoolExecutor(_AT_ONCE, "skipbridge-records") as pool:
            read = dict(zip(wanted, pool.map(self._read_if_there, wanted), strict=True))
        bodies = {path: body for path, body in read.items() if body is not None}
        wanted = {path: match for path, match in wanted.items() if path in bodies}
        undone = {(m["key"], m["number"]) for m in wanted.values() if m["kind"] == "undone"}
        ends = {
            (match["key"], match["number"]): (bodies[path], times[path])
            for path, match in wanted.items()
            if match["kind"] == "ended"
        }
        by_key: dict[str, Records] = {}
        for path, match in sorted(wanted.items()):
            held = by_key.setdefault(match["key"], Records())
            held.names.setdefault(int(match["number"] or 0), []).append(path)
            body = bodies[path]
            held.partition = body.get("partition", held.partition)
            if match["kind"] == "requested":
                ended = ends.get((match["key"], match["number"]))
                made = self._publication(path, body, int(match["number"]), times[path], ended)
                if (match["key"], match["number"]) in undone:
                    made = replace(made, state="undone")
                cleaned = path.replace(".requested.", ".cleaned.")
                if cleaned in bodies:
                    made = replace(made, missing=tuple(bodies[cleaned].get("missing", ())))
                held.attempts.append(made)
            elif match["files"] == "late":
                late, copies = _states(path, body, "files"), _states(path, body, "copies")
                held.late += late
                held.copies += copies
                held.batches.append((str(body.get("to", "")), list(late), list(copies)))
            elif match["files"] == "looked":
                held.looked.add(str(body.get("state")))
            elif match["files"] == "bringing":
                files = _states(path, body, "files")
                pairs = tuple(zip(files, map(str, body.get("copies", ())), strict=False))
                held.bringing.append(Bringing(path, times[path], str(body.get("to")), pairs))
        return {held.partition: held for held in by_key.values()}

    def begin(self, partition: str, number: int, old: str, instant: str) -> Publication | None:
        """Announces an attempt. None: somebody else announced this number."""
        inner = f"{PUBLISHED}{instant}/{partition or 'data'}"
        new = join(self._home, f"{DIRECTORY}/{inner}")
        made = Publication(partition, number, old, new, table=self._table)
        body = {"partition": partition, "old": old, "new": new, "table": self._table}
        name = f"{_key(partition)}-{number:05}.requested"
        return made if self._create(name, body) else None

    def end(
        self,
        attempt: Publication,
        state: str,
        covered: Sequence[FileState] = (),
        files: Sequence[FileState] = (),
    ) -> bool:
        """Ends an attempt as ``switching`` or ``abandoned``; False if somebody else ended it.

        Who ends it as switching may switch the location, and nobody else.
        """
        body = {
            "partition": attempt.partition,
            "state": state,
            "covered": [asdict(each) for each in covered],
            "files": [asdict(each) for each in files],
        }
        return self._create(f"{_key(attempt.partition)}-{attempt.number:05}.ended", body)

    def undo(self, attempt: Publication) -> None:
        """Records that a switching attempt did not switch, or switched back at once."""
        name = f"{_key(attempt.partition)}-{attempt.number:05}.undone"
        self._create(name, {"partition": attempt.partition})

    def clean(self, attempt: Publication, missing: Sequence[str]) -> None:
        """Announces that files of the old directory are going to be deleted."""
        name = f"{_key(attempt.partition)}-{attempt.number:05}.cleaned"
        self._create(name, {"partition": attempt.partition, "missing": list(missing)})

    def is_cleaned(self, attempt: Publication) -> bool:
        """Whether somebody has announced that."""
        name = f"{_key(attempt.partition)}-{attempt.number:05}.cleaned.json"
        return self._storage.stat(join(self._directory, name)) is not None

    def bringing(self, partition: str, to: str, files: Mapping[str, FileState]) -> str:
        """Announces files that are to be copied to a directory; returns the record's URI.

        Args:
            files: by the URIs of their copies.
        """
        states = [asdict(each) for each in files.values()]
        body = {"partition": partition, "to": to, "files": states, "copies": list(files)}
        name = f"{_key(partition)}.bringing-{uuid4().hex}"
        self._create(name, body)
        return join(self._directory, f"{name}.json")

    def bring(
        self,
        partition: str,
        to: str,
        files: Mapping[FileState, FileState],
        announced: str | None = None,
    ) -> None:
        """Records files of old directories and their copies, and deletes the announcement."""
        if files:
            body = {
                "partition": partition,
                "to": to,
                "files": [asdict(each) for each in files],
                "copies": [asdict(each) for each in files.values()],
            }
            self._create(f"{_key(partition)}.late-{uuid4().hex}", body)
        if announced is not None:
            self._storage.delete(announced)

    def looked(self, partition: str, state: str) -> None:
        """Records that a state of an old directory was searched for a compaction in vain."""
        body = {"partition": partition, "state": state}
        self._create(f"{_key(partition)}.looked-{uuid4().hex}", body)

    def forget(self, held: Records, number: int) -> None:
        """Deletes the records of one attempt. With the last one, those of late files go, too."""
        # What began it goes first: an attempt without an end would count as one that failed.
        for uri in sorted(held.names.pop(number), key=lambda uri: "requested" not in uri):
            self._storage.delete(uri)
        if set(held.names) == {0}:
            for uri in held.names.pop(0):
                self._storage.delete(uri)

    def _create(self, name: str, body: dict[str, Any]) -> bool:
        uri = join(self._directory, f"{name}.json")
        return self._storage.put_if_absent(uri, json.dumps(body).encode())

    def _read_if_there(self, uri: str) -> dict[str, Any] | None:
        try:
            return self._read(uri)
        except FileUnreadable:
            # Another run has ended since the listing.
            if ".bringing-" in uri and self._storage.stat(uri) is None:
                return None
            raise

    def _read(self, uri: str) -> dict[str, Any]:
        try:
            body = json.loads(self._storage.read(uri))
        except ValueError as error:
            raise _damaged(uri, str(error)) from error
        if not isinstance(body, dict) or not isinstance(body.get("partition"), str):
            raise _damaged(uri, "it names no partition")
        return body

    def _publication(
        self,
        path: str,
        body: dict[str, Any],
        number: int,
        requested: int,
        ended: tuple[dict[str, Any], int] | None,
    ) -> Publication:
        old, new = str(body.get("old")), str(body.get("new"))
        table = str(body.get("table", ""))
        inner = relative(join(self._home, DIRECTORY), new)
        outside = old != self._home and relative(self._home, old) is None
        if inner is None or not inner.startswith(PUBLISHED) or is_unusual(f"/{inner}") or outside:
            raise _damaged(path, f"it leads from {old} to {new}")
        if ended is None:
            return Publication(body["partition"], number, old, new, "open", requested, table=table)
        end, since = ended
        covered, files = _states(path, end, "covered"), _states(path, end, "files")
        if any(relative(old, s.path) is None for s in covered) or any(
            relative(new, s.path) is None for s in files
        ):
            raise _damaged(path, "it names files outside of its directories")
        return Publication(
            body["partition"], number, old, new, str(end.get("state")), since, covered, files, table
        )


def _states(path: str, body: dict[str, Any], name: str) -> tuple[FileState, ...]:
    if name == "copies" and name not in body:
        return ()
    try:
        return tuple(FileState(**each) for each in body[name])
    except (KeyError, TypeError) as error:
        raise _damaged(path, str(error)) from error


def _damaged(uri: str, why: str) -> FileCorrupt:
    return FileCorrupt(
        f"{uri} is not a record of a publication: {why}",
        "find out who changed it; nothing is published or deleted meanwhile",
    )


def _key(partition: str) -> str:
    return hashlib.sha256(partition.encode()).hexdigest()[:16]


def late_name(file: FileState) -> str:
    """The name of a late file in the new directory. The same file always gets the same name.

    >>> late_name(FileState("file:///t/a.parquet", 1, 2))
    'late-0feac325e5a8-a.parquet'
    """
    name = file.path.rpartition("/")[2]
    if _LATE.match(name):
        return name
    identity = f"{file.path}\0{file.size}\0{file.modified}\0{file.etag or ''}"
    return f"late-{hashlib.sha256(identity.encode()).hexdigest()[:12]}-{name}"


def states_of(files: FileTable) -> list[FileState]:
    """The files of a listing."""
    etags = [None] * len(files) if files.etags is None else files.etags.to_pylist()
    columns = (files.paths.to_pylist(), files.sizes.tolist(), files.modified.tolist(), etags)
    return [FileState(*row) for row in zip(*columns, strict=True)]


def by_path(states: Iterable[FileState]) -> dict[str, list[FileState]]:
    """The states of each path: a file may be recorded more than once."""
    found: dict[str, list[FileState]] = {}
    for state in states:
        found.setdefault(state.path, []).append(state)
    return found


def knows(states: Mapping[str, list[FileState]], state: FileState) -> bool:
    """Whether a file is in one of its recorded states."""
    return any(same_state(each, state) for each in states.get(state.path, ()))
