"""Recognises a compaction by path that ended after its new file had been brought over.

A writer compacts a directory that was left: it writes a new file, and deletes those that it
replaces much later. `publish` brought the new file over in between, so its rows are there twice.
Which files a writer replaced, no name tells; their rows do. What was published held exactly the
rows of the old files. So the rows of those that are gone are what was published without those that
remain.

The law: files are taken back only if, with those that were taken back before, they hold just the
rows that are gone, by number and by an order-independent checksum, while the published files still
are as they were. Then the directory holds the same rows without them, whatever the writer meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import cast

from bridge.clustering.checksum import checksum
from bridge.clustering.data_files import can_rewrite, data_files
from bridge.errors import StorageFailure
from bridge.index.replacements import FileState
from bridge.storage.port import Range, Storage, same_state

MOST_BYTES = 64 << 30
"""More is not read to find out."""
_SUBSETS_OF = 12
"""Files of which every choice is tried."""
_THREADS = 2


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows, and the sum of their hashes."""

    count: int = 0
    total: int = 0

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.count + other.count, (self.total + other.total) % 2**64)

    def __sub__(self, other: Rows) -> Rows:
        return Rows(self.count - other.count, (self.total - other.total) % 2**64)


def compacted(
    storage: Storage,
    format: str,
    published: Sequence[FileState],
    remaining: Sequence[FileState],
    taken: Sequence[FileState],
    suspects: Sequence[FileState],
    memory: int = 1 << 30,
) -> list[FileState]:
    """Those of the suspects that hold the rows of the files that are gone; none in doubt.

    Args:
        format: of all files.
        published: files that hold the rows of the remaining files and of those that are gone.
        taken: late files that hold some of the rows that are gone, and have no copy any more.
        suspects: late files, or their copies.
        memory: bytes of rows that are held at once, about.

    Errors:
        StorageFailure.
    """
    every = [*published, *remaining, *taken, *suspects]
    if not can_rewrite(format) or sum(file.size for file in every) > MOST_BYTES:
        return []
    with ThreadPoolExecutor(_THREADS, "skipbridge-compare") as pool:
        try:
            each = memory // _THREADS
            found = list(pool.map(lambda file: _rows(storage, format, file, each), every))
        except _Unknown:
            return []
    there, others = len(published), len(every) - len(suspects)
    gone = _sum(found[:there]) - _sum(found[there:others])
    return _chosen(suspects, found[others:], gone) if gone.count > 0 else []


class _Unknown(Exception):
    """The rows of a file cannot be told."""


class _Unchanged:
    """A storage of one file. Errors: _Unknown: it is not in its recorded state any more."""

    def __init__(self, storage: Storage, file: FileState) -> None:
        self._storage, self._file = storage, file

    def read(self, uri: str) -> bytes:
        return self.read_ranges(uri, [(0, self._file.size)])[0]

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        parts, now = self._storage.read_state(uri, ranges)
        if now is None or not same_state(self._file, now):
            raise _Unknown
        return parts


def _rows(storage: Storage, format: str, file: FileState, memory: int) -> Rows:
    held = cast(Storage, _Unchanged(storage, file))
    try:
        parts = data_files(format).stream(held, file.path, file.size, memory)
        return _sum(Rows(len(part), checksum(part)) for part in parts)
    except (StorageFailure, _Unknown):
        raise
    except Exception as error:  # Arrow has many; one file never stops the others
        raise _Unknown from error


def _sum(parts: Iterable[Rows]) -> Rows:
    return sum(parts, Rows())


def _chosen(files: Sequence[FileState], rows: Sequence[Rows], wanted: Rows) -> list[FileState]:
    """The largest choice of files with just these rows."""
    places = range(len(files))
    sizes = places if len(files) <= _SUBSETS_OF else (0, len(files) - 1)
    for size in sorted((size + 1 for size in sizes), reverse=True):
        for choice in combinations(places, size):
            if _sum(rows[i] for i in choice) == wanted:
                return [files[i] for i in choice]
    return []
