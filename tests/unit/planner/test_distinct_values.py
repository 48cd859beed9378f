"""Estimates are sane on random tables: within limits, exact where they can be, and never fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.expression.nodes import AlwaysTrue
from bridge.expression.parsing.text import parse_where
from bridge.formats.parquet.statistics import FooterReader
from bridge.index.building.sample import SIGNATURE, ColumnSample, Sampling, sample_file
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Type,
    decimal,
)
from bridge.planner.answers.table_statistics import ColumnEstimate, Estimate, estimate
from bridge.planner.request import ScanRequest
from bridge.storage.routed import open_storage
from bridge.table.model import Column
from tests.support.lake import NAME, Lake

FILES, ROWS = 150, 100
TOTAL = FILES * ROWS
Make = Callable[[np.random.Generator, int], Any]
SHAPES: dict[str, tuple[Type, float, Make]] = {
    # by name: the type, the factor within which the estimate lies, and the values of one file
    "id": (BIGINT, 1.0, lambda rng, i: pa.array(range(i * ROWS, (i + 1) * ROWS))),
    "few": (INTEGER, 1.0, lambda rng, i: pa.array(rng.integers(0, 7, ROWS), pa.int32())),
    "some": (BIGINT, 1.3, lambda rng, i: pa.array(rng.integers(0, 3000, ROWS))),
    "many": (BIGINT, 1.5, lambda rng, i: pa.array(rng.integers(0, 100_000, ROWS) * 10**9)),
    "skewed": (BIGINT, 2.5, lambda rng, i: pa.array(np.minimum(rng.zipf(1.5, ROWS), 10**12))),
    "mixed": (
        BIGINT,
        1.3,
        lambda rng, i: pa.array(np.where(rng.random(ROWS) < 0.5, 0, rng.integers(0, 2**50, ROWS))),
    ),
    "sorted": (BIGINT, 1.3, lambda rng, i: pa.array(np.arange(i * ROWS, (i + 1) * ROWS) // 20)),
    "constant": (DATE, 1.0, lambda rng, i: pa.array([i // 2] * ROWS, pa.int32()).cast(pa.date32())),
    "word": (STRING, 1.3, lambda rng, i: pa.array([f"w{n}" for n in rng.integers(0, 500, ROWS)])),
    "uuid": (STRING, 1.0, lambda rng, i: pa.array([f"{i}-{n}" for n in range(ROWS)])),
    "nan": (
        DOUBLE,
        1.3,
        lambda rng, i: pa.array(
            np.where(rng.random(ROWS) < 0.3, np.nan, rng.integers(0, 50, ROWS))
        ),
    ),
    "price": (
        decimal(9, 2),
        1.3,
        lambda rng, i: (
            pa.array(rng.integers(0, 4000, ROWS)).cast(pa.decimal128(19)).cast(pa.decimal128(9, 2))
        ),
    ),
    "at": (
        TIMESTAMP,
        1.3,
        lambda rng, i: pa.array(rng.integers(0, 2000, ROWS) * 10**9, pa.timestamp("us")),
    ),
    "yes": (BOOLEAN, 2.0, lambda rng, i: pa.array(rng.random(ROWS) < 0.5)),
    "nothing": (INTEGER, 1.0, lambda rng, i: pa.nulls(ROWS, pa.int32())),
    "half": (
        INTEGER,
        1.3,
        lambda rng, i: pa.array([None, *range(ROWS // 2 - 1)] * 2, pa.int32()),
    ),
}
KEYS = (Column("p", STRING), Column("q", INTEGER))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, pa.Table]:
    rng = np.random.default_rng(0)
    columns = tuple(Column(name, type) for name, (type, _, _) in SHAPES.items())
    lake = Lake(tmp_path_factory.mktemp("lake"), columns, KEYS)
    lake.partition_values = [(p, str(q)) for p in "abc" for q in range(5)]
    parts = []
    for i in range(FILES):
        data = pa.table({name: make(rng, i) for name, (_, _, make) in SHAPES.items()})
        lake.write(f"{i}.parquet", data, lake.partition_values[i % 15])
        parts.append(data)
    lake.build()
    return lake, pa.concat_tables(parts)


def estimated(lake: Lake, where: str = "") -> Estimate:
    predicate = parse_where(where)[0] if where else AlwaysTrue()
    return estimate(lake.planner().plan(ScanRequest(NAME, predicate)).context)


def distinct(data: pa.Table, name: str) -> int:
    return len([v for v in data[name].unique().to_pylist() if v is not None and v == v])


def sane(found: Estimate) -> None:
    assert found.rows is not None
    for name, column in found.columns.items():
        if column.distinct is not None:
            assert 0 <= column.distinct <= found.rows, name
        if column.nulls_fraction is not None:
            assert 0 <= column.nulls_fraction <= 1, name
        assert column.low is None or column.high is None or column.low <= column.high, name


@pytest.mark.parametrize("name", SHAPES)
def test_a_default_build_tells_the_distinct_values(table: tuple[Lake, pa.Table], name: str) -> None:
    lake, data = table
    column = estimated(lake).columns[name]
    truth, factor = distinct(data, name), SHAPES[name][1]
    assert column.distinct is not None
    assert truth / factor <= column.distinct <= truth * factor
    if name in ("word", "uuid"):
        size = sum(len(v) for v in data[name].to_pylist())
        assert column.data_bytes == pytest.approx(size, rel=0.1)
    else:
        assert column.data_bytes is None


def test_partition_keys_are_exact(table: tuple[Lake, pa.Table]) -> None:
    lake, _ = table
    found = estimated(lake)
    p, q = found.columns["p"], found.columns["q"]
    assert (p.distinct, p.nulls_fraction, p.source) == (3, 0, "exact")
    assert (q.distinct, q.nulls_fraction, q.low, q.high) == (5, 0, 0, 4)
    some = estimated(lake, "p = 'b' AND q >= 3")
    assert some.rows == TOTAL * 2 / 15
    assert (some.columns["p"].distinct, some.columns["q"].distinct) == (1, 2)
    assert (some.columns["q"].low, some.columns["q"].high) == (3, 4)
    assert estimated(lake, "p = 'z'").rows == 0


def test_estimates_are_sane_under_any_predicate(table: tuple[Lake, pa.Table]) -> None:
    lake, _ = table
    for predicate in (
        "id < 300",
        "id < 0",
        "constant IS NULL",
        "p = 'a' AND sorted > 500",
        "word = 'w3'",
    ):
        found = estimated(lake, predicate)
        sane(found)
    few = estimated(lake, "id < 300")
    assert few.rows == 300 and few.columns["id"].distinct == 300


def test_without_a_sample_bounds_and_counts_tell(
    table: tuple[Lake, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.index.reading.snapshot.IndexSnapshot.sample", {})
    lake, data = table
    found = estimated(lake)
    sane(found)
    for name in ("id", "few", "constant", "nothing", "half"):
        column = found.columns[name]
        assert column.source == "bounds" and column.distinct == distinct(data, name), name
    for name in ("some", "many", "mixed", "skewed", "sorted"):
        known = found.columns[name].distinct
        assert known is not None and known >= distinct(data, name), name
    assert found.columns["uuid"] == ColumnEstimate(0.0)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_small_and_empty_tables(tmp_path: Path, rows: int) -> None:
    rng = np.random.default_rng(1)
    columns = tuple(Column(name, type) for name, (type, _, _) in SHAPES.items())
    lake = Lake(tmp_path, columns)
    data = pa.table({name: make(rng, 0) for name, (_, _, make) in SHAPES.items()}).slice(0, rows)
    if rows:
        lake.write("f.parquet", data)
        lake.write("g.parquet", data.slice(0, 0))
    lake.build()
    found = estimated(lake)
    sane(found)
    assert found.rows == rows
    for name in SHAPES if rows else ():
        if name != "yes":
            assert found.columns[name].distinct == distinct(data, name), name


def test_a_value_that_skipped_files_is_not_counted_twice(tmp_path: Path) -> None:
    """Rows of a value, as an engine computes them from the files that may hold it."""
    lake = Lake(tmp_path, (Column("s", STRING), Column("day", INTEGER)))
    values = [f"{n % 30:02d}-{n}" for n in range(180)]
    for i in range(60):
        held = [value for value in values[i % 30 :: 30] for _ in range(11)]
        lake.write(f"{i}.parquet", {"s": held, "day": pa.array([i // 30] * len(held), pa.int32())})
    lake.build()
    whole = estimated(lake)
    assert whole.rows == 180 * 22
    for where, rows in (
        (f"s = '{values[5]}'", 22),
        (f"s IN ('{values[5]}', '{values[6]}')", 44),
        (f"s = '{values[5]}' AND day = 0", 11),
    ):
        found = estimated(lake, where)
        assert found.rows is not None and found.rows < whole.rows / 4
        distinct = found.columns["s"].distinct
        assert distinct is not None
        assert rows / 2 < found.rows / distinct * (1 + ("IN" in where)) < rows * 2
    half = estimated(lake, "day = 0")
    assert half.columns["s"].distinct == whole.columns["s"].distinct


def test_refreshes_and_compaction_keep_the_sample(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", BIGINT),))
    for i in range(40):
        lake.write(f"{i}.parquet", {"x": range(i * 10, i * 10 + 10)})
        lake.build()
    index = lake.snapshot()
    assert all(shard.payload(SIGNATURE) for shard in index.manifest.shards)
    assert index.sample["x"].rows == 400
    assert estimated(lake).columns["x"].distinct == 400


def test_a_file_that_cannot_be_sampled_is_indexed_all_the_same(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", BIGINT),))
    path = lake.write("f.parquet", {"x": range(50_000)}, compression="none", use_dictionary=False)
    raw = bytearray(path.read_bytes())
    raw[4:60] = b"\xff" * 56
    path.write_bytes(raw)
    report = lake.build()
    assert (report.failed, report.read) == ((), 1)
    assert lake.snapshot().sample == {}
    assert estimated(lake).columns["x"] == ColumnEstimate(
        0.0, 50_000.0, 0.0, 49_999.0, None, "bounds", True
    )


def test_columns_whose_values_overlap_from_file_to_file(table: tuple[Lake, pa.Table]) -> None:
    columns = estimated(table[0]).columns
    found = {name for name in SHAPES if columns[name].overlapping}
    apart = {"id", "sorted", "constant"}  # a condition may hold for whole files
    assert found >= {"few", "some", "many", "skewed", "word", "price", "at", "half"}
    assert not found & apart
    assert columns["p"].overlapping is None


def test_files_are_sampled_by_their_share() -> None:
    sampling = Sampling.of(10_000)
    taken = sum(sampling.takes(f"file:///t/part-{i:05d}.parquet") for i in range(10_000))
    assert 30 <= taken <= 110
    assert all(Sampling.of(50).takes(f"f{i}") for i in range(50))


def test_too_few_units_tell_nothing_of_the_rest() -> None:
    sample = ColumnSample(2, 100, 100, None, 60.0, 30.0, 30.0, False)
    assert sample.distinct_in(1e6) is None
    assert sample.distinct_in(100) == 60.0


def test_keys_of_any_type_are_exact(tmp_path: Path) -> None:
    kinds = {"d": DOUBLE, "w": decimal(30, 2), "b": BOOLEAN, "t": TIMESTAMP, "s": STRING}
    keys = tuple(Column(name, type) for name, type in kinds.items())
    lake = Lake(tmp_path, (Column("x", BIGINT),), keys)
    lake.partition_values = [
        (v, v, "true", "2020-01-01 00:00:00", None) for v in ("1.5", "2.5", "2.5e0", None)
    ]
    lake.partition_values[2] = ("2.5", "3.5", "false", None, "x")
    for i, values in enumerate(lake.partition_values):
        lake.write(f"{i}.parquet", {"x": range(10)}, values)
    lake.build()
    found = estimated(lake).columns
    known = {name: (found[name].distinct, found[name].nulls_fraction) for name in kinds}
    assert known == {"d": (2, 0.25), "w": (3, 0.25), "b": (2, 0), "t": (1, 0.25), "s": (1, 0.75)}


def test_values_that_are_sorted_within_large_row_groups(tmp_path: Path) -> None:
    lake = Lake(tmp_path, tuple(Column(name, BIGINT) for name in ("week", "group", "id", "some")))
    rng = np.random.default_rng(2)
    for i in range(4):
        ids = np.arange(i * 300_000, (i + 1) * 300_000)
        data = {
            "week": ids // 3000 * 7,
            "group": ids // 60 * 10,
            "id": ids,
            "some": rng.integers(0, 20_000, len(ids)),
        }
        lake.write(f"{i}.parquet", data)
    lake.build()
    found = estimated(lake).columns
    for name, truth in (("week", 400), ("group", 20_000), ("id", 1_200_000), ("some", 20_000)):
        assert found[name].source == "sample"
        assert found[name].distinct == pytest.approx(truth, rel=0.1), name


@pytest.mark.parametrize("shape", ["flat", "nested"])
def test_a_long_value_that_is_stored_once_does_not_fill_the_memory(
    tmp_path: Path, shape: str
) -> None:
    """A dictionary or compression turns 200 MB of text into a few kilobytes."""
    rows, limit = 20_000, 1 << 20
    text: Any = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 10_000])
    if shape == "nested":
        text = pa.StructArray.from_arrays([text], ["x"])
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"s": text, "i": range(rows)}), path, store_schema=False)
    uri, size, storage = f"file://{path}", path.stat().st_size, open_storage()
    footer = FooterReader().read_file(storage, uri, size)
    found = {
        r["column"]: r for r in sample_file(Sampling(1.0, rows, limit), footer, storage, uri, size)
    }
    texts = found["s" if shape == "flat" else "s.x"]
    assert 0 < texts["bytes"] <= 20 * limit
    assert found["i"]["rows"] == texts["rows"] > 0


def test_categories_of_a_data_frame_are_sampled(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("c", STRING), Column("x", BIGINT)))
    for i, words in enumerate((["a", "b", None], ["b", "c", "c"])):
        data = pa.table({"c": pa.array(words * 10).dictionary_encode(), "x": range(30)})
        lake.write(f"{i}.parquet", data, row_group_size=7)
    lake.build()
    found = lake.snapshot().sample
    assert (found["c"].distinct, found["c"].values, found["c"].bytes) == (3.0, 50, 50)
    assert found["x"].distinct == 30.0
