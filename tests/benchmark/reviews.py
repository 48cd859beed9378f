"""The shape of the blog about Hudi's column statistics: 39,000 files of 1 MB, 21 columns, cold.

The data is made: reviews as they arrived, so that dates ascend, ids of customers and products are
in random order, and texts are long. A tenth of the files where the disk has no room for all; the
figures say how many there were. A query reads its columns of the files that are left, in this
process, beside a query without the index.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import bridge
from tests.benchmark.cold import drop
from tests.benchmark.figures import Figure

_FILES, _ROWS = 39_000, 3_500
_FILE_BYTES = 1_050_000
_WORDS = 4_000
_BEGIN, _DAYS = np.datetime64("1996-01-01"), 7_300


def run() -> list[Figure]:
    free = shutil.disk_usage(tempfile.gettempdir()).free
    return _measured(_FILES if free > 2 * _FILES * _FILE_BYTES else _FILES // 10, _ROWS)


def quick() -> list[Figure]:
    return _measured(40, 200)


def _measured(files: int, rows: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as scratch:
        table, cache = Path(scratch) / "reviews", str(Path(scratch) / "cache")
        _write(table, files, rows)
        size = sum(path.stat().st_size for path in table.glob("*.parquet"))
        started = time.perf_counter()
        with bridge.connect(planner_cache_dir=cache) as session:
            columns = len(session.table(table).schema)
            session.table(table).index.build()
        built = time.perf_counter() - started
        index = sum(p.stat().st_size for p in (table / ".skipbridge").rglob("*") if p.is_file())
        note = f"{size / files / 1e6:.2f} MB each, {columns} columns"
        shape = f"{files:,} files"
        return [
            Figure(f"{shape}: build of the index", built, "s", "", note),
            Figure(f"{shape}: {files * columns:,} records", index / 1e6, "MB", "≤ 63 of 39,000"),
            *(
                _query(table, cache, shape, name, where)
                for name, where in _queries(files, rows).items()
            ),
        ]


def _queries(files: int, rows: int) -> dict[str, str]:
    """Conditions that some rows in the middle of the table satisfy, but the last."""
    number = files // 2
    day = _BEGIN + np.int64(number * _DAYS // files)
    return {
        "a day": f"review_date = date '{day}'",
        "a month, 5 stars": f"review_date BETWEEN date '{day}' AND date '{day + 30}' AND "
        "star_rating = 5",
        "a review": f"review_id = 'R{number * rows:010}'",
        "a product's parent": "product_parent = 123456789",
    }


def _query(table: Path, cache: str, shape: str, name: str, where: str) -> Figure:
    """A new session for each run, after the page cache has dropped files and index."""
    seconds: dict[bool, float] = {}
    kept, rows = 0, set()
    for pruning in (True, False):
        drop(table)
        drop(Path(cache))
        started = time.perf_counter()
        with bridge.connect(planner_cache_dir=cache) as session:
            scan = session.table(table).scan(
                where, columns=["review_id", "star_rating"], pruning=pruning
            )
            rows.add(scan.to_arrow().num_rows)
            seconds[pruning] = time.perf_counter() - started
            if pruning:
                kept = scan.explain().files_kept
    assert len(rows) == 1
    note = f"{kept:,} files read, {rows.pop():,} rows; {seconds[False]:.2f} s without the index"
    return Figure(f"{shape}, cold: {name}", seconds[True], "s", "", note)


def _write(table: Path, files: int, rows: int) -> None:
    table.mkdir()
    rng = np.random.default_rng(1)
    words = np.array([f"{number:x}" for number in rng.integers(2**16, 2**36, _WORDS)])
    for i in range(files):
        path = table / f"f{i:05}.parquet"
        pq.write_table(_reviews(rng, words, i, files, rows), path, compression="zstd")
        os.utime(path, (1.7e9, 1.7e9))


def _reviews(
    rng: np.random.Generator, words: np.ndarray, number: int, files: int, rows: int
) -> pa.Table:
    """Reviews of about a day: those of twenty years are spread over the files."""
    day = _BEGIN + np.int64(number * _DAYS // files) + rng.integers(0, 2, rows)
    body = [" ".join(some) for some in words[rng.integers(0, _WORDS, (rows, 40))]]
    ids = rng.permutation(rows) + number * rows

    def few(*texts: str) -> pa.Array:
        return pa.array(np.array(texts)[rng.integers(0, len(texts), rows)])

    return pa.table(
        {
            "marketplace": few("US", "UK", "DE", "FR", "JP"),
            "customer_id": rng.integers(10**4, 10**8, rows),
            "review_id": [f"R{one:010}" for one in ids],
            "product_id": [f"B{one:09x}" for one in rng.integers(0, 2**36, rows)],
            "product_parent": rng.integers(1, 10**9, rows),
            "product_title": [" ".join(some) for some in words[rng.integers(0, _WORDS, (rows, 6))]],
            "product_category": few("Books", "Music", "Toys", "Video", "Shoes", "Tools"),
            "star_rating": pa.array(rng.integers(1, 6, rows), pa.int32()),
            "helpful_votes": pa.array(rng.integers(0, 50, rows), pa.int32()),
            "total_votes": pa.array(rng.integers(0, 90, rows), pa.int32()),
            "vine": few("Y", "N"),
            "verified_purchase": few("Y", "N"),
            "review_headline": [" ".join(s) for s in words[rng.integers(0, _WORDS, (rows, 5))]],
            "review_body": body,
            "review_date": pa.array(day.astype("datetime64[D]")),
            "year": pa.array(day.astype("datetime64[Y]").astype(np.int32) + 1970),
            "commit_time": [f"2022071822{number // 60 % 60:02}{number % 60:02}000"] * rows,
            "commit_seqno": [f"{number}_{k}" for k in range(rows)],
            "record_key": [f"k{one:010}" for one in ids],
            "partition_path": [""] * rows,
            "file_name": [f"f{number:05}.parquet"] * rows,
        }
    )
