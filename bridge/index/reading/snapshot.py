"""An opened index generation for the planner: files by ordinal, statistics as mapped columns.

Ordinals number the live files in path order. Arrays that are stored in the requested form are used
without a copy. No Python object is created per file.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import PruningStatistics
from bridge.formats.parquet.stored_file import StoredFile, parse_stored
from bridge.formats.physical_column import PhysicalColumn
from bridge.index.building.listed import owners_of
from bridge.index.building.sample import SCHEMA, SIGNATURE, ColumnSample, column_samples
from bridge.index.generations import identity
from bridge.index.generations.entries import one_chunk
from bridge.index.generations.manifest import Manifest, clustered_files
from bridge.index.generations.replacements import ClusteredFiles, read_replacements
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.opened import OpenedKind, open_kinds, payload_loader
from bridge.index.kinds.payload import Payload
from bridge.index.reading.column_bytes import column_bytes
from bridge.index.reading.column_view import ColumnView, RenamedColumns
from bridge.index.reading.local_cache import CachedIndex, CacheLimits, cache_index
from bridge.kernel.errors import BridgeError
from bridge.kernel.types import TRINO, Field, Semantics
from bridge.storage.port import FileTable

Int64 = npt.NDArray[np.int64]
_NO_FILES: Int64 = np.empty(0, np.int64)
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


class IndexSnapshot:
    """One generation of an index. Immutable and thread-safe.

    Attributes:
        generation: its number.
        num_files: live files, trusted or not.
        sizes, modified, rows: by ordinal; rows are -1 where unknown.
        partition: each file's index into ``owners``.
        owners: sets of partitions that own a file together; most have one partition.
        recipe: each file's index into ``recipes``: digests of how tables declare them; empty where
            the file says itself how it is read.
        trusted: files whose entries may be used; ``all_trusted``: whether all may.
        all_ordinals: ordinals of all files. Recognised by object identity, so that results for the
            whole table are not copied.
        shared: whether a file belongs to several partitions. It is then read for each of them.
        num_failed: files that could not be read when they were indexed.
        stored: each file's index into `stored_files`; -1 if that is not known.
        counted_rows: as ``rows``, -1 where an answer made of the number alone is not certain.
        local: the local copy of the arrays.
        kinds: the definitions other than min/max, cheapest first. Each is read on first use.
        clustered: the files that replace others; None if there are none. All else here is of the
            table's own files.
    """

    def __init__(self, manifest: Manifest, compiled: CachedIndex) -> None:
        files = compiled.files
        self.generation = manifest.generation
        self.manifest = manifest
        self.num_files: int = files.num_rows
        self.paths: pa.Array = files.column("path")
        self.etags: pa.Array = files.column("etag")
        self.sizes: Int64 = files.column("size").to_numpy()
        self.modified: Int64 = files.column("modified").to_numpy()
        self.rows: Int64 = files.column("rows").to_numpy()
        uncounted = compiled.trust.uncounted
        self.counted_rows = self.rows if uncounted is None else np.where(uncounted, -1, self.rows)
        self.partition: npt.NDArray[np.int32] = files.column("partition").to_numpy()
        self.owners = tuple(owners_of(text) for text in compiled.owners)
        self.recipes = compiled.recipes
        self.recipe: npt.NDArray[np.int32] = files.column("recipe").to_numpy()
        self.stored: npt.NDArray[np.int32] = files.column("stored").to_numpy()
        self.trusted: npt.NDArray[np.bool_] = files.column("trusted").to_numpy().view(np.bool_)
        # A trusted file with a problem has incomplete statistics, which are used.
        self._failed = files.column("failed").to_numpy().view(np.bool_) & ~self.trusted
        self.num_failed = int(np.count_nonzero(self._failed)) if not compiled.all_trusted else 0
        self._row_groups: pa.Array = files.column("row_groups")
        self.all_trusted = compiled.all_trusted
        self.local = compiled
        self._columns: ColumnView | RenamedColumns = ColumnView(compiled)
        self.kinds: tuple[OpenedKind, ...] = ()
        self.clustered: ClusteredFiles | None = None
        self.all_ordinals: Int64 = np.arange(self.num_files, dtype=np.int64)
        self.total_bytes = int(self.sizes.sum())
        self.shared = any(len(names) > 1 for names in self.owners)
        self._ranges: dict[str, Int64] | None = None
        self._directories: dict[str, str] | None = None
        self._stored: tuple[StoredFile, ...] | None = None
        self._load_sample: Callable[[], Payload] | None = None
        self._load_bytes: Callable[[Collection[str] | None], Mapping[str, Int64]] = _no_bytes
        self._sample: Mapping[str, ColumnSample] | None = None
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        manifest: Manifest,
        store: IndexStore,
        cache_dir: str | Path,
        limits: CacheLimits | None = None,
    ) -> IndexSnapshot:
        """Opens a generation. Reads its files now, and each column on first use.

        Errors:
            IndexCorrupt: a shard is missing or damaged.
            StorageFailure, StorageFull.
        """
        compiled = cache_index(manifest, store, Path(cache_dir), limits)
        opened = cls(manifest, compiled)
        opened.kinds = open_kinds(manifest, compiled, store)
        opened._load_bytes = partial(column_bytes, manifest, store)
        if any(shard.payload(SIGNATURE) is not None for shard in manifest.shards):
            opened._load_sample = payload_loader(manifest, compiled, store, SIGNATURE, SCHEMA)
        if manifest.clustering is not None:
            replacements = read_replacements(store, manifest)
            if len(replacements):
                new = cls.open(clustered_files(manifest), store, cache_dir, limits)
                opened.clustered = opened._replacements(new, replacements)
        return opened

    def _replacements(self, new: IndexSnapshot, table: pa.Table) -> ClusteredFiles:
        files = FileTable(
            one_chunk(table["path"]),
            np.asarray(table["size"].to_numpy(), np.int64),
            np.asarray(table["modified"].to_numpy(), np.int64),
            one_chunk(table["etag"]),
        )
        is_new = np.asarray(table["new"].to_numpy(zero_copy_only=False), np.bool_)
        old = np.where(is_new, -1, self.match(files))
        written = np.where(is_new, identity.find(new.paths, files.paths), -1)
        return ClusteredFiles(new, table, old, written, self.num_files)

    @property
    def location(self) -> str:
        """The table's location when the index was built."""
        return self.manifest.location

    @property
    def complete(self) -> bool:
        """Whether the generation names every file; False for intermediate commits of a build."""
        return self.manifest.complete

    def ordinals_of(self, partition: str) -> Int64:
        """Ordinals of the files of one partition, ascending."""
        if self.owners == ((partition,),):
            return self.all_ordinals
        return self._by_owner().get(partition, _NO_FILES)

    def directory_of(self, partition: str) -> str | None:
        """The deepest directory that holds all files of a partition; None if it has no file."""
        if self._directories is None:
            self._directories = _directories(self.paths, self._by_owner())
        return self._directories.get(partition)

    def list_owned(self) -> tuple[Int64, npt.NDArray[np.int32], list[str]]:
        """One slot per file and owning partition.

        Returns:
            The ordinals, the owners as indexes into the names, and the names of all partitions.
        """
        if not self.shared:
            return self.all_ordinals, self.partition, [name for (name,) in self.owners]
        ranges = self._by_owner()
        counts = [len(ordinals) for ordinals in ranges.values()]
        owner = np.repeat(np.arange(len(ranges), dtype=np.int32), counts)
        return np.concatenate(list(ranges.values())), owner, list(ranges)

    def _by_owner(self) -> dict[str, Int64]:
        if self._ranges is None:
            with self._lock:
                if self._ranges is None:
                    self._ranges = _by_partition(self)
        return self._ranges

    @property
    def problems(self) -> dict[str, BridgeError]:
        """Columns whose last read failed. They are unknown until a retry succeeds."""
        return {name: error for name, (_, error) in list(self._columns.problems.items())}

    def used_columns(self) -> list[tuple[str, ...]]:
        """Paths of the cached columns."""
        return self._columns.used()

    def prefetch(self, paths: Iterable[tuple[str, ...]]) -> None:
        """Fetches columns to this machine before a query requests them.

        Errors:
            IndexCorrupt, StorageFailure, StorageFull.
        """
        self._columns.prefetch(paths)

    def column_bytes(self, columns: Collection[str] | None = None) -> Mapping[str, Int64]:
        """See `bridge.index.reading.column_bytes`; read anew with each call, by ordinal.

        Errors: IndexCorrupt, StorageFailure.
        """
        return self._load_bytes(columns)

    def paths_at(self, ordinals: Int64) -> pa.Array:
        """Canonical URIs of some files."""
        self.local.expect_files(ordinals)
        return self.paths.take(pa.array(ordinals))

    def with_names(self, names: Mapping[str, str | None]) -> IndexSnapshot:
        """The same generation, asked by other names; see `IndexFiles`.

        Of other kinds than min and max only those on a column that is not among the names answer.
        """
        other = copy(self)
        assert isinstance(self._columns, ColumnView)
        other._columns = RenamedColumns(self._columns, names)
        other.kinds = tuple(kind for kind in self.kinds if _is_plain(kind.definition.on, names))
        other.clustered, other._load_sample = None, None
        return other

    def row_groups(self, ordinal: int) -> Int64 | None:
        """Start offsets of a large file's row groups, ascending; None if not recorded."""
        found = self._row_groups[ordinal]
        return np.asarray(found.values.to_numpy(), np.int64) if found.is_valid else None

    def statistics(
        self, columns: Sequence[Field] = (), semantics: Semantics = TRINO
    ) -> PruningStatistics:
        """Statistics of all files by ordinal, as an engine with these semantics reads the files."""
        return self._columns.statistics(tuple(columns), semantics)

    @property
    def stored_columns(self) -> list[PhysicalColumn]:
        """Every column of every file, as stored; one of several types is named for each."""
        return [each.column for each in self.local.columns]

    @property
    def stored_files(self) -> tuple[StoredFile, ...]:
        """What the files say to readers that find columns by name, without rows; each once."""
        if self._stored is None:
            self._stored = tuple(map(parse_stored, self.local.stored))
        return self._stored

    def stored_types(self, path: tuple[str, ...]) -> frozenset[str]:
        """The logical types that files have for a column, such as ``float``; case is ignored."""
        return self._columns.stored_types(path)

    def stored_names(self, path: tuple[str, ...]) -> frozenset[str]:
        """The names that files have for a column, such as ``Id`` and ``id``."""
        return self._columns.stored_names(path)

    def stored_units(self, column: str) -> frozenset[str]:
        """The units of the times that files hold in a column or below it, such as ``us``."""
        return self._columns.stored_units(column)

    def certain(
        self, reference: BoundReference, columns: Sequence[Field], ordinals: Int64
    ) -> npt.NDArray[np.bool_] | None:
        """Of some files, those in which each engine finds a column; None: all of them.

        Args:
            columns: the table's columns in order.

        Errors:
            IndexCorrupt, StorageFailure, StorageFull.
        """
        names = [column.name.lower() for column in columns]
        name = reference.path[0].lower()
        found = self._columns.certain(reference, names.index(name) if name in names else None)
        return None if found is None else found[ordinals]

    def distinct_values(self, column: str | tuple[str, ...]) -> float | None:
        """Estimates how many distinct non-null values a column has in the whole table.

        Args:
            column: its name, or the path of a nested field; case is ignored.

        Returns:
            The estimate; None if the index has no sketch of the column.
        """
        path = ".".join((column,) if isinstance(column, str) else column)
        for opened in self.kinds:
            found = opened.distinct_values(path)
            if found is not None:
                return found
        return None

    @property
    def loaded_sample(self) -> Mapping[str, ColumnSample]:
        """`sample`, but empty if it was not read yet."""
        return self._sample or {}

    @property
    def sample(self) -> Mapping[str, ColumnSample]:
        """What the builds sampled, by dotted column name in lower case; read on first use."""
        if self._sample is None:
            if self._load_sample is None:
                return {}
            try:
                self._sample = column_samples(self._load_sample())
            except BridgeError:  # estimates alone need it, and the next ones ask again
                return {}
        return self._sample

    def match(self, files: FileTable) -> Int64:
        """The ordinal of each listed file; -1 if the file is new, changed or not trusted."""
        ordinals = identity.find(self.paths, files.paths)
        whole = (
            len(ordinals) == self.num_files
            and self.num_files > 0
            and bool(files.paths.equals(self.paths))
        )
        if whole:
            same = (self.sizes == files.sizes) & (self.modified == files.modified)
        else:
            at = np.where(ordinals >= 0, ordinals, 0)
            if not self.num_files:
                return ordinals
            same = (self.sizes[at] == files.sizes) & (self.modified[at] == files.modified)
        if not self.all_trusted:
            same &= self.trusted if whole else self.trusted[at]
        if files.etags is not None and self.etags.null_count < len(self.etags):
            mine = self.etags if whole else self.etags.take(pa.array(at))
            agree = identity.same_etags(mine, files.etags)
            if agree is not None:
                same &= agree
        return ordinals if same.all() else np.where(same, ordinals, -1)

    def count_failed(self, files: FileTable, positions: Int64) -> int:
        """How many of the given listed files are unchanged files that could not be indexed."""
        if not self.num_failed:
            return 0
        ordinals = identity.find(self.paths, files.paths.take(pa.array(positions)))
        at = np.where(ordinals >= 0, ordinals, 0)
        same = (ordinals >= 0) & self._failed[at]
        same &= self.sizes[at] == files.sizes[positions]
        same &= self.modified[at] == files.modified[positions]
        return int(np.count_nonzero(same))


def _no_bytes(_columns: Collection[str] | None) -> Mapping[str, Int64]:
    return {}


def _is_plain(on: str, names: Mapping[str, str | None]) -> bool:
    """Whether a definition is on one column, or a part of one, that has the name of the table."""
    return _COLUMN.fullmatch(on) is not None and on.partition(".")[0].lower() not in names


def _by_partition(index: IndexSnapshot) -> dict[str, Int64]:
    order = np.argsort(index.partition, kind="stable").astype(np.int64)
    edges = np.searchsorted(index.partition[order], np.arange(len(index.owners) + 1)).tolist()
    held: dict[str, list[Int64]] = {}
    for i, names in enumerate(index.owners):
        for name in names:
            held.setdefault(name, []).append(order[edges[i] : edges[i + 1]])
    return {
        name: parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
        for name, parts in held.items()
    }


def _directories(paths: pa.Array, owners: dict[str, Int64]) -> dict[str, str]:
    # Paths are sorted: what the first and the last begin with, all begin with.
    edges = ([ordinals[at] for ordinals in owners.values()] for at in (0, -1))
    first, last = (paths.take(pa.array(edge, pa.int64())).to_pylist() for edge in edges)
    return {name: _directory(*ends) for name, *ends in zip(owners, first, last, strict=True)}


def _directory(first: str, last: str) -> str:
    directory = first.rpartition("/")[0]
    while directory and not last.startswith(f"{directory}/"):
        directory = directory.rpartition("/")[0]
    return directory
