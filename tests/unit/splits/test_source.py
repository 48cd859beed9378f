"""The loader and the source: exactly once, errors before ends, nothing left running."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.kernel.errors import InvalidRequest, PlanClosed, StorageFailure
from bridge.planner.splits.coalesce import SplitSettings
from bridge.planner.splits.loader import LoaderState, SplitLoader
from bridge.planner.splits.source import SplitSource
from bridge.storage.port import FileTable
from bridge.table.model import Partition
from bridge.table.slices import ReaderSpec, SliceBatch

PARTITION = (Partition("", (), "file:///t"),)


@pytest.fixture(params=[False, True], ids=["background", "without-io"], autouse=True)
def plans_without_io(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Everything holds whoever begins to load."""
    monkeypatch.setattr(Plan, "plans_without_io", request.param)
    return bool(request.param)


def batch_of(first: int, count: int) -> SliceBatch:
    files = FileTable(
        pa.array([f"file:///t/{i}" for i in range(first, first + count)], pa.large_string()),
        np.full(count, 10, np.int64),
        np.zeros(count, np.int64),
    )
    unknown = np.full(count, -1, np.int64)
    owner = np.zeros(count, np.int32)
    return SliceBatch(files, unknown, owner, PARTITION, (ReaderSpec("parquet"),))


def no_pause() -> None:
    """A plan that waits for something does I/O."""


class Plan:
    """A plan of given batches; what it raises, and how slow it is, is up to the test."""

    plans_without_io = False
    awaits_key_filters = False

    def __init__(
        self,
        counts: list[int],
        failure: BaseException | None = None,
        pause: Callable[[], None] = no_pause,
    ) -> None:
        self._counts = counts
        self._failure = failure
        self._pause = pause
        self.plans_without_io = self.plans_without_io and pause is no_pause
        self.closed = False
        self.view = SimpleNamespace(serving=None)
        self.table = SimpleNamespace(format="parquet")
        self.running: set[int] = set()

    def batches(self) -> Iterator[SliceBatch]:
        first = 0
        for count in self._counts:
            self.running.add(threading.get_ident())
            self._pause()
            if self.closed:
                return
            yield batch_of(first, count)
            first += count
        if self._failure is not None:
            raise self._failure

    def refine(self, batch: SliceBatch) -> SliceBatch:
        return batch

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def source_of(plan: Any, pool: ThreadPoolExecutor, **kwargs: Any) -> SplitSource:
    return SplitSource(plan, pool, SplitSettings(max_files=3, parallelism=2, **kwargs))


def drain(source: SplitSource, max_splits: int = 5) -> list[str]:
    paths: list[str] = []
    token, finished = 0, False
    while not finished:
        batch = source.next(token, max_splits, 1.0)
        again = source.next(token, max_splits, 1.0)
        assert again is batch  # repeatable until the next token is asked for
        token, finished = batch.next_token, batch.finished
        if batch.splits is not None:
            assert batch.splits.num_splits <= max_splits
            paths += batch.splits.paths.to_pylist()
    return paths


@settings(deadline=None, max_examples=50)
@given(counts=st.lists(st.integers(0, 40), max_size=40), max_splits=st.integers(1, 20))
@pytest.mark.rule("35")
def test_exactly_once(counts: list[int], max_splits: int) -> None:
    with ThreadPoolExecutor(2) as executor:
        paths = drain(source_of(Plan(counts), executor), max_splits)
    assert paths == [f"file:///t/{i}" for i in range(sum(counts))]


def test_full_queue_gives_its_thread_back() -> None:
    with ThreadPoolExecutor(1) as executor:
        slow = SplitLoader(Plan([1] * 100), executor, max_batches=2)  # type: ignore[arg-type]
        slow.start()
        deadline = time.monotonic() + 5
        while slow._running and time.monotonic() < deadline:
            time.sleep(0.001)
        # The only thread of the pool is free although the loader is not done.
        assert executor.submit(lambda: 42).result(timeout=5) == 42
        assert slow.state is LoaderState.INITIAL
        seen = 0
        while not slow.finished:
            seen += slow.take(1.0) is not None
        assert seen == 100


@pytest.mark.parametrize("failure", [StorageFailure("gone"), MemoryError(), SystemExit(3)])
def test_failure_is_told_before_any_end(failure: BaseException, pool: ThreadPoolExecutor) -> None:
    source = source_of(Plan([3, 3], failure), pool)
    with pytest.raises(type(failure)):
        token = 0
        while True:
            batch = source.next(token, 2, 1.0)
            assert not batch.finished
            token = batch.next_token


@pytest.mark.rule("35")
def test_a_failure_at_handing_out_is_no_end(pool: ThreadPoolExecutor) -> None:
    """The files that were being cut are in no batch, so that a repeated call may not go on."""

    class Failing(Plan):
        fails = True

        def refine(self, batch: SliceBatch) -> SliceBatch:
            if self.fails and batch.files.paths[0].as_py() == "file:///t/3":
                self.fails = False
                raise StorageFailure("the index cannot be read")
            return batch

    source = source_of(Failing([3, 3, 3]), pool)
    token = 0
    with pytest.raises(StorageFailure):
        while True:
            token = source.next(token, 5, 1.0).next_token
    for _ in range(2):
        with pytest.raises(StorageFailure, match="the index cannot be read"):
            source.next(token, 5, 1.0)


def test_close_stops_a_blocked_plan(pool: ThreadPoolExecutor) -> None:
    release = threading.Event()
    plan = Plan([1] * 10, pause=lambda: release.wait(5) or None)
    source = source_of(plan, pool)
    assert source.next(0, 1, 0.01).splits is None
    source.close()
    release.set()
    assert plan.closed
    with pytest.raises(PlanClosed):
        source.next(1, 1, 1.0)
    # Its worker is free again.
    assert pool.submit(lambda: 1).result(timeout=5) == 1


def test_close_is_idempotent_and_final(pool: ThreadPoolExecutor) -> None:
    source = source_of(Plan([5]), pool)
    source.close()
    source.close()
    with pytest.raises(PlanClosed):
        source.next(0, 1, 1.0)


def test_tokens_are_asked_in_order(pool: ThreadPoolExecutor) -> None:
    source = source_of(Plan([5]), pool)
    with pytest.raises(InvalidRequest):
        source.next(3, 1, 1.0)
    source.close()


def test_no_wait_longer_than_asked(pool: ThreadPoolExecutor) -> None:
    release = threading.Event()
    source = source_of(Plan([1], pause=lambda: release.wait(5) or None), pool)
    batch = source.next(0, 1, 0.01)
    assert batch.splits is None and not batch.finished
    release.set()
    assert source.next(1, 1, 5.0).splits is not None
    source.close()
