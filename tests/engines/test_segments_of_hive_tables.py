"""ADD SEGMENT FROM TABLE: Hive's own tables become segments, with their rows and partition keys."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.kernel.errors import (
    BridgeError,
    InvalidRequest,
    OperationBlocked,
    SegmentOverlap,
    SegmentSchemaMismatch,
    TableNotFound,
    UnsupportedTable,
)
from bridge.metastore.client import MetastoreClient
from bridge.segments.commands import add, manage, tables
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ, hooked_hive
from tests.engines.segment_world import SegmentWorld, files_read, segment_world
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

SCHEMA = "segments_of_hive"
COLUMNS = [("id", "int"), ("name", "string")]
BY_PLACE = "TBLPROPERTIES ('parquet.column.index.access'='true')"
SERDE_BY_PLACE = (
    "ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe' "
    "WITH SERDEPROPERTIES ('parquet.column.index.access'='True') STORED AS PARQUET"
)
OPEN_CSV = "SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'"


@pytest.fixture(scope="module")
def world(
    hiveserver2: RunningHiveServer2, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SegmentWorld]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache"), hook=False) as (hive, _):
        yield segment_world(hive, stack, tmp_path_factory.mktemp(SCHEMA), SCHEMA)


def hive_table(
    world: SegmentWorld,
    name: str,
    stored: str,
    keys: str = "day date",
    columns: str = "",
    more: str = "",
) -> Path:
    """A table of Hive's own, in a directory."""
    root = world.root / "hive" / name
    root.mkdir(parents=True)
    partitioned = f"PARTITIONED BY ({keys})" if keys else ""
    run(
        world,
        f"CREATE EXTERNAL TABLE {SCHEMA}.{name} ({columns or 'id int, name string'}) "
        f"{partitioned} {stored} LOCATION 'file://{root}' {more}",
    )
    return root


def run(world: SegmentWorld, sql: str) -> None:
    world.hive.ask(sql)


def partition(world: SegmentWorld, table: str, values: dict[str, str], location: Path) -> None:
    spec = ", ".join(f"{key}='{value}'" for key, value in values.items())
    run(
        world,
        f"ALTER TABLE {SCHEMA}.{table} ADD PARTITION ({spec}) LOCATION 'file://{location}'",
    )


def take(world: SegmentWorld, table: str, source: str, **given: Any) -> dict[str, Any]:
    return add.add_segment(
        world.config, table, from_table=f"{SCHEMA}.{source}", local=True, **given
    )


def parquet(path: Path, first: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = range(first, first + 5)
    data = pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{i}" for i in ids]})
    pq.write_table(data, path)


def same(world: SegmentWorld, name: str, source: str, where: str = "true") -> int:
    """The rows of the table of segments in Hive and Trino are those of Hive's own."""
    count = 0
    for settings in (FETCH, TEZ):
        mine = world.same(f"SELECT * FROM {name} WHERE {where}", settings)
        theirs = world.hive.unhooked(f"SELECT * FROM {SCHEMA}.{source} WHERE {where}", settings)
        assert sorted(map(str, mine)) == sorted(map(str, theirs))
        count = len(mine)
    return count


def test_partitions_of_any_place_with_their_keys(world: SegmentWorld) -> None:
    root = hive_table(world, "old", "STORED AS PARQUET", "day date, city string")
    places = [
        ({"day": "2024-05-01", "city": "Bonn"}, root / "day=2024-05-01" / "city=Bonn"),
        ({"day": "2024-05-02", "city": "a/b"}, world.root / "elsewhere" / "x"),
        ({"day": "2024-05-02", "city": "Köln"}, world.root / "elsewhere" / "city=wrong"),
    ]
    for i, (values, place) in enumerate(places):
        parquet(place / f"f{i}.parquet", 10 * i)
        (place / "_SUCCESS").write_text("")
        partition(world, "old", values, place)
    name = world.table("from_old", columns=COLUMNS)
    report = take(world, name, "old")
    assert (report["files"], report["segment"]) == (3, "0")
    assert same(world, name, "old") == 15
    assert same(world, name, "old", "day = DATE '2024-05-02' AND city = 'a/b'") == 5
    sql = f"SELECT id FROM {name} WHERE city = 'Köln'"
    assert files_read(world, sql, FETCH) == 1 and world.stack.kept_files(sql) == 1
    with pytest.raises(SegmentOverlap):
        take(world, name, "old", partition={"CITY": "Bonn"})
    chosen = world.table("from_some", columns=COLUMNS, partition_columns=[("day", "string")])
    assert take(world, chosen, "old", partition={"day": "2024-05-02"})["files"] == 2
    found = world.same(f"SELECT id, day FROM {chosen}")
    assert {row[1] for row in found} == {"2024-05-02"} and len(found) == 10


@pytest.mark.parametrize(
    ("kind", "stored", "text"),
    [
        (
            "csv",
            "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' WITH SERDEPROPERTIES "
            "('separatorChar'=';', 'quoteChar'='!') STORED AS TEXTFILE",
            "name;id\n!x;y!;1\nz;2\n",
        ),
        (
            "text",
            "ROW FORMAT DELIMITED FIELDS TERMINATED BY '|' NULL DEFINED AS '-' STORED AS TEXTFILE",
            "x|1\n-|2\n",
        ),
        (
            "split",
            "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe' "
            "WITH SERDEPROPERTIES ('serialization.format'=',') STORED AS TEXTFILE",
            "x,1\n\\N,2\n",
        ),
        (
            "json",
            "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.JsonSerDe' STORED AS TEXTFILE",
            '{"name": "x", "id": "1"}\n{"name": null, "id": "2"}\n',
        ),
        ("orc", "STORED AS ORC", ""),
    ],
)
def test_the_serde_of_the_record_reads_the_files(
    world: SegmentWorld, kind: str, stored: str, text: str
) -> None:
    columns = [("name", "string"), ("id", "string")]
    more = "TBLPROPERTIES ('skip.header.line.count'='1')" if kind == "csv" else ""
    root = hive_table(world, kind, stored, columns="name string, id string", more=more)
    place = root / "day=2024-05-01"
    place.mkdir()
    partition(world, kind, {"day": "2024-05-01"}, place)
    if text:
        (place / "f.txt").write_text(text)
    else:
        po.write_table(pa.table({"name": ["x", None], "id": ["1", "2"]}), place / "f.orc")
    # The table of segments is of another format: the record tells.
    name = world.table(f"from_{kind}", "parquet", columns)
    take(world, name, kind)
    (segment,) = manage.list_segments(world.config, name)["segments"]
    assert segment["format"] == ("text" if kind == "split" else kind)
    assert same(world, name, kind) == 2


@pytest.mark.parametrize(
    ("stored", "columns", "error", "said"),
    [
        (
            "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\' STORED AS TEXTFILE",
            "",
            UnsupportedTable,
            "escape.delim",
        ),
        ("STORED AS PARQUET", "by place", UnsupportedTable, "by their places"),
        (SERDE_BY_PLACE, "", UnsupportedTable, "by their places"),
        ("STORED AS PARQUET", "id bigint, name string", SegmentSchemaMismatch, "bigint id"),
        ("STORED AS PARQUET", "id int", SegmentSchemaMismatch, "no column name"),
        (
            "ROW FORMAT DELIMITED STORED AS TEXTFILE",
            "name string, id int",
            SegmentSchemaMismatch,
            "in this order",
        ),
    ],
)
def test_what_segments_would_read_otherwise_is_refused(
    world: SegmentWorld, stored: str, columns: str, error: type[BridgeError], said: str
) -> None:
    source = f"odd{abs(hash((stored, columns)))}"
    more = BY_PLACE if columns == "by place" else ""
    root = hive_table(world, source, stored, "", "" if more else columns, more)
    parquet(root / "f", 0)
    name = world.table(f"from_{source}", columns=COLUMNS)
    with pytest.raises(error, match=said):
        take(world, name, source)
    assert not tables.describe(world.config, name)["segments"]


@pytest.mark.parametrize(
    ("kind", "stored", "text", "columns", "change", "said"),
    [
        ("text", "DELIMITED", "007\x01x\n", "id int, name string", "id id string", "int id"),
        ("text", "DELIMITED", "a\x01b\n", "id string", "", "no column name"),
        ("csv", OPEN_CSV, "1,x\n", "id string, nom string", "nom name string", ""),
    ],
)
def test_partitions_keep_the_columns_that_they_were_made_with(
    world: SegmentWorld,
    kind: str,
    stored: str,
    text: str,
    columns: str,
    change: str,
    said: str,
) -> None:
    source = f"changed_{kind}_{said.replace(' ', '_')}"
    root = hive_table(world, source, f"ROW FORMAT {stored} STORED AS TEXTFILE", columns=columns)
    place = root / "day=2024-05-01"
    place.mkdir()
    partition(world, source, {"day": "2024-05-01"}, place)
    (place / "f.txt").write_text(text)
    how = f"CHANGE COLUMN {change}" if change else "ADD COLUMNS (name string)"
    run(world, f"ALTER TABLE {SCHEMA}.{source} {how}")
    name = world.table(f"from_{source}", columns=[("id", "string"), ("name", "string")])
    if not said:
        take(world, name, source)
        assert same(world, name, source) == 1
        return
    with pytest.raises(SegmentSchemaMismatch, match=said):
        take(world, name, source)


@pytest.mark.parametrize(("type", "values"), [("char(3)", "abc xyz"), ("double", "1.5 2.5")])
def test_a_partition_is_chosen_by_its_spelling_where_values_are_not_parsed(
    world: SegmentWorld, type: str, values: str
) -> None:
    source = f"chosen_{type[:4]}"
    root = hive_table(world, source, "STORED AS PARQUET", f"k {type}")
    for i, value in enumerate(values.split()):
        parquet(root / str(i) / "f.parquet", 10 * i)
        partition(world, source, {"k": value}, root / str(i))
    name = world.table(f"from_{source}", columns=COLUMNS, partition_columns=[("k", "string")])
    with pytest.raises(InvalidRequest, match="no partition"):
        take(world, name, source, partition={"k": "other"})
    assert take(world, name, source, partition={"k": values[4:]})["files"] == 1
    assert {row[0] for row in world.same(f"SELECT k FROM {name}")} == {values[4:]}


def test_partitions_that_do_not_fit_are_refused(world: SegmentWorld) -> None:
    root = hive_table(world, "mixed", "STORED AS PARQUET", "day string")
    place = root / "day=1"
    parquet(place / "f.parquet", 0)
    partition(world, "mixed", {"day": "1"}, place)
    partition(world, "mixed", {"day": "2"}, place)
    name = world.table("from_mixed", columns=COLUMNS)
    with pytest.raises(SegmentOverlap, match="two partitions"):
        take(world, name, "mixed")
    with pytest.raises(InvalidRequest, match="no partition day=9"):
        take(world, name, "mixed", partition={"day": "9"})
    with pytest.raises(InvalidRequest, match="no partition key x"):
        take(world, name, "mixed", partition={"x": "9"})
    with pytest.raises(TableNotFound):
        take(world, name, "absent")
    with pytest.raises((UnsupportedTable, OperationBlocked)):
        take(world, name, "from_mixed")
    shutil.rmtree(place)
    with pytest.raises(InvalidRequest, match="no file"):
        take(world, name, "mixed", partition={"day": "1"})
    keyed = world.table("keyed", columns=COLUMNS, partition_columns=[("hour", "int")])
    parquet(place / "f.parquet", 0)
    with pytest.raises(SegmentSchemaMismatch, match="no partition key hour"):
        take(world, keyed, "mixed", partition={"day": "1"})


def test_the_record_of_the_table_is_asked_for_once(
    world: SegmentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(hive_table(world, "once", "STORED AS PARQUET", "") / "f", 0)
    name = world.table("from_once", columns=COLUMNS)
    asked: list[str] = []
    ask = MetastoreClient.get_table

    def count(client: MetastoreClient, schema: str, table: str) -> Any:
        asked.append(table)
        return ask(client, schema, table)

    monkeypatch.setattr(MetastoreClient, "get_table", count)
    assert take(world, name, "once")["files"] == 1
    assert asked.count("once") == 1


def test_nothing_changes_in_hives_table(world: SegmentWorld) -> None:
    root = hive_table(world, "kept", "STORED AS PARQUET")
    parquet(root / "day=2024-05-01" / "f.parquet", 0)
    partition(world, "kept", {"day": "2024-05-01"}, root / "day=2024-05-01")
    name = world.table("from_kept", columns=COLUMNS)
    take(world, name, "kept", partition={"day": "2024-05-01"})
    tables.drop_table(world.config, name)
    assert len(world.hive.unhooked(f"SELECT * FROM {SCHEMA}.kept")) == 5
