"""Whether a directory is quiet: nobody has written there for a while, and nobody is about to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from bridge.index.generations.replacements import FileState, states_of
from bridge.storage.port import FileTable, Storage, data_files
from bridge.storage.uri import relative
from bridge.table.directory.discovered import STAGING

_OURS = ".skipbridge"
_STAGING = re.compile(rf"/(?:{'|'.join(map(re.escape, (*STAGING, '__magic')))})[^/]*(?=/|$)")
"""Directories in which Spark, Hive and S3's committers keep what is not committed."""


def list_all_files(storage: Storage, directory: str) -> FileTable:
    """All files below a directory, hidden ones too, but those of skipbridge."""
    listed = storage.list_all(directory, recursive=True)
    below = len(directory) + 1
    kept = [not path.startswith(_OURS, below) for path in listed.paths.to_pylist()]
    return listed if all(kept) else listed.filter(np.array(kept, np.bool_))


def data_of(listed: FileTable, directory: str, recursive: bool) -> dict[str, FileState]:
    """The files of a listing that engines read as the directory's, by path."""
    states = states_of(data_files(listed, directory))
    return {
        state.path: state
        for state in states
        if recursive or "/" not in (relative(directory, state.path) or "")
    }


def reason_not_quiet(
    storage: Storage, directory: str, root: str, listed: FileTable, now: int, settled: int
) -> tuple[str, list[str]]:
    """Why a directory is not quiet; empty if it is.

    Args:
        root: of the table.
        listed: `list_all_files` of the directory.
        now: microseconds by the clock of the store.
        settled: microseconds for which nothing may have changed; 0: whatever has changed.

    Returns:
        The reason, and staging directories that count as dead.
    """
    if not settled:
        return "", []
    for state in states_of(listed):
        if now - state.modified < settled:
            return f"{state.path} was written {_ago(now - state.modified, settled)}", []
    dead = []
    for staging, newest in _staging(storage, {directory, root}, listed).items():
        if newest is None:
            return f"{staging} may be of a writer that has begun; delete it if it is not", []
        if now - newest < settled:
            return f"{staging} is of a writer that was active {_ago(now - newest, settled)}", []
        dead.append(staging)
    return "", dead


def _staging(
    storage: Storage, places: Iterable[str], listed: FileTable
) -> Mapping[str, int | None]:
    """The newest time in each staging directory; None: it is not known."""
    found: dict[str, int | None] = {}
    for path, modified in zip(listed.paths.to_pylist(), listed.modified.tolist(), strict=True):
        named = _STAGING.search(path)
        if named is not None:
            found[path[: named.end()]] = max(found.get(path[: named.end()]) or 0, modified)
    for place in places:
        for each in storage.list_directories(place):
            directory = each.rstrip("/")
            if _STAGING.fullmatch(f"/{directory.rpartition('/')[2]}") is None:
                continue
            times = storage.list_all(directory, recursive=True).modified.tolist()
            times += _local_times(directory)
            found[directory] = max([*times, found.get(directory) or 0]) or None
    return found


def _local_times(directory: str) -> list[int]:
    """Times of a local directory and those below: one that is empty may be a writer's, too."""
    found: list[int] = []
    if directory.startswith("file:///"):
        with suppress(OSError):
            for place, _, _ in os.walk(directory.removeprefix("file://")):
                found.append(Path(place).stat().st_mtime_ns // 1000)
    return found


def _ago(microseconds: int, settled: int) -> str:
    if microseconds < -1_000_000:
        return f"{-microseconds / 1e6:.0f} s in the future, by the clock of the store"
    return f"{max(0, microseconds) / 1e6:.0f} s ago, and --settled asks for {settled / 1e6:.0f} s"
