"""The demo's table behind the HTTP door, and the lines that read it from Spark and PyIceberg."""

from __future__ import annotations

import shutil
import threading
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from bridge.app.demo.data import write_flights
from bridge.app.demo.run import TABLE, Progress, Say
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting, variable_of
from bridge.kernel.errors import EnvironmentMissing
from bridge.runtime.create_table import create_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.java import find_jdk
from bridge.servers.planner import start_planner
from bridge.servers.process import choose_port

LINES = """\
# PySpark 4.1
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder
    .config("spark.jars.packages", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0")
    .config("spark.sql.catalog.sb", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.sb.type", "rest")
    .config("spark.sql.catalog.sb.uri", "$URL")
    .getOrCreate()
)
spark.sql(
    "SELECT carrier, flight, dest, dep_delay FROM sb.$TABLE"
    " WHERE month = 3 AND day = 8 AND sched_dep_time BETWEEN 1700 AND 1759 AND dep_delay > 60"
    " ORDER BY flight, carrier"
).show()

# PyIceberg 0.12
from pyiceberg.catalog import load_catalog

flights = load_catalog("sb", type="rest", uri="$URL").load_table("$TABLE")
print(
    flights.scan(
        row_filter="month = 3 and day = 8 and sched_dep_time >= 1700 and sched_dep_time < 1760",
        selected_fields=("month", "day", "carrier", "flight", "dest", "dep_delay"),
    ).to_arrow()
)
"""


def require_parts() -> None:
    """Errors: EnvironmentMissing: this machine lacks what the demo needs."""
    find_jdk(17)
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise EnvironmentMissing(
                f"the package {name} is missing", "pip install 'skipbridge[rest]'"
            )


def serve_demo(out: Path, *, port: int, say: Say, progress: Progress) -> None:
    """Serves the demo's table until it is interrupted. Stops everything it started.

    Args:
        port: of the door; 0 for any free one.
    """
    with ExitStack() as stack:
        if out.exists():
            shutil.rmtree(out)
        out.mkdir(parents=True, mode=0o700)
        root = out / "warehouse" / "flights"
        chosen = choose_port(port, "door")
        spec = MetastoreSpec(out / "metastore", out / "warehouse", port=0, in_memory=True)
        metastore = stack.enter_context(start_embedded_metastore(spec))
        uri = f"thrift://127.0.0.1:{metastore.port}"
        settings = {"metastore.uri": uri, "index.root": str(out / "index")}
        config = Config({key: Setting(text, "demo") for key, text in settings.items()})
        say("1/3  writing 336,776 flights as about 5,000 Parquet files by month")
        with progress("files") as tick:
            write_flights(root, tick)
        say(f"2/3  registering {TABLE} and building its index")
        with progress("partitions") as tick:
            create_table(config, TABLE, str(root), dry_run=False, progress=tick)
        with progress("files indexed") as tick:
            index_table(config, TABLE, local=True, progress=tick, say=say)
        say("3/3  starting a planner with its Iceberg REST catalog")
        environment = {variable_of("index.root"): settings["index.root"]}
        stack.enter_context(
            start_planner(out / "planner", uri, http_port=chosen, environment=environment)
        )
        url = f"http://127.0.0.1:{chosen}"
        say("\npaste into Python, here or on this machine elsewhere:\n")
        say(LINES.replace("$URL", url).replace("$TABLE", TABLE))
        say(f"serving on {url}; Ctrl-C stops it")
        threading.Event().wait()
