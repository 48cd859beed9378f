"""Shared calls: an answer comes from a call that began after the request, however many share it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from bridge.kernel.errors import MetastoreFailure, MetastoreUnavailable, UnsupportedTable
from bridge.metastore.batches import BatchSettings
from bridge.metastore.connection import Cancellation
from bridge.metastore.shared_calls import SharedCalls
from bridge.metastore.shared_partitions import PartitionAnswers, PartitionCalls, SharedFetch
from bridge.table.model import Partition

SETTINGS = BatchSettings(adapt=False)
NAMES = [f"p={i}" for i in range(200)]


def until(wanted: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not wanted():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Changing:
    """A metastore whose every answer tells the moment at which it was read."""

    def __init__(self) -> None:
        self.moment = 0
        self.calls: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.wrong: dict[str, MetastoreFailure] = {}
        self.cancelled = 0

    def fetch(self, names: Sequence[str], cancellation: Cancellation) -> PartitionAnswers:
        read = self.moment
        self.calls.append(list(names))
        while not self.gate.wait(0.01):
            if cancellation.cancelled:
                self.cancelled += 1
                return {}
        for name in names:
            if name in self.wrong:
                raise self.wrong[name]
        return {n: Partition(n, (n,), str(read)) for n in names if not n.endswith("gone")}


def names_of(fetch: SharedFetch) -> list[str]:
    return [n for b in fetch for n in (*(p.name for p in b.partitions), *b.missing)]


def test_no_answer_is_older_than_its_request_while_others_write() -> None:
    """Readers of overlapping names, single calls and a writer, all at once."""
    source, calls, stop = Changing(), SharedCalls(), threading.Event()
    partitions = PartitionCalls(BatchSettings(start=2, cap=8, adapt=False))

    def write() -> None:
        while not stop.is_set():
            source.moment += 1
            time.sleep(0)

    def tell() -> int:
        read = source.moment
        time.sleep(0.0005)
        return read

    def scan(number: int) -> None:
        wanted = NAMES[number % 7 : 60 : 1 + number % 3]
        for _ in range(8):
            asked = source.moment
            assert asked <= calls.ask("k", tell) <= source.moment
            asked = source.moment
            with closing(partitions.fetch("t", wanted, source.fetch)) as fetch:
                found = [p for b in fetch for p in b.partitions]
            assert [p.name for p in found] == wanted
            assert all(asked <= int(p.location) <= source.moment for p in found)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(scan, range(24)))
    finally:
        stop.set()
        writer.join()
        partitions.close()


def test_who_asks_during_a_call_shares_the_next_one() -> None:
    calls = SharedCalls(at_once=1)
    gate, begun = threading.Event(), threading.Semaphore(0)
    moments = iter(range(10))

    def call() -> int:
        found = next(moments)
        begun.release()
        assert gate.wait(30)
        return found

    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(calls.ask, "k", call)
        assert begun.acquire(timeout=30)
        rest = [pool.submit(calls.ask, "k", call) for _ in range(8)]
        until(lambda: calls._groups["k"].waiting == 8)
        gate.set()
        assert first.result(30) == 0
        assert {r.result(30) for r in rest} == {1}
    assert not calls._groups


def test_a_failure_reaches_all_who_share_it_and_nobody_else() -> None:
    calls = SharedCalls()

    def fail() -> int:
        raise MetastoreFailure("no")

    with pytest.raises(MetastoreFailure):
        calls.ask("k", fail)
    assert calls.ask("k", lambda: 1) == 1


def test_every_name_once_and_in_order() -> None:
    source, partitions = Changing(), PartitionCalls(SETTINGS)
    names = [*NAMES[:50], "x=gone", *NAMES[50:]]
    with closing(partitions.fetch("t", names, source.fetch)) as fetch:
        batches = list(fetch)
    assert [n for b in batches for n in b.missing] == ["x=gone"]
    assert [p.name for b in batches for p in b.partitions] == NAMES
    assert sorted(n for call in source.calls for n in call) == sorted(names)
    assert len(source.calls[0]) == 10
    assert names_of(partitions.fetch("t", [], source.fetch)) == []
    partitions.close()


def test_nothing_is_asked_before_the_first_batch_is_wanted_nor_far_ahead() -> None:
    source = Changing()
    partitions = PartitionCalls(BatchSettings(5, 1, 5, 3, adapt=False))
    fetch = partitions.fetch("t", NAMES, source.fetch)
    assert source.calls == []
    first = [p.name for p in next(fetch).partitions]
    assert first == NAMES[: len(first)]
    time.sleep(0.1)
    assert sum(map(len, source.calls)) <= len(first) + 15
    fetch.close()
    assert list(fetch) == []
    partitions.close()


def test_scans_that_wait_for_the_same_partitions_share_the_calls() -> None:
    source = Changing()
    partitions = PartitionCalls(BatchSettings(start=100, cap=100, adapt=False), at_once=1)
    source.gate.clear()
    with ThreadPoolExecutor(18) as pool:
        first = pool.submit(names_of, partitions.fetch("t", NAMES, source.fetch))
        until(lambda: len(source.calls) == 1)
        source.moment = 1
        late = [
            pool.submit(names_of, partitions.fetch("t", NAMES, source.fetch)) for _ in range(16)
        ]
        other = partitions.fetch("u", NAMES[:3], source.fetch)
        alien = pool.submit(names_of, other)
        until(lambda: partitions.waiting == 18)
        source.gate.set()
        assert first.result(30) == NAMES
        assert all(scan.result(30) == NAMES for scan in late)
        assert alien.result(30) == NAMES[:3]
    # The first call served the first scan alone; the late ones share one call for these names.
    assert sum(NAMES[0] in call and len(call) > 3 for call in source.calls) == 2
    assert sum(NAMES[150] in call for call in source.calls) == 1
    assert partitions.waiting == 0
    partitions.close()


def test_small_requests_are_asked_together_in_order_of_arrival() -> None:
    source = Changing()
    partitions = PartitionCalls(SETTINGS, at_once=1)
    source.gate.clear()
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(names_of, partitions.fetch("t", ["a"], source.fetch))
        until(lambda: len(source.calls) == 1)
        late = []
        for i in range(8):
            late.append(pool.submit(names_of, partitions.fetch("t", [f"b{i}"], source.fetch)))
            until(lambda: partitions.waiting == 2 + len(late) - 1)
        source.gate.set()
        assert [first.result(30), *(s.result(30) for s in late)] == [
            ["a"],
            *([f"b{i}"] for i in range(8)),
        ]
    assert source.calls == [["a"], [f"b{i}" for i in range(8)]]
    partitions.close()


def test_where_several_scans_wait_no_call_is_small() -> None:
    source = Changing()
    partitions = PartitionCalls(SETTINGS, at_once=1)
    source.gate.clear()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(names_of, partitions.fetch("t", ["a"], source.fetch))
        until(lambda: len(source.calls) == 1)
        late = [pool.submit(names_of, partitions.fetch("t", NAMES, source.fetch)) for _ in "12"]
        until(lambda: partitions.waiting == 3)
        source.gate.set()
        assert [s.result(30) for s in (first, *late)] == [["a"], NAMES, NAMES]
    assert [len(call) for call in source.calls] == [1, 100, 100]
    partitions.close()


def test_a_scan_that_ends_early_leaves_the_others_their_answers() -> None:
    source = Changing()
    partitions = PartitionCalls(SETTINGS, at_once=1)
    source.gate.clear()
    ends, stays = (partitions.fetch("t", ["a", "b"], source.fetch) for _ in range(2))
    blocked = partitions.fetch("t", ["z"], source.fetch)
    with ThreadPoolExecutor(3) as pool:
        before = pool.submit(names_of, blocked)
        until(lambda: len(source.calls) == 1)
        ended = pool.submit(names_of, ends)
        stayed = pool.submit(names_of, stays)
        until(lambda: partitions.waiting == 3)
        ends.close()
        assert ended.result(30) == []
        blocked.close()  # nobody else wants it: the call in flight is cancelled
        assert before.result(30) == []
        until(lambda: source.cancelled == 1)
        source.gate.set()
        assert stayed.result(30) == ["a", "b"]
    partitions.close()


def test_a_partition_that_fails_the_call_fails_only_who_wants_it() -> None:
    source = Changing()
    source.wrong["bad"] = MetastoreFailure("its name and its values disagree")
    partitions = PartitionCalls(SETTINGS, at_once=1)
    source.gate.clear()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(names_of, partitions.fetch("t", ["a"], source.fetch))
        until(lambda: len(source.calls) == 1)
        bad = pool.submit(names_of, partitions.fetch("t", ["bad"], source.fetch))
        until(lambda: partitions.waiting == 2)
        good = pool.submit(names_of, partitions.fetch("t", ["b"], source.fetch))
        until(lambda: partitions.waiting == 3)
        source.gate.set()
        assert (first.result(30), good.result(30)) == (["a"], ["b"])
        with pytest.raises(MetastoreFailure, match="disagree"):
            bad.result(30)
    assert source.calls[1] == ["bad", "b"]
    partitions.close()


def test_an_error_comes_in_its_place() -> None:
    def fetch(names: Sequence[str], _: Cancellation) -> PartitionAnswers:
        return {
            n: UnsupportedTable("ORC") if n == NAMES[30] else Partition(n, (n,), "") for n in names
        }

    partitions = PartitionCalls(SETTINGS)
    found: list[str] = []
    with pytest.raises(UnsupportedTable, match="ORC"):
        for batch in (stream := partitions.fetch("t", NAMES, fetch)):
            found += [p.name for p in batch.partitions]
    assert found == NAMES[:30]
    assert list(stream) == []
    partitions.close()


def test_no_metastore_is_told_to_all_who_wait() -> None:
    def fetch(names: Sequence[str], _: Cancellation) -> PartitionAnswers:
        raise MetastoreUnavailable("down")

    partitions = PartitionCalls(SETTINGS)
    with ThreadPoolExecutor(8) as pool:
        scans = [pool.submit(names_of, partitions.fetch("t", NAMES, fetch)) for _ in range(8)]
        for scan in scans:
            with pytest.raises(MetastoreUnavailable):
                scan.result(30)
    partitions.close()


def test_a_partition_that_fails_the_call_fails_nobody_else_once_its_scan_has_ended() -> None:
    source = Changing()
    source.wrong["bad"] = MetastoreFailure("its name and its values disagree")
    partitions = PartitionCalls(SETTINGS, at_once=1)
    source.gate.clear()
    scans = [partitions.fetch("t", [name], source.fetch) for name in ("a", "bad", "b")]
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(names_of, scans[0])
        until(lambda: len(source.calls) == 1)
        bad = pool.submit(names_of, scans[1])
        until(lambda: partitions.waiting == 2)
        good = pool.submit(names_of, scans[2])
        until(lambda: partitions.waiting == 3)
        calls = source.calls
        source.calls = Closing(calls, scans[1])  # as soon as the call for both has begun
        source.gate.set()
        assert (first.result(30), good.result(30)) == (["a"], ["b"])
        assert bad.result(30) == []
    assert calls[1] == ["bad", "b"]
    partitions.close()


class Closing(list[list[str]]):
    """Notes calls in another list, and closes a scan with the first of them."""

    def __init__(self, calls: list[list[str]], scan: SharedFetch) -> None:
        super().__init__()
        self._calls, self._scan = calls, scan

    def append(self, names: list[str]) -> None:
        self._calls.append(names)
        self._scan.close()


def test_closing_fails_all_scans_and_leaves_none_with_a_part() -> None:
    """A scan that merely ended would count as complete, without the partitions that it lacks."""
    source = Changing()
    source.gate.clear()
    partitions = PartitionCalls(SETTINGS)
    begun = partitions.fetch("t", NAMES, source.fetch)
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(names_of, begun)
        until(lambda: len(source.calls) == 1)
        partitions.close()
        with pytest.raises(MetastoreUnavailable, match="closed"):
            waits.result(30)
    with pytest.raises(MetastoreUnavailable, match="closed"):
        names_of(partitions.fetch("t", NAMES, source.fetch))
