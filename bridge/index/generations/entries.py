"""The live entries of a generation: the files of all shards except deleted ones, by path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.index.building.evidence import confirmed_row_counts
from bridge.index.generations.identity import lower_bound
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.shard import FILES, read_files, tombstones_from_bytes
from bridge.index.generations.store import IndexStore
from bridge.storage.uri import join, parent, relative


@dataclass(frozen=True, slots=True)
class Entries:
    """Live entries, sorted by URI.

    Attributes:
        files: `FILES`, with ``path`` as canonical URI.
        shard: position of each entry's shard in the manifest.
        ordinal: its row in the shard.
    """

    files: pa.Table
    shard: npt.NDArray[np.int32]
    ordinal: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ordinal)

    @property
    def paths(self) -> pa.Array:
        return one_chunk(self.files["path"])

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        return np.asarray(self.files[name].to_numpy(), np.int64)

    def flags(self, name: str) -> npt.NDArray[np.bool_]:
        return np.asarray(self.files[name].to_numpy(), np.bool_)

    def count_shown(self) -> dict[str, int]:
        """What `bridge.index.building.evidence.confirmed_row_counts` says of their writers."""
        return confirmed_row_counts(self.files)


NONE = Entries(FILES.empty_table(), np.empty(0, np.int32), np.empty(0, np.int64))


def live_entries(manifest: Manifest, store: IndexStore) -> Entries:
    """Reads the file entries of all shards. Errors: IndexCorrupt, StorageFailure."""
    dead = dead_ordinals(manifest, store)
    tables: list[pa.Table] = []
    shards: list[npt.NDArray[np.int32]] = []
    ordinals: list[npt.NDArray[np.int64]] = []
    for position, shard in enumerate(manifest.shards):
        files = read_files(store.read_blob(shard.files))
        alive = np.ones(files.num_rows, np.bool_)
        alive[dead.get(shard.id, [])] = False
        kept = np.flatnonzero(alive).astype(np.int64)
        tables.append(files if alive.all() else files.take(pa.array(kept)))
        shards.append(np.full(len(kept), position, np.int32))
        ordinals.append(kept)
    if not tables:
        return NONE
    files = pa.concat_tables(tables).combine_chunks()
    if not files.num_rows:
        return NONE
    uris = absolute(one_chunk(files["path"]), manifest.location)
    files = files.set_column(0, FILES.field("path"), uris)
    shard_of, ordinal = np.concatenate(shards), np.concatenate(ordinals)
    if len(tables) > 1 or not _sorted(uris):
        order = pc.sort_indices(uris)
        files = files.take(order).combine_chunks()
        shard_of, ordinal = shard_of[order.to_numpy()], ordinal[order.to_numpy()]
    return Entries(files, shard_of, ordinal)


def known_owners(entries: Entries, paths: pa.Array) -> list[str]:
    """Owners of the entry of each path, or of a neighbour in its directory; empty: not known.

    A location may belong to more partitions than its path names (correctness 28).
    """
    known, owners, found = entries.paths, entries.files["partition"], []
    for path in paths.to_pylist():
        at = lower_bound(known, path)
        near = [i for i in (at, at - 1) if 0 <= i < len(known)]
        same = [i for i in near if parent(known[i].as_py()) == parent(path)]
        found.append(owners[same[0]].as_py() if same else "")
    return found


def dead_ordinals(manifest: Manifest, store: IndexStore) -> dict[str, list[int]]:
    """Ordinals deleted by tombstones, by shard."""
    if manifest.tombstones is None:
        return {}
    return tombstones_from_bytes(store.read_blob(manifest.tombstones))


def absolute(paths: pa.Array, location: str) -> pa.Array:
    """URIs of paths that are relative to the table's root or already URIs."""
    root = join(location, "")
    joined = pc.binary_join_element_wise(
        pa.scalar(root, pa.large_string()), paths, pa.scalar("", pa.large_string())
    )
    foreign = pc.match_substring(paths, "://")
    if not pc.any(foreign).as_py():
        return joined
    # A name may contain "://", too: only a path that starts like a URI was stored as one.
    is_uri = pc.match_substring_regex(paths, "^[a-z0-9]+://")
    return pc.if_else(is_uri, paths, joined)


def relative_to(uri: str, location: str) -> str:
    """The path as shards store it: relative to the root, unless it would look like a URI."""
    inner = relative(location, uri)
    return uri if inner is None or "://" in inner else inner


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def encoded_texts(texts: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Texts that a dictionary has, as places in the list of those used; -1 where one is missing."""
    found = one_chunk(texts)
    places = pc.fill_null(found.indices, -1).to_numpy(zero_copy_only=False)
    used, compact = np.unique(places, return_inverse=True)
    words = used[used >= 0]
    found = found.dictionary.take(pa.array(words)).to_pylist()
    return (compact - (len(used) - len(words))).astype(np.int32), found


def encode_texts(texts: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """Texts as places in a list of distinct ones; a missing text is one of them."""
    found = pc.dictionary_encode(one_chunk(texts), null_encoding="encode")
    if isinstance(found, pa.ChunkedArray):
        found = one_chunk(found)
    return found.indices.to_numpy().astype(np.int32), found.dictionary.to_pylist()


def _sorted(paths: pa.Array) -> bool:
    return bool(pc.all(pc.less(paths[:-1], paths[1:])).as_py())
