"""Reads each of some files once, however many readers ask for parts of it.

For passes that several consumers share: headers, indexes, views. A small file is read whole and
kept in memory. Of a large file in a remote store, the parts that were asked for are kept in a
temporary file.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import FileUnreadable
from bridge.storage.port import FileStat, FileTable, Range, Storage

LARGEST = 64 << 20
"""Larger files are not kept in memory. Local ones are read again: this machine caches them."""
MEMORY = 512 << 20
"""Bytes kept at most. The file that was not used for longest makes room."""


class OneRead:
    """A storage that keeps the bytes of the given files, and the state that they are of.

    The law of `Storage.read_state` holds: kept bytes come with the state that was told with them.

    Args:
        sizes: of the files, by URI.
    """

    def __init__(self, storage: Storage, sizes: Mapping[str, int], memory: int = MEMORY) -> None:
        self._storage, self._sizes = storage, sizes
        self._held: BoundedCache[str, tuple[bytes, FileStat | None]] = BoundedCache(
            capacity=memory, weigh=lambda kept: len(kept[0])
        )
        self._large: dict[str, _Large] = {}
        self._lock = threading.Lock()

    @staticmethod
    def over(storage: Storage, files: FileTable) -> Storage:
        """The storage, which reads these files once."""
        sizes = dict(zip(files.paths.to_pylist(), files.sizes.tolist(), strict=True))
        return cast(Storage, OneRead(storage, sizes))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def read(self, uri: str) -> bytes:
        kept = self._kept(uri)
        return self._storage.read(uri) if kept is None else kept[0]

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        return self.read_state(uri, ranges)[0]

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        kept = self._kept(uri)
        if kept is not None:
            return _parts(uri, kept, ranges), kept[1]
        if uri in self._sizes and self._storage.is_remote(uri):
            with self._lock:
                large = self._large.setdefault(uri, _Large(self._storage, uri))
            return large.read(ranges)
        return self._storage.read_state(uri, ranges)

    def forget(self, uri: str) -> None:
        """Frees what is kept of a file that nobody will ask for again."""
        self._held.pop(uri)
        with self._lock:
            self._large.pop(uri, None)

    def _kept(self, uri: str) -> tuple[bytes, FileStat | None] | None:
        size = self._sizes.get(uri)
        if size is None or size > LARGEST:
            return None
        return self._held.load(uri, lambda: self._whole(uri, size))

    def _whole(self, uri: str, size: int) -> tuple[bytes, FileStat | None]:
        (content,), state = self._storage.read_state(uri, [(0, size)])
        return content, state


class _Large:
    """The parts of one file that were read, in a temporary file without a name."""

    def __init__(self, storage: Storage, uri: str) -> None:
        self._storage, self._uri = storage, uri
        self._lock = threading.Lock()
        self._file = tempfile.TemporaryFile(prefix="skipbridge-")  # noqa: SIM115
        self._have: list[Range] = []
        self._state: FileStat | None = None

    def read(self, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        with self._lock:
            missing = [
                (a, b) for a, b in ranges if not any(c <= a <= b <= d for c, d in self._have)
            ]
            if missing:
                parts, state = self._storage.read_state(self._uri, missing)
                if self._have and state != self._state:  # kept bytes are of another file
                    self._have = []
                    return self._storage.read_state(self._uri, ranges)
                self._state = state
                for (start, _), part in zip(missing, parts, strict=True):
                    os.pwrite(self._file.fileno(), part, start)
                self._have = _joined([*self._have, *missing])
            found = [os.pread(self._file.fileno(), end - start, start) for start, end in ranges]
            return found, self._state


def _joined(ranges: Sequence[Range]) -> list[Range]:
    """The same bytes in as few ranges as there can be, in order.

    >>> _joined([(4, 6), (0, 2), (2, 4), (8, 9)])
    [(0, 6), (8, 9)]
    """
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _parts(uri: str, kept: tuple[bytes, FileStat | None], ranges: Sequence[Range]) -> list[bytes]:
    content = kept[0]
    for start, end in ranges:
        if not 0 <= start <= end <= len(content):
            raise FileUnreadable(
                f"{uri} has {len(content)} bytes, and {start} to {end} were asked for", "try again"
            )
    return [content[start:end] for start, end in ranges]
