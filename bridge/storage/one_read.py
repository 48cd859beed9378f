"""Reads each of some files once, however many readers ask for parts of it.

For a command that passes over the same files several times in one process: headers, indexes, views.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, cast

from bridge.errors import FileUnreadable
from bridge.storage.port import FileStat, FileTable, Range, Storage

LARGEST = 64 << 20
"""Larger files are not kept: readers ask for parts of them."""
MEMORY = 512 << 20
"""Bytes kept at most. The file that was not used for longest makes room."""


class OneRead:
    """A storage that keeps the bytes of the given files, and the state that they are of.

    The law of `Storage.read_state` holds: kept bytes come with the state that was told with them.
    """

    def __init__(self, storage: Storage, files: FileTable, memory: int = MEMORY) -> None:
        self._storage, self._memory = storage, memory
        self._sizes = dict(zip(files.paths.to_pylist(), files.sizes.tolist(), strict=True))
        self._held: OrderedDict[str, tuple[bytes, FileStat | None]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._reading: dict[str, threading.Lock] = {}

    @staticmethod
    def over(storage: Storage, files: FileTable) -> Storage:
        """The storage, which reads these files once."""
        return cast(Storage, OneRead(storage, files))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def read(self, uri: str) -> bytes:
        kept = self._kept(uri)
        return self._storage.read(uri) if kept is None else kept[0]

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        kept = self._kept(uri)
        return self._storage.read_ranges(uri, ranges) if kept is None else _parts(uri, kept, ranges)

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        kept = self._kept(uri)
        if kept is None:
            return self._storage.read_state(uri, ranges)
        return _parts(uri, kept, ranges), kept[1]

    def _kept(self, uri: str) -> tuple[bytes, FileStat | None] | None:
        size = self._sizes.get(uri)
        if size is None or size > LARGEST:
            return None
        with self._lock:
            found = self._held.get(uri)
            if found is not None:
                self._held.move_to_end(uri)
                return found
            reading = self._reading.setdefault(uri, threading.Lock())
        with reading:
            with self._lock:
                found = self._held.get(uri)
            if found is not None:
                return found
            (content,), state = self._storage.read_state(uri, [(0, size)])
            self._keep(uri, (content, state))
            return content, state

    def _keep(self, uri: str, kept: tuple[bytes, FileStat | None]) -> None:
        with self._lock:
            self._held[uri] = kept
            self._bytes += len(kept[0])
            while self._bytes > self._memory and len(self._held) > 1:
                _, (content, _) = self._held.popitem(last=False)
                self._bytes -= len(content)


def _parts(uri: str, kept: tuple[bytes, FileStat | None], ranges: Sequence[Range]) -> list[bytes]:
    content = kept[0]
    for start, end in ranges:
        if not 0 <= start <= end <= len(content):
            raise FileUnreadable(
                f"{uri} has {len(content)} bytes, and {start} to {end} were asked for", "try again"
            )
    return [content[start:end] for start, end in ranges]
