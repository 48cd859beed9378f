"""A table that lives on a store whose listings lie: builds, commits, segments and scans.

Whatever the lie, each step does what it says or ends in a clear error, and the honest store
afterwards shows every row. A lie that passes ends in no error.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bridge
from bridge.config import Config, Setting
from bridge.errors import BridgeError
from bridge.index.store import IndexStore
from bridge.jobs.segments import add, tables
from bridge.storage.routed import open_storage
from tests.storage.test_lying_store import LIES, ROOT, parquet
from tests.storage.test_requests_in_flight import build
from tests.support.memory_store import Answer, Asked, MemoryStore
from tests.tiers import examples, seed

pytestmark = pytest.mark.full

LIVES = examples(2, 6, 100)
SEGMENTS = "s3://lake/segments"
_SETTINGS = ("endpoint", "region", "allow_http")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    monkeypatch.setattr("bridge.storage.listing_end._PAUSE", 0.0)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with MemoryStore(page=5) as running:
        yield running


@pytest.mark.rule("35", "43")
def test_43_a_table_lives_on_a_store_that_lies(store: MemoryStore, tmp_path: Path) -> None:
    rng, seen = random.Random(seed(4343)), Counter[tuple[str, str]]()
    names = {f"storage.{name}": store.options[name] for name in _SETTINGS}
    config = Config({name: Setting(value, "test") for name, value in names.items()})
    settings = {name.replace(".", "_"): value for name, value in names.items()}

    def rows(root: str, where: str | None = None) -> list[int]:
        cache = str(tmp_path / "cache")
        with bridge.connect(planner_cache_dir=cache, **settings) as session:
            return sorted(session.table(root).scan(where).to_arrow()["x"].to_pylist())

    def generations(root: str) -> list[int]:
        storage = open_storage(options=store.options)
        return IndexStore(storage, f"{root}/.skipbridge").generations()

    for number in range(LIVES):
        store.lie = lambda asked, answer: answer
        store.objects.clear()
        root, segments = f"{ROOT}{number}", f"{SEGMENTS}{number}"
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
            lies, when, first = rng.sample(sorted(LIES), 1), rng.choice(("always", "once")), [True]

            def lie(
                asked: Asked,
                answer: Answer,
                lies: list[str] = lies,
                when: str = when,
                first: list[bool] = first,
            ) -> Answer:
                if not asked.listing or (when == "once" and not first):
                    return answer
                first.clear()
                return LIES[lies[0]](asked, answer)

            wanted = rng.randrange(len(values))
            before = generations(root)
            steps: dict[str, Callable[[], object]] = {
                "build": lambda root=root: build(open_storage(options=store.options), root).files,
                "scan": lambda root=root: rows(root),
                "lookup": lambda root=root, wanted=wanted: rows(root, f"x = {wanted}"),
                "segment": lambda root=root, segments=segments: add.add_segment(
                    config, segments, paths=[root], local=True
                )["segment"],
            }
            truth = {"build": len(values), "scan": list(values), "lookup": [wanted]}
            step = rng.choice([name for name in steps if name != "segment" or added == []])
            store.lie = lie
            try:
                found = steps[step]()
            except BridgeError as error:
                assert when != "once" and error.hint, (number, step, lies, error)
                seen[step, "error"] += 1
                if step == "segment":
                    added = None
            else:
                assert step == "segment" or found == truth[step], (number, step, lies, when)
                seen[step, "right"] += 1
                if step == "segment":
                    added = list(values)
            store.lie = lambda asked, answer: answer
            assert rows(root) == values, (number, step, lies, when)
            assert rows(root, f"x = {wanted}") == [wanted], (number, step, lies, when)
            held = rows(segments)
            assert held == added or (added is None and held in ([], values)), (number, lies, when)
            after = generations(root)
            assert max(after, default=0) >= max(before, default=0) and set(before) <= set(after)
            if added == []:
                write(rng.randrange(3))
    print(dict(seen))
    if LIVES > 5:
        assert all(seen[step, "right"] for step in ("build", "scan", "lookup", "segment")), seen
        assert sum(count for (_, end), count in seen.items() if end == "right") > seen.total() / 2
