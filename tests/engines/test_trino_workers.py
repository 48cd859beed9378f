"""Two Trino nodes with caches: splits go where their files are kept. Nightly."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.runtime.create_table import create_table
from bridge.servers.embedded_metastore import start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK
from bridge.storage.routed import open_storage
from bridge.trino.server import TrinoSpec, start_trino
from tests.engines.stack import ask
from tests.support.built import built_plugin
from tests.support.s3_metastore import s3_metastore
from tests.support.servers.stock_trino import stock_plugins
from tests.support.slow_store import SlowStore
from tests.support.versitygw import BUCKET, versitygw_or_skip

pytestmark = pytest.mark.nightly
FILES, ROWS = 12, 150_000
SQL = "SELECT count(*), sum(noise % 1000) FROM lake.t"
PATIENCE = 120


@dataclass(frozen=True, slots=True)
class Nodes:
    """A coordinator that works too, and a worker; each keeps pages in a directory of its own.

    Attributes:
        size: bytes of the table's files, which are read nearly whole.
    """

    port: int
    size: int
    proxy: SlowStore
    caches: tuple[Path, Path]

    def scan(self, catalog: str = "cached") -> tuple[list[list[object]], int]:
        """The rows, and the number of requests for data."""
        self.proxy.take()
        rows = ask(self.port, SQL, catalog, {"metadata_answers_enabled": "false"})
        return rows, self.proxy.take().count("GET", "HEAD", part=".parquet")

    def kept(self) -> list[int]:
        """Bytes in each node's cache."""
        return [
            sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())
            for cache in self.caches
        ]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    directory = tmp_path_factory.mktemp("workers")
    with ExitStack() as stack:
        gateway = versitygw_or_skip(directory / "s3")
        stack.enter_context(gateway.server)
        proxy = stack.enter_context(SlowStore(gateway.server.port))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in gateway.environment.items():
            patch.setenv(name, value)
        storage = open_storage(options=gateway.options)
        noise = np.random.default_rng(5)
        for number in range(FILES):
            sink = io.BytesIO()
            rows = pa.table({"id": np.arange(ROWS), "noise": noise.integers(0, 2**62, ROWS)})
            pq.write_table(rows, sink, use_dictionary=False, compression="none")
            storage.put(f"s3://{BUCKET}/t/{number:02d}.parquet", sink.getvalue())
        old = time.time() - 3600  # the cache keeps no file that was written moments ago
        files = list((directory / "s3" / "objects" / BUCKET / "t").glob("*.parquet"))
        for file in files:
            os.utime(file, (old, old))
        spec = s3_metastore(directory / "metastore", BUCKET, ("t",))
        metastore = stack.enter_context(start_embedded_metastore(spec))
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        settings = {
            "storage.endpoint": gateway.options["endpoint"],
            "storage.region": "us-east-1",
            "storage.allow_http": "true",
        }
        given = {**settings, "metastore.uri": uri}
        config = Config({key: Setting(value, "test") for key, value in given.items()})
        create_table(config, "lake.t", f"s3://{BUCKET}/t", dry_run=False, progress=lambda *_: None)
        index_table(config, "lake.t", local=True, progress=lambda *_: None, say=lambda _: None)
        environment = {f"SKIPBRIDGE_{k.upper().replace('.', '_')}": v for k, v in settings.items()}
        environment |= {"SKIPBRIDGE_CACHE": str(directory / "cache"), **gateway.environment}
        planner = stack.enter_context(
            start_planner(directory / "planner", uri, environment=environment)
        )
        home = stock_plugins("hive")["hive"].parent.parent
        plugin = built_plugin("476", ("cache",), home)
        bare = {
            "connector.name": "skipbridge",
            "skipbridge.planner": f"{LOOPBACK}:{planner.port}",
            "s3.endpoint": f"http://{LOOPBACK}:{proxy.port}",
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
            "s3.aws-access-key": gateway.options["access_key_id"],
            "s3.aws-secret-key": gateway.options["secret_access_key"],
        }
        ports: list[int] = []
        caches = (directory / "kept-0", directory / "kept-1")
        for number, cache in enumerate(caches):
            cache.mkdir()
            cached = {
                **bare,
                "fs.cache.enabled": "true",
                "fs.cache.directories": str(cache),
                "fs.cache.max-sizes": "500MB",
                "fs.cache.preferred-hosts-count": "1",
            }
            node = TrinoSpec(
                directory=directory / f"trino-{number}",
                catalogs={"bare": bare, "cached": cached},
                plugins={"skipbridge": plugin},
                port=0,
                heap="900m",
                properties={"catalog.management": "static"},
                coordinator=ports[0] if ports else 0,
            )
            ports.append(stack.enter_context(start_trino(node)).port)
        deadline = time.monotonic() + PATIENCE
        sql = "SELECT count(*) FROM system.runtime.nodes WHERE state = 'active'"
        while ask(ports[0], sql) != [[2]]:
            assert time.monotonic() < deadline, "the worker did not join"
            time.sleep(1)
        yield Nodes(ports[0], sum(file.stat().st_size for file in files), proxy, caches)


def test_each_file_is_kept_by_the_node_that_reads_it_again(nodes: Nodes) -> None:
    expected, asked = nodes.scan("bare")
    assert expected[0][0] == FILES * ROWS and asked >= FILES
    requests = -1
    for _ in range(60):  # the cache takes up pages once it has looked at its directory
        rows, requests = nodes.scan()
        assert rows == expected
        if not requests:
            break
        time.sleep(0.5)
    assert requests == 0
    for _ in range(5):
        assert nodes.scan() == (expected, 0)
    first, second = nodes.kept()
    assert min(first, second) > nodes.size / FILES, (first, second)  # both take part
    assert first + second < 1.1 * nodes.size, (first, second, nodes.size)  # no file is in both
