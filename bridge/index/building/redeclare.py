"""Keeps what is known of a file's other columns when the table declares some columns anew.

The law: an entry says of a column what a build under the new declaration would say of it, or
nothing. The caller knows which columns are read as before. Entries that lack columns are told from
whole ones by a mark, so that the next build reads their files again.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.physical_column import parse_key
from bridge.index.generations.compact import write_payloads
from bridge.index.generations.entries import dead_ordinals
from bridge.index.generations.manifest import Blob, Manifest, PayloadBlobs, Shard
from bridge.index.generations.shard import (
    FILES,
    read_columns,
    read_files,
    tombstones_to_bytes,
    write_files,
)
from bridge.index.generations.store import IndexStore, new_id, next_generation
from bridge.index.kinds.definition import KindDefinition
from bridge.index.kinds.payload import read_header, with_bodies
from bridge.index.reading.column_file import put_columns
from bridge.table.recipes import PARTIAL, whole_digest

_STATISTICS = ("lower", "upper", "nulls", "nans")


def redeclare(store: IndexStore, digests: Mapping[str, str], forgotten: Set[str]) -> int:
    """Commits a generation in which entries count under another declaration.

    Args:
        digests: the new digest of each old one; see `bridge.table.recipes`.
        forgotten: columns, in lower case, whose statistics in these entries are discarded.

    Returns:
        How many entries were kept so.

    Errors:
        IndexConflict: other builders committed first, several times in a row.
        IndexCorrupt, StorageFailure, StorageFull.
    """
    kept = 0

    def change(held: Manifest) -> Manifest:
        nonlocal kept
        changed = [_redeclared(store, held, shard, digests, forgotten) for shard in held.shards]
        kept = sum(count for _, count in changed)
        if not kept:
            return held
        return next_generation(
            held,
            held.generation + 1,
            builder=new_id(),
            shards=tuple(shard for shard, _ in changed),
            tombstones=_same_tombstones(store, held, [shard for shard, _ in changed]),
        )

    return 0 if store.update(change) is None else kept


def _redeclared(
    store: IndexStore,
    held: Manifest,
    shard: Shard,
    digests: Mapping[str, str],
    forgotten: Set[str],
) -> tuple[Shard, int]:
    files = read_files(store.read_blob(shard.files))
    before = files["recipe"].to_pylist()
    trusted = np.asarray(files["trusted"].to_numpy(), np.bool_)
    named = [None if one is None else digests.get(whole_digest(one)) for one in before]
    mine = trusted & np.array([one is not None for one in named], np.bool_)
    if not mine.any():
        return shard, 0
    recipes = [
        old if not keep else f"{new}{PARTIAL}"
        for old, new, keep in zip(before, named, mine.tolist(), strict=True)
    ]
    place = FILES.get_field_index("recipe")
    files = files.set_column(place, FILES.field(place), pa.array(recipes, pa.large_string()))
    rows = read_columns(store.read_blob(shard.columns))
    identifier = new_id()
    payloads = {}
    for payload in shard.payloads:
        found = _rows(store, payload)
        if _concerns(held, payload.signature, forgotten):
            number = found["file"].to_numpy()
            gone = (number >= 0) & np.append(mine, False)[np.where(number < 0, -1, number)]
            found = found.filter(pa.array(~gone))
        payloads[payload.signature] = found
    return (
        replace(
            shard,
            id=identifier,
            files=store.put_blob(f"shards/{identifier}-files.shard", write_files(files)),
            columns=put_columns(
                store, f"shards/{identifier}-columns.shard", _forgot(rows, mine, forgotten)
            ),
            payloads=write_payloads(store, identifier, payloads),
        ),
        int(np.count_nonzero(mine)),
    )


def _forgot(rows: pa.Table, mine: npt.NDArray[np.bool_], forgotten: Set[str]) -> pa.Table:
    """The statistics; those of forgotten columns are unknown. A missing row would say NULL."""
    if not rows.num_rows:
        return rows
    column = rows["column"].combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    keys = column.dictionary.to_pylist()
    concerned = np.array([parse_key(key).path[0].lower() in forgotten for key in keys], np.bool_)
    lost = concerned[column.indices.to_numpy()] & mine[rows["file"].to_numpy()]
    mask = pa.array(lost)
    for name in _STATISTICS:
        held = rows[name]
        place = rows.schema.get_field_index(name)
        cleared = pc.if_else(mask, pa.scalar(None, held.type), held)
        rows = rows.set_column(place, rows.schema.field(name), cleared)
    return rows


def _rows(store: IndexStore, payload: PayloadBlobs) -> pa.Table:
    rows = read_header(store.read_blob(payload.header))
    if payload.body is not None:
        rows = with_bodies(rows, store.read_blob(payload.body))
    return rows


def _concerns(held: Manifest, signature: str, forgotten: Set[str]) -> bool:
    """Whether rows may be about a forgotten column: all that might name it."""
    known: dict[str, KindDefinition] = {d.signature: d for d in held.settings.definitions}
    found = known.get(signature)
    if found is None or "*" in found.on:
        return True
    return any(name in found.on.lower() for name in forgotten)


def _same_tombstones(store: IndexStore, held: Manifest, shards: list[Shard]) -> Blob | None:
    """The tombstones under the new ids of the shards."""
    dead = dead_ordinals(held, store)
    if not dead:
        return None
    moved = {
        after.id: dead[before.id]
        for before, after in zip(held.shards, shards, strict=True)
        if before.id in dead
    }
    return store.put_blob(f"shards/{new_id()}-tombstones.shard", tombstones_to_bytes(moved))
