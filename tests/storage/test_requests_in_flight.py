"""Builders on a store with latency: many requests in flight, one per file, and its identity.

The store is versitygw behind a proxy that counts requests. No test looks at a clock.
"""

from __future__ import annotations

import io
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.expression.nodes import BoundReference
from bridge.index.building import collect
from bridge.index.building.build import BuildReport, build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.entries import live_entries
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kinds
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.indexing.add import add_to_index
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import BIGINT, TRINO
from bridge.storage.port import Storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.support.directories import in_directories
from tests.support.slow_store import Seen, SlowStore
from tests.support.versitygw import BUCKET, Versitygw

pytestmark = pytest.mark.full

FILES = 600


def content(low: int, rows: int = 20, **options: Any) -> bytes:
    """A file whose column x has ``rows`` values from ``low`` on; equal sizes for equal rows."""
    sink = io.BytesIO()
    numbers = pa.array(range(low, low + rows), pa.int64())
    floats = numbers.cast(pa.float64())
    text = pa.array([f"{n:012d}" for n in range(low, low + rows)])
    table = pa.table({"x": numbers, "f": floats, "s": text})
    pq.write_table(table, sink, use_dictionary=False, compression="none", **options)
    return sink.getvalue()


def put_all(storage: Storage, root: str, contents: dict[str, bytes]) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda item: storage.put(f"{root}/{item[0]}", item[1]), contents.items()))


def build(storage: Storage, root: str, **options: Any) -> BuildReport:
    table = CatalogTable(TableName("d", "t"), (Column("x", BIGINT),), (), root)
    names = options.pop("partitions", [""])
    places = [Partition(n, (), f"{root}/{n}" if n else root) for n in names]
    files = in_directories(places, storage)
    requests = options.pop("requests", 32)
    collector = options.pop("collector", None) or ThreadCollector(storage, requests=requests)
    return build_index(
        table, files, IndexStore(storage, f"{root}/.skipbridge"), collector=collector, **options
    )


def bounds(storage: Storage, root: str, cache: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """The bounds of x by path and etag, of the entries that planners trust."""
    store = IndexStore(storage, f"{root}/.skipbridge")
    manifest = store.latest()
    assert manifest is not None
    serving = IndexSnapshot.open(manifest, store, cache)
    column = serving.statistics((), TRINO).column(BoundReference(("x",), BIGINT))
    assert column is not None
    entries = live_entries(manifest, store)
    by_path = dict(
        zip(entries.files["path"].to_pylist(), entries.files["etag"].to_pylist(), strict=True)
    )
    found = {}
    for i, path in enumerate(serving.paths.to_pylist()):
        if column.lower_known is None or column.lower_known[i]:
            found[path, by_path[path]] = (int(column.lower[i]), int(column.upper[i]))
    return found


@pytest.mark.parametrize("nan", ["footer", "scan"])
def test_a_build_makes_one_request_per_file_with_many_in_flight(
    direct: Storage, slow: Storage, proxy: SlowStore, tmp_path: Path, nan: Any
) -> None:
    root = f"s3://{BUCKET}/flight-{nan}"
    put_all(direct, root, {f"f{i:04d}": content(i * 100) for i in range(FILES)})
    report = build(slow, root, nan=nan)
    seen = proxy.take()
    assert (report.read, report.failed, report.untrusted) == (FILES, (), 0)
    assert seen.count("GET", part=f"flight-{nan}/f") == FILES
    assert seen.count("HEAD", part=f"flight-{nan}/f") == 0
    assert seen.count() <= 1.1 * FILES
    assert 2 <= seen.most <= 64 + 8
    found = bounds(direct, root, tmp_path)
    assert sorted(found.values()) == [(i * 100, i * 100 + 19) for i in range(FILES)]


def test_the_number_in_flight_is_a_setting(
    direct: Storage, slow: Storage, proxy: SlowStore
) -> None:
    root = f"s3://{BUCKET}/few"
    put_all(direct, root, {f"f{i:04d}": content(i) for i in range(100)})
    build(slow, root, requests=5)
    assert proxy.take().most <= 5


def test_the_columns_of_larger_files_are_fetched_ahead(
    direct: Storage, slow: Storage, proxy: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The footer comes first, and then all columns in one request."""
    monkeypatch.setattr(collect, "_SMALL", 1)  # otherwise a MiB
    root = f"s3://{BUCKET}/larger"
    put_all(direct, root, {f"f{i:03d}": content(i * 5_000, 5_000) for i in range(100)})
    definitions = (kinds()["values"].define("s"), kinds()["bloom"].define("x"))
    report = build(slow, root, settings=lambda _: IndexSettings(definitions))
    seen = proxy.take()
    assert (report.read, report.failed) == (100, ())
    # The files of the sample are read whole, in one request.
    assert 100 < seen.count("GET", part="larger/f") < 200
    assert seen.count("HEAD", part="larger/f") == 0
    assert seen.most >= 2


@pytest.mark.parametrize("seed", range(6))
def test_19_files_rewritten_while_they_are_read(
    direct: Storage, slow: Storage, proxy: SlowStore, tmp_path: Path, seed: int
) -> None:
    """What the index says of an identity is true of the bytes that had it; sizes stay equal."""
    rng = random.Random(seed)
    root = f"s3://{BUCKET}/rewritten-{seed}"
    count = 80
    contents = {f"f{i:03d}": content(i * 1000) for i in range(count)}
    assert len({len(raw) for raw in contents.values()}) == 1
    put_all(direct, root, contents)
    written: dict[tuple[str, str], tuple[int, int]] = {}

    def note(name: str, low: int) -> None:
        state = direct.stat(f"{root}/{name}")
        assert state is not None and state.etag is not None
        written[state.uri, state.etag] = (low, low + 19)

    for i in range(count):
        note(f"f{i:03d}", i * 1000)
    over = threading.Event()

    def rewrite() -> None:
        moment = 0
        while not over.is_set():
            name, moment = f"f{rng.randrange(count):03d}", moment + 1
            direct.put(f"{root}/{name}", content(10**6 + moment * 100))
            note(name, 10**6 + moment * 100)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        first = build(slow, root, nan=rng.choice(("footer", "scan")))
    finally:
        over.set()
        writer.join()
    changed = [reason for _, reason in first.failed]
    assert all(reason.startswith("FILE_CHANGED") for reason in changed), changed
    assert len(written) > count
    live = direct.list_all(root, recursive=False)
    now = set(zip(live.paths.to_pylist(), live.etags.to_pylist(), strict=True))
    found = bounds(direct, root, tmp_path / "1")
    wrong = {k: v for k, v in found.items() if k in now and written[k] != v}
    assert not wrong
    build(slow, root)
    again = bounds(direct, root, tmp_path / "2")
    assert set(again) == now
    assert {k: written[k] for k in again} == again


def test_a_schema_is_inferred_with_many_requests_in_flight(
    direct: Storage, slow: Storage, proxy: SlowStore
) -> None:
    root = f"s3://{BUCKET}/inferred"
    put_all(direct, root, {f"p={i:03d}/f": content(i) for i in range(120)})
    catalog = DirectoryCatalog(slow, root)
    table = catalog.table(catalog.name)
    assert [c.name for c in table.columns] == ["x", "f", "s"]
    seen = proxy.take()
    assert seen.most >= 2
    assert seen.count("GET") <= 125
    assert seen.count("LIST") <= 2  # the first listing of a bucket in a process is asked twice


def test_a_table_of_another_format_is_refused_by_one_listing(
    direct: Storage, slow: Storage, proxy: SlowStore
) -> None:
    root = f"s3://{BUCKET}/foreign"
    put_all(direct, root, {"_delta_log/0.json": b"{}", "a": content(1)})
    catalog = DirectoryCatalog(slow, root)
    with pytest.raises(UnsupportedTable, match="Delta Lake"):
        catalog.table(catalog.name)
    assert proxy.take().count() <= 2  # the first listing of a bucket in a process is asked twice


def test_files_that_are_added_are_looked_at_by_pages(
    direct: Storage, gateway: Versitygw, proxy: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing's page tells of 1,000 files; only few files are asked for one by one."""
    root = f"s3://{BUCKET}/added"
    names = [f"f{i:04d}" for i in range(FILES)]
    put_all(direct, root, {name: content(i) for i, name in enumerate(names)})
    for name, value in gateway.environment.items():
        monkeypatch.setenv(name, value)
    options = gateway.through(proxy.port)
    config = Config(
        {f"storage.{k}": Setting(options[k], "t") for k in ("endpoint", "region", "allow_http")}
    )

    def add(files: list[str]) -> Seen:
        proxy.take()
        report = add_to_index(
            config,
            root,
            [f"{root}/{file}" for file in files],
            progress=lambda done, total: None,
            say=lambda text: None,
        )
        assert (report["read"], report["failed"]) == (len(files), []), report
        return proxy.take()

    many = add(names[100:500])
    assert many.count("HEAD", part="added/f") == 0
    assert many.count() <= 1.1 * 400
    few = add(names[:10])
    assert few.count("HEAD", part="added/f") == 10
    store = IndexStore(direct, f"{root}/.skipbridge")
    manifest = store.latest()
    assert manifest is not None
    entries = live_entries(manifest, store).files["path"].to_pylist()
    assert entries == [f"{root}/{name}" for name in (*names[:10], *names[100:500])]
