"""What needs no data: LIMIT, top-N, count and min/max over 39,000 files, beside stock hive."""

from __future__ import annotations

import os

from tests.benchmark.data import SMALL_FILES, small_files
from tests.benchmark.figures import Figure, median
from tests.benchmark.trino import cluster

QUERIES: tuple[tuple[str, str, bool], ...] = (
    ("LIMIT 10", "SELECT * FROM bench.lineitem LIMIT 10", False),
    (
        "ORDER BY l_shipdate DESC LIMIT 10",
        "SELECT l_shipdate, l_orderkey FROM bench.lineitem "
        "ORDER BY l_shipdate DESC, l_orderkey LIMIT 10",
        True,
    ),
    ("count(*)", "SELECT count(*) FROM bench.lineitem", True),
    (
        "min, max of two columns",
        "SELECT min(l_shipdate), max(l_shipdate), max(l_orderkey) FROM bench.lineitem",
        True,
    ),
)


def run(pairs: int = 3) -> list[Figure]:
    """SKIPBRIDGE_BENCH_FILES makes a smaller table, to try the command out."""
    count = int(os.environ.get("SKIPBRIDGE_BENCH_FILES", SMALL_FILES))
    figures: list[Figure] = []
    with cluster({"lineitem": small_files(count)}) as query:
        for title, sql, same in QUERIES:
            ours_rows, stock_rows = query("bridge", sql), query("hive", sql)
            assert len(ours_rows) == len(stock_rows)
            assert not same or ours_rows == stock_rows, title
            ours = median(lambda sql=sql: query("bridge", sql), 15, 30)  # type: ignore[misc]
            stock = median(lambda sql=sql: query("hive", sql), pairs, 0)  # type: ignore[misc]
            print(f"{title}: skipbridge {ours:.3f} s, stock hive {stock:.2f} s", flush=True)
            figures.append(Figure(f"{title}: skipbridge", ours, "s", "≤ 0.25 s", f"{count} files"))
            figures.append(Figure(f"{title}: stock hive", stock, "s"))
    return figures
