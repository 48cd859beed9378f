"""What all open indexes of a process keep: a bound of files (descriptors and maps) and of bytes.

The law: giving up loses nothing. What is asked for again is mapped again, and arrays in use keep
their map until they are freed.
"""

from __future__ import annotations

import resource
import threading
import weakref
from collections import OrderedDict
from typing import Protocol

_SHARE = 4
"""Connections and reads of storage need descriptors beside the indexes."""
_MOST_MAPS = 15_000
"""A quarter of the maps that Linux gives a process (vm.max_map_count)."""


def share_of_descriptors() -> int:
    """A quarter of the descriptors that this process may open, at most `_MOST_MAPS`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_MAPS if soft == resource.RLIM_INFINITY else min(_MOST_MAPS, soft // _SHARE)


class Keeper(Protocol):
    """An open index."""

    def release(self) -> None:
        """Gives up all that can be mapped or computed again."""


class OpenFiles:
    """The open indexes, the least recently used first; for all threads.

    Only the index that was used last may exceed a bound by itself.

    Args:
        most: files of all indexes together; 0: `share_of_descriptors`.
        most_bytes: bytes of columns of all indexes together.
    """

    def __init__(self, most: int = 0, most_bytes: int = 1024**3) -> None:
        self.most, self.most_bytes = most or share_of_descriptors(), most_bytes
        self._kept: OrderedDict[int, tuple[weakref.ref[Keeper], int, int]] = OrderedDict()
        self._files = self._bytes = 0
        # Re-entrant: garbage collection may end an index inside of any of these methods.
        self._lock = threading.RLock()

    @property
    def kept(self) -> tuple[int, int]:
        """Files and bytes of all indexes."""
        return self._files, self._bytes

    def keeps(self, index: Keeper, files: int, size: int) -> None:
        """An index now keeps so many files and bytes; others give up theirs if that is too much.

        The caller holds no lock that `Keeper.release` takes.
        """
        key = id(index)
        released: list[Keeper] = []
        with self._lock:
            held = self._take(key)
            reference = held[0] if held else weakref.ref(index, lambda r: self._gone(key, r))
            self._kept[key] = (reference, files, size)
            self._files, self._bytes = self._files + files, self._bytes + size
            while len(self._kept) > 1 and (
                self._files > self.most or self._bytes > self.most_bytes
            ):
                oldest = self._take(next(iter(self._kept)))
                each = None if oldest is None else oldest[0]()
                if each is not None:
                    released.append(each)
        for each in released:
            each.release()

    def used(self, index: Keeper) -> None:
        """An index is in use: others go before it."""
        with self._lock:
            if id(index) in self._kept:
                self._kept.move_to_end(id(index))

    def _take(self, key: int) -> tuple[weakref.ref[Keeper], int, int] | None:
        """Removes an index from the books. Needs the lock."""
        found = self._kept.pop(key, None)
        if found is not None:
            self._files, self._bytes = self._files - found[1], self._bytes - found[2]
        return found

    def _gone(self, key: int, reference: weakref.ref[Keeper]) -> None:
        with self._lock:
            if key in self._kept and self._kept[key][0] is reference:  # else another's by now
                self._take(key)
