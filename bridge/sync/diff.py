"""What must change in the metastore so that it says what lies on storage; a pure comparison.

For one partition:

====================  =======================  =============================================
on storage            registered               then
====================  =======================  =============================================
a directory           no                       added
a directory           there                    left; altered if schema or format class differ
a directory           elsewhere, data there    kept, and told (two places claim it)
a directory           elsewhere, no data       altered: it has moved
several (collision)   yes or no                left as it is, and told
none                  below the root, no data  dropped
none                  below the root, data     kept, and told: its directory is unparsable
none                  outside the root         kept: it is somebody's on purpose
====================  =======================  =============================================

The law: after the changes are carried out, the partitions below the root are exactly the readable
directories with data, each with its location and the table's columns; carried out twice, or in part
and then again, they come to the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bridge.sync.discovered_partitions import DiscoveredPartitions, Key

Columns = tuple[tuple[str, str], ...]
"""Names in lower case, and types in Hive's words."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The classes that read and write a partition's files, and the format they stand for."""

    input_format: str
    output_format: str
    serde: str
    format: str


@dataclass(frozen=True, slots=True)
class RegisteredPartition:
    """A partition as the metastore has it.

    Attributes:
        name: as the metastore spells it.
        location: canonical URI.
    """

    name: str
    key: Key
    location: str
    columns: Columns
    layout: Layout


@dataclass(frozen=True, slots=True)
class Target:
    """What every partition of the table is to be like.

    Attributes:
        root: canonical URI.
        left: an earlier root that the table has moved away from; its partitions move along.
        relocate: partitions registered elsewhere come back to the directory below the root, even
            though there is data where they are registered.
    """

    root: str
    columns: Columns
    layout: Layout
    left: str | None = None
    relocate: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """An alteration of one partition; ``location`` is None where it stays.

    Attributes:
        was: its location before.
        schema, classes: whether its columns, its format classes are set to the table's.
    """

    name: str
    key: Key
    was: str
    location: str | None = None
    schema: bool = False
    classes: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """A partition whose data is gone; or that its table has left behind, whatever lies there."""

    name: str
    location: str
    left: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """A partition that is not as its directory says, and is left alone."""

    name: str
    location: str
    reason: str


@dataclass(slots=True)
class Changes:
    """Changes of partitions, in the order in which they were found."""

    adds: list[Key] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    unchanged: int = 0

    def __len__(self) -> int:
        return len(self.adds) + len(self.updates) + len(self.drops)


class Occupied:
    """Whether data lies at or below a place.

    Args:
        root: canonical URI of the listing.
        directories: with data, relative to the root.
        elsewhere: answers for places that the listing does not cover, by looking.
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
            return self._elsewhere(location)  # hidden from the listing, not from engines
        at = bisect_left(self._sorted, prefix)
        return at < len(self._sorted) and self._sorted[at].startswith(prefix)


def below(root: str, location: str) -> bool:
    """Whether a canonical location is a root or lies in it."""
    return location == root or location.startswith(root + "/")


class PartitionDiff:
    """Compares storage with the metastore's partitions, handed over in parts of any size; what is
    in step is not held.
    """

    def __init__(self, stored: DiscoveredPartitions, target: Target, occupied: Occupied) -> None:
        self._stored = stored
        self._target = target
        self._occupied = occupied
        self._collided = {key for key, _ in stored.collisions}
        self._seen: set[Key] = set()
        self._changes = Changes()

    def trust(self, keys: Iterable[Key]) -> None:
        """Takes it that these are registered as they lie: they were after the last run."""
        for key in keys:
            self._seen.add(key)
            self._changes.unchanged += 1

    def take(self, registered: Iterable[RegisteredPartition]) -> None:
        for partition in registered:
            self._seen.add(partition.key)
            self._compare(partition)

    def changes(self) -> Changes:
        """All changes, once every registered partition has been handed over."""
        self._changes.adds = [k for k in self._stored.partitions if k not in self._seen]
        return self._changes

    def _compare(self, partition: RegisteredPartition) -> None:
        stored = self._stored.partitions.get(partition.key)
        target = self._target
        if stored is not None:
            place = f"{target.root}/{stored.directory}" if stored.directory else target.root
            self._align(partition, place)
        elif partition.key in self._collided:
            self._keep(partition, "several directories claim these values")
        elif not self._ours(partition.location):
            self._keep(partition, "it lies outside the table's root")
        elif self._left(partition.location):
            self._changes.drops.append(Drop(partition.name, partition.location, left=True))
        elif not self._occupied(partition.location):
            self._changes.drops.append(Drop(partition.name, partition.location))
        else:
            self._keep(partition, "data lies there, in directories that are no partition")

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
            self._keep(partition, f"data lies there and in {place}")

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
