"""File identity: (path, size, mtime, and etag if both sides have one); correctness rule 19."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64 = npt.NDArray[np.int64]

_SECOND = 1_000_000
_COARSE = 2 * _SECOND
_FINE = 50_000
_LONGEST_WAIT = 2.2
_OLD = 86_400 * _SECOND
"""No two clocks differ by so much."""


def grain(modified: Int64) -> Int64:
    """An upper bound of the clock's grain for each mtime, in microseconds.

    An mtime of whole seconds may come from a file system or store that keeps no fractions (FAT: two
    seconds). Otherwise two writes can share a kernel tick, which is at most 10 ms.
    """
    return np.where(modified % _SECOND == 0, _COARSE, _FINE)


def are_settled(
    modified: Int64, started: int, elapsed: float | None = None
) -> npt.NDArray[np.bool_]:
    """Files older than the grain when reading started: a later write changes their mtime.

    Args:
        started: when reading started, in microseconds since the epoch, by the clock of the files.
        elapsed: seconds from the listing that showed the mtimes to then, by one clock of this
            machine; for files whose mtimes another machine's clock made. These are not compared.
    """
    if elapsed is not None:
        return grain(modified) < elapsed * _SECOND
    return modified + grain(modified) < started


def wait_until_settled(modified: Int64, listed: float | None = None) -> None:
    """Waits until files are settled that are worth it.

    Args:
        listed: the time of their listing by `time.monotonic`, where another clock made the mtimes.
            Of those, files of which this machine's clock tells neither that they are new nor that
            they are old stay unsettled where the grain is coarse.
    """
    now = time.time_ns() // 1000
    young = (modified + grain(modified) >= now) & (modified <= now + _SECOND)
    if listed is not None:
        chosen = modified[young | (grain(modified) == _FINE) | (modified < now - _OLD)]
        wait = listed - time.monotonic() + float(grain(chosen).max(initial=0)) / 1e6 + 0.001
    else:
        chosen = modified[young]
        wait = float((chosen + grain(chosen)).max(initial=now) - now) / 1e6 + 0.001
    if len(chosen) and wait > 0:
        time.sleep(min(wait, _LONGEST_WAIT))


def find(paths: pa.Array, wanted: pa.Array) -> Int64:
    """The position of each wanted path among sorted, distinct paths; -1 if absent."""
    if not len(wanted) or not len(paths):
        return np.full(len(wanted), -1, np.int64)
    if len(paths) == len(wanted) and paths.equals(wanted):
        return np.arange(len(paths), dtype=np.int64)
    # A listing of a few directories is searched only in their range of a large index.
    edges = pc.min_max(wanted).as_py()
    low, high = lower_bound(paths, edges["min"]), lower_bound(paths, edges["max"] + "\0")
    if low == high:
        return np.full(len(wanted), -1, np.int64)
    if high - low == len(wanted) and paths[low:high].equals(wanted):
        return np.arange(low, high, dtype=np.int64)
    found = pc.fill_null(pc.index_in(wanted, value_set=paths[low:high]), -1).to_numpy()
    return np.where(found >= 0, found.astype(np.int64) + low, -1)


def lower_bound(paths: pa.Array, text: str) -> int:
    """The first position whose path is at least ``text``; paths are sorted."""
    low, high = 0, len(paths)
    while low < high:
        middle = (low + high) // 2
        if paths[middle].as_py() < text:
            low = middle + 1
        else:
            high = middle
    return low


def same_etags(left: pa.Array | None, right: pa.Array | None) -> npt.NDArray[np.bool_] | None:
    """Slots whose etags are equal or where one is missing; None if that holds for all slots."""
    if left is None or right is None or left.null_count == len(left):
        return None
    agree = pc.fill_null(pc.equal(left, right), True)
    return np.asarray(agree.to_numpy(zero_copy_only=False), np.bool_)
