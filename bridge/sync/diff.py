"""The changes that make the metastore match storage; a pure comparison.

For one partition:

====================  =======================  =============================================
on storage            registered               then
====================  =======================  =============================================
a directory           no                       added
a directory           there                    stays; altered if schema or format class differ
a directory           elsewhere                kept and reported (two places claim it)
a directory           by another name          stays there, and is not registered again
one above or below    yes                      not registered, and reported
several (collision)   yes or no                kept and reported
none                  below the root, no data  dropped, once that is proven (`Wait`)
none                  below the root, data     kept and reported: its directory is unparsable
none                  outside the root         kept: it was registered there on purpose
any                   published (clustering)   stays, even without data
====================  =======================  =============================================

The law: once the changes are made, each readable directory with data is the location of one
partition, or reported, and each partition below the root without data is dropped or waits. All have
the table's columns. A type in a partition's record stays, unless its own files need a wider one.
Repeating all or some of the changes does not alter the result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bridge.kernel.types import Type
from bridge.sync.discovered_partitions import DiscoveredPartitions, KeyTexts
from bridge.sync.places import RegisteredPlaces, typed_keys
from bridge.table.partition import partition_name

SpelledColumns = tuple[tuple[str, str], ...]
"""Names in lower case, with types as Hive spells them."""
WiderTypes = Sequence[tuple[str, str, Type]]
"""Columns of one partition whose files need a wider type: name, type on record, that type."""


@dataclass(frozen=True, slots=True)
class PartitionClasses:
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
        location: canonical URI; as it is registered if it has none, empty if there is none.
        missing: when a run first found no data there, milliseconds since the epoch, as recorded.
        record: a digest of all fields of the record.
    """

    name: str
    key: KeyTexts
    location: str
    columns: SpelledColumns
    layout: PartitionClasses
    missing: int | None = None
    record: str = field(default="", compare=False)

    @property
    def basis(self) -> Basis:
        return Basis(self.record, hash(self))


@dataclass(frozen=True, slots=True)
class Basis:
    """A partition's record, as it was when a change was decided.

    Attributes:
        record: `RegisteredPartition.record`.
        decides: a digest of what decisions are made on, in this process.
    """

    record: str
    decides: int


@dataclass(frozen=True, slots=True)
class TargetProperties:
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
    columns: SpelledColumns
    layout: PartitionClasses
    left: str | None = None
    relocate: bool = False
    published: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """An alteration of one partition; ``location`` is None if it does not change.

    Attributes:
        was: the location before.
        schema: whether it gets the table's columns: with ``types`` None as they are, otherwise
            those that it lacks.
        classes: whether its format classes are set to the table's.
        types: columns that get a wider type.
        missing: what the record shall say of when no data was found; 0 removes it, None leaves it.
    """

    name: str
    key: KeyTexts
    was: str
    location: str | None = None
    schema: bool = False
    classes: bool = False
    missing: int | None = None
    types: WiderTypes | None = None
    basis: Basis | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a partition without data is not dropped yet; ``since`` is recorded as `missing`."""

    reason: str
    since: int


@dataclass(frozen=True, slots=True)
class Drop:
    """A partition without data, or one at a root that its table has left, even with data."""

    name: str
    location: str
    left: bool = False
    basis: Basis | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class KeptPartition:
    """A partition that differs from its directory and is left alone."""

    name: str
    location: str
    reason: str


@dataclass(slots=True)
class Changes:
    """Changes of partitions, in the order found.

    Attributes:
        later: directories to add once partitions that are registered there have moved away.
        waiting: partitions without data that are not dropped yet.
        unregistered: canonical URIs of directories with data that are left in no partition.
        elsewhere: partitions that stay at another place than their name's directory, published
            ones apart.
        doubled: partitions that lie where another one does, and that one's name.
    """

    adds: list[KeyTexts] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    kept: list[KeptPartition] = field(default_factory=list)
    unchanged: int = 0
    later: list[KeyTexts] = field(default_factory=list)
    waiting: list[KeptPartition] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    doubled: list[tuple[str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.adds) + len(self.updates) + len(self.drops)


class Occupied:
    """Whether there is data at or below locations.

    Args:
        root: canonical URI of the listing.
        directories: directories with data, relative to the root.
        elsewhere: looks at locations that the listing does not cover.
        refused: directories that cannot be listed: whatever lies there is taken for data. If the
            root is one, some directories in it are not listed.
    """

    def __init__(
        self,
        root: str,
        directories: Sequence[str],
        elsewhere: Callable[[Sequence[str]], Sequence[bool]],
        refused: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._refused = [d + "/" for d in refused if d]
        self._whole = "" not in refused
        self._sorted = sorted([*(d + "/" for d in directories), *self._refused])
        self._elsewhere = elsewhere

    def __call__(self, locations: Sequence[str]) -> list[bool]:
        known = [self._listed(location) for location in locations]
        unknown = [n for n, there in zip(locations, known, strict=True) if there is None]
        found = iter(self._elsewhere(unknown) if unknown else ())
        return [next(found) if there is None else there for there in known]

    def _listed(self, location: str) -> bool | None:
        if location == self._root:
            return bool(self._sorted)
        if not below(self._root, location):
            return None
        prefix = location[len(self._root) + 1 :] + "/"
        if any(name.startswith((".", "_")) for name in prefix.split("/")):
            return None  # the listing hides it, engines do not
        if any(prefix.startswith(refused) for refused in self._refused):
            return True
        at = bisect_left(self._sorted, prefix)
        found = at < len(self._sorted) and self._sorted[at].startswith(prefix)
        return found if found or self._whole else None


def below(root: str, location: str) -> bool:
    """Whether a canonical location is the root or inside it."""
    return location == root or location.startswith(root + "/")


def drop_at_once(absent: Sequence[RegisteredPartition]) -> list[Wait | None]:
    """For partitions of which it is stated that they are gone."""
    return [None] * len(absent)


class PartitionDiff:
    """Compares storage with the metastore's partitions.

    Partitions are passed in parts of any size; unchanged ones are not kept in memory.

    Args:
        occupied: whether there is data at or below locations (`Occupied`).
        wait: why partitions below the root that hold no data are not dropped, or None.
        retype: which columns of partitions their files widen. None: each partition has the table's
            columns and types.
    """

    def __init__(
        self,
        stored: DiscoveredPartitions,
        target: TargetProperties,
        occupied: Callable[[Sequence[str]], Sequence[bool]],
        wait: Callable[[Sequence[RegisteredPartition]], Sequence[Wait | None]] = drop_at_once,
        retype: Callable[[Sequence[RegisteredPartition]], Sequence[WiderTypes]] | None = None,
    ) -> None:
        self._stored = stored
        self._target = target
        self._occupied = occupied
        self._wait = wait
        self._retype = retype
        self._retyped: dict[str, WiderTypes] = {}
        self._names = {name for name, _ in target.columns}
        self._typed = typed_keys(stored.keys)
        self._by_place = {self._place(k): k for k in stored.partitions}
        self._collided = {key for key, _ in stored.collisions}
        self._seen: set[KeyTexts] = set()
        self._places: list[tuple[str, str]] = []
        self._moves: dict[str, str] = {}
        self._unsure: list[tuple[RegisteredPartition, str | None]] = []
        self._returning: list[tuple[RegisteredPartition, str]] = []
        self._elsewhere: list[RegisteredPartition] = []
        self._changes = Changes()

    def trust(self, partitions: Iterable[tuple[KeyTexts, str]]) -> None:
        """Treats these partitions as unchanged, since they matched after the last run.

        Args:
            partitions: that lie in the directories of their names: values, and names.
        """
        for key, name in partitions:
            self._seen.add(key)
            self._places.append((self._place(key), name))
            self._changes.unchanged += 1

    def take(self, registered: Iterable[RegisteredPartition]) -> None:
        batch = list(registered)
        if self._retype is not None:
            pairs = zip(batch, self._retype(batch), strict=True)
            self._retyped |= {p.name: types for p, types in pairs if types}
        for partition in batch:
            self._seen.add(partition.key)
            if partition.location:
                self._places.append((partition.location, partition.name))
            self._compare(partition)

    def changes(self) -> Changes:
        """All changes; call it once, after every registered partition has been passed."""
        changes = self._changes
        self._move_back()
        found = self._occupied([p.location for p, _ in self._unsure])
        absent: list[RegisteredPartition] = []
        for (partition, place), there in zip(self._unsure, found, strict=True):
            if place is not None:
                changes.unregistered.append(place)
                reason = "there is data there, or it cannot be read," if there else "it is empty,"
                self._keep(partition, f"{reason} and there is data in {place}: see --relocate")
            elif there:
                self._keep(partition, "there is data there, in directories that are not partitions")
            else:
                absent.append(partition)
        for partition, wait in zip(absent, self._wait(absent), strict=True):
            if wait is None:
                changes.drops.append(
                    Drop(partition.name, partition.location, basis=partition.basis)
                )
                continue
            changes.waiting.append(KeptPartition(partition.name, partition.location, wait.reason))
            self._update(partition, None, since=wait.since)
        gone = {d.name for d in changes.drops} | {u.name for u in changes.updates if u.location}
        changes.elsewhere = [p.name for p in self._elsewhere if p.name not in gone]
        self._add([k for k in self._stored.partitions if k not in self._seen], absent)
        return changes

    def places(self) -> RegisteredPlaces:
        """Where the partitions that were passed lie once they are altered."""
        return RegisteredPlaces(
            (self._moves.get(name, place), name) for place, name in self._places
        )

    def _place(self, key: KeyTexts) -> str:
        directory = self._stored.partitions[key].directory
        return f"{self._target.root}/{directory}" if directory else self._target.root

    def _compare(self, partition: RegisteredPartition) -> None:
        place = self._place(partition.key) if partition.key in self._stored.partitions else None
        target, location = self._target, partition.location
        published = bool(target.published) and location.startswith(target.published)
        if published or location == place:
            self._update(partition, None)
            return
        self._elsewhere.append(partition)
        held = self._by_place.get(location)
        if not location:
            self._keep(partition, "it has no location")
        elif place is not None and (target.relocate or self._left(location)):
            self._returning.append((partition, place))
        elif place is not None:
            self._unsure.append((partition, place))
        elif held is not None and self._typed(held) == self._typed(partition.key):
            self._update(partition, None)
        elif held is not None:
            self._keep(partition, "the directory has another name")
        elif partition.key in self._collided:
            self._keep(partition, "several directories claim these values")
        elif not self._ours(location):
            self._keep(partition, "it is outside the table's root")
        elif self._left(location):
            drop = Drop(partition.name, location, left=True, basis=partition.basis)
            self._changes.drops.append(drop)
        else:
            self._unsure.append((partition, None))

    def _move_back(self) -> None:
        """Moves partitions to the directories of their names, but for those that others hold.

        One that must stay holds its own place, which may be another's directory.
        """
        moving, stays = self._returning, True
        while stays:
            names = {p.name for p, _ in moving}
            held = RegisteredPlaces((place, n) for place, n in self._places if n not in names)
            claims = [held.claim(place) for _, place in moving]
            for (partition, place), claim in zip(moving, claims, strict=True):
                if claim is not None:
                    self._keep(partition, f"its directory stays as it is, {place}: {claim}")
            stays = any(claims)
            pairs = zip(moving, claims, strict=True)
            moving = [one for one, claim in pairs if claim is None]
        for partition, place in moving:
            self._update(partition, place)

    def _add(self, keys: Sequence[KeyTexts], absent: Sequence[RegisteredPartition]) -> None:
        """Adds directories that nobody holds."""
        held = self.places()
        self._changes.doubled = held.doubled
        if not keys:
            return
        names = [k.name for k in self._stored.keys]
        gone = {p.name for p in absent}
        twins = {
            self._typed(p.key): p
            for p in self._elsewhere
            if p.location not in self._by_place and p.name not in gone
        }
        leaving = RegisteredPlaces((place, n) for place, n in self._places if n in self._moves)
        for key in keys:
            place, twin = self._place(key), twins.get(self._typed(key))
            claim = held.claim(place)
            if claim is None and twin is not None:
                claim = f"the same value is registered as {twin.name} at {twin.location}"
            if claim is None:
                later = leaving.claim(place) is not None
                (self._changes.later if later else self._changes.adds).append(key)
            elif place not in held:
                self._changes.unregistered.append(place)
                self._changes.kept.append(KeptPartition(partition_name(names, key), place, claim))

    def _keep(self, partition: RegisteredPartition, reason: str) -> None:
        self._changes.kept.append(KeptPartition(partition.name, partition.location, reason))
        self._update(partition, None)

    def _update(self, partition: RegisteredPartition, location: str | None, since: int = 0) -> None:
        """``since``: when its data was first missed; 0: it is not."""
        target = self._target
        missing = since if since != (partition.missing or 0) else None
        types = None if self._retype is None else self._retyped.get(partition.name, ())
        schema = partition.columns != target.columns
        if schema and types is not None:
            schema = bool(types) or not self._names <= {name for name, _ in partition.columns}
        classes = partition.layout != target.layout
        if partition.layout.format != target.layout.format:
            reason = f"its files are {partition.layout.format}, the table's {target.layout.format}"
            self._changes.kept.append(KeptPartition(partition.name, partition.location, reason))
            location, schema, classes = None, False, False
            if missing is None:
                return
        if location is None and not schema and not classes and missing is None:
            self._changes.unchanged += 1
            return
        if location is not None:
            self._moves[partition.name] = location
        self._changes.updates.append(
            Update(
                partition.name,
                partition.key,
                partition.location,
                location,
                schema,
                classes,
                missing,
                types if schema else None,
                partition.basis,
            )
        )

    def _ours(self, location: str) -> bool:
        return below(self._target.root, location) or self._left(location)

    def _left(self, location: str) -> bool:
        left = self._target.left
        return left is not None and below(left, location) and not below(self._target.root, location)
