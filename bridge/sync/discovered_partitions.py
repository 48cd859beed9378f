"""The partitions of a directory table, discovered by a listing.

An extractor turns each directory into partition values. A directory that it cannot parse is only
reported: it is never registered, and no partition registered there is dropped because of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from bridge.kernel.types import UNKNOWN, Kind
from bridge.sync.extractors import KeyValues, PartitionExtractor, UnparsableDirectory
from bridge.sync.places import linked_places
from bridge.table.directory.catalog import key_column
from bridge.table.directory.discovered import SCHEMA, Discovered
from bridge.table.model import Column
from bridge.table.partition import UNPARSABLE, parse_value

KeyTexts = tuple[str | None, ...]
"""Unescaped values of a partition, None for NULL; they identify the partition."""
_RECURSIVE = "set planner.recursive (SKIPBRIDGE_PLANNER_RECURSIVE=true)"
_CHECKED = frozenset({Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class DiscoveredPartition:
    """A directory that is a partition.

    Attributes:
        row: its row in the listing.
        directory: relative to the root, as storage spells it.
        files, bytes: of the data files directly in it.
        more: its further rows, if files in subdirectories belong to it.
    """

    row: int
    directory: str
    files: int
    bytes: int
    more: tuple[int, ...] = ()

    @property
    def rows(self) -> tuple[int, ...]:
        return self.row, *self.more


@dataclass(frozen=True, slots=True)
class DiscoveredPartitions:
    """The result of `discover`.

    Attributes:
        keys: partition keys; empty if the table is not partitioned.
        partitions: by their values; ``()`` is the root of a table without keys.
        unparsable: directories that are not partitions, or cannot be listed, each with the reason.
        links: those of them that are other names of a partition's directory.
        collisions: values that several directories claim, with these directories; none of them is
            in ``partitions``.
        directories: all directories with data, including those that are not partitions.
    """

    keys: tuple[Column, ...]
    partitions: dict[KeyTexts, DiscoveredPartition] = field(default_factory=dict)
    unparsable: tuple[tuple[str, str], ...] = ()
    collisions: tuple[tuple[KeyTexts, tuple[str, ...]], ...] = ()
    directories: Discovered = field(default_factory=lambda: Discovered("", SCHEMA.empty_table()))
    links: frozenset[str] = frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is told of a new table: sync alone has seen the setting that reads its files."""
        paths = self.directories.paths
        if all(p.directory == paths[p.row] and not p.more for p in self.partitions.values()):
            return ()
        return ("~ files in subdirectories: every command and `serve` need planner.recursive, too",)


@dataclass(frozen=True, slots=True)
class DiscoveryContext:
    """How `discover` lists a table and reads its directories.

    Attributes:
        list_directories: lists all directories with data below a canonical URI.
        extractor: reads a directory's partition values.
        keys: the keys of the registered table; None for a new table, which gets the keys of most
            directories.
        declared: types of keys that the user named; UNKNOWN if only the name was given.
        recursive: files in subdirectories of a partition belong to it, for engines configured to
            read them.
    """

    list_directories: Callable[[str], Discovered]
    extractor: PartitionExtractor
    keys: Sequence[Column] | None = None
    declared: Sequence[Column] = ()
    recursive: bool = False


def discover(location: str, context: DiscoveryContext) -> DiscoveredPartitions:
    """The partitions below a location, registered or not.

    Args:
        location: canonical URI of the table's root.

    Errors:
        StorageFailure, InvalidUri.
    """
    found = read_directories(
        context.list_directories(location),
        context.extractor,
        context.keys,
        context.declared,
        recursive=context.recursive,
    )
    return _look_through_links(found) if location.startswith("file:") else found


def _look_through_links(found: DiscoveredPartitions) -> DiscoveredPartitions:
    """Leaves out partitions whose directory is another one's, by a link in its path."""
    places = dict(
        linked_places(found.directories.root, [p.directory for p in found.partitions.values()])
    )
    if not places:
        return found
    claimed = {
        directory: directory
        for directory in (p.directory for p in found.partitions.values())
        if directory not in places
    }
    links: dict[str, str] = {}
    for directory, place in sorted(places.items()):
        first = claimed.setdefault(place, directory)
        if first != directory:
            links[directory] = f"a link leads from it to {first}, whose rows are read there"
    partitions = {k: p for k, p in found.partitions.items() if p.directory not in links}
    unparsable = tuple(sorted([*found.unparsable, *links.items()]))
    return replace(found, partitions=partitions, unparsable=unparsable, links=frozenset(links))


def read_directories(
    directories: Discovered,
    extractor: PartitionExtractor,
    keys: Sequence[Column] | None = None,
    declared: Sequence[Column] = (),
    *,
    recursive: bool = False,
) -> DiscoveredPartitions:
    """Reads every directory as a partition; for the arguments see `DiscoveryContext`."""
    unparsable: list[tuple[str, str]] = []
    read: list[tuple[int, str, KeyValues]] = []
    paths = directories.paths
    unlisted = tuple(f"{directory}/" for directory, _ in directories.refused)
    for row, directory in enumerate(paths):
        try:
            place, values = _read(extractor, directory, recursive)
            if recursive and any(u.startswith(f"{place}/" if place else "") for u in unlisted):
                raise UnparsableDirectory(f"it holds a directory that cannot be listed: {place}")
            read.append((row, place, values))
        except UnparsableDirectory as error:
            unparsable.append((directory, str(error)))
    names = tuple(k.name.lower() for k in keys) if keys is not None else _most(read)
    if not recursive:
        unparsable = [(d, why + _told_nested(extractor, d, names)) for d, why in unparsable]
    fitting: list[tuple[int, str, KeyValues]] = []
    for row, directory, values in read:
        if tuple(values) == names:
            fitting.append((row, directory, values))
        else:
            shown, wanted = ("/".join(n) or "none" for n in (tuple(values), names))
            reason = f"its keys are {shown}, the table's are {wanted}"
            if not paths[row]:
                reason = _in_root(directories, row, wanted)
            unparsable.append((paths[row], reason))
    typed = tuple(keys) if keys is not None else _keys(names, fitting, declared)
    claims = _claims(fitting, typed, paths, unparsable)
    files, sizes = (directories.rows[n].to_pylist() for n in ("files", "bytes"))
    partitions: dict[KeyTexts, DiscoveredPartition] = {}
    collisions: list[tuple[KeyTexts, tuple[str, ...]]] = []
    for key, claimants in claims.items():
        roots = dict.fromkeys(directory for _, directory in claimants)
        if len(roots) > 1:
            collisions.append((key, tuple(roots)))
            continue
        (directory,) = roots
        partitions[key] = DiscoveredPartition(
            claimants[0][0],
            directory,
            sum(files[row] for row, _ in claimants),
            sum(sizes[row] for row, _ in claimants),
            tuple(row for row, _ in claimants[1:]),
        )
    return DiscoveredPartitions(
        typed,
        partitions,
        tuple(sorted([*unparsable, *directories.refused])),
        tuple(collisions),
        directories,
    )


def _read(extractor: PartitionExtractor, directory: str, recursive: bool) -> tuple[str, KeyValues]:
    """The partition's own directory, and its values.

    Errors:
        UnparsableDirectory: also if a third-party extractor raises any other error.
    """
    try:
        return directory, extractor(directory)
    except UnparsableDirectory:
        if not recursive or not directory:
            raise
        return _read(extractor, directory.rpartition("/")[0], recursive)
    except Exception as error:
        raise UnparsableDirectory(f"the extractor failed: {error!r}") from error


def _told_nested(extractor: PartitionExtractor, directory: str, names: Sequence[str]) -> str:
    """What to set if a directory that is no partition lies in one; else nothing."""
    inside = directory
    while inside:
        inside = inside.rpartition("/")[0]
        with suppress(UnparsableDirectory):
            place, values = _read(extractor, inside, recursive=False)
            if tuple(values) == tuple(names):
                return f"; if engines read subdirectories of {place or 'the root'}: {_RECURSIVE}"
    return ""


def _in_root(directories: Discovered, row: int, keys: str) -> str:
    files, sample = (directories.rows[n][row].as_py() for n in ("files", "sample"))
    others = f" and {files - 1} more" if files > 1 else ""
    return f"{sample}{others} in the root, above the partitions ({keys})"


def _most(read: Sequence[tuple[int, str, KeyValues]]) -> tuple[str, ...]:
    """The keys of most directories; in a tie any before none, and then the keys seen first.

    A text file beside a first partition must not make the table unpartitioned.
    """
    counted = Counter(tuple(values) for _, _, values in read)
    return max(counted, key=lambda names: (counted[names], bool(names)), default=())


def _keys(
    names: Sequence[str], read: Sequence[tuple[int, str, KeyValues]], declared: Sequence[Column]
) -> tuple[Column, ...]:
    given = {c.name.lower(): c.type for c in declared if c.type is not UNKNOWN}
    return tuple(
        Column(n, given[n])
        if n in given
        else key_column(names, place, [values[n] for _, _, values in read])
        for place, n in enumerate(names)
    )


def _claims(
    read: Sequence[tuple[int, str, KeyValues]],
    keys: Sequence[Column],
    paths: Sequence[str],
    unparsable: list[tuple[str, str]],
) -> dict[KeyTexts, list[tuple[int, str]]]:
    """Directories by the values that they claim; values that their key cannot hold are reported."""
    checks: list[Callable[[str | None], bool]] = [_Holds(key) for key in keys]
    claims: dict[KeyTexts, list[tuple[int, str]]] = {}
    for row, directory, values in read:
        key = tuple(values.values())
        wrong = next((i for i, (v, c) in enumerate(zip(key, checks, strict=True)) if not c(v)), -1)
        if wrong >= 0:
            name, type_ = keys[wrong].name, keys[wrong].type
            unparsable.append((paths[row], f"{name} is {key[wrong]!r}, no {type_}"))
            continue
        claims.setdefault(key, []).append((row, directory))
    return claims


class _Holds:
    """Whether a key's type can hold a value; engines fail on other values, or read NULL."""

    def __init__(self, key: Column) -> None:
        self._type = key.type
        self._checked = key.type.is_integer or key.type.kind in _CHECKED
        self._known: dict[str | None, bool] = {}

    def __call__(self, value: str | None) -> bool:
        known = self._known.get(value)
        if known is None:
            known = (
                value is None
                or not self._checked
                or parse_value(value, self._type) is not UNPARSABLE
            )
            self._known[value] = known
        return known
