"""What may be trusted from a footer; the numbers are those of the correctness rules."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.index.building.collect import Nan
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HIVE,
    INTEGER,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    TRINO,
    char,
    decimal,
    varchar,
)
from tests.support.lake import Lake, age


def test_1_nan_is_counted_only_by_a_scan(lake: Lake) -> None:
    lake.write("a", {"x": [1.0, math.nan, 2.0], "y": [1.0, 2.0, 3.0]})
    lake.build()
    assert lake.column("x", DOUBLE).nan_count[0] == -1
    assert lake.column("y", DOUBLE).nan_count[0] == -1
    report = lake.build(nan="scan")
    assert (report.generation, report.read) == (2, 1)
    assert lake.column("x", DOUBLE).nan_count[0] == 1
    assert lake.column("y", DOUBLE).nan_count[0] == 0
    assert lake.bounds("x", DOUBLE) == (1.0, 2.0)
    assert not lake.build(nan="scan").committed


def test_1_only_nan(lake: Lake) -> None:
    lake.write("a", {"x": [math.nan, None, math.nan]})
    lake.build(nan="scan")
    found = lake.column("x", DOUBLE)
    assert lake.bounds("x", DOUBLE) == (None, None)
    assert (found.nan_count[0], found.null_count[0], found.all_null) == (2, 1, None)


def test_2_zeros_keep_their_numbers(lake: Lake) -> None:
    lake.write("a", {"x": [-0.0, 0.0]})
    lake.build()
    assert lake.bounds("x", DOUBLE) == (0.0, 0.0)


def test_3_bounds_of_text_are_not_taken_for_values(lake: Lake) -> None:
    lake.write("a", {"x": ["x" * 70, "b"], "n": [1, 2]})
    lake.build()
    assert lake.bounds("x", STRING) == (b"b", b"x" * 70)
    exact = lake.column("x", STRING).exact
    assert exact is not None
    assert not exact[0]
    assert lake.column("n", BIGINT).exact is None


def test_4_missing_is_not_null(lake: Lake) -> None:
    lake.write("a", {"x": [1, 2], "y": [1, 2]}, write_statistics=["y"])
    lake.build()
    found = lake.column("x", BIGINT)
    assert lake.bounds("x", BIGINT) == (None, None)
    assert found.all_null is None
    assert found.null_count[0] == -1
    assert found.lower[0] == -(2**63)
    assert lake.bounds("y", BIGINT) == (1, 2)


def test_4_missing_in_one_row_group_is_missing(lake: Lake) -> None:
    nan = math.nan
    lake.write("a", {"x": [1.0, 2.0, nan, nan], "y": [None, None, 3, 4]}, row_group_size=2)
    lake.build()
    assert lake.bounds("x", DOUBLE) == (None, None)
    assert lake.bounds("y", BIGINT) == (3, 4)  # the first group is all NULL
    assert lake.column("y", BIGINT).null_count[0] == 2


def test_4_a_scan_finds_what_is_missing(lake: Lake) -> None:
    day = dt.date(2024, 2, 29)
    data = {"x": [3, None, 1], "s": ["b", "é", "a"], "d": [day] * 3, "b": [True, False, None]}
    lake.write("a", data, write_statistics=False)
    lake.build(nan="scan")
    assert lake.bounds("x", BIGINT) == (1, 3)
    assert lake.bounds("s", STRING) == (b"a", "é".encode())
    assert lake.bounds("d", DATE) == (19782, 19782)
    assert lake.bounds("b", BOOLEAN) == (0, 1)
    assert lake.column("x", BIGINT).null_count[0] == 1


def test_5_counts(lake: Lake) -> None:
    lake.write("a", {"x": pa.array([None, None], pa.int64()), "l": [[1, None], None]})
    lake.write("b", {"x": [None, 1], "l": [[], [2]]})
    lake.build()
    found = lake.column("x", BIGINT)
    assert found.null_count.tolist() == [2, 1]
    assert found.all_null is not None
    assert found.all_null.tolist() == [True, False]
    assert found.row_count.tolist() == [2, 2]


def test_5_nothing_is_said_below_lists(lake: Lake) -> None:
    lake.write("a", {"l": [[1, None], None]})
    lake.build()
    lake.write("b", {"x": [1]})
    lake.build()
    for path in (("l",), ("l", "list", "element"), ("l", "element")):
        found = lake.column(path, BIGINT)
        assert found.null_count.tolist() == [-1, 1]


def test_5_fields_of_structs(lake: Lake) -> None:
    lake.write("a", {"s": [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}]})
    lake.build()
    assert lake.bounds(("s", "a"), BIGINT) == (1, 1)
    assert lake.column(("s", "a"), BIGINT).null_count[0] == 2
    assert lake.bounds(("s", "b", "c"), STRING) == (b"x", b"x")


def test_9_int96_has_no_bounds(lake: Lake) -> None:
    moment = dt.datetime(2024, 1, 1)
    lake.write("a", {"t": [moment, None]}, use_deprecated_int96_timestamps=True)
    for nan in ("footer", "scan"):
        lake.build(nan=nan)
        found = lake.column("t", TIMESTAMP)
        assert lake.bounds("t", TIMESTAMP) == (None, None)
        assert found.null_count[0] in (-1, 1)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_9_units(lake: Lake, unit: str) -> None:
    values = pa.array([-1, 1_700_000_000_001], pa.timestamp(unit))
    lake.write("a", {"t": values}, version="2.6")
    lake.build()
    factor = {"ms": 1000, "us": 1, "ns": 0}[unit]
    expected = (-factor, 1_700_000_000_001 * factor)
    if unit == "ns":
        expected = (-1, 1_700_000_001)  # outward
        exact = lake.column("t", TIMESTAMP).exact
        assert exact is not None
        assert not exact[0]
    assert lake.bounds("t", TIMESTAMP) == expected


def test_9_utc_adjustment(lake: Lake) -> None:
    zoned, local = pa.array([5], pa.timestamp("us", "UTC")), pa.array([5], pa.timestamp("us"))
    lake.write("a", {"z": zoned, "l": local})
    lake.build()
    for name, same, other in (("z", TIMESTAMP_TZ, TIMESTAMP), ("l", TIMESTAMP, TIMESTAMP_TZ)):
        assert lake.bounds(name, same, semantics=HIVE) == (5, 5)
        assert lake.bounds(name, other, semantics=TRINO) == (5, 5)
        assert lake.bounds(name, other, semantics=HIVE) == (None, None)
        assert lake.column(name, other, semantics=HIVE).null_count[0] == 0


def _stamped(path: Path, created_by: bytes) -> None:
    """Puts another writer's name of the same length into a footer."""
    raw = path.read_bytes()
    own = pq.read_metadata(path).created_by.encode()
    assert len(created_by) == len(own)
    path.write_bytes(raw.replace(own, created_by))


@pytest.mark.parametrize(
    ("keys", "known"),
    [
        ({}, False),
        ({"org.apache.spark.version": "2.4.8"}, False),
        ({"org.apache.spark.version": "3.5.1"}, True),
        ({"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyDateTime": ""}, False),
        ({"writer.date.proleptic": "true"}, True),
    ],
)
@pytest.mark.parametrize("nan", ["footer", "scan"])
def test_9_the_hybrid_calendar(lake: Lake, keys: dict[str, str], known: bool, nan: Nan) -> None:
    old = pa.array([dt.date(1500, 1, 1), dt.date(2000, 1, 1)])
    table = pa.table({"d": old}).replace_schema_metadata(keys)
    path = lake.write("a", table)
    length = len(pq.read_metadata(path).created_by)
    _stamped(path, b"parquet-mr version 1.12.3".ljust(length)[:length])
    age(path)
    lake.build(nan=nan)
    assert lake.bounds("d", DATE) == (-171664 if known else None, 10957)


def test_10_decimals(lake: Lake) -> None:
    values = [Decimal("-1.50"), Decimal("99999.99"), None]
    for name, precision in (("n", 7), ("m", 18), ("w", 38)):
        lake.write(f"{name}/f", {name: pa.array(values, pa.decimal128(precision, 2))})
    lake.write("i/f", {"i": pa.array(values, pa.decimal128(7, 2))}, store_decimal_as_integer=True)
    lake.build()
    serving = lake.snapshot()
    at = {p.split("/")[-2]: i for i, p in enumerate(serving.paths.to_pylist())}
    for name, target, lower, upper in (
        ("n", decimal(7, 2), -150, 9999999),
        ("m", decimal(18, 2), -150, 9999999),
        ("i", decimal(7, 2), -150, 9999999),
        ("n", decimal(10, 4), -15000, 999999900),
        ("w", decimal(38, 2), Decimal("-1.50"), Decimal("99999.99")),
        ("n", decimal(38, 10), Decimal("-1.5"), Decimal("99999.99")),
    ):
        found = lake.column(name, target)
        low, high = found.lower[at[name]], found.upper[at[name]]
        if isinstance(found.lower, pa.Array):
            low, high = low.as_py(), high.as_py()
        assert (low, high) == (lower, upper), (name, target)
    for target in (decimal(7, 1), decimal(6, 2), decimal(7, 3), BIGINT, DOUBLE):
        found = lake.column("n", target)
        assert found.lower_known is not None
        assert not found.lower_known[at["n"]], target


def test_11_char_and_varchar(lake: Lake) -> None:
    lake.write("a", {"s": ["ab", "abcdef"]})
    lake.build()
    assert lake.bounds("s", char(10)) == (None, None)
    assert lake.bounds("s", varchar(6)) == (b"ab", b"abcdef")
    assert lake.bounds("s", varchar(5)) == (None, None)
    assert lake.bounds("s", BINARY) == (b"ab", b"abcdef")
    assert lake.column("s", char(10)).null_count[0] == 0


def test_12_bytes_without_a_column_order(lake: Lake) -> None:
    path = lake.write("a", {"s": ["a", "é"], "n": [1, 2]})
    raw = path.read_bytes()
    # the order of each column, at the footer's end: make the first one an order nobody knows
    marker = b"\x1c\x00\x00\x1c\x00\x00\x00"
    assert raw.count(marker) == 1
    path.write_bytes(raw.replace(marker, b"\x2c\x00\x00\x1c\x00\x00\x00"))
    age(path)
    lake.build()
    assert lake.bounds("s", STRING) == (None, None)
    assert lake.bounds("n", BIGINT) == (1, 2)


def test_12_unsigned_order(lake: Lake) -> None:
    lake.write("a", {"s": ["\U0001d11e", "\uffee", "z"], "b": [b"\x7f", b"\x80", b""]})
    lake.build()
    assert lake.bounds("s", STRING) == (b"z", "\U0001d11e".encode())
    assert lake.bounds("b", BINARY) == (b"", b"\x80")


def test_13_unsigned_and_narrow_integers(lake: Lake) -> None:
    lake.write("a", {"u": pa.array([1, 2**31 + 5], pa.uint32()), "v": pa.array([1, 7], pa.uint64()),
                     "t": pa.array([-128, 127], pa.int8())})  # fmt: skip
    lake.build()
    assert lake.bounds("u", BIGINT) == (None, None)  # some read it as a signed integer
    assert lake.bounds("v", BIGINT) == (1, 7)
    for target in (TINYINT, SMALLINT, INTEGER, BIGINT):
        assert lake.bounds("t", target) == (-128, 127)


def test_14_names(lake: Lake) -> None:
    lake.write("a", {"Name": [1], "a.b": [2], "x": [{"y.z": 3}]})
    lake.build()
    assert lake.bounds("name", BIGINT) == (1, 1)
    assert lake.bounds("a.b", BIGINT) == (2, 2)
    assert lake.bounds(("x", "y.z"), BIGINT) == (3, 3)
    found = lake.column(("a", "b"), BIGINT)  # no such field: NULL, not the column "a.b"
    assert found.all_null is not None
    assert found.all_null[0]


def test_14_two_columns_that_differ_in_case(lake: Lake) -> None:
    lake.write("a", {"n": [1], "N": [5]})
    lake.write("b", {"n": [2]})
    lake.build()
    found = lake.column("n", BIGINT)
    assert found.lower_known is not None
    assert found.lower_known.tolist() == [False, True]
    assert found.null_count.tolist() == [-1, 0]


@pytest.mark.parametrize("nan", ["footer", "scan"])
@pytest.mark.parametrize("second", [[5, 6], ["y", "z"], [1.5, 2.5]])
def test_14_two_columns_of_one_name(lake: Lake, second: list[Any], nan: Nan) -> None:
    lake.write("a", pa.table([[1, None], second], ["n", "n"]))
    lake.write("b", {"n": [2]})
    lake.build(nan=nan)
    found = lake.column("n", BIGINT)
    assert found.lower_known is not None
    assert found.lower_known.tolist() == [False, True]
    assert found.null_count.tolist() == [-1, 0]
    assert found.all_null is None or not found.all_null[0]


@pytest.mark.parametrize("names", [["s", "s"], ["s", "S"], ["s", "x", "s"]])
@pytest.mark.parametrize("other", [{"a": 7}, {"b": 7}, 7])
def test_14_two_structs_of_one_name(lake: Lake, names: list[str], other: Any) -> None:
    """Which of them a reader takes is not known: in the other one `s.a` may be NULL."""
    values = [[{"a": 1}], [other]] if len(names) == 2 else [[{"a": 1}], [0], [other]]
    lake.write("a", pa.table([pa.array(v) for v in values], names))
    lake.write("b", {"s": pa.array([{"a": 2}])})
    lake.build()
    found = lake.column(("s", "a"), BIGINT)
    assert found.lower_known is not None
    assert found.lower_known.tolist() == [False, True]
    assert found.null_count.tolist() == [-1, 0]


def test_15_a_missing_column_is_null(lake: Lake) -> None:
    lake.write("a", {"x": [1, 2]})
    lake.write("b", {"x": [3], "new": [7]})
    lake.build()
    found = lake.column("new", BIGINT)
    assert found.null_count.tolist() == [2, 0]
    assert found.all_null is not None
    assert found.all_null.tolist() == [True, False]
    assert found.lower.tolist() == [-(2**63), 7]


def test_15_a_group_where_a_leaf_is_asked_for(lake: Lake) -> None:
    lake.write("a", {"s": [{"f": 1}]})
    lake.write("b", {"s": [1]})
    lake.build()
    leaf, field = lake.column("s", BIGINT), lake.column(("s", "f"), BIGINT)
    assert leaf.null_count.tolist() == [-1, 0]
    assert field.null_count.tolist() == [0, -1]
    assert leaf.all_null is None
    assert field.all_null is None


def test_16_widening(lake: Lake) -> None:
    lake.write("a", {"f": pa.array([0.1], pa.float32()), "i": pa.array([5], pa.int32())})
    lake.write("b", {"f": pa.array([0.1], pa.float64()), "i": pa.array([2**40], pa.int64())})
    lake.write("c", {"f": pa.array([1], pa.int32()), "i": pa.array(["x"])})
    lake.build()
    found = lake.column("f", DOUBLE)
    assert found.lower.tolist() == [float(np.float32(0.1)), 0.1, 1.0]
    assert lake.column("i", BIGINT).upper.tolist() == [5, 2**40, 2**63 - 1]
    narrow = lake.column("i", INTEGER)
    assert narrow.upper.tolist() == [5, 2**63 - 1, 2**63 - 1]
    assert narrow.null_count.tolist() == [0, -1, -1]
    assert lake.column("f", FLOAT).lower_known is not None


def test_16_an_integer_under_a_float_is_cast(lake: Lake) -> None:
    """Its bounds go through the same cast, and are never exact."""
    lake.write("a", {"f": pa.array([16_777_217, -5, None], pa.int32())})
    lake.write("b", {"f": pa.array([2**53 + 1, 2**63 - 1], pa.int64())})
    lake.write("c", {"f": pa.array([1, 2**32 - 1], pa.uint32())})
    lake.write("d", {"f": pa.array([1.5], pa.float32())})
    lake.build()
    found = lake.column("f", FLOAT)
    assert found.lower.tolist() == [-5.0, float(2**53), -math.inf, 1.5]
    assert found.upper.tolist() == [16_777_216.0, float(2**63), math.inf, 1.5]
    assert found.exact is not None and found.exact.tolist() == [False, False, False, True]
    assert found.null_count.tolist() == [-1, -1, -1, 0]
    assert lake.column("f", DOUBLE).upper.tolist() == [16_777_217.0, float(2**63), math.inf, 1.5]


def test_16_one_integer_type_under_a_float_is_never_exact(lake: Lake) -> None:
    lake.write("a", {"f": pa.array([16_777_217], pa.int32())})
    lake.build()
    found = lake.column("f", FLOAT)
    assert (found.lower.tolist(), found.upper.tolist()) == ([16_777_216.0], [16_777_216.0])
    assert found.exact is not None and not found.exact.any()


def test_an_empty_row_set(lake: Lake) -> None:
    lake.write("a", pa.table({"x": pa.array([], pa.int64())}))
    lake.build()
    assert lake.column("x", BIGINT).row_count[0] == 0


def test_large_footers_are_read_whole(lake: Lake) -> None:
    lake.write("a", {f"column_{i}": ["x" * 50, "y" * 50] for i in range(700)})
    lake.build()
    assert lake.bounds("column_699", STRING) == (b"x" * 50, b"y" * 50)
