"""Files that are not as the table says: other schemas, old timestamps, ranges, damage."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal, parse_hive_type
from bridge.metastore.client import MetastoreClient
from bridge.table.model import Column
from tests.engines.stack import Stack, register


@dataclass(frozen=True, slots=True)
class Made:
    """A table made for one test module."""

    directory: Path
    files: int


@pytest.fixture(scope="module")
def evolved(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Seven files, each of another past: narrower types, other case, missing and nested fields."""
    directory = tmp_path_factory.mktemp("evolved")
    moment = dt.datetime(2013, 5, 1, 12)

    def write(number: int, columns: dict[str, pa.Array], **options: object) -> None:
        pq.write_table(pa.table(columns), directory / f"f{number}.parquet", **options)

    ids = lambda n: list(range(n * 10, n * 10 + 10))  # noqa: E731
    times = lambda n: [moment + dt.timedelta(days=i) for i in ids(n)]  # noqa: E731
    write(
        0,
        {"id": pa.array(ids(0), pa.int32()), "x": pa.array([i / 4 for i in ids(0)], pa.float32())},
    )
    write(
        1,
        {"ID": pa.array(ids(1), pa.int64()), "X": pa.array([i / 4 for i in ids(1)], pa.float64())},
    )
    write(
        2,
        {"id": pa.array(ids(2)), "at": pa.array(times(2), pa.timestamp("ns"))},
        use_deprecated_int96_timestamps=True,
    )
    write(3, {"id": pa.array(ids(3)), "at": pa.array(times(3), pa.timestamp("ms"))})
    write(4, {"id": pa.array(ids(4)), "at": pa.array(times(4), pa.timestamp("us", tz="UTC"))})
    write(
        5,
        {
            "id": pa.array(ids(5)),
            "money": pa.array([Decimal(i) for i in ids(5)], pa.decimal128(6, 2)),
            "st": pa.array([{"a": i} for i in ids(5)], pa.struct([("a", pa.int32())])),
        },
    )
    write(
        6,
        {
            "st": pa.array([{"b": f"s{i}", "a": i} for i in ids(6)]),
            "id": pa.array(ids(6)),
            "money": pa.array([Decimal(i) for i in ids(6)], pa.decimal128(20, 2)),
        },
    )
    columns = (
        Column("id", BIGINT),
        Column("x", DOUBLE),
        Column("at", TIMESTAMP),
        Column("money", decimal(20, 2)),
        Column("st", parse_hive_type("struct<a:bigint,b:string>")),
    )
    register(stack, "evolved", directory, columns)
    return Made(directory, 7)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 5", [5]),
        ("id = 15", [15]),
        ("id BETWEEN 8 AND 21", list(range(8, 22))),
        ("x = 1.25", [5]),
        ("x > 4.5", [19]),
        ("x IS NULL AND id < 22", [20, 21]),
        ("at = TIMESTAMP '2013-05-22 12:00:00'", [21]),
        ("at = TIMESTAMP '2013-06-01 12:00:00'", [31]),
        ("at = TIMESTAMP '2013-06-12 12:00:00'", [42]),
        ("at IS NULL AND id BETWEEN 8 AND 11", [8, 9, 10, 11]),
        ("money = 55", [55]),
        ("money > 66.50", [67, 68, 69]),
        ("st.a = 52", [52]),
        ("st.a = 63", [63]),
        ("st.b = 's63'", [63]),
        ("st.b IS NULL AND id > 57", [58, 59]),
        ("st IS NULL AND id > 47", [48, 49]),
    ],
)
def test_schema_differences(stack: Stack, evolved: Made, where: str, expected: list[int]) -> None:
    rows = stack.query(f"SELECT id FROM laws.evolved WHERE {where} ORDER BY id")
    assert [row[0] for row in rows] == expected


def test_differences_are_pruned_too(stack: Stack, evolved: Made) -> None:
    assert stack.kept_files("SELECT x FROM laws.evolved WHERE id = 15") == 1
    # INT96 has no bounds to trust (correctness 9): that file is kept, the other two are judged.
    assert stack.kept_files(
        "SELECT id FROM laws.evolved WHERE at = TIMESTAMP '2013-06-12 12:00:00'"
    ) in (2, 3)


@pytest.fixture(scope="module")
def structs(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Structs whose fields are alike: in another order, missing, in another case (rule 23)."""
    directory = tmp_path_factory.mktemp("structs")

    def write(number: int, id: int, **columns: dict[str, object]) -> None:
        held = {name: pa.array([value]) for name, value in columns.items()}
        pq.write_table(pa.table({"id": [id], **held}), directory / f"f{number}.parquet")

    write(0, 1, home={"city": "A1"}, work={"city": "B1"})
    write(1, 2, work={"city": "B2"}, home={"city": "A2"})
    write(2, 3, pickup={"lat": 1.5, "lon": 2.5})
    write(3, 4, dropoff={"lat": 3.5, "lon": 4.5})
    write(4, 5, Pickup={"LAT": 5.5, "lon": 6.5})
    city, point = parse_hive_type("struct<city:string>"), "struct<lat:double,lon:double>"
    columns = (
        Column("id", BIGINT),
        Column("home", city),
        Column("work", city),
        Column("pickup", parse_hive_type(point)),
        Column("dropoff", parse_hive_type(point)),
    )
    register(stack, "structs", directory, columns)
    return Made(directory, 5)


@pytest.mark.parametrize(
    ("where", "expected", "files"),
    [
        ("home.city = 'A2'", [2], 1),
        ("work.city = 'B1'", [1], 1),
        ("home.city = 'B2'", [], 0),
        ("pickup.lat IS NOT NULL", [3, 5], 2),
        ("dropoff.lat IS NOT NULL", [4], 1),
        ("pickup.lat IS NULL", [1, 2, 4], 3),
        ("pickup.lat > 3", [5], 1),
        ("dropoff.lon = 4.5", [4], 1),
    ],
)
def test_23_structs_that_are_alike(
    stack: Stack, structs: Made, where: str, expected: list[int], files: int
) -> None:
    sql = f"SELECT id FROM laws.structs WHERE {where} ORDER BY id"
    assert [row[0] for row in stack.query(sql)] == expected
    assert stack.kept_files(sql) == files


@pytest.fixture(scope="module")
def ranges(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Three files of about 2 MB with many row groups: the planner cuts them (see Stack)."""
    directory = tmp_path_factory.mktemp("ranges")
    noise = np.random.default_rng(5)
    for n in range(3):
        ids = pa.array(range(n * 100_000, (n + 1) * 100_000))
        table = pa.table({"id": ids, "noise": noise.integers(0, 2**62, 100_000)})
        pq.write_table(table, directory / f"f{n}.parquet", row_group_size=7_000)
    register(stack, "ranges", directory, (Column("id", BIGINT), Column("noise", BIGINT)))
    return Made(directory, 3)


def test_ranges_lose_and_double_nothing(stack: Stack, ranges: Made) -> None:
    sql = "SELECT count(*), count(DISTINCT id), sum(id), min(id), max(id) FROM laws.ranges"
    total = 300_000
    assert stack.query(sql) == [[total, total, total * (total - 1) // 2, 0, total - 1]]
    assert stack.query("SELECT count(*) FROM laws.ranges") == [[total]]
    assert stack.query("SELECT count(*) FROM laws.ranges WHERE id BETWEEN 6990 AND 7010") == [[21]]


def test_file_that_changed_since_planning_is_an_error(
    stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With a frozen file set the planner sends the old size and time; the reader must notice."""
    directory = tmp_path_factory.mktemp("frozen")
    file = directory / "f.parquet"
    pq.write_table(pa.table({"id": list(range(10))}), file)
    register(stack, "frozen", directory, (Column("id", BIGINT),))
    with MetastoreClient(stack.metastore_uri) as client:
        table = client.get_table("laws", "frozen")
        table.parameters["skipbridge.freshness"] = "snapshot"
        client.alter_table("laws", "frozen", table)
    time.sleep(1.2)  # the planner takes a table's definition as known for a second
    assert stack.query("SELECT count(*) FROM laws.frozen") == [[10]]
    pq.write_table(pa.table({"id": list(range(1000))}), file)
    with pytest.raises(Exception, match=r"FILE_CHANGED|changed"):
        stack.query("SELECT sum(id) FROM laws.frozen")
    file.unlink()
    with pytest.raises(Exception, match=r"FILE_|changed|gone|not exist"):
        stack.query("SELECT sum(id) FROM laws.frozen")


@pytest.mark.parametrize("damage", ["cut", "text"])
def test_damaged_file_is_one_clear_error(
    stack: Stack, tmp_path_factory: pytest.TempPathFactory, damage: str
) -> None:
    directory = tmp_path_factory.mktemp(damage)
    pq.write_table(pa.table({"id": list(range(10))}), directory / "good.parquet")
    whole = (directory / "good.parquet").read_bytes()
    bad = whole[: len(whole) // 2] if damage == "cut" else b"id,name\n1,x\n" * 20
    (directory / "bad.parquet").write_bytes(bad)
    register(stack, f"damaged_{damage}", directory, (Column("id", BIGINT),))
    with pytest.raises(Exception, match=r"bad\.parquet"):
        stack.query(f"SELECT sum(id) FROM laws.damaged_{damage}")


def test_unsupported_tables_are_refused_by_code(stack: Stack) -> None:
    with MetastoreClient(stack.metastore_uri) as client:
        table = client.get_table("laws", "everything")
        table.tableName = "pretends_to_be_iceberg"
        table.parameters = {**table.parameters, "table_type": "ICEBERG"}
        table.partitionKeys = []
        client.create_table(table)
    with pytest.raises(Exception, match=r"Iceberg|ICEBERG"):
        stack.query("SELECT * FROM laws.pretends_to_be_iceberg")


def test_text_type_of_a_column_disagrees(
    stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("disagree")
    pq.write_table(pa.table({"id": ["a", "b"]}), directory / "f.parquet")
    register(stack, "disagree", directory, (Column("id", INTEGER), Column("s", STRING)))
    with pytest.raises(Exception, match="id"):
        stack.query("SELECT sum(id) FROM laws.disagree")
