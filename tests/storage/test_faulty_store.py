"""A store that fails: nothing is lost, nothing is wrong, and what fails says so.

versitygw behind a proxy that fails 1 to 20 % of the requests, from a seed: 503, 500, resets, bodies
cut short, answers that never come or stop half-way, answers lost after the store has done what was
asked. ``--tier=nightly`` asks many times as often.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.expression.parsing.text import parse_where
from bridge.index.generations.store import IndexStore
from bridge.kernel.errors import BridgeError, FileUnreadable, IndexConflict, StorageFailure
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.lister import DirectoryLister
from tests.storage.test_requests_in_flight import bounds, build, content, put_all
from tests.support.lake import drained
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, Versitygw
from tests.tiers import examples

pytestmark = pytest.mark.full

BUILDS = examples(6, 6, 50)
QUERIES = examples(60, 60, 2_000)
FAULTS = ("503", "500", "reset", "cut", "lost", "hang", "stall", "expired")
happened: Counter[str] = Counter()


def faulty(gateway: Versitygw, proxy: SlowStore) -> Storage:
    # Few attempts, so that some requests fail for good.
    return open_storage(options={**gateway.through(proxy.port), "retries": "2", "timeout": "0.5"})


def some_faults(rng: random.Random) -> Behaviour:
    rate = rng.choice((0.01, 0.05, 0.1, 0.2))
    chosen = tuple(rng.sample(FAULTS, rng.randint(1, len(FAULTS))))
    return Behaviour(rate=rate, faults=chosen, seed=rng.randrange(2**31))


@pytest.fixture
def calm(proxy: SlowStore) -> Iterator[SlowStore]:
    yield proxy
    proxy.behave(Behaviour())


@pytest.mark.parametrize("seed", range(BUILDS))
def test_21_builds_on_a_store_that_fails(
    gateway: Versitygw, calm: SlowStore, direct: Storage, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    root = f"s3://{BUCKET}/faulty-{seed}"
    count = 60
    put_all(direct, root, {f"f{i:03d}": content(i * 100) for i in range(count)})
    told = {f"{root}/f{i:03d}": (i * 100, i * 100 + 19) for i in range(count)}
    for attempt in range(3):
        calm.behave(some_faults(rng))
        try:
            report = build(faulty(gateway, calm), root, files_per_commit=rng.choice((0, 20)))
        except (StorageFailure, FileUnreadable, IndexConflict) as error:
            assert root in error.message or BUCKET in error.message
            happened["builds failed"] += 1
        else:
            assert report.files == count
            happened["builds done"] += 1
            happened["files failed"] += len(report.failed)
        happened["faults"] += calm.take().failed
        if IndexStore(direct, f"{root}/.skipbridge").latest() is not None:
            found = bounds(direct, root, tmp_path / str(attempt))
            assert {path: b for (path, _), b in found.items()}.items() <= told.items()
    calm.behave(Behaviour())
    report = build(direct, root)
    assert (report.files, report.failed) == (count, ())
    whole = bounds(direct, root, tmp_path / "whole")
    assert {path: b for (path, _), b in whole.items()} == told
    store = IndexStore(direct, f"{root}/.skipbridge")
    store.clean(keep=1, older_than=-10)
    manifest = store.latest()
    assert manifest is not None
    named = {f"{store.root}/{blob.name}" for blob in manifest.blobs()}
    held = direct.list_all(store.root).paths.to_pylist()
    assert set(held) == named | {f"{store.root}/generations/{manifest.generation}.json"}


def test_queries_on_a_store_that_fails(
    gateway: Versitygw, calm: SlowStore, direct: Storage, tmp_path: Path
) -> None:
    """A plan holds every file that may match, or it fails: a listing never ends early."""
    root, partitions, each = f"s3://{BUCKET}/asked", 12, 5
    names = [f"p={p:02d}/f{i}" for p in range(partitions) for i in range(each)]
    put_all(direct, root, {name: content(n * 100) for n, name in enumerate(names)})
    table = DirectoryCatalog(direct, root)
    build(direct, root, partitions=[*table.partition_names(table.table(table.name))])
    rng = random.Random(16)
    for number in range(QUERIES):
        if number % 10 == 0:
            calm.behave(Behaviour())
            storage = faulty(gateway, calm)
            catalog = DirectoryCatalog(storage, root)
            catalog.table(catalog.name)
            store = IndexStore(storage, f"{root}/.skipbridge")
            views = IndexViews(lambda _, store=store: store, tmp_path / str(number), 0.0)  # type: ignore[misc]
            planner = Planner(catalog, views, DirectoryLister(storage, 4))
        calm.behave(some_faults(rng))
        low = rng.randrange(partitions)
        value = rng.randrange(len(names)) * 100
        where = rng.choice((f"p >= '{low:02d}'", f"p >= '{low:02d}' AND x >= {value}"))
        try:
            plan = planner.plan(ScanRequest(catalog.name, parse_where(where)[0], freshness="live"))
            found = drained(plan)
        except BridgeError as error:
            assert isinstance(error, (StorageFailure, FileUnreadable)), error
            happened["queries failed"] += 1
            continue
        happened["queries done"] += 1
        here = {f"{root}/{name}" for name in names if int(name[2:4]) >= low}
        least = value if "x" in where else 0
        may = {f"{root}/{name}" for n, name in enumerate(names) if n * 100 + 19 >= least}
        assert here & may <= found <= here, where
        happened["pruned"] += len(found) < len(here)
    happened["faults"] += calm.take().failed


def test_the_faults_did_happen() -> None:
    if not happened["queries done"] or not happened["builds done"]:
        pytest.skip("the law was not asked in this run")
    assert happened["faults"] > 50 and happened["pruned"], happened


def test_a_listing_goes_on_where_it_broke_off(
    gateway: Versitygw, calm: SlowStore, direct: Storage
) -> None:
    root = f"s3://{BUCKET}/pages"
    put_all(direct, root, {f"f{i:05d}": b"x" for i in range(4_500)})
    calm.behave(Behaviour(rate=0.4, faults=("cut", "lost"), only="^LIST", seed=3))
    calm.take()
    storage = open_storage(options=gateway.through(calm.port))
    for _ in range(5):
        assert storage.list_all(root).paths.equals(direct.list_all(root).paths)
    seen = calm.take()
    assert seen.failed > 5
    hints = direct.list_all(root).paths
    assert storage.list_all(root, hints=hints).paths.equals(hints)


def test_a_listing_that_keeps_failing_fails_in_the_words_of_the_store(
    gateway: Versitygw, calm: SlowStore
) -> None:
    calm.behave(Behaviour(rate=1.0, faults=("503",)))
    storage = open_storage(options={**gateway.through(calm.port), "retries": "1"})
    with pytest.raises(StorageFailure, match="SlowDown"):
        storage.list_all(f"s3://{BUCKET}/pages")


def test_27_an_index_that_the_store_fails_to_give_is_not_rebuilt(
    gateway: Versitygw, calm: SlowStore, direct: Storage
) -> None:
    root = f"s3://{BUCKET}/kept"
    put_all(direct, root, {f"f{i}": content(i) for i in range(4)})
    build(direct, root)
    calm.behave(Behaviour(rate=1.0, faults=("500",), only="^GET .*/shards/"))
    with pytest.raises(FileUnreadable, match="InternalError"):
        build(faulty(gateway, calm), root)
    assert IndexStore(direct, f"{root}/.skipbridge").generations() == [1]
