"""Types of files under types of tables in Trino: what the file holds, or an error.

Trino's own hive connector shows the bits of some pairs. Where it is right, the rows are its rows.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import parse_hive_type
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import thrift_table
from bridge.table.model import CatalogTable, TableName
from tests.engines.stack import Stack, register
from tests.engines.test_trino_orc import answer, columns, ours, theirs

pytestmark = pytest.mark.full

_INT = pa.array([1, 70_000, -5, 16_777_217, None], pa.int32())
_LONG = pa.array([1, 2**53 + 1, -(2**63), None], pa.int64())
_UINT = pa.array([1, 2**31, 2**32 - 1, None], pa.uint32())
_ULONG = pa.array([1, 2**63, 2**64 - 1, None], pa.uint64())
_WHOLE = pa.array([Decimal(7), Decimal(-9), None], pa.decimal128(18, 0))
_CENTS = pa.array([Decimal("1.25"), Decimal("-9.99"), None], pa.decimal128(25, 2))
_FLOAT = pa.array([1.5, 0.1, math.nan, -math.inf, -0.0, 1e10, None], pa.float32())
_DOUBLE = pa.array([0.1, 2e-5, 1.7976931348623157e308, math.nan, None])
_TIMES = pa.array([1_700_000_000_123_456_789, 1_700_000_000 * 10**9, None], pa.timestamp("ns"))
_WHOLE_SECONDS = ["2023-11-14 22:13:20", None]
_MILLIS = ["2023-11-14 22:13:20.123", *_WHOLE_SECONDS]
_MICROS = ["2023-11-14 22:13:20.123456", *_WHOLE_SECONDS]
_NANOS = ["2023-11-14 22:13:20.123456789", *_WHOLE_SECONDS]
_REFUSED = None
_TRINO = {"float": "real", "string": "varchar", "int": "integer"}

PAIRS: list[tuple[str, pa.Array, str, list[Any] | None]] = [
    ("int_float", _INT, "float", [1.0, 70_000.0, -5.0, 16_777_216.0, None]),
    ("int_double", _INT, "double", [1.0, 70_000.0, -5.0, 16_777_217.0, None]),
    ("long_float", _LONG, "float", [1.0, float(2**53), -float(2**63), None]),
    ("long_double", _LONG, "double", [1.0, float(2**53), -float(2**63), None]),
    ("int_string", _INT, "string", ["1", "70000", "-5", "16777217", None]),
    ("uint_bigint", _UINT, "bigint", [1, 2**31, 2**32 - 1, None]),
    ("uint_double", _UINT, "double", [1.0, float(2**31), float(2**32 - 1), None]),
    ("uint_int", _UINT, "int", _REFUSED),
    ("small_uint_int", pa.array([1, None], pa.uint32()), "int", [1, None]),
    ("byte_smallint", pa.array([200, None], pa.uint8()), "smallint", [200, None]),
    ("byte_tinyint", pa.array([200, None], pa.uint8()), "tinyint", _REFUSED),
    ("ulong_bigint", _ULONG, "bigint", _REFUSED),
    ("long_date", pa.array([1], pa.int64()), "date", _REFUSED),
    ("whole_float", _WHOLE, "float", [7.0, -9.0, None]),
    ("whole_date", _WHOLE, "date", _REFUSED),
    ("whole_bigint", _WHOLE, "bigint", [7, -9, None]),
    ("cents_binary", _CENTS, "binary", _REFUSED),
    ("int_wide", _INT, "decimal(12,1)", [Decimal(v) for v in (1, 70_000, -5, 16_777_217)] + [None]),
    ("int_tight", pa.array([1, 70_000], pa.int32()), "decimal(5,1)", _REFUSED),
    ("int_fits", pa.array([1, 7_000], pa.int16()), "decimal(5,1)", [Decimal(1), Decimal(7_000)]),
    ("long_tight", pa.array([1, 70_000]), "decimal(5,1)", _REFUSED),
    ("long_fits", pa.array([-9_999, None]), "decimal(5,1)", [Decimal(-9_999), None]),
    ("cents_tight", _CENTS, "decimal(5,1)", [Decimal("1.3"), Decimal("-10.0"), None]),
    ("cents_over", pa.array([Decimal("70000.00")], pa.decimal128(10, 2)), "decimal(5,1)", _REFUSED),
    ("wide_over", pa.array([Decimal(10**30)], pa.decimal128(38, 0)), "decimal(18,0)", _REFUSED),
    (
        "wraps",
        pa.array([Decimal(2**64 // 100 + 1)], pa.decimal128(18, 0)),
        "decimal(18,2)",
        _REFUSED,
    ),
    ("grows", _WHOLE, "decimal(18,2)", [Decimal(7), Decimal(-9), None]),
    ("whole_tinyint", pa.array([Decimal(300)], pa.decimal128(18, 0)), "tinyint", _REFUSED),
    ("null_double", pa.nulls(2), "double", [None, None]),
    ("signed_date", pa.array([19_000, None], pa.int16()), "date", [dt.date(2022, 1, 8), None]),
    ("byte_date", pa.array([200, None], pa.uint8()), "date", [dt.date(1970, 7, 20), None]),
    ("uint_date", _UINT, "date", _REFUSED),
    ("float_string", _FLOAT, "string", ["1.5", "0.1", "NaN", "-Infinity", "-0.0", "1.0E10", None]),
    ("double_string", _DOUBLE, "string", ["0.1", "2.0E-5", "1.7976931348623157E308", "NaN", None]),
    ("double_short", pa.array([0.5, None]), "varchar(3)", ["0.5", None]),
    ("double_long", pa.array([0.125]), "varchar(3)", _REFUSED),
    ("bool_string", pa.array([True, False, None]), "string", ["TRUE", "FALSE", None]),
    ("bool_short", pa.array([True, False]), "varchar(4)", _REFUSED),
    ("date_string", pa.array([dt.date(2024, 1, 2), None]), "string", ["2024-01-02", None]),
    ("old_string", pa.array([dt.date(1899, 12, 31)]), "string", _REFUSED),
    ("milli_string", _TIMES.cast(pa.timestamp("ms"), safe=False), "string", _MILLIS),
    ("micro_string", _TIMES.cast(pa.timestamp("us"), safe=False), "string", _MICROS),
    ("nano_string", _TIMES, "string", _NANOS),
    ("nano_short", _TIMES, "varchar(12)", [text and text[:12] for text in _NANOS]),
    ("int96_string", _TIMES, "string", _NANOS),
    ("time_string", pa.array([dt.time(1, 2, 3)]), "string", _REFUSED),
    ("half_string", pa.array(np.array([1.5], np.float16)), "string", _REFUSED),
]
STOCK_TOO = {"float_string", "double_string", "double_short", "int96_string", "signed_date"}
"""Those that Trino's own connector answers where no partition declares the file's type."""


@pytest.mark.parametrize(("name", "stored", "type", "wanted"), PAIRS, ids=[p[0] for p in PAIRS])
def test_a_pair_is_read_exactly_or_refused(
    stack: Stack, tmp_path: Path, name: str, stored: pa.Array, type: str, wanted: Any
) -> None:
    """Flat, and in a struct, a list and a map."""
    held = pa.table({"n": range(len(stored)), **_shapes(stored)})
    int96 = name.startswith("int96")
    pq.write_table(held, tmp_path / "f.parquet", use_deprecated_int96_timestamps=int96)
    types = f"n bigint; c {type}; s struct<q:{type}>; l array<{type}>; m map<string,{type}>"
    register(stack, f"pair_{name}", tmp_path, columns(types))
    for value in ("c", "s.q", "l[1]", "element_at(m, 'k')"):
        shown = f"CAST({value} AS double)" if type == "float" else value  # else it is rounded
        sql = f"SELECT {shown} FROM laws.pair_{name} ORDER BY n"
        if wanted is None:
            with pytest.raises(Exception, match=r"TYPE_MISMATCH|column '"):
                stack.query(sql)
        else:
            assert [row[0] for row in ours(stack, sql)] == wanted, value
            if name in STOCK_TOO and value == "c":
                assert theirs(stack, sql) == ours(stack, sql)
    # What is refused is refused where its column is asked for.
    count = f"SELECT count(n) FROM laws.pair_{name}"
    assert ours(stack, count) == answer(theirs, stack, count)
    if wanted is not None:
        for value in {v for v in wanted if v is not None}:
            literal = f"CAST('{value}' AS {_TRINO.get(type, type)})"
            sql = f"SELECT count(*) FROM laws.pair_{name} WHERE c = {literal}"
            assert ours(stack, sql) == [[wanted.count(value)]], sql


def _decimals(precision: int, scale: int, *texts: str) -> pa.Array:
    return pa.array([*map(Decimal, texts), None], pa.decimal128(precision, scale))


ORC: list[tuple[str, pa.Array, str, list[str] | None]] = [
    ("fits", _decimals(10, 2, "1.25", "-9.99"), "decimal(6,2)", ["1.25", "-9.99"]),
    ("over", _decimals(10, 2, "1.25", "70000"), "decimal(6,2)", _REFUSED),
    ("lower", _decimals(10, 2, "1.20"), "decimal(10,1)", ["1.2"]),
    ("wraps", _decimals(18, 0, "184467440737095517"), "decimal(18,2)", _REFUSED),
    ("wide", _decimals(38, 2, "7", "-0.05"), "decimal(5,2)", ["7", "-0.05"]),
    ("long", _decimals(38, 0, "1e30"), "decimal(30,0)", _REFUSED),
    ("rounded", _decimals(38, 4, "1.2550", "-1.2549"), "decimal(30,2)", ["1.26", "-1.25"]),
    ("carry", _decimals(38, 4, "9999999999999999999999999999.9999"), "decimal(30,2)", _REFUSED),
    ("more", _decimals(5, 2, "1.25"), "decimal(38,10)", ["1.25"]),
]


@pytest.mark.parametrize(("name", "stored", "type", "wanted"), ORC, ids=[p[0] for p in ORC])
def test_a_decimal_of_orc_is_rescaled_or_refused(
    stack: Stack, tmp_path: Path, name: str, stored: pa.Array, type: str, wanted: Any
) -> None:
    """Trino's own connector wraps 64 bits; where all fit, its rows are ours, or refused."""
    po.write_table(pa.table({"n": range(len(stored)), **_shapes(stored)}), tmp_path / "f.orc")
    types = f"n bigint; c {type}; s struct<q:{type}>; l array<{type}>; m map<string,{type}>"
    register(stack, f"orc_{name}", tmp_path, columns(types), format="orc")
    for value in ("c", "s.q", "l[1]", "element_at(m, 'k')"):
        sql = f"SELECT {value} FROM laws.orc_{name} ORDER BY n"
        if wanted is None:
            with pytest.raises(Exception, match=r"column '\w' (is|holds)|Cannot cast DECIMAL"):
                stack.query(sql)
        else:
            rows = [[value and Decimal(value)] for value in (*wanted, None)]
            assert answer(ours, stack, sql) in (rows, *["error"] * (value != "c"))
            assert answer(theirs, stack, sql) in (rows, "error")
            where = f"SELECT count(*) FROM laws.orc_{name} WHERE c = DECIMAL '{wanted[0]}'"
            assert ours(stack, where) == [[1]]


def test_texts_are_those_of_partitions_that_declare_the_files_types(
    stack: Stack, tmp_path: Path
) -> None:
    """Trino's own connector converts from the partition's type to the table's."""
    held = {
        "b": pa.array([True, False, None]),
        "f": pa.array([0.1, 1e10, None], pa.float32()),
        "x": pa.array([-0.0, 123456789.125, None]),
        "d": pa.array([dt.date(1900, 1, 1), dt.date(9999, 12, 31), None]),
        "t": pa.array([1, -1_000_000, None], pa.timestamp("us")),
    }
    declared = columns("b boolean; f float; x double; d date; t timestamp")
    table = CatalogTable(
        TableName("laws", "pair_parts"),
        tuple(replace(column, type=parse_hive_type("string")) for column in declared),
        columns("p int"),
        f"file://{tmp_path}",
        "parquet",
    )
    (tmp_path / "p=1").mkdir()
    pq.write_table(pa.table(held), tmp_path / "p=1" / "f.parquet")
    part = records.Partition(values=["1"], dbName="laws", tableName="pair_parts")
    part.sd = thrift_table(table.name, replace(table, columns=declared)).sd
    part.sd.location = f"file://{tmp_path}/p=1"
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_table(thrift_table(table.name, table))
        client.add_partitions("laws", "pair_parts", [part])
    for column in held:
        sql = f"SELECT {column} FROM laws.pair_parts ORDER BY 1"
        assert ours(stack, sql) == theirs(stack, sql), column


def _shapes(stored: pa.Array) -> dict[str, pa.Array]:
    offsets = pa.array(range(len(stored) + 1), pa.int32())
    return {
        "c": stored,
        "s": pa.StructArray.from_arrays([stored], ["q"]),
        "l": pa.ListArray.from_arrays(offsets, stored),
        "m": pa.MapArray.from_arrays(offsets, pa.array(["k"] * len(stored)), stored),
    }
