"""Hooked ORC tables in a real HiveServer2: files are skipped, and no row is missed, whether Hive
finds columns by their place (its default) or by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pytest

from bridge.hive.checks import examine_hooks
from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_sales import write_sales
from tests.engines.hive_stack import (
    FETCH,
    TEZ,
    HookedHive,
    PlannerUnderTest,
    age,
    hooked_hive,
    naming,
    register,
)

pytestmark = pytest.mark.full

NAME = TableName("orcs", "sales")
ODD = TableName("orcs", "odd")
BY_NAME = {"orc.force.positional.evolution": "false"}
PLACES = pytest.mark.parametrize("finding", [{}, BY_NAME], ids=["by-place", "by-name"])
_COLUMNS = (
    "k bigint, n int, s string, v varchar(5), c char(4), b boolean, d date, ts timestamp, "
    "price decimal(10,2), f float, x double, st struct<a:int,b:string>, bin binary"
)


@pytest.fixture(scope="module")
def both(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    root = tmp_path_factory.mktemp("orc")
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache")) as running:
        hive = running[0]
        hive.forget(NAME.schema)
        _written_by_hive(hive, root)
        _odd_files(hive, root / "odd")
        yield running


def _written_by_hive(hive: HookedHive, root: Path) -> None:
    """Twelve files of twenty rows that Hive writes in one go, each into a partition of its own."""
    source = TableName("orcs", "source")
    table, partitions = write_sales(root / "source", source)
    register(hive.metastore_uri, source, table, partitions)
    hive.ask(
        f"CREATE EXTERNAL TABLE {NAME} ({_COLUMNS}) PARTITIONED BY (p int) STORED AS ORC "
        f"LOCATION 'file://{root}/sales'"
    )
    hive.ask(
        f"INSERT INTO {NAME} PARTITION (p) SELECT k, n, s, v, c, b, d, ts, price, f, x, st, "
        f"CAST(s AS binary), CAST(k / 20 AS int) FROM {source}",
        {**TEZ, "hive.exec.dynamic.partition.mode": "nonstrict"},
    )
    for partition in (root / "sales").glob("p=*"):  # Hive still clears up beside them
        age(partition)
    hive.build_index(NAME)


def _odd_files(hive: HookedHive, directory: Path) -> None:
    """Files whose columns Hive finds one way or the other, or not at all."""
    hive.ask(
        f"CREATE EXTERNAL TABLE {ODD} (a int, b bigint, s string, x double, v varchar(3)) "
        f"STORED AS ORC LOCATION 'file://{directory}'"
    )
    directory.mkdir(exist_ok=True)

    def put(name: str, **columns: Any) -> None:
        po.write_table(pa.table(columns), str(directory / name))

    def ints(*values: int) -> pa.Array:
        return pa.array(values, pa.int32())

    long = pa.int64()
    put(
        "same",
        a=ints(1, 2),
        b=pa.array([10, 11], long),
        s=["s1", "s2"],
        x=[1.0, -0.0],
        v=["a", "b"],
    )
    put("narrow", a=ints(3, 4), b=ints(20, 21), s=["s3", "s4"],
        x=pa.array([0.1, 0.2], pa.float32()), v=["abcdef", "xyzzz"])  # fmt: skip
    put(
        "swapped",
        b=pa.array([30, 31], long),
        a=ints(5, 6),
        s=["s5", "s6"],
        x=[3.0, 4.0],
        v=["c", "d"],
    )
    put("nameless", _col0=ints(7, 8), _col1=pa.array([40, 41], long), _col2=["s7", "s8"],
        _col3=[5.0, float("nan")], _col4=["e", "f"])  # fmt: skip
    put("short", a=ints(9, 10), b=pa.array([50, 51], long))
    put(
        "upper",
        A=ints(11, 12),
        B=pa.array([60, 61], long),
        S=["s9", "s0"],
        X=[7.0, 8.0],
        V=["g", "h"],
    )
    age(directory)
    hive.build_index(ODD)


@pytest.fixture
def hive(both: tuple[HookedHive, PlannerUnderTest]) -> HookedHive:
    return both[0]


ASKED = {
    "k = 77": 1,
    "k BETWEEN 38 AND 41": 2,
    "n < 100": 1,
    "n IS NULL": 1,
    "s = 'd-077'": 1,
    "s LIKE 'c%'": 1,
    "v = 'v031'": 1,
    "c = '03'": 12,
    "b IS NULL": 1,
    "d < DATE '2013-03-05'": 1,
    "ts < TIMESTAMP '2013-03-10 00:00:00'": 2,
    "to_date(ts) = DATE '2013-03-10'": 2,
    "year(d) = 2012": 0,
    "price = 57.75": 1,
    "f = 1.5": 3,
    "x > 1e10": 3,
    "x < 29": 2,
    "st.a = 5": 12,
    "bin = CAST('d-077' AS binary)": 12,
    "k = 77 OR s = 'f-115'": 2,
    "NOT (k < 200)": 2,
    "k = 77 AND p = 5": 0,
    "p = 5 OR k = 77": 12,  # whose partition a file is, only Hive knows for sure
    "p IN (1, 2) OR k BETWEEN 38 AND 41 OR s = 'zz'": 12,
    "(p = 3 AND k < 50) OR (p = 4 AND k > 95)": 12,
    "k = 9999": 0,
    "upper(s) = 'D-077'": 12,
}


@pytest.mark.parametrize("condition", ASKED)
def test_what_hive_wrote_is_skipped_by_file(hive: HookedHive, condition: str) -> None:
    sql = f"SELECT k, s FROM {NAME} WHERE {condition}"
    answer = hive.ask(sql)
    assert sorted(answer.rows, key=str) == sorted(hive.unhooked(sql), key=str)
    assert answer.read <= ASKED[condition] and not answer.warnings


def test_files_are_skipped_before_hive_reads_their_footers(hive: HookedHive) -> None:
    """Hive by itself would leave out by footers what is counted here as listed."""
    for settings in (FETCH, TEZ):
        answer = hive.ask(f"SELECT k FROM {NAME} WHERE k = 77", settings)
        assert answer.rows == [(77,)] and (answer.read, answer.listed) == (1, 12)


ODDITIES = {
    "b = 20": 3,
    "b = 41": 3,
    "b = 31": 2,
    "a = 30": 2,
    "a = 12": 2,
    "a IS NULL": 2,
    "s IS NULL": 3,
    "s = 's5'": 2,
    "x > 0.1 AND x < 0.3": 4,
    "x = 0": 4,
    "v = 'xyz'": 4,
    "b > 1000": 2,
}


@PLACES
@pytest.mark.parametrize("condition", ODDITIES)
def test_columns_by_place_and_by_name(
    hive: HookedHive, condition: str, finding: dict[str, str]
) -> None:
    sql = f"SELECT * FROM {ODD} WHERE {condition}"
    answer = hive.ask(sql, {**FETCH, **finding})
    expected = hive.unhooked(sql, {**FETCH, **finding})
    assert sorted(map(str, answer.rows)) == sorted(map(str, expected))  # a NaN is not itself
    assert answer.listed == 6 and answer.read <= ODDITIES[condition] and not answer.warnings


def test_the_table_s_columns_change(hive: HookedHive, tmp_path: Path) -> None:
    """Renamed, retyped, and a partition that is described in other words than the table."""
    name = TableName("orcs", "changing")
    hive.ask(
        f"CREATE EXTERNAL TABLE {name} (a int, b int) PARTITIONED BY (p int) STORED AS ORC "
        f"LOCATION 'file://{tmp_path}'"
    )
    for p in (1, 2, 3):
        (tmp_path / f"p={p}").mkdir()
        columns = {"a": pa.array([p * 10], pa.int32()), "b": pa.array([p * 100], pa.int32())}
        po.write_table(pa.table(columns), str(tmp_path / f"p={p}" / "f"))
        hive.ask(f"ALTER TABLE {name} ADD PARTITION (p = {p})")
    age(tmp_path)
    with MetastoreClient(hive.metastore_uri) as client:
        found = client.get_partitions_by_names(name.schema, name.table, ["p=1", "p=2"])
        one, two = found.partitions
        one.sd.cols = one.sd.cols[:1]
        two.sd.cols[1].type = "tinyint"
        client.alter_partitions(name.schema, name.table, [one, two])
    hive.build_index(name)

    def agrees(condition: str, files: int) -> None:
        sql = f"SELECT * FROM {name} WHERE {condition}"
        for way in ({}, BY_NAME):
            answer = hive.ask(sql, {**FETCH, **way})
            assert sorted(answer.rows) == sorted(hive.unhooked(sql, {**FETCH, **way}))
            assert answer.read <= files, condition

    for condition, files in (("b = 100", 1), ("b = 200", 1), ("b IS NULL", 0), ("a = 10", 1)):
        agrees(condition, files)
    hive.ask(f"ALTER TABLE {name} CHANGE COLUMN b b bigint")
    agrees("b = 200", 1)
    hive.ask(f"ALTER TABLE {name} CHANGE COLUMN b c bigint")
    agrees("c = 200", 3)  # by its place it is b, by its name it is nothing
    agrees("a = 10", 1)
    hive.ask(f"ALTER TABLE {name} ADD COLUMNS (e string)")
    agrees("e = 'x'", 0)


def test_two_columns_that_swap_their_names(hive: HookedHive, tmp_path: Path) -> None:
    """The planner knows the old definition for a moment longer than Hive."""
    name = TableName("orcs", "swapping")
    for i in range(4):
        low, high = range(10 * i, 10 * i + 10), range(1000 - 10 * i, 1010 - 10 * i)
        columns = {"a": pa.array(low, pa.int64()), "b": pa.array(high, pa.int64())}
        po.write_table(pa.table(columns), str(tmp_path / f"f{i}"))
    age(tmp_path)
    hive.ask(
        f"CREATE EXTERNAL TABLE {name} (a bigint, b bigint) STORED AS ORC "
        f"LOCATION 'file://{tmp_path}'"
    )
    hive.build_index(name)
    assert hive.ask(f"SELECT b FROM {name} WHERE a = 1").read == 1
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        hive.ask(f"ALTER TABLE {name} CHANGE {old} {new} bigint")
    for settings in (FETCH, TEZ):
        assert hive.ask(f"SELECT b FROM {name} WHERE a = 1005", settings).rows == [(5,)]


def test_new_and_changed_files_are_read(hive: HookedHive) -> None:
    sql = f"SELECT k, p FROM {NAME} WHERE k IN (77, 5000)"
    assert hive.ask(sql).read == 1
    hive.ask(f"INSERT INTO {NAME} PARTITION (p = 20) (k, s) VALUES (5000, 'new')")
    answer = hive.ask(sql)
    assert sorted(answer.rows) == [(77, 3), (5000, 20)] and answer.read == 2
    hive.ask(f"ALTER TABLE {NAME} DROP PARTITION (p = 20)")


def test_a_planner_that_names_all_files_shows(
    both: tuple[HookedHive, PlannerUnderTest],
) -> None:
    """Those of the very size and time that it names; others are read."""
    hive, planner = both
    directories = [_location(hive) / f"p={p}" for p in range(12)]
    files = sorted(f for d in directories for f in d.iterdir() if f.name[0].isalnum())
    assert len(files) == 12
    sql = f"SELECT k FROM {NAME} WHERE k >= 0"
    try:
        planner.answer = lambda own, request: naming(files, shift=0)
        for settings in (FETCH, TEZ):
            assert hive.ask(sql, settings).rows == []
        planner.answer = lambda own, request: naming(files, shift=1)
        assert len(hive.ask(sql).rows) == 240
    finally:
        planner.answer = None


def _location(hive: HookedHive) -> Path:
    with MetastoreClient(hive.metastore_uri) as client:
        return Path(client.get_table(NAME.schema, NAME.table).sd.location.removeprefix("file:"))


def test_other_indexes_are_built(hive: HookedHive) -> None:
    config = Config({"metastore.uri": Setting(hive.metastore_uri, "test")})
    report = index_table(
        config,
        str(NAME),
        local=True,
        asked=RequestedIndexes(kinds=(("bloom", "s"),)),
        progress=lambda done, total: None,
        say=lambda text: None,
    )
    assert report["files"] and not report["failed"]


def test_doctor_knows_orc(hive: HookedHive) -> None:
    config = Config({"metastore.uri": Setting(hive.metastore_uri, "test")})
    (found,) = examine_hooks(config, str(ODD), True)
    assert found.status == "ok" and found.detail.startswith("hooked by plan")
