"""A real Trino reads views of tables of segments in place of their facts: the same rows.

The session property ``pruning_enabled=false`` reads the facts, all of them, and is the oracle.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.segments.commands import add, compaction, tables, views
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

SCHEMA = "hot"
NAME = f"{SCHEMA}.sales"
SEGMENTS, FILES, ROWS = 3, 5, 40
COLUMNS = {
    "id": "bigint",
    "shop": "string",
    "code": "char(3)",
    "short": "varchar(4)",
    "day": "date",
    "at": "timestamp",
    "price": "decimal(10,2)",
    "rate": "double",
    "weight": "float",
    "tags": "array<string>",
    "place": "struct<x:int,y:string>",
    "counts": "map<string,int>",
    "cold": "string",
}
HOT = [name for name in COLUMNS if name != "cold"]


def facts(number: int) -> pa.Table:
    ids = [number * ROWS + i for i in range(ROWS)]

    def some(values: list[Any]) -> list[Any]:
        return [None if i % 13 == 0 else values[(i * 7 + number) % len(values)] for i in ids]

    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "shop": some(["a", "b", "é", ""]),
            "code": some(["x", "xy ", "xyz"]),
            "short": some(["ab", "abcdef", ""]),
            "day": pa.array(some([date(2024, 1, 1) + timedelta(days=k) for k in range(9)])),
            "at": pa.array(some([datetime(1969, 12, 31, 23), datetime(2024, 5, 5, 1, 2, 3, 999)]),
                           pa.timestamp("us")),
            "price": pa.array(some([Decimal("1.50"), Decimal("-3.25")]), pa.decimal128(10, 2)),
            "rate": pa.array(some([0.0, -0.0, float("nan"), 1.5]), pa.float64()),
            "weight": pa.array(some([float("nan"), -0.0, 2.5]), pa.float32()),
            "tags": pa.array(some([[], ["p"], ["p", None]]), pa.list_(pa.string())),
            "place": pa.array(some([{"x": 1, "y": None}, {"x": None, "y": "q"}]),
                              pa.struct([("x", pa.int32()), ("y", pa.string())])),
            "counts": pa.array(some([[("k", 1)], []]), pa.map_(pa.string(), pa.int32())),
            "cold": some(["cold"]),
        }
    )  # fmt: skip


class World:
    def __init__(self, stack: Stack, root: Path) -> None:
        self.stack, self.root = stack, root
        self.config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})

    def add(self, segment: int) -> None:
        for part in range(FILES):
            path = self.root / "facts" / str(segment) / f"{part}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(facts(segment * FILES + part), path)
            os.utime(path, (1.7e9, 1.7e9))
        paths = [str(self.root / "facts" / str(segment))]
        add.add_segment(self.config, NAME, paths=paths, local=True)

    def same(self, sql: str) -> list[Any]:
        """The rows, after comparing them with those of the facts."""
        found = self.stack.query(sql)
        oracle = self.stack.query(
            sql, {"pruning_enabled": "false", "metadata_answers_enabled": "false"}
        )
        assert sorted(map(repr, found)) == sorted(map(repr, oracle)), sql
        return found

    def read_from_view(self, sql: str) -> int:
        """The files of facts that the view stood for, as the engine's metrics tell."""
        text = self.stack.analyzed(sql)
        found = re.findall(r"files[. ]view\(hot\)[. ]total.*?(?:total=|count=|=\s*)(\d+)", text)
        return int(found[0]) if found else 0


@pytest.fixture(scope="module")
def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(stack, tmp_path_factory.mktemp("views"))
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{made.root}/warehouse")
    tables.create_table(made.config, NAME, format="parquet", columns=list(COLUMNS.items()))
    for segment in range(SEGMENTS - 1):
        made.add(segment)
    created = views.create_view(
        made.config, NAME, name="hot", columns=HOT, sort_by=["day", "id"], local=True
    )
    assert set(created["segments"].values()) == {"built"}
    made.add(SEGMENTS - 1)
    yield made
    tables.drop_table(made.config, NAME, if_exists=True)


DASHBOARD = (
    f"SELECT day, shop, count(*), sum(price), max(at) FROM {NAME} "
    "WHERE day BETWEEN DATE '2024-01-03' AND DATE '2024-01-04' GROUP BY day, shop"
)


def test_a_dashboard_query_reads_the_view(world: World) -> None:
    assert len(world.same(DASHBOARD)) > 2
    assert world.read_from_view(DASHBOARD) == SEGMENTS * FILES
    assert world.stack.kept_files(DASHBOARD) <= SEGMENTS
    views.enable_view(world.config, NAME, name="hot", enabled=False)
    try:
        world.same(DASHBOARD)
        assert world.read_from_view(DASHBOARD) == 0
        assert world.stack.kept_files(DASHBOARD) == SEGMENTS * FILES
    finally:
        views.enable_view(world.config, NAME, name="hot", enabled=True)


def test_every_type_is_the_same(world: World) -> None:
    sql = f"SELECT {', '.join(HOT)} FROM {NAME}"
    world.same(sql)
    assert world.read_from_view(sql) == SEGMENTS * FILES
    signs = "SELECT id, 1 / rate, 1 / weight, to_ieee754_64(rate), to_utf8(code)"
    world.same(f"{signs} FROM {NAME}")
    for where in (
        "rate = 0",
        "is_nan(rate)",
        "code = 'xy'",
        "short = 'abcd'",
        "place.x = 1",
        "cardinality(tags) > 0",
        "at < TIMESTAMP '1970-01-01 00:00:00'",
        "price = -3.25 OR shop IS NULL",
    ):
        world.same(f"SELECT id, code, short, tags FROM {NAME} WHERE {where}")


def test_the_number_of_rows_needs_no_column(world: World) -> None:
    sql = f"SELECT count(*) FROM {NAME}"
    assert world.same(sql) == [[SEGMENTS * FILES * ROWS]]
    assert world.read_from_view(sql) == SEGMENTS * FILES


def test_limits_joins_and_orders(world: World) -> None:
    assert len(world.stack.query(f"SELECT shop FROM {NAME} LIMIT 7")) == 7
    world.same(f"SELECT id FROM {NAME} ORDER BY id DESC LIMIT 9")
    world.same(f"SELECT id, shop FROM {NAME} WHERE id > 100 ORDER BY id LIMIT 9")
    keys = "(VALUES BIGINT '5', BIGINT '77') v(k)"
    join = f"SELECT s.id, s.shop FROM {NAME} s JOIN {keys} ON s.id = v.k"
    assert len(world.same(join)) == 2
    assert world.read_from_view(join) == SEGMENTS * FILES
    both = f"SELECT a.id, b.cold FROM {NAME} a JOIN {NAME} b ON a.id = b.id"
    world.same(f"{both} WHERE a.day = DATE '2024-01-02'")


def test_other_columns_and_hidden_ones_are_read_from_the_facts(world: World) -> None:
    for sql in (
        f"SELECT cold FROM {NAME}",
        f"SELECT id FROM {NAME} WHERE cold IS NULL",
        f'SELECT id, "$path", "$file_size" FROM {NAME}',
        f'SELECT id FROM {NAME} WHERE "$file_modified_time" IS NOT NULL',
        f"SELECT * FROM {NAME}",
    ):
        world.same(sql)
        assert world.read_from_view(sql) == 0, sql


def test_merged_segments_have_one_sorted_view(world: World) -> None:
    compaction.compact(world.config, NAME, kind="custom", ids=["0", "1"])
    world.same(DASHBOARD)
    assert world.read_from_view(DASHBOARD) == SEGMENTS * FILES
    assert world.stack.kept_files(DASHBOARD) <= 2


CSV = f"{SCHEMA}.calls"
CSV_COLUMNS = [
    ("k", "bigint"),
    ("n", "int"),
    ("r", "double"),
    ("f", "float"),
    ("s", "string"),
    ("v", "varchar(5)"),
    ("day", "date"),
    ("at", "timestamp"),
    ("m", "decimal(9,2)"),
    ("b", "boolean"),
    ("cold", "string"),
]
_TEXTS = {
    "k": ["1", "-5", "9223372036854775807", "", "1.5", " 7", "+3", "1e3", "007", "0x1"],
    "n": ["0", "2147483647", "2147483648", "-1", "x"],
    "r": ["0.5", "-0.0", "1e300", "NaN", "Infinity", ".5", "1.", "1000.25", "abc", "0.1"],
    "f": ["0.5", "-0.0", "1e38", "3.14159274", "NaN", "0.1", "16777217"],
    "s": ["", "x", " y ", "\u00e9", "NULL"],
    "v": ["", "abc", "abcdefgh", "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"],
    "day": ["2024-02-29", "1999-12-31", "2024-2-9", "1582-10-10", "0001-01-01", "no"],
    "at": [
        "2024-02-29 12:30:00",
        "2024-02-29 12:30:00.125",
        "2024-02-29T12:30:00",
        "1969-01-01 00:00:00",
        "2024-02-29",
    ],
    "m": ["1.25", "7", "-3.10", "1.255", "12345678.9", "x"],
    "b": ["true", "false", "TRUE", "1", "no"],
}


def test_views_of_csv_hold_what_the_reader_casts(world: World) -> None:
    """Each file of facts has one awkward spelling; a view has only segments it is sure about."""
    header = ",".join(name for name, _ in CSV_COLUMNS)
    tables.create_table(
        world.config, CSV, format="csv", columns=CSV_COLUMNS, properties={"csv.header_lines": "1"}
    )
    built = 0
    try:
        for name, _ in CSV_COLUMNS[:-1]:
            views.create_view(world.config, CSV, name=f"v_{name}", columns=[name], sort_by=[name])
        plain = {name: texts[0] for name, texts in _TEXTS.items()} | {"k": "1"}
        for number in range(max(map(len, _TEXTS.values()))):
            path = world.root / "csv" / f"{number}.csv"
            path.parent.mkdir(exist_ok=True)
            odd = {n: t[number % len(t)] for n, t in _TEXTS.items()}
            rows = [",".join([row[n] for n, _ in CSV_COLUMNS[:-1]] + ["c"]) for row in (plain, odd)]
            path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
            os.utime(path, (1.7e9, 1.7e9))
            add.add_segment(world.config, CSV, paths=[str(path)], local=True)
        for name, _ in CSV_COLUMNS[:-1]:
            world.same(f"SELECT {name}, count(*) FROM {CSV} GROUP BY {name}")
            world.same(f"SELECT {name} FROM {CSV} WHERE {name} IS NULL")
            text = world.stack.analyzed(f"SELECT {name} FROM {CSV}")
            built += f"view(v_{name})" in text
        world.same(f"SELECT 1 / r, to_ieee754_64(r) FROM {CSV}")
        world.same(f"SELECT to_ieee754_32(f) FROM {CSV}")
        assert built == len(CSV_COLUMNS) - 1
    finally:
        tables.drop_table(world.config, CSV, if_exists=True)
