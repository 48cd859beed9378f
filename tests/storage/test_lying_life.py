"""A table that lives on a store that lies: builds, commits, plans, cleanups, segments and scans.

Whatever the lie, of listings or of objects, each step does what it says or ends in a clear error,
and the honest store afterwards shows every row. A lie that passes ends in no error, unless it
claims what one may believe.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

import bridge
from bridge.clustering.commands import run as cluster
from bridge.clustering.planning.scheduling import Strategy
from bridge.index.generations.store import IndexStore
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import BridgeError
from bridge.segments.commands import add, manage, tables
from bridge.storage.routed import open_storage
from tests.storage.test_lying_store import ROOT, WAYS, drawn, lie_of, parquet
from tests.storage.test_requests_in_flight import build
from tests.support import lying_objects
from tests.support.memory_store import Answer, Asked, MemoryStore
from tests.tiers import examples, nightly, seed

pytestmark = pytest.mark.full

LIVES = examples(2, 6, 100)
SEGMENTS = "s3://lake/segments"
STRATEGY = Strategy(layout="binpack", grouping="size")
_SETTINGS = ("endpoint", "region", "allow_http")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    monkeypatch.setattr("bridge.storage.object_store.listing_end._PAUSE", 0.0)
    monkeypatch.setattr("bridge.storage.retry._FIRST", 0.0)
    monkeypatch.setattr("bridge.storage.native.STALL", 0.3)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with MemoryStore(page=5) as running:
        yield running


@pytest.mark.rule("43")
def test_43_an_end_that_passes_is_none(store: MemoryStore) -> None:
    """A page without entries, as if it were the last one, in place of one answer."""
    for size, number, recursive in product((1, 4, 5, 11, 23), range(6), (True, False)):
        store.objects.clear()
        wanted = [f"t/f{i:03}" for i in range(size)]
        for key in wanted:
            store.put(key, b"x")
        answers = count()

        def lie(asked: Asked, answer: Answer, at: tuple[int, Any] = (number, answers)) -> Answer:
            if not asked.listing or next(at[1]) != at[0]:
                return answer
            empty = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
            return Answer(200, empty, answer.headers)

        store.lie = lie
        found = open_storage(options=store.options).list_all(ROOT, recursive=recursive)
        assert found.paths.to_pylist() == [f"s3://lake/{key}" for key in wanted], (size, number)


def kind(way: str) -> str:
    return lying_objects.WAYS[way].kind if way in lying_objects.WAYS else "list"


@pytest.mark.parametrize("of", ["listings", "objects"])
@pytest.mark.rule("35", "43")
def test_43_a_table_lives_on_a_store_that_lies(of: str, store: MemoryStore, tmp_path: Path) -> None:
    rng, seen = random.Random(seed(4343)), Counter[tuple[str, str]]()
    told = Counter[str]()
    known = dict.fromkeys(WAYS, False)
    if of == "objects":
        known = {name: way.claims for name, way in lying_objects.WAYS.items()}
    names = {f"storage.{name}": store.options[name] for name in _SETTINGS}
    config = Config({name: Setting(value, "test") for name, value in names.items()})
    settings = {name.replace(".", "_"): value for name, value in names.items()}

    def rows(root: str, where: str | None = None) -> list[int]:
        cache = str(tmp_path / "cache")
        with bridge.connect(planner_cache_dir=cache, **settings) as session:
            return sorted(session.table(root).scan(where).to_arrow()["x"].to_pylist())

    def index(root: str) -> IndexStore:
        return IndexStore(open_storage(options=store.options), f"{root}/.skipbridge")

    def plan(root: str) -> None:
        said = cluster.schedule(config, root, STRATEGY, lambda text: None, local=True)
        if said["instant"] is not None:
            cluster.cancel(config, root, said["instant"])

    number = rng.randrange(1_000)
    for life in range(LIVES):
        store.lie = lambda asked, answer: answer
        store.objects.clear()
        root, segments = f"{ROOT}{life}", f"{SEGMENTS}{life}"
        values: list[int] = []

        def write(count: int, root: str = root, values: list[int] = values) -> None:
            for _ in range(count):
                values.append(len(values))
                key = f"{root}/f{len(values):03}.parquet".removeprefix("s3://lake/")
                store.put(key, parquet(values[-1]))

        write(rng.choice((1, 4, 5, 9, 10, 11)))
        tables.create_table(config, segments, format="parquet", columns=[("x", "bigint")])
        added: list[int] | None = []
        for _ in range(4):
            ways, when = drawn(number, rng, ("once",) if number % 6 else ("always",), known)
            number += 1
            wanted = rng.randrange(len(values))
            before = index(root).generations()
            steps: dict[str, Callable[[], object]] = {
                "build": lambda root=root: build(open_storage(options=store.options), root).files,
                "scan": lambda root=root: rows(root),
                "lookup": lambda root=root, wanted=wanted: rows(root, f"x = {wanted}"),
                "clean": lambda root=root: index(root).clean(2, -10),
                "plan": lambda root=root: plan(root),
                "segment": lambda root=root, segments=segments: add.add_segment(
                    config, segments, paths=[root], local=True
                )["segment"],
                "clean segments": lambda segments=segments: manage.clean(
                    config, segments, keep=1, older_than=0
                ),
            }
            truth = {"build": len(values), "scan": list(values), "lookup": [wanted]}
            step = rng.choice([name for name in steps if name != "segment" or added == []])
            used = list[str]() if of == "objects" else ways
            store.lie = lie_of(ways, when)
            if of == "objects":
                store.lie = lying_objects.lie_of(store, ways, when, used)
            try:
                found = steps[step]()
            except BridgeError as error:
                believed = any(known[way] for way in used)
                assert (when != "once" or believed) and error.hint, (number, step, ways, error)
                seen[step, "error" if when != "once" else "believed"] += 1
                if step == "segment":
                    added = None
            else:
                assert found == truth.get(step, found), (number, step, ways, when)
                seen[step, "right"] += 1
                if step == "segment":
                    added = list(values)
            told.update({*used})
            store.lie = lambda asked, answer: answer
            assert rows(root) == values, (number, step, ways, when)
            assert rows(root, f"x = {wanted}") == [wanted], (number, step, ways, when)
            held = rows(segments)
            assert held == added or (added is None and held in ([], values)), (number, ways, when)
            after = index(root).generations()
            assert max(after, default=0) >= max(before, default=0), (number, step, ways, when)
            assert step == "clean" or set(before) <= set(after), (number, step, ways, when)
            newest = index(root).readable(after)[0]
            if newest is not None and not {"write", "create"} & {kind(way) for way in used}:
                assert index(root).lacks(newest.blobs()) is None, (number, step, ways, when)
            if added == []:
                write(rng.randrange(3))
    print(dict(seen), dict(told))
    if LIVES > 5:
        errors = sum(count for (_, end), count in seen.items() if end == "error")
        assert errors <= seen.total() / 5, seen
    if nightly():
        assert all(seen[step, "right"] for step in steps), seen
        assert min(told[way] for way in known) >= 20, told
