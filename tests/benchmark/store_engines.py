"""Planner and Trino 476 over a store, with its stock hive connector beside ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trino

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.servers.embedded_metastore import start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import TableName
from bridge.trino.plugin import build_plugin
from bridge.trino.server import TrinoSpec, start_trino
from tests.support.s3_metastore import s3_metastore
from tests.support.servers.stock_trino import stock_plugins
from tests.support.slow_store import SlowStore
from tests.support.versitygw import BUCKET, Versitygw

SCHEMA = "bench"
FRESHNESS = {"live": "live", "cached": "cached(600s)", "snapshot": "snapshot"}
"""Of the tables with these names."""


def latency() -> float:
    """Seconds by which the proxy delays each answer."""
    return float(os.environ.get("SKIPBRIDGE_BENCH_LATENCY", "30")) / 1e3


@contextmanager
def s3_engines(
    scratch: Path,
    gateway: Versitygw,
    proxy: SlowStore,
    places: Sequence[str],
    register: Callable[[str], None],
) -> Iterator[int]:
    """Planner and Trino over a bucket behind a proxy; Trino's port.

    Args:
        places: the directories of the bucket that are tables.
        register: makes the tables and their indexes, given the metastore's URI.
    """
    endpoint = gateway.through(proxy.port)["endpoint"]
    for name, value in gateway.environment.items():
        os.environ[name] = value
    with start_embedded_metastore(s3_metastore(scratch / "ms", BUCKET, places)) as metastore:
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        register(uri)
        environment = {
            "SKIPBRIDGE_STORAGE_ENDPOINT": endpoint,
            "SKIPBRIDGE_STORAGE_REGION": "us-east-1",
            "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
            **gateway.environment,
        }
        s3 = {
            "fs.native-s3.enabled": "true",
            "s3.endpoint": endpoint,
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
            "s3.aws-access-key": gateway.options["access_key_id"],
            "s3.aws-secret-key": gateway.options["secret_access_key"],
        }
        with engines(scratch, uri, environment, s3) as port:
            yield port


@contextmanager
def engines(
    scratch: Path,
    uri: str,
    environment: Mapping[str, str],
    files: Mapping[str, str],
    clients: tuple[str, ...] = (),
) -> Iterator[int]:
    """A planner, and Trino with the catalogs ``bridge`` and ``hive``; Trino's port.

    Args:
        environment: of the planner.
        files: properties of both catalogs that say how files are read.
        clients: what the connector is built with besides S3.
    """
    hive = stock_plugins("hive")
    server = hive["hive"].parent.parent if clients else None
    plugin = build_plugin("476", scratch / "plugin", server, "skipbridge", print, clients)
    cache = {"SKIPBRIDGE_CACHE": str(scratch / "cache")}
    with start_planner(scratch / "planner", uri, environment={**cache, **environment}) as planner:
        ours = {
            "connector.name": "skipbridge",
            "skipbridge.planner": f"{LOOPBACK}:{planner.port}",
        }
        stock = {"connector.name": "hive", "hive.metastore.uri": uri}
        spec = TrinoSpec(
            scratch / "trino",
            catalogs={"bridge": {**ours, **files}, "hive": {**stock, **files}},
            plugins={"skipbridge": plugin, **hive},
            port=0,
            heap="6G",
        )
        with start_trino(spec) as trino_server:
            yield trino_server.port


def asked_for(port: int, catalog: str, sql: str, table: str) -> list[Any]:
    """The rows of a query on one of the tables."""
    connection = trino.dbapi.connect(host=LOOPBACK, port=port, user="bench")
    cursor = connection.cursor()
    cursor.execute(sql.replace("TABLE", f"{catalog}.{SCHEMA}.{table}"))
    return list(cursor.fetchall())


def register_tables(
    uri: str, options: Mapping[str, str], base: str, places: Mapping[str, str]
) -> None:
    """Tables by name over directories below ``base``; one index for each directory.

    Args:
        options: of the storage; none for HDFS.
    """
    settings = {"metastore.uri": uri}
    for key in ("endpoint", "region", "allow_http"):
        if key in options:
            settings[f"storage.{key}"] = options[key]
    config = Config({key: Setting(text, "benchmark") for key, text in settings.items()})
    indexed = set()
    with MetastoreClient(uri) as client:
        client.create_database(SCHEMA)
        for name, place in places.items():
            catalog = DirectoryCatalog(open_storage(options=options), f"{base}/{place}")
            register_table(client, TableName(SCHEMA, name), catalog.table(catalog.name), [])
            if name in FRESHNESS:
                table = client.get_table(SCHEMA, name)
                table.parameters["skipbridge.freshness"] = FRESHNESS[name]
                client.alter_table(SCHEMA, name, table)
            if place not in indexed:
                indexed.add(place)
                index_table(
                    config,
                    f"{SCHEMA}.{name}",
                    local=True,
                    progress=lambda done, total: None,
                    say=print,
                )
