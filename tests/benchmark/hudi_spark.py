"""The peer of the merge-on-read scan: Spark 3.5 with Hudi; runs in a Python that has PySpark 3.5.

``python -m tests.benchmark.hudi_spark JAR TABLE RUNS``: reads the newest snapshot, and prints the
row of the query and the seconds of each run as JSON, on a line that begins with ``@@``.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from tests.fixtures.hudi.session import start

QUERY = "SELECT max(price), max(ts), count(*) FROM t"


def main() -> None:
    jar, table, runs = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        spark = start(jar, "UTC", Path(scratch), "-XX:+UseParallelGC", "5g")
        seconds = []
        for _ in range(runs + 1):
            spark.read.format("hudi").load(table).createOrReplaceTempView("t")
            begun = time.perf_counter()
            row = spark.sql(QUERY).collect()[0]
            seconds.append(time.perf_counter() - begun)
        print("@@" + json.dumps({"row": list(row), "seconds": seconds[1:]}), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
