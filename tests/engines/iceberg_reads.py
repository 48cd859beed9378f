"""A Spark that reads through the HTTP door; runs with the Python of `tests.support.iceberg_spark`.

Reads a line of JSON for each statement, and answers with a line that begins with ``@@``.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    jar, zone = sys.argv[1:3]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jar)
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", zone)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "ERROR")
        .config(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .getOrCreate()
    )
    print("@@" + json.dumps({"is": spark.version}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            for key, value in asked.get("set", {}).items():
                spark.conf.set(key, value)
            rows = [list(row) for row in spark.sql(asked["sql"]).collect()]
            answer = {"is": rows}
        except Exception as error:
            answer = {"error": str(error)[:3000]}
        print("@@" + json.dumps(answer, default=str), flush=True)


if __name__ == "__main__":
    main()
