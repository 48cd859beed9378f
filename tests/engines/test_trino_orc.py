"""ORC in Trino, beside Trino's own hive connector over the same tables: the same rows or an error
of both, whether columns are found by position or by name, and whether files are pruned or not.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import parse_hive_type
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import thrift_table
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.stack import Stack, register
from tests.support.hudi_tables import HudiTable, Written
from tests.tiers import nightly

pytestmark = pytest.mark.full

BY_NAME = "zoned"
"""The catalog that finds columns of ORC by their names."""
OFF = {"pruning_enabled": "false"}


def columns(text: str) -> tuple[Column, ...]:
    """Columns of ``name type`` pairs, separated by semicolons."""
    pairs = (each.split(maxsplit=1) for each in text.split(";"))
    return tuple(Column(name, parse_hive_type(type)) for name, type in pairs)


def ours(stack: Stack, sql: str, catalog: str = "bridge") -> list[Any]:
    """The rows, asserted to be the same without pruning."""
    rows = stack.query(sql, catalog=catalog)
    assert repr(stack.query(sql, OFF, catalog)) == repr(rows)
    return rows


def theirs(stack: Stack, sql: str, *, by_name: bool = False) -> list[Any]:
    session = {"orc_use_column_names": "true"} if by_name else {}
    return stack.query(sql, session, "hive")


def answer(rows: Any, *arguments: Any, **options: Any) -> Any:
    """The rows, or the word error."""
    try:
        return rows(*arguments, **options)
    except Exception:
        return "error"


@dataclass(frozen=True, slots=True)
class Types:
    """Table laws.orc_types."""

    rows: int


TYPES = (
    "id bigint; t tinyint; s smallint; i int; b boolean; f float; x double; d date;"
    "ts timestamp; m decimal(10,2); w decimal(30,4); txt string; v varchar(3); c char(4);"
    "bin binary; l array<int>; mp map<string,bigint>; st struct<a:int,b:struct<c:string>>"
)


def typed(start: int, count: int) -> pa.Table:
    """Rows with a NULL of each column here and there, and the odd values of each type."""
    ids = range(start, start + count)
    # Arrow writes fractions of seconds before 1970 in a way that Trino refuses.
    moment = dt.datetime(1970, 1, 1, 0, 0, 1, 123456)

    def some(value: Any) -> list[Any]:
        return [None if i % 11 == 5 else value(i) for i in ids]

    floats = (float("nan"), -0.0, 0.0, float("inf"), -1.5)
    texts = ("", "ab  ", "ünïcode ☃", "abcdef", "\x01z")
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "t": pa.array(some(lambda i: i % 200 - 100), pa.int8()),
            "s": pa.array(some(lambda i: i * 7 - 9000), pa.int16()),
            "i": pa.array(some(lambda i: i * 1000 - 5), pa.int32()),
            "b": pa.array(some(lambda i: i % 3 == 0)),
            "f": pa.array(some(lambda i: floats[i % 5] if i < 50 else i / 4), pa.float32()),
            "x": pa.array(some(lambda i: floats[i % 5] if i < 50 else i / 4), pa.float64()),
            "d": pa.array(some(lambda i: dt.date(1965, 1, 1) + dt.timedelta(days=i * 9))),
            "ts": pa.array(
                some(lambda i: moment + dt.timedelta(hours=i * 5, microseconds=i)),
                pa.timestamp("ns"),
            ),
            "m": pa.array(some(lambda i: Decimal(i - 100).scaleb(-2)), pa.decimal128(10, 2)),
            "w": pa.array(some(lambda i: Decimal(i) * 10**20), pa.decimal128(30, 4)),
            "txt": pa.array(some(lambda i: f"{texts[i % 5]}{i // 40}")),
            "v": pa.array(some(lambda i: texts[i % 5])),
            "c": pa.array(some(lambda i: texts[i % 5])),
            "bin": pa.array(some(lambda i: bytes([i % 256, 0, 255]))),
            "l": pa.array(some(lambda i: [i, None, -i][: i % 4]), pa.list_(pa.int32())),
            "mp": pa.array(some(lambda i: [(f"k{i % 3}", i)]), pa.map_(pa.string(), pa.int64())),
            "st": pa.array(some(lambda i: {"a": i, "b": {"c": f"c{i}"} if i % 2 else None})),
        }
    )


@pytest.fixture(scope="module")
def types(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Types:
    directory = tmp_path_factory.mktemp("orc-types")
    codecs = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
    for number in range(10):
        table = typed(number * 40, 40)
        po.write_table(table, directory / f"f{number}.orc", compression=codecs[number % 5])
    (directory / "empty.orc").touch()
    po.write_table(typed(0, 40).slice(0, 0), directory / "norows.orc")
    register(stack, "orc_types", directory, columns(TYPES), format="orc")
    return Types(400)


WHERE = (
    "true",
    "id BETWEEN 95 AND 130",
    "t = 7",
    "s > -8900 AND s < -8800",
    "b",
    "f <> 0",
    "is_nan(x)",
    "x >= 0 AND x < 14",
    "d = DATE '1967-08-07'",
    "ts >= TIMESTAMP '1970-02-20 00:00:00' AND ts < TIMESTAMP '1970-03-01 00:00:00'",
    "ts < TIMESTAMP '1970-01-01 00:00:00'",
    "m = DECIMAL '1.23'",
    "w > DECIMAL '39000000000000000000000.0000'",
    "txt LIKE 'ün%'",
    "v = 'abc'",
    "c = 'abcd'",
    "v > 'abc'",
    "c < 'b'",
    "bin = X'6400FF'",
    "st.a = 111",
    "st.b.c IS NULL AND id > 380",
    "element_at(mp, 'k1') > 350",
)


@pytest.mark.parametrize("catalog", ["bridge", BY_NAME])
def test_every_type_is_read_as_the_hive_connector_reads_it(
    stack: Stack, types: Types, catalog: str
) -> None:
    everything = "SELECT * FROM laws.orc_types WHERE {} ORDER BY id"
    by_name = catalog == BY_NAME
    for where in WHERE if catalog == "bridge" else WHERE[:6]:
        sql = everything.format(where)
        rows = ours(stack, sql, catalog)
        assert repr(rows) == repr(theirs(stack, sql, by_name=by_name)), where
    assert len(ours(stack, everything.format("true"), catalog)) == types.rows


@pytest.mark.usefixtures("types")
def test_aggregates_that_statistics_may_answer(stack: Stack) -> None:
    for column in ("id", "t", "i", "d", "ts", "m", "txt", "v", "c", "b"):
        sql = f"SELECT count(*), count({column}), min({column}), max({column}) FROM laws.orc_types"
        assert ours(stack, sql) == theirs(stack, sql), column
        where = f"{sql} WHERE id >= 80 AND id < 160"
        assert ours(stack, where) == theirs(stack, where), column


@pytest.mark.usefixtures("types")
def test_files_are_skipped(stack: Stack) -> None:
    assert stack.kept_files("SELECT x FROM laws.orc_types WHERE id = 95") == 1
    assert stack.kept_files("SELECT x FROM laws.orc_types WHERE d = DATE '1967-08-07'") == 1
    assert stack.kept_files("SELECT x FROM laws.orc_types WHERE id = 95", catalog=BY_NAME) == 1


@pytest.mark.usefixtures("types")
def test_hidden_columns(stack: Stack) -> None:
    path = "replace(\"$path\", 'file:///', 'file:/')"
    sql = f'SELECT {path}, "$file_size", count(*) FROM laws.orc_types WHERE id < 90 GROUP BY 1, 2'
    assert sorted(stack.query(sql)) == sorted(theirs(stack, sql))
    sql = f"SELECT {path}, count(*) FROM laws.orc_types GROUP BY 1"
    assert sorted(stack.query(sql)) == sorted(theirs(stack, sql))


_ODD = "a bigint; b string; c double; d bigint"


@pytest.fixture(scope="module")
def odd(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Files with fewer columns, others, in another order, case or width, each in its own range."""
    directory = tmp_path_factory.mktemp("orc-odd")

    def write(number: int, *names: str, **cast: pa.DataType) -> None:
        ids = np.arange(number * 10, number * 10 + 10)
        made = {
            "a": pa.array(ids),
            "b": pa.array([f"b{i}" for i in ids]),
            "c": pa.array(ids / 2),
            "d": pa.array(ids * 100),
            "extra": pa.array(ids),
        }
        held = {}
        for name in names:
            values = made[name.lower().rstrip("2")]
            held[name] = values.cast(cast[name]) if name in cast else values
        po.write_table(pa.table(held), directory / f"f{number}.orc")

    write(0, "a", "b", "c", "d")
    write(1, "a")
    write(2, "a", "b")
    write(3, "A", "B", "C", "D")
    write(4, "a", "b", "c", "d", "extra", a=pa.int16(), c=pa.float32())
    write(5, "d", "b", "c", "a")
    write(6, "a", "b2", "c")
    register(stack, "orc_odd", directory, columns(_ODD), format="orc")


@pytest.mark.parametrize("catalog", ["bridge", BY_NAME])
@pytest.mark.usefixtures("odd")
def test_missing_moved_and_renamed_columns(stack: Stack, catalog: str) -> None:
    by_name = catalog == BY_NAME
    for where in (
        "true",
        "a = 52",
        "a = 5200",
        "a BETWEEN 8 AND 21",
        "b = 'b52'",
        "b = 'b63'",
        "b IS NULL",
        "c > 20",
        "c IS NULL AND a > 12",
        "d = 5300",
        "d = 53",
        "d IS NULL",
        "a = 33",
        "a = 44 AND c = 22",
    ):
        sql = f"SELECT * FROM laws.orc_odd WHERE {where} ORDER BY a, b"
        assert ours(stack, sql, catalog) == theirs(stack, sql, by_name=by_name), where


@pytest.mark.usefixtures("odd")
def test_odd_files_are_skipped_only_where_both_ways_agree(stack: Stack) -> None:
    kept = stack.kept_files("SELECT c FROM laws.orc_odd WHERE a = 15")
    # The file of (A, B, C, D) and that of (d, b, c, a) are doubtful.
    assert kept in (2, 3)


def test_nameless_files_are_found_by_position_only(stack: Stack, tmp_path: Path) -> None:
    made = {"_col0": pa.array([1, 2], pa.int64()), "_col1": pa.array(["x", "y"])}
    po.write_table(pa.table(made), tmp_path / "f.orc")
    register(stack, "orc_nameless", tmp_path, columns("a bigint; b string"), format="orc")
    sql = "SELECT * FROM laws.orc_nameless ORDER BY a"
    assert ours(stack, sql) == theirs(stack, sql) == [[1, "x"], [2, "y"]]
    assert answer(theirs, stack, sql, by_name=True) == "error"
    with pytest.raises(Exception, match=r"UNSUPPORTED_FILE.*has no names of columns|has no names"):
        stack.query(sql, catalog=BY_NAME)


_STORED: Mapping[str, pa.Array] = {
    "boolean": pa.array([True, False, None]),
    "tinyint": pa.array([-128, 0, None, 127], pa.int8()),
    "smallint": pa.array([-300, 7, None], pa.int16()),
    "int": pa.array([-70000, 7, None], pa.int32()),
    "bigint": pa.array([-(2**40), 7, None, 10**15], pa.int64()),
    "float": pa.array([1.5, -0.1, None], pa.float32()),
    "double": pa.array([1.5, -0.1, 1e20, None], pa.float64()),
    "decimal": pa.array([Decimal("12.34"), Decimal("-0.05"), None], pa.decimal128(10, 2)),
    "date": pa.array([dt.date(2020, 2, 29), dt.date(1950, 1, 1), None]),
    "timestamp": pa.array(
        [dt.datetime(2020, 2, 29, 1, 2, 3, 456789), dt.datetime(1950, 1, 1), None],
        pa.timestamp("ns"),
    ),
    "string": pa.array(["12", "-7", "true", "2020-02-29", "1.5", "abcdef", "", None]),
    "number": pa.array(["12", "-7", None]),
    "binary": pa.array([b"abc", b"\xff\x00", None]),
    "list": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
    "struct": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())])),
}
_TARGETS = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)"),
    *("decimal(5,1)", "decimal(20,5)", "date", "timestamp", "string", "varchar(3)", "char(3)"),
    *("binary", "array<bigint>", "struct<x:bigint,y:string>", "map<string,int>"),
)
_USUAL = ("bigint", "double", "decimal(5,1)", "string", "varchar(3)", "timestamp")


@pytest.mark.parametrize("stored", list(_STORED) if nightly() else ["int", "decimal", "string"])
def test_a_file_of_another_type_is_coerced_or_refused_alike(
    stack: Stack, tmp_path: Path, stored: str
) -> None:
    targets = _TARGETS if nightly() else _USUAL
    values = _STORED[stored]
    po.write_table(pa.table({f"c{n}": values for n in range(len(targets))}), tmp_path / "f.orc")
    made = columns("; ".join(f"c{n} {target}" for n, target in enumerate(targets)))
    name = f"orc_from_{stored}"
    register(stack, name, tmp_path, made, format="orc")
    for number, target in enumerate(targets):
        sql = f"SELECT c{number} FROM laws.{name}"
        expected = answer(theirs, stack, sql)
        assert repr(answer(stack.query, sql)) == repr(expected), f"{stored} as {target}"
        if expected == "error":
            continue
        for value in {str(row[0]).replace("'", "''") for row in expected if row[0] is not None}:
            where = f"{sql} WHERE CAST(c{number} AS varchar) = '{value}'"
            assert repr(answer(ours, stack, where)) == repr(answer(theirs, stack, where)), where


def test_binaries_are_read_as_text_wherever_they_lie(stack: Stack, tmp_path: Path) -> None:
    """Not the oracle's answer: it takes wrong bytes of all values but the first of a batch."""
    po.write_table(pa.table({"a": [b"ab", b"cdefgh", None, b"", b"\xff"]}), tmp_path / "f.orc")
    register(stack, "orc_binaries", tmp_path, columns("a string"), format="orc")
    found = ours(stack, "SELECT a FROM laws.orc_binaries")
    assert found == [["61 62"], ["63 64 65 66 67 68"], [None], [""], ["ff"]]


def test_a_type_that_trino_lacks_keeps_its_place(stack: Stack, tmp_path: Path) -> None:
    """Columns behind it are found by position."""
    made = {name: pa.array([n, n + 10], pa.int64()) for n, name in enumerate("abc")}
    po.write_table(pa.table(made), tmp_path / "f.orc")
    described = columns("a bigint; b bigint")
    table = CatalogTable(TableName("laws", "orc_lacks"), described, (), f"file://{tmp_path}", "orc")
    record = thrift_table(table.name, table)
    record.sd.cols.insert(0, records.FieldSchema("z", "interval_year_month", ""))
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_table(record)
    sql = "SELECT a, b FROM laws.orc_lacks ORDER BY 1"
    assert ours(stack, sql) == [[1, 2], [11, 12]]
    where = "SELECT a, b FROM laws.orc_lacks WHERE b = 12"
    assert ours(stack, where) == [[11, 12]]


def test_types_that_the_hive_connector_writes(stack: Stack) -> None:
    """Padded text, wide decimals, and fractions of seconds of all calendars and zones."""
    stack.query(
        "CREATE TABLE hive.laws.orc_written (id bigint, c char(5), v varchar(4), m decimal(38,12),"
        " n decimal(18,3), d date, ts timestamp(6)) WITH (format = 'ORC')",
        catalog="hive",
    )
    values = []
    for i in range(60):
        text = ("ab ", "ab", "", "é☃", "abcde")[i % 5]
        day = f"{(1500, 1582, 1900, 1969, 1970, 2024, 9999)[i % 7]}-{i % 12 + 1:02}-{i % 28 + 1:02}"
        values.append(
            f"({i}, CHAR '{text}', VARCHAR '{text[:4]}', DECIMAL '{i - 30}.{i:012}', "
            f"DECIMAL '-{i}.{i:03}', DATE '{day}', "
            f"TIMESTAMP '{day} {i % 24:02}:59:{i % 60:02}.{(i * 7919) % 10**6:06}')"
        )
        if i % 20 == 19:
            values.append(f"(NULL{', NULL' * 6})")
            sql = f"INSERT INTO hive.laws.orc_written VALUES {', '.join(values)}"
            stack.query(sql, catalog="hive")
            values = []
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    index_table(
        config, "laws.orc_written", local=True, progress=lambda d, t: None, say=lambda text: None
    )
    first, *rest = theirs(stack, "SELECT * FROM laws.orc_written ORDER BY id")[7:9]
    assert first and rest
    for where in (
        "true", "c = 'ab'", "c = 'ab   '",
        "c > 'a' AND c < 'b'", "v = 'ab'", "v = 'ab '", "v < 'b'",
        "m = DECIMAL '-23.000000000007'", "m > 20", "n < -50", "n = DECIMAL '-7.007'",
        "d < DATE '1582-10-15'", "d = DATE '1969-04-04'", "ts < TIMESTAMP '1582-10-15 00:00:00'",
        "ts > TIMESTAMP '1969-12-31 00:00:00' AND ts < TIMESTAMP '1970-12-31 00:00:00'",
        "ts >= TIMESTAMP '9999-01-01 00:00:00'", "c IS NULL",
    ):  # fmt: skip
        sql = f"SELECT * FROM laws.orc_written WHERE {where} ORDER BY id, c"
        assert repr(ours(stack, sql)) == repr(theirs(stack, sql)), where
    assert stack.kept_files("SELECT count(*) FROM laws.orc_written WHERE id = 45") == 1


def test_instants_and_unions(stack: Stack, tmp_path: Path) -> None:
    """A column of a union is left out; those behind it keep their places."""
    union = pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()),
        pa.array([0, 0, 1], pa.int32()),
        [pa.array([5, 6], pa.int64()), pa.array(["x"])],
    )
    moments = [dt.datetime(1969, 12, 31, 23, 59, 58), None, dt.datetime(2024, 3, 10, 2, 30, 0, 7)]
    made = {
        "id": pa.array([1, 2, 3], pa.int64()),
        "u": union,
        "z": pa.array(moments, pa.timestamp("us", "UTC")),
        "t": pa.array(["a", None, "c"]),
    }
    po.write_table(pa.table(made), tmp_path / "f.orc")
    described = columns("id bigint; z timestamp with local time zone; t string")
    table = CatalogTable(
        TableName("laws", "orc_instants"), described, (), f"file://{tmp_path}", "orc"
    )
    record = thrift_table(table.name, table)
    record.sd.cols.insert(1, records.FieldSchema("u", "uniontype<bigint,string>", ""))
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_table(record)
    for catalog, by_name in (("bridge", False), (BY_NAME, True)):
        for each in ("id, t", "t", "z", "id, z, t"):
            sql = f"SELECT {each} FROM laws.orc_instants ORDER BY 1"
            mine = answer(ours, stack, sql, catalog)
            assert repr(mine) == repr(answer(theirs, stack, sql, by_name=by_name)), each


def test_partitions_that_declare_other_types(stack: Stack, tmp_path: Path) -> None:
    """Narrower ones, fewer columns, and more than the table has."""
    table = CatalogTable(
        TableName("laws", "orc_parts"),
        columns("a bigint; b double; c string; d decimal(12,3)"),
        columns("p int"),
        f"file://{tmp_path}",
        "orc",
    )
    old = columns("a int; b float; c varchar(9); d decimal(6,1)")
    stored = {
        1: (old, [pa.int32(), pa.float32(), pa.string(), pa.decimal128(6, 1)]),
        2: (old[:2], [pa.int32(), pa.float32()]),
        3: ((*table.columns, *columns("e int")), [pa.int64(), pa.float64(), pa.string()]),
    }
    parts = []
    for p, (declared, types) in stored.items():
        values = ([p, None], [p / 4, -0.0], [f"text {p}", ""], [Decimal(p), Decimal("-0.5")])
        held = {c.name: pa.array(v, t) for c, v, t in zip(declared, values, types, strict=False)}
        (tmp_path / f"p={p}").mkdir()
        po.write_table(pa.table(held), tmp_path / f"p={p}" / "f.orc")
        parts.append(records.Partition(values=[str(p)], dbName="laws", tableName="orc_parts"))
        parts[-1].sd = thrift_table(table.name, replace(table, columns=declared)).sd
        parts[-1].sd.location = f"file://{tmp_path}/p={p}"
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_table(thrift_table(table.name, table))
        client.add_partitions("laws", "orc_parts", parts)
    for catalog in ("bridge", BY_NAME):
        for where in ("true", "p = 1", "a = 1", "d IS NULL", "c = 'text 3'"):
            sql = f"SELECT * FROM laws.orc_parts WHERE {where} ORDER BY p, a"
            found = ours(stack, sql, catalog)
            assert repr(found) == repr(theirs(stack, sql, by_name=catalog == BY_NAME)), sql


def test_a_thousand_columns_and_names_that_differ_in_case(stack: Stack, tmp_path: Path) -> None:
    wide, twice = tmp_path / "wide", tmp_path / "twice"
    for each in (wide, twice):
        each.mkdir()
    po.write_table(pa.table({f"C{n}": [n, -n] for n in range(1000)}), wide / "f.orc")
    described = columns("; ".join(f"c{n} bigint" for n in range(1000)))
    register(stack, "orc_many_columns", wide, described, format="orc")
    for sql in (
        "SELECT * FROM laws.orc_many_columns ORDER BY c1",
        "SELECT c999, c0 FROM laws.orc_many_columns WHERE c500 < 0",
    ):
        assert ours(stack, sql) == theirs(stack, sql)
        assert ours(stack, sql, BY_NAME) == theirs(stack, sql, by_name=True)
    po.write_table(pa.table({"a": [1], "A": [2]}), twice / "f.orc")
    register(stack, "orc_twice", twice, columns("a bigint; b bigint"), format="orc")
    sql = "SELECT a FROM laws.orc_twice"
    assert ours(stack, sql) == theirs(stack, sql) == [[1]]
    assert answer(theirs, stack, sql, by_name=True) == "error"
    with pytest.raises(Exception, match="AMBIGUOUS_COLUMN"):
        stack.query(sql, catalog=BY_NAME)


def test_cut_text_is_never_skipped(stack: Stack, tmp_path: Path) -> None:
    """Text is cut to the table's type when it is read, but statistics are of all of it."""
    for number, value in enumerate(("abcdef", "ab", "zzz")):
        held = {"v": [value], "c": [value]}
        po.write_table(pa.table(held), tmp_path / f"f{number}.orc")
    register(stack, "orc_cut", tmp_path, columns("v varchar(2); c char(2)"), format="orc")
    for column in "vc":
        sql = f"SELECT count(*) FROM laws.orc_cut WHERE {column} = 'ab'"
        assert ours(stack, sql) == [[2]], column
        sql = f"SELECT count(*) FROM laws.orc_cut WHERE {column} > 'ab'"
        assert ours(stack, sql) == [[1]], column


@pytest.fixture(scope="module")
def large(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One file of many stripes, sorted, in several ranges; and many small files."""
    directory = tmp_path_factory.mktemp("orc-large")
    count = 400_000
    rng = np.random.default_rng(1)
    table = pa.table({"k": np.arange(count), "r": rng.integers(0, 10**12, count)})
    with po.ORCWriter(directory / "large.orc", stripe_size=1 << 18, batch_size=1024) as writer:
        for start in range(0, count, 20_000):
            writer.write(table.slice(start, 20_000))
    for number in range(200):
        start = count + number * 10
        small = {"k": np.arange(start, start + 10), "r": np.arange(10)}
        po.write_table(pa.table(small), directory / f"s{number}.orc")
    register(stack, "orc_large", directory, columns("k bigint; r bigint"), format="orc")


def metric(text: str, name: str) -> int:
    """The sum of an operator metric over all workers."""
    found = re.findall(rf"{name}.*?(?:total=|count=|=\s*)(\d+)", text)
    assert found, text
    return int(found[0])


@pytest.mark.usefixtures("large")
def test_files_and_stripes_are_skipped(stack: Stack) -> None:
    sql = "SELECT count(*), sum(r) FROM laws.orc_large WHERE k BETWEEN 1000 AND 1010"
    assert ours(stack, sql) == theirs(stack, sql)
    text = stack.analyzed(sql)
    assert stack.kept_files(sql) == 1
    stripes, read = metric(text, "stripes in footers"), metric(text, "stripes read")
    assert stripes > 4 and read == 1


@pytest.mark.usefixtures("large")
def test_ranges_of_a_file_hold_each_row_once(stack: Stack) -> None:
    sql = "SELECT count(*), sum(k), sum(r) FROM laws.orc_large"
    assert ours(stack, sql) == theirs(stack, sql)
    counted = stack.query(
        "SELECT count(*) FROM laws.orc_large", {"metadata_answers_enabled": "false"}
    )
    assert counted == [[402_000]]


@pytest.mark.usefixtures("large")
def test_joins_and_limits(stack: Stack) -> None:
    session = {"dynamic_filter_wait": "20s"}
    join = (
        "SELECT count(*), sum(l.r) FROM {0}.laws.orc_large l JOIN"
        " (VALUES (BIGINT '400005'), (401234), (7)) v(k) ON l.k = v.k"
    )
    mine = stack.query(join.format("bridge"), session)
    assert mine == stack.query(join.format("hive"), catalog="hive")
    text = stack.analyzed(join.format("bridge"))
    # Ranges of the large file count each.
    assert metric(text, "files opened") < 30
    assert len(stack.query("SELECT * FROM laws.orc_large LIMIT 50")) == 50
    sql = "SELECT k FROM laws.orc_large ORDER BY k DESC LIMIT 3"
    assert ours(stack, sql) == [[401_999], [401_998], [401_997]]


def test_damage_and_transactional_files_are_errors_that_name_the_file(
    stack: Stack, tmp_path: Path
) -> None:
    good, bad, deltas = (tmp_path / name for name in ("good", "bad", "deltas"))
    for each in (good, bad, deltas):
        each.mkdir()
    po.write_table(pa.table({"a": list(range(100_000))}), bad / "ok.orc")
    data = bytearray((bad / "ok.orc").read_bytes())
    data[40:400] = b"\xff" * 360
    (bad / "broken.orc").write_bytes(data)
    register(stack, "orc_bad", bad, columns("a bigint"), index=False, format="orc")
    sql = "SELECT sum(a) FROM laws.orc_bad"
    assert answer(theirs, stack, sql) == "error"
    with pytest.raises(Exception, match=r"broken\.orc.*ORC"):
        stack.query(sql)
    (bad / "broken.orc").write_bytes(b"no ORC at all")
    assert answer(theirs, stack, sql) == "error"
    with pytest.raises(Exception, match=r"broken\.orc cannot be read as ORC"):
        stack.query(sql)
    one = pa.array([1])
    names = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
    row = pa.array([{"a": 1}])
    po.write_table(pa.table({**dict.fromkeys(names, one), "row": row}), deltas / "f.orc")
    register(stack, "orc_deltas", deltas, columns("a bigint"), index=False, format="orc")
    with pytest.raises(Exception, match="transactional table"):
        stack.query("SELECT a FROM laws.orc_deltas")


def test_orc_base_files_of_hudi_are_read_by_name(stack: Stack, tmp_path: Path) -> None:
    root = tmp_path / "hudi_orc"
    table = HudiTable(root, 6, "COPY_ON_WRITE", hoodie__table__base__file__format="ORC")
    kinds = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
    meta = [f"_hoodie_{kind}" for kind in kinds]
    name = "a-0_0-1-2_20240101000000000.orc"
    data = {"b": ["x", "y"], "a": pa.array([1, 2], pa.int64())}
    held = {**{m: ["20240101000000000"] * 2 for m in meta}, **data}
    po.write_table(pa.table(held), root / name)
    written = Written("", name, (root / name).stat().st_size)
    table.commit("20240101000000000", [written], action="commit")
    spelled = "; ".join(f"{m} string" for m in meta) + "; a bigint; b string"
    described = CatalogTable(
        TableName("laws", "hudi_orc"), columns(spelled), (), f"file://{root}", "orc"
    )
    made = thrift_table(described.name, described)
    made.parameters["spark.sql.sources.provider"] = "hudi"
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_table(made)
    assert ours(stack, "SELECT a, b FROM laws.hudi_orc ORDER BY a") == [[1, "x"], [2, "y"]]
