"""Compaction: merges small shards, so that opening a generation stays cheap."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.index.building.sample import SIGNATURE, merge
from bridge.index.generations.manifest import PayloadBlobs, Shard
from bridge.index.generations.shard import COLUMNS, FILES, read_columns, read_files, write_files
from bridge.index.generations.store import IndexStore, new_id
from bridge.index.kinds import registry
from bridge.index.kinds.payload import header_bytes, read_header, with_bodies
from bridge.index.reading.column_file import put_columns

MAX_SHARDS = 16
_DEAD_SHARE = 0.5
_DEAD_FROM = 10_000

Dead = dict[str, list[int]]


def compact(store: IndexStore, shards: list[Shard], dead: Dead) -> tuple[list[Shard], Dead, int]:
    """Merges shards if there are too many or too many dead entries. Drops entirely dead shards.

    Only small shards are merged with each other, so that a refresh of few files does not rewrite
    many entries. All shards are merged if half of the entries are dead.

    Returns:
        The shards, their dead ordinals, and the bytes written.
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
    written = 0
    for group in _alike(merged):
        if len(group) < 2 and not any(s.id in dead for s in group):
            continue
        one = _merge(store, group, dead)
        gathered = {s.id for s in group}
        shards = [*(s for s in shards if s.id not in gathered), one]
        dead = {s: o for s, o in dead.items() if s not in gathered}
        written += sum(blob.size for blob in one.blobs())
    return shards, dead, written


def _alike(shards: list[Shard]) -> list[list[Shard]]:
    """Groups shards by definitions and modes: a shard holds the same of all its files."""
    groups: dict[object, list[Shard]] = {}
    for shard in shards:
        held = frozenset(p.signature for p in shard.payloads if p.signature != SIGNATURE)
        groups.setdefault((held, shard.modes), []).append(shard)
    return list(groups.values())


def _merge(store: IndexStore, shards: list[Shard], dead: Dead) -> Shard:
    files = [FILES.empty_table()]
    columns = [COLUMNS.empty_table()]
    payloads: dict[str, list[pa.Table]] = {}
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
        for payload in shard.payloads:
            payloads.setdefault(payload.signature, []).append(_moved(store, payload, ordinal))
    identifier = new_id()
    whole = pa.concat_tables(files)
    nan = "scan" if all(s.nan == "scan" for s in shards) else "footer"
    gathered = {s: pa.concat_tables(tables) for s, tables in payloads.items()}
    return Shard(
        id=identifier,
        files=store.put_blob(f"shards/{identifier}-files.shard", write_files(whole)),
        columns=put_columns(store, f"shards/{identifier}-columns.shard", pa.concat_tables(columns)),
        num_files=whole.num_rows,
        nan=nan,
        payloads=write_payloads(store, identifier, gathered),
        modes=shards[0].modes,
    )


def _moved(store: IndexStore, payload: PayloadBlobs, ordinal: npt.NDArray[np.int64]) -> pa.Table:
    """A definition's rows of the live files, under their new ordinals."""
    rows = read_header(store.read_blob(payload.header))
    if payload.body is not None:
        rows = with_bodies(rows, store.read_blob(payload.body))
    file = rows["file"].to_numpy()
    moved = np.where(file >= 0, np.append(ordinal, -1)[file], -1)
    rows = rows.set_column(0, rows.schema.field("file"), pa.array(moved))
    return rows.filter(pa.array((moved >= 0) | (file < 0)))


def write_payloads(
    store: IndexStore, shard: str, payloads: Mapping[str, pa.Table]
) -> tuple[PayloadBlobs, ...]:
    """Writes a shard's rows of each definition."""
    kinds = registry.kinds()
    found = []
    for number, (signature, rows) in enumerate(payloads.items()):
        kind = kinds.get(signature.partition("(")[0])
        if signature == SIGNATURE:
            rows = merge(rows)
            if not rows.num_rows:
                continue
        elif kind is not None:
            rows = kind.reduce(rows)
        header, body = header_bytes(rows, "body" in rows.column_names)
        name = f"shards/{shard}-k{number}"
        found.append(
            PayloadBlobs(
                signature,
                store.put_blob(f"{name}.shard", header),
                None if body is None else store.put_blob(f"{name}.body", body),
            )
        )
    return tuple(found)


def write_shard(
    store: IndexStore,
    files: pa.Table,
    columns: pa.Table,
    nan: str,
    payloads: Mapping[str, pa.Table],
    modes: tuple[tuple[str, str], ...],
) -> Shard:
    """Writes the files of a shard under a new id."""
    shard = new_id()
    return Shard(
        id=shard,
        files=store.put_blob(f"shards/{shard}-files.shard", write_files(files)),
        columns=put_columns(store, f"shards/{shard}-columns.shard", columns),
        num_files=files.num_rows,
        nan=nan,
        payloads=write_payloads(store, shard, payloads),
        modes=modes,
    )
