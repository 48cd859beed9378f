"""What clients make of a plan: names of files, literals of other types, spellings."""

from __future__ import annotations

import base64
import datetime
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import requests
from pyiceberg.exceptions import BadRequestError
from pyiceberg.expressions import (
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Not,
)

from bridge.iceberg_rest import plans, tables
from bridge.iceberg_rest.clients import Client
from bridge.iceberg_rest.paths import require_whole
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import (
    BIGINT,
    DATE,
    FLOAT,
    INTEGER,
    TIMESTAMP,
    Field,
    array,
    decimal,
    struct,
)
from bridge.table.model import CatalogTable, Column, TableName
from tests.support.iceberg_door import JAVA, PYICEBERG, OpenDoor, open_door
from tests.support.lake import NAME, Lake

# Names of files


@pytest.mark.parametrize("name", ["a#2", "a?2", "a\n", "a\t", "a\r2"])
def test_a_name_that_the_client_would_cut_short(name: str, tmp_path: Path) -> None:
    """It would read the file ``a`` twice."""
    lake = Lake(tmp_path, (Column("id", BIGINT),))
    lake.write("a", {"id": [1]})
    lake.write(name, {"id": [2]})
    lake.build()
    with open_door(lake) as door:
        with pytest.raises(BadRequestError, match="cut it short"):
            door.table().scan().to_arrow()
        assert door.table().scan("id = 1").to_arrow()["id"].to_pylist() == [1]
        assert door.files() == {"a", name}  # Java reads it through Hadoop


def test_names_that_clients_read() -> None:
    for name in ("a b", "%20", "é", "+", "[x]", "a:b", "a;b", "\\"):
        for client in Client:
            require_whole(client, [f"s3://bucket/{name}", f"file:///{name}"])
    for client, path in (
        (Client.JAVA, "s3://bucket/a#b"),
        (Client.JAVA, "abfss://c@a/a?b"),
        (Client.PYICEBERG, "hdfs://nn/a;b"),
        (Client.OTHER, "file:///a#b"),
    ):
        with pytest.raises(UnsupportedTable, match="cut it short"):
            require_whole(client, ["file:///a", path])
    require_whole(Client.JAVA, ["hdfs://nn/a#b", "file:///a?b"])


# Literals of other types


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    """Two files of one row; of the first all but the id is NULL."""
    kinds = (("n", INTEGER), ("f", FLOAT), ("dt", DATE), ("dec", decimal(10, 2)))
    lake = Lake(
        tmp_path_factory.mktemp("numbers"),
        (Column("id", BIGINT), *(Column(name, kind) for name, kind in kinds)),
    )
    types = (pa.int32(), pa.float32(), pa.date32(), pa.decimal128(10, 2))
    values: list[Any] = [5, 0.5, datetime.date(2024, 3, 1), Decimal("12.35")]
    for i, row in enumerate(([None] * 4, values)):
        data = {n: pa.array([v], t) for (n, _), v, t in zip(kinds, row, types, strict=True)}
        lake.write(f"f{i}.parquet", pa.table({"id": [i], **data}))
    lake.build()
    with open_door(lake) as door:
        yield door


@pytest.mark.parametrize(
    ("filter", "wanted"),
    [
        # A double is rounded to the scale of a decimal.
        (EqualTo("dec", 12.345), [1]),
        (LessThanOrEqual("dec", 12.345), [1]),
        (GreaterThan("dec", 12.344), [1]),
        (Not(LessThan("dec", 12.354)), [1]),
        # A comparison that holds for every value of the type holds for NULL.
        (GreaterThan("n", -(2**31) - 1), [0, 1]),
        (LessThanOrEqual("n", 2**31), [0, 1]),
        (Not(GreaterThan("n", 2**40)), [0, 1]),
        (LessThan("f", 1e300), [0, 1]),
        (GreaterThanOrEqual("dt", -(2**31) - 1), [0, 1]),
        (GreaterThan("n", 2**31), []),
        (EqualTo("n", 2**31), []),
    ],
)
def test_literals_of_other_types(
    numbers: OpenDoor, filter: BooleanExpression, wanted: list[int]
) -> None:
    found = numbers.table().scan(row_filter=filter).to_arrow()["id"].to_pylist()
    assert sorted(found) == wanted


# Spellings


def test_a_struct_in_two_spellings_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("id", BIGINT), Column("st", struct(Field("x", BIGINT)))))
    columns = [pa.array([1]), pa.array([{"x": 1}]), pa.array([{"y": 2}])]
    lake.write("f.parquet", pa.table(columns, ["id", "st", "ST"]))
    lake.build()
    for headers in (JAVA, PYICEBERG):
        with open_door(lake) as door:
            answer = door.plan(headers)
            assert answer.status_code == 400 and "the columns st and ST" in answer.text


def test_columns_that_hive_finds_by_position(tmp_path: Path) -> None:
    class Positional(Lake):
        def table(self, name: TableName = NAME, age: float = 0.0) -> CatalogTable:
            properties = {"parquet.column.index.access": "TRUE"}
            return replace(super().table(name, age), properties=properties)

    lake = Positional(tmp_path, (Column("id", BIGINT),))
    lake.write("f.parquet", {"other": [1]})
    with open_door(lake, "live") as door:
        answer = door.get("/v1/namespaces/db/tables/t", JAVA)
        assert answer.status_code == 400 and "by their places" in answer.text


# What clients know of a table


def test_a_client_that_does_not_say_what_it_holds(tmp_path: Path) -> None:
    """Iceberg 1.11: it may have loaded the table before others met its files, and read NULL."""
    lake = Lake(tmp_path, (Column("someid", BIGINT), Column("ts", TIMESTAMP)))
    noon = pa.array([datetime.datetime(2024, 3, 1, 12)], pa.timestamp("us"))
    for name, data in (("name.parquet", {"someId": [1]}), ("zone.parquet", {"ts": noon})):
        path = lake.write(name, data)
        with open_door(lake, "live") as door:
            refused = [door.plan() for _ in range(2)]
            assert [answer.status_code for answer in refused] == [400, 400]
            assert "build the table's index" in refused[1].text
            table = door.get("/v1/namespaces/db/tables/t", JAVA).json()["metadata"]
            assert door.files(**{"snapshot-id": table["current-snapshot-id"]}) == {name}
        path.unlink()
    lake.write("f.parquet", {"someId": [1]})
    lake.build()
    with open_door(lake, "live") as door:
        assert door.files() == {"f.parquet"}


# Tables that are made again


@dataclass
class Dated(Lake):
    """A lake whose table can be made again."""

    created: int = 1

    def table(self, name: TableName = NAME, age: float = 0.0) -> CatalogTable:
        return replace(super().table(name, age), created=self.created)


def test_a_table_that_is_made_again_has_no_past(tmp_path: Path) -> None:
    """Its times may have no zone, though those of the table before had one."""

    lake = Dated(tmp_path, (Column("ts", TIMESTAMP),))
    noon = datetime.datetime(2024, 3, 1, 12)
    with open_door(lake, "live") as door:
        lake.write("old.parquet", {"ts": pa.array([noon], pa.timestamp("us", "UTC"))})
        held = door.table()
        assert held.scan().count() == 1
        lake.path("old.parquet").unlink()
        lake.write("new.parquet", {"ts": pa.array([noon], pa.timestamp("us"))})
        lake.created = 2
        door.plan()  # no index says what it holds, the first plan does
        assert door.table().scan().to_arrow()["ts"].to_pylist() == [noon]
        old = door.plan(PYICEBERG, **{"snapshot-id": held.metadata.current_snapshot_id})
        assert old.status_code == 400 and "REFRESH TABLE" in old.text


def test_the_memory_of_tables_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MOST_COLUMNS", 100)
    lake = Dated(tmp_path, tuple(Column(f"c{i}", BIGINT) for i in range(30)))
    lake.write("f.parquet", {"c0": [1]})
    with open_door(lake, "live") as door:
        for lake.created in range(20):
            assert door.table().scan().count() == 1
        layouts = door.plans._tables._layouts
        assert 0 < layouts.weight <= 100


# What is asked for


def test_forged_plan_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_PAGE_FILES", 1)
    lake = Lake(tmp_path, (Column("id", BIGINT),))
    for i in range(3):
        lake.write(f"f{i}.parquet", {"id": [i]})
    lake.build()
    with open_door(lake) as door:
        token = door.plan().json()["plan-tasks"][0]
        told = json.loads(base64.urlsafe_b64decode(token))
        odd: list[Any] = ["x", [], {}, 1.5, True]
        for change in [{name: value} for name in "gldtcfhp" for value in odd]:
            if change == {"p": True}:
                continue  # the first page
            forged = json.dumps(told | {"d": "0"} | change).encode()
            body = {"plan-task": base64.urlsafe_b64encode(forged).decode()}
            answer = door.post("/v1/namespaces/db/tables/t/tasks", body, JAVA)
            assert answer.status_code == 404, (change, answer.text)


def test_a_filter_is_packed_once_for_all_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long filter makes many small pages; their tokens are no longer than a page."""
    packed: list[int] = []

    class Watched:
        decompressobj, error = staticmethod(zlib.decompressobj), zlib.error

        def compress(self, data: bytes) -> bytes:
            packed.append(len(data))
            return zlib.compress(data)

    monkeypatch.setattr(plans, "zlib", Watched())
    monkeypatch.setattr(plans, "_PAGE_BYTES", 10_000)
    lake = Lake(tmp_path, (Column("id", BIGINT),))
    for i in range(6):
        lake.write(f"f{i}.parquet", {"id": [i]})
    with open_door(lake, "live") as door:  # no index tells which values a file may hold
        filter = {"type": "in", "term": "id", "values": [*range(2000)]}
        answer = door.plan(filter=filter).json()
        assert len(answer["plan-tasks"]) == 5 and len(packed) == 1
        assert sum(map(len, answer["plan-tasks"])) < 10_000
        files = {task["data-file"]["file-path"] for task in answer["file-scan-tasks"]}
        for token in answer["plan-tasks"]:
            page = door.post("/v1/namespaces/db/tables/t/tasks", {"plan-task": token}, JAVA)
            files |= {task["data-file"]["file-path"] for task in page.json()["file-scan-tasks"]}
        assert len(files) == 6


def test_no_path_leads_to_another_host(tmp_path: Path) -> None:
    with open_door(Lake(tmp_path, (Column("id", BIGINT),))) as door:
        answer = requests.get(
            f"{door.url}/v1/config/", headers={"Host": "evil.example"}, allow_redirects=False
        )
        assert answer.status_code == 404


def test_a_part_of_a_list_is_selected(tmp_path: Path) -> None:
    lists = array(struct(Field("x", BIGINT)))
    lake = Lake(tmp_path, (Column("c", BIGINT), Column("l", lists)))
    lake.write("f.parquet", {"c": [1]})
    lake.build()
    with open_door(lake) as door:
        assert door.plan(PYICEBERG, select=["c", "lx", "other.l"]).status_code == 200
        for name in ("l", "L.element.x", "*"):
            refused = door.plan(PYICEBERG, select=["c", name])
            assert refused.status_code == 400 and "the column l is" in refused.text, name
