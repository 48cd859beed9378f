"""``python -m tests.benchmark [NAME ...]``: prints figures; no test depends on them."""

from __future__ import annotations

import signal
from collections.abc import Callable

import click

from tests.benchmark import (
    build,
    clustered,
    clustered_queries,
    clustering,
    concurrency,
    dpp,
    external,
    formats,
    hdfs,
    hive,
    hive_catalog,
    hudi,
    hudi_changes,
    hudi_statistics,
    hudi_store,
    iceberg_million,
    iceberg_rest,
    kinds,
    metadata,
    metastore,
    packing,
    partitions,
    planning,
    reviews,
    rfc27,
    service,
    store_queries,
    store_reads,
    stores,
    stores_tpch,
    sync,
    sync_large,
    tpc,
    trino,
    uuids,
)
from tests.benchmark.figures import Figure, show
from tests.benchmark.million import run as million
from tests.benchmark.scale import run as scale

WORKS: dict[str, tuple[str, Callable[[], list[Figure]]]] = {
    "planning": ("Planner.plan in process", planning.run),
    "million": ("1,000,000 files, synthetic index", million),
    "rfc27": ("RFC-27: 1,288 files x 2,078 columns, beside SQLite, LMDB, Parquet", rfc27.run),
    "reviews": ("39,000 reviews files of 1 MB, 21 columns, cold, in process", reviews.run),
    "scale": ("1,000,000 and 10,000,000 files, simulated", scale),
    "wire": ("Splits over loopback", service.wire),
    "clients": ("Many clients at once", service.clients),
    "concurrency": ("1, 16 and 64 clients: 39,000 files, 1,824 partitions", concurrency.run),
    "memory": ("Memory", service.memory),
    "metastore": ("Partitions out of metastores", metastore.run),
    "sync": ("Sync beside MSCK REPAIR in HiveServer2 4.0.1", sync.run),
    "sync-large": ("Sync of 100,000 partitions", sync_large.run),
    "build": ("Index build with Spark", build.run),
    "stores": ("Index builds on S3 with 30 ms per request", stores.run),
    "store-reads": ("Python API: a large file on S3 with 30 ms per request", store_reads.run),
    "store-queries": ("Trino 476 on S3 with 30 ms per request", store_queries.run),
    "stores-tpch": ("Trino 476, TPC-H SF1 on S3 with 30 ms per request", stores_tpch.run),
    "hdfs": ("Trino 476 on HDFS, 39,000 small files", hdfs.run),
    "kinds": ("Index kinds: bloom, value lists, a build beside a scan", kinds.run),
    "uuids": ("UUIDs: min/max, bloom filter, value list, sorting", uuids.run),
    "trino": ("Trino 476, 39,000 small files", trino.small),
    "metadata": ("Trino 476: LIMIT, top-N, count and min/max", metadata.run),
    "lookup": ("Trino 476, one row by a random id in 5,000 files", trino.lookup),
    "large": ("Trino 476, 8 large files", trino.large),
    "tpch": ("Trino 476, TPC-H SF1, beside the better stock configuration", tpc.tpch),
    "tpcds": ("Trino 476, TPC-DS SF1, beside the better stock configuration", tpc.tpcds),
    "dpp": ("Trino 476, 1,824 partitions, many clients", dpp.run),
    "partitions": ("`explain` over 2,000 and 20,000 partitions of a file each", partitions.run),
    "hive": ("HiveServer2 4.0.1, 39,000 and 5,000 small files", hive.run),
    "hive-catalog": (
        "Trino 476: a catalog that is the hive connector too, beside that connector",
        hive_catalog.run,
    ),
    "hudi": ("Trino 476: Hudi tables beside its stock hudi connector", hudi.run),
    "hudi-store": ("Trino 476: a merge-on-read Hudi table on S3 with 30 ms", hudi_store.run),
    "iceberg-rest": ("Spark 4.1 and PyIceberg through the Iceberg REST door", iceberg_rest.run),
    "iceberg-million": ("1,000,000 files through the Iceberg REST door", iceberg_million.run),
    "hudi-statistics": (
        "The first query that skips, by Hudi's bounds and by an index of ours",
        hudi_statistics.run,
    ),
    "formats": ("Trino 476: ORC, Avro, CSV and JSON beside its stock hive connector", formats.run),
    "external": ("Tables of segments: facts beside a view, reads of a load", external.run),
    "changes": ("Trino 476: changes of the last of 1,000 Hudi commits", hudi_changes.run),
    "clustered": ("Clustered files: how fast they are made, and how large", clustered.run),
    "clustered-queries": ("A published table in Trino, beside Iceberg", clustered_queries.run),
    "clustering": (
        "Clustering beside Delta Lake and Iceberg; queries in Trino 476",
        clustering.run,
    ),
    "packing": ("`cluster run --now --by date` on 39,000 small files", packing.run),
}
# On less data, to see that it works.
QUICK: dict[str, Callable[[], list[Figure]]] = {
    "hudi-statistics": hudi_statistics.quick,
    "hive": hive.quick,
    "hive-catalog": hive_catalog.quick,
    "metastore": metastore.quick,
    "sync": sync.quick,
    "sync-large": sync_large.quick,
    "kinds": kinds.quick,
    "reviews": reviews.quick,
    "uuids": uuids.quick,
    "stores": stores.quick,
    "store-reads": store_reads.quick,
    "store-queries": store_queries.quick,
    "stores-tpch": stores_tpch.quick,
    "hdfs": hdfs.quick,
    "tpch": tpc.quick_tpch,
    "tpcds": tpc.quick_tpcds,
    "dpp": dpp.quick,
    "clustered": clustered.quick,
    "clustering": clustering.quick,
    "packing": packing.quick,
    "external": external.quick,
    "formats": formats.quick,
    "iceberg-million": iceberg_million.quick,
    "iceberg-rest": iceberg_rest.quick,
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(sorted(WORKS)))
@click.option("--quick", is_flag=True, help="On less data, where a work has it so.")
def main(names: tuple[str, ...], quick: bool) -> None:
    """Runs the named works, or all of them."""
    # Asked to end, it stops its servers like on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in names or tuple(WORKS):
        title, run = WORKS[name]
        show(title, QUICK.get(name, run)() if quick else run())


main()
