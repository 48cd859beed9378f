"""The requests that a plan makes: listed side by side, counted in its report and in a metric."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from bridge.expression.parsing.text import parse_where
from bridge.index.generations.store import IndexStore
from bridge.kernel.telemetry import STORAGE_REQUESTS
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.reports.document import report_document
from bridge.planner.reports.text import funnel
from bridge.planner.request import ScanRequest
from bridge.planner.scan_plan import ScanPlan
from bridge.storage.port import FileTable, Storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.lister import DirectoryLister
from tests.storage.test_faulty_store import build
from tests.storage.test_requests_in_flight import content, put_all
from tests.support.lake import drained
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET

pytestmark = pytest.mark.full


def listed() -> float:
    return float(STORAGE_REQUESTS.labels("list")._value.get())  # type: ignore[attr-defined]


def planned(storage: Storage, proxy: SlowStore, root: str, where: str, cache: Path) -> ScanPlan:
    catalog = DirectoryCatalog(storage, root)
    catalog.table(catalog.name)
    views = IndexViews(lambda _: IndexStore(storage, f"{root}/.skipbridge"), cache, 0.0)
    planner = Planner(catalog, views, DirectoryLister(storage, 16))
    request = ScanRequest(catalog.name, parse_where(where)[0], freshness="live")
    plan = planner.plan(request)
    proxy.take()
    return plan


def test_partitions_are_listed_side_by_side_and_counted(
    direct: Storage, slow: Storage, proxy: SlowStore, tmp_path: Path
) -> None:
    root = f"s3://{BUCKET}/side-by-side"
    put_all(direct, root, {f"p={p}/f": content(p) for p in range(100, 124)})
    plan = planned(slow, proxy, root, "p >= 104", tmp_path)
    proxy.behave(Behaviour(latency=0.5))
    before = listed()
    assert len(drained(plan)) == 20
    seen = proxy.take()
    assert seen.count() == seen.count("LIST") == 20
    assert seen.most >= 2
    stage = next(s for s in plan.report().stages if s.index == "listing")
    assert stage.requests == 20 == listed() - before
    assert "20 requests" in funnel(plan.report())
    document = report_document(plan.report())
    assert [s["requests"] for s in document["stages"] if s["index"] == "listing"] == [20]


def test_the_pages_of_a_large_directory_are_counted(
    direct: Storage, slow: Storage, proxy: SlowStore, tmp_path: Path
) -> None:
    root = f"s3://{BUCKET}/one-directory"
    put_all(direct, root, {f"f{i:04d}": b"x" for i in range(2_500)} | {"a": content(1)})
    plan = planned(slow, proxy, root, "x >= 0", tmp_path)
    assert len(drained(plan)) == 2_501
    stage = next(s for s in plan.report().stages if s.index == "listing")
    assert stage.requests == proxy.take().count("LIST") == 3 + 1  # what follows is asked for


@pytest.mark.parametrize("recursive", [True, False])
def test_a_listing_in_ranges_hands_on_each_page(
    direct: Storage, slow: Storage, recursive: bool
) -> None:
    root = f"s3://{BUCKET}/in-ranges-{recursive}"
    put_all(direct, root, {f"f{i:04d}": b"x" for i in range(5_000)})
    whole = direct.list_all(root)
    pages = list(slow.pages(root, recursive=recursive, hints=whole.paths))
    assert sum(map(len, pages)) == len(whole)
    assert max(map(len, pages)) <= 1_000
    assert all(page.paths.equals(page.paths.sort()) for page in pages)
    paths = [path for page in pages for path in page.paths.to_pylist()]
    assert sorted(paths) == whole.paths.to_pylist()
    listed = slow.list_all(root, recursive=recursive, hints=whole.paths)
    assert listed.paths.equals(whole.paths)
    assert len(next(iter(slow.pages(root, recursive=recursive, hints=whole.paths))))


def test_a_slow_range_does_not_hold_back_the_pages_of_the_others(
    direct: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = f"s3://{BUCKET}/one-slow"
    put_all(direct, root, {f"f{i:04d}": b"x" for i in range(5_000)})
    hints = direct.list_all(root).paths
    store = direct.store(root)  # type: ignore[attr-defined]
    between, let = store._between, threading.Event()

    def held_back(prefix: str, after: str | None, until: str | None) -> Iterator[FileTable]:
        if after is None:
            let.wait(60)
        yield from between(prefix, after, until)

    monkeypatch.setattr(store, "_between", held_back)
    pages = store.pages(root, hints=hints)
    early = [path for page in islice(pages, 2) for path in page.paths.to_pylist()]
    assert early and f"{root}/f0000" not in early
    let.set()
    late = [path for page in pages for path in page.paths.to_pylist()]
    assert sorted(early + late) == hints.to_pylist()


def test_an_unchanged_index_costs_one_listing(
    direct: Storage, slow: Storage, proxy: SlowStore, tmp_path: Path
) -> None:
    root = f"s3://{BUCKET}/unchanged-index"
    put_all(direct, root, {f"f{i}": content(i * 100) for i in range(4)})
    catalog = DirectoryCatalog(slow, root)
    table = catalog.table(catalog.name)
    views = IndexViews(lambda _: IndexStore(slow, f"{root}/.skipbridge"), tmp_path, 0.0)
    for generation in (1, 2):
        build(direct, root)
        proxy.take()
        opened = views.view(table)
        assert opened.generation == generation
        assert proxy.take().count("GET", part="generations/") == 1
        assert views.view(table) is opened
        assert views.view(table) is opened
        seen = proxy.take()
        assert seen.count() == seen.count("LIST", part="generations/") == 2
        put_all(direct, root, {f"new{generation}": content(1000)})
    direct.delete(f"{root}/.skipbridge/generations/2.json")
    assert views.view(table).generation == 1


def test_an_index_that_was_made_anew_under_its_number_is_read(
    direct: Storage, slow: Storage, tmp_path: Path
) -> None:
    root = f"s3://{BUCKET}/made-anew"
    put_all(direct, root, {f"f{i}": content(i * 100) for i in range(4)})
    catalog = DirectoryCatalog(slow, root)
    table = catalog.table(catalog.name)
    views = IndexViews(lambda _: IndexStore(slow, f"{root}/.skipbridge"), tmp_path, 0.0)
    ids = set()
    for _ in range(2):
        build(direct, root)
        index = views.view(table).index
        assert index is not None and index.generation == 1
        ids.add(index.manifest.created)
        for path in direct.list_all(f"{root}/.skipbridge").paths.to_pylist():
            direct.delete(path)
    assert len(ids) == 2 and views.view(table).index is None
