"""What all of Hudi's own indexes have: the base files that they are about, and patience."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Executor, Future
from typing import TypeVar

import numpy as np

from bridge.kernel.errors import BridgeError, FileCorrupt, LimitExceeded, UnsupportedTable
from bridge.storage.port import UNKNOWN_TIME, FileTable
from bridge.table.hudi.files.file_slices import FileSlices, full_paths
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.slices import Int64Array

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds that queries wait for an answer since it was asked for; later ones have it."""


class BaseFiles:
    """The base files of some slices, of which an index of Hudi's own is read in other threads.

    Attributes:
        problem: why nothing is known; None if nothing has failed.
    """

    def __init__(self, view: FileSystemView, slices: FileSlices, pool: Executor) -> None:
        self._view, self._slices = view, slices
        self._places: dict[str, int] | None = None
        self._pool, self._lock = pool, threading.Lock()
        self.problem: BridgeError | None = None

    @property
    def num_files(self) -> int:
        return len(self._slices)

    @property
    def files(self) -> FileTable:
        """The base files of the slices; a slice of logs alone has no path."""
        slices = self._slices
        paths = full_paths(self._view.config.base, slices.base_paths)
        return FileTable(paths, slices.base_sizes, np.full(len(slices), UNKNOWN_TIME, np.int64))

    def match(self, files: FileTable) -> Int64Array:
        """The place of each base file among the slices; -1 if it has none."""
        if self._places is None:
            paths = self.files.paths.to_pylist()
            self._places = {path: place for place, path in enumerate(paths) if path}
        known = self._places
        return np.fromiter((known.get(p, -1) for p in files.paths.to_pylist()), np.int64)

    def _fail(self, error: Exception) -> bool:
        """Keeps why nothing is known; returns whether the next query may ask storage again."""
        problem = error if isinstance(error, BridgeError) else metadata_damage(str(error))
        self.problem = problem
        return not isinstance(problem, FileCorrupt | LimitExceeded | UnsupportedTable)


def answer_until(read: Future[T], deadline: float) -> T | None:
    """What a thread answers by a moment of the monotonic clock; None: it has not yet."""
    try:
        return read.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        return None


def metadata_damage(detail: str) -> FileCorrupt:
    return FileCorrupt(
        f"the metadata table tells nothing of files: {detail}", "build the metadata table again"
    )
