"""Bytes that columns take in the files of a generation: for people, not for planning."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from bridge.formats.physical_column import parse_key
from bridge.index.generations.entries import live_entries
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.store import IndexStore
from bridge.index.reading.column_file import ColumnFile

Int64 = npt.NDArray[np.int64]


def column_bytes(
    manifest: Manifest, store: IndexStore, columns: Collection[str] | None = None
) -> Mapping[str, Int64]:
    """By column and by member (``a.b``), in lower case: bytes in each live file, by path.

    Where an index keeps none, as of ORC, or of a column that a file lacks, it is -1. Numbers of
    formats without columns of their own (CSV, JSON) are those of the values in memory.

    Args:
        columns: whose bytes, and those of their members, are read; None: of all.

    Errors:
        IndexCorrupt, StorageFailure.
    """
    entries = live_entries(manifest, store)
    wanted = None if columns is None else {name.lower() for name in columns}
    found: dict[str, Int64] = {}
    for position, shard in enumerate(manifest.shards):
        held = np.flatnonzero(entries.shard == position)
        place = np.full(shard.num_files, -1, np.int64)
        place[entries.ordinal[held]] = held
        file = ColumnFile(store, shard.columns)
        keys = [k for k in file.keys if wanted is None or parse_key(k).path[0].lower() in wanted]
        for key, rows in file.read(keys).items():
            path = parse_key(key).path
            at = place[rows["file"].to_numpy()]
            alive = at >= 0
            at, size = at[alive], rows["size"].to_numpy()[alive]
            for depth in range(1, len(path) + 1):
                name = ".".join(path[:depth]).lower()
                sums = found.setdefault(name, np.zeros(len(entries), np.int64))
                np.add.at(sums, at, size)
    return {name: np.where(sums > 0, sums, -1) for name, sums in found.items()}
