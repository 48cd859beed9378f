"""ORC's rows are read in parts: a stripe may hold any number of bytes in a few."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.orc as po
import pytest

from bridge.formats.orc.rows import batches
from bridge.formats.rows import BATCH_BYTES
from tests.tiers import seed


def _orc(table: pa.Table) -> pa.BufferReader:
    sink = io.BytesIO()
    po.write_table(table, sink, compression="zstd", stripe_size=1 << 30)
    return pa.BufferReader(sink.getvalue())


@pytest.mark.rule("32")
def test_32_a_stripe_of_many_bytes_is_read_in_parts() -> None:
    texts = ["y" * 20_000, None, "z" * 30_000]
    table = pa.table({"x": range(3000), "s": texts * 1000, "l": [[0] * 500] * 3000})
    source = _orc(table)
    file = po.ORCFile(source)
    assert file.nstripes == 1
    found = list(batches(source, file, ["s", "x", "l"]))
    assert pa.Table.from_batches(found) == table
    assert max(each.nbytes for each in found) < 2 * BATCH_BYTES


def test_parts_are_the_rows_of_stripes() -> None:
    """The law: whatever is asked of whichever columns, the same values in the same order."""
    drawn = random.Random(seed(33))
    count = 1500
    columns = {
        "n": pa.array([drawn.choice([None, drawn.random()]) for _ in range(count)]),
        "t": pa.array([drawn.choice([None, "a", "ß" * drawn.randrange(9)]) for _ in range(count)]),
        "a.b": pa.array(["dot"] * count),
        "r": pa.array([drawn.choice([None, {"u": 1, "v": "w"}]) for _ in range(count)]),
        "d": pa.array(range(count), pa.timestamp("ns")),
        "m": pa.array([[("k", i)] for i in range(count)], pa.map_(pa.string(), pa.int64())),
    }
    source = _orc(pa.table(columns))
    file = po.ORCFile(source)
    for _ in range(12):
        wanted = drawn.sample(list(columns), drawn.randrange(1, len(columns) + 1))
        if "a.b" in wanted:
            continue
        found = pa.Table.from_batches(batches(source, file, wanted))
        whole = pa.Table.from_batches([file.read_stripe(0, columns=wanted)])
        assert found.select(wanted).to_pylist() == whole.select(wanted).to_pylist()
        assert found.schema.names == whole.schema.names
