"""Bloom filters beside those of others: pyarrow writes the same bits, DuckDB probes alike."""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.expression.nodes import BoundPredicate, BoundReference, Op
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.manifest import Blob
from bridge.index.kinds import bloom
from bridge.index.kinds.bloom import KIND
from bridge.index.kinds.payload import Body
from bridge.index.kinds.xxh64 import hash_bytes, hash_numbers
from bridge.kernel.errors import InvalidConfiguration
from bridge.kernel.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    TRINO,
    Type,
    Value,
    decimal,
    varchar,
)
from tests.support.lake import Lake


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash_is_xxh64(data: bytes, digest: int) -> None:
    assert int(hash_bytes(pa.array([data], pa.large_binary()))[0]) == digest


COLUMNS: dict[str, tuple[pa.Array, Type]] = {
    "i": (pa.array(range(0, 500, 2), pa.int32()), INTEGER),
    "l": (pa.array(range(0, 500, 2), pa.int64()), BIGINT),
    "r": (pa.array([i / 8 for i in range(250)], pa.float32()), FLOAT),
    "d": (pa.array([i / 3 for i in range(250)], pa.float64()), DOUBLE),
    "s": (pa.array([f"value {i} {'x' * (i % 70)}" for i in range(250)]), STRING),
    "day": (pa.array(range(250), pa.int32()).cast(pa.date32()), DATE),
    "t": (pa.array(range(250), pa.int64()).cast(pa.timestamp("us")), TIMESTAMP),
    "m": (pa.array(range(250), pa.int64()).cast(pa.timestamp("ms")), TIMESTAMP),
    "n": (pa.array([Decimal(i) / 100 for i in range(250)], pa.decimal128(9, 2)), decimal(9, 2)),
    "w": (pa.array([Decimal(i) for i in range(250)], pa.decimal128(25, 0)), decimal(25, 0)),
}


def test_pyarrow_writes_the_same_bits(lake: Lake) -> None:
    table = pa.table({name: values for name, (values, _) in COLUMNS.items()})
    options = {name: {"ndv": 250, "fpp": 0.01} for name in COLUMNS}
    lake.write("with", table, bloom_filter_options=options)
    lake.write("without", table)
    definitions = [KIND.define(f"{name}:fpp=0.01") for name in COLUMNS]
    lake.build(settings=lambda held: held.adding(definitions))
    for opened in lake.snapshot().kinds:
        payload = opened.payload()
        assert payload is not None
        rows = np.arange(2)
        ((_, data, starts, lengths),) = payload.bodies(rows)
        lifted = bytes(data[starts[0] : starts[0] + lengths[0]])
        values = COLUMNS[opened.definition.on][0]
        built = hashed(values, payload.rows["stored"][1].as_py())
        assert bloom.build(np.sort(built), len(lifted)) == lifted, opened.name
        # Ours is of another size, since Arrow rounds up to a power of two.
        ours = bytes(data[starts[1] : starts[1] + lengths[1]])
        assert ours == bloom.build(np.sort(built), len(ours)) and len(ours) <= len(lifted)


def hashed(values: pa.Array, key: str) -> np.ndarray[Any, Any]:
    from bridge.formats.physical_column import parse_key
    from bridge.index.kinds.plain import hashes

    found = hashes(parse_key(key).type, values)
    assert found is not None
    return found


def _never(lake: Lake, name: str, kind: Type, *values: Value, op: Op = Op.EQ) -> list[bool]:
    serving = lake.snapshot()
    (opened,) = (k for k in serving.kinds if k.definition.on == name)
    predicate = BoundPredicate(op, BoundReference((name,), kind), values)
    found = opened.never(predicate, np.arange(serving.num_files), TRINO)
    assert opened.problem is None
    return [False] * serving.num_files if found is None else found.tolist()


def test_duckdb_probes_alike(lake: Lake) -> None:
    duckdb = pytest.importorskip("duckdb")
    table = pa.table({name: COLUMNS[name][0] for name in ("i", "l", "d", "s")})
    options = {name: {"ndv": 250, "fpp": 0.05} for name in table.column_names}
    path = lake.write("f", table, bloom_filter_options=options)
    lake.build(settings=lambda held: held.adding([KIND.define(n) for n in table.column_names]))
    asked: dict[str, list[Any]] = {
        "i": list(range(300)),
        "l": list(range(300)),
        "d": [i / 6 for i in range(200)],
        "s": [f"value {i} {'x' * (i % 70)}" for i in range(300)],
    }
    answers = {True: 0, False: 0}
    for name, values in asked.items():
        for value in values:
            (row,) = duckdb.execute(
                "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, ?, ?)",
                [str(path), name, value],
            ).fetchall()
            mine = value.encode() if isinstance(value, str) else value
            assert _never(lake, name, COLUMNS[name][1], mine) == [row[0]], (name, value)
            answers[row[0]] += 1
    assert min(answers.values()) > 100


def test_filters_are_lifted_without_reading_data(lake: Lake) -> None:
    many = pa.table(
        {"x": pa.array(range(100_000)), "y": pa.array([str(i) for i in range(100_000)])}
    )
    lake.write("f", many, bloom_filter_options={"x": {"ndv": 100_000}}, row_group_size=30_000)
    read: list[tuple[int, int]] = []

    class Counting(type(lake.storage)):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

        def __getattr__(self, name: str) -> Any:
            return getattr(lake.storage, name)

        def read_state(self, uri: str, ranges: Any) -> Any:
            if ranges == [(0, size)]:
                raise AssertionError("the whole file was read")  # the sample does without
            read.extend(ranges)
            return lake.storage.read_state(uri, ranges)

    storage = Counting()
    definitions = [KIND.define("x")]
    size = lake.path("f").stat().st_size
    lake.build(collector=ThreadCollector(storage), settings=lambda held: held.adding(definitions))
    filters = sum(end - start for start, end in read)
    metadata = pq.read_metadata(lake.path("f"))
    groups = [metadata.row_group(i).column(0) for i in range(metadata.num_row_groups)]
    assert len(groups) == 4
    assert filters <= sum(g.bloom_filter_length for g in groups) + 64 * 1024 < size
    assert _never(lake, "x", BIGINT, 99_999) == [False]
    assert sum(_never(lake, "x", BIGINT, 100_000 + i)[0] for i in range(50)) > 30


def test_what_it_must_not_answer(lake: Lake) -> None:
    data = {
        "z": pa.array([0.0]),
        "u": pa.array([-0.0]),
        "s": pa.array(["abcdef"]),
        "ns": pa.array([1500], pa.timestamp("ns")),
        "n": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        "b": pa.array([True]),
    }
    lake.write("f", data)
    lake.build(settings=lambda held: held.adding([KIND.define(name) for name in data]))
    assert _never(lake, "z", DOUBLE, -0.0) == _never(lake, "u", DOUBLE, 0.0) == [False]
    assert _never(lake, "s", varchar(3), b"abc") == [False]  # cut when it is read
    assert _never(lake, "s", varchar(3), b"ab") == [True]
    assert _never(lake, "s", varchar(6), b"abcdeg") == [True]
    assert _never(lake, "ns", TIMESTAMP, 7) == [False]  # nanoseconds are rounded
    assert _never(lake, "n", decimal(12, 4), 15000) == [False]
    assert _never(lake, "n", decimal(12, 4), 15001) == [False]  # no value of the file's, MAYBE
    assert _never(lake, "n", decimal(12, 4), 16000) == [True]
    assert _never(lake, "b", BIGINT, 1) == [False]
    for op in (Op.NE, Op.LT, Op.GT, Op.NOT_IN):
        assert _never(lake, "z", DOUBLE, 5.0, op=op) == [False]


def test_bodies_are_fetched_for_the_files_asked_about_only(lake: Lake) -> None:
    for i in range(20):
        lake.write(f"f{i:02d}", {"x": list(range(i, 2000, 20))})
    lake.build(settings=lambda held: held.adding([KIND.define("x")]))
    serving = lake.snapshot()
    (opened,) = serving.kinds
    predicate = BoundPredicate(Op.EQ, BoundReference(("x",), BIGINT), (25,))
    payload = opened.payload()
    assert payload is not None
    assert opened.never(predicate, np.array([3, 4, 5]), TRINO).tolist() == [True, True, False]  # type: ignore[union-attr]
    (body,) = payload._bodies
    assert np.flatnonzero(body._checked).tolist() == [3, 4, 5]
    # Another process finds them here, and trusts nothing that does not match its sum.
    damaged = lake.root / "cache" / f"body-{body._blob.sha256}" / "body"
    raw = bytearray(damaged.read_bytes())
    start = int(payload.rows["body_offset"][5].as_py())
    raw[start : start + 32] = bytes(32)
    damaged.write_bytes(bytes(raw))
    assert _never(lake, "x", BIGINT, 25) == [i != 5 for i in range(20)]


def test_a_damaged_body_is_not_asked_again(lake: Lake) -> None:
    lake.write("f", {"x": [1, 2, 3]})
    lake.build(settings=lambda held: held.adding([KIND.define("x")]))
    (body,) = (lake.path(".skipbridge") / "shards").glob("*.body")
    body.write_bytes(bytes(body.stat().st_size))
    serving = lake.snapshot()
    (opened,) = serving.kinds
    predicate = BoundPredicate(Op.EQ, BoundReference(("x",), BIGINT), (9,))
    assert opened.never(predicate, np.array([0]), TRINO) is None
    assert opened.problem is not None and opened.problem.code == "INDEX_CORRUPT"
    assert not opened.concerns(predicate)


def test_too_many_values_for_the_memory_given(lake: Lake) -> None:
    lake.write("many", {"x": list(range(10_000))})
    lake.write("few", {"x": [1, 2, 3]})
    lake.build(settings=lambda held: held.adding([KIND.define("x:max_bytes=64")]))
    assert _never(lake, "x", BIGINT, 20_000) == [True, False]


@pytest.mark.parametrize(
    "text", ["x:fpp=0", "x:fpp=2", "x:max_bytes=1", "x:fpp=a", ":fpp=0.1", "x:f=1"]
)
def test_bad_settings(text: str) -> None:
    with pytest.raises(InvalidConfiguration):
        KIND.define(text)


def test_the_false_positive_rate_is_what_was_asked_for() -> None:
    values = hash_numbers(np.arange(20_000))
    for fpp in (0.1, 0.01, 0.001):
        size = bloom.optimal_bytes(len(values), fpp)
        words = np.frombuffer(bloom.build(np.sort(values), size), np.uint32).reshape(-1, 8)
        others = hash_numbers(np.arange(20_000, 40_000)).tolist()
        start, blocks = np.zeros(1, np.int64), np.array([size // 32])
        passed = sum(bool(bloom.probe(words, start, blocks, h)[0]) for h in others)
        assert passed < 1.5 * fpp * len(others) + 10
    assert struct.calcsize("<8I") == 32


def test_refresh_keeps_the_setting_and_reads_only_what_is_new(lake: Lake, tmp_path: Path) -> None:
    lake.write("a", {"x": [1]})
    lake.build()
    added = lake.build(settings=lambda held: held.adding([KIND.define("x")]))
    assert (added.read, added.removed) == (1, 1)  # the old entry had no filter
    lake.write("b", {"x": [2]})
    assert lake.build().read == 1
    assert _never(lake, "x", BIGINT, 1) == [False, True]
    assert _never(lake, "x", BIGINT, 2) == [True, False]
    assert lake.build().committed is False
    rebuilt = lake.build(full=True)
    assert rebuilt.read == 2
    assert _never(lake, "x", BIGINT, 2) == [True, False]
    lake.path("a").unlink()
    lake.build()
    assert _never(lake, "x", BIGINT, 2) == [False]
    gone = lake.build(settings=lambda held: held.without("bloom(x)"))
    assert (gone.committed, gone.read) == (True, 0)
    assert lake.snapshot().kinds == ()


def test_many_refreshes_are_compacted_with_their_filters(lake: Lake) -> None:
    lake.write("f00", {"x": [0]})
    lake.build(settings=lambda held: held.adding([KIND.define("x")]))
    for i in range(1, 20):
        lake.write(f"f{i:02d}", {"x": [i]})
        lake.build()
    manifest = lake.store().latest()
    assert manifest is not None and len(manifest.shards) < 20
    for value in (0, 7, 19):
        assert _never(lake, "x", BIGINT, value) == [i != value for i in range(20)]


def test_a_generation_of_fewer_files_leaves_the_bytes_of_an_older_one(tmp_path: Path) -> None:
    """A shorter file would end the process that has more of it mapped (SIGBUS)."""
    rows, empty = 2 * mmap.PAGESIZE, bytes(32)

    class Store:
        def read_blob(self, blob: Any) -> bytes:
            raise AssertionError

        def read_slices(self, blob: Any, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            return [bytes(end - start) for start, end in ranges]

    def ensure(body: Body, row: int) -> None:
        place = np.array([row])
        body.ensure(place, 32 * place, np.array([32]), np.array([zlib.crc32(empty)]))

    blob = Blob("shards/1-k0.body", 32 * rows, "digest")
    older, newer = Body(Store(), blob, rows, tmp_path), Body(Store(), blob, 1, tmp_path)
    ensure(older, 0)
    ensure(newer, 0)
    assert (tmp_path / "body-digest" / "there").stat().st_size == rows
    ensure(older, rows - 1)


@pytest.mark.parametrize("text", ["count(id)", "coalesce(a, b)", "like(a, 'x%')"])
def test_functions_that_no_index_holds(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="engines compute alike"):
        KIND.define(text)


def test_a_function_is_named_in_one_way() -> None:
    found = KIND.define("LOWER( St.A ):fpp=0.1")
    assert found.name == "bloom(lower(st.a))"
    assert KIND.columns(found) == [("st", "a")]
