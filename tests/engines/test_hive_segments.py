"""Hive reads tables of segments: the files that their log names, each as its segment says.

The oracle is skipbridge's own connector in Trino over the same log.
"""

from __future__ import annotations

import bz2
import gzip
import os
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.metastore.client import MetastoreClient
from bridge.segments.commands import compaction, indexes, manage, refresh, tables
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, PlannerUnderTest, hooked_hive
from tests.engines.segment_world import COLUMNS, SegmentWorld, files_read, segment_world
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

SCHEMA = "hive_segments"
MODES = pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])


@pytest.fixture(scope="module")
def running(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache"), hook=False) as found:
        yield found


@pytest.fixture(scope="module")
def world(
    running: tuple[HookedHive, PlannerUnderTest],
    stack: Stack,
    tmp_path_factory: pytest.TempPathFactory,
) -> SegmentWorld:
    return segment_world(running[0], stack, tmp_path_factory.mktemp(SCHEMA), SCHEMA)


def facts(first: int, count: int = 20) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "price": pa.array([Decimal(i) / 4 for i in ids], pa.decimal128(10, 2)),
            "id": pa.array(ids, pa.int32()),
            "more": pa.array(["x"] * count),
            "name": pa.array([f"n{i}" if i % 7 else None for i in ids]),
        }
    )


def write(path: Path, first: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = facts(first)
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path)
        case ".orc":
            po.write_table(table, path)
        case ".avro":
            price = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
            types = {"price": price, "id": "int", "more": "string", "name": ["null", "string"]}
            fields = [{"name": n, "type": t} for n, t in types.items()]
            schema = {"type": "record", "name": "r", "fields": fields}
            with path.open("wb") as sink:
                fastavro.writer(sink, fastavro.parse_schema(schema), table.to_pylist())
    return path


@MODES
def test_parquet_by_name_with_chosen_segments(
    world: SegmentWorld, settings: dict[str, str]
) -> None:
    table = world.table(f"p_{settings['hive.fetch.task.conversion']}")
    for day in range(3):
        directory = world.root / "parquet" / str(day)
        for part in range(2):
            write(directory / f"f{part}.parquet", day * 100 + part * 50)
        world.add(table, directory)
    assert len(world.same(f"SELECT * FROM {table}", settings)) == 120
    world.same(f"SELECT count(*), sum(id), count(name) FROM {table}", settings)
    world.same(f"SELECT name FROM {table} WHERE price > 60 AND id < 255", settings)
    world.same(
        f"SELECT a.id, b.name FROM {table} a JOIN {table} b ON a.id = b.id + 50 WHERE b.id < 9",
        settings,
    )
    chosen = {**settings, "skipbridge.segments": f"other.t:7;{table}:0,2"}
    assert world.hive.ask(f"SELECT count(*) FROM {table}", chosen).rows == [(80,)]
    with pytest.raises(Exception, match="SEGMENT_NOT_FOUND"):
        world.hive.ask(f"SELECT * FROM {table}", {**settings, "skipbridge.segments": f"{table}:9"})


def test_many_formats_in_one_table(world: SegmentWorld) -> None:
    """Columns are found by name in each; of text by their place."""
    table = world.table("mixed")
    data = world.root / "mixed"
    for i, suffix in enumerate(("parquet", "orc", "avro")):
        world.add(table, write(data / f"f.{suffix}", i * 100), format=suffix)
    rows = facts(300).to_pylist()
    lines = [f'{{"more": 1, "name": "{r["name"]}", "ID": {r["id"]}}}' for r in rows]
    (data / "f.json").write_text("\n".join([*lines, '{"price": 1.5, "id": null}']))
    world.add(table, data / "f.json", format="json")
    (data / "f.txt").write_text("".join(f"{r['id']}\x01{r['name']}\x01\\N\n" for r in rows))
    world.add(table, data / "f.txt", format="text")
    raw = "price,more,id,name\n" + "".join(f'{r["price"]},"a,b",{r["id"]},x\n' for r in rows)
    (data / "f.csv.gz").write_bytes(gzip.compress(raw.encode()))
    (data / "g.csv.bz2").write_bytes(bz2.compress(raw.encode()))
    header = {"csv.header_lines": "1"}
    world.add(table, data / "f.csv.gz", data / "g.csv.bz2", format="csv", properties=header)
    for settings in (FETCH, TEZ):
        assert len(world.same(f"SELECT * FROM {table}", settings)) == 20 * 7 + 1
    world.same(f"SELECT price, name FROM {table} WHERE id > 110 AND id < 315")
    world.same(f"SELECT count(*) FROM {table} WHERE name IS NULL")
    compaction.compact(world.config, table, kind="custom", ids=["0", "1", "3", "5"])
    world.same(f"SELECT id, price FROM {table}")


ODD = (
    "", " ", "0", "-1", "+1", "1.5", "-0", "TRUE", "tRuE", "T", "f", "yes", "NaN", "Infinity",
    "1e400", "0x1p3", "1f", " 7 ", "\u00a07", "\u20037", "1_0", "9223372036854775807", "128",
    "-32769", "0.005", "0.0049999", "99999999.995", "123456789012345678901234567890.12345",
    "2024-02-29", "2023-02-29", "2024-2-9", " 2024-02-29 ", "1582-10-10", "2024-02-29 10:11",
    "2024-02-29 1:2:3.4", "2024-02-29 10:11:12.9999995", "2024-02-29 24:00:00", "0001-01-01",
    "2024-02-29 10:11:12 UTC", "2024-03-31 02:30:00 Europe/Berlin", "2024-02-29T10:11:12",
    "2024-02-29 02:30:00 Nowhere/Land", "2024-02-29 10:", "abcdefgh", "日本語日本語", "null",
    "\u0663", "nix",
)  # fmt: skip
TYPES = (
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double",
    "decimal(10,2)", "decimal(38,6)", "varchar(4)", "date", "timestamp",
)  # fmt: skip


def test_typed_csv_is_as_trino_casts_it(world: SegmentWorld) -> None:
    """Odd values, odd quotes, another order of fields, lines that are too short or too long."""
    rng = random.Random(7)
    columns = [(f"c{i}", type) for i, type in enumerate(TYPES)]
    order = rng.sample([name for name, _ in columns], len(columns))
    fields = ["key", *order, "more"]
    table = world.table(
        "typed",
        "csv",
        [("key", "int"), *columns],
        header=",".join(fields),
        header_lines="1",
        footer_lines="1",
        delimiter=";",
        null="nix",
    )
    lines = [";".join(fields)]
    for key, value in enumerate(ODD):
        lines.append(";".join([str(key), *[_quoted(rng, value)] * (len(columns) + 1)]))
    for key in range(1000, 1150):
        some = [_spoilt(rng, rng.choice(ODD)) for _ in range(rng.randrange(len(columns) + 3))]
        lines.append(";".join([str(key), *some]))
    path = world.root / "typed.csv"
    path.write_text("\r\n".join([*lines, "the footer"]))
    world.add(table, path)
    for settings in (FETCH, TEZ):
        names = ", ".join(name for name, _ in columns)
        assert len(world.same(f"SELECT key, {names} FROM {table}", settings)) == len(lines) - 1
    world.same(f"SELECT key, c11 FROM {table} WHERE c11 = DATE '2024-02-29'")


def _quoted(rng: random.Random, value: str) -> str:
    return f'"{value}"' if rng.random() < 0.5 else value


def _spoilt(rng: random.Random, value: str) -> str:
    at = rng.randrange(len(value) + 1)
    mark = rng.choice(('"', '""', "\\", '\\"', " ", "'"))
    return value[:at] + mark + value[at:] if rng.random() < 0.4 else _quoted(rng, value)


def test_a_bad_value_is_an_error_where_the_table_says_so(world: SegmentWorld) -> None:
    table = world.table("strict", "csv", [("a", "int"), ("b", "string")], bad_values="error")
    path = world.root / "strict.csv"
    path.write_text("1,x\n2,y\nz,w\n")
    world.add(table, path)
    with pytest.raises(Exception, match=r"record 3.*the value 'z' of the column a cannot be cast"):
        world.hive.ask(f"SELECT a FROM {table}")
    assert world.hive.ask(f"SELECT b FROM {table}").ids == ["w", "x", "y"]


def test_dropped_columns_and_changed_types(world: SegmentWorld) -> None:
    columns = [("a", "int"), ("b", "string"), ("c", "float")]
    for format in ("parquet", "orc", "csv"):
        table = world.table(f"changed_{format}", format, columns)
        path = world.root / f"changed.{format}"
        held = pa.table(
            {
                "a": pa.array([1, 2, None], pa.int32()),
                "b": ["x", None, "z"],
                "c": pa.array([0.5, 1.5, 2.5], pa.float32()),
            }
        )
        if format == "csv":
            path.write_text("1,x,0.5\n2,,1.5\n,z,2.5\n")
        else:
            (pq.write_table if format == "parquet" else po.write_table)(held, path)
        world.add(table, path)
        before = world.same(f"SELECT a, c FROM {table}")
        tables.drop_columns(world.config, table, ["b"])
        tables.change_type(world.config, table, "a", "bigint")
        tables.change_type(world.config, table, "c", "double")
        for settings in (FETCH, TEZ):
            assert sorted(world.same(f"SELECT * FROM {table}", settings), key=repr) == sorted(
                before, key=repr
            )
        assert world.hive.ask(f"SELECT c FROM {table} WHERE a = 2").rows == [(1.5,)]


def test_files_are_skipped_by_every_index(world: SegmentWorld) -> None:
    """Also of CSV and JSON: the planner says how they are read, so its entries are of that."""
    for format in ("parquet", "csv", "json"):
        table = world.table(f"skipped_{format}", format, [("id", "int"), ("name", "string")])
        indexes.create_index(world.config, table, name="m", kind="minmax", local=True)
        indexes.create_index(
            world.config, table, name="b", kind="bloomfilter", columns=["name"], local=True
        )
        directory = world.root / f"skipped_{format}"
        directory.mkdir()
        for part in range(8):
            ids = range(part * 10, part * 10 + 10)
            path = directory / f"f{part}.{format}"
            match format:
                case "parquet":
                    held = {"id": pa.array(ids, pa.int32()), "name": [f"n{i}" for i in ids]}
                    pq.write_table(pa.table(held), path)
                case "csv":
                    path.write_text("".join(f"{i},n{i}\n" for i in ids))
                case "json":
                    path.write_text("".join(f'{{"id":{i},"name":"n{i}"}}\n' for i in ids))
        world.add(table, directory)
        for where, files in (
            ("id = 37", 1),
            ("id > 55 AND name <> 'n60'", 3),
            ("name = 'n12'", 1),
            ("id = 9999", 0),
            ("id % 2 = 0", 8),
        ):
            for settings in (FETCH, TEZ):
                sql = f"SELECT id, name FROM {table} WHERE {where}"
                world.same(sql, settings)
                assert files_read(world, sql, settings) <= files, (format, where)
            count = f"SELECT count(*) FROM {table} WHERE {where}"
            world.same(count, {**TEZ, "hive.fetch.task.aggr": "true"})
        everything = {**FETCH, "skipbridge.pruning_enabled": "false"}
        assert files_read(world, f"SELECT id FROM {table} WHERE id = 37", everything) == 8


def test_a_changed_file_is_an_error_until_it_is_refreshed(world: SegmentWorld) -> None:
    table = world.table("stale")
    path = write(world.root / "stale" / "f.parquet", 0)
    world.add(table, path)
    write(path, 500)
    os.utime(path, (1.7e9 + 5, 1.7e9 + 5))
    # Not in Tez's local mode: after a task that failed, that Hive's later tasks read nothing.
    with pytest.raises(Exception, match=r"FILE_CHANGED.*segment refresh hive_segments.stale"):
        world.hive.ask(f"SELECT * FROM {table}")
    refresh.refresh_segments(world.config, table, local=True)
    assert world.hive.ask(f"SELECT min(id) FROM {table}", TEZ).rows == [(500,)]
    path.unlink()
    with pytest.raises(Exception, match=r"FILE_CHANGED.*is gone"):
        world.hive.ask(f"SELECT * FROM {table}")


def test_a_file_that_ends_early_is_named(world: SegmentWorld) -> None:
    """Also where its reader cannot even be opened."""
    table = world.table("cut", "text", [("id", "int"), ("name", "string")])
    path = world.root / "cut.bz2"
    path.write_bytes(bz2.compress("".join(f"{i}\x01n{i}\n" for i in range(5000)).encode())[:-100])
    world.add(table, path)
    with pytest.raises(Exception, match=r"FILE_CORRUPT: \S*/cut\.bz2, at its start"):
        world.hive.ask(f"SELECT id FROM {table}")


def test_the_newest_version_or_none(world: SegmentWorld) -> None:
    """Added and deleted segments are seen at once; a damaged log is an error."""
    table = world.table("newest")
    count = f"SELECT count(*) FROM {table}"
    assert world.hive.ask(count, TEZ).rows == [(0,)]
    for part in range(3):
        world.add(table, write(world.root / "newest" / f"f{part}.parquet", part * 50))
        assert world.hive.ask(count, TEZ).rows == [(20 * part + 20,)]
    manage.delete_segments(world.config, table, ids=["1"])
    manage.switch_segments(world.config, table, ids=["0"], enabled=False)
    assert world.hive.ask(f"SELECT id FROM {table}").ids == list(range(100, 120))
    versions = world.root / "warehouse" / "newest" / "_segments" / "versions"
    last = max(versions.iterdir())
    last.write_bytes(last.read_bytes().replace(b'"Success"', b'"Suspect"'))
    with pytest.raises(Exception, match="SEGMENT_LOG_CORRUPT"):
        world.hive.ask(count, TEZ)
    with pytest.raises(Exception, match="SEGMENT_LOG_CORRUPT"):
        world.hive.ask(f"SELECT id FROM {table}")


def test_an_outdated_record_is_an_error_until_it_is_refreshed(world: SegmentWorld) -> None:
    """It named the SerDe of the fact files, by which Hive cannot read rows of a segment."""
    table = world.table("outdated", "csv", [("id", "int")])
    path = world.root / "outdated.csv"
    path.write_text("1\n2\n")
    world.add(table, path)
    with MetastoreClient(world.hive.metastore_uri) as client:
        record = client.get_table(SCHEMA, "outdated")
        record.sd.serdeInfo.serializationLib = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
        client.alter_table(SCHEMA, "outdated", record)
    for sql in (f"SELECT id FROM {table}", f"SELECT count(*) FROM {table}"):
        with pytest.raises(Exception, match=r"TABLE_RECORD_OUTDATED.*segment refresh"):
            world.hive.ask(sql)
    assert refresh.refresh_segments(world.config, table, local=True)["recorded"]
    assert world.hive.ask(f"SELECT id FROM {table}").ids == [1, 2]


def test_without_a_planner_it_is_an_error(world: SegmentWorld) -> None:
    table = world.table("alone")
    world.add(table, write(world.root / "alone" / "f.parquet", 0))
    nobody = {"skipbridge.planner": "127.0.0.1:1"}
    for settings in (FETCH, TEZ):
        with pytest.raises(Exception, match=r"PLANNER_UNAVAILABLE.*whose files only the planner"):
            world.hive.ask(f"SELECT id FROM {table}", {**settings, **nobody})
    with pytest.raises(Exception, match="does not name segments"):
        world.hive.ask(f"SELECT id FROM {table}", {**FETCH, "skipbridge.segments": "4"})


def test_writes_are_refused(world: SegmentWorld) -> None:
    table = world.table("written")
    with pytest.raises(Exception, match="is a table of segments"):
        world.hive.ask(f"INSERT INTO {table} VALUES (3, 'x', 1.5)")
    with pytest.raises(Exception, match="skipbridge table create"):
        world.hive.ask(
            f"CREATE EXTERNAL TABLE {SCHEMA}.u (id int) "
            "STORED BY 'io.skipbridge.hive.SegmentStorageHandler'"
        )
    described = [row[:2] for row in world.hive.ask(f"DESCRIBE {table}").rows]
    assert described == COLUMNS
