"""Tables of segments on each storage: one commit wins, changed files are told, facts stay."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import FileChanged, SegmentOverlap
from bridge.segments.commands import add, compaction, indexes, manage, opened, refresh, tables
from bridge.storage.listed_files import listed_files
from bridge.storage.object_store import objectstore
from bridge.storage.port import FileTable
from tests.storage.conftest import Place

pytestmark = pytest.mark.full


def content(first: int, rows: int = 10) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(range(first, first + rows), pa.int64())}), sink)
    return sink.getvalue()


def test_a_table_lives_and_facts_stay(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = place.settings
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    config = Config({key: Setting(value, "test") for key, value in given.items()})
    monkeypatch.setattr(opened, "storage_of", lambda _: place.storage)
    table, facts = f"{place.root}/table", f"{place.root}/facts"
    for i in range(4):
        place.storage.put(f"{facts}/d{i}/deep/f.parquet", content(i * 100))
    tables.create_table(config, table, format="parquet", columns=[("id", "bigint")])
    indexes.create_index(config, table, name="m", kind="minmax", local=True)
    for i in range(4):
        add.add_segment(config, table, paths=[f"{facts}/d{i}"], local=True)
    with pytest.raises(SegmentOverlap):
        add.add_segment(config, table, paths=[facts], local=True)
    compaction.compact(config, table, kind="custom", ids=["0", "1"])
    manage.delete_segments(config, table, ids=["3"])
    manage.clean(config, table, keep=1, older_than=0)
    settings: dict[str, Any] = {key.replace(".", "_"): value for key, value in given.items()}
    with bridge.connect(planner_cache_dir=str(tmp_path / "cache"), **settings) as session:
        scan = session.table(table).scan
        assert sorted(scan("id < 105").to_arrow()["id"].to_pylist()) == [
            *range(10),
            *range(100, 105),
        ]
        assert scan(segments=["2"]).to_arrow().num_rows == 10
        place.storage.put(f"{facts}/d2/deep/f.parquet", content(900))
        changed = place.storage.stat(f"{facts}/d2/deep/f.parquet")
        assert changed is not None
        if changed.etag is not None or not place.options:
            with pytest.raises(FileChanged):
                scan().to_arrow()
        refresh.refresh_segments(config, table, local=True)
        assert max(scan().to_arrow()["id"].to_pylist()) == 909
    before = place.storage.list_all(facts).paths.to_pylist()
    tables.drop_table(config, table)
    assert place.storage.list_all(facts).paths.to_pylist() == before
    assert len(before) == 4
    assert not len(place.storage.list_all(f"{table}/_segments"))


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_files_stay_the_same_where_listings_have_milliseconds(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some stores list milliseconds, and answer a look at one file in whole seconds."""

    def with_milliseconds(base: str, prefix: str, batch: pa.RecordBatch) -> FileTable:
        found = listed_files(base, prefix, batch)
        return replace(found, modified=found.modified + 123_000)

    monkeypatch.setattr(objectstore, "listed_files", with_milliseconds)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    config = Config({key: Setting(value, "test") for key, value in place.settings.items()})
    table, file = f"{place.root}/table", f"{place.root}/facts/f.parquet"
    place.storage.put(file, content(0))
    tables.create_table(config, table, format="parquet", columns=[("id", "bigint")])
    add.add_segment(config, table, paths=[f"{place.root}/facts"], local=True)
    given: dict[str, Any] = {key.replace(".", "_"): value for key, value in place.settings.items()}
    with bridge.connect(planner_cache_dir=str(tmp_path / "cache"), **given) as session:
        scan = session.table(table).scan
        assert scan().to_arrow()["id"].to_pylist() == list(range(10))
        place.storage.put(file, content(10))
        with pytest.raises(FileChanged):
            scan().to_arrow()
