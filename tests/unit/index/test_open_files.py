"""What all open indexes keep is bounded, giving up changes no answer, and running out is told."""

from __future__ import annotations

import errno
import gc
import os
import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from bridge.expression.builders import eq
from bridge.expression.nodes import BoundReference
from bridge.index.kinds.bloom import KIND
from bridge.index.reading.column_view import ColumnView
from bridge.index.reading.local_cache import CacheLimits
from bridge.index.reading.open_files import OpenFiles
from bridge.kernel.errors import LimitExceeded
from bridge.kernel.types import BIGINT, TRINO
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.storage import store_errors
from bridge.storage.local_disk import local_errors
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Column
from tests.support.lake import Lake, kept
from tests.tiers import examples, seed

COLUMNS = tuple(Column(f"c{i}", BIGINT) for i in range(4))
ROWS = {(n, f, i): [n + f, 9 * f + i] for n in range(5) for f in range(3) for i in range(4)}


@pytest.fixture
def lakes(tmp_path: Path) -> list[Lake]:
    """Five tables of three files, with a Bloom filter on one column of four."""
    made = [Lake(tmp_path / str(n), COLUMNS) for n in range(5)]
    for n, lake in enumerate(made):
        for f in range(3):
            lake.write(f"{f}", {c.name: pa.array(ROWS[n, f, i]) for i, c in enumerate(COLUMNS)})
        lake.build(settings=lambda held: held.adding([KIND.define("c0")]))
    return made


def planner_of(lake: Lake, limits: CacheLimits) -> Planner:
    views = IndexViews(lambda _: lake.store(), lake.root / "cache", 0.0, limits)
    return Planner(lake, views, DirectoryLister(lake.storage, 4), metadata_ttl=0.0)


@pytest.mark.parametrize(("most", "most_bytes"), [(1, 1 << 30), (7, 1 << 30), (1000, 100)])
def test_answers_under_any_bound_and_what_is_kept(
    lakes: list[Lake], most: int, most_bytes: int
) -> None:
    """Law: files are skipped as without a bound; only the last index used may exceed it alone."""
    limits = CacheLimits(open_files=OpenFiles(most, most_bytes))
    planners = [planner_of(lake, limits) for lake in lakes]
    draw = random.Random(seed(33))
    alone = 20  # files of one index at most
    descriptors = []
    for step in range(examples(60, 200, 2000)):
        n, i, value = draw.randrange(5), draw.randrange(4), draw.randrange(24)
        found = {Path(uri).name for uri in kept(planners[n], eq(f"c{i}", value))}
        rows = {f"{f}": ROWS[n, f, i] for f in range(3)}
        between = {f for f, values in rows.items() if min(values) <= value <= max(values)}
        assert {f for f, values in rows.items() if value in values} <= found <= between
        assert i or len(found) == sum(value in values for values in rows.values())
        files, size = limits.open_files.kept
        assert files <= max(most, alone) and size <= max(most_bytes, 20_000)
        if step > 20:
            descriptors.append(psutil.Process().num_fds())
    assert max(descriptors) - min(descriptors) <= 2 * len(lakes)  # those of filters' bodies alone


def test_what_is_freed_leaves_the_books() -> None:
    class Index:
        released = 0

        def release(self) -> None:
            self.released += 1

    books = OpenFiles(10, 100)
    one, two, three = Index(), Index(), Index()
    books.keeps(one, 4, 10)
    books.keeps(two, 4, 10)
    books.keeps(one, 5, 10)
    books.keeps(three, 4, 10)  # `two` was used longest ago
    assert (one.released, two.released, three.released) == (0, 1, 0)
    assert books.kept == (9, 20)
    books.used(one)
    books.keeps(two, 1, 90)
    assert (one.released, two.released, three.released) == (0, 1, 1) or books.kept == (1, 90)
    del one, three
    gc.collect()
    assert books.kept == (1, 90)


def test_a_column_that_two_threads_join_counts_once(lake: Lake) -> None:
    """Both do after a release, which one of them waited through."""
    lake.write("a", {"i": [1]})
    lake.build()
    view = ColumnView(lake.snapshot().local)
    i = BoundReference(("i",), BIGINT)
    found = view.column(i, TRINO)
    (key,), size = view._cache, view._cache.weight
    view._cache.put(key, found)
    assert view._cache.weight == size > 0


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("opened", ["nothing", "the local copy", "the index", "a column"])
def test_running_out_is_an_error_and_never_no_index(lakes: list[Lake], opened: str) -> None:
    """With a descriptor again, everything is as if nothing had happened."""
    lake, limits = lakes[0], CacheLimits()
    if opened == "the local copy":
        planner_of(lake, CacheLimits()).views.view(lake.table())
    views = planner_of(lake, limits).views
    if opened in ("the index", "a column"):
        views._interval = 3600.0
        index = views.view(lake.table()).index
        assert index is not None
        if opened == "a column":
            index.prefetch([("c1",)])
            index.local.release()
    planner = Planner(lake, views, DirectoryLister(lake.storage, 4), metadata_ttl=0.0)
    with no_descriptor_left(), pytest.raises(LimitExceeded, match="file descriptor") as told:
        index = planner.views.view(lake.table()).index
        assert index is not None
        if opened == "a column":
            index.statistics(COLUMNS).column(BoundReference(("c1",), BIGINT))
        index.kinds[0].payload()
    assert "planner.open_files" in told.value.hint and "ulimit -n" in told.value.hint
    assert {Path(uri).name for uri in kept(planner, eq("c0", 1))} == {"1"}
    assert {Path(uri).name for uri in kept(planner, eq("c1", 19))} == {"2"}


@pytest.mark.parametrize(
    "told",
    [local_errors.failure, local_errors.unreadable, store_errors.failure, store_errors.unreadable],
)
def test_a_store_that_no_descriptor_is_left_for_is_not_a_store_that_failed(told: Any) -> None:
    said = 'error sending request: tcp open error: Os { code: 24, message: "Too many open files" }'
    for error in (OSError(errno.EMFILE, "x"), OSError(errno.ENFILE, "x"), OSError(said)):
        with pytest.raises(LimitExceeded, match="no file descriptor"):
            told(error, "s3://bucket/t")
    assert not isinstance(told(OSError(errno.EIO, "x"), "s3://bucket/t"), LimitExceeded)
