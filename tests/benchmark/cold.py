"""Cold runs: the page cache gives up a file's pages before it is read."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path


def drop(path: Path) -> None:
    """Takes a file, or all files below a directory, out of the page cache.

    Pages that are mapped stay: whoever mapped them must have let go of them. Where the user may
    (root), the kernel is asked to drop all clean pages as well.
    """
    gc.collect()
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached_share(path: Path) -> float:
    """The share of a file's pages that lie in the page cache, by mincore(2); 0 is cold."""
    import ctypes
    import mmap

    size = path.stat().st_size
    if not size:
        return 0.0
    pages = -(-size // mmap.PAGESIZE)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        found = (ctypes.c_ubyte * pages)()
        libc = ctypes.CDLL(None, use_errno=True)
        hold = ctypes.c_char.from_buffer(mapped)
        address = ctypes.c_void_p(ctypes.addressof(hold))
        failed = libc.mincore(address, ctypes.c_size_t(size), found)
        del hold
        mapped.close()
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(page & 1 for page in found) / pages


def disk_rate(path: Path, runs: int = 5) -> float:
    """What the disk itself can do: bytes a second of a cold file read from end to end, the best."""
    size = path.stat().st_size
    step = 1 << 20
    best = 0.0
    for _ in range(runs):
        drop(path)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            started = time.perf_counter()
            with ThreadPoolExecutor(4) as pool:
                read = partial(os.pread, descriptor, step)
                total = sum(len(part) for part in pool.map(read, range(0, size, step)))
            best = max(best, total / (time.perf_counter() - started))
        finally:
            os.close(descriptor)
    return best


def median_cold(path: Path, prepare: Callable[[], Callable[[], object]], runs: int = 7) -> float:
    """Median seconds of what ``prepare`` returns; before each run the path is made cold.

    ``prepare`` opens what a resident process holds open; it is not timed, and it runs before the
    pages are dropped.
    """
    times: list[float] = []
    for _ in range(runs):
        work = prepare()
        drop(path)
        warm = [f.name for f in path.rglob("*-*.arrow") if cached_share(f) > 0.02]
        if warm:
            raise RuntimeError(f"{len(warm)} files did not get cold: {warm[:3]}")
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
        del work, result
    return statistics.median(times)
