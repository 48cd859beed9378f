"""Types in partitions' records: they stay, unless the partition's own files need a wider one."""

from __future__ import annotations

import copy
import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import parse_hive_type
from bridge.metastore._gen import ttypes
from bridge.sync.writing.metastore import _followed
from tests.support.sync_lake import Meddle, Remove, SyncLake, Write
from tests.tiers import examples, seed
from tests.unit.jobs.test_sync_absence import lake_of, many, sync

KINDS = {"first": "int", "wider": "bigint", "longer": "int"}


def types(lake: SyncLake) -> dict[str, str]:
    found = lake.metastore.partitions.items()
    return {values[0]: p.sd.cols[0].type for values, p in found}


def retype(lake: SyncLake, type_: str) -> None:
    partition = lake.metastore.partitions["1", "1"]
    partition.sd = copy.deepcopy(partition.sd)
    partition.sd.cols[0].type = type_


def past(lake: SyncLake) -> None:
    for file in lake.root.rglob("*.parquet"):
        if time.time() - file.stat().st_mtime < 500:
            os.utime(file, (time.time() - 1000, time.time() - 1000))


def test_files_beyond_the_sample_are_read_where_types_differ(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(12))
    lake.settings = replace(lake.settings, schema_sample=2)
    past(lake)
    sync(lake)
    for i in range(6):
        lake.take(Write(f"p={i}/q=1", "wider", "g.parquet"))
    sync(lake)
    assert types(lake) == {str(i): "bigint" if i < 6 else "int" for i in range(12)}
    past(lake)
    sync(lake)
    for i in range(6, 10):  # the table's type is wide already
        lake.take(Write(f"p={i}/q=1", "wider", "g.parquet"))
    report = sync(lake)
    assert report.compared == "changes" and len(report.updated) == 4
    assert {change for _, change in report.updated} == {"column id int -> bigint"}
    assert types(lake) == {str(i): "bigint" if i < 10 else "int" for i in range(12)}
    assert sync(lake, full=True).outcome == "in step"


def test_random_files_decide_for_their_own_partition_alone(tmp_path: Path) -> None:
    """Against brute force: what a partition's files need, and what it had."""
    for number in range(examples(3, 60, 600)):
        draw = random.Random(seed(0) + number)
        lake = lake_of(tmp_path / str(number), *many(6))
        lake.settings = replace(lake.settings, schema_sample=draw.choice([0, 1, 3, 400]))
        wide: set[str] = set()
        for _ in range(4):
            new: set[str] = set()
            for _ in range(draw.randint(0, 4)):
                value, kind = str(draw.randrange(9)), draw.choice(sorted(KINDS))
                file = f"{draw.randrange(1000)}.parquet"
                lake.take(Write(f"p={value}/q=1", kind, file))
                if draw.random() < 0.3:  # copied with its time
                    os.utime(lake.root / f"p={value}" / "q=1" / file, (1_600_000_000,) * 2)
                wide |= {value} if kind == "wider" else set()
                new |= {value} - {v for v, _ in lake.metastore.partitions}
            before = types(lake)
            sync(lake, full=draw.random() < 0.3)
            table = lake.metastore.record.sd.cols[0].type
            read = lake.settings.schema_sample in (0, 400)
            assert not read or table == ("bigint" if wide else "int")
            for value, type_ in types(lake).items():
                needed = "bigint" if value in wide else "int"
                if value in new:
                    assert type_ == table
                elif table == "bigint":
                    wanted = "bigint" if "bigint" in (before[value], needed) else "int"
                    assert type_ == wanted or (not read and type_ == "int"), (number, value)
                else:
                    assert type_ == before[value]
            lake.check() if read else None


@pytest.mark.rule("44")
def test_a_type_that_another_set_stays(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    retype(lake, "decimal(3,1)")
    lake.take(Meddle("columns", ("1", "1")))  # and it lacks a column
    lake.take(Write("p=2/q=1", "wider", "g.parquet"))
    lake.take(Write("p=1/q=1", "wider", "g.parquet"))
    sync(lake, full=True)
    assert types(lake) == {"0": "int", "1": "decimal(3,1)", "2": "bigint"}
    columns = [c.name for c in lake.metastore.record.sd.cols]
    assert [c.name for c in lake.metastore.partitions["1", "1"].sd.cols] == columns


@pytest.mark.rule("44")
def test_a_type_that_another_sets_meanwhile_stays(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    lake.take(Write("p=1/q=1", "wider", "g.parquet"))
    reads: list[str] = []

    def interfere(method: str, moment: str) -> None:
        if moment == "after" and method == "get_partitions_by_names" and not reads:
            reads.append(method)
            retype(lake, "string")

    lake.metastore.interfere = interfere
    sync(lake)
    assert reads and types(lake)["1"] == "string"


@pytest.mark.rule("44")
def test_a_format_that_another_sets_meanwhile_stays(tmp_path: Path) -> None:
    """The partition's files were rewritten: the table's classes would not read them."""
    lake = lake_of(tmp_path, *many(3))
    descriptor = lake.metastore.partitions["1", "1"].sd
    descriptor.outputFormat = "org.apache.hadoop.hive.ql.io.parquet.Other"
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    reads: list[str] = []

    def interfere(method: str, moment: str) -> None:
        if moment == "after" and method == "get_partitions_by_names" and not reads:
            reads.append(method)
            record = copy.deepcopy(lake.metastore.partitions["1", "1"])
            lake.metastore.partitions["1", "1"], now = record, record.sd
            now.inputFormat, now.outputFormat = f"{orc}InputFormat", f"{orc}OutputFormat"
            now.serdeInfo = ttypes.SerDeInfo(serializationLib=f"{orc}Serde")

    lake.metastore.interfere = interfere
    report = sync(lake, full=True)
    assert reads and lake.metastore.partitions["1", "1"].sd.inputFormat == f"{orc}InputFormat"
    assert "its files are orc" in report.kept[0][2] and report.rounds == 2


@pytest.mark.rule("44")
@pytest.mark.parametrize(("name", "rounds"), [("note", 2), ("numRows", 1)])
def test_a_property_that_another_sets_meanwhile(tmp_path: Path, name: str, rounds: int) -> None:
    """The record is no more the one of the decision, but for what is counted."""
    lake = lake_of(tmp_path, *many(3))
    lake.take(Meddle("columns", ("1", "1")))
    reads: list[str] = []

    def interfere(method: str, moment: str) -> None:
        if moment == "after" and method == "get_partitions_by_names" and not reads:
            reads.append(method)
            record = copy.deepcopy(lake.metastore.partitions["1", "1"])
            record.parameters[name] = "7"
            lake.metastore.partitions["1", "1"] = record

    lake.metastore.interfere = interfere
    report = sync(lake, full=True)
    record = lake.metastore.partitions["1", "1"]
    assert (report.rounds, record.parameters[name]) == (rounds, "7")
    assert len(record.sd.cols) == len(lake.metastore.record.sd.cols)


@pytest.mark.rule("48")
def test_what_is_equal_within_a_grown_type_keeps_its_spelling() -> None:
    held = [ttypes.FieldSchema("Id", "struct<A:int,b:string>", "of others")]
    table = [ttypes.FieldSchema("id", "struct<a:bigint,b:string,c:int>"), *_new()]
    grown = parse_hive_type("struct<a:bigint,b:string>")
    types = [("id", "struct<a:int,b:string>", grown)]
    (first, second) = _followed(held, table, types)
    assert (first.name, first.comment, second) == ("Id", "of others", *_new())
    assert first.type == "struct<A:bigint,b:string>" and held[0].type == "struct<A:int,b:string>"
    assert _followed(held, table, [("id", "struct<a:date>", grown)])[0] == held[0]


def _new() -> list[ttypes.FieldSchema]:
    return [ttypes.FieldSchema("new", "int")]


def test_structs_of_partitions_grow_by_their_own_files(tmp_path: Path) -> None:
    lake = SyncLake(tmp_path)
    short, longer = ([("A", pa.int32())], [("A", pa.int32()), ("B", pa.string())])

    def write(value: int, members: list[tuple[str, pa.DataType]], name: str) -> None:
        place = lake.root / f"p={value}" / "q=1"
        place.mkdir(parents=True, exist_ok=True)
        array = pa.array([None], pa.struct(members))
        pq.write_table(pa.table({"s": array}), place / name)

    write(1, short, "f.parquet")
    write(2, short, "f.parquet")
    sync(lake)
    write(2, longer, "g.parquet")
    write(3, short, "f.parquet")
    sync(lake)
    longest = lake.metastore.record.sd.cols[0].type
    assert types(lake) == {"1": "struct<a:int>", "2": longest, "3": longest}
    assert longest == "struct<a:int,b:string>"
    assert sync(lake, full=True).outcome == "in step"


def test_a_column_whose_type_hive_does_not_have_is_named_in_each_run(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    rows = pa.table({"id": pa.array([1], pa.int32()), "at": pa.array([1], pa.time64("us"))})
    (lake.root / "p=9" / "q=1").mkdir(parents=True)
    pq.write_table(rows, lake.root / "p=9" / "q=1" / "f.parquet")
    past(lake)
    for full in (False, False, True):
        report = sync(lake, full=full)
        assert report.left_out == ["at"] and report.problems == 1
        assert report.compared == "all" if full else "changes"
    lake.take(Write("p=10/q=1", "first"))  # the next run reads this partition alone
    assert sync(lake).left_out == ["at"] and len(lake.metastore.partitions) == 5
    lake.take(Remove("p=9"))
    sync(lake, full=True)
    assert not sync(lake, full=True).problems


def test_a_member_without_values_is_named_until_a_file_has_some(tmp_path: Path) -> None:
    """The others of its column are there; what a table has already needs no type of a file."""
    lake = lake_of(tmp_path, *many(2))
    nothing = pa.struct([("x", pa.null()), ("l", pa.list_(pa.null())), ("n", pa.int32())])

    def write(p: int, b: pa.DataType, s: pa.DataType) -> None:
        (lake.root / f"p={p}" / "q=1").mkdir(parents=True)
        st = pa.struct([("A", pa.int32()), ("B", b), ("s", s)])
        table = pa.table({"id": pa.array([1], pa.int32()), "st": pa.array([None], st)})
        pq.write_table(table, lake.root / f"p={p}" / "q=1" / "f.parquet")
        past(lake)

    write(7, pa.null(), nothing)
    for full in (False, False, True):
        report = sync(lake, full=full)
        assert report.left_out == ["st.b", "st.s.l", "st.s.x"] and report.problems == 3
        assert lake.metastore.record.sd.cols[-1].type == "struct<a:int,s:struct<n:int>>"
    write(8, pa.string(), pa.null())
    assert sync(lake).left_out == ["st.s.l", "st.s.x"]
    write(9, pa.null(), pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int32()))]))
    assert not sync(lake).problems
    wanted = "struct<a:int,s:struct<n:int,x:bigint,l:array<int>>,b:string>"
    assert lake.metastore.record.sd.cols[-1].type == wanted
    write(10, pa.null(), nothing)  # of what is known nothing has to be told
    write(11, pa.null(), pa.null())
    assert not sync(lake).problems and not sync(lake, full=True).problems
    assert lake.metastore.record.sd.cols[-1].type == wanted
