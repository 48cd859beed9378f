"""An index built, committed and matched on every storage; etags where there are some."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.index.building.build import BuildReport, build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.store import IndexStore
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.storage.port import data_files
from bridge.storage.uri import join
from bridge.table.model import CatalogTable, Partition, TableName
from tests.storage.conftest import Place
from tests.support.directories import in_directories

pytestmark = pytest.mark.full


def write(place: Place, name: str, *values: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": list(values)}), sink)
    place.storage.put(join(place.root, name), sink.getvalue())


def store(place: Place) -> IndexStore:
    return IndexStore(place.storage, join(place.root, ".skipbridge"))


def build(place: Place) -> BuildReport:
    table = CatalogTable(TableName("d", "t"), (), (), place.root)
    parts = [Partition(f"m={m}", (str(m),), join(place.root, f"m={m}")) for m in (1, 2)]
    collector = ThreadCollector(place.storage)
    return build_index(
        table, in_directories(parts, place.storage), store(place), collector=collector
    )


def match(place: Place, cache: Path) -> list[bool]:
    manifest = store(place).latest()
    assert manifest is not None
    serving = IndexSnapshot.open(manifest, store(place), cache)
    files = data_files(place.storage.list_all(place.root), place.root)
    return (serving.match(files) >= 0).tolist()


def test_build_refresh_and_match(place: Place, tmp_path: Path) -> None:
    write(place, "m=1/a", 1, 2)
    write(place, "m=2/b", 3, 4)
    first = build(place)
    assert (first.generation, first.files, first.untrusted, first.failed) == (1, 2, 0, ())
    assert match(place, tmp_path / "cache") == [True, True]
    assert not build(place).committed
    write(place, "m=2/b", 8, 9)  # the same size, within one tick of S3's clock: the etag tells
    assert match(place, tmp_path / "cache") == [True, False]
    second = build(place)
    assert (second.generation, second.read, second.removed) == (2, 1, 1)
    assert match(place, tmp_path / "cache") == [True, True]
    place.storage.delete(join(place.root, "m=1/a"))
    assert build(place).removed == 1
    assert match(place, tmp_path / "cache") == [True]


def test_builders_at_once(place: Place, tmp_path: Path) -> None:
    for i in range(6):
        write(place, f"m={i % 2 + 1}/f{i}", i)
    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(lambda _: build(place), range(3)))
    assert all(report.files == 6 for report in reports)
    assert match(place, tmp_path / "cache") == [True] * 6
    manifest = store(place).latest()
    assert manifest is not None
    assert manifest.num_files == 6
