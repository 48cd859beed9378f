"""A Spark that reads through the HTTP door; runs with the Python of `tests.support.iceberg_spark`.

Its argument has the session's settings as JSON. It reads a line of JSON for each statement, and
answers with a line that begins with ``@@``.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}


def main() -> None:
    builder = SparkSession.builder
    given = json.loads(sys.argv[1])
    if "spark.remote" not in given:  # a client of Spark Connect takes none of the server's
        given = {"spark.master": "local[2]", **_SETTINGS, **given}
    for key, value in given.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
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
