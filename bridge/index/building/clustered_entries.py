"""Entries of clustered files: an index that was changed after clustering covers them as well.

Clustered files are read again under the index's settings where their entries lack a definition. If
one of them cannot be read, the entries that were there stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from bridge.index.building.listed import Listed
from bridge.index.building.sample import SIGNATURE
from bridge.index.generations.entries import live_entries, one_chunk
from bridge.index.generations.manifest import ClusteringState, Manifest, Shard, clustered_files
from bridge.index.generations.replacements import read_replacements
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.definition import IndexSettings
from bridge.kernel.errors import IndexCorrupt
from bridge.storage.port import FileTable

Write = Callable[[Listed], tuple[tuple[Shard, ...], list[tuple[str, str]]]]
"""Reads files and writes their entries; returns the shards, and the files that failed."""


class ClusteredEntries:
    """What one build has read of clustered files.

    Attributes:
        shards: that were written, and that no generation names yet.
    """

    def __init__(self, store: IndexStore) -> None:
        self._store = store
        self._read: dict[tuple[frozenset[str], IndexSettings], tuple[Shard, ...]] = {}

    @property
    def shards(self) -> tuple[Shard, ...]:
        return tuple(shard for shards in self._read.values() for shard in shards)

    def forget(self) -> None:
        """Discards what was read."""
        self._read.clear()

    def cover(
        self,
        manifest: Manifest,
        settings: IndexSettings,
        lacks: Callable[[Shard], bool],
        write: Write,
    ) -> ClusteringState | None:
        """The replacements of a generation, with entries of their new files under some settings.

        Args:
            lacks: whether the files of a shard are to be read again.
        """
        held = manifest.clustering
        if held is None:
            return None
        old = [shard for shard in held.shards if lacks(shard)]
        key = (frozenset(shard.id for shard in old), settings)
        if old and key not in self._read:
            try:
                found, failed = write(self._named(manifest, old))
            except IndexCorrupt:  # a check of the index finds it
                return held
            self._read[key] = () if failed else found
        fresh = self._read.get(key, ())
        kept = tuple(s for s in held.shards if not (fresh and s in old))
        asked = {SIGNATURE, *(definition.signature for definition in settings.definitions)}
        shards = tuple(
            replace(shard, payloads=tuple(p for p in shard.payloads if p.signature in asked))
            for shard in (*kept, *fresh)
        )
        return held if shards == held.shards else replace(held, shards=shards)

    def _named(self, manifest: Manifest, shards: list[Shard]) -> Listed:
        """The files of some shards that the replacements name."""
        entries = live_entries(
            replace(clustered_files(manifest), shards=tuple(shards)), self._store
        )
        named = read_replacements(self._store, manifest)
        paths = set(named.filter(named["new"])["path"].to_pylist())
        keep = np.array([path in paths for path in entries.paths.to_pylist()], np.bool_)
        files = entries.files.filter(pa.array(keep))
        etags = one_chunk(files["etag"])
        uris = one_chunk(files["path"])
        return Listed(
            FileTable(
                uris,
                np.asarray(files["size"].to_numpy(), np.int64),
                np.asarray(files["modified"].to_numpy(), np.int64),
                None if etags.null_count else etags,
            ),
            one_chunk(files["partition"]),
            ("parquet",),
            np.zeros(len(files), np.int32),
        )
