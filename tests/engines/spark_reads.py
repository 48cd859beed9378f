"""Run as a program: Spark over a 4.0.1 metastore answers queries as JSON, one line each.

A process of its own, since a JVM has one Spark context, and that of other tests has no metastore.
Arguments: the metastore's URI, its jars (parted by commas), a scratch directory, then queries; if
there are none, each line of the standard input is one. In a query, ``pause(x, 'DIRECTORY')`` is x,
makes ``DIRECTORY/begun``, and goes on as soon as there is ``DIRECTORY/go``. A line
``insertInto MODE TABLE QUERY`` writes the rows of a query as a DataFrame, mode append or overwrite.
A query after ``try`` is answered by its error if it fails; any other ends the process.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def pause(x: int, directory: str) -> int:
    (Path(directory) / "begun").touch()
    while not (Path(directory) / "go").exists():
        time.sleep(0.05)
    return x


def main(uri: str, jars: str, scratch: str, *queries: str) -> None:
    from bridge.runtime.spark_session import open_session

    session = open_session(
        "local[2]",
        settings={
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.hive.metastore.version": "4.0.1",
            "spark.sql.hive.metastore.jars": "path",
            "spark.sql.hive.metastore.jars.path": jars,
            "spark.hadoop.hive.metastore.uris": uri,
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
            "spark.driver.memory": "1500m",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    session.udf.register("pause", pause, "bigint")
    rows: list[list[object]]
    for query in queries or sys.stdin:
        tried, query = query.startswith("try "), query.removeprefix("try ")
        word, *rest = query.split(maxsplit=3)
        try:
            if word == "insertInto":
                mode, table, source = rest
                session.sql(source).write.mode(mode).insertInto(table)
                rows = []
            else:
                rows = [list(row) for row in session.sql(query).collect()]
        except Exception as error:
            if not tried:
                raise
            print("error", json.dumps(str(error)), flush=True)
            continue
        print("answer", json.dumps(rows), flush=True)
    session.stop()


main(*sys.argv[1:])
