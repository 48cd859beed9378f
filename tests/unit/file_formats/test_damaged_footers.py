"""A footer with a flipped bit gives rows or an error, and never ends the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

FLIPS = """
import io, struct
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.file_formats.readers.parquet_rows import read_rows

columns = {"k": range(50), "x": [{"a": i, "b": [1.5]} for i in range(50)]}
written = io.BytesIO()
pq.write_table(pa.table(columns), written, row_group_size=25)
whole = written.getvalue()
footer = len(whole) - 8 - struct.unpack("<I", whole[-8:-4])[0]
for at in range(footer, len(whole) - 8):
    damaged = bytearray(whole)
    damaged[at] ^= 0x10
    with suppress(Exception):
        for _ in read_rows(pa.BufferReader(bytes(damaged)), "file", list(columns), list(columns)):
            pass
print("alive")
"""


@pytest.mark.rule("32")
def test_no_flipped_bit_ends_the_process() -> None:
    # In a process of its own: Arrow ends it where an error has no way out.
    done = subprocess.run([sys.executable, "-c", FLIPS], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "alive\n", done.stderr
