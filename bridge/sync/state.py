"""The state of a table's last sync, kept in table properties.

The state lets a run see that nothing has changed without fetching a partition. It only records what
was true and is never a reason to write. If one of its digests differs, or if it is old or of
another version, the run compares everything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from bridge.table.discovered import Discovered

ROOT_PROPERTY = "skipbridge.sync.root"
"""Marks a table that sync maintains, and records its root."""
EXTRACTOR_PROPERTY = "skipbridge.sync.extractor"
STATE_PROPERTY = "skipbridge.sync.state"
INDEXED_PROPERTY = "skipbridge.sync.indexed"
"""Digest of the storage that the index was last refreshed for, once all files had settled."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class SyncState:
    """The last run after which metastore and storage matched.

    Attributes:
        storage: digest of the directories with data.
        names: digest of the registered partitions' names.
        table: digest of columns, keys, location and format classes.
        reading: how directories are read: extractor, recursion.
        newest: time of the newest file, microseconds since the epoch, by the storage's clock.
        partitions: number of registered partitions.
        compared: time of the last full comparison, seconds since the epoch.
    """

    storage: str
    names: str
    table: str
    reading: str
    newest: int
    partitions: int
    compared: int
    version: int = _VERSION

    def to_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    def but_for_time(self) -> SyncState:
        """The same state without the time of comparison."""
        return replace(self, compared=0)


def parse_state(text: str | None) -> SyncState | None:
    """Parses the property; None if it is missing, broken or of another version."""
    if not text:
        return None
    try:
        found = SyncState(**json.loads(text))
    except (ValueError, TypeError):
        return None
    whole = all(isinstance(n, int) for n in (found.newest, found.partitions, found.compared))
    return found if whole and found.version == _VERSION else None


def storage_digest(directories: Discovered) -> str:
    """Changes if a directory is added or removed, or a file in it added, removed or rewritten."""
    digest = hashlib.blake2b(directories.root.encode(), digest_size=16)
    digest.update("\0".join(directories.paths).encode("utf-8", "surrogateescape"))
    for name in ("files", "bytes", "newest"):
        digest.update(directories.rows[name].to_numpy().tobytes())
    return digest.hexdigest()


def text_digest(parts: Iterable[str]) -> str:
    """A digest of texts; their order matters."""
    joined = "\0".join(parts).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(joined, digest_size=16).hexdigest()
