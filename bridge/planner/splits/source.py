"""SplitSource: hands out a plan's splits in batches that can be requested again.

The law: every planned file range is emitted exactly once. A batch is repeatable, byte for byte,
until the next token is requested. "finished" is set only after the last split, and never while an
error is pending.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import InvalidRequest
from bridge.planner.reports.report import PruneReport, SplitTotals
from bridge.planner.scan_plan import ScanPlan
from bridge.planner.splits.coalesce import SplitSettings, by_reader, coalesce
from bridge.planner.splits.loader import SplitLoader
from bridge.planner.splits.split import SplitBatch
from bridge.table.slices import SliceBatch

MAX_BATCH_BYTES = 4 << 20
_CHUNK = 1 << 16
_SETTLE = 0.002
"""Seconds that a batch waits for the news that it is the last: cheaper than another call."""


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """One batch: the splits (None: none yet, or no more) and whether it is the last."""

    token: int
    next_token: int
    splits: SplitBatch | None
    finished: bool


class SplitSource:
    """Splits of one plan; one reader at a time.

    Attributes:
        plan: the plan whose splits are handed out.
        opened: start time, by `time.perf_counter`.
    """

    def __init__(
        self,
        plan: ScanPlan,
        pool: Executor,
        settings: SplitSettings,
        *,
        keep_paths: bool = False,
    ) -> None:
        self.plan = plan
        self._settings = settings
        self._loader = SplitLoader(plan, pool)
        self._lock = threading.Lock()
        self._token = 0
        self._last: SourceBatch | None = None
        self._pending: SplitBatch | None = None
        self._rest: SliceBatch | None = None
        self._offset = 0
        self._totals = SplitTotals()
        self._paths: list[pa.Array] | None = [] if keep_paths else None
        self._ended = False
        self._failure: BaseException | None = None
        self.opened = time.perf_counter()
        self._loader.start()

    def next(self, token: int, max_splits: int, timeout: float) -> SourceBatch:
        """The batch for a token: 0 first, then the `next_token` of the last batch.

        The last token again repeats its batch.

        Args:
            timeout: seconds to wait for the first split.

        Errors:
            InvalidRequest: the token is neither the next nor the last.
            whatever made planning fail.
        """
        if max_splits < 1:
            raise InvalidRequest(f"max_splits is {max_splits}", "ask for at least one split")
        with self._lock:
            if self._last is not None and token == self._last.token:
                return self._last
            if token != self._token:
                raise InvalidRequest(
                    f"token {token} is not the next one, {self._token}", "ask in order"
                )
            if self._failure is not None:
                raise self._failure
            try:
                splits = self._draw(max_splits, timeout)
            except BaseException as error:  # what it has drawn is lost: no later call may end
                self._failure = error
                raise
            drained = self._pending is None and self._rest is None
            if drained and splits is not None:
                self._loader.settle(_SETTLE)
            finished = drained and self._loader.finished
            self._token += 1
            self._last = SourceBatch(token, self._token, splits, finished)
            return self._last

    def report(self) -> PruneReport:
        paths = None
        if self._paths is not None:
            paths = (
                pa.concat_arrays(self._paths) if self._paths else pa.array([], pa.large_string())
            )
        return self.plan.report(self._totals, paths)

    def end_once(self) -> bool:
        """True only for the first caller that reports the plan's end, drawn out or closed."""
        with self._lock:
            first, self._ended = not self._ended, True
            return first

    def close(self) -> None:
        self._loader.close()

    def _draw(self, max_splits: int, timeout: float) -> SplitBatch | None:
        deadline = time.monotonic() + timeout
        while self._pending is None:
            batch, self._rest = self._rest, None
            if batch is None:
                batch = self._loader.take(max(0.0, deadline - time.monotonic()))
            if batch is None:
                return None
            self._cut(self.plan.refine(batch))
        pending = self._pending
        begin = self._offset
        end = min(begin + max_splits, pending.num_splits)
        end = _fit(pending, begin, end)
        if begin == 0 and end == pending.num_splits:
            self._pending = None
            return pending
        piece = pending.slice(begin, end)
        self._offset = end
        if end == pending.num_splits:
            self._pending = None
        return piece

    def _cut(self, batch: SliceBatch) -> None:
        if len(batch) > _CHUNK:
            # The first splits of a huge directory must not wait until its last files are cut.
            self._rest = batch.slice(_CHUNK, len(batch))
            batch = batch.slice(0, _CHUNK)
        if not len(batch):
            return
        started = time.perf_counter()
        batch = by_reader(batch)
        splits = coalesce(batch, self._settings, _row_groups(batch))
        totals = self._totals
        self._totals = replace(
            totals,
            count=totals.count + splits.num_splits,
            files=totals.files + len(batch),
            weight=totals.weight + float(splits.weight.sum()) / 1000.0,
            bytes=totals.bytes + int(splits.length.sum()),
            millis=totals.millis + (time.perf_counter() - started) * 1000.0,
        )
        if self._paths is not None:
            self._paths.append(batch.files.paths)
        self._pending = splits
        self._offset = 0


def _row_groups(batch: SliceBatch) -> _RowGroups | None:
    index = batch.index
    return _RowGroups(index, batch.ordinals) if isinstance(index, IndexSnapshot) else None


class _RowGroups:
    """Row group offsets of a batch's files, from the index."""

    def __init__(self, index: IndexSnapshot, ordinals: npt.NDArray[np.int64]) -> None:
        self._index = index
        self._ordinals = ordinals

    def __call__(self, position: int) -> npt.NDArray[np.int64] | None:
        ordinal = int(self._ordinals[position])
        return self._index.row_groups(ordinal) if ordinal >= 0 else None


def _fit(splits: SplitBatch, begin: int, end: int) -> int:
    """The largest end whose wire size stays below the limit; at least one split."""
    offsets = np.frombuffer(splits.paths.buffers()[1], np.int64)
    base = splits.paths.offset
    first = splits.first
    origin = int(offsets[base + first[begin]])
    files = first[begin : end + 1].astype(np.int64)
    sizes = offsets[base + files] - origin + (files - files[0]) * 44
    return begin + max(1, int(np.searchsorted(sizes, MAX_BATCH_BYTES, side="right")) - 1)
