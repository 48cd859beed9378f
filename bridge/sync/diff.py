"""The changes that make the metastore match storage; a pure comparison.

For one partition:

====================  =======================  =============================================
on storage            registered               then
====================  =======================  =============================================
a directory           no                       added
a directory           there                    stays; altered if schema or format class differ
a directory           elsewhere, data there    kept and reported (two places claim it)
a directory           elsewhere, no data       altered: it has moved
several (collision)   yes or no                kept and reported
none                  below the root, no data  dropped
none                  below the root, data     kept and reported: its directory is unparsable
none                  outside the root         kept: it was registered there on purpose
any                   published (clustering)   stays, even without data
====================  =======================  =============================================

The law: once the changes are made, the partitions below the root are exactly the readable
directories with data, each with its location and the table's columns. Repeating all or some
of the changes does not alter the result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bridge.sync.discovered_partitions import DiscoveredPartitions, Key

Columns = tuple[tuple[str, str], ...]
"""Names in lower case, with types as Hive spells them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The classes that read and write a partition's files, and the format that they imply."""

    input_format: str
    output_format: str
    serde: str
    format: str


@dataclass(frozen=True, slots=True)
class RegisteredPartition:
    """A partition as the metastore records it.

    Attributes:
        name: in the metastore's spelling.
        location: canonical URI.
    """

    name: str
    key: Key
    location: str
    columns: Columns
    layout: Layout


@dataclass(frozen=True, slots=True)
class Target:
    """The desired properties of every partition.

    Attributes:
        root: canonical URI.
        left: a former root of the table; partitions registered there move to the new root.
        relocate: partitions registered elsewhere return to their directory below the root, even
            if there is data where they are registered.
        published: how locations begin to which clustering has switched partitions; empty: there is
            none. Their directories below the root hold what was replaced.
    """

    root: str
    columns: Columns
    layout: Layout
    left: str | None = None
    relocate: bool = False
    published: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """An alteration of one partition; ``location`` is None if it does not change.

    Attributes:
        was: the location before.
        schema, classes: whether its columns or its format classes are set to the table's.
    """

    name: str
    key: Key
    was: str
    location: str | None = None
    schema: bool = False
    classes: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """A partition without data, or one at a root that its table has left, even with data."""

    name: str
    location: str
    left: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """A partition that differs from its directory and is left alone."""

    name: str
    location: str
    reason: str


@dataclass(slots=True)
class Changes:
    """Changes of partitions, in the order found."""

    adds: list[Key] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    unchanged: int = 0

    def __len__(self) -> int:
        return len(self.adds) + len(self.updates) + len(self.drops)


class Occupied:
    """Whether there is data at or below a location.

    Args:
        root: canonical URI of the listing.
        directories: directories with data, relative to the root.
        elsewhere: checks locations that the listing does not cover.
    """

    def __init__(
        self, root: str, directories: Sequence[str], elsewhere: Callable[[str], bool]
    ) -> None:
        self._root = root
        self._sorted = sorted(d + "/" for d in directories)
        self._elsewhere = elsewhere

    def __call__(self, location: str) -> bool:
        if location == self._root:
            return bool(self._sorted)
        if not below(self._root, location):
            return self._elsewhere(location)
        prefix = location[len(self._root) + 1 :] + "/"
        if any(name.startswith((".", "_")) for name in prefix.split("/")):
            return self._elsewhere(location)  # the listing hides it, engines do not
        at = bisect_left(self._sorted, prefix)
        return at < len(self._sorted) and self._sorted[at].startswith(prefix)


def below(root: str, location: str) -> bool:
    """Whether a canonical location is the root or inside it."""
    return location == root or location.startswith(root + "/")


class PartitionDiff:
    """Compares storage with the metastore's partitions.

    Partitions are passed in parts of any size; unchanged ones are not kept in memory.

    Args:
        occupied: whether there is data at or below a location (`Occupied`).
    """

    def __init__(
        self, stored: DiscoveredPartitions, target: Target, occupied: Callable[[str], bool]
    ) -> None:
        self._stored = stored
        self._target = target
        self._occupied = occupied
        self._collided = {key for key, _ in stored.collisions}
        self._seen: set[Key] = set()
        self._changes = Changes()

    def trust(self, keys: Iterable[Key]) -> None:
        """Treats these partitions as unchanged, since they matched after the last run."""
        for key in keys:
            self._seen.add(key)
            self._changes.unchanged += 1

    def take(self, registered: Iterable[RegisteredPartition]) -> None:
        for partition in registered:
            self._seen.add(partition.key)
            self._compare(partition)

    def changes(self) -> Changes:
        """All changes; call it after every registered partition has been passed."""
        self._changes.adds = [k for k in self._stored.partitions if k not in self._seen]
        return self._changes

    def _compare(self, partition: RegisteredPartition) -> None:
        stored = self._stored.partitions.get(partition.key)
        target = self._target
        if target.published and partition.location.startswith(target.published):
            self._update(partition, None)
        elif stored is not None:
            place = f"{target.root}/{stored.directory}" if stored.directory else target.root
            self._align(partition, place)
        elif partition.key in self._collided:
            self._keep(partition, "several directories claim these values")
        elif not self._ours(partition.location):
            self._keep(partition, "it is outside the table's root")
        elif self._left(partition.location):
            self._changes.drops.append(Drop(partition.name, partition.location, left=True))
        elif not self._occupied(partition.location):
            self._changes.drops.append(Drop(partition.name, partition.location))
        else:
            self._keep(partition, "there is data there, in directories that are not partitions")

    def _align(self, partition: RegisteredPartition, place: str) -> None:
        if partition.location == place:
            self._update(partition, None)
        elif (
            self._target.relocate
            or self._left(partition.location)
            or not self._occupied(partition.location)
        ):
            self._update(partition, place)
        else:
            self._keep(partition, f"there is data there and in {place}")

    def _keep(self, partition: RegisteredPartition, reason: str) -> None:
        self._changes.kept.append(Kept(partition.name, partition.location, reason))
        self._update(partition, None)

    def _update(self, partition: RegisteredPartition, location: str | None) -> None:
        target = self._target
        if partition.layout.format != target.layout.format:
            reason = f"its files are {partition.layout.format}, the table's {target.layout.format}"
            self._changes.kept.append(Kept(partition.name, partition.location, reason))
            return
        schema = partition.columns != target.columns
        classes = partition.layout != target.layout
        if location is None and not schema and not classes:
            self._changes.unchanged += 1
            return
        self._changes.updates.append(
            Update(partition.name, partition.key, partition.location, location, schema, classes)
        )

    def _ours(self, location: str) -> bool:
        return below(self._target.root, location) or self._left(location)

    def _left(self, location: str) -> bool:
        left = self._target.left
        return left is not None and below(left, location) and not below(self._target.root, location)
