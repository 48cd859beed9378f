"""What the index says of designed ORC files, and what it does not."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pytest

from bridge.expression.builders import eq
from bridge.expression.nodes import BoundReference, Predicate
from bridge.expression.statistics import ColumnStatistics
from bridge.index.kinds.registry import kind
from bridge.index.kinds.request import RequestedIndexes
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.indexing.table import index_table
from bridge.indexing.table import open_indexed_table as open_table
from bridge.kernel.config import Config
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    HIVE,
    INTEGER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    Field,
    Type,
    decimal,
    parse_hive_type,
    varchar,
)
from bridge.planner.request import ScanRequest
from bridge.runtime.create_table import create_table
from bridge.table.model import Column
from tests.support.lake import NAME, Lake, age, drained

DAY = 86_400 * 1_000_000
COLUMNS = (Column("a", INTEGER), Column("b", INTEGER))


@dataclass
class Orc(Lake):
    columns: tuple[Column, ...] = COLUMNS
    recursive: bool = True
    format: str = "orc"

    def put(self, data: dict[str, Any] | pa.Table, name: str = "f") -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        po.write_table(data if isinstance(data, pa.Table) else pa.table(data), str(path))
        age(path)

    def said(self, name: str) -> ColumnStatistics | None:
        fields = tuple(Field(c.name, c.type) for c in self.columns)
        statistics = self.snapshot().statistics(fields, HIVE)
        types = {c.name: c.type for c in self.columns}
        return statistics.column(BoundReference((name,), types[name]))

    def of(self, name: str, data: Any, type: Type) -> tuple[Any, Any, int]:
        """Lower, upper (None: unknown) and NULLs of a table of one column and one file."""
        self.columns = (Column(name, type),)
        self.put({name: data})
        assert not self.build().failed
        return _triple(self.said(name))


def _triple(found: ColumnStatistics | None) -> tuple[Any, Any, int]:
    if found is None:
        return None, None, -1
    low = found.lower_known is None or found.lower_known[0]
    high = found.upper_known is None or found.upper_known[0]
    return (
        _plain(found.lower) if low else None,
        _plain(found.upper) if high else None,
        int(found.null_count[0]),
    )


def _plain(values: Any) -> Any:
    return values[0].as_py() if isinstance(values, pa.Array) else values[0].item()


@pytest.fixture
def orc(tmp_path: Path) -> Orc:
    return Orc(tmp_path)


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


UNKNOWN = (None, None, -1)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a", "b"), (20, 21, 0)),
        (("A", "B"), UNKNOWN),
        (("b", "a"), UNKNOWN),
        (("c", "b", "a"), (20, 21, 0)),
        (("c", "a", "b"), UNKNOWN),
        (("_col0", "_col1"), (20, 21, 0)),
        (("_col0", "x"), UNKNOWN),
        (("a",), (None, None, 2)),
        (("_col0",), (None, None, 2)),
        (("a", "c"), UNKNOWN),
        (("b",), UNKNOWN),
        (("a", "b", "B"), UNKNOWN),
    ],
)
def test_15_name_and_place_must_agree(
    orc: Orc, names: tuple[str, ...], expected: tuple[Any, Any, int]
) -> None:
    orc.put({name: ints(10 * (i + 1), 10 * (i + 1) + 1) for i, name in enumerate(names)})
    assert not orc.build().failed
    assert _triple(orc.said("b")) == expected


def test_a_column_that_all_files_lack_or_hold_elsewhere(orc: Orc) -> None:
    orc.put({"a": ints(1), "b": ints(2)}, "f0")
    orc.put({"a": ints(3)}, "f1")
    orc.put({"b": ints(4), "a": ints(5)}, "f2")
    orc.build()
    found = orc.said("b")
    assert found is not None and found.null_count.tolist() == [0, 1, -1]
    assert found.lower_known is not None and found.lower_known.tolist() == [True, False, False]
    # Who does not say how the table's columns lie is told nothing.
    assert orc.snapshot().statistics((), HIVE).column(BoundReference(("b",), INTEGER)) is None


def test_16_only_wider_numbers_are_the_same_values(orc: Orc) -> None:
    assert orc.of("k", ints(1, 7, None), BIGINT) == (1, 7, 1)
    assert orc.of("k", pa.array([1, 7]), INTEGER) == UNKNOWN
    assert orc.of("k", ints(1, 7), STRING) == UNKNOWN
    assert orc.of("k", ints(1, 7), DOUBLE) == UNKNOWN
    assert orc.of("k", pa.array([0.1], pa.float32()), DOUBLE) == UNKNOWN
    assert orc.of("k", pa.array([b"x"]), STRING) == UNKNOWN
    assert orc.of("k", pa.array(["x"]), BINARY) == UNKNOWN


def test_10_decimals(orc: Orc) -> None:
    values = [Decimal("-3.00"), Decimal("1.25"), None]
    stored = pa.array(values, pa.decimal128(10, 2))
    assert orc.of("d", stored, decimal(10, 2)) == (-300, 125, 1)
    assert orc.of("d", stored, decimal(12, 4)) == (-30000, 12500, 1)
    assert orc.of("d", stored, decimal(9, 2)) == UNKNOWN
    low, big = Decimal("-" + "9" * 38), Decimal("9" * 38)
    wide = pa.array([low, big], pa.decimal128(38, 0))
    assert orc.of("d", wide, decimal(38, 0)) == (low, big, 0)
    assert orc.of("d", stored.cast(pa.decimal128(38, 6)), decimal(38, 6)) == UNKNOWN


def test_01_nan_is_counted_and_02_zero_has_no_sign(orc: Orc) -> None:
    values = [float("nan"), -0.0, 2.0, None]
    assert orc.of("x", values, DOUBLE)[1:] == (2.0, 1)
    found = orc.said("x")
    assert found is not None and found.nan_count.tolist() == [1]
    assert orc.of("x", pa.array(values, pa.float32()), FLOAT)[1:] == (2.0, 1)
    assert orc.of("x", [float("nan")], DOUBLE) == (None, None, 0)


def test_09_dates_and_times(orc: Orc) -> None:
    days = pa.array([dt.date(1899, 12, 31), dt.date(2013, 1, 1)])
    assert orc.of("d", days, DATE) == (None, 15706, 0)
    assert orc.of("d", days.slice(1), DATE) == (15706, 15706, 0)
    noon = dt.datetime(2013, 1, 1, 12, 0, 0, 1)
    us = 15706 * DAY + DAY // 2 + 1
    times = pa.array([noon], pa.timestamp("us"))
    assert orc.of("t", times, TIMESTAMP) == (us - 2 * DAY, us + 2 * DAY, 0)
    found = orc.said("t")
    assert found is not None and found.exact is not None and not found.exact.any()
    zoned = pa.array([noon], pa.timestamp("us", "UTC"))
    assert orc.of("t", zoned, TIMESTAMP_TZ) == UNKNOWN
    assert orc.of("t", zoned, TIMESTAMP) == UNKNOWN
    assert orc.of("t", times, TIMESTAMP_TZ) == UNKNOWN
    # Out of the range of nanoseconds: nothing is known of the column, all of the others.
    orc.columns = (Column("t", TIMESTAMP), Column("k", INTEGER))
    far = pa.array([dt.datetime(9999, 12, 31), noon], pa.timestamp("us"))
    orc.put({"t": far, "k": ints(1, 2)})
    assert not orc.build().failed
    assert _triple(orc.said("t")) == UNKNOWN and _triple(orc.said("k")) == (1, 2, 0)


def test_11_12_text(orc: Orc) -> None:
    texts = pa.array(["é", "\U00010000", "\uffff", None])
    assert orc.of("s", texts, STRING) == ("é".encode(), "\U00010000".encode(), 1)
    assert orc.of("s", texts, varchar(5)) == ("é".encode(), "\U00010000".encode(), 1)
    assert orc.of("s", texts, varchar(3))[1] is None
    assert orc.of("s", texts, parse_hive_type("char(5)"))[:2] == (None, None)
    # Of a char(3), as it is shown: Hive may read 'a' of it, or 'a  '.
    padded = pa.array(["a  ", "b  ", "abc"])
    assert orc.of("s", padded, STRING) == (b"a", b"b  ", 0)
    found = orc.said("s")
    assert found is not None and found.exact is not None and not found.exact.any()


def test_nested_columns_are_unknown(orc: Orc) -> None:
    st = parse_hive_type("struct<a:int>")
    orc.columns = (
        Column("st", st),
        Column("l", parse_hive_type("array<int>")),
        Column("k", INTEGER),
    )
    orc.put({"st": [{"a": 1}, None], "l": [[1], None], "k": ints(1, 2)})
    assert not orc.build().failed
    statistics = orc.snapshot().statistics([Field(c.name, c.type) for c in orc.columns], HIVE)
    assert statistics.column(BoundReference(("st", "a"), INTEGER)) is None
    assert _triple(orc.said("k")) == (1, 2, 0)


def test_stripes_are_joined_and_columns_with_dots_are_left_alone(orc: Orc) -> None:
    orc.columns = (Column("a", BIGINT), Column("b.c", BIGINT))
    path = orc.path("f")
    with po.ORCWriter(str(path), stripe_size=1024) as writer:
        for start in (0, 100_000, 50_000):
            values = pa.array(range(start, start + 50_000))
            writer.write(pa.table({"a": values, "b.c": values}))
    age(path)
    assert po.ORCFile(str(path)).nstripes > 1
    assert not orc.build().failed
    assert _triple(orc.said("a")) == (0, 149_999, 0)
    assert _triple(orc.said("b.c")) == UNKNOWN


def test_damaged_files_have_no_entry(orc: Orc) -> None:
    orc.put({"a": ints(1), "b": ints(2)})
    whole = orc.path("f").read_bytes()
    for name, raw in (("cut", whole[:-3]), ("text", b"a,b\n1,2\n")):
        orc.path(name).write_bytes(raw)
        age(orc.path(name))
    report = orc.build()
    assert {uri.rsplit("/", 1)[1] for uri, _ in report.failed} == {"cut", "text"}
    assert all("FILE_CORRUPT" in reason for _, reason in report.failed)
    assert orc.snapshot().trusted.tolist() == [False, True, False]


def test_a_directory_of_orc_files_is_a_table(tmp_path: Path) -> None:
    for p in (1, 2):
        directory = tmp_path / "t" / f"p={p}"
        directory.mkdir(parents=True)
        po.write_table(pa.table({"a": ints(p, 10 * p), "s": ["x", "y"]}), str(directory / "f"))
        age(directory / "f")
    config = Config({})
    where = str(tmp_path / "t")
    silent: Any = {"progress": lambda done, total: None, "say": lambda text: None}
    report = index_table(config, where, local=True, **silent)
    assert (report["files"], report["read"], report["failed"]) == (2, 2, [])
    assert index_table(config, where, local=True, **silent)["read"] == 0
    assert create_table(config, "d.t", where, dry_run=True, progress=silent["progress"])[
        "columns"
    ] == [
        {"name": "a", "type": "int", "key": False},
        {"name": "s", "type": "string", "key": False},
        {"name": "p", "type": "int", "key": True},
    ]
    with open_table(config, where) as (_, _, table, store):
        manifest = store.latest()
        assert manifest is not None and table.format == "orc"
        serving = IndexSnapshot.open(manifest, store, tmp_path / "cache")
        fields = [Field(c.name, c.type) for c in table.columns]
        found = serving.statistics(fields, HIVE).column(BoundReference(("a",), INTEGER))
        assert found is not None and found.upper.tolist() == [10, 20]
    asked = RequestedIndexes(kinds=(("bloom", "a"),))
    assert index_table(config, where, local=True, asked=asked, **silent)["read"] == 2


def test_other_kinds_need_the_column_at_its_place_and_by_its_name(orc: Orc) -> None:
    orc.columns = (Column("a", BIGINT), Column("s", STRING))
    day = pa.array([dt.date(1850, 1, 1)] * 2)
    files = {
        "good": {"a": ints(1, 3), "s": ["x", "y"]},
        "swapped": {"s": ["x", "y"], "a": ints(1, 3)},
        "upper": {"A": ints(1, 3), "s": ["x", "y"]},
        "padded": {"a": ints(1, 3), "s": ["x ", "y"]},
        "more": {"a": ints(1, 3), "s": ["x", "y"], "d": day},
    }
    for name, data in files.items():
        orc.put(pa.table(data), name)
    wanted = [kind(k).define(on) for k in ("bloom", "values") for on in ("a", "s", "d")]
    orc.build(settings=lambda held: held.adding(wanted).with_visibility("minmax", False))
    planner = orc.planner()

    def read(predicate: Predicate) -> set[str]:
        request = ScanRequest(NAME, predicate, semantics=HIVE)
        return {uri.rpartition("/")[2] for uri in drained(planner.plan(request))}

    assert read(eq("a", 2)) == {"swapped", "upper"}
    assert read(eq("s", "z")) == {"swapped", "padded"}
    orc.columns = (Column("s", STRING), Column("a", BIGINT))
    assert read(eq("a", 2)) == set(files) - {"swapped"}
    planner.lister.close()
