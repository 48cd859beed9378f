"""Files that nobody needs any more, for the operator's own tool to delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.clustering.publication.left import list_reached_directories
from bridge.clustering.publication.places import Places, lies_in
from bridge.clustering.publication.quiet import data_of
from bridge.clustering.publication.switches import Switch, Switches, changed_files
from bridge.index.generations.replacements import FileState
from bridge.storage.local_disk.local import resolve_links
from bridge.storage.port import Storage, same_state
from bridge.storage.reading.ahead import ask_all
from bridge.storage.uri import relative


@dataclass(slots=True)
class Originals:
    """Files that nobody needs, and why others are still needed.

    Attributes:
        files: URIs.
        bytes: of these.
        in_use: how many more there would be if no generation or plan named them.
        needed: partition, or the table's name, and why nothing of it is listed.
    """

    files: list[str] = field(default_factory=list)
    bytes: int = 0
    in_use: int = 0
    needed: list[tuple[str, str]] = field(default_factory=list)


def originals(
    storage: Storage,
    switches: Switches,
    places: Places,
    spared: set[str],
    before: int,
    *,
    recursive: bool = False,
) -> Originals:
    """The law: each file is named by the marker of its directory, unchanged; from that marker the
    location in force is reached over markers; all that the last switch counted on is there
    unchanged; the directory was left before a time; and nobody else reads the file.

    Args:
        spared: files that generations and plans that wait name.
        before: microseconds since the epoch.
    """
    found, held, present = Originals(), switches.load(), places.all()
    root = resolve_links(switches.home)
    others = places.others(lambda place: lies_in(resolve_links(place), root)) if held else []
    for other in others:
        if other.unreadable or other.unasked:
            found.needed.append((other.name, "the metastore does not tell where it lies"))
            return found
    read = {
        resolve_links(place) for other in others for place in (other.location, *other.partitions)
    }
    read |= {resolve_links(place) for place in present.values()}

    def of_partition(name: str) -> tuple[list[str], list[FileState]]:
        """Why something is still needed, and what is not."""
        there, needed, free = present[name], [], []
        chain = list_reached_directories(there, held[name])
        why = _doubt(storage, held[name], there, recursive) if chain else ""
        if why:
            return [why], []
        back = {s.new for s in held[name] if s.back and s.state in ("open", "ready")}
        for directory, each in sorted(chain.items()):
            if directory in back:
                needed.append(f"a revert to {directory} has begun: run skipbridge cluster revert")
                continue
            if each.since >= before or not _led(switches, each, there, chain):
                continue
            place = _reads(directory, read)
            if place:
                needed.append(f"a table or partition at {place} reads {directory}")
                continue
            listed = storage.list_all(directory, recursive=recursive)
            now = data_of(listed, directory, recursive)
            for state in each.went:
                here = now.get(state.path)
                if here is not None and same_state(state, here) and here.modified < before:
                    free.append(state)
        return needed, free

    names = sorted(held.keys() & present.keys())
    each_of = ask_all(storage, of_partition, names, switches.home)
    for name, (needed, free) in zip(names, each_of, strict=True):
        found.needed += [(name, why) for why in needed]
        listed = [state for state in free if state.path not in spared]
        found.files += [state.path for state in listed]
        found.bytes += sum(state.size for state in listed)
        found.in_use += len(free) - len(listed)
    return found


def _doubt(storage: Storage, held: Sequence[Switch], there: str, recursive: bool) -> str:
    """Why the directory in force might not hold all rows that went over; empty if it does."""
    last = [s for s in held if s.state == "made" and s.new == there]
    if not last:
        return "its location was not switched here"
    listed = storage.list_all(there, recursive=recursive)
    gone = changed_files(last[-1].wrote, data_of(listed, there, recursive))
    return f"{gone[0]} is not as it was published" if gone else ""


def _reads(directory: str, places: Iterable[str]) -> str:
    """A place from which an engine may read what lies in a directory; empty if there is none."""
    at = resolve_links(directory)
    for place in places:
        inner = "" if place == at else relative(place, at)
        if inner is not None and "/." not in f"/{inner}" and "/_" not in f"/{inner}":
            return place
    return ""


def _led(switches: Switches, each: Switch, there: str, chain: Mapping[str, Switch]) -> bool:
    """Whether markers lead from a left directory to the one in force."""
    while True:
        if switches.read_marker(each.old) != (each.partition, each.number):
            return False
        if each.new == there:
            return True
        each = chain[each.new]
