"""Concurrent queries share listings, and each sees every file that was there when it arrived."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import StorageFailure
from bridge.storage.port import FileTable, join_listings
from bridge.storage.routed import open_storage
from bridge.table.directory.freshness import Cached, Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Partition, PartitionBatch
from bridge.table.snapshot import Snapshot
from tests.support.listing_trees import listed, open_snapshot, rows

QUERIES = 16
PARTITIONS = 6


class Storage:
    """The real one. Each listing waits for leave to begin, and may be told to fail."""

    def __init__(self) -> None:
        self._storage = open_storage()
        self.began: list[Sequence[str]] = []
        self.leave = threading.Semaphore(1_000_000)
        self.changed = threading.Condition()
        self.fails: set[str] = set()

    def list_many(self, directories: Sequence[str], *rest: Any, **options: Any) -> Any:
        self._begin(directories)
        return self._storage.list_many(directories, *rest, **options)

    def pages(self, prefix: str, **options: Any) -> Iterator[FileTable]:
        self._begin([prefix])
        yield from self._storage.pages(prefix, **options)

    def _begin(self, directories: Sequence[str]) -> None:
        with self.changed:
            self.began.append(directories)
            self.changed.notify_all()
        self.leave.acquire()
        if self.fails & set(directories):
            raise StorageFailure("the store is gone", "try again")

    def wait_for(self, listings: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.began) >= listings, 30)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


class World:
    """A partitioned table of plain files, and queries in threads."""

    def __init__(self, base: Path, partitions: int) -> None:
        self.base = base
        self.storage = Storage()
        self.lister = DirectoryLister(self.storage, 4)
        self.root = f"file://{base}"
        self.pool = ThreadPoolExecutor(2 * QUERIES)
        for number in range(partitions):
            self.directory(number).mkdir(parents=True)
            self.write(number, "first")

    def directory(self, number: int) -> Path:
        return self.base / "t" / f"p={number}"

    def write(self, number: int, name: str) -> str:
        path = self.directory(number) / name
        path.write_bytes(b"x")
        return f"file://{path}"

    def batch(self, numbers: Sequence[int]) -> PartitionBatch:
        return PartitionBatch(
            tuple(Partition(f"p={n}", (str(n),), f"file://{self.directory(n)}") for n in numbers)
        )

    def arrive(self) -> Snapshot:
        return open_snapshot(self.lister, self.root, Live())

    def run(self, snapshot: Snapshot, numbers: Sequence[int]) -> Future[set[str]]:
        batch = self.batch(numbers)
        return self.pool.submit(lambda: {uri for _, uri, _, _ in rows(snapshot, batch)})

    def waits(self, count: int) -> None:
        """Until so many queries wait for a listing that another query makes."""
        while self.lister._shared.waiting < count:
            threading.Event().wait(0.001)

    def close(self) -> None:
        self.storage.leave.release(1_000)
        self.pool.shutdown()
        self.lister.close()


@pytest.fixture(params=[1, PARTITIONS], ids=["flat", "partitioned"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, request.param)
    yield made
    made.close()


@pytest.fixture
def many(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, PARTITIONS)
    yield made
    made.close()


def everything(world: World) -> range:
    return range(len(list((world.base / "t").iterdir())))


def test_sixteen_queries_cost_two_listings(world: World) -> None:
    world.storage.leave = threading.Semaphore(0)
    numbers = everything(world)
    first = world.run(world.arrive(), numbers)
    world.storage.wait_for(1)
    later = world.write(0, "later")
    others = [world.run(world.arrive(), numbers) for _ in range(QUERIES - 1)]
    if len(numbers) > 1:
        world.waits(len(others))
    world.storage.leave.release(100)
    assert len(first.result()) >= len(numbers)
    for query in others:
        assert later in query.result()
    assert len(world.storage.began) == 2


def test_queries_that_arrive_before_a_listing_share_it(world: World) -> None:
    numbers = everything(world)
    snapshots = [world.arrive() for _ in range(QUERIES)]
    found = [world.run(snapshot, numbers).result() for snapshot in snapshots]
    assert len(world.storage.began) == 1
    assert all(f == found[0] for f in found)
    world.write(0, "later")
    assert len(world.run(world.arrive(), numbers).result()) == len(found[0]) + 1
    assert len(world.storage.began) == 2


def test_a_slow_store_is_listed_by_two_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No query waits for the rest of a listing and then for one of its own, unless many do."""
    monkeypatch.setattr("bridge.table.directory.lister._is_local", lambda uri: False)
    numbers = everything(world)
    world.storage.leave = threading.Semaphore(0)
    queries = [world.run(world.arrive(), numbers)]
    world.storage.wait_for(1)
    queries.append(world.run(world.arrive(), numbers))
    world.storage.wait_for(2)
    queries += [world.run(world.arrive(), numbers) for _ in range(4)]
    if len(numbers) > 1:
        world.waits(4)
    world.storage.leave.release(100)
    assert all(len(query.result()) == len(numbers) for query in queries)
    assert len(world.storage.began) == 3


def test_a_failure_is_not_that_of_queries_that_waited_for_the_next(world: World) -> None:
    storage, numbers = world.storage, everything(world)
    storage.leave = threading.Semaphore(0)
    storage.fails = {f"file://{world.directory(0)}"}
    first = world.run(world.arrive(), numbers)
    storage.wait_for(1)
    others = [world.run(world.arrive(), numbers) for _ in range(3)]
    if len(numbers) > 1:
        world.waits(3)
    storage.leave.release()
    with pytest.raises(StorageFailure):
        first.result()
    storage.wait_for(2)
    storage.fails.clear()
    storage.leave.release(100)
    for query in others:
        assert len(query.result()) == len(numbers)


def test_a_directory_that_fails_does_not_fail_who_does_not_need_it(many: World) -> None:
    storage = many.storage
    storage.leave = threading.Semaphore(0)
    storage.fails = {f"file://{many.directory(0)}"}
    snapshots = [many.arrive(), many.arrive()]
    first = many.run(snapshots[0], [0, 1, 2])
    storage.wait_for(1)
    second = many.run(snapshots[1], [1, 2])
    many.waits(1)
    storage.leave.release(100)
    with pytest.raises(StorageFailure):
        first.result()
    assert len(second.result()) == 2


def test_queries_share_what_they_have_in_common(many: World) -> None:
    storage = many.storage
    storage.leave = threading.Semaphore(0)
    snapshots = [many.arrive(), many.arrive()]
    first = many.run(snapshots[0], [0, 1, 2])
    storage.wait_for(1)
    second = many.run(snapshots[1], [1, 2, 3, 4])
    storage.wait_for(2)
    storage.leave.release(100)
    assert (len(first.result()), len(second.result())) == (3, 4)
    assert [[uri[-1] for uri in listing] for listing in storage.began] == [
        ["0", "1", "2"],
        ["3", "4"],
    ]


def test_a_small_query_does_not_wait_for_a_large_listing(
    many: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.table.directory.shared_listings._FEW", 2)
    monkeypatch.setattr("bridge.table.directory.shared_listings._LARGER", 2)
    many.storage.leave = threading.Semaphore(1)
    first, second, third = (many.arrive() for _ in "abc")
    assert len(many.run(first, range(PARTITIONS)).result()) == PARTITIONS
    many.storage.leave = threading.Semaphore(0)
    late = many.arrive()
    large = many.run(late, range(PARTITIONS))
    many.storage.wait_for(2)
    small = many.run(second, [0, 1])
    many.storage.wait_for(3)
    many.storage.leave.release(100)
    assert (len(large.result()), len(small.result())) == (PARTITIONS, 2)
    assert len(many.run(third, [0, 1, 5]).result()) == 3  # from what the others listed
    assert len(many.storage.began) == 3


def test_a_cancelled_query_does_not_stop_the_others(world: World) -> None:
    numbers = everything(world)
    snapshots = [world.arrive() for _ in range(3)]
    cancelled = rows(snapshots[0], world.batch(numbers))
    next(cancelled)
    cancelled.close()
    del cancelled, snapshots[0]
    for snapshot in snapshots:
        assert len(world.run(snapshot, numbers).result()) == len(numbers)


def test_a_listing_is_not_held_by_who_made_it_known(world: World) -> None:
    numbers = everything(world)
    snapshot = world.arrive()
    assert len(world.run(snapshot, numbers).result()) == len(numbers)
    del snapshot
    assert not world.lister._shared._newest
    assert not list(world.lister._streams.values())


def test_cached_listings_are_shared_for_their_time(world: World) -> None:
    numbers = everything(world)
    batch = world.batch(numbers)

    def query(ttl: float) -> int:
        found = listed(open_snapshot(world.lister, world.root, Cached(ttl)), [batch])
        return len(found)

    assert query(1000.0) == len(numbers)
    world.write(0, "later")
    assert query(1000.0) == len(numbers)
    assert query(0.0) == len(numbers) + 1
    assert query(1000.0) == len(numbers) + 1
    assert len(world.storage.began) == 2


@pytest.mark.parametrize("seed", range(6))
def test_what_was_there_when_a_query_arrived_is_found(world: World, seed: int) -> None:
    """Writers, and queries that want random partitions, in random interleavings."""
    written: list[tuple[int, str]] = []  # appended when the file is complete
    stop = threading.Event()
    numbers = everything(world)

    def pause(chance: random.Random) -> None:
        if chance.random() < 0.5:
            threading.Event().wait(chance.random() * 0.002)

    def writer(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        for i in range(150):
            if stop.is_set():
                return
            where = chance.choice(numbers)
            written.append((where, world.write(where, f"w{number}-{i}")))
            pause(chance)

    def reader(number: int) -> None:
        chance = random.Random(f"{seed} reader {number}")
        for _ in range(12):
            before = list(written)
            snapshot = world.arrive()
            pause(chance)
            found: set[str] = set()
            wanted: set[int] = set()
            for _ in range(chance.randint(1, 3)):
                some = chance.sample(numbers, chance.randint(1, len(numbers)))
                found |= {uri for _, uri, _, _ in rows(snapshot, world.batch(some))}
                wanted |= set(some)
            missing = {uri for where, uri in before if where in wanted} - found
            assert not missing, missing

    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(writer, n) for n in range(2)]
        for query in [pool.submit(reader, n) for n in range(6)]:
            query.result()
        stop.set()
        for each in writers:
            each.result()


def test_work_ahead_of_a_store_that_does_not_answer_keeps_no_other_table_from_its_listing(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, 2)
    answers = threading.Event()

    class Remote(Storage):
        def list_many(self, directories: Sequence[str], pool: Any, **options: Any) -> Any:
            return join_listings(list(pool.map(self._storage.list_all, directories)))

    def wait() -> None:
        answers.wait()

    lister = DirectoryLister(Remote(), 4)
    for _ in range(8):
        lister.background(wait)
    places = [Partition(f"p={i}", (), f"{world.root}/t/p={i}") for i in range(2)]
    pool = ThreadPoolExecutor(1)
    try:
        found = pool.submit(lister.each, places, Live(), 0.0).result(30)
        assert set(found) == {place.location for place in places}
    finally:
        answers.set()
        lister.close()
        pool.shutdown()
