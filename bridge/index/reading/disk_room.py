"""Keeps the local copies of indexes within their bytes: the least recently used go first."""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

from bridge.index.reading.pack import pack_files

BUILDING = ".building-"
"""What the name of an unfinished directory begins with."""
_ABANDONED = 3600.0
"""Seconds after which an unfinished directory belongs to a process that died."""


def trim(directory: Path, limit: int) -> None:
    """Deletes the oldest packs of a generation that alone exceeds the limit."""
    held: list[tuple[float, int, Path]] = []
    for pack in directory.glob("*.json"):
        if pack.name != "meta.json":
            with contextlib.suppress(OSError):
                size = sum(path.stat().st_size for path in pack_files(pack))
                held.append((pack.stat().st_mtime, size, pack))
    total = sum(size for _, size, _ in held)
    for _, size, pack in sorted(held)[:-1]:
        if total <= limit:
            break
        for path in pack_files(pack):
            path.unlink(missing_ok=True)  # existing maps stay valid
        total -= size


def evict(cache: Path, keep: str, limit: int) -> None:
    """Deletes the least recently used copies, but not the one to keep, beyond so many bytes."""
    held: list[tuple[float, int, Path]] = []
    now = time.time()
    for path in cache.iterdir():
        if path.name.startswith(BUILDING):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(path, ignore_errors=True)
            continue
        meta = path / "meta.json"
        with contextlib.suppress(OSError):
            if path.name != keep and meta.exists():
                size = sum(entry.stat().st_size for entry in path.iterdir())
                held.append((meta.stat().st_mtime, size, path))
    total = sum(size for _, size, _ in held)
    for _, size, path in sorted(held):
        if total <= limit:
            break
        shutil.rmtree(path, ignore_errors=True)  # maps of other processes stay valid
        total -= size
