"""Partitions that declare other types than their table, over files of a third type, in Trino.

What is shown are the rows of Trino's own connector; or the file's values, cast to the table's type;
or an error, which names the column unless Trino's own connector fails too. Whatever it is, the
filters find it: no file is left out that holds it.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
import trino

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import thrift_table
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.stack import Stack
from tests.engines.test_trino_orc import answer, columns, theirs

pytestmark = [pytest.mark.full, pytest.mark.rule("5")]

OFF = {"pruning_enabled": "false", "metadata_answers_enabled": "false"}


def _cents(*texts: str) -> pa.Array:
    return pa.array([Decimal(text) for text in texts], pa.decimal128(12, 2))


_INT = pa.array([7, -70_000, 16_777_217], pa.int32())
_SMALL = pa.array([7, -70, 100], pa.int32())
_LONG = pa.array([7, 2**31 + 5, 2**53 + 1], pa.int64())
_FEW = pa.array([7, -70_000, 9], pa.int64())
_FLOAT = pa.array([1.5, 0.1, -2.25], pa.float32())
_DOUBLE = pa.array([1.5, 0.1, -2.25])
_CENTS = _cents("7.00", "1.25", "-9.95")
_DAYS = pa.array([dt.date(2024, 1, 2), dt.date(1999, 12, 31), dt.date(2024, 2, 29)])
_TIMES = pa.array(
    [dt.datetime(2024, 1, 2), dt.datetime(1999, 12, 31, 23, 59, 59, 999_999)], pa.timestamp("us")
)
_WORDS = pa.array(["abcdef", "abc", "ab  ", "b"])
_DIGITS = pa.array(["7", "-70000", "007", "x"])

TRIPLES: dict[str, tuple[pa.Array, str, str]] = {
    "int_grown": (_INT, "int", "bigint"),
    "long_under_int": (_LONG, "int", "bigint"),
    "long_shrunk": (_LONG, "bigint", "int"),
    "few_shrunk": (_FEW, "bigint", "int"),
    "int_between": (_INT, "bigint", "int"),
    "small_tiny": (_SMALL, "tinyint", "int"),
    "small_under": (_SMALL, "int", "tinyint"),
    "int_float": (_INT, "int", "float"),
    "int_double": (_INT, "int", "double"),
    "long_float": (_LONG, "bigint", "float"),
    "long_double": (_LONG, "bigint", "double"),
    "int_decimal": (_INT, "int", "decimal(12,2)"),
    "finer": (_CENTS, "decimal(12,2)", "decimal(14,4)"),
    "coarser": (_CENTS, "decimal(12,2)", "decimal(11,1)"),
    "coarse_between": (_CENTS, "decimal(11,1)", "decimal(12,2)"),
    "tight_between": (_CENTS, "decimal(3,2)", "decimal(12,2)"),
    "cents_double": (_CENTS, "decimal(12,2)", "double"),
    "cents_int": (_CENTS, "decimal(12,2)", "int"),
    "cents_string": (_CENTS, "decimal(12,2)", "string"),
    "double_cents": (_DOUBLE, "double", "decimal(12,2)"),
    "int_string": (_INT, "int", "string"),
    "int_under_string": (_INT, "string", "string"),
    "int_string_int": (_INT, "string", "int"),
    "string_int": (_DIGITS, "string", "int"),
    "string_under_int": (_DIGITS, "int", "string"),
    "string_double": (_DIGITS, "string", "double"),
    "date_string": (_DAYS, "date", "string"),
    "string_date": (_DAYS.cast(pa.string()), "string", "date"),
    "date_time": (_DAYS, "date", "timestamp"),
    "time_date": (_TIMES, "timestamp", "date"),
    "time_string": (_TIMES, "timestamp", "string"),
    "string_time": (_TIMES.cast(pa.string()), "string", "timestamp"),
    "short_between": (_WORDS, "varchar(3)", "string"),
    "short_grown": (_WORDS, "varchar(3)", "varchar(6)"),
    "short": (_WORDS, "string", "varchar(3)"),
    "char": (_WORDS, "string", "char(4)"),
    "char_between": (_WORDS, "char(4)", "string"),
    "char_short": (_WORDS, "char(4)", "varchar(3)"),
    "char_grown": (_WORDS, "char(4)", "char(6)"),
    "float_double": (_FLOAT, "float", "double"),
    "double_float": (_DOUBLE, "double", "float"),
    "double_between": (_DOUBLE, "float", "double"),
    "float_between": (_FLOAT, "double", "float"),
    "float_string": (_FLOAT, "float", "string"),
    "bool_string": (pa.array([True, False]), "boolean", "string"),
}
"""By column: what files hold, and the types that the partition and the table declare."""
ROWS = 5
"""Each in a file of its own; the last is NULL in all columns."""


def parquet(path: Path, rows: pa.Table) -> None:
    pq.write_table(rows, path)


def orc(path: Path, rows: pa.Table) -> None:
    po.write_table(rows, path)


def text(path: Path, rows: pa.Table) -> None:
    lines = ("\x01".join(map(_text, row.values())) for row in rows.to_pylist())
    path.write_text("".join(f"{line}\n" for line in lines))


def json_lines(path: Path, rows: pa.Table) -> None:
    held = ({k: _plain(v) for k, v in row.items()} for row in rows.to_pylist())
    path.write_text("".join(json.dumps(row) + "\n" for row in held))


def avro(path: Path, rows: pa.Table) -> None:
    plain = {"int32": "int", "int64": "long", "float": "float", "double": "double"}
    types = [plain.get(str(field.type), "string") for field in rows.schema]
    fields = [
        {"name": name, "type": ["null", type]}
        for name, type in zip(rows.column_names, types, strict=True)
    ]
    with path.open("wb") as sink:
        fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())


def _text(value: Any) -> str:
    return r"\N" if value is None else str(value)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


FORMATS: dict[str, Callable[[Path, pa.Table], None]] = {
    "parquet": parquet,
    "orc": orc,
    "text": text,
    "json": json_lines,
    "avro": avro,
}


Columns = tuple[Column, ...]
Parts = Sequence[tuple[Columns, dict[str, pa.Table]]]


def make(stack: Stack, root: Path, name: str, table: Columns, format: str, parts: Parts) -> None:
    """Registers and indexes a table of partitions, each with its columns and files, by name."""
    made = CatalogTable(TableName("laws", name), table, columns("p int"), f"file://{root}", format)
    found = []
    past = time.time() - 60
    for p, (declared, files) in enumerate(parts):
        directory = root / f"p={p}"
        directory.mkdir(parents=True)
        for file, rows in files.items():
            FORMATS[format](directory / file, rows)
            os.utime(directory / file, (past, past))
        found.append(records.Partition(values=[str(p)], dbName="laws", tableName=name))
        found[-1].sd = thrift_table(made.name, replace(made, columns=declared)).sd
        found[-1].sd.location = f"file://{directory}"
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_table(thrift_table(made.name, made))
        client.add_partitions("laws", name, found)
    index_table(
        Config({"metastore.uri": Setting(stack.metastore_uri, "test")}),
        f"laws.{name}",
        local=True,
        progress=lambda done, total: None,
        say=lambda text: None,
    )


@pytest.fixture(scope="module", params=["parquet", "orc", "text", "json"])
def made(
    request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The table of all triples."""
    format = request.param
    padded = {
        name: pa.concat_arrays([stored, pa.nulls(ROWS - len(stored), stored.type)])
        for name, (stored, _, _) in TRIPLES.items()
    }
    rows = pa.table({"n": pa.array(range(ROWS), pa.int64()), **padded})
    files = {f"f{n}.{format}": rows.slice(n, 1) for n in range(ROWS)}
    partition = columns("n bigint; " + "; ".join(f"{k} {of[1]}" for k, of in TRIPLES.items()))
    table = columns("n bigint; " + "; ".join(f"{k} {of[2]}" for k, of in TRIPLES.items()))
    root = tmp_path_factory.mktemp(format)
    make(stack, root, f"types_{format}", table, format, [(partition, files)])
    return f"laws.types_{format}"


@pytest.mark.parametrize("name", TRIPLES)
def test_what_is_shown_is_found(stack: Stack, made: str, name: str) -> None:
    stored, _, type = TRIPLES[name]
    sql = f"SELECT n, {name} FROM {made} ORDER BY n"
    stock = answer(theirs, stack, sql)
    if name not in CAST:
        CAST[name] = answer(cast_rows, stack, stored, type)
    shown = rows_or_error(stack, sql)
    if isinstance(shown, str):
        assert stock == "error" or name in shown or "TYPE_MISMATCH" in shown, shown
        return
    assert repr(shown) in (repr(stock), repr(CAST[name])), (shown, stock, CAST[name])
    found(stack, made, name, type, literals(stored, shown))


CAST: dict[str, Any] = {}
"""By triple: the file's values cast to the table's type."""


def rows_or_error(stack: Stack, sql: str) -> Any:
    try:
        return stack.query(sql)
    except trino.exceptions.TrinoQueryError as error:
        return str(error)


_ENGINE = {"int": "integer", "float": "real", "string": "varchar", "timestamp": "timestamp(6)"}
_STORED = {"int32": "integer", "int64": "bigint", "float": "real", "date32[day]": "date"}
_STORED |= {"timestamp[us]": "timestamp(6)", "string": "varchar", "bool": "boolean"}


def cast_rows(stack: Stack, stored: pa.Array, type: str, rows: int = ROWS) -> list[list[Any]]:
    """The file's values cast to the table's type, as Trino casts; the others are NULL."""
    held = _STORED.get(str(stored.type), str(stored.type)).replace("decimal128", "decimal")
    texts = [str(value) for value in stored.to_pylist()]
    casts = [f"CAST(CAST('{t}' AS {held}) AS {_ENGINE.get(type, type)})" for t in texts]
    (found,) = stack.query(f"SELECT {', '.join(casts)}")
    return [[n, value] for n, value in enumerate([*found, *[None] * (rows - len(texts))])]


def literals(stored: pa.Array, shown: list[list[Any]]) -> list[str]:
    """Of values that are shown and of those that the files hold, as texts."""
    values = {*stored.to_pylist(), *(row[1] for row in shown)} - {None}
    return sorted({str(value).replace("'", "''") for value in values})


def found(stack: Stack, table: str, column: str, type: str, literals: list[str]) -> None:
    """Asserts that filters count what all rows count that are shown."""
    engine = _ENGINE.get(type, type)
    wheres = [f"{column} IS NULL", f"{column} IS NOT NULL"]
    for literal in literals:
        value = f"TRY_CAST('{literal}' AS {engine})"
        wheres += [f"{column} {op} {value}" for op in ("=", ">", "<=")]
    counted = ", ".join(f"count_if({where})" for where in wheres)
    expected = stack.query(f"SELECT {counted} FROM {table}", OFF)[0]
    bounds = f"SELECT min({column}), max({column}), count({column}), count(*) FROM {table}"
    assert repr(stack.query(bounds)) == repr(stack.query(bounds, OFF))
    asked = " UNION ALL ".join(
        f"SELECT {n}, count(*) FROM {table} WHERE {where}" for n, where in enumerate(wheres)
    )
    counts = dict(stack.query(asked))
    lost = {w: (counts[n], expected[n]) for n, w in enumerate(wheres) if counts[n] != expected[n]}
    assert not lost, lost


AVRO = ("int_grown", "int_between", "int_double", "int_float", "long_double", "float_double",
        "int_string", "few_shrunk", "short", "short_between", "char", "string_date")  # fmt: skip


@pytest.mark.parametrize("name", AVRO)
def test_avro_is_read_by_the_tables_schema(stack: Stack, tmp_path: Path, name: str) -> None:
    stored, partition, type = TRIPLES[name]
    values = pa.concat_arrays([stored, pa.nulls(1, stored.type)])
    rows = pa.table({"n": pa.array(range(len(values)), pa.int64()), "c": values})
    files = {f"f{n}.avro": rows.slice(n, 1) for n in range(len(values))}
    declared, table = (columns(f"n bigint; c {of}") for of in (partition, type))
    make(stack, tmp_path, f"types_avro_{name}", table, "avro", [(declared, files)])
    sql = f"SELECT n, c FROM laws.types_avro_{name} ORDER BY n"
    stock = answer(theirs, stack, sql)
    shown = rows_or_error(stack, sql)
    if isinstance(shown, str):
        assert stock == "error" or "column 'c'" in shown or "TYPE_MISMATCH" in shown, shown
    else:
        cast = answer(cast_rows, stack, stored, type, len(values))
        assert repr(shown) in (repr(stock), repr(cast)), (shown, stock, cast)
        found(stack, f"laws.types_avro_{name}", "c", type, literals(stored, shown))


@pytest.mark.parametrize("format", ["parquet", "orc", "json"])
def test_columns_that_the_partition_lacks_or_has_elsewhere(
    stack: Stack, tmp_path: Path, format: str
) -> None:
    table = columns("n bigint; a int; b string; c double")
    held = {
        "n": pa.array([1, 2], pa.int64()),
        "a": pa.array([7, 70_000], pa.int32()),
        "b": pa.array(["7", "x"]),
        "c": pa.array([7.0, 0.5]),
    }

    def part(declared: str, *names: str) -> tuple[Columns, dict[str, pa.Table]]:
        rows = pa.table({name: held.get(name, held["b"]) for name in names})
        return columns(declared), {f"f{n}": rows.slice(n, 1) for n in range(2)}

    parts = {
        "as it is": part("n bigint; a int; b string; c double", *"nabc"),
        "fewer": part("n bigint; a int", *"na"),
        "fewer, files have them": part("n bigint; a int", *"nabc"),
        "others in front": part("c double; b string; a int; n bigint", *"cban"),
        "renamed": part("n bigint; a int; x string; c double", *"naxc"),
        "more": part("n bigint; a int; b string; c double; d int", *"nabc"),
    }
    make(stack, tmp_path, f"types_places_{format}", table, format, list(parts.values()))
    for p, name in enumerate(parts):
        of = f"(SELECT * FROM laws.types_places_{format} WHERE p = {p})"
        for column in "abc":
            sql = f"SELECT n, {column} FROM {of} ORDER BY n"
            stock = answer(theirs, stack, sql)
            shown = rows_or_error(stack, sql)
            if isinstance(shown, str):
                assert stock == "error" or f"column '{column}'" in shown, (name, column, shown)
            else:
                by_name = [[n, held[column][n - 1].as_py()] for n in (1, 2)]
                assert repr(shown) in (repr(stock), repr(by_name)), (name, column, shown, stock)
                type = str(table["nabc".index(column)].type)
                found(stack, of, column, type, ["7", "70000", "x", "0.5"])


@pytest.mark.parametrize(
    ("format", "name", "where", "kept"),
    [
        ("parquet", "int_grown", "= 7", 1),
        ("parquet", "finer", "> 7.00", 0),
        ("parquet", "float_double", "> 1e0", 1),
        ("orc", "int_grown", "= 7", 1),
        ("orc", "finer", "> 7.00", 0),
        # Hive takes a float's shortest text for the double, and the index is of all engines.
        ("orc", "float_double", "> 1e0", ROWS),
    ],
)
def test_files_are_skipped_all_the_same(
    stack: Stack, made: str, format: str, name: str, where: str, kept: int
) -> None:
    if not made.endswith(format):
        pytest.skip("another table")
    assert stack.kept_files(f"SELECT n FROM {made} WHERE {name} {where}") == kept
