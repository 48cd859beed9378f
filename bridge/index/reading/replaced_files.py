"""Which files replace which, and what becomes of it if clustered files are rewritten again.

A replacement's old files are always listed ones: a reader decides by the listing alone whether it
holds. If some new files of earlier replacements are rewritten, those replacements become one with
the rewrite: its old files are all of theirs, and its new files are the rewritten ones beside those
that were left alone.

The law: if every replacement holds exactly the rows of its old files, so does each composed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.storage.port import FileStat, FileTable


@dataclass(frozen=True, slots=True)
class FileState:
    """A file in one state: its identity.

    Attributes:
        path: canonical URI.
        modified: microseconds since the epoch.
        etag: None where the store has none.
    """

    path: str
    size: int
    modified: int
    etag: str | None = None

    @classmethod
    def of(cls, stat: FileStat) -> FileState:
        """The state of a file as its storage tells it."""
        return cls(stat.uri, stat.size, stat.modified, stat.etag)


def states_of(files: FileTable) -> list[FileState]:
    """The files of a listing."""
    return [FileState.of(stat) for stat in files.stats()]


@dataclass(frozen=True, slots=True)
class Replacement:
    """One group: the new files hold exactly the rows of the old ones, of one partition."""

    partition: str
    old: tuple[FileState, ...]
    new: tuple[FileState, ...]


def compose_replacements(
    held: Sequence[Replacement], groups: Sequence[Replacement]
) -> tuple[list[Replacement], list[Replacement]]:
    """Puts rewrites of clustered files in terms of listed ones.

    Args:
        held: the replacements in force.
        groups: rewrites; ``old`` are the files that were read, listed ones or new ones of
            ``held``. A rewrite that shares a file with another one, or that has, alone or with
            those that it touches, a file and what replaced it, is left out: it would double rows.

    Returns:
        The replacements that no rewrite touches, and the rewrites.
    """
    place = {state.path: i for i, each in enumerate(held) for state in each.new}
    states = {state.path: state for each in held for state in each.new}
    origin = {state.path: i for i, each in enumerate(held) for state in each.old}
    read: set[str] = set()
    sound: list[tuple[Replacement, set[int]]] = []
    for group in groups:
        touched = {place[state.path] for state in group.old if state.path in place}
        unsound = any(state.path in read for state in group.old)
        unsound |= any(origin.get(state.path, -1) in touched for state in group.old)
        unsound |= any(_differ(state, states.get(state.path, state)) for state in group.old)
        unsound |= any(held[i].partition != group.partition for i in touched)
        if unsound:
            continue
        read.update(state.path for state in group.old)
        sound.append((group, touched))
    made: list[Replacement] = []
    used: set[str] = set()
    joined = [
        (members, touched)
        for members, touched in _together(sound)
        if not any(origin.get(s.path, -1) in touched for each in members for s in each.old)
    ]
    for members, touched in joined:
        old: dict[str, FileState] = {}
        new: list[FileState] = []
        for i in sorted(touched):
            old.update((state.path, state) for state in held[i].old)
            new += [state for state in held[i].new if state.path not in read]
        for group in members:
            old.update((s.path, s) for s in group.old if place.get(s.path, -1) not in touched)
            new += group.new
        if used.isdisjoint(old):
            made.append(Replacement(members[0].partition, tuple(old.values()), tuple(new)))
        used |= old.keys()
    gone = {i for _, touched in joined for i in touched}
    return [each for i, each in enumerate(held) if i not in gone], made


def _differ(one: FileState, other: FileState) -> bool:
    return (one.size, one.modified) != (other.size, other.modified)


def _together(
    groups: Sequence[tuple[Replacement, set[int]]],
) -> list[tuple[list[Replacement], set[int]]]:
    """Rewrites that touch the same replacement, directly or through others, become one."""
    found: list[tuple[list[Replacement], set[int]]] = []
    for group, touched in groups:
        members, union, apart = [group], set(touched), []
        for others, theirs in found:
            if theirs & union:
                members, union = [*others, *members], union | theirs
            else:
                apart.append((others, theirs))
        found = [*apart, (members, union)]
    return found
