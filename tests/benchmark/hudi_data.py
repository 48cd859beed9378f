"""Writes the benchmark's Hudi tables with real Spark; runs in a Python that has PySpark 3.5.

``python tests/benchmark/hudi_data.py JAR DIRECTORY [cow] [mor]``: JAR is a bundle of Hudi for
Spark 3.5.
Tables: ``cow``, copy-on-write with 8,000 base files of 16 columns in four commits; ``mor``,
merge-on-read with 500 slices, each with three logs of 2,000 records.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.fixtures.hudi.session import start

FILES, COMMITS, ROWS = 8_000, 4, 500
SLICES, LOGS, RECORDS = 500, 3, 2_000
_QUIET = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.write.markers.type": "DIRECT",
}


def _rows(spark: SparkSession, begin: int, end: int, files: int, ts: int) -> DataFrame:
    wide = [f.rand(i).alias(f"d{i}") for i in range(6)]
    wide += [(f.rand(9 + i) * 1000).cast("int").alias(f"n{i}") for i in range(5)]
    day = f.expr("date_add(date'2020-01-01', cast(id % 900 as int))").alias("d")
    text = (f.col("id") % 97).cast("string").alias("s")
    price = (f.col("id") / 100).alias("price")
    stamp = f.lit(ts).cast("long").alias("ts")
    return spark.range(begin, end, 1, files).select("id", stamp, text, price, day, *wide)


def cow(spark: SparkSession, directory: Path) -> None:
    """Files hold consecutive ids, so that a range of ids is a few files."""
    each = FILES // COMMITS
    for commit in range(COMMITS):
        begin = commit * each * ROWS
        _rows(spark, begin, begin + each * ROWS, each, commit).write.format("hudi").options(
            **_QUIET,
            **{
                "hoodie.table.name": "cow",
                "hoodie.datasource.write.operation": "bulk_insert",
                "hoodie.bulkinsert.sort.mode": "NONE",
                "hoodie.bulkinsert.shuffle.parallelism": str(each),
                "hoodie.datasource.write.keygenerator.class": (
                    "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
                ),
            },
        ).mode("append").save(str(directory / "cow"))


def mor(spark: SparkSession, directory: Path) -> None:
    """Buckets by the hash of a key: every upsert of all rows writes a log to every slice.

    Keys are distinct, so that rows need not be combined before they are written.
    """
    options = {
        **_QUIET,
        "hoodie.table.name": "mor",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.combine.before.upsert": "false",
        "hoodie.upsert.shuffle.parallelism": "8",
        "hoodie.bulkinsert.shuffle.parallelism": "8",
        "hoodie.write.status.storage.level": "MEMORY_ONLY",
    }
    total = SLICES * RECORDS
    for ts in range(LOGS + 1):
        begun = time.perf_counter()
        rows = _rows(spark, 0, total, 8, ts)
        part = f.format_string("%03d", (f.col("id") / RECORDS).cast("int")).alias("part")
        rows = rows.select("*", part)
        operation = "bulk_insert" if ts == 0 else "upsert"
        options["hoodie.datasource.write.operation"] = operation
        rows.write.format("hudi").options(**options).mode("append").save(str(directory / "mor"))
        print(f"mor: {operation} {ts} in {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    jar, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    session = start(jar, "UTC", target / ".scratch", "-XX:+UseParallelGC", "5g")
    chosen = sys.argv[3:] or ["cow", "mor"]
    for make in (each for each in (cow, mor) if each.__name__ in chosen):
        if not (target / make.__name__ / ".complete").exists():
            make(session, target)
            (target / make.__name__ / ".complete").touch()
    session.stop()
