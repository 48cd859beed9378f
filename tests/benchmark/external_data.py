"""Wide CSV files of call records, made once and kept in the user's cache directory."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from tests.benchmark.data import root

HOT = [("day", "date"), ("shop", "int"), ("price", "double"), ("item", "bigint")]
COLD = 56
COLUMNS = [*HOT, *((f"c{i}", "string") for i in range(COLD))]
LINEITEM = [
    ("l_orderkey", "bigint"), ("l_partkey", "bigint"), ("l_suppkey", "bigint"),
    ("l_linenumber", "int"), ("l_quantity", "double"), ("l_extendedprice", "double"),
    ("l_discount", "double"), ("l_tax", "double"), ("l_returnflag", "string"),
    ("l_linestatus", "string"), ("l_shipdate", "date"), ("l_commitdate", "date"),
    ("l_receiptdate", "date"), ("l_shipinstruct", "string"), ("l_shipmode", "string"),
    ("l_comment", "string"),
]  # fmt: skip
"""Columns of the files of `tests.benchmark.formats_data`, which reads all rows to tell them."""
_DAYS = 180


def facts(files: int, rows: int) -> Path:
    """Files with a header and 60 columns of about 330 bytes a row; days are spread over all."""
    directory = root() / f"external-csv-{files}x{rows}"
    if (directory / "_DONE").exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    rng = np.random.default_rng(7)
    cold = {f"c{i}": pa.array(rng.integers(0, 10**5, rows)) for i in range(COLD)}
    past = time.time() - 3600
    for number in range(files):
        days = rng.integers(19_700, 19_700 + _DAYS, rows).astype(np.int32)
        hot = {
            "day": pa.array(days).cast(pa.date32()),
            "shop": pa.array(rng.integers(0, 400, rows).astype(np.int32)),
            "price": pa.array(rng.integers(0, 10**6, rows) / 100),
            "item": pa.array(rng.integers(0, 10**9, rows)),
        }
        path = directory / f"{number:04}.csv"
        pacsv.write_csv(pa.table({**hot, **cold}), path, pacsv.WriteOptions(quoting_header="none"))
        os.utime(path, (past, past))
    (directory / "_DONE").touch()
    return directory


def size(directory: Path) -> int:
    """Bytes of the files."""
    return sum(file.stat().st_size for file in directory.glob("*.csv"))
