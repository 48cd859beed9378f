"""INT96 timestamps are rounded as the engine that is named does it."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.app.api.conform import conform
from bridge.formats.parquet.rows import read_rows
from bridge.kernel.errors import FileAmbiguous
from bridge.kernel.types import TIMESTAMP, Field, Kind, Type
from tests.tiers import examples, seed


def written(table: pa.Table) -> Any:
    sink = io.BytesIO()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, row_group_size=7)
    return pa.BufferReader(sink.getvalue())


def read(table: pa.Table, type: Type, engine: str) -> list[Any]:
    parts = [found["t"] for found, _ in read_rows(written(table), "f", ["t"], ["t"])]
    return [v for part in parts for v in conform(part, type, engine, "t", "f").to_pylist()]


@pytest.mark.rule("9")
def test_nanoseconds_are_rounded_by_trino_and_cut_by_hive_and_spark() -> None:
    rng = random.Random(seed(9))
    for _ in range(examples(20, 50, 500)):
        nanos = [
            rng.choice([None, rng.randint(-(10**18), 10**18), rng.randint(-3000, 3000)])
            for _ in range(20)
        ]
        half = [None if v is None else (v + 500) // 1000 for v in nanos]
        cut = [None if v is None else v // 1000 for v in nanos]
        flat = pa.array(nanos, pa.timestamp("ns"))
        inside = pa.array([{"a": v} for v in flat.to_pylist()], pa.struct([("a", flat.type)]))
        struct = Type(Kind.STRUCT, fields=(Field("a", TIMESTAMP),))
        for engine, micros in (("trino", half), ("hive", cut), ("spark", cut)):
            wanted = pa.array(micros, pa.timestamp("us")).to_pylist()
            assert read(pa.table({"t": flat}), TIMESTAMP, engine) == wanted
            assert [v["a"] for v in read(pa.table({"t": inside}), struct, engine)] == wanted


@pytest.mark.rule("9")
def test_times_beyond_those_of_nanoseconds_are_read() -> None:
    far = [253402300799999999, -62135596800000000, None, 5]
    column = pa.array(far, pa.timestamp("us"))
    assert read(pa.table({"t": column}), TIMESTAMP, "trino") == column.to_pylist()


@pytest.mark.rule("9")
def test_times_that_no_unit_holds_are_an_error() -> None:
    """Written in 1970, and moved to 9999 in the bytes of the file."""
    nanos = pa.array([7], pa.timestamp("ns"))
    sink = io.BytesIO()
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none"}
    pq.write_table(pa.table({"t": nanos}), sink, use_deprecated_int96_timestamps=True, **options)
    old = (7).to_bytes(8, "little") + (2_440_588).to_bytes(4, "little")
    new = (7).to_bytes(8, "little") + (2_440_588 + 2_932_896).to_bytes(4, "little")
    assert old in sink.getvalue()
    source = pa.BufferReader(sink.getvalue().replace(old, new))
    with pytest.raises(FileAmbiguous, match="nanoseconds of 't'"):
        list(read_rows(source, "f", ["t"], ["t"]))
