"""Clusters a directory of Parquet files by another table format; runs in a Python with PySpark 4.0.

``python tests/benchmark/clustering_peers.py delta|iceberg JARS SOURCE TARGET FILE_BYTES COLUMN...``
makes a table of the files in SOURCE, which stay where they are, and rewrites it in Z-order. TARGET
is a directory that does not exist. Prints the seconds, and writes the paths of the new files to
TARGET/files.json.

JARS are paths with commas between them. SKIPBRIDGE_BENCH_WARM names a directory of a few such files
that are clustered first, so that the time is that of a warm JVM.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import SparkSession

_EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}


def _session(peer: str, jars: str, target: Path, file_bytes: int) -> SparkSession:
    settings = {
        "spark.jars": jars,
        "spark.sql.extensions": _EXTENSIONS[peer],
        "spark.driver.memory": "5g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(target / "scratch"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "uncompressed",
        "spark.hadoop.parquet.enable.dictionary": "false",  # as the source
    }
    if peer == "delta":
        settings |= {
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.optimize.maxFileSize": str(file_bytes),
            "spark.databricks.delta.optimize.minFileSize": str(file_bytes),
        }
    else:
        settings |= {
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(target / "warehouse"),
            # Its Z-order casts dates to numbers, which ANSI forbids.
            "spark.sql.ansi.enabled": "false",
        }
    builder = SparkSession.builder.master("local[2]").appName("clustering")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _delta(
    spark: SparkSession, source: Path, target: Path, name: str, columns: list[str], _: int
) -> tuple[Callable[[], object], Callable[[], list[str]]]:
    table = target / name
    table.mkdir(parents=True)
    for file in source.glob("*.parquet"):
        os.link(file, table / file.name)
    at = f"delta.`{table}`"
    spark.sql(f"CONVERT TO DELTA parquet.`{table}`")

    def rewrite() -> object:
        return spark.sql(f"OPTIMIZE {at} ZORDER BY ({', '.join(columns)})").collect()

    return rewrite, lambda: spark.read.format("delta").load(str(table)).inputFiles()


def _iceberg(
    spark: SparkSession, source: Path, target: Path, name: str, columns: list[str], size: int
) -> tuple[Callable[[], object], Callable[[], list[str]]]:
    schema = spark.read.parquet(str(source)).schema
    fields = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
    spark.sql(
        f"CREATE TABLE ice.db.{name} ({fields}) USING iceberg TBLPROPERTIES "
        "('write.parquet.compression-codec' = 'uncompressed', "
        "'parquet.enable.dictionary' = 'false')"
    )
    spark.sql(
        f"CALL ice.system.add_files(table => 'db.{name}', source_table => 'parquet.`{source}`')"
    )
    options = {
        "rewrite-all": "true",
        "target-file-size-bytes": size,
        "max-file-group-size-bytes": 100 * 1024**3,
    }
    spelled = ", ".join(f"'{key}', '{value}'" for key, value in options.items())

    def rewrite() -> object:
        return spark.sql(
            f"CALL ice.system.rewrite_data_files(table => 'db.{name}', strategy => 'sort', "
            f"sort_order => 'zorder({', '.join(columns)})', options => map({spelled}))"
        ).collect()

    def files() -> list[str]:
        rows = spark.sql(f"SELECT file_path FROM ice.db.{name}.files").collect()
        return [row[0] for row in rows]

    return rewrite, files


def main() -> None:
    peer, jars, source, target, size, *columns = sys.argv[1:]
    directory = Path(target)
    directory.mkdir(parents=True)
    spark = _session(peer, jars, directory, int(size))
    make = {"delta": _delta, "iceberg": _iceberg}[peer]
    if warm := os.environ.get("SKIPBRIDGE_BENCH_WARM"):
        make(spark, Path(warm), directory, "warm", columns, int(size))[0]()
    rewrite, files = make(spark, Path(source), directory, "made", columns, int(size))
    started = time.perf_counter()
    said = rewrite()
    seconds = time.perf_counter() - started
    print(said, file=sys.stderr)
    paths = [unquote(urlparse(path).path) for path in files()]
    (directory / "files.json").write_text(json.dumps(paths))
    print(json.dumps({"seconds": seconds, "files": len(paths)}))
    spark.stop()


main()
