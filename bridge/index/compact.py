"""Compaction: many small shards become one, so that opening a generation stays cheap."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bridge.index.column_file import put_columns
from bridge.index.manifest import Shard
from bridge.index.shard import (
    COLUMNS,
    FILES,
    read_columns,
    read_files,
    write_files,
)
from bridge.index.store import IndexStore, new_id

MAX_SHARDS = 16
_DEAD_SHARE = 0.5
_DEAD_FROM = 10_000

Dead = dict[str, list[int]]


def compact(store: IndexStore, shards: list[Shard], dead: Dead) -> tuple[list[Shard], Dead, int]:
    """Merges shards past the thresholds; entirely dead ones are dropped.

    Small shards are merged among themselves, so that a refresh of few files does not rewrite many;
    all of them only where half of the entries are dead.

    Returns:
        Shards, their dead ordinals, bytes written.
    """
    shards = [s for s in shards if len(dead.get(s.id, ())) < s.num_files]
    dead = {s.id: dead[s.id] for s in shards if dead.get(s.id)}
    total = sum(s.num_files for s in shards)
    gone = sum(len(ordinals) for ordinals in dead.values())
    if gone >= max(_DEAD_FROM, _DEAD_SHARE * total):
        merged = shards
    elif len(shards) > MAX_SHARDS:
        largest = max(s.num_files for s in shards)
        merged = [s for s in shards if s.num_files < max(largest // 4, 2)]
        merged = merged if len(merged) > 1 else shards
    else:
        return shards, dead, 0
    one = _merge(store, merged, dead)
    gathered = {s.id for s in merged}
    kept = [s for s in shards if s.id not in gathered]
    left = {s: o for s, o in dead.items() if s not in gathered}
    return [*kept, one], left, one.files.size + one.columns.size


def _merge(store: IndexStore, shards: list[Shard], dead: Dead) -> Shard:
    files = [FILES.empty_table()]
    columns = [COLUMNS.empty_table()]
    base = 0
    for shard in shards:
        table = read_files(store.read_blob(shard.files))
        alive = np.ones(table.num_rows, np.bool_)
        alive[dead.get(shard.id, [])] = False
        ordinal = np.where(alive, np.cumsum(alive) - 1 + base, -1)
        base += int(np.count_nonzero(alive))
        files.append(table.filter(pa.array(alive)))
        rows = read_columns(store.read_blob(shard.columns))
        moved = ordinal[rows["file"].to_numpy()]
        rows = rows.set_column(1, COLUMNS.field("file"), pa.array(moved))
        columns.append(rows.filter(pa.array(moved >= 0)))
    identifier = new_id()
    whole = pa.concat_tables(files)
    nan = "scan" if all(s.nan == "scan" for s in shards) else "footer"
    return Shard(
        id=identifier,
        files=store.put_blob(f"shards/{identifier}-files.parquet", write_files(whole)),
        columns=put_columns(
            store, f"shards/{identifier}-columns.parquet", pa.concat_tables(columns)
        ),
        num_files=whole.num_rows,
        nan=nan,
    )
