"""Left directories, and what lies there that nobody reads: each row of it is named.

A directory that was left holds the files that its record names. Any other file there was written by
somebody who did not know of the switch, or before it; its rows are in no directory in force.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bridge.clustering.publication.places import lies_in
from bridge.clustering.publication.quiet import data_of
from bridge.clustering.publication.switches import Switch, Switches
from bridge.index.generations.replacements import FileState
from bridge.storage.port import Storage, same_state
from bridge.storage.reading.ahead import ask_all
from bridge.table.directory.foreign import left_marker

BEYOND, GONE = "written after its directory was left", "written over a directory that was left"
AGAIN, DROPPED = "in force again, without what was written since", "its partition was dropped"


@dataclass(frozen=True, slots=True)
class Left:
    """Something that is listed until it is accepted.

    Attributes:
        state: of a file that nobody reads; or of the marker of a directory, with the number of its
            switch as time.
        why: one of the constants above.
        tip: the directory where the rows of the left directory went in the end.
    """

    partition: str
    state: FileState
    why: str
    tip: str

    @property
    def is_file(self) -> bool:
        return self.why in (BEYOND, GONE)


def list_reached_directories(present: str, held: Iterable[Switch]) -> dict[str, Switch]:
    """The directories whose rows went to one, directly or over others; how each was left last.

    Args:
        present: the directory in force.
        held: of one partition.
    """
    newest = sorted((s for s in held if s.ended), key=lambda s: s.number, reverse=True)
    found: dict[str, Switch] = {}
    at = [present]
    while at:
        directory = at.pop()
        for each in newest:
            if each.new == directory and each.old != present and each.old not in found:
                found[each.old] = each
                at.append(each.old)
    return found


def tip_of(directory: str, held: Sequence[Switch]) -> str:
    """Where the rows of a directory went in the end; itself if it was not left."""
    seen = {directory}
    while True:
        left = [s for s in held if s.state == "made" and s.old == directory and s.new not in seen]
        if not left:
            return directory
        directory = left[-1].new
        seen.add(directory)


def switch_in_force_again(present: str, held: Sequence[Switch]) -> Switch | None:
    """The switch that left the directory in force, if somebody else has put it in force again."""
    left = [s for s in held if s.state == "made" and s.old == present]
    if not left or any(s.ended and s.new == present and s.number > left[-1].number for s in held):
        return None
    return left[-1]


def left_files(
    storage: Storage,
    switches: Switches,
    held: Mapping[str, Sequence[Switch]],
    places: Mapping[str, str],
) -> list[Left]:
    """All that is to be decided about; nothing is changed.

    Args:
        held: the records.
        places: locations in force by partition.
    """
    found: list[Left] = []
    made = [each for mine in held.values() for each in mine]
    owners = {place: name for name, place in places.items()}

    def of_partition(name: str) -> list[Left]:
        ended = [s for s in held[name] if s.ended]
        if not ended:
            return []
        # A partition that was renamed keeps its location.
        now = name if name in places else owners.get(tip_of(ended[-1].old, made), name)
        return _of(storage, switches, now, ended, places)

    for mine in ask_all(storage, of_partition, sorted(held), switches.home):
        found += mine
    if not found:
        return []
    accepted: dict[str, list[FileState]] = {}
    for state in switches.load_accepted():
        accepted.setdefault(state.path, []).append(state)
    found = [
        each
        for each in found
        if not any(same_state(s, each.state) for s in accepted.get(each.state.path, ()))
    ]
    # What is to be decided of a directory decides of the files there.
    tips = {each.tip for each in found if not each.is_file}
    return [
        each
        for each in found
        if not (each.is_file and any(lies_in(each.state.path, tip) for tip in tips))
    ]


def _of(
    storage: Storage,
    switches: Switches,
    name: str,
    held: Sequence[Switch],
    places: Mapping[str, str],
) -> list[Left]:
    present = places.get(name)
    made = [s for s in held if s.state == "made"]
    # Where a partition was dropped or moved by others, the last directory was not left by us.
    last = made[-1].new if made else held[-1].old
    at = present if present in {d for s in held for d in (s.old, s.new)} else last
    known = {
        directory: each.went
        for directory, each in list_reached_directories(at or last, held).items()
    }
    for each in held:  # directories of which no row went to the present one
        for directory in (each.old, each.new):
            if directory != at and directory not in known:
                known[directory] = _known(directory, held)
    found: list[Left] = []
    for directory, states in sorted(known.items()):
        there = _there(storage, directory, places.values())
        marked = switches.read_marker(directory) is not None
        why = BEYOND if marked or not any(s.old == directory for s in made) else GONE
        went = {state.path: state for state in states}
        for path, state in sorted(there.items()):
            if path not in went or not same_state(went[path], state):
                found.append(Left(name, state, why, at or last))
    back = switch_in_force_again(present, held) if present is not None else None
    dropped = [s for s in made[-1:] if present is None and _holds(storage, switches, s.old)]
    for why, each in [(AGAIN, back)] if back else [(DROPPED, s) for s in dropped]:
        mark = FileState(left_marker(each.old), -1, each.number)
        found.append(Left(name, mark, why, tip_of(each.old, held)))
    return found


def _there(storage: Storage, directory: str, places: Collection[str]) -> dict[str, FileState]:
    """The data files in a directory and in its subdirectories, but those of partitions.

    Some engines write and read in subdirectories, as Hive a ``UNION ALL``.
    """
    found = data_of(storage.list_all(directory, recursive=False), directory, False)
    for each in storage.list_directories(directory):
        inner = each.rstrip("/")
        hidden = inner.rpartition("/")[2].startswith((".", "_"))
        if not hidden and not any(lies_in(place, inner) for place in places):
            found.update(data_of(storage.list_all(inner, recursive=True), directory, True))
    return found


def _known(directory: str, held: Sequence[Switch]) -> tuple[FileState, ...]:
    """The files of a directory that its newest record names."""
    for each in reversed(held):
        if each.old == directory and each.state != "undone":
            return each.went
        if each.new == directory:
            return each.wrote
    return next(each.went for each in held if each.old == directory)


def _holds(storage: Storage, switches: Switches, directory: str) -> bool:
    if switches.read_marker(directory) is not None:
        return True
    return bool(data_of(storage.list_all(directory, recursive=False), directory, False))
