"""A cold look-up reads the bytes of the columns asked for, on every storage; caches are bounded."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics
from bridge.formats.parquet.statistics import FooterReader
from bridge.index.building.build import build_index
from bridge.index.building.collect import FileTask, Reading
from bridge.index.generations.shard import Collected, CollectedBuilder
from bridge.index.generations.store import IndexStore
from bridge.index.reading.local_cache import CacheLimits
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import StorageFailure
from bridge.kernel.types import BIGINT, TRINO
from bridge.storage.port import FileTable
from bridge.storage.uri import join
from bridge.table.model import CatalogTable, Partition, TableName
from tests.storage.conftest import Place
from tests.storage.counting import Counting
from tests.support.directories import in_directories

pytestmark = pytest.mark.full

COLUMNS = 60


class Made:
    """Footers of files that do not exist: file n holds c0 … c59 from n * 1000 + column on."""

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        sink = io.BytesIO()
        names = {f"c{i:02d}": pa.array([1, 2], pa.int64()) for i in range(COLUMNS)}
        pq.write_table(pa.table(names), sink)
        footer = FooterReader().read(sink.getvalue(), len(sink.getvalue()), "made")
        builder = CollectedBuilder()
        noise = np.random.default_rng(1).integers(0, 900, (len(tasks), COLUMNS)).tolist()
        for task, row in zip(tasks, noise, strict=True):
            for i, leaf in enumerate(footer.leaves):
                leaf.lower = task.file * 1000 + row[i]
                leaf.upper = leaf.lower + i
            builder.add(task.file, footer)
        yield builder.finish()


class Lister:
    """Lists files that do not exist; the rest is the real storage's."""

    def __init__(self, counting: Counting, location: str, count: int) -> None:
        self._counting, self._location = counting, location
        self._listing = FileTable(
            pa.array([f"{location}/f{n:06d}" for n in range(count)], pa.large_string()),
            np.full(count, 100, np.int64),
            np.full(count, 1_600_000_000_000_000, np.int64),
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self._counting, name)

    def list_all(self, prefix: str, **options: object) -> FileTable:
        if prefix == self._location:
            return self._listing
        return self._counting.list_all(prefix, **options)  # type: ignore[no-any-return]


def build(place: Place, count: int) -> tuple[IndexStore, Counting]:
    location = join(place.root, "data")
    counting = Counting(place.storage)
    store = IndexStore(counting, join(place.root, ".skipbridge"))  # type: ignore[arg-type]
    build_index(
        CatalogTable(TableName("d", "t"), (), (), location),
        in_directories([Partition("", (), location)], Lister(counting, location, count)),  # type: ignore[arg-type]
        store,
        collector=Made(),
    )
    counting.reads.clear()
    return store, counting


def opened(store: IndexStore, cache: Path, limits: CacheLimits | None = None) -> IndexSnapshot:
    manifest = store.latest()
    assert manifest is not None
    return IndexSnapshot.open(manifest, store, cache, limits)


def column(serving: IndexSnapshot, number: int) -> ColumnStatistics | None:
    reference = BoundReference((f"C{number:02d}",), BIGINT)
    return serving.statistics((), TRINO).column(reference)


@pytest.mark.parametrize("files", [500, 9000])
def test_only_the_columns_asked_for_are_read(place: Place, tmp_path: Path, files: int) -> None:
    store, counting = build(place, files)
    manifest = store.latest()
    assert manifest is not None
    (shard,) = manifest.shards
    counting.reads.clear()
    serving = opened(store, tmp_path / "cache")
    assert counting.of("-columns") == [shard.columns.tail]  # the footer, in one request
    found = column(serving, 7)
    assert found is not None and found.lower_known is None
    assert (found.upper - found.lower).tolist() == [7] * files
    one = counting.of("-columns")
    together = max(8192 // files, 1)  # columns of small tables share a row group
    assert len(one) == 1
    assert sum(one) < 1.2 * together * (shard.columns.size - shard.columns.tail) / COLUMNS
    assert column(serving, 7) is not None
    assert counting.of("-columns") == []  # held ready
    again = opened(store, tmp_path / "cache")
    assert column(again, 7) is not None
    assert counting.of("-columns") == []  # on local disk
    again.prefetch([(f"c{n:02d}",) for n in range(20, 30)])
    parts = counting.of("-columns")
    assert len(parts) == 2  # the footer again, and neighbours in one request
    assert sum(parts) < 1.2 * (10 + 2 * together) * shard.columns.size / COLUMNS


def test_a_planner_smaller_than_the_index(place: Place, tmp_path: Path) -> None:
    """Memory and disk hold three columns of sixty; every answer is right all the same."""
    store, _ = build(place, 3000)
    held = 3000 * 41  # bounds, two counts, flags
    limits = CacheLimits(disk=3 * held + 200_000, memory=3 * held)
    serving = opened(store, tmp_path / "cache", limits)
    order = np.random.default_rng(3).integers(0, COLUMNS, 150).tolist()
    for number in order:
        found = column(serving, number)
        assert found is not None
        assert (found.upper - found.lower == number).all()
        assert len(serving.used_columns()) <= 4
    packs = list((tmp_path / "cache").glob("*/*.arrow"))
    assert sum(p.stat().st_size for p in packs if p.name != "files.arrow") <= limits.disk
    assert len(packs) < 20


def test_a_store_that_fails_makes_a_column_unknown_for_a_while(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, counting = build(place, 500)
    patient = opened(store, tmp_path / "cache", CacheLimits(retry_after=3600.0))
    hasty = opened(store, tmp_path / "cache", CacheLimits(retry_after=0.0))
    with monkeypatch.context() as broken:

        def fail(uri: str, ranges: object) -> list[bytes]:
            raise StorageFailure("the store is away", "")

        broken.setattr(counting, "read_ranges", fail)
        for serving in (patient, hasty):
            assert column(serving, 3) is None
            assert [e.code for e in serving.problems.values()] == ["STORAGE_ERROR"]
    assert column(patient, 3) is None  # not asked again at once
    assert column(hasty, 3) is not None
    assert hasty.problems == {}


def test_many_threads_ask_for_many_columns(place: Place, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    store, counting = build(place, 9000)
    serving = opened(store, tmp_path / "cache")
    counting.reads.clear()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: column(serving, n % 6), range(48)))
    for n, statistics in enumerate(found):
        assert statistics is not None
        assert (statistics.upper - statistics.lower == n % 6).all()
    assert len(counting.of("-columns")) == 6  # each column once
