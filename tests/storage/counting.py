"""A storage that counts what is read through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridge.storage.port import Range, Storage


class Counting:
    """Requests and bytes by file name; everything goes to a real storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.reads: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def read(self, uri: str) -> bytes:
        found = self._storage.read(uri)
        self.reads.append((uri, len(found)))
        return found

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        found = self._storage.read_ranges(uri, ranges)
        self.reads += [(uri, len(part)) for part in found]
        return found

    def of(self, part: str) -> list[int]:
        """Bytes of each read of files whose name holds ``part``; the count starts anew."""
        found = [size for uri, size in self.reads if part in uri]
        self.reads.clear()
        return found
