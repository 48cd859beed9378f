"""Tables for the benchmarks, made once and kept in the user's cache directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.index.generations.store import IndexStore
from bridge.kernel.config import cache_dir

SMALL_FILES = 39_000
EVENTS = 77


def root() -> Path:
    path = cache_dir() / "benchmark"
    path.mkdir(parents=True, exist_ok=True)
    return path


def is_kept(store: IndexStore) -> bool:
    """Whether there is an index of an earlier run that this version reads."""
    held, broken = store.readable()
    return held is not None and broken is None


def lineitem(scale: float) -> pa.Table:
    """TPC-H lineitem, sorted by ship date."""
    directory = root() / f"tpch-{scale}"
    file = directory / "lineitem.parquet"
    if not file.exists():
        generator = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run(
            [
                generator,
                "parquet",
                "-s",
                str(scale),
                "--tables=lineitem",
                f"--output-dir={directory}",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    table = pq.read_table(file)
    # The generator marks text as string_view, which Arrow cannot sort by row yet.
    plain = [
        field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(plain)).sort_by("l_shipdate")


def small_files(count: int = SMALL_FILES, *, floats: bool = False) -> Path:
    """lineitem at SF 0.5 (3 M rows x 16 columns) as ``count`` zstd files in one directory.

    Args:
        floats: prices, discounts and taxes as doubles, in which a NaN may hide.
    """

    def rows() -> pa.Table:
        table = lineitem(0.5).combine_chunks()
        for name in ("l_extendedprice", "l_discount", "l_tax") if floats else ():
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table.column(name).cast(pa.float64()))
        return table

    return _in_parts(f"lineitem-{count}{'-floats' if floats else ''}", count, rows)


def events(count: int) -> Path:
    """A year of events in the order of time, `EVENTS` in each of ``count`` zstd files."""

    def rows() -> pa.Table:
        rng = np.random.default_rng(5)
        number = count * EVENTS
        hours = np.arange(number) * (365 * 24) // number
        return pa.table(
            {
                "date": pa.array((hours // 24 + 20_000).astype(np.int32), pa.date32()),
                "hour": pa.array((hours % 24).astype(np.int32)),
                "id": pa.array(rng.integers(0, 2**40, number)),
                "delay": pa.array(rng.integers(-30, 300, number).astype(np.int32)),
            }
        )

    return _in_parts(f"events-{count}", count, rows)


def random_ids(count: int = 5_000) -> tuple[Path, list[int]]:
    """lineitem at SF 0.5 in ``count`` files, each row with an id that no order knows; some ids."""

    def rows() -> pa.Table:
        table = lineitem(0.5).combine_chunks()
        ids = np.random.default_rng(11).integers(0, 2**62, table.num_rows)
        return table.append_column("id", pa.array(ids))

    directory = _in_parts(f"ids-{count}", count, rows)
    some = sorted(directory.glob("*.parquet"))[:: max(1, count // 20)]
    return directory, [pq.read_table(f, columns=["id"]).column(0)[0].as_py() for f in some]


def _in_parts(name: str, count: int, rows: Callable[[], pa.Table]) -> Path:
    directory = root() / name
    if (directory / "_DONE").exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    table = rows()
    edges = np.linspace(0, table.num_rows, count + 1).astype(int).tolist()
    for i in range(count):
        part = table.slice(edges[i], edges[i + 1] - edges[i])
        pq.write_table(part, directory / f"part-{i:06d}.parquet", compression="zstd")
    _age(directory)
    (directory / "_DONE").touch()
    return directory


def large_files() -> Path:
    """Eight files of at least 128 MB: lineitem at SF 4, all in one directory."""
    directory = root() / "lineitem-large"
    if (directory / "_DONE").exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    table = lineitem(0.5)
    columns = [*table.column_names]
    big = pa.concat_tables([table] * 12)
    # Shuffled and uncorrelated: these files must be read, whatever an index says.
    order = np.random.default_rng(7).permutation(big.num_rows)
    step = big.num_rows // 8
    for i in range(8):
        part = big.take(pa.array(order[i * step : (i + 1) * step])).select(columns)
        pq.write_table(
            part, directory / f"part-{i}.parquet", compression="zstd", row_group_size=500_000
        )
    _age(directory)
    (directory / "_DONE").touch()
    return directory


def _age(directory: Path) -> None:
    """Files written just now are not trusted by an index (correctness 19); these are old."""
    past = time.time() - 3600
    for file in directory.glob("*.parquet"):
        os.utime(file, (past, past))
