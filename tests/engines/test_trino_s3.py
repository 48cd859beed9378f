"""Tables on S3, a real endpoint on loopback: planner, index and Trino 476 read it over HTTP."""

from __future__ import annotations

import datetime
import io
import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import create_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK, choose_port
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.trino.server import TrinoSpec, start_trino
from tests.engines.everything import Everything
from tests.engines.stack import LIGHT_JVM, Stack, ask
from tests.support.built import built_plugin
from tests.support.moto_store import moto_store
from tests.support.servers.stock_trino import stock_plugins

pytestmark = pytest.mark.full

BUCKET = "lake"
KEY, SECRET = "the-access-key", "the-secret-key"
REGION = "us-east-1"
SMALL_ROWS, LARGE_ROWS = 1_000, 800_000
FILES = ("day=1/a", "day=1/b", "day=1/c", "day=2/d", "day=2/e", "day=2/large")
ROWS = 5 * SMALL_ROWS + LARGE_ROWS


class _Requests(logging.Handler):
    """What the endpoint was asked for, out of its log."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        found = re.search(r'"(?:\x1b\[\w*m)*([A-Z]+) (\S+)', record.getMessage())
        if found:
            self.seen.append((found[1], found[2]))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An S3 endpoint with the bucket of these tests."""

    endpoint: str
    storage: Storage
    requests: _Requests = field(repr=False)

    def age(self) -> None:
        """Makes all objects a day old: the cache keeps none that were written moments ago."""
        past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
        for key in s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].keys.values():
            key.last_modified = past.replace(tzinfo=None, microsecond=0)

    def read_objects(self) -> list[str]:
        """The objects that were read since the last call."""
        found = [path for verb, path in self.requests.seen if verb == "GET" and "parquet" in path]
        self.requests.seen.clear()
        return found

    def put(self, name: str, table: pa.Table, **options: object) -> None:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, **options)
        self.storage.put(f"s3://{BUCKET}/{name}", buffer.getvalue())


@pytest.fixture(scope="module")
def lake() -> Iterator[Endpoint]:
    requests = _Requests()
    log = logging.getLogger("werkzeug")
    with moto_store(BUCKET, verbose=True) as endpoint:
        options = {
            "endpoint": endpoint,
            "region": REGION,
            "access_key_id": KEY,
            "secret_access_key": SECRET,
            "allow_http": "true",
        }
        log.addHandler(requests)
        log.setLevel(logging.INFO)
        yield Endpoint(endpoint, open_storage(options=options), requests)
        log.removeHandler(requests)


@pytest.fixture(scope="module")
def config(lake: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Config]:
    """The settings of every command of these tests, over a metastore that takes s3 locations."""
    directory = tmp_path_factory.mktemp("metastore-s3")
    bucket = directory / "bucket"
    bucket.mkdir()
    scheme = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
    # PySpark carries no file system for S3; the metastore only asks whether locations exist.
    properties = {
        "fs.s3.impl": scheme,
        "fs.viewfs.overload.scheme.target.s3.impl": scheme,
        f"fs.viewfs.mounttable.{BUCKET}.link./t": (bucket / "t").as_uri(),
        f"fs.viewfs.mounttable.{BUCKET}.link./frozen": (bucket / "frozen").as_uri(),
    }
    spec = MetastoreSpec(directory, port=0, in_memory=True, properties=properties)
    environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with (
        pytest.MonkeyPatch.context() as patch,
        start_embedded_metastore(spec) as server,
    ):
        for name, value in environment.items():
            patch.setenv(name, value)
        yield Config(
            {
                "metastore.uri": Setting(f"thrift://{LOOPBACK}:{server.port}", "test"),
                "storage.endpoint": Setting(lake.endpoint, "test"),
                "storage.region": Setting(REGION, "test"),
                "storage.allow_http": Setting("true", "test"),
            }
        )


def _register(config: Config, name: str) -> None:
    create_table(
        config,
        f"lake.{name}",
        f"s3://{BUCKET}/{name}",
        dry_run=False,
        progress=lambda done, total: None,
    )
    report = index_table(
        config,
        f"lake.{name}",
        local=True,
        progress=lambda done, total: None,
        say=lambda text: None,
    )
    assert not report["failed"]


@pytest.fixture(scope="module")
def table(lake: Endpoint, config: Config) -> None:
    """Five small files and one of 8 MB with 16 row groups, in two partitions."""
    noise = np.random.default_rng(7)
    for n, name in enumerate(FILES):
        large = name.endswith("large")
        rows = LARGE_ROWS if large else SMALL_ROWS
        ids = np.arange(rows) + n * 1_000
        content = pa.table({"id": ids, "noise": noise.integers(0, 2**62, rows)})
        lake.put(f"t/{name}.parquet", content, row_group_size=50_000, use_dictionary=False)
    lake.age()
    _register(config, "t")


@pytest.fixture(scope="module")
def s3_stack(
    lake: Endpoint,
    config: Config,
    table: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """Planner and Trino 476; the catalogs differ in where they have credentials from."""
    directory = tmp_path_factory.mktemp("stack-s3")
    port = choose_port(0, "planner")
    metastore = config.text("metastore.uri")
    environment = {
        "SKIPBRIDGE_CACHE": str(directory / "cache"),
        "SKIPBRIDGE_STORAGE_ENDPOINT": lake.endpoint,
        "SKIPBRIDGE_STORAGE_REGION": REGION,
        "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    bare = {"connector.name": "skipbridge", "skipbridge.planner": f"{LOOPBACK}:{port}"}
    chain = {
        **bare,
        "s3.endpoint": lake.endpoint,
        "s3.region": REGION,
        "s3.path-style-access": "true",
    }
    keys = {**chain, "s3.aws-access-key": KEY, "s3.aws-secret-key": SECRET}
    cached = {
        **keys,
        "fs.cache.enabled": "true",
        "fs.cache.directories": str(directory / "cached"),
        "fs.cache.max-sizes": "200MB",
    }
    mapping = directory / "mapping.json"
    mapping.write_text('{"mappings": [{"user": "test", "useClusterDefault": true}]}')
    mapped = {
        **cached,
        "s3.security-mapping.enabled": "true",
        "s3.security-mapping.config-file": str(mapping),
        "fs.cache.directories": str(directory / "mapped"),
    }
    (directory / "cached").mkdir()
    (directory / "mapped").mkdir()
    every = {
        **keys,
        "fs.hadoop.enabled": "true",
        "fs.native-gcs.enabled": "true",
        "gcs.json-key": '{"type":"authorized_user","client_id":"a","client_secret":"b",'
        '"refresh_token":"c"}',
        "fs.native-azure.enabled": "true",
        "azure.auth-type": "ACCESS_KEY",
        "azure.access-key": "aGlkZGVu",
    }
    home = stock_plugins("hive")["hive"].parent.parent
    parts = ("hdfs", "gcs", "azure", "cache")
    plugin = built_plugin("476", parts, home)
    spec = TrinoSpec(
        directory=directory / "trino",
        catalogs={
            "bridge": keys,
            "chain": chain,
            "bare": bare,
            "cached": cached,
            "mapped": mapped,
            "every": every,
        },
        plugins={"skipbridge": plugin},
        port=0,
        heap="1200m",
        # the first link of the default chain
        jvm_options=(*LIGHT_JVM, f"-Daws.accessKeyId={KEY}", f"-Daws.secretAccessKey={SECRET}"),
    )
    planner = start_planner(directory, metastore, port=port, environment=environment)
    with planner, start_trino(spec) as server:
        yield Stack(directory, metastore, port, server.port, cast(Everything, None))


@pytest.mark.parametrize("catalog", ["bridge", "chain", "cached", "every"])
def test_full_scan(s3_stack: Stack, catalog: str) -> None:
    sql = f"SELECT count(noise), count(DISTINCT day), max(id) FROM {catalog}.lake.t"
    assert s3_stack.query(sql) == [[ROWS, 2, 5_000 + LARGE_ROWS - 1]]


def test_count(s3_stack: Stack) -> None:
    assert s3_stack.query("SELECT count(*) FROM lake.t") == [[ROWS]]
    assert s3_stack.query("SELECT count(*) FROM lake.t WHERE day = 1") == [[3 * SMALL_ROWS]]


def test_selective_query_reads_one_file_in_one_request(s3_stack: Stack, lake: Endpoint) -> None:
    sql = "SELECT id, noise FROM lake.t WHERE id BETWEEN 1500 AND 1502"
    assert s3_stack.kept_files(sql) == 1
    lake.requests.seen.clear()
    assert [row[0] for row in s3_stack.query(sql)] == [1500, 1501, 1502]
    objects = [(verb, path) for verb, path in lake.requests.seen if path.endswith(".parquet")]
    assert objects == [("GET", f"/{BUCKET}/t/day=1/b.parquet")]


def test_large_file_is_read_in_ranges(s3_stack: Stack, lake: Endpoint) -> None:
    sql = "SELECT sum(id), count(noise) FROM lake.t WHERE id = 700000"
    assert s3_stack.kept_files(sql) == 1
    lake.requests.seen.clear()
    assert s3_stack.query(sql) == [[700_000, 1]]
    gets = [path for verb, path in lake.requests.seen if verb == "GET" and "large" in path]
    assert 2 <= len(gets) < 20


def test_catalog_without_s3_properties_says_so(s3_stack: Stack) -> None:
    with pytest.raises(Exception, match=rf"s3://{BUCKET}/t/.*does not read S3.*fs\.native-s3"):
        s3_stack.query("SELECT sum(id) FROM bare.lake.t WHERE id = 5")


def test_changed_and_deleted_objects_are_errors(
    s3_stack: Stack, lake: Endpoint, config: Config
) -> None:
    """With a frozen file set the planner sends the old size and time; the reader must notice."""
    rows = pa.table({"id": list(range(10))})
    lake.put("frozen/f.parquet", rows)
    written = time.monotonic()
    _register(config, "frozen")
    with MetastoreClient(config.text("metastore.uri")) as client:
        definition = client.get_table("lake", "frozen")
        definition.parameters["skipbridge.freshness"] = "snapshot"
        client.alter_table("lake", "frozen", definition)
    time.sleep(1.2)  # the planner takes a table's definition as known for a second
    sql = "SELECT sum(id) FROM lake.frozen"
    assert s3_stack.query(sql) == [[45]]
    uri = f"s3://{BUCKET}/frozen/f.parquet"

    # the same size at another second
    time.sleep(max(0.0, 1.1 - (time.monotonic() - written)))
    lake.put("frozen/f.parquet", rows)
    with pytest.raises(Exception, match=f"FILE_CHANGED.*{uri}"):
        s3_stack.query(sql)
    lake.put("frozen/f.parquet", pa.table({"id": list(range(1000))}))
    with pytest.raises(Exception, match=f"FILE_CHANGED.*{uri}"):
        s3_stack.query(sql)
    lake.storage.delete(uri)
    count = "SELECT count(*) FROM lake.frozen"
    for query in (sql, count):
        with pytest.raises(Exception, match=f"FILE_CHANGED.*{uri} is gone"):
            s3_stack.query(query, {"metadata_answers_enabled": "false"})
    assert s3_stack.query(count) == [[10]]  # of the frozen file set, which the index knows


def test_secrets_are_in_no_log(s3_stack: Stack) -> None:
    logs = list(s3_stack.directory.rglob("*.log"))
    assert logs
    for log in logs:
        text = log.read_text("utf-8", errors="replace")
        assert SECRET not in text and KEY not in text, log


def test_the_cache_answers_a_repeated_scan(s3_stack: Stack, lake: Endpoint) -> None:
    sql = "SELECT sum(noise % 1000), count(*) FROM {}.lake.t"
    expected = s3_stack.query(sql.format("bridge"))
    rounds = 60  # the cache takes up pages once it has looked at its directory, in a thread
    for _ in range(rounds):
        lake.read_objects()
        assert s3_stack.query(sql.format("cached")) == expected
        if not (requests := lake.read_objects()):
            break
        time.sleep(0.5)
    assert requests == []


def test_the_cache_gives_no_rows_to_a_user_whom_the_store_refuses_them(
    s3_stack: Stack, lake: Endpoint
) -> None:
    sql = "SELECT sum(noise % 1000), count(*) FROM mapped.lake.t WHERE day = 1"
    expected = s3_stack.query(sql.replace("mapped", "bridge"))
    rounds = 60
    for _ in range(rounds):
        lake.read_objects()
        assert s3_stack.query(sql) == expected
        requests = lake.read_objects()
        if len(requests) == 3:  # a byte of each file, in the user's name
            break
        time.sleep(0.5)
    assert len(requests) == 3
    with pytest.raises(Exception, match="Access Denied"):
        ask(s3_stack.trino_port, sql, user="stranger")


def test_the_cache_gives_no_old_rows_as_new_ones(s3_stack: Stack, lake: Endpoint) -> None:
    sql = "SELECT sum(noise % 1000), count(*) FROM {}.lake.t WHERE id < 1000"
    before = s3_stack.query(sql.format("cached"))
    for noise in (1, 2, 3):
        rows = pa.table({"id": np.arange(SMALL_ROWS), "noise": np.full(SMALL_ROWS, noise)})
        lake.put("t/day=1/a.parquet", rows, use_dictionary=False, compression="none")
        found = s3_stack.query(sql.format("cached"))
        assert found == s3_stack.query(sql.format("bridge")) != before
        before = found
        # one of a minute or less is not kept, since it may be written again in the same second
        lake.read_objects()
        assert s3_stack.query(sql.format("cached")) == found
        assert lake.read_objects() != []
