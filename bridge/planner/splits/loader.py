"""SplitLoader: draws a plan's batches in the background into a bounded queue.

States: INITIAL -> NO_MORE_SPLITS | FAILED | CLOSED; the last three are final. An error is recorded
before the end is announced. A step that finds the queue full releases its thread, and the reader
schedules the next step, so slow readers never block the pool. The queue holds surviving files.
Splits are cut when they are handed out, so that a late `apply_dynamic_filter` still applies.

The reader itself starts a plan that does no I/O (`ScanPlan.plans_without_io`): a change of threads
costs as much as a millisecond's work. It also starts a plan that awaits a dynamic filter on a
partition key: until it asks for splits, nothing is listed that the filter may make needless.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor
from enum import Enum

from bridge.kernel.errors import PlanClosed
from bridge.planner.scan_plan import ScanPlan
from bridge.table.slices import SliceBatch


class LoaderState(Enum):
    INITIAL = "INITIAL"
    NO_MORE_SPLITS = "NO_MORE_SPLITS"
    FAILED = "FAILED"
    CLOSED = "CLOSED"


class SplitLoader:
    """Loads one plan.

    Args:
        plan: the scan.
        pool: runs the steps.
        max_batches: maximum number of queued batches.
        max_files: maximum number of queued files; a single batch may exceed it.
    """

    def __init__(
        self, plan: ScanPlan, pool: Executor, *, max_batches: int = 16, max_files: int = 2_000_000
    ) -> None:
        self._plan = plan
        self._pool = pool
        self._max_batches = max_batches
        self._max_files = max_files
        self._source: Iterator[SliceBatch] = plan.batches()
        self._queue: deque[SliceBatch] = deque()
        self._files = 0
        self._state = LoaderState.INITIAL
        self._failure: BaseException | None = None
        self._running = False
        self._begun = False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Starts loading, unless the first `take` is to start it."""
        if self._plan.awaits_key_filters:
            self._plan.begin()
            return
        with self._changed:
            if not self._plan.plans_without_io:
                self._schedule()

    @property
    def state(self) -> LoaderState:
        with self._changed:
            return self._state

    def take(self, timeout: float) -> SliceBatch | None:
        """The next batch; None if none came in time or none will come (see `finished`).

        Errors:
            PlanClosed: the loader was closed.
            whatever made loading fail, once the batches loaded before it are drained.
        """
        self._begin_here()
        with self._changed:
            if not self._queue and self._state is LoaderState.INITIAL:
                self._schedule()
                self._changed.wait_for(
                    lambda: self._queue or self._state is not LoaderState.INITIAL, timeout
                )
            if self._state is LoaderState.CLOSED:
                raise PlanClosed("the plan was closed", "plan again")
            if self._state is LoaderState.FAILED:
                # The query fails as a whole, so it does not need the batches after a failure.
                assert self._failure is not None
                raise self._failure
            if not self._queue:
                return None
            batch = self._queue.popleft()
            self._files -= len(batch)
            self._schedule()
            return batch

    def settle(self, timeout: float) -> None:
        """Waits until it is known whether another batch follows: often none does."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._queue or self._state is not LoaderState.INITIAL, timeout
            )

    @property
    def finished(self) -> bool:
        """Whether all batches were taken and nothing failed."""
        with self._changed:
            return self._state is LoaderState.NO_MORE_SPLITS and not self._queue

    def close(self) -> None:
        """Stops loading, listing and metastore calls; idempotent."""
        with self._changed:
            if self._state is LoaderState.INITIAL or self._queue:
                self._state = LoaderState.CLOSED
            self._queue.clear()
            self._files = 0
            self._changed.notify_all()
        self._plan.close()

    def _full(self) -> bool:
        return len(self._queue) >= self._max_batches or self._files >= self._max_files

    def _schedule(self) -> None:
        """Held: self._changed."""
        if self._state is LoaderState.INITIAL and not self._running and not self._full():
            self._running = True
            try:
                self._pool.submit(self._run)
            except BaseException as e:
                self._running = False
                self._fail(e)

    def _begin_here(self) -> None:
        """Draws the first batch of a plan that does no I/O, and checks for a second."""
        with self._changed:
            if (
                self._begun
                or not self._plan.plans_without_io
                or self._state is not LoaderState.INITIAL
            ):
                return
            self._begun = self._running = True
        self._run(most=2)
        with self._changed:
            self._schedule()

    def _run(self, most: int | None = None) -> None:
        try:
            while True:
                with self._changed:
                    if self._state is not LoaderState.INITIAL or self._full() or most == 0:
                        self._running = False
                        return
                if most is not None:
                    most -= 1
                batch = next(self._source, None)
                with self._changed:
                    if self._state is not LoaderState.INITIAL:
                        self._running = False
                        return
                    if batch is None:
                        self._running = False
                        self._state = LoaderState.NO_MORE_SPLITS
                    else:
                        self._queue.append(batch)
                        self._files += len(batch)
                    self._changed.notify_all()
                    if batch is None:
                        return
        except BaseException as e:  # every exception reaches the reader, even SystemExit
            with self._changed:
                self._running = False
                self._fail(e)

    def _fail(self, failure: BaseException) -> None:
        """Records the error first, then the state. Held: self._changed."""
        if self._state is LoaderState.INITIAL:
            self._failure = failure
            self._state = LoaderState.FAILED
        self._changed.notify_all()
