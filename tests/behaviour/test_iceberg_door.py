"""The HTTP door: who is let in, what is refused and why, pages, and freshness."""

from __future__ import annotations

import datetime
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests

from bridge.app.iceberg_door import _schemes
from bridge.formats.parquet import statistics, stored_file
from bridge.formats.parquet.stored_file import StoredColumn
from bridge.iceberg_rest import layout as layouts
from bridge.iceberg_rest.door import DoorLimits
from bridge.kernel.config import load
from bridge.kernel.errors import InvalidConfiguration
from bridge.kernel.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    SMALLINT,
    STRING,
    TIMESTAMP,
    Field,
    Type,
    array,
    char,
    decimal,
    map_of,
    struct,
)
from bridge.table.model import CatalogTable, Column, TableName
from tests.support.iceberg_door import JAVA, PYICEBERG, TABLE, OpenDoor, open_door, over, ten_files
from tests.support.lake import Lake, age

HERE = frozenset({"127.0.0.1"})
DAY = datetime.date(2024, 3, 1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return ten_files(tmp_path)


@pytest.fixture
def door(lake: Lake) -> Iterator[OpenDoor]:
    with open_door(lake) as opened:
        yield opened


# The catalog


def test_the_catalogue(door: OpenDoor) -> None:
    config = door.get("/v1/config?warehouse=x").json()
    assert config["overrides"] == {"scan-planning-mode": "server"}
    assert all("/v1/{prefix}/" in each for each in config["endpoints"])
    assert door.get("/v1/namespaces").json() == {"namespaces": [["db"]]}
    assert door.get("/v1/namespaces?parent=db").json() == {"namespaces": []}
    listed = door.get("/v1/namespaces/db/tables").json()
    assert listed == {"identifiers": [{"namespace": ["db"], "name": "t"}]}
    for path, status in (
        ("/v1/namespaces/db", 204),
        ("/v1/namespaces/no", 404),
        (TABLE, 204),
        ("/v1/namespaces/db/tables/no", 404),
    ):
        assert requests.head(door.url + path, timeout=10).status_code == status, path
    assert door.get("/v1/namespaces/no/tables").json()["error"]["type"] == (
        "NoSuchNamespaceException"
    )
    for path in (TABLE, "/v1/namespaces"):
        assert requests.delete(door.url + path, timeout=10).status_code == 405
    assert requests.post(f"{door.url}/v1/namespaces", json={}, timeout=10).status_code == 405


def test_a_table_that_is_unchanged_is_not_sent_again(door: OpenDoor) -> None:
    answer = door.get(TABLE, JAVA)
    again = door.get(TABLE, {**JAVA, "If-None-Match": answer.headers["ETag"]})
    assert answer.status_code == 200 and again.status_code == 304 and not again.content


# Who is let in


def test_another_host_is_refused(door: OpenDoor) -> None:
    for host in ("evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "[::1]:80"):
        for path in ("/v1/config", "/healthz", "/readyz"):
            answer = door.get(path, {"Host": host})
            assert answer.status_code in (400, 421), (host, answer.text)
    assert door.get("/healthz").text == door.get("/readyz").text == "ok\n"


def test_only_the_token_of_the_file_opens(lake: Lake) -> None:
    with open_door(lake, limits=DoorLimits(HERE, token="secret")) as door:
        for given in (None, "Bearer None", "Bearer ", "Bearer secret2", "Basic secret", "secret"):
            headers = {} if given is None else {"Authorization": given}
            for path in ("/v1/config", "/v1/namespaces", TABLE):
                assert door.get(path, headers).status_code == 401, given
            assert door.post(f"{TABLE}/plan", {}, headers).status_code == 401
        assert door.get(TABLE, {"Authorization": "Bearer secret"}).status_code == 200
        assert door.catalog(token="secret").load_table("db.t").scan().count() == 100


def test_limits_are_said(lake: Lake) -> None:
    limits = DoorLimits(HERE, body=1000, waiting=2)
    with open_door(lake, limits=limits) as door:
        wide = {"type": "in", "term": "id", "values": list(range(1000))}
        answer = door.plan(filter=wide)
        assert answer.status_code == 413 and "service.http_max_body" in answer.text
        entered, leave = threading.Barrier(3), threading.Event()
        schemas = door.planner.catalog.schemas

        def slow() -> list[str]:
            entered.wait(20)
            leave.wait(20)
            return schemas()

        door.planner.catalog.schemas = slow  # type: ignore[method-assign]
        callers = [threading.Thread(target=door.get, args=("/v1/namespaces",)) for _ in range(2)]
        for caller in callers:
            caller.start()
        entered.wait(20)
        busy = door.get("/v1/namespaces")
        assert busy.status_code == 429 and busy.headers["Retry-After"] == "1"
        assert door.get("/healthz").status_code == 200
        leave.set()
        for caller in callers:
            caller.join()


def test_a_slow_client_keeps_nobody_out(lake: Lake) -> None:
    with open_door(lake, limits=DoorLimits(HERE, waiting=2)) as door, ExitStack() as stack:
        port = int(door.url.rpartition(":")[2])
        for _ in range(8):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            head = f"POST {TABLE}/plan HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{{"
            slow.sendall(head.encode())
        assert len(door.files()) == 10


def test_clients_are_told_their_own_scheme(lake: Lake) -> None:
    with open_door(lake, schemes={"file": "elsewhere", "s3": "s3a"}) as door:
        task = door.plan().json()["file-scan-tasks"][0]
        assert task["data-file"]["file-path"].startswith(f"elsewhere://{lake.root}")
        assert door.get(TABLE, JAVA).json()["metadata"]["location"].startswith("elsewhere:///")


def test_schemes_that_are_none_are_refused() -> None:
    assert _schemes(load({"service.http_schemes": "s3=s3a, abfs = abfss"})) == {
        "s3": "s3a",
        "abfs": "abfss",
    }
    for text in ("s3", "s3=", "=x", "s3=a/b", "s3=s3a=x"):
        with pytest.raises(InvalidConfiguration, match=r"service\.http_schemes"):
            _schemes(load({"service.http_schemes": text}))


def test_a_file_whose_name_json_cannot_say(lake: Lake) -> None:
    path = lake.path("f3.parquet")
    path.rename(path.with_name(os.fsdecode(b"\xff.parquet")))
    with open_door(lake, "live") as door:
        answer = door.plan()
        assert answer.status_code == 400 and "UTF-8" in answer.text, answer.text


def test_no_footer_of_an_indexed_file_is_read(lake: Lake) -> None:
    with open_door(lake, footers=0) as door:
        assert len(door.files()) == 10
    for i in range(10):
        lake.path(f"f{i}.parquet").unlink()
    with open_door(lake, footers=0) as door:  # the files themselves are not asked for
        assert len(door.files()) == 10


def test_the_footers_of_one_plan_are_bounded(lake: Lake) -> None:
    for i in range(4):
        age(lake.write(f"new{i}.parquet", {"id": [1], "name": ["x"]}), 1.0)
    with open_door(lake, "live", footers=3) as door:
        answer = door.plan()
        assert answer.status_code == 400 and "service.http_footers" in answer.text
        lake.path("new0.parquet").unlink()
        assert len(door.files()) == 13


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"filter": ' + b'{"type":"not","child":' * 5000 + b"true" + b"}" * 5001,
        b'{"snapshot-id": "x"}',
        b'{"snapshot-id": -1}',
        b'{"min-rows-requested": 1.5}',
        b'{"start-snapshot-id": 1, "end-snapshot-id": 2}',
    ],
)
def test_bad_bodies_are_refused(door: OpenDoor, body: bytes) -> None:
    answer = requests.post(f"{door.url}{TABLE}/plan", data=body, headers=JAVA, timeout=30)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == 400


def test_what_is_not_understood_keeps_every_file(door: OpenDoor) -> None:
    odd: list[Any] = [
        {"type": "apply", "function": "f"},
        {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "id"}, "value": 1},
        {"type": "eq", "term": "nowhere", "value": 1},
        {"type": "eq", "term": "id", "value": "x"},
        {"type": "eq", "term": "id", "value": None},
        {"type": ["eq"], "term": "id", "value": 5},
        {"type": "in", "term": "id", "values": 5},
        "eq",
        17,
    ]
    for filter in odd:
        for whole in (filter, {"type": "not", "child": filter}):
            assert len(door.files(filter=whole)) == 10, whole
        both = {"type": "and", "left": filter, "right": over(85)}
        assert door.files(filter=both) == {"f8.parquet", "f9.parquet"}


def test_long_filters(door: OpenDoor) -> None:
    many = {"type": "in", "term": "id", "values": list(range(90, 100_000))}
    assert door.files(filter=many) == {"f9.parquet"}
    chain = over(85)
    for _ in range(400):
        chain = {"type": "or", "left": chain, "right": over(95)}
    assert door.files(filter=chain) == {"f8.parquet", "f9.parquet"}


# What is refused, by name


def refusal(lake: Lake, headers: dict[str, str] | None = None) -> str:
    with open_door(lake) as door:
        answer = door.get(TABLE, headers or JAVA)
        if answer.status_code == 200:
            answer = door.plan(headers or JAVA)
        if answer.status_code == 200:
            return ""
        assert answer.status_code == 400, answer.text
        message: str = answer.json()["error"]["message"]
        return message


def of_column(root: Path, type: Type, values: pa.Array, **options: Any) -> Lake:
    lake = Lake(root, (Column("id", BIGINT), Column("odd", type)))
    data = pa.table({"id": pa.array(range(len(values)), pa.int64()), "odd": values})
    lake.write("f.parquet", data, **options)
    lake.build()
    return lake


_NOON = [datetime.datetime(2024, 3, 1, 12)]
READ: dict[str, tuple[Type, pa.Array]] = {
    "smaller integers": (BIGINT, pa.array([1], pa.int32())),
    "decimals": (decimal(10, 2), pa.array([1], pa.decimal128(10, 2))),
    "times in UTC": (TIMESTAMP, pa.array(_NOON, pa.timestamp("us", "UTC"))),
    "times without zone": (TIMESTAMP, pa.array(_NOON, pa.timestamp("us"))),
    "lists": (array(BIGINT), pa.array([[1, 2]])),
    "maps": (map_of(STRING, BIGINT), pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))),
    "structs": (struct(Field("x", BIGINT)), pa.array([{"x": 1}])),
}
JAVA_ALONE = ("milliseconds in UTC", "milliseconds without zone", "nanoseconds", "small unsigned")
"""Refused to Java and to unknown clients; PyIceberg reads them rightly."""
REFUSED: dict[str, tuple[Type, pa.Array]] = {
    "unsigned": (BIGINT, pa.array([1], pa.uint32())),
    "small unsigned": (INTEGER, pa.array([1], pa.uint16())),
    "unsigned of as many bits": (SMALLINT, pa.array([1], pa.uint16())),
    "unsigned in a list": (array(BIGINT), pa.array([[1]], pa.list_(pa.uint32()))),
    "milliseconds in UTC": (TIMESTAMP, pa.array(_NOON, pa.timestamp("ms", "UTC"))),
    "milliseconds without zone": (TIMESTAMP, pa.array(_NOON, pa.timestamp("ms"))),
    "nanoseconds": (TIMESTAMP, pa.array(_NOON, pa.timestamp("ns"))),
    "times of the day": (INTEGER, pa.array([datetime.time(1)], pa.time32("ms"))),
    "a smaller type in the table": (INTEGER, pa.array([1], pa.int64())),
    "text as bytes": (STRING, pa.array([b"a"])),
    "another scale": (decimal(10, 3), pa.array([1], pa.decimal128(10, 2))),
    "a number for a text": (STRING, pa.array([1])),
    "a struct for a number": (BIGINT, pa.array([{"x": 1}])),
    "char": (char(3), pa.array(["abc"])),
    "only NULL": (BIGINT, pa.nulls(1)),
}


@pytest.mark.full
@pytest.mark.parametrize("case", READ)
def test_read_rightly(case: str, tmp_path: Path) -> None:
    lake = of_column(tmp_path, *READ[case])
    with open_door(lake) as door:
        found = door.table().scan().to_arrow()["odd"].to_pylist()
        wanted = READ[case][1].to_pylist()
        assert str(found).replace("zoneinfo.ZoneInfo(key='UTC')", "UTC") == str(wanted).replace(
            "<UTC>", "UTC"
        ).replace("zoneinfo.ZoneInfo(key='UTC')", "UTC")


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_read_wrongly_is_refused_by_name(case: str, tmp_path: Path) -> None:
    lake = of_column(tmp_path, *REFUSED[case])
    with open_door(lake) as door:
        clients = [JAVA, {"User-Agent": "curl"}]
        for client in clients if case in JAVA_ALONE else [*clients, PYICEBERG]:
            loaded = door.get(TABLE, client)
            answer = door.plan(client) if loaded.status_code == 200 else loaded
            assert answer.status_code == 400 and "the column odd" in answer.text, client


def test_lists_of_old_levels_are_refused(tmp_path: Path) -> None:
    values = pa.array([[1]])
    lake = of_column(tmp_path, array(BIGINT), values, use_compliant_nested_type=False)
    assert refusal(lake) == ""  # three levels, with another name
    found = layouts._doubt(
        layouts._columns(lake.table()),
        StoredColumn(("odd", "element"), layouts.PhysicalType("INT64", "int", 64), False),
        frozenset(),
        layouts.Client.PYICEBERG,
    )
    assert "old levels" in found


def test_field_ids_of_a_file_are_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("a", BIGINT), Column("b", BIGINT)))
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(id)})
        for name, id in (("a", 1), ("b", 2))
    ]
    lake.write("f.parquet", pa.table({"a": [1], "b": [2]}, pa.schema(fields)))
    lake.build()
    assert "field ids" in refusal(lake)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("a", BIGINT),))
    lake.write("f.parquet", pa.table([pa.array([1]), pa.array([2])], ["a", "A"]))
    lake.build()
    assert "a and A" in refusal(lake)


def test_other_tables_are_refused_with_the_reason() -> None:
    def table(**changes: Any) -> CatalogTable:
        told: dict[str, Any] = {
            "name": TableName("db", "t"),
            "columns": (Column("a", BIGINT),),
            "partition_keys": (),
            "location": "file:///t",
        }
        return CatalogTable(**(told | changes))

    for changes, reason in (
        ({"format": "orc"}, "its files are orc"),
        ({"table_format": "segments"}, "its table format is segments"),
        ({"partition_keys": (Column("k", decimal(5, 2)),)}, "the partition key k is decimal"),
        ({"partition_keys": (Column("k", DOUBLE),)}, "the partition key k is double"),
        ({"columns": (Column("x.y", BIGINT),)}, "'x.y' has a dot"),
        ({"columns": (Column("a", BIGINT), Column("A", BIGINT))}, "two columns a"),
        ({"columns": (Column("_POS", BIGINT),)}, "has a column _POS of its own"),
        ({"partition_keys": tuple(Column(f"k{i}", INTEGER) for i in range(7))}, "7 keys"),
    ):
        with pytest.raises(layouts.UnsupportedTable, match=reason):
            layouts.layout_of(table(**changes))


def test_columns_of_one_id_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "_hashed", lambda path: 7)
    columns = (Column("a", BIGINT), Column("b", BIGINT))
    with pytest.raises(layouts.UnsupportedTable, match="the columns a and b have one id"):
        layouts.layout_of(CatalogTable(TableName("db", "t"), columns, (), "file:///t"))


def test_an_id_depends_on_the_path_alone() -> None:
    one = (Column("A", BIGINT), Column("s", struct(Field("X", BIGINT), Field("l", array(BIGINT)))))
    other = (Column("s", struct(Field("l", array(BIGINT)), Field("x", STRING))), Column("a", DATE))
    found = []
    for columns in (one, other):
        made = layouts.layout_of(CatalogTable(TableName("db", "t"), columns, (), "file:///t"))
        by_name = {f["name"]: f for f in made.fields}
        below = {f["name"]: f for f in by_name["s"]["type"]["fields"]}
        element = below["l"]["type"]["element-id"]
        found.append((by_name["a"]["id"], by_name["s"]["id"], below["x"]["id"], element))
    assert found[0] == found[1] and len(set(found[0])) == 4
    assert all(0 < id < 2**30 for id in found[0])


def test_keys_by_client(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("id", BIGINT),), (Column("day", DATE),))
    lake.partition_values = [(str(DAY),), (None,)]
    for i, values in enumerate(lake.partition_values):
        lake.write(f"f{i}.parquet", {"id": [i]}, values)
    lake.build()
    with open_door(lake) as door:
        days = {
            client: [t["data-file"]["partition"] for t in door.plan(headers).json()[_TASKS]]
            for client, headers in (("java", JAVA), ("pyiceberg", PYICEBERG))
        }
        assert sorted(days["java"]) == [[], ["2024-03-01"]]
        assert sorted(days["pyiceberg"]) == [[], [19783]]
        other = door.get(TABLE, {"User-Agent": "x"})
        assert other.status_code == 400 and "column day" in other.text
        found = door.table().scan(row_filter="day = '2024-03-01'").to_arrow()
        assert found.to_pylist() == [{"id": 0, "day": DAY}]


_TASKS = "file-scan-tasks"


def test_texts_of_keys_that_look_like_other_types(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("id", BIGINT),), (Column("k", STRING),))
    texts = ("5", "true", "2024-03-01", "01", "1.5", "null", "2024-03-01T12:00:00")
    lake.partition_values = [(text,) for text in texts]
    for i, values in enumerate(lake.partition_values):
        lake.write(f"f{i}.parquet", {"id": [i]}, values)
    lake.build()
    with open_door(lake) as door:
        found = door.table().scan().to_arrow().sort_by("id")
        assert found["k"].to_pylist() == list(texts)
        for i, text in enumerate(texts):
            some = door.table().scan(row_filter=f"k = '{text}'").to_arrow()
            assert some["id"].to_pylist() == [i], text


def test_times_of_the_old_calendar_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a writer may have used it, and bounds show times before 1900."""
    days = pa.array([datetime.date(1800, 1, 1), DAY])
    lake = of_column(tmp_path, DATE, days)
    assert refusal(lake) == ""
    for module in (stored_file, statistics):
        monkeypatch.setattr(module, "hybrid_calendar", lambda end: True)
    lake = of_column(tmp_path / "old", DATE, days)
    assert "the column odd has times of the old calendar" in refusal(lake)
    assert refusal(of_column(tmp_path / "new", DATE, days[1:])) == ""


def test_a_key_that_does_not_parse_is_refused_by_name(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("id", BIGINT),), (Column("k", INTEGER),))
    lake.partition_values = [("x",), ("1",)]
    for i, values in enumerate(lake.partition_values):
        lake.write(f"f{i}.parquet", {"id": [i]}, values)
    lake.build()
    assert "the partition 'k=x'" in refusal(lake)


def test_a_file_with_a_column_of_its_key(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("id", BIGINT),), (Column("k", INTEGER),))
    lake.partition_values = [("1",), (None,)]
    for i, values in enumerate(lake.partition_values):
        lake.write(f"f{i}.parquet", {"id": [i], "k": [7]}, values)
    lake.build()
    with open_door(lake) as door:
        found = door.table().scan().to_arrow().sort_by("id").to_pylist()
        assert found == [{"id": 0, "k": 1}, {"id": 1, "k": None}]


def test_spellings_and_undeclared_columns(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("id", BIGINT), Column("st", struct(Field("x", BIGINT)))))
    lake.write("a.parquet", {"iD": [1], "ST": [{"X": 5, "more": [1]}], "Other": [{"y": [1.5]}]})
    lake.write("b.parquet", {"Id": [2]})
    lake.build()
    with open_door(lake) as door:
        refused = door.plan()  # the index does not say what is below a list
        found = door.table().scan().to_arrow().sort_by("id").to_pylist()
        assert refused.status_code == 200, refused.text
        assert found == [{"id": 1, "st": {"x": 5}}, {"id": 2, "st": None}]


def test_without_an_index_a_refused_file_teaches(tmp_path: Path) -> None:
    """What a client must know of names and zones is learnt from the files that were read."""
    lake = Lake(tmp_path, (Column("Abc", BIGINT), Column("ts", TIMESTAMP)))
    path = lake.path("f.parquet")
    moments = pa.array(_NOON, pa.timestamp("us"))
    pq.write_table(pa.table({"aBc": [1], "ts": moments}), path)
    os.utime(path, (1e9, 1e9))
    with open_door(lake, "live") as door:
        assert "the column" in door.plan().json()["error"]["message"]
        found = door.table().scan().to_arrow().to_pylist()
        assert found == [{"abc": 1, "ts": _NOON[0]}]
