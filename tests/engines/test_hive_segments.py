"""Hive meets a table of segments: it refuses to read it, and never finds it empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.config import Config, Setting
from bridge.jobs.segments import add, tables
from bridge.metastore.client import MetastoreClient
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ

SCHEMA = "hive_segments"


@pytest.fixture(scope="module")
def table(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    root = tmp_path_factory.mktemp("hive_segments")
    uri = hiveserver2.metastore.uri
    config = Config({"metastore.uri": Setting(uri, "test")})
    with MetastoreClient(uri) as client:
        client.create_database(SCHEMA, f"file://{root}/warehouse")
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32())}), root / "a.parquet")
    name = f"{SCHEMA}.t"
    tables.create_table(config, name, format="parquet", columns=[("id", "int")])
    add.add_segment(config, name, paths=[str(root / "a.parquet")], local=True)
    yield name
    assert Path(root / "a.parquet").exists()


@pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])
def test_rows_are_refused(
    hiveserver2: RunningHiveServer2, table: str, settings: dict[str, str]
) -> None:
    for query in (f"SELECT * FROM {table} WHERE id > 0", f"SELECT count(*) FROM {table}"):
        with pytest.raises(Exception, match=r"(?s)table of segments|SegmentInputFormat|code 2"):
            print(hiveserver2.query(query, settings))


def test_writes_are_refused(hiveserver2: RunningHiveServer2, table: str) -> None:
    with pytest.raises(Exception, match="is a table of segments"):
        hiveserver2.query(f"INSERT INTO {table} VALUES (3)")
    with pytest.raises(Exception, match="skipbridge table create"):
        hiveserver2.query(
            f"CREATE EXTERNAL TABLE {SCHEMA}.u (id int) "
            "STORED BY 'io.skipbridge.hive.SegmentStorageHandler'"
        )
    assert [row[0] for row in hiveserver2.query(f"DESCRIBE {table}")] == ["id"]
