"""Values that a reader has to convert, and that do not fit: NULL in one engine, wrapped in another.

Integers and decimals out of the range that their file declares, or that their table's type has,
and texts that are no numbers. Whatever Trino, Spark and Hive make of them, no file is left out in
which they find a row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.errors import BridgeError
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ, age
from tests.engines.stack import ask
from tests.engines.test_api_conditions import Ask, truths
from tests.support.footers import I32, STRUCT, elements, get, put_together, set_to, take_apart

pytestmark = [pytest.mark.full, pytest.mark.rule("16"), pytest.mark.rule("5")]


@dataclass(frozen=True, slots=True)
class Pair:
    """A column: what files hold of it, under which type of the table.

    Attributes:
        odd: of the first file; the second has ``plain``, the third a NULL.
        declared: the type that a file of Parquet claims to have, if it is not the values' type:
            (precision, scale) of a decimal, or bits of an integer.
    """

    stored: pa.DataType
    odd: Any
    plain: Any
    type: str
    declared: tuple[int, int] | int | None = None


D = Decimal
PAIRS: dict[str, Pair] = {
    "long_digits": Pair(
        pa.decimal128(18, 2), D("12345678901234.56"), D("1.25"), "decimal(10,2)", (10, 2)
    ),
    "long_scaled": Pair(
        pa.decimal128(18, 2), D("12345678901234.56"), D("1.25"), "decimal(14,4)", (10, 2)
    ),
    "cents_scaled": Pair(pa.decimal128(10, 2), D("12345678.25"), D("1.25"), "decimal(14,4)"),
    "int_digits": Pair(pa.decimal128(9, 2), D("1234567.89"), D("1.25"), "decimal(5,2)", (5, 2)),
    "fixed_digits": Pair(
        pa.decimal128(38, 2), D("123456789012345678901.25"), D("1.25"), "decimal(10,2)", (10, 2)
    ),
    "fixed_small": Pair(pa.decimal128(38, 2), D("42949674.21"), D("1.25"), "decimal(5,2)", (5, 2)),
    "wide_digits": Pair(pa.decimal128(38, 2), D(10**33), D("1.25"), "decimal(30,2)", (30, 2)),
    "wide_scaled": Pair(pa.decimal128(38, 2), D(10**33), D("1.25"), "decimal(38,5)", (30, 2)),
    "byte": Pair(pa.int32(), 300, 7, "tinyint", 8),
    "byte_small": Pair(pa.int32(), 300, 7, "smallint", 8),
    "short": Pair(pa.int32(), 70_000, 7, "smallint", 16),
    "short_int": Pair(pa.int32(), 70_000, 7, "int", 16),
    "int_tiny": Pair(pa.int32(), 300, 7, "tinyint"),
    "int_small": Pair(pa.int32(), 70_000, 7, "smallint"),
    "big_int": Pair(pa.int64(), 2**32 + 5, 7, "int"),
    "big_tiny": Pair(pa.int64(), 2**32 + 5, 7, "tinyint"),
    "big_float": Pair(pa.int64(), 2**53 + 1, 7, "double"),
    "big_digits": Pair(pa.int64(), 123_456, 7, "decimal(5,2)"),
    "int_digits_of": Pair(pa.int32(), 123_456, 7, "decimal(5,2)"),
    "cents_less": Pair(pa.decimal128(10, 2), D("12345678.25"), D("1.25"), "decimal(5,2)"),
    "cents_rounded": Pair(pa.decimal128(10, 2), D("12345.25"), D("1.25"), "decimal(6,1)"),
    "cents_int": Pair(pa.decimal128(18, 2), D("12345678901.25"), D("1.00"), "int"),
    "double_int": Pair(pa.float64(), 1e12, 7.0, "int"),
    "double_float": Pair(pa.float64(), 1e300, 7.0, "float"),
    "double_cents": Pair(pa.float64(), 1e12, 7.0, "decimal(5,2)"),
    "text_int": Pair(pa.string(), "abc", "7", "int"),
    "text_double": Pair(pa.string(), "abc", "7", "double"),
    "text_cents": Pair(pa.string(), "123456.75", "7.00", "decimal(5,2)"),
    "text_date": Pair(pa.string(), "2024-02-30", "2024-02-28", "date"),
    "text_time": Pair(pa.string(), "soon", "2024-02-28 00:00:00", "timestamp"),
    "text_bool": Pair(pa.string(), "maybe", "true", "boolean"),
    "int_text": Pair(pa.int32(), 12345, 7, "string"),
    "int_short": Pair(pa.int32(), 12345, 7, "varchar(2)"),
    "date_time": Pair(pa.date32(), dt.date(9999, 12, 31), dt.date(2024, 1, 2), "timestamp"),
    "time_date": Pair(
        pa.timestamp("us"), dt.datetime(2024, 1, 2, 3), dt.datetime(2024, 1, 2), "date"
    ),
    "bool_int": Pair(pa.bool_(), True, False, "int"),
    "int_bool": Pair(pa.int32(), 5, 0, "boolean"),
    "text_long": Pair(pa.string(), "abcdef", "x", "varchar(3)"),
    "text_char": Pair(pa.string(), "abcdef", "x", "char(3)"),
    "bytes_text": Pair(pa.binary(), b"\xff\xfe", b"x", "string"),
}
"""By column."""


def parquet(path: Path, pairs: dict[str, Pair], rows: pa.Table) -> None:
    pq.write_table(rows, path, store_schema=False, store_decimal_as_integer=True)
    data, footer = take_apart(path.read_bytes())
    for element in elements(footer)[1:]:
        pair = pairs.get(get(element, 4).decode())
        match pair and pair.declared:
            case (precision, scale):
                set_to(element, 8, I32, precision)
                logical = [[1, I32, scale], [2, I32, precision]]
                set_to(element, 10, STRUCT, [[5, STRUCT, logical]])
            case int(bits):
                set_to(element, 6, I32, {8: 15, 16: 16}[bits])
    path.write_bytes(put_together(data, footer))


def orc(path: Path, pairs: dict[str, Pair], rows: pa.Table) -> None:
    po.write_table(rows, path)


def avro(path: Path, pairs: dict[str, Pair], rows: pa.Table) -> None:
    fields = [{"name": "n", "type": ["null", "long"]}]
    for name, pair in pairs.items():
        kind: Any = {"string": "string", "int64": "long", "binary": "bytes"}.get(str(pair.stored))
        if pa.types.is_decimal(pair.stored):
            assert isinstance(pair.declared, tuple)
            precision, scale = pair.declared
            decimal = {"logicalType": "decimal", "precision": precision, "scale": scale}
            kind = {"type": "bytes", **decimal}
        fields.append({"name": name, "type": ["null", kind]})
    schema = {"type": "record", "name": "r", "fields": fields}
    records = [{c: _bytes(v) for c, v in row.items()} for row in rows.to_pylist()]
    with path.open("wb") as out:
        fastavro.writer(out, schema, records)


def _bytes(value: Any) -> Any:
    """A decimal's digits as bytes, whose number is not held against what the schema declares."""
    if not isinstance(value, Decimal):
        return value
    return int(value.scaleb(2)).to_bytes(16, "big", signed=True)


def text(path: Path, pairs: dict[str, Pair], rows: pa.Table) -> None:
    lines = []
    for row in rows.to_pylist():
        values = [r"\N" if v is None else v for v in row.values()]
        words = [v.decode("latin-1") if isinstance(v, bytes) else str(v) for v in values]
        lines.append("\x01".join(words) + "\n")
    path.write_bytes("".join(lines).encode("latin-1"))


FORMATS: dict[str, tuple[Callable[[Path, dict[str, Pair], pa.Table], None], str]] = {
    "parquet": (parquet, "PARQUET"),
    "orc": (orc, "ORC"),
    "avro": (avro, "AVRO"),
    "text": (text, "TEXTFILE"),
}
AVRO = {"long_digits", "long_scaled", "big_float", "text_long", "text_char", "bytes_text"}
"""Columns that Hive reads from Avro: it refuses a table with any other type than its files'."""
HIVE_READS_NULL = {
    "parquet": {"long_digits", "byte", "int_tiny"},
    "orc": {"int_tiny", "cents_less", "text_int"},
}
"""Columns of which some NULL is Hive's own."""


def pairs_of(format: str) -> dict[str, Pair]:
    if format == "avro":
        return {n: p for n, p in PAIRS.items() if n in AVRO}
    return {n: p for n, p in PAIRS.items() if format == "parquet" or p.declared is None}


@pytest.fixture(scope="module")
def spark() -> Iterator[Ask]:
    pytest.importorskip("pyspark")
    from bridge.runtime.spark_session import open_session

    session = open_session("local[2]", name="skipbridge-tests")
    session.sql("CREATE DATABASE odd")
    yield lambda sql: [tuple(row) for row in session.sql(sql).collect()]
    session.stop()


@pytest.mark.parametrize("format", FORMATS)
def test_no_file_is_left_out_in_which_an_engine_finds_a_row(
    hiveserver2: RunningHiveServer2, stock_trino: int, spark: Ask, format: str, tmp_path: Path
) -> None:
    pairs, (write, stored_as) = pairs_of(format), FORMATS[format]
    for n, which in enumerate(("odd", "plain", "none")):
        held = {c: pa.array([getattr(p, which, None)], p.stored) for c, p in pairs.items()}
        rows = pa.table({"n": pa.array([n], pa.int64()), **held})
        write(tmp_path / f"{n}.{format}", pairs, rows)
    age(tmp_path)
    columns = f"(n bigint, {', '.join(f'{c} {p.type}' for c, p in pairs.items())})"
    hiveserver2.query("CREATE DATABASE IF NOT EXISTS odd")
    hiveserver2.query(
        f"CREATE EXTERNAL TABLE odd.{format} {columns} STORED AS {stored_as} "
        f"LOCATION 'file:{tmp_path}'"
    )
    engines: dict[str, tuple[str, Ask]] = {
        "hive in fetches": ("hive", lambda sql: hiveserver2.query(sql, FETCH)),
        "hive in tasks": ("hive", lambda sql: hiveserver2.query(sql, TEZ)),
        "trino": (
            "trino",
            lambda sql: ask(stock_trino, sql.replace(" odd.", " hive.odd."), "hive"),
        ),
    }
    if format in ("parquet", "orc"):
        spark(f"CREATE TABLE odd.{format} {columns} USING {format} LOCATION 'file:{tmp_path}'")
        engines["spark"] = ("spark", spark)
    lost, left_out, nulls = [], 0, set()
    cache = str(tmp_path.parent / f"cache-{format}")
    with bridge.connect(
        metastore_uri=hiveserver2.metastore.uri, planner_cache_dir=cache
    ) as session:
        table = session.table(f"odd.{format}")
        table.index.build(nan="scan", values=[c for c, p in pairs.items() if p.declared])
        before: dict[str, list[Any]] = {}
        for engine, (dialect, run) in engines.items():
            tasks = engine == "hive in tasks"
            shown = values(run, f"odd.{format}", [*(before if tasks else pairs)])
            if dialect == "hive":
                nulls |= {c for c, found in shown.items() if found[0] is None}
            if tasks:  # a query takes seconds: what is shown as in fetches has been asked there
                shown = {c: found for c, found in shown.items() if found != before[c]}
            before = shown
            asked = [w for c in shown for w in conditions(c, pairs[c], shown[c])]
            for first in range(0, len(asked), 60):
                known = truths(run, f"odd.{format}", asked[first : first + 60])
                for where, found in known.items():
                    try:
                        files = table.scan(where, semantics=dialect).files()["path"]
                    except BridgeError:
                        continue
                    kept = {int(uri.rsplit("/", 1)[1].split(".")[0]) for uri in files.to_pylist()}
                    left_out += 3 - len(kept)
                    if set(found) - kept:
                        lost.append((engine, where, found, sorted(kept)))
    hiveserver2.query(f"DROP TABLE odd.{format}")
    assert not lost, "\n".join(map(str, lost))
    assert HIVE_READS_NULL.get(format, set()) <= nulls, nulls
    assert left_out > (5 if format == "avro" else 20)


def values(run: Ask, table: str, columns: list[str]) -> dict[str, list[Any]]:
    """What the engine shows of the rows in order, by column; without what it refuses."""
    try:
        rows = sorted(run(f"SELECT n, {', '.join(columns)} FROM {table}"))
    except Exception:
        half = len(columns) // 2
        if not half:
            return {}
        return {**values(run, table, columns[:half]), **values(run, table, columns[half:])}
    return {c: [row[place] for row in rows] for place, c in enumerate(columns, 1)}


def conditions(column: str, pair: Pair, shown: list[Any]) -> list[str]:
    """On a column, most with the very values that the engine shows."""
    found = [f"{column} IS {word}NULL" for word in ("", "NOT ")]
    for value in {*shown, pair.odd, pair.plain} - {None}:
        literal = str(value)
        if pair.type == "boolean":
            literal = "TRUE" if value in (True, "true") else "FALSE"
        elif pair.type in ("date", "timestamp"):
            literal = f"{pair.type.upper()} '{literal}'"
        elif pair.type in ("double", "float"):
            literal = f"CAST('{literal}' AS double)"
        elif pair.type == "string" or "char" in pair.type:
            literal = f"'{literal}'"
        found += [f"{column} {op} {literal}" for op in ("=", "<>", "<=", ">")]
    return found
