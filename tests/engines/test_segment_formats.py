"""Segments of every format in Trino, Hive and the Python API: rows, skipped files, chosen segments,
and views. The oracles are the rows as they were written, and Trino's stock connector.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.metastore.client import MetastoreClient
from bridge.segments.commands import compaction, indexes, views
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ, hooked_hive
from tests.engines.segment_world import SegmentWorld, rows_and_files, segment_world
from tests.engines.stack import Stack
from tests.tiers import examples

pytestmark = pytest.mark.full

SCHEMA = "segment_formats"
SEGMENTS, FILES, ROWS = 3, 3, 20
COLUMNS = {
    "id": "int",
    "name": "string",
    "price": "decimal(10,2)",
    "day": "date",
    "ratio": "double",
    "flag": "boolean",
    "big": "bigint",
}
STOCK = {"string": "varchar", "int": "integer"}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def world(
    hiveserver2: RunningHiveServer2, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SegmentWorld]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache"), hook=False) as (hive, _):
        made = segment_world(hive, stack, tmp_path_factory.mktemp(SCHEMA), SCHEMA)
        with MetastoreClient(stack.metastore_uri) as client:
            client.create_database(SCHEMA)
        yield made


def rows_of(first: int) -> list[Row]:
    return [
        {
            "id": i,
            "name": f"n{i % 7}, {i}" if i % 5 else None,
            "price": Decimal(i) / 4,
            "day": datetime.date(2024, 1, 1) + datetime.timedelta(days=i),
            "ratio": i / 8,
            "flag": i % 2 == 0 if i % 3 else None,
            "big": i << 33,
        }
        for i in range(first, first + ROWS)
    ]


def write(path: Path, format: str, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    types = {"id": pa.int32(), "price": pa.decimal128(10, 2), "big": pa.int64()}
    made = pa.table({name: pa.array([r[name] for r in rows], types.get(name)) for name in COLUMNS})
    match format:
        case "parquet":
            pq.write_table(made, path)
        case "orc":
            po.write_table(made, path)
        case "avro":
            avro(path, rows)
        case "text":
            lines = ["\x01".join(text(row[name], "\\N") for name in COLUMNS) for row in rows]
            path.write_text("".join(line + "\n" for line in lines))
        case "csv":
            with path.open("w", newline="") as sink:
                out = csv.writer(sink, lineterminator="\n")
                out.writerow(COLUMNS)
                out.writerows([text(row[name], "nix") for name in COLUMNS] for row in rows)


def avro(path: Path, rows: Sequence[Row]) -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    day = {"type": "int", "logicalType": "date"}
    spelled = ("int", "string", price, day, "double", "boolean", "long")
    fields = [
        {"name": name, "type": ["null", type]} for name, type in zip(COLUMNS, spelled, strict=True)
    ]
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
    with path.open("wb") as sink:
        fastavro.writer(sink, schema, rows)


def text(value: Any, null: str) -> str:
    if value is None:
        return null
    return str(value).lower() if isinstance(value, bool) else str(value)


def plain(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows as all drivers can tell them."""
    return sorted(
        repr(
            [
                float(v)
                if isinstance(v, Decimal | float)
                else v
                if isinstance(v, bool | int | None)
                else str(v)
                for v in row
            ]
        )
        for row in rows
    )


KINDS = {
    "avro": ("avro", "avro", "avro"),
    "text": ("text", "text", "text"),
    "orc": ("orc", "orc", "orc"),
    "parquet": ("parquet", "csv", "parquet"),
}
OFTEN = examples(["avro", "text"], ["avro", "text"], list(KINDS))
# The condition, what of a row it asks, and how many files may be read at most.
EVERY = (
    ("id = 77", lambda r: r["id"] == 77, 1),
    ("id > 150", lambda r: r["id"] > 150, 2),
    ("name = 'n3, 17'", lambda r: r["name"] == "n3, 17", 1),
    ("price < 5", lambda r: r["price"] < 5, 1),
    ("day = DATE '2024-03-01'", lambda r: r["day"] == datetime.date(2024, 3, 1), 1),
    ("big >= 1460288880640", lambda r: r["big"] >= 170 << 33, 1),
    # Not >: NaN is the largest in Hive, and footers of Parquet do not tell of it.
    ("ratio < 0.5 AND flag", lambda r: r["ratio"] < 0.5 and r["flag"], 1),
    ("id = 9999", lambda r: False, 0),
    ("name IS NULL", lambda r: r["name"] is None, 9),
)
WHERES = examples(EVERY[2::2], EVERY[2::2], EVERY)


@pytest.mark.parametrize("kind", OFTEN)
def test_rows_and_skipped_files(world: SegmentWorld, kind: str) -> None:
    table = world.table(kind, kind, list(COLUMNS.items()))
    indexes.create_index(world.config, table, name="m", kind="minmax", local=True)
    indexes.create_index(
        world.config, table, name="b", kind="bloomfilter", columns=["name"], local=True
    )
    held: list[Row] = []
    for segment, format in enumerate(KINDS[kind]):
        directory = world.root / kind / str(segment)
        for part in range(FILES):
            rows = rows_of((segment * FILES + part) * ROWS)
            write(directory / f"f{part}.{format}", format, rows)
            held += rows
        given: dict[str, Any] = {"format": format} if format != kind else {}
        if format == "csv":
            given["properties"] = {"csv.header_lines": "1", "csv.null": "nix"}
        world.add(table, directory, **given)
    same_everywhere(world, table, held)
    if kind != "parquet":
        same_as_stock(world, table, kind)
    chosen_segments(world, table, held)
    with_a_view(world, table, held)
    compaction.compact(world.config, table, kind="custom", ids=["0", "1"])
    same_everywhere(world, table, held, WHERES[-2:])


def same_everywhere(
    world: SegmentWorld, table: str, held: Sequence[Row], wheres: Sequence[Any] = WHERES
) -> None:
    for number, (where, keeps, files) in enumerate(wheres):
        sql = f"SELECT * FROM {table} WHERE {where}"
        wanted = plain([list(row.values()) for row in held if keeps(row)])
        assert plain(world.stack.query(sql)) == wanted, where
        assert world.stack.kept_files(sql) <= files, where
        rows, read = rows_and_files(world, sql, TEZ if number == 0 else FETCH)
        assert plain(rows) == wanted and read <= files, where
        with bridge.connect(metastore_uri=world.hive.metastore_uri) as session:
            scan = session.table(table).scan(where)
            assert plain([list(r.values()) for r in scan.to_arrow().to_pylist()]) == wanted, where
            assert scan.explain().files_kept <= files, where


def same_as_stock(world: SegmentWorld, table: str, kind: str) -> None:
    """Types and rows of the stock connector, over the same directories."""
    columns = ", ".join(f"{name} {STOCK.get(type, type)}" for name, type in COLUMNS.items())
    format = {"text": "TEXTFILE"}.get(kind, kind.upper())
    for segment in range(SEGMENTS):
        world.stack.query(
            f"CREATE TABLE {SCHEMA}.stock_{kind}_{segment} ({columns}) WITH (format = '{format}', "
            f"external_location = 'file://{world.root}/{kind}/{segment}')",
            catalog="hive",
        )
    every = " UNION ALL ".join(
        f"SELECT * FROM {SCHEMA}.stock_{kind}_{segment}" for segment in range(SEGMENTS)
    )
    for where in ("true", "name LIKE 'n1%'"):
        stock = world.stack.query(f"SELECT * FROM ({every}) WHERE {where}", catalog="hive")
        mine = world.stack.query(f"SELECT * FROM {table} WHERE {where}")
        assert sorted(map(repr, mine)) == sorted(map(repr, stock)), where


def chosen_segments(world: SegmentWorld, table: str, held: Sequence[Row]) -> None:
    count = f"SELECT count(*), min(id) FROM {table} WHERE id < 1000"
    first = FILES * ROWS
    chosen = f"{table}:1,2"
    wanted = (len(held) - first, first)
    assert world.stack.query(count, {"segments": chosen}) == [list(wanted)]
    asked = {**FETCH, "skipbridge.segments": chosen}
    assert world.hive.ask(count, asked).rows == [wanted]
    with bridge.connect(metastore_uri=world.hive.metastore_uri) as session:
        assert session.table(table).scan(segments=["1", "2"]).to_arrow().num_rows == wanted[0]


def with_a_view(world: SegmentWorld, table: str, held: Sequence[Row]) -> None:
    """A query of its columns reads the view's files in Trino, and has the same rows."""
    made = views.create_view(
        world.config, table, name="hot", columns=["id", "price", "day"], sort_by=["day"], local=True
    )
    assert set(made["segments"].values()) == {"built"}, made
    sql = f"SELECT id, price, day FROM {table} WHERE day > DATE '2024-05-01'"
    limit = datetime.date(2024, 5, 1)
    wanted = plain([[r["id"], r["price"], r["day"]] for r in held if r["day"] > limit])
    assert plain(world.stack.query(sql)) == wanted
    assert world.stack.kept_files(sql) < SEGMENTS and "view(hot)" in world.stack.analyzed(sql)
    assert plain(world.hive.ask(sql).rows) == wanted
    with bridge.connect(metastore_uri=world.hive.metastore_uri) as session:
        scan = session.table(table).scan("day > DATE '2024-05-01'", columns=["id", "price", "day"])
        assert plain([list(r.values()) for r in scan.to_arrow().to_pylist()]) == wanted
