"""A footer with a flipped bit gives rows or an error that names the file."""

from __future__ import annotations

import io
import random
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.formats.rows_in_child import rows_of
from bridge.kernel.errors import FileCorrupt, FileUnreadable
from bridge.storage.child import storage_in_memory
from tests.tiers import examples, seed


@pytest.mark.rule("27")
@pytest.mark.rule("32")
def test_no_flipped_bit_ends_the_process() -> None:
    columns = {"k": range(50), "x": [{"a": i, "b": [1.5]} for i in range(50)]}
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written, row_group_size=25)
    whole = written.getvalue()
    footer = len(whole) - 8 - struct.unpack("<I", whole[-8:-4])[0]
    places = range(footer, len(whole) - 8)
    draw, refused = random.Random(seed(3)), 0
    for at in draw.sample(places, examples(100, 300, len(places))):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        storage, names = storage_in_memory(bytes(damaged)), list(columns)
        try:
            for _ in rows_of(storage, "the file", len(whole), "parquet", names, names):
                pass
        except (FileCorrupt, FileUnreadable) as error:
            assert "the file" in error.message
            refused += 1
    assert refused
