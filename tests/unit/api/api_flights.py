"""A small partitioned directory of Parquet files for tests of the API."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write(path: Path, data: pa.Table) -> Path:
    """A file some seconds old, so that its entry in an index is trusted at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path)
    moved = path.stat().st_mtime_ns - 10_000_000_000
    os.utime(path, ns=(moved, moved))
    return path


def flights(root: Path) -> Path:
    """Three months of four files; ``id`` ascends over all of them, ``x`` holds a NaN in each."""
    for month in (1, 2, 3):
        for part in range(4):
            first = month * 1000 + part * 100
            write(
                root / f"month={month}" / f"f{part}.parquet",
                pa.table(
                    {
                        "id": pa.array(range(first, first + 100), pa.int32()),
                        "x": [float("nan"), *map(float, range(1, 100))],
                        "name": [f"n{i}" for i in range(100)],
                    }
                ),
            )
    return root
