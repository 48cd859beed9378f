"""Totals of a table that clients are told: Spark decides by them whether it broadcasts a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bridge.kernel.types import BIGINT, INTEGER
from bridge.table.model import CatalogTable, Column, TableName
from tests.support.iceberg_door import JAVA, TABLE, open_door
from tests.support.lake import NAME, Lake

SPARK = "spark.sql.statistics"
TIB = 1 << 40


@dataclass
class Described(Lake):
    """A lake whose metastore holds statistics."""

    properties: dict[str, str] = field(default_factory=dict)

    def table(self, name: TableName = NAME, age: float = 0.0) -> CatalogTable:
        return replace(super().table(name, age), properties=self.properties)


def totals(lake: Lake) -> tuple[int, int]:
    """Rows and bytes."""
    with open_door(lake, "live") as door:
        found = door.get(TABLE, JAVA).json()["metadata"]
    told = found["snapshots"][0]["summary"]
    return int(told["total-records"]), int(told["total-files-size"])


@pytest.mark.parametrize(
    ("partitioned", "properties", "wanted"),
    [
        (False, {}, (TIB // 64, TIB)),
        (False, {"numRows": "7", "totalSize": "1000"}, (7, 1000)),
        (False, {"numRows": "-1", "totalSize": "6400"}, (100, 6400)),
        (False, {"numRows": "0", "totalSize": "0"}, (TIB // 64, TIB)),  # it keeps none
        (False, {"numRows": "100"}, (100, 6400)),
        (False, {"numRows": "x", "totalSize": "nan"}, (TIB // 64, TIB)),
        (False, {"numRows": "1e30", "totalSize": "1e30"}, (2**56, 2**56)),
        # Of a partitioned table Hive's own may be anything.
        (True, {"numRows": "7", "totalSize": "1000"}, (TIB // 64, TIB)),
        (True, {f"{SPARK}.numRows": "8", f"{SPARK}.totalSize": "2000"}, (8, 2000)),
        (True, {f"{SPARK}.totalSize": "2000", "numRows": "7"}, (31, 2000)),
    ],
)
def test_without_an_index_the_metastore_tells(
    partitioned: bool, properties: dict[str, str], wanted: tuple[int, int], tmp_path: Path
) -> None:
    keys = (Column("k", INTEGER),) if partitioned else ()
    lake = Described(tmp_path, (Column("id", BIGINT),), keys, properties=properties)
    values: tuple[str, ...] = ("1",) if partitioned else ()
    lake.partition_values = [values]
    path = lake.write("f.parquet", {"id": [1, 2, 3]}, values)
    assert totals(lake) == wanted
    lake.build()
    assert totals(lake) == (3, path.stat().st_size)


def test_the_cost_of_opening_a_file_follows_the_sizes(tmp_path: Path) -> None:
    def cost(**properties: str) -> int:
        lake = Described(tmp_path, (Column("id", BIGINT),), properties=properties)
        with open_door(lake, "live") as door:
            found = door.get(TABLE, JAVA).json()["metadata"]
        return int(found["properties"]["read.split.open-file-cost"])

    assert cost() == 4 << 20
    assert cost(totalSize=str(1 << 30), numFiles="10") == 4 << 20
    assert cost(totalSize=str(1 << 30), numFiles="1024") == 1 << 20
    assert cost(totalSize=str(1 << 20), numFiles="1024") == 64 << 10
