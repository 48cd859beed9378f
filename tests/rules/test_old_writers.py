"""Files of old writers: real ones of parquet-mr 1.8.1, and footers that other writers left.

``tests/fixtures/parquet_mr`` holds the program that wrote the files, and its Maven project.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.expression.nodes import BoundReference
from bridge.expression.parsing.text import parse_where
from bridge.expression.statistics import ColumnStatistics
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    TRINO,
    Type,
    decimal,
)
from bridge.table.model import Column
from tests.support.lake import Lake, age, kept

FIXTURES = Path(__file__).parents[1] / "fixtures" / "parquet_mr"
COLUMNS = (
    Column("i", INTEGER),
    Column("l", BIGINT),
    Column("u", BIGINT),
    Column("d", DOUBLE),
    Column("f", FLOAT),
    Column("b", BOOLEAN),
    Column("s", STRING),
    Column("raw", BINARY),
    Column("t", TIMESTAMP),
    Column("n", decimal(11, 2)),
    Column("day", DATE),
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """accents, ascii and planes, as parquet-mr 1.8.1 wrote them."""
    made = Lake(tmp_path, COLUMNS)
    for file in FIXTURES.glob("*.parquet"):
        age(Path(shutil.copy(file, made.root / "t" / file.name)))
    assert made.build().files == 3
    return made


def asked(lake: Lake, text: str) -> set[str]:
    found = kept(lake.planner(), parse_where(text)[0])
    return {uri.rpartition("/")[2].removesuffix(".parquet") for uri in found}


def column(lake: Lake, name: str, kind: Type) -> ColumnStatistics:
    manifest = lake.store().latest()
    assert manifest is not None
    serving = IndexSnapshot.open(manifest, lake.store(), lake.root / "cache")
    found = serving.statistics((), TRINO).column(BoundReference((name,), kind))
    assert found is not None
    return found


def unknown(found: ColumnStatistics) -> bool:
    low, high = found.lower_known, found.upper_known
    return low is not None and high is not None and not low.any() and not high.any()


def test_the_files_are_what_they_are_said_to_be() -> None:
    for file in FIXTURES.glob("*.parquet"):
        assert pq.read_metadata(file).created_by.startswith("parquet-mr version 1.8.1")
    answer = duckdb.sql(
        "SELECT path_in_schema, stats_min, stats_max, stats_min_value, stats_max_value "
        f"FROM parquet_metadata('{FIXTURES}/accents.parquet')"
    ).fetchall()
    found = {name: tuple(rest) for name, *rest in answer}
    assert found["s"] == ("é", "z", None, None)  # signed bytes: 'a' lies outside of them
    assert found["i"] == ("-1", "1", None, None)  # deprecated fields alone


def test_12_signed_bounds_of_text_are_ignored(lake: Lake) -> None:
    everything = {"accents", "ascii", "planes"}
    for text in ("s = 'a'", "s < 'b'", "s LIKE 'a%'", "s <> 'b'", "s > 'z'"):
        assert asked(lake, text) == everything
    assert unknown(column(lake, "s", STRING))
    assert unknown(column(lake, "raw", BINARY))


def test_13_signed_bounds_of_unsigned_numbers_are_ignored(lake: Lake) -> None:
    assert unknown(column(lake, "u", BIGINT))
    assert len(asked(lake, "u = 4294967291")) == 3


def test_1_old_bounds_of_floats_are_ignored(lake: Lake) -> None:
    assert unknown(column(lake, "d", DOUBLE))
    assert unknown(column(lake, "f", FLOAT))
    assert len(asked(lake, "f = -0.0")) == 3


def test_9_int96_and_old_dates(lake: Lake) -> None:
    assert unknown(column(lake, "t", TIMESTAMP))
    assert len(asked(lake, "t = TIMESTAMP '1970-01-02 00:00:00'")) == 3
    day = column(lake, "day", DATE)
    assert day.lower_known is not None and not day.lower_known.any()  # in 1422: which calendar?
    assert day.upper.tolist() == [200_000] * 3
    assert asked(lake, "day > DATE '2517-08-01'") == set()
    assert len(asked(lake, "day < DATE '1300-01-01'")) == 3


def test_10_decimals_of_bytes_without_an_order(lake: Lake) -> None:
    assert unknown(column(lake, "n", decimal(11, 2)))
    assert len(asked(lake, "n = DECIMAL '-3.00'")) == 3


def test_5_signed_numbers_prune_still(lake: Lake) -> None:
    assert asked(lake, "i = 2") == set()
    assert asked(lake, "l > 2199023255552") == set()
    assert len(asked(lake, "l IS NULL")) == 3
    assert asked(lake, "i IS NULL") == set()
    assert column(lake, "b", BOOLEAN).lower.tolist() == [0, 0, 0]


def test_a_scan_completes_what_old_footers_lack(lake: Lake) -> None:
    """NaN counts, and bounds of text, from the data itself."""
    lake.build(nan="scan")
    assert asked(lake, "s = 'a'") == {"accents"}
    assert asked(lake, "s > 'z'") == {"accents", "planes"}
    assert asked(lake, "s = '\U0001d11e'") == {"planes"}
    assert asked(lake, "d > 1.0") == set()  # NaN is not greater in Trino
    assert len(asked(lake, "d <> 1.0")) == 3
    assert unknown(column(lake, "t", TIMESTAMP))
    assert len(asked(lake, "t = TIMESTAMP '1970-01-02 00:00:00'")) == 3


def _written(path: Path, data: dict[str, Any], **options: Any) -> bytes:
    pq.write_table(pa.table(data), path, **options)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["parquet-mr version 1.6.0", "", "parquet-cpp version 0.0.1", "é"])
def test_4_another_writers_name_changes_no_law(tmp_path: Path, name: str) -> None:
    """``created_by`` of writers known for wrong bounds; rows are never lost for it."""
    lake = Lake(tmp_path, (Column("s", STRING), Column("x", BIGINT)))
    path = lake.root / "t" / "a"
    raw = _written(path, {"s": ["a", "é"], "x": [1, 2]})
    own = pq.read_metadata(path).created_by.encode()
    path.write_bytes(raw.replace(own, name.encode()[: len(own)].ljust(len(own))))
    age(path)
    lake.build()
    assert len(asked(lake, "s = 'a'")) == 1
    assert len(asked(lake, "s = 'é'")) == 1
    assert asked(lake, "x = 7") == set()


def test_4_no_statistics_at_all(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("s", STRING), Column("x", BIGINT)))
    _written(lake.root / "t" / "a", {"s": ["a", None], "x": [1, 2]}, write_statistics=False)
    age(lake.root / "t" / "a")
    lake.build()
    for text in ("x = 7", "x IS NULL", "s IS NULL", "s IS NOT NULL", "x NOT IN (1, 2)"):
        assert len(asked(lake, text)) == 1
    lake.build(nan="scan")
    assert asked(lake, "x = 7") == set()


def test_12_no_column_orders(tmp_path: Path) -> None:
    """A footer without orders, as writers before 2017 left it: text unknown, numbers known."""
    lake = Lake(tmp_path, (Column("s", STRING), Column("x", BIGINT)))
    path = lake.root / "t" / "a"
    raw = _written(path, {"s": ["b", "c"], "x": [1, 2]})
    # field 7 of the footer, a list of two empty unions, then the footer's end
    orders = b"\x19\x2c\x1c\x00\x00\x1c\x00\x00\x00"
    footer = int.from_bytes(raw[-8:-4], "little")
    assert raw[-8 - len(orders) : -8] == orders
    cut = raw[: -8 - len(orders)] + b"\x00"
    path.write_bytes(cut + (footer - len(orders) + 1).to_bytes(4, "little") + b"PAR1")
    age(path)
    lake.build()
    assert len(asked(lake, "s = 'a'")) == 1
    assert asked(lake, "x = 7") == set()
