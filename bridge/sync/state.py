"""The state of a table's last sync, kept in a file beside the index.

The state lets a run see that nothing has changed without fetching a partition. It only records what
was true and is never a reason to write. If one of its digests differs, or if it is old or of
another version, the run compares everything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bridge.table.directory.discovered import Discovered

EXTRACTOR_PROPERTY = "skipbridge.sync.extractor"
STATE_PROPERTY = "skipbridge.sync.state"
"""A token by which the state of the last sync is found (`bridge.sync.state_file`)."""
MISSING_PROPERTY = "skipbridge.sync.missing_since"
"""Of a partition: when a run first found no data there, milliseconds since the epoch."""
_VERSION = 1
_PARTS = 256
_ODD = 0x9E3779B97F4A7C15


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
        compared: time of the last full comparison, seconds since the epoch; 0: not trusted.
        elsewhere: names of the partitions that do not lie in their name's directory.
        dropped: recent drops: seconds since the epoch, and their number; -1: not known.
        left_out: columns of the files whose type Hive does not have.
        unreadable: files whose schema could not be read, and the reason.
        parts: what the directories hold, in parts (`Parts`).
        indexed: digest of the storage that the index was last refreshed for, once all files had
            settled.
    """

    storage: str
    names: str
    table: str
    reading: str
    newest: int
    partitions: int
    compared: int
    version: int = _VERSION
    elsewhere: list[str] = field(default_factory=list)
    dropped: list[tuple[int, int]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    parts: str = ""
    indexed: str = ""

    def to_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    def unreadable_in(self, directories: Discovered) -> set[str]:
        """Those of the unreadable files that lie in the directories, if they are still there."""
        if not self.unreadable:
            return set()
        places = {directories.uri(path) for path in directories.paths}
        return {uri for uri, _ in self.unreadable if uri.rpartition("/")[0] in places}

    def but_for_time(self) -> SyncState:
        """The same state without the time of comparison."""
        return replace(self, compared=0)


def parse_state(text: str | None) -> SyncState | None:
    """Parses the text; None if it is missing, broken or of another version."""
    if not text:
        return None
    try:
        found = SyncState(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
    try:
        dropped = [(int(at), int(number)) for at, number in found.dropped]
        unreadable = [(str(file), str(reason)) for file, reason in found.unreadable]
    except (ValueError, TypeError):
        return None
    whole = all(isinstance(n, int) for n in (found.newest, found.partitions, found.compared))
    whole = whole and isinstance(found.parts, str)
    for names in (found.elsewhere, found.left_out):
        whole = whole and isinstance(names, list) and all(isinstance(n, str) for n in names)
    whole = whole and found.version == _VERSION
    return replace(found, dropped=dropped, unreadable=unreadable) if whole else None


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


class Parts:
    """What directories hold, in parts: tells which of them may have changed without any new time.

    Files that are copied with their old times change the number of files and bytes alone. The text
    has one number for each part of the directories, a sum over them, so directories that were added
    may be taken out of it again.
    """

    def __init__(self, directories: Discovered) -> None:
        rows = directories.rows
        paths = directories.paths
        hashes = np.fromiter(
            (zlib.crc32(p.encode("utf-8", "surrogateescape")) for p in paths),
            np.uint64,
            len(paths),
        )
        self._part = hashes % np.uint64(_PARTS)
        for name in ("files", "bytes", "newest"):
            hashes = (hashes ^ rows[name].to_numpy().astype(np.uint64)) * np.uint64(_ODD)
            hashes ^= hashes >> np.uint64(29)
        self._hashes = hashes & np.uint64(0xFFFFFF)

    def text(self) -> str:
        return base64.b64encode(self._sums(self._hashes)).decode()

    def find_changed(self, text: str, added: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The directories of parts that changed by more than what was added.

        Args:
            text: of the last run.
            added: which directories the last run did not have.
        """
        now = base64.b64encode(self._sums(np.where(added, np.uint64(0), self._hashes)))
        old = text.encode()
        if len(old) != len(now):
            return np.ones(len(self._part), np.bool_)
        step = 4  # characters, of 3 bytes
        differs = np.array(
            [now[i : i + step] != old[i : i + step] for i in range(0, len(now), step)]
        )
        return differs[self._part.astype(np.int64)]

    def _sums(self, hashes: npt.NDArray[np.uint64]) -> bytes:
        sums = np.zeros(_PARTS, np.uint64)
        np.add.at(sums, self._part.astype(np.int64), hashes)
        return b"".join(int(s & np.uint64(0xFFFFFF)).to_bytes(3, "big") for s in sums)
