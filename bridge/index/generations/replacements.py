"""Which files replace which: the outcome of clustering, as generations record it.

The law of readers: a group's new files are read instead of its old ones if EVERY old file is
listed with the identity that the rewrite has read (path, size, time, etag). Otherwise the listed
files are read. So a file that another writer deleted or overwrote never comes back, and losing the
index loses no row. A group is decided once for each partition and snapshot, never file by file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.parquet.tables import table_from_bytes, table_to_bytes
from bridge.index.building.sample import SIGNATURE
from bridge.index.generations.compact import compact
from bridge.index.generations.entries import absolute, live_entries, one_chunk, relative_to
from bridge.index.generations.manifest import (
    Blob,
    ClusteringState,
    Manifest,
    Shard,
    clustered_files,
)
from bridge.index.generations.store import IndexStore, new_id, next_generation
from bridge.index.reading.replaced_files import FileState as FileState
from bridge.index.reading.replaced_files import Replacement as Replacement
from bridge.index.reading.replaced_files import compose_replacements
from bridge.index.reading.replaced_files import states_of as states_of
from bridge.kernel.errors import GenerationNotFound, IndexCorrupt
from bridge.storage.port import Storage
from bridge.storage.uri import is_unusual, join, relative
from bridge.table.model import CatalogTable
from bridge.table.slices import IndexFiles

DIRECTORY = ".skipbridge_clustered"
"""Below the table's location; its name is hidden, so that no engine lists what lies in it."""
PUBLISHED = "published-"
"""Begins the names of directories in it that partitions were switched to."""
_SCHEMA = pa.schema(
    [
        pa.field("group", pa.int32(), False),
        pa.field("new", pa.bool_(), False),
        pa.field("partition", pa.large_string(), False),
        pa.field("path", pa.large_string(), False),
        pa.field("size", pa.int64(), False),
        pa.field("modified", pa.int64(), False),
        pa.field("etag", pa.large_string()),
    ]
)


def read_replacements(store: IndexStore, manifest: Manifest) -> pa.Table:
    """A generation's replacements, one row per file, with canonical URIs.

    Errors:
        IndexCorrupt: damaged, or a new file lies where clustering does not write: engines would
            read it with their own rights.
    """
    if manifest.clustering is None:
        return _SCHEMA.empty_table()
    blob = manifest.clustering.replacements
    try:
        found = table_from_bytes(store.read_blob(blob)).cast(_SCHEMA)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise IndexCorrupt(
            f"{blob.name} holds no replacements: {error}", "skipbridge index build"
        ) from error
    paths = absolute(one_chunk(found["path"]), manifest.location)
    for path in paths.filter(one_chunk(found["new"])).to_pylist():
        if not is_clustered(path, manifest.location):
            raise IndexCorrupt(
                f"{blob.name} names {path}, which is not in {DIRECTORY} of "
                f"{location_before_publishing(manifest.location)}",
                "skipbridge index drop, then build the index again",
            )
    return found.set_column(3, _SCHEMA.field("path"), paths)


def is_clustered(path: str, location: str) -> bool:
    """Whether a URI is of a file that clustering may have written for a table at a location.

    >>> is_clustered("file:///t/.skipbridge_clustered/1/f", "file:///t")
    True
    >>> is_clustered("file:///t/.skipbridge_clustered/../f", "file:///t")
    False
    """
    inner = relative(join(location_before_publishing(location), DIRECTORY), path)
    return inner is not None and not is_unusual(f"/{inner}")


def location_before_publishing(location: str) -> str:
    """Where a table lay before its location was switched by publishing; `DIRECTORY` is there.

    >>> location_before_publishing("file:///t/.skipbridge_clustered/published-1/data")
    'file:///t'
    >>> location_before_publishing("file:///t")
    'file:///t'
    """
    return location.partition(f"/{DIRECTORY}/{PUBLISHED}")[0]


def was_published(storage: Storage, root: str) -> bool:
    """Whether partitions of a table have been published, as far as its directory tells."""
    below = storage.list_directories(join(location_before_publishing(root), DIRECTORY))
    return any(uri.rstrip("/").rpartition("/")[2].startswith(PUBLISHED) for uri in below)


def replacements_of(table: pa.Table) -> list[Replacement]:
    """The groups of `read_replacements`, in their order."""
    groups: dict[int, tuple[str, tuple[list[FileState], list[FileState]]]] = {}
    for row in table.to_pylist():
        held = groups.setdefault(row["group"], (row["partition"], ([], [])))[1]
        state = FileState(row["path"], row["size"], row["modified"], row["etag"])
        held[1 if row["new"] else 0].append(state)
    return [Replacement(name, tuple(old), tuple(new)) for name, (old, new) in groups.values()]


def clustered_now(store: IndexStore) -> dict[str, Replacement]:
    """The group of each new file of the newest generation, by its path. Errors: IndexCorrupt."""
    held = store.latest()
    if held is None or held.clustering is None:
        return {}
    groups = replacements_of(read_replacements(store, held))
    return {state.path: group for group in groups for state in group.new}


def _write(store: IndexStore, groups: Sequence[Replacement], location: str) -> Blob:
    rows = [
        {
            "group": number,
            "new": new,
            "partition": group.partition,
            "path": relative_to(state.path, location),
            "size": state.size,
            "modified": state.modified,
            "etag": state.etag,
        }
        for number, group in enumerate(groups)
        for new, states in ((False, group.old), (True, group.new))
        for state in states
    ]
    content = table_to_bytes(pa.Table.from_pylist(rows, _SCHEMA))
    return store.put_blob(f"shards/{new_id()}-replacements.shard", content)


def commit_replacements(
    store: IndexStore,
    table: CatalogTable,
    instant: str,
    groups: Sequence[Replacement],
    shards: Sequence[Shard],
) -> Manifest:
    """Commits a plan: one generation names its instant, its replacements and the new entries.

    Everything else stays as the newest generation has it. Earlier replacements of which new files
    were rewritten become part of the new ones. Those that share an old file with these end; what is
    left of their old files is read as it is listed.

    Errors:
        GenerationNotFound: there is no index.
        IndexCorrupt: the index is damaged, of another layout, or of another location.
        IndexConflict: other builders committed first, several times in a row.
    """

    def complete(held: Manifest) -> Manifest:
        if held.location != table.location:
            raise IndexCorrupt(
                f"generation {held.generation} at {store.root} is of {held.location}; "
                f"the table lies at {table.location}",
                f"skipbridge index build {table.name}",
            )
        before = held.clustering
        if before is not None and instant in before.instants:
            return held
        untouched, made = compose_replacements(
            replacements_of(read_replacements(store, held)), groups
        )
        taken = {state.path for group in made for state in group.old}
        kept = [g for g in untouched if not any(state.path in taken for state in g.old)]
        groups_now = [*kept, *made]
        asked = {SIGNATURE, *(definition.signature for definition in held.settings.definitions)}
        added = [
            replace(s, payloads=tuple(p for p in s.payloads if p.signature in asked))
            for s in shards
        ]
        clustering = ClusteringState(
            (*(() if before is None else before.instants), instant),
            _write(store, groups_now, held.location),
            _needed(store, held, (*(() if before is None else before.shards), *added), groups_now),
        )
        return next_generation(held, held.generation + 1, builder=new_id(), clustering=clustering)

    found = store.update(complete)
    if found is None:
        raise GenerationNotFound(f"there is no index at {store.root}", "skipbridge index build")
    return found


def carry_over_replacements(
    store: IndexStore, manifest: Manifest | None, table: CatalogTable, *, check: bool
) -> ClusteringState | None:
    """The replacements that a build takes over from the generation before.

    Args:
        check: take over nothing if a file of it is damaged, or a new file is not in storage. The
            old files still hold every row.

    Returns:
        Of a table that was published since, only which plans were completed.
    """
    found = None if manifest is None else manifest.clustering
    if manifest is None or found is None:
        return None
    home = location_before_publishing(table.location)
    if location_before_publishing(manifest.location) != home:
        return None
    if manifest.location != table.location:
        return _emptied(store, found)
    if check:
        try:
            for blob in found.blobs():
                store.read_blob(blob)
            if _missing(store, read_replacements(store, manifest), table.location):
                return None
        except IndexCorrupt:
            return None
    return found


def _emptied(store: IndexStore, clustering: ClusteringState) -> ClusteringState:
    """Without replacements. Which plans were completed is still known."""
    return ClusteringState(clustering.instants, _write(store, [], ""), ())


def forget_replacements(store: IndexStore, holds: Callable[[Replacement], bool]) -> int:
    """Commits a generation without the replacements that can hold no more.

    Returns:
        How many were left out; nothing is committed if there are none.

    Errors:
        IndexCorrupt, IndexConflict: as `commit_replacements`.
    """
    forgotten = 0

    def without(held: Manifest) -> Manifest:
        nonlocal forgotten
        forgotten = 0
        if held.clustering is None:
            return held
        groups = replacements_of(read_replacements(store, held))
        kept = [group for group in groups if holds(group)]
        forgotten = len(groups) - len(kept)
        if not forgotten:
            return held
        clustering = _emptied(store, held.clustering)
        if kept:
            clustering = replace(
                held.clustering,
                replacements=_write(store, kept, held.location),
                shards=_needed(store, held, held.clustering.shards, kept),
            )
        return next_generation(held, held.generation + 1, builder=new_id(), clustering=clustering)

    store.update(without)
    return forgotten


def _needed(
    store: IndexStore, held: Manifest, shards: Sequence[Shard], groups: Sequence[Replacement]
) -> tuple[Shard, ...]:
    """Shards with the entries of all new files of some groups, few and without many others."""
    new = pa.array([s.path for group in groups for s in group.new], pa.large_string())
    entries = live_entries(replace(clustered_files(held), shards=tuple(shards)), store)
    unused = ~pc.is_in(entries.paths, new).to_numpy(zero_copy_only=False)
    dead = {
        shard.id: entries.ordinal[unused & (entries.shard == i)].tolist()
        for i, shard in enumerate(shards)
    }
    return tuple(compact(store, list(shards), dead)[0])


def _missing(store: IndexStore, table: pa.Table, location: str) -> bool:
    """Whether a new file was deleted or has another size."""
    held = store.storage.list_all(
        join(location_before_publishing(location), DIRECTORY), recursive=True
    )
    sizes = dict(zip(held.paths.to_pylist(), held.sizes.tolist(), strict=True))
    new = table.filter(table["new"])
    wanted = zip(new["path"].to_pylist(), new["size"].to_pylist(), strict=True)
    return any(sizes.get(path) != size for path, size in wanted)


class ClusteredFiles:
    """The replacements of an opened generation; see the law above. Immutable and thread-safe.

    Args:
        table: of `read_replacements`.
        old: ordinal of each row's file in the table's index, -1 for new files and for files that
            the index does not hold in that state.
        new: ordinal of each row's file in the index of clustered files, -1 for old files.
        num_files: of the table's index.

    Attributes:
        index: of the new files.
        num_groups: that can hold.
    """

    def __init__(
        self,
        index: IndexFiles,
        table: pa.Table,
        old: npt.NDArray[np.int64],
        new: npt.NDArray[np.int64],
        num_files: int,
    ) -> None:
        self.index = index
        group = np.asarray(table["group"].to_numpy(), np.int64)
        is_new = np.asarray(table["new"].to_numpy(zero_copy_only=False), np.bool_)
        count = int(group.max(initial=-1)) + 1
        usable = np.ones(count, np.bool_)
        usable[group[np.where(is_new, new, old) < 0]] = False
        self._group = np.full(num_files, -1, np.int64)
        self._needed = np.bincount(group[~is_new], minlength=count)
        usable &= self._needed > 0
        mine = ~is_new & usable[group]
        first, times = np.unique(old[mine], return_counts=True)
        twice = np.isin(old, first[times > 1]) & mine  # never written: groups are disjoint
        usable[group[twice]] = False
        mine = ~is_new & usable[group]
        self._group[old[mine]] = group[mine]
        self.num_groups = int(np.count_nonzero(usable))
        rows = np.flatnonzero(is_new & usable[group])
        rows = rows[np.argsort(group[rows], kind="stable")]
        self._new = new[rows]
        self._offsets = np.searchsorted(group[rows], np.arange(count + 1))

    def find_replaced(
        self, ordinals: npt.NDArray[np.int64], partition: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int32]] | None:
        """What replaces listed files.

        Args:
            ordinals: of all listed files of some partitions in the table's index; -1 where a file
                is not in the state that the index knows.
            partition: of each listed file.

        Returns:
            A mask of the listed files that are replaced, and the ordinals and partitions of the
            files to read instead; None if nothing is replaced.
        """
        if not self.num_groups or not len(ordinals):
            return None
        group = np.where(ordinals >= 0, self._group[ordinals], -1)
        if not (group >= 0).any():
            return None
        count = len(self._needed)
        slot = np.where(group >= 0, partition.astype(np.int64) * count + group, -1)
        slots, where, found = np.unique(slot, return_inverse=True, return_counts=True)
        holds = (slots >= 0) & (found == self._needed[slots % count])
        if not holds.any():
            return None
        groups, owners = slots[holds] % count, slots[holds] // count
        begin, counts = self._offsets[groups], self._offsets[groups + 1] - self._offsets[groups]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        new = self._new[np.repeat(begin, counts) + within]
        return holds[where], new, np.repeat(owners, counts).astype(np.int32)
