"""Clustering: bytes that predicates keep, rows a second and query times, beside Delta and Iceberg.

All cluster the same files to files of the same size, each in a warm Spark with two threads. The
bytes kept are computed by one function from the footers of the files that each has made.
``SKIPBRIDGE_BENCH_FILES`` takes only so many of the 128 files.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from bridge.runtime.spark_session import open_session
from tests.benchmark import clustering_data as data
from tests.benchmark.figures import Figure, median
from tests.benchmark.trino import cluster

_TWO = ("l_shipdate", "l_partkey")
_FOUR = ("l_shipdate", "l_partkey", "l_suppkey", "l_shipmode")
_OURS = (
    ("linear", _FOUR),
    ("zorder", _TWO),
    ("hilbert", _TWO),
    ("kdtree", _TWO),
    ("zorder", _FOUR),
    ("hilbert", _FOUR),
    ("kdtree", _FOUR),
)
_SETTINGS = {"clustering.memory": "4GiB"}
_BY_YEAR = (
    "SELECT product_category, sum(total_votes) FROM bench.TABLE "
    "WHERE review_date > DATE '2007-01-01' AND review_date < DATE '2009-01-01' "
    "GROUP BY product_category ORDER BY 1"
)


def run() -> list[Figure]:
    source = data.lineitem_files()
    if count := os.environ.get("SKIPBRIDGE_BENCH_FILES"):
        source = data.linked(source, data.directory() / "some", int(count))
    return _measured(source, data.reviews(1_000, 4_000_000), 5)


def quick() -> list[Figure]:
    small = data.linked(data.lineitem_files(), data.directory() / "quick", 12)
    return _measured(small, data.reviews(100, 200_000), 1)


def _measured(source: Path, reviews: Path, runs: int) -> list[Figure]:
    work = data.directory() / "run"
    shutil.rmtree(work, ignore_errors=True)
    warm = data.linked(source, work / "warm", 3)
    rows = sum(pq.read_metadata(file).num_rows for file in source.glob("*.parquet"))
    made: dict[tuple[str, int], data.Rewritten] = {}
    spark = open_session("local[2]", settings={"spark.driver.memory": "2g"})
    try:
        data.ours(spark, data.linked(warm, work / "first"), "kdtree", _TWO, _SETTINGS)
        for layout, columns in _OURS:
            target = data.linked(source, work / f"{layout}-{len(columns)}")
            made[layout, len(columns)] = data.ours(spark, target, layout, columns, _SETTINGS)
        target = data.linked(source, work / "unverified")
        fast = data.ours(spark, target, "kdtree", _TWO, {**_SETTINGS, "clustering.verify": "false"})
        shutil.rmtree(target)
        spilled = data.ours(
            spark, data.linked(source, target), "kdtree", _TWO, {"clustering.memory": "256MiB"}
        )
        shutil.rmtree(target)
        by_year = data.linked(reviews, work / "reviews")
        after = data.ours(
            spark, by_year, "kdtree", ("product_category", "review_date"), {}, 8 * 1024**2
        )
    finally:
        spark.stop()
    for name in data.PEERS:
        for columns in (_TWO, _FOUR):
            made[name, len(columns)] = data.peer(name, source, columns, warm)
    figures = _rates(made, rows, fast, spilled)
    plain = sorted(source.glob("*.parquet"))
    for columns in (_TWO, _FOUR):
        figures += _kept(source, plain, columns, made)
    directories = {
        "plain": data.linked(source, work / "plain"),
        "clustered": made["kdtree", 2].directory,
        "reviews": data.linked(reviews, work / "reviews-before"),
        "reviews_clustered": by_year,
    }
    figures += _queries(directories, source, runs)
    before = len(list(reviews.glob("*.parquet")))
    fewer = 100 * (1 - len(after.files) / before)
    figures.append(
        Figure("reviews: fewer files", fewer, "%", "≥ 30", f"{before} -> {len(after.files)}")
    )
    shutil.rmtree(work)
    return figures


def _rates(
    made: dict[tuple[str, int], data.Rewritten],
    rows: int,
    fast: data.Rewritten,
    spilled: data.Rewritten,
) -> list[Figure]:
    figures = [
        Figure(
            f"rewrite, {name}, {count} columns", rows / each.seconds, "rows/s", note=f"{n} files"
        )
        for (name, count), each in made.items()
        for n in [len(each.files)]
    ]
    best = max(rows / made[name, 2].seconds for name in data.PEERS)
    ours = made["kdtree", 2].seconds
    return [
        *figures,
        Figure("times as fast as the better peer, 2 columns", rows / ours / best, "x", "≥ 1.5"),
        Figure("rewrite, kdtree, 2 columns, not verified", rows / fast.seconds, "rows/s"),
        Figure("verification's part of the time", 100 * (1 - fast.seconds / ours), "%"),
        Figure("rewrite, 256 MiB of rows in memory", rows / spilled.seconds, "rows/s"),
    ]


def _kept(
    source: Path,
    plain: list[Path],
    columns: tuple[str, ...],
    made: dict[tuple[str, int], data.Rewritten],
) -> list[Figure]:
    asked = data.predicates(source, columns, 500)
    count = len(columns)
    files = {
        "unclustered": plain,
        "linear": made["linear", 4].files,
        **{name: made[name, count].files for name in ("zorder", "hilbert", "kdtree", *data.PEERS)},
    }
    shares = {name: 100 * data.kept(held, columns, asked) for name, held in files.items()}
    peers = min(shares[name] for name in data.PEERS)
    return [
        *(
            Figure(
                f"bytes kept, {count} columns, {name}", share, "%", note=f"{len(files[name])} files"
            )
            for name, share in shares.items()
        ),
        Figure("kdtree over the better peer", shares["kdtree"] / peers, "", "≤ 1, aim 0.8"),
        Figure("unclustered over kdtree", shares["unclustered"] / shares["kdtree"], "x", "≥ 10"),
    ]


def _queries(directories: dict[str, Path], source: Path, runs: int) -> list[Figure]:
    asked = data.predicates(source, _TWO, 5)
    with cluster(directories) as query:

        def ask(table: str) -> list[object]:
            return [
                query(
                    "bridge",
                    "SELECT count(*), sum(l_extendedprice), max(l_comment) "
                    f"FROM bench.{table} WHERE {data.spelled(spans, _TWO)}",
                )
                for spans in asked
            ]

        assert ask("plain") == ask("clustered")
        before = median(lambda: ask("plain"), runs, 1) / len(asked)
        after = median(lambda: ask("clustered"), runs, 3) / len(asked)

        def years(table: str) -> list[object]:
            return query("bridge", _BY_YEAR.replace("TABLE", table))

        assert years("reviews") == years("reviews_clustered")
        first = median(lambda: years("reviews"), runs, 3)
        second = median(lambda: years("reviews_clustered"), runs, 3)
    return [
        Figure("query, 2 columns, unclustered", before),
        Figure("query, 2 columns, kdtree", after),
        Figure("times faster", before / after, "x", "≥ 10"),
        Figure("reviews by category and date: before", first),
        Figure("reviews by category and date: after", second),
        Figure("reviews: times faster", first / second, "x", "≥ 2.4"),
    ]
