"""Tables over files where they lie: a dashboard query over facts and over a view; reads of a load.

A small lake in one process, so that it tells what is read rather than how fast a cluster is. The
first figure runs one Python scan over Parquet facts of 40 columns, and over a view of 4 of them.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import bridge
from bridge.config import Config
from bridge.jobs.segments import add, indexes, opened, tables, views
from bridge.storage.local import LocalStorage
from tests.benchmark.figures import Figure, interleaved

_COLD = 36
_WHERE = "day = DATE '2024-03-05' AND shop < 20"
_COLUMNS = ["day", "shop", "price"]


def run() -> list[Figure]:
    return _figures(files=100, rows=20_000, runs=5)


def quick() -> list[Figure]:
    return _figures(files=10, rows=500, runs=1)


class _Counting(LocalStorage):
    """Counts the reads of each file."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()

    def read(self, uri: str) -> bytes:
        self.reads[uri] += 1
        return super().read(uri)

    def read_ranges(self, uri: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.reads[uri] += 1
        return super().read_ranges(uri, ranges)


def _figures(files: int, rows: int, runs: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="skipbridge-external-") as directory:
        root = Path(directory)
        _write(root / "facts", files, rows)
        config, table = Config(), str(root / "t")
        columns = [("day", "date"), ("shop", "int"), ("price", "double"), ("item", "bigint")]
        columns += [(f"c{i}", "string") for i in range(_COLD)]
        tables.create_table(config, table, format="parquet", columns=columns)
        given = {"name": "b", "kind": "bloomfilter", "columns": ["item"]}
        indexes.create_index(config, table, name="m", kind="minmax", local=True)
        indexes.create_index(config, table, **given, local=True)  # type: ignore[arg-type]
        hot = [name for name, _ in columns[:4]]
        views.create_view(config, table, name="hot", columns=hot, sort_by=["day", "shop"])
        storage = _Counting()
        before, opened.storage_of = opened.storage_of, lambda _: storage
        try:
            add.add_segment(config, table, paths=[str(root / "facts")], local=True)
        finally:
            opened.storage_of = before
        facts = {uri: n for uri, n in storage.reads.items() if "/facts/" in uri}
        return [
            Figure(
                f"ADD SEGMENT of {files} files, 2 indexes, a view: most reads of one file",
                max(facts.values()),
                "reads",
                "1",
                f"{len(facts)} files read",
            ),
            *_dashboard(table, files, runs),
        ]


def _dashboard(table: str, files: int, runs: int) -> list[Figure]:
    scanned = bridge.connect().table(table)

    def ask(pruning: bool) -> Any:
        return scanned.scan(_WHERE, _COLUMNS, pruning=pruning).to_arrow()

    assert sorted(map(repr, ask(True).to_pylist())) == sorted(map(repr, ask(False).to_pylist()))
    kept = scanned.scan(_WHERE, _COLUMNS).explain().files_kept
    facts, view, ratio = interleaved(lambda: ask(False), lambda: ask(True), runs)
    note = f"{kept} files of the view in place of {files}"
    return [
        Figure("dashboard query, facts", facts, note=f"{files} Parquet files"),
        Figure("dashboard query, view", view, note=note),
        Figure("facts / view", ratio, "x", "", "Parquet facts; more for text"),
    ]


def _write(where: Path, files: int, rows: int) -> None:
    where.mkdir()
    rng = np.random.default_rng(7)
    for number in range(files):
        days = rng.integers(19_700, 19_900, rows).astype(np.int32)
        columns: dict[str, Any] = {
            "day": pa.array(days).cast(pa.date32()),
            "shop": pa.array(rng.integers(0, 400, rows).astype(np.int32)),
            "price": rng.random(rows),
            "item": rng.integers(0, 10**9, rows),
        }
        for i in range(_COLD):
            columns[f"c{i}"] = pa.array(rng.integers(0, 10**6, rows)).cast(pa.string())
        path = where / f"{number:04}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1.7e9, 1.7e9))
