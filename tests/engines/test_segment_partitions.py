"""Hive and Trino read partition columns of tables of segments: from names of directories, typed."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.segments.commands import compaction, indexes, views
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ, hooked_hive
from tests.engines.segment_world import SegmentWorld, files_read, segment_world
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

SCHEMA = "segment_partitions"
AT = "TIMESTAMP '2024-05-01 01:00:00'"
COLUMNS = [("id", "int"), ("name", "string")]
MODES = pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])


@pytest.fixture(scope="module")
def world(
    hiveserver2: RunningHiveServer2, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SegmentWorld]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache"), hook=False) as (hive, _):
        yield segment_world(hive, stack, tmp_path_factory.mktemp(SCHEMA), SCHEMA)


def table(world: SegmentWorld, name: str, *keys: tuple[str, str], format: str = "parquet") -> str:
    return world.table(name, format, COLUMNS, partition_columns=keys)


def write(path: Path, first: int, rows: int = 5) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = range(first, first + rows)
    data = pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{i}" for i in ids]})
    match path.suffix:
        case ".parquet":
            pq.write_table(data, path)
        case ".orc":
            po.write_table(data, path)
        case ".gz":
            path.write_bytes(gzip.compress("".join(f"{i},n{i}\n" for i in ids).encode()))
        case ".json":
            path.write_text("".join(f'{{"id": {i}, "name": "n{i}"}}\n' for i in ids))
        case ".txt":
            path.write_text("".join(f"{i}\x01n{i}\n" for i in ids))
    return path


def days(world: SegmentWorld, name: str, count: int = 4) -> Path:
    root = world.root / "facts" / name
    for i in range(count):
        write(root / f"day=2024-05-0{i + 1}" / "f.parquet", 10 * i)
    write(root / "day=__HIVE_DEFAULT_PARTITION__" / "f.parquet", 90)
    return root


@MODES
def test_engines_agree_and_read_the_partitions_asked_for(
    world: SegmentWorld, settings: dict[str, str]
) -> None:
    short = f"days_{settings['hive.fetch.task.conversion']}"
    name = table(world, short, ("day", "date"))
    world.add(name, days(world, short))
    rows = world.same(f"SELECT id, name, day FROM {name}", settings)
    assert len(rows) == 25 and sum(row[2] is None for row in rows) == 5
    for where, files in (
        ("day = DATE '2024-05-02'", 1),
        ("day > DATE '2024-05-02' AND id < 25", 2),
        ("day IS NULL", 1),
        ("day IS NOT NULL AND name = 'n3'", 4),
        ("day = DATE '2024-05-01' OR day = DATE '2024-05-04'", 2),
    ):
        sql = f"SELECT id, day FROM {name} WHERE {where}"
        world.same(sql, settings)
        assert files_read(world, sql, settings) == files, where
        assert world.stack.kept_files(sql) == files, where
    world.same(f"SELECT day, count(*), min(id) FROM {name} GROUP BY day", settings)
    world.same(f"SELECT max(day), count(day) FROM {name}", settings)


@pytest.mark.parametrize(
    ("type", "texts", "where"),
    [
        ("int", ["01", "+1", "-7"], "k = 1"),
        ("bigint", ["9223372036854775807"], "k > 5"),
        ("decimal(6,2)", ["1.5", "1e1"], "k = 1.50"),
        ("boolean", ["TRUE", "false"], "k"),
        ("timestamp", ["2024-5-1", "2024-05-01 10%3A00%3A00.5"], f"k > {AT}"),
        ("string", ["a%2Fb", "%25", "x y", "ä", "01", "a=b"], "k = 'a/b'"),
        ("varchar(9)", ["abc", "日本"], "k = '日本'"),
    ],
)  # fmt: skip
def test_values_of_all_types(world: SegmentWorld, type: str, texts: list[str], where: str) -> None:
    short = f"typed_{type.partition('(')[0]}"
    name = table(world, short, ("k", type))
    root = world.root / "typed" / short
    for i, text in enumerate(texts):
        write(root / f"k={text}" / "f.parquet", 10 * i)
    write(root / "k=__HIVE_DEFAULT_PARTITION__" / "f.parquet", 90)
    world.add(name, root)
    for settings in (FETCH, TEZ):
        found = world.same(f"SELECT id, k FROM {name} WHERE k IS NOT NULL", settings)
        assert len(found) == 5 * len(texts)
        assert world.same(f"SELECT id, k FROM {name} WHERE {where}", settings)
    assert world.same(f"SELECT count(*) FROM {name} WHERE k IS NULL") == [(5,)]


def test_files_of_every_format_and_a_column_of_the_same_name_in_them(world: SegmentWorld) -> None:
    name = table(world, "formats", ("day", "date"), ("n", "int"))
    root = world.root / "formats"
    for i, suffix in enumerate(("parquet", "orc", "json", "txt", "csv.gz")):
        path = write(root / suffix / f"n={i}" / "day=2024-05-01" / f"f.{suffix}", 10 * i)
        format = {"txt": "text", "csv.gz": "csv"}.get(suffix, suffix)
        world.add(name, path, format=format)
    odd = pa.table({"day": ["in the file"], "id": pa.array([99], pa.int32()), "name": ["x"]})
    path = root / "n=7/day=2024-05-09/odd.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(odd, path)
    world.add(name, path)
    for settings in (FETCH, TEZ):
        assert len(world.same(f"SELECT * FROM {name}", settings)) == 26
        world.same(f"SELECT n FROM {name} WHERE n > 1 AND n <> 3", settings)
        world.same(f"SELECT id, n, day FROM {name} WHERE day > DATE '2024-05-01'", settings)
    compaction.compact(world.config, name, kind="custom", ids=["0", "1", "4", "5"])
    assert len(world.same(f"SELECT * FROM {name} WHERE n <> 2")) == 21


def test_the_first_segment_brings_columns_to_all_engines(world: SegmentWorld) -> None:
    name = table(world, "inferred")
    world.add(name, days(world, "inferred"))
    world.same(f"SELECT * FROM {name} WHERE day = DATE '2024-05-03'")
    (row, *_) = world.hive.ask(f"SELECT day, id FROM {name} WHERE id = 20", FETCH).rows
    assert str(row[0]) == "2024-05-03"


def test_views_and_indexes_hold_them(world: SegmentWorld) -> None:
    name = table(world, "viewed", ("day", "date"))
    world.add(name, days(world, "viewed"))
    indexes.create_index(world.config, name, name="m", kind="minmax", local=True)
    views.create_view(world.config, name, name="v", columns=["id"], sort_by=["id"], local=True)
    world.add(name, write(world.root / "more/day=2024-05-02/g.parquet", 200))
    for settings in (FETCH, TEZ):
        for where, files in (
            ("day = DATE '2024-05-02'", 2),
            ("day = DATE '2024-05-02' AND id = 11", 1),
            ("id = 201", 1),
        ):
            sql = f"SELECT id, day FROM {name} WHERE {where}"
            assert world.same(sql, settings)
            assert files_read(world, sql, settings) == files
            assert world.stack.kept_files(sql) == files
