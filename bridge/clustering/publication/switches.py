"""Records of switched locations, beside the data; the table's own half of the word that is left.

::

    <home>/.skipbridge_clustered/published-<instant>-<number>/<partition>/   a new directory
    <home>/.skipbridge_clustered/switches/<key>-00001.begun.json
    <home>/.skipbridge_clustered/switches/<key>-00001.ended.json      ready or abandoned
    <home>/.skipbridge_clustered/switches/<key>-00001.made.json       the metastore has the new one
    <home>/.skipbridge_clustered/switches/<key>-00001.undone.json     it was given up
    <home>/.skipbridge_clustered/switches/accepted-<id>.json          files that are not listed
    <home>/<old directory>/.skipbridge_left                      the marker: what ``ended`` says

Each record is created once and never changed; ``ended`` decides. All paths in them are relative to
the table's home, so that they hold where the whole directory is moved. The metastore alone says
which directory is in force.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import uuid4

from bridge.index.generations.replacements import (
    DIRECTORY,
    PUBLISHED,
    FileState,
    location_before_publishing,
)
from bridge.kernel.errors import FileCorrupt, FileUnreadable
from bridge.storage.port import Storage, same_state
from bridge.storage.reading.ahead import ask_all
from bridge.storage.uri import is_unusual, join, relative
from bridge.table.directory.foreign import left_marker

VERSION = 1
"""Of records and markers. They cannot be made anew: every later release reads this version, too."""
_NAME = re.compile(r"/([0-9a-f]{16})-(\d{5})\.(begun|ended|made|undone)\.json$")
_ACCEPTED = re.compile(r"/accepted-[0-9a-f]{32}\.json$")


@dataclass(frozen=True, slots=True)
class Switch:
    """One attempt to switch the location of one partition.

    Attributes:
        number: of the attempt, from 1 in each partition.
        old, new: the directories, canonical URIs.
        back: it is a revert: the new directory is one that was left.
        state: ``open``, ``abandoned``, ``ready`` (may be switched), ``made`` or ``undone``.
        since: microseconds since the epoch, by the store's clock: when it got this state.
        went: the files of the old directory whose rows are in the new one.
        wrote: the files of the new directory that hold them.
    """

    partition: str
    number: int
    old: str
    new: str
    back: bool = False
    state: str = "open"
    since: int = 0
    went: tuple[FileState, ...] = ()
    wrote: tuple[FileState, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether it is known which rows went over."""
        return self.state in ("ready", "made", "undone")


class Switches:
    """The records below one location.

    Args:
        location: of the table, today or before.
        table: its name, for new records.
    """

    def __init__(self, storage: Storage, location: str, table: str = "") -> None:
        self._storage, self._table = storage, table
        self.home = location_before_publishing(location)
        self._directory = join(self.home, f"{DIRECTORY}/switches")

    def load(self) -> dict[str, list[Switch]]:
        """What is recorded of each partition, by number.

        Errors:
            FileCorrupt: a record is damaged, or names a directory that cannot be the table's.
        """
        listed = self._storage.list_all(self._directory, recursive=False)
        times = dict(zip(listed.paths.to_pylist(), listed.modified.tolist(), strict=True))
        named = {path: match for path in times if (match := _NAME.search(path))}
        bodies = self._bodies(named)
        found: dict[tuple[str, int], Switch] = {}
        # In the order of a switch's life: begun, ended, undone, made.
        order = ("begun", "ended", "undone", "made")
        for path, match in sorted(named.items(), key=lambda each: order.index(each[1][3])):
            at, body = (match[1], int(match[2])), bodies[path]
            if match[3] == "begun":
                found[at] = self._begun(path, int(match[2]), body, times[path])
            elif at in found:
                found[at] = self._further(path, found[at], match[3], body, times[path])
        held: dict[str, list[Switch]] = {}
        for _, each in sorted(found.items()):
            held.setdefault(each.partition, []).append(each)
        return held

    def begin(
        self, partition: str, number: int, old: str, instant: str, to: str | None = None
    ) -> Switch | None:
        """Announces an attempt. None: somebody else announced this number.

        Args:
            to: the directory of a revert; None: a new one.
        """
        inner = f"{PUBLISHED}{instant}-{number}/{partition or 'data'}"
        new = join(self.home, f"{DIRECTORY}/{inner}") if to is None else to
        made = Switch(partition, number, old, new, to is not None)
        body = {"old": self._inner(old), "new": self._inner(new), "back": made.back}
        if not self._create(made, "begun", {**body, "table": self._table}):
            return None
        begun = self._storage.stat(self._name(made, "begun"))
        return replace(made, since=0 if begun is None else begun.modified)

    def end(
        self, each: Switch, went: Iterable[FileState], wrote: Iterable[FileState]
    ) -> Switch | None:
        """Makes an attempt ready; None if somebody else has ended it.

        From then on the rows count as gone over, and the same command completes it.
        """
        made = replace(each, state="ready", went=tuple(went), wrote=tuple(wrote))
        states = {"went": self._states(made.went), "wrote": self._states(made.wrote)}
        return made if self._create(each, "ended", {"state": "ready", **states}) else None

    def abandon(self, each: Switch) -> None:
        """Gives up an attempt that is open, unless it became ready."""
        self._create(each, "ended", {"state": "abandoned"})

    def undo(self, each: Switch) -> None:
        """Gives up an attempt that is ready, and was not switched."""
        self._create(each, "undone", {})

    def record_move(self, each: Switch) -> None:
        """Records that the metastore has the new directory."""
        self._create(each, "made", {})

    # markers

    def mark(self, each: Switch) -> None:
        """Leaves word in the directory that a ready attempt leaves."""
        body = {
            "version": VERSION,
            "table": self._table,
            "partition": each.partition,
            "number": each.number,
            "old": self._inner(each.old),
            "new": self._inner(each.new),
            "files": self._states(each.went),
        }
        self._storage.put(left_marker(each.old), json.dumps(body).encode())

    def read_marker(self, directory: str) -> tuple[str, int] | None:
        """Partition and number of the switch that a directory's marker is of; None: it has none.

        A marker that cannot be read is of number 0.
        """
        uri = left_marker(directory)
        if self._storage.stat(uri) is None:
            return None
        try:
            body = json.loads(self._storage.read(uri))
            return str(body["partition"]), int(body["number"])
        except FileUnreadable:
            return None
        except (ValueError, KeyError, TypeError):
            return "", 0

    def unmark(self, directory: str) -> None:
        """Takes a marker away: the directory is in force."""
        self._storage.delete(left_marker(directory))

    # decisions

    def accept(self, states: Iterable[FileState]) -> None:
        """Ends the listing of files, as long as they stay as they are."""
        body = {"version": VERSION, "table": self._table, "files": self._states(states)}
        name = join(self._directory, f"accepted-{uuid4().hex}.json")
        self._storage.put_if_absent(name, json.dumps(body).encode())

    def load_accepted(self) -> list[FileState]:
        """All files that `accept` was told of. Errors: FileCorrupt."""
        listed = self._storage.list_all(self._directory, recursive=False).paths.to_pylist()
        bodies = self._bodies([path for path in listed if _ACCEPTED.search(path)])
        return [s for path, body in bodies.items() for s in self._parsed(path, body, "files")]

    def _bodies(self, paths: Iterable[str]) -> dict[str, dict[str, Any]]:
        wanted = list(paths)
        return dict(
            zip(wanted, ask_all(self._storage, self._read, wanted, self._directory), strict=True)
        )

    def _read(self, uri: str) -> dict[str, Any]:
        try:
            body = json.loads(self._storage.read(uri))
        except ValueError as error:
            raise _damaged(uri, str(error)) from error
        if not isinstance(body, dict):
            raise _damaged(uri, "it is no object")
        if body.get("version", VERSION) != VERSION:
            raise _damaged(uri, f"it has version {body['version']}, this program reads {VERSION}")
        return body

    def _create(self, each: Switch, kind: str, body: Mapping[str, Any]) -> bool:
        named = {"version": VERSION, "partition": each.partition, "id": uuid4().hex}
        content = json.dumps({**named, **body}).encode()
        uri = self._name(each, kind)
        # A store whose answer was lost says, asked again, that the file is there: it may be ours.
        return self._storage.put_if_absent(uri, content) or self._storage.read(uri) == content

    def _name(self, each: Switch, kind: str) -> str:
        key = hashlib.sha256(each.partition.encode()).hexdigest()[:16]
        return join(self._directory, f"{key}-{each.number:05}.{kind}.json")

    def _begun(self, path: str, number: int, body: Mapping[str, Any], since: int) -> Switch:
        old, new = self._outer(path, body.get("old")), self._outer(path, body.get("new"))
        back = body.get("back") is True
        left, made = (new, old) if back else (old, new)
        inner = relative(join(self.home, DIRECTORY), made)
        if inner is None or not inner.startswith(PUBLISHED) or left == made:
            raise _damaged(path, f"it leads from {old} to {new}")
        if not isinstance(body.get("partition"), str):
            raise _damaged(path, "it names no partition")
        return Switch(body["partition"], number, old, new, back, "open", since)

    def _further(
        self, path: str, each: Switch, kind: str, body: Mapping[str, Any], since: int
    ) -> Switch:
        if kind != "ended":
            return replace(each, state=kind, since=since) if each.ended else each
        if body.get("state") != "ready":
            return replace(each, state="abandoned", since=since)
        went, wrote = self._parsed(path, body, "went"), self._parsed(path, body, "wrote")
        if any(relative(each.old, s.path) is None for s in went) or any(
            relative(each.new, s.path) is None for s in wrote
        ):
            raise _damaged(path, "it names files outside of its directories")
        return replace(each, state="ready", since=since, went=went, wrote=wrote)

    def _states(self, states: Iterable[FileState]) -> list[dict[str, Any]]:
        return [{**asdict(state), "path": self._inner(state.path)} for state in states]

    def _parsed(self, path: str, body: Mapping[str, Any], name: str) -> tuple[FileState, ...]:
        try:
            found = [FileState(**each) for each in body[name]]
        except (KeyError, TypeError) as error:
            raise _damaged(path, str(error)) from error
        return tuple(replace(state, path=self._outer(path, state.path)) for state in found)

    def _inner(self, uri: str) -> str:
        return "" if uri == self.home else uri.removeprefix(f"{self.home}/")

    def _outer(self, path: str, inner: object) -> str:
        if not isinstance(inner, str) or (inner and is_unusual(f"/{inner}")):
            raise _damaged(path, f"{inner!r} is no path below {self.home}")
        return join(self.home, inner) if inner else self.home


def changed_files(states: Iterable[FileState], now: Mapping[str, FileState]) -> list[str]:
    """Paths of files that are not there as they were recorded."""
    return [s.path for s in states if s.path not in now or not same_state(s, now[s.path])]


def _damaged(uri: str, why: str) -> FileCorrupt:
    return FileCorrupt(
        f"{uri} is not a record of a publication: {why}",
        "find out who changed it; nothing is published or deleted meanwhile",
    )
