"""Run as a program: Spark over a 4.0.1 metastore answers queries as JSON, one line each.

A process of its own, since a JVM has one Spark context, and that of other tests has no metastore.
Arguments: the metastore's URI, its jars (parted by commas), a scratch directory, then queries.
"""

from __future__ import annotations

import json
import sys


def main(uri: str, jars: str, scratch: str, *queries: str) -> None:
    from bridge.spark.session import open_session

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
    for query in queries:
        rows = [list(row) for row in session.sql(query).collect()]
        print("answer", json.dumps(rows), flush=True)
    session.stop()


main(*sys.argv[1:])
