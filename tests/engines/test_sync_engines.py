"""Spark, Hive and stock Trino read a synced table alike."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import UNKNOWN
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.table import TableSync
from bridge.table.model import Column, TableName
from bridge.table.partition import NULL_MARKER
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.stock_readers import Rows, ask_spark, ask_trino

pytestmark = pytest.mark.full

NAME = TableName("alike", "sales")
QUERIES = (
    "SELECT id, name, price, city, day FROM {} ORDER BY id",
    "SELECT city, count(*), sum(id) FROM {} GROUP BY city ORDER BY city",
    "SELECT count(*) FROM {} WHERE city = 'x/y z' AND id > 1",
    "SELECT id FROM {} WHERE city IS NULL ORDER BY id",
    "SELECT count(*) FROM {} WHERE day = 2",
)
_ids = itertools.count()


def write(root: Path, directory: str, columns: dict[str, pa.Array]) -> None:
    path = root / directory
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path / f"f{next(_ids)}.parquet")


def sync(running: RunningMetastore, name: TableName, root: Path, **options: object) -> SyncReport:
    request = SyncRequest(name, str(root), **options)  # type: ignore[arg-type]
    with running.client() as client:
        return TableSync(client, LocalStorage(), request, SyncSettings()).run()


def test_three_engines_read_the_synced_table_alike(
    metastore_401: RunningMetastore,
    hiveserver2: RunningHiveServer2,
    stock_trino: int,
    tmp_path: Path,
) -> None:
    root = tmp_path / "sales"
    for i, city in enumerate(("plain", "x%2Fy z", "50%25", "été", "__HIVE_DEFAULT_PARTITION__")):
        for day in (1, 2):
            ids = pa.array([i * 10 + day, i * 10 + day + 5], pa.int32())
            columns = {"Id": ids, "name": pa.array(["a", None])}
            write(root, f"city={city}/day={day}", columns)
    assert len(sync(metastore_401, NAME, root).added) == 10
    # A wider type, a new column, a partition that goes and one that comes.
    shutil.rmtree(root / "city=plain" / "day=1")
    more = {"id": pa.array([2**40]), "price": pa.array([1.5]), "name": pa.array(["b"])}
    write(root, "city=plain/day=3", more)
    report = sync(metastore_401, NAME, root, drop_now=True)
    assert report.table_changes == ["+ column price double", "~ column id int -> bigint"]
    assert (len(report.added), len(report.dropped), len(report.updated)) == (1, 1, 9)

    queries = [q.format(NAME) for q in QUERIES]
    of_trino = ask_trino(stock_trino, queries)
    of_hive = [hiveserver2.query(q) for q in queries]
    of_spark = ask_spark(metastore_401.uri, tmp_path, queries)
    assert len(of_trino[0]) == 19 and (2**40, "b", 1.5, "plain", 3) in of_trino[0]
    assert of_trino[2] == [(4,)] and len(of_trino[3]) == 4

    # NULL of a text key is to Hive, in whatever way it came there, the text of its marker.
    assert of_hive[3] == []
    assert (None, 4, 176) in of_trino[1] and (NULL_MARKER, 4, 176) in of_hive[1]

    def ordered(answers: list[Rows]) -> list[Rows]:  # NULL comes first here, last there
        plain = [[[None if v == NULL_MARKER else v for v in row] for row in a] for a in answers]
        return [sorted(rows, key=repr) for rows in plain]

    assert ordered(of_trino) == ordered(of_spark)
    del of_trino[3], of_hive[3]
    assert ordered(of_trino) == ordered(of_hive)


def test_dates_in_slashes_are_read_alike(
    metastore_401: RunningMetastore,
    hiveserver2: RunningHiveServer2,
    stock_trino: int,
    tmp_path: Path,
) -> None:
    root = tmp_path / "events"
    for day in (1, 2, 3):
        write(root, f"2024/03/0{day}", {"id": pa.array([day])})
    name = TableName("alike", "events")
    keys = (Column("dt", UNKNOWN),)
    assert len(sync(metastore_401, name, root, extractor="day", keys=keys).added) == 3
    query = f"SELECT id, CAST(dt AS varchar(10)) FROM {name} WHERE dt > DATE '2024-03-01'"
    of_trino = ask_trino(stock_trino, [query])[0]
    assert (
        sorted(of_trino)
        == sorted(hiveserver2.query(query))
        == [(2, "2024-03-02"), (3, "2024-03-03")]
    )
