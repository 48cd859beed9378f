"""The local form of a generation: Arrow IPC files that a planner maps into memory.

::

    <cache>/<checksum of the manifest>/meta.json     what there is, sizes of all files
    <cache>/<checksum>/files.arrow                   live files, sorted by path
    <cache>/<checksum>/c0.arrow …                    one leaf column of one stored type each

Arrays of a column have one slot a live file, in the same order. The directory is written aside and
renamed, so a reader sees all of it or nothing; it is private to the user and bounded in bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.errors import IndexCorrupt, StorageFailure, StorageFull
from bridge.index.entries import Entries, live_entries, one_chunk
from bridge.index.manifest import Manifest
from bridge.index.shard import column_starts, key_texts, read_columns
from bridge.index.store import IndexStore
from bridge.index.stored import INT_MAX, INT_MIN, StoredColumn, StoredType, decode, parse_key

LAYOUT = 1
PRESENT, LOWER, UPPER, EXACT = 1, 2, 4, 8
"""Bits of a column's ``flags``: the file has the leaf; a bound is known; both occur in the file."""
MAX_CACHE = 8 * 1024**3


@dataclass(frozen=True, slots=True)
class CompiledColumn:
    """One leaf column of one stored type: where its arrays lie and what all of its flags share.

    Attributes:
        every: bits set in all flags.
    """

    column: StoredColumn
    file: str
    every: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """An opened local form."""

    directory: Path
    files: pa.RecordBatch
    partition_names: tuple[str, ...]
    columns: tuple[CompiledColumn, ...]
    all_trusted: bool

    def load(self, column: CompiledColumn) -> pa.RecordBatch:
        """Arrays of a column: lower, upper, flags (uint8), nulls, nans (-1 unknown), size."""
        return _map(self.directory / column.file)


def compile_index(manifest: Manifest, store: IndexStore, cache: Path) -> Compiled:
    """Opens the local form of a generation; builds it first if there is none.

    Errors:
        IndexCorrupt, StorageFailure, StorageFull.
    """
    directory = cache / manifest.checksum
    try:
        found = _open(directory)
        if found is not None:
            return found
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        _evict(cache, directory.name)
        aside = Path(tempfile.mkdtemp(prefix=".building-", dir=cache))
        try:
            _write(manifest, store, aside)
            try:
                aside.rename(directory)
            except OSError:  # another process was first, or a damaged one lies there
                if _open(directory) is None:
                    shutil.rmtree(directory, ignore_errors=True)
                    aside.rename(directory)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        if error.errno == 28:
            raise StorageFull(f"no space left in {cache}", "set planner.cache_dir") from error
        raise StorageFailure(f"{cache}: {error}", "set planner.cache_dir") from error
    found = _open(directory)
    if found is None:
        raise StorageFailure(f"{directory} vanished while it was opened", "try again")
    return found


def _open(directory: Path) -> Compiled | None:
    try:
        meta = json.loads((directory / "meta.json").read_bytes())
        if meta["layout"] != LAYOUT:
            return None
        for name, size in meta["sizes"].items():
            if (directory / name).stat().st_size != size:
                return None
        columns = tuple(
            CompiledColumn(parse_key(key), name, every) for key, name, every in meta["columns"]
        )
        files = _map(directory / "files.arrow")
        with contextlib.suppress(OSError):
            os.utime(directory / "meta.json")  # for eviction: least recently used first
        return Compiled(directory, files, tuple(meta["partitions"]), columns, meta["all_trusted"])
    except (FileNotFoundError, ValueError, KeyError, pa.ArrowException):
        return None


def _map(path: Path) -> pa.RecordBatch:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).get_batch(0)


def _evict(cache: Path, keep: str) -> None:
    held: list[tuple[float, int, Path]] = []
    for path in cache.iterdir():
        meta = path / "meta.json"
        with contextlib.suppress(OSError):
            if path.name != keep and meta.exists():
                size = sum(entry.stat().st_size for entry in path.iterdir())
                held.append((meta.stat().st_mtime, size, path))
    total = sum(size for _, size, _ in held)
    for _, size, path in sorted(held):
        if total <= MAX_CACHE:
            break
        shutil.rmtree(path, ignore_errors=True)  # maps held by other processes stay valid
        total -= size


def _write(manifest: Manifest, store: IndexStore, directory: Path) -> None:
    entries = live_entries(manifest, store)
    partitions, names = _partitions(entries)
    trusted = entries.flags("trusted")
    count = len(entries)
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
        }
    )
    sizes = {"files.arrow": _put(directory / "files.arrow", batch)}
    shards = []
    for position, shard in enumerate(manifest.shards):
        slots = np.full(shard.num_files, -1, np.int64)
        mine = np.flatnonzero(entries.shard == position)
        slots[entries.ordinal[mine]] = mine
        rows = read_columns(store.read_blob(shard.columns))
        starts = column_starts(rows)
        edges = {k: (starts[i], starts[i + 1]) for i, k in enumerate(key_texts(rows))}
        shards.append((rows, edges, slots))
    columns = []
    for number, key in enumerate(sorted({k for _, edges, _ in shards for k in edges})):
        stored = parse_key(key).type
        parts = [
            _part(rows.slice(edges[key][0], edges[key][1] - edges[key][0]), slots)
            for rows, edges, slots in shards
            if key in edges
        ]
        slot = np.concatenate([s for s, _ in parts])
        if not len(slot):
            continue
        column, every = _column(stored, slot, pa.concat_tables([t for _, t in parts]), count)
        name = f"c{number}.arrow"
        sizes[name] = _put(directory / name, column)
        columns.append([key, name, every])
    meta = {
        "layout": LAYOUT,
        "generation": manifest.generation,
        "partitions": names,
        "columns": columns,
        "sizes": sizes,
        "all_trusted": bool(trusted.all()),
    }
    (directory / "meta.json").write_text(json.dumps(meta))


def _partitions(entries: Entries) -> tuple[npt.NDArray[np.int32], list[str]]:
    coded = pc.dictionary_encode(one_chunk(entries.files["partition"]))
    if isinstance(coded, pa.ChunkedArray):
        coded = one_chunk(coded)
    return coded.indices.to_numpy().astype(np.int32), coded.dictionary.to_pylist()


def _part(rows: pa.Table, slots: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], pa.Table]:
    file = rows["file"].to_numpy()
    if len(file) and (file.min() < 0 or file.max() >= len(slots)):
        raise IndexCorrupt("a shard names a file it does not have", "skipbridge index build")
    slot = slots[file]
    alive = slot >= 0
    return slot[alive], rows if alive.all() else rows.filter(pa.array(alive))


def _column(
    stored: StoredType, slot: npt.NDArray[np.int64], rows: pa.Table, count: int
) -> tuple[pa.RecordBatch, int]:
    flags = np.zeros(count, np.uint8)
    mine = np.full(len(slot), PRESENT, np.uint8)
    arrays: dict[str, Any] = {}
    if stored.holds != "none":
        low = decode(stored, one_chunk(rows["lower"]), upper=False)
        high = decode(stored, one_chunk(rows["upper"]), upper=True)
        # bounds the wrong way round are corrupt: neither is one (rule 13)
        sane = ~(low.known & high.known & _greater(stored.holds, low.values, high.values))
        low_known, high_known = low.known & sane, high.known & sane
        mine |= np.where(low_known, LOWER, 0).astype(np.uint8)
        mine |= np.where(high_known, UPPER, 0).astype(np.uint8)
        if stored.holds == "float":  # a NaN there casts doubt on the other as well
            low_known = high_known = low_known & high_known
        exact = np.asarray(rows["exact"].to_numpy(), np.bool_) & low_known & high_known
        for rounded in (low.rounded, high.rounded):
            exact = exact if rounded is None else exact & ~rounded
        mine |= np.where(exact, EXACT, 0).astype(np.uint8)
        arrays["lower"] = _spread(stored.holds, low.values, low_known, slot, count, lower=True)
        arrays["upper"] = _spread(stored.holds, high.values, high_known, slot, count, lower=False)
    flags[slot] = mine
    for name in ("nulls", "nans"):
        numbers = np.full(count, -1, np.int64)
        numbers[slot] = pc.fill_null(one_chunk(rows[name]), -1).to_numpy()
        arrays[name] = pa.array(numbers)
    size = np.zeros(count, np.int64)
    size[slot] = rows["size"].to_numpy()
    arrays["size"] = pa.array(size)
    arrays["flags"] = pa.array(flags)
    every = int(np.bitwise_and.reduce(flags)) if count else 0
    return pa.record_batch(arrays), every


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
    """Bounds by file; unknown ones infinite, or null."""
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
    return path.stat().st_size
