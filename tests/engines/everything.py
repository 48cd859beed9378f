"""A table with a column of every type, and predicates over it with their meaning in pyarrow.

Values grow with the row number, so that bounds of files differ and pruning happens; nulls, NaN,
infinities,
-0.0, dates before 1900 and text beyond the BMP are strewn in.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    char,
    decimal,
    parse_hive_type,
    varchar,
)
from bridge.table.model import CatalogTable, Column, Partition, TableName
from bridge.table.partition import NULL_MARKER, partition_name

ROWS_PER_FILE = 25
FILES_PER_PARTITION = 6
# p has characters that Hive escapes, a NULL, and a number that is not spelled as numbers are.
PARTITIONS: tuple[tuple[str | None, str], ...] = (
    ("a b", "1"),
    ("x=y/z", "02"),
    (None, "3"),
    ("100%", "4"),
    ("été", "5"),
)
COLUMNS = (
    Column("id", BIGINT),
    Column("flag", BOOLEAN),
    Column("tiny", TINYINT),
    Column("small", SMALLINT),
    Column("num", INTEGER),
    Column("maybe", BIGINT),
    Column("r", FLOAT),
    Column("d", DOUBLE),
    Column("dec", decimal(10, 2)),
    Column("wide", decimal(30, 5)),
    Column("day", DATE),
    Column("ts", TIMESTAMP),
    Column("name", STRING),
    Column("code", varchar(5)),
    Column("fixed", char(4)),
    Column("raw", BINARY),
    Column("st", parse_hive_type("struct<a:int,b:string>")),
    Column("list", parse_hive_type("array<int>")),
    Column("tags", parse_hive_type("map<string,int>")),
)
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("num", pa.int32()),
        ("maybe", pa.int64()),
        ("r", pa.float32()),
        ("d", pa.float64()),
        ("dec", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(30, 5)),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("name", pa.string()),
        ("code", pa.string()),
        ("fixed", pa.string()),
        ("raw", pa.binary()),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("list", pa.list_(pa.int32())),
        ("tags", pa.map_(pa.string(), pa.int32())),
    ]
)
_WORDS = ("alpha", "beta", "gamma", "Zürich", "日本", "😀smile", "z", "")


def _row(i: int) -> dict[str, object]:
    return {
        "id": i,
        "flag": None if i % 11 == 0 else i % 2 == 0,
        "tiny": i % 100 - 50,
        "small": i - 300,
        "num": None if i % 7 == 0 else i * 1000,
        "maybe": i if i < 200 else None,
        "r": float("nan") if i % 50 == 9 else i / 4,
        "d": {3: float("nan"), 17: float("-inf"), 18: float("inf"), 21: -0.0}.get(i % 75, i * 1.5),
        "dec": Decimal(i * 25) / 100,
        "wide": Decimal(i) * Decimal("1000000000000.00001"),
        "day": dt.date(1850, 1, 1) + dt.timedelta(days=i * 90),
        "ts": dt.datetime(2013, 1, 1) + dt.timedelta(hours=i, microseconds=i),
        "name": None if i % 13 == 0 else f"{_WORDS[i * 8 // 750]}-{i:04d}",
        "code": f"c{i // 10:03d}",
        "fixed": "abcd"[: i % 4 + 1],
        "raw": i.to_bytes(3, "big"),
        "st": None if i % 17 == 0 else {"a": i, "b": f"s{i}"},
        "list": [i, i + 1] if i % 3 else None,
        "tags": [("k", i)] if i % 5 else [],
    }


@dataclass(frozen=True, slots=True)
class Everything:
    """The table: its description, its partitions, and all rows in memory (with p and q)."""

    table: CatalogTable
    partitions: list[Partition]
    rows: pa.Table
    files: int


def write_everything(root: Path, name: TableName) -> Everything:
    """Writes the files; the last file of each partition lacks the column ``code``: it reads as
    NULL.
    """
    partitions: list[Partition] = []
    pieces: list[pa.Table] = []
    first = files = 0
    for p, q in PARTITIONS:
        escaped = partition_name(["p", "q"], [p, q])
        directory = root / escaped
        directory.mkdir(parents=True)
        partitions.append(Partition(escaped, (p, q), f"file://{directory}"))
        for f in range(FILES_PER_PARTITION):
            rows = [_row(i) for i in range(first, first + ROWS_PER_FILE)]
            table = pa.Table.from_pylist(rows, _SCHEMA)
            if f == FILES_PER_PARTITION - 1:
                pq.write_table(table.drop_columns(["code"]), directory / f"f{f}.parquet")
                index = table.schema.get_field_index("code")
                table = table.set_column(index, "code", pa.nulls(len(rows), pa.string()))
            else:
                pq.write_table(table, directory / f"f{f}.parquet", row_group_size=10)
            table = table.append_column("p", pa.array([p] * len(rows), pa.string()))
            pieces.append(table.append_column("q", pa.array([int(q)] * len(rows), pa.int32())))
            first += ROWS_PER_FILE
            files += 1
        (directory / "_SUCCESS").write_text("not data")
        (directory / "empty.parquet").write_bytes(b"")
    keys = (Column("p", STRING), Column("q", INTEGER))
    table = CatalogTable(name, COLUMNS, keys, f"file://{root}")
    return Everything(table, partitions, pa.concat_tables(pieces), files)


assert NULL_MARKER in partition_name(["p"], [None])


@dataclass(frozen=True, slots=True)
class Case:
    """A condition in Trino's SQL, the same in pyarrow, and whether some files must be skipped."""

    sql: str
    arrow: pc.Expression
    prunes: bool = False


def _f(name: str, *path: str) -> pc.Expression:
    return pc.field(name, *path) if path else pc.field(name)


def _s(value: object, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, type_)


_TS = dt.datetime(2013, 1, 10, 0, 0)
CASES: tuple[Case, ...] = (
    Case("id = 77", _f("id") == 77, True),
    Case("id <> 77", _f("id") != 77),
    Case("id < 30", _f("id") < 30, True),
    Case("id <= 30", _f("id") <= 30, True),
    Case("id > 700", _f("id") > 700, True),
    Case("id >= 700", _f("id") >= 700, True),
    Case("id BETWEEN 100 AND 120", (_f("id") >= 100) & (_f("id") <= 120), True),
    Case("NOT (id BETWEEN 10 AND 740)", (_f("id") < 10) | (_f("id") > 740), True),
    Case("id IN (1, 300, 9999)", _f("id").isin([1, 300, 9999]), True),
    Case("id NOT IN (1, 2)", ~_f("id").isin([1, 2])),
    Case("id = 1 OR id = 600", _f("id").isin([1, 600]), True),
    Case("id < 10 OR name LIKE '%0700'", (_f("id") < 10) | pc.ends_with(_f("name"), "0700")),
    Case("id + 1 = 78", _f("id") == 77),
    Case("flag", _f("flag")),
    Case("NOT flag", ~_f("flag")),
    Case("flag IS NULL", _f("flag").is_null()),
    Case("flag AND id < 50", _f("flag") & (_f("id") < 50), True),
    Case("tiny = -50", _f("tiny") == -50, True),
    Case("tiny > 49", _f("tiny") > 49),
    Case("small < -290", _f("small") < -290, True),
    Case("num = 5000", _f("num") == 5000, True),
    Case("num IS NULL AND id > 740", _f("num").is_null() & (_f("id") > 740), True),
    Case("num IS NOT NULL AND num < 3000", _f("num") < 3000, True),
    Case("num <> 5000 OR num IS NULL", (_f("num") != 5000) | _f("num").is_null()),
    Case("maybe IS NULL", _f("maybe").is_null(), True),
    Case("maybe IS NOT NULL", ~_f("maybe").is_null(), True),
    Case("maybe > 190", _f("maybe") > 190, True),
    Case("maybe IS DISTINCT FROM 5", (_f("maybe") != 5) | _f("maybe").is_null()),
    Case("maybe IS NOT DISTINCT FROM 5", _f("maybe") == 5, True),
    Case("r < REAL '2.5'", _f("r") < _s(2.5, pa.float32())),
    Case("r > REAL '180'", _f("r") > _s(180.0, pa.float32())),
    Case("r = REAL '10.25'", _f("r") == _s(10.25, pa.float32())),
    Case("d < -1e300", _f("d") < -1e300),
    Case("d > 1e300", _f("d") > 1e300),
    Case("d = 0", _f("d") == 0.0),
    Case("d <> 4.5", _f("d") != 4.5),
    Case("is_nan(d)", pc.is_nan(_f("d"))),
    Case("NOT (d > 10)", ~(_f("d") > 10.0)),
    Case("d BETWEEN 100 AND 110", (_f("d") >= 100.0) & (_f("d") <= 110.0)),
    Case("dec = 10.50", _f("dec") == _s(Decimal("10.50"), pa.decimal128(10, 2)), True),
    Case("dec > 180.125", _f("dec") > _s(Decimal("180.12"), pa.decimal128(10, 2)), True),
    Case(
        "dec IN (1.25, 2.5)",
        _f("dec").isin(pa.array([Decimal("1.25"), Decimal("2.50")], pa.decimal128(10, 2))),
        True,
    ),
    Case(
        "wide > DECIMAL '700000000000000.00000'",
        _f("wide") > _s(Decimal("700000000000000"), pa.decimal128(30, 5)),
        True,
    ),
    Case(
        "wide = DECIMAL '5000000000000.00005'",
        _f("wide") == _s(Decimal("5000000000000.00005"), pa.decimal128(30, 5)),
        True,
    ),
    Case("day < DATE '1851-01-01'", _f("day") < dt.date(1851, 1, 1)),
    Case("day >= DATE '2030-01-01'", _f("day") >= dt.date(2030, 1, 1), True),
    Case(
        "year(day) = 2000",
        (_f("day") >= dt.date(2000, 1, 1)) & (_f("day") < dt.date(2001, 1, 1)),
        True,
    ),
    Case("ts < TIMESTAMP '2013-01-01 05:00:00'", _f("ts") < dt.datetime(2013, 1, 1, 5), True),
    Case(
        "ts >= TIMESTAMP '2013-01-10 00:00:00' AND ts < TIMESTAMP '2013-01-11 00:00:00'",
        (_f("ts") >= _TS) & (_f("ts") < _TS + dt.timedelta(days=1)),
        True,
    ),
    Case(
        "CAST(ts AS date) = DATE '2013-01-10'",
        (_f("ts") >= _TS) & (_f("ts") < _TS + dt.timedelta(days=1)),
        True,
    ),
    Case(
        "ts = TIMESTAMP '2013-01-01 03:00:00.000003'",
        _f("ts") == dt.datetime(2013, 1, 1, 3, 0, 0, 3),
        True,
    ),
    Case("name = 'alpha-0005'", _f("name") == "alpha-0005", True),
    Case("name LIKE 'Z%'", pc.starts_with(_f("name"), "Z"), True),
    Case("name LIKE 'beta-01%'", pc.starts_with(_f("name"), "beta-01"), True),
    Case("name LIKE '%smile%'", pc.match_substring(_f("name"), "smile")),
    Case("name NOT LIKE 'alpha%'", ~pc.starts_with(_f("name"), "alpha")),
    Case("name > '日'", _f("name") > "日", True),
    Case("name < 'beta'", _f("name") < "beta", True),
    Case("name IS NULL", _f("name").is_null()),
    Case("upper(name) = 'ALPHA-0005'", _f("name") == "alpha-0005"),
    Case(
        "name IN ('alpha-0001', '😀smile-0500')",
        _f("name").isin(["alpha-0001", "😀smile-0500"]),
        True,
    ),
    Case("code = 'c012'", _f("code") == "c012", True),
    Case("code IS NULL", _f("code").is_null(), True),
    Case("code IS NOT NULL AND code < 'c002'", _f("code") < "c002", True),
    Case("fixed = 'abc'", _f("fixed") == "abc"),
    Case("raw = X'000005'", _f("raw") == b"\x00\x00\x05", True),
    Case("raw < X'000010'", _f("raw") < b"\x00\x00\x10", True),
    Case("st.a = 33", pc.field("st", "a") == 33),
    Case("st.b = 's33'", pc.field("st", "b") == "s33"),
    Case("st IS NULL", _f("st").is_null()),
    Case("list IS NULL AND id < 20", _f("list").is_null() & (_f("id") < 20), True),
    Case("p = 'a b'", _f("p") == "a b", True),
    Case("p = 'x=y/z'", _f("p") == "x=y/z", True),
    Case("p IS NULL", _f("p").is_null(), True),
    Case("p IS NOT NULL", ~_f("p").is_null(), True),
    Case("p = '100%'", _f("p") == "100%", True),
    Case("p LIKE 'é%'", pc.starts_with(_f("p"), "é"), True),
    Case("q = 2", _f("q") == 2, True),
    Case("q > 3 AND id < 460", (_f("q") > 3) & (_f("id") < 460), True),
    Case(
        "(q = 1 AND id < 5) OR (q = 5 AND id > 745)",
        ((_f("q") == 1) & (_f("id") < 5)) | ((_f("q") == 5) & (_f("id") > 745)),
        True,
    ),
    Case("(q = 1 OR id > 740) AND small < 500", (_f("q") == 1) | (_f("id") > 740), True),
    Case("id > 100000", _f("id") > 100000, True),
    Case("false", pc.scalar(False), True),
)
