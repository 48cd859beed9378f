"""The local copy of a generation: Arrow IPC files that a planner maps into memory.

::

    <cache>/<checksum of the manifest>/meta.json     partitions and columns
    <cache>/<checksum>/files.arrow                   live files, sorted by path
    <cache>/<checksum>/<id>.json, <id>-….arrow       packs of columns, see `pack`

A column is fetched from storage when it is first requested, so a planner holds only the columns
that its queries use. Columns that are fetched together form a pack. The arrays of a column have one
slot per live file, in the order of ``files.arrow``. Files are written under a temporary name and
renamed, so a reader sees a whole file or none. The directory is private to the user and bounded in
bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.prune import MANY_FILES
from bridge.expression.quantised_bounds import FEWEST_EDGES, QuantisedBounds
from bridge.formats.physical_column import (
    INT_MAX,
    INT_MIN,
    PhysicalColumn,
    PhysicalType,
    decode,
    parse_key,
)
from bridge.index.building.evidence import by_writer
from bridge.index.generations.entries import encode_texts, encoded_texts, live_entries, one_chunk
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.store import IndexStore
from bridge.index.reading.column_file import ColumnFile, no_rows
from bridge.index.reading.disk_room import BUILDING, evict, trim
from bridge.index.reading.open_files import Keeper, OpenFiles
from bridge.index.reading.pack import (
    CELLS,
    EDGES,
    Loaded,
    PackedRange,
    PackWriter,
    ascend,
    is_sound,
    pack_files,
    pack_of,
    read_cells,
    read_pack,
    seal_json,
    sync,
    unseal_json,
)
from bridge.index.reading.trust import Trust
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import IndexCorrupt, StorageFailure, StorageFull
from bridge.kernel.threads import Threads
from bridge.storage.local_disk.local_errors import refuse_exhausted
from bridge.storage.local_disk.mapped_file import MappedFile

LAYOUT = 12
PRESENT, LOWER, UPPER, EXACT = 1, 2, 4, 8
"""Bits of a column's ``flags``: the file has the leaf; a bound is known; both occur in the file."""
_OPEN_FILES = 64
_DAMAGED = (OSError, EOFError, ValueError, pa.ArrowException)
"""Errors that Arrow and JSON raise for damaged bytes."""
_ROWS_AT_ONCE = 4_000_000
_SPARSE = frozenset({"etag", "row_groups"})
"""What some files lack."""


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much of the indexes a machine keeps. The least recently used data is evicted first.

    Attributes:
        disk: bytes of the local copies of all generations.
        memory: bytes of columns that one opened generation keeps in memory.
        cells_from: number of files from which bounds are also kept quantised, as cells.
        fewest_edges: least number of cell edges. With fewer, a value shares its cell with too many
            files.
        retry_after: seconds after which an unreadable column is retried.
        open_files: what all indexes under these limits keep together.
    """

    disk: int = 8 * 1024**3
    memory: int = 1024**3
    cells_from: int = MANY_FILES
    fewest_edges: int = FEWEST_EDGES
    retry_after: float = 5.0
    open_files: OpenFiles = field(default_factory=OpenFiles)


@dataclass(frozen=True, slots=True)
class CachedColumn:
    """One leaf column of one stored type.

    Attributes:
        key: its key in shards, `PhysicalColumn.key`.
    """

    column: PhysicalColumn
    key: str


class Source:
    """The columns of a generation in storage, opened once."""

    def __init__(self, manifest: Manifest, store: IndexStore) -> None:
        self.manifest, self.store = manifest, store
        self._columns: list[ColumnFile] | None = None

    def columns(self) -> list[ColumnFile]:
        """The columns file of each shard. Errors: IndexCorrupt, StorageFailure."""
        if self._columns is None:
            self._columns = [ColumnFile(self.store, s.columns) for s in self.manifest.shards]
        return self._columns


class CachedIndex:
    """An opened local copy. Thread-safe.

    Attributes:
        parts: what gives up its arrays with it: views and opened kinds.
        columns: all columns of the generation, loaded or not.
        owners: distinct sets of owning partitions, as entries store them.
        recipes: distinct digests of how files are read; empty: a file says it itself.
        stored: distinct texts of `FileStatistics.stored`.
        trust: what is believed of the writers of its files. Columns are stored as believed.
    """

    def __init__(
        self,
        source: Source,
        directory: Path,
        files: pa.RecordBatch,
        meta: dict[str, Any],
        limits: CacheLimits,
        mapped: MappedFile,
    ) -> None:
        self.directory = directory
        self._mapped_files: MappedFile | None = mapped
        self.files = files
        self.owners: tuple[str, ...] = tuple(meta["partitions"])
        self.recipes: tuple[str, ...] = tuple(meta["recipes"])
        self.stored: tuple[str, ...] = tuple(meta["stored"])
        self.all_trusted: bool = meta["all_trusted"]
        self.columns = tuple(CachedColumn(parse_key(key), key) for key in meta["columns"])
        self.trust = Trust(meta["writers"], files, meta["shown"])
        self._believed = f"{LAYOUT}-{hashlib.sha256(repr(self.trust.told).encode()).hexdigest()}"
        self.limits = limits
        self._source = source
        self._lock = threading.Lock()
        self._places: dict[str, PackedRange] = {}
        self._mapped: BoundedCache[str, MappedFile] = BoundedCache(
            _OPEN_FILES, capacity=limits.memory, weigh=lambda mapped: mapped.buffer.size
        )  # unmapped when its last array is freed
        self._files: set[str] = set()  # mapped since all were given up: arrays may keep them
        self._kept: dict[str, tuple[int, int]] = {}
        self.parts: weakref.WeakSet[Keeper] = weakref.WeakSet()
        self._slots: list[npt.NDArray[np.int64]] | None = None
        for path in sorted(directory.glob("*.json")):
            if path.name != "meta.json":
                self._places |= read_pack(path, self._believed)

    def keeps(self, part: str, files: int, size: int) -> None:
        """Tells how many files, and bytes of arrays, a part of this index keeps from now on.

        The caller holds no lock that a `release` takes: this or another index may give up all.
        """
        with self._lock:
            self._kept[part] = files, size
            held = list(self._kept.values())
        files, size = (sum(numbers) for numbers in zip(*held, strict=True))
        self.limits.open_files.keeps(self, files, size)

    def release(self) -> None:
        """Gives up all maps and arrays but the list of files. They are made again on request."""
        with self._lock:
            self._mapped.clear()
            self._files.clear()
            self._kept.clear()
        for part in list(self.parts):
            part.release()

    def expect_files(self, ordinals: npt.NDArray[np.int64]) -> None:
        """Starts to read the entries of some files, without waiting. Later calls do nothing."""
        if self._mapped_files is None or not len(ordinals):
            return
        mapped, self._mapped_files = self._mapped_files, None
        for name in ("size", "modified", "partition", "rows"):
            array = self.files.column(name)
            mapped.will_need_items(array.buffers()[1], ordinals * (array.type.bit_width // 8))
        _, starts, texts = self.files.column("path").buffers()
        offsets = np.frombuffer(starts, np.int64, self.files.num_rows + 1)
        # Arrow's take reads the first and the last offset as well.
        ends = np.array([0, len(offsets) - 1])
        mapped.will_need_items(starts, np.concatenate([ordinals, ordinals + 1, ends]) * 8)
        mapped.will_need_items(texts, np.concatenate([offsets[ordinals], offsets[ordinals + 1]]))

    def load(self, column: CachedColumn) -> Loaded:
        """The arrays of a column, fetched from storage if they are not on local disk.

        Errors:
            IndexCorrupt, StorageFailure, StorageFull.
        """
        (found,) = self.load_all([column])
        return found

    def load_all(self, columns: Sequence[CachedColumn]) -> list[Loaded]:
        """The arrays of several columns, fetched and read together. Errors: as `load`."""
        self.fetch(columns)
        keys = [column.key for column in columns]
        found = self._read(keys)
        if found is None:  # evicted by another process
            self.fetch(columns)
            found = self._read(keys)
        if found is None:
            raise StorageFailure(f"{self.directory} was deleted while it was read", "try again")
        return found

    def cells(self, column: CachedColumn) -> QuantisedBounds | None:
        """The quantised bounds of a loaded column; None if it has none."""
        found = self._read([column.key + part for part in (CELLS, EDGES)])
        return None if found is None else read_cells(*found)

    def expect(self, columns: Sequence[CachedColumn]) -> None:
        """Starts to read columns that will be loaded soon, without waiting."""
        self._advised([c.key + part for c in columns for part in ("", CELLS, EDGES)][:_OPEN_FILES])

    def fetch(self, columns: Iterable[CachedColumn]) -> None:
        """Fetches all columns that are not on local disk, together. Errors: as `load`."""
        with self._lock:
            missing = [c for c in columns if c.key not in self._places]
        if not missing:
            return
        step = max(1, _ROWS_AT_ONCE // max(self.files.num_rows, 1))
        with _as_storage(self.directory):
            for i in range(0, len(missing), step):
                pack = self._write(missing[i : i + step])
                with self._lock:
                    self._places |= read_pack(pack, self._believed)
            trim(self.directory, self.limits.disk)

    def scan(self) -> Iterator[Loaded]:
        """Yields all columns in their order on disk. Fetches missing ones first.

        Errors: as `load`.
        """
        self.fetch(self.columns)
        with self._lock:
            places = [self._places[c.key] for c in self.columns if c.key in self._places]
        places.sort(key=lambda place: (place.file, place.offset))
        files = [(file, list(inside)) for file, inside in groupby(places, lambda place: place.file)]
        with _as_storage(self.directory), Threads(1, "index") as ahead:
            reading = [ahead.submit(_whole, file) for file, _ in files[:1]]
            for number, (_, inside) in enumerate(files):
                if number + 1 < len(files):
                    reading.append(ahead.submit(_whole, files[number + 1][0]))
                whole = reading[number].result()
                reading[number] = reading[-1]  # so that only the caller holds the bytes
                for place in inside:
                    try:
                        found = Loaded(place, whole, None)
                    except _DAMAGED as error:
                        self._drop(pack_of(place.file))
                        raise StorageFailure(f"{place.file} is damaged", "try again") from error
                    yield found

    def _read(self, keys: Sequence[str]) -> list[Loaded] | None:
        """The columns with these keys; None if one is not on local disk."""
        held = self._advised(keys)
        if len(held) < len(keys):
            return None
        found = []
        for place, mapped in held:
            try:
                found.append(Loaded(place, mapped.buffer, mapped))
            except _DAMAGED:
                self._drop(pack_of(place.file))
                return None
        return found

    def _drop(self, pack: Path) -> None:
        """Deletes a damaged pack. Its columns are fetched again."""
        with self._lock:
            gone = {p.file for p in self._places.values() if pack_of(p.file) == pack}
            self._places = {k: p for k, p in self._places.items() if p.file not in gone}
            for file in gone:
                self._mapped.pop(file, None)
        for path in pack_files(pack):
            with contextlib.suppress(OSError):
                path.unlink()

    def _advised(self, keys: Sequence[str]) -> list[tuple[PackedRange, MappedFile]]:
        """The ranges of the keys that are on local disk. Starts to read them."""
        with self._lock:
            before = len(self._files)
            held = [(key, found) for key in keys if (found := self._held(key)) is not None]
            for key, (place, mapped) in held:
                head = self._searched(key, place)
                mapped.will_need(place.offset, place.offset + (1 if head else place.length))
            after = len(self._files)
        if after > before:
            self.keeps("maps", after, 0)
        return [found for _, found in held]

    def _searched(self, key: str, place: PackedRange) -> bool:
        """Whether only a few pages will be read: the column ascends or has numeric cells."""
        return not place.is_checked and (place.ascending or key + CELLS in self._places)

    def _held(self, key: str) -> tuple[PackedRange, MappedFile] | None:
        place = self._places.get(key)
        if place is None:
            return None
        mapped = self._mapped.get(place.file)
        if mapped is None:
            try:
                mapped = MappedFile(place.file)
            except (OSError, ValueError) as error:
                refuse_exhausted(error)
                self._places = {k: p for k, p in self._places.items() if p.file != place.file}
                return None
            self._mapped.put(place.file, mapped)
            self._files.add(place.file)
        return place, mapped

    def _shards(self) -> list[tuple[ColumnFile, npt.NDArray[np.int64]]]:
        """Each shard's columns, and the slot of each of its ordinals (-1 if dead)."""
        if self._slots is None:
            shard = self.files.column("shard").to_numpy()
            ordinal = self.files.column("ordinal").to_numpy()
            found = []
            for position, part in enumerate(self._source.manifest.shards):
                slots = np.full(part.num_files, -1, np.int64)
                mine = np.flatnonzero(shard == position)
                slots[ordinal[mine]] = mine
                found.append(slots)
            self._slots = found
        return list(zip(self._source.columns(), self._slots, strict=True))

    def _write(self, columns: list[CachedColumn]) -> Path:
        """Fetches columns from storage and writes them as one pack."""
        count = self.files.num_rows
        keys = [column.key for column in columns]
        parts = [(file.read(keys), slots) for file, slots in self._shards()]
        self.directory.mkdir(mode=0o700, exist_ok=True)  # another process may have evicted it
        with PackWriter(self.directory, self._believed) as pack:
            for column in columns:
                rows = [_part(t[column.key], slots) for t, slots in parts if column.key in t]
                slot, found = np.empty(0, np.int64), no_rows()  # the column is in dead files only
                if rows:
                    slot = np.concatenate([s for s, _ in rows])
                    found = pa.concat_tables([t for _, t in rows])
                found = self.trust.keep_believed(column.column, slot, found)
                arrays, every = _column(column.column.type, slot, found, count)
                pack.add(column.key, arrays, every, count)
                cells = None
                if count >= self.limits.cells_from:
                    cells = _rounded(arrays, self.limits.fewest_edges)
                if cells is not None:
                    pack.add_cells(column.key, cells)
            return pack.finish()


def cache_index(
    manifest: Manifest, store: IndexStore, cache: Path, limits: CacheLimits | None = None
) -> CachedIndex:
    """Opens the local copy of a generation, and creates it first if it is missing.

    Errors:
        IndexCorrupt, StorageFailure, StorageFull.
    """
    directory = cache / manifest.checksum
    source = Source(manifest, store)
    with _as_storage(cache):
        found = _open(directory, source, limits := limits or CacheLimits())
        if found is not None:
            return found
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        evict(cache, directory.name, limits.disk)
        aside = Path(tempfile.mkdtemp(prefix=BUILDING, dir=cache))
        try:
            _write_files(source, aside)
            try:
                aside.rename(directory)
            except OSError:  # another process was faster, or the existing one is damaged
                if _open(directory, source, limits) is None:
                    shutil.rmtree(directory, ignore_errors=True)
                    aside.rename(directory)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    found = _open(directory, source, limits)
    if found is None:
        raise StorageFailure(f"{directory} was deleted while it was opened", "try again")
    return found


def _whole(path: str) -> pa.Buffer:
    return pa.py_buffer(Path(path).read_bytes())


@contextlib.contextmanager
def _as_storage(place: Path) -> Iterator[None]:
    """Turns errors of the local disk into errors that the planner handles."""
    try:
        yield
    except OSError as error:
        refuse_exhausted(error)
        if error.errno == 28:
            raise StorageFull(f"no space left in {place}", "set planner.cache_dir") from error
        raise StorageFailure(f"{place}: {error}", "set planner.cache_dir") from error


def _open(directory: Path, source: Source, limits: CacheLimits) -> CachedIndex | None:
    try:
        meta = unseal_json((directory / "meta.json").read_bytes())
        if meta["layout"] != LAYOUT:
            return None
        for name, size in meta["sizes"].items():
            if (directory / name).stat().st_size != size:
                return None
        mapped = MappedFile(str(directory / "files.arrow"))
        files = pa.ipc.open_file(mapped.buffer).get_batch(0)
        files.validate()
        dense = [files.column(name) for name in files.schema.names if name not in _SPARSE]
        if any(c.null_count for c in dense) or not all(map(is_sound, files.columns)):
            return None
        if _check(files) != meta["check"]:
            return None
        with contextlib.suppress(OSError):
            os.utime(directory / "meta.json")  # for eviction: least recently used first
        opened = CachedIndex(source, directory, files, meta, limits, mapped)
        return opened if opened.trust.told == meta["told"] else None
    except (*_DAMAGED, KeyError, TypeError) as error:
        refuse_exhausted(error)
        return None


def _write_files(source: Source, directory: Path) -> None:
    entries = live_entries(source.manifest, source.store)
    partitions, names = encode_texts(entries.files["partition"])
    recipe, recipes = encode_texts(pc.fill_null(entries.files["recipe"], ""))
    writer, writers = encode_texts(entries.files["writer"])
    stored, layouts = encoded_texts(entries.files["stored"])
    trusted = entries.flags("trusted")
    batch = pa.record_batch(
        {
            "path": entries.paths,
            "size": one_chunk(entries.files["size"]),
            "modified": one_chunk(entries.files["modified"]),
            "etag": one_chunk(entries.files["etag"]),
            "rows": one_chunk(entries.files["rows"]),
            "row_groups": one_chunk(entries.files["row_groups"]),
            "partition": pa.array(partitions, pa.int32()),
            "trusted": pa.array(trusted.astype(np.uint8)),
            "failed": one_chunk(entries.files["problem"]).is_valid().cast(pa.uint8()),
            "shard": pa.array(entries.shard, pa.int32()),
            "ordinal": pa.array(entries.ordinal),
            "recipe": pa.array(recipe, pa.int32()),
            "writer": pa.array(writer, pa.int32()),
            "group_rows": one_chunk(pc.fill_null(entries.files["group_rows"], -1)),
            "stored": pa.array(stored),
        }
    )
    sizes = {"files.arrow": _put(directory / "files.arrow", batch)}
    keys = {key for file in source.columns() for key in file.keys}
    meta = {
        "layout": LAYOUT,
        "generation": source.manifest.generation,
        "partitions": names,
        "recipes": recipes,
        "writers": writers,
        "stored": layouts,
        "shown": (shown := by_writer(writer, entries.files["shown"])),
        "told": Trust(writers, batch, shown).told,
        "columns": sorted(keys),
        "sizes": sizes,
        "all_trusted": bool(trusted.all()),
        "check": _check(batch),
    }
    (directory / "meta.json").write_bytes(seal_json(meta))
    sync(directory / "meta.json")


def _check(files: pa.RecordBatch) -> int:
    """CRC-32 of all numbers. A damaged path is that of no file, so that nothing is known of it."""
    check = zlib.crc32(str(files.schema).encode())
    for column in files.columns:
        if pa.types.is_primitive(column.type):
            check = zlib.crc32(column.to_numpy(), check)
    return check


def _part(rows: pa.Table, slots: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], pa.Table]:
    file = rows["file"].to_numpy()
    if len(file) and (file.min() < 0 or file.max() >= len(slots)):
        raise IndexCorrupt("a shard names a file it does not have", "skipbridge index build")
    slot = slots[file]
    alive = slot >= 0
    return slot[alive], rows if alive.all() else rows.filter(pa.array(alive))


def _column(
    stored: PhysicalType, slot: npt.NDArray[np.int64], rows: pa.Table, count: int
) -> tuple[dict[str, pa.Array], int]:
    flags = np.zeros(count, np.uint8)
    mine = np.full(len(slot), PRESENT, np.uint8)
    arrays: dict[str, Any] = {}
    if stored.holds != "none":
        low = decode(stored, one_chunk(rows["lower"]), upper=False)
        high = decode(stored, one_chunk(rows["upper"]), upper=True)
        # A lower bound above the upper one is corrupt: drop both (rule 13).
        sane = ~(low.known & high.known & _greater(stored.holds, low.values, high.values))
        low_known, high_known = low.known & sane, high.known & sane
        mine |= np.where(low_known, LOWER, 0).astype(np.uint8)
        mine |= np.where(high_known, UPPER, 0).astype(np.uint8)
        if stored.holds == "float":  # if one bound is NaN, the other is doubtful, too
            low_known = high_known = low_known & high_known
        exact = np.asarray(rows["exact"].to_numpy(), np.bool_) & low_known & high_known
        for rounded in (low.rounded, high.rounded):
            exact = exact if rounded is None else exact & ~rounded
        mine |= np.where(exact, EXACT, 0).astype(np.uint8)
        arrays["lower"] = _spread(stored.holds, low.values, low_known, slot, count, lower=True)
        arrays["upper"] = _spread(stored.holds, high.values, high_known, slot, count, lower=False)
    flags[slot] = mine
    # Other types have no NaN, so a count would be a column of zeros.
    for name in ("nulls", "nans") if stored.is_floating else ("nulls",):
        numbers = np.full(count, -1, np.int64)
        numbers[slot] = pc.fill_null(one_chunk(rows[name]), -1).to_numpy()
        arrays[name] = pa.array(numbers)
    arrays["flags"] = pa.array(flags)
    every = int(np.bitwise_and.reduce(flags)) if count else 0
    return arrays, every


def _rounded(arrays: Mapping[str, pa.Array], fewest: int) -> QuantisedBounds | None:
    """Quantised bounds for columns without binary search: text and numbers that do not ascend."""
    if "lower" not in arrays or ascend(arrays):
        return None
    lower, upper = arrays["lower"], arrays["upper"]
    if pa.types.is_integer(lower.type) or pa.types.is_floating(lower.type):
        lower, upper = lower.to_numpy(), upper.to_numpy()
    return QuantisedBounds.of(lower, upper, fewest=fewest)


def _greater(holds: str, left: Any, right: Any) -> npt.NDArray[np.bool_]:
    if holds in ("int", "float"):
        return np.asarray(left > right, np.bool_)
    found = pc.fill_null(pc.greater(left, right), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _spread(
    holds: str,
    values: Any,
    known: npt.NDArray[np.bool_],
    slot: npt.NDArray[np.int64],
    count: int,
    *,
    lower: bool,
) -> pa.Array:
    """Bounds by file. Unknown bounds are infinite or null."""
    if holds in ("int", "float"):
        unknown: float = (INT_MIN if lower else INT_MAX) if holds == "int" else np.inf
        if holds == "float" and lower:
            unknown = -np.inf
        spread = np.full(count, unknown, np.int64 if holds == "int" else np.float64)
        spread[slot[known]] = values[known]
        return pa.array(spread)
    where = np.full(count, -1, np.int64)
    where[slot[known]] = np.flatnonzero(known)
    return values.take(pa.array(where, mask=where < 0))


def _put(path: Path, batch: pa.RecordBatch) -> int:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    sync(path)
    return path.stat().st_size
