"""TPC-H and TPC-DS SF1 as Parquet tables written by Trino 476, in several layouts, made once.

A layout's directory in the cache holds the tables, a file metastore and a Thrift metastore (Derby)
that both know them with column statistics by ANALYZE, and indexes by version of the code that built
them. Runs use copies of the Thrift metastore, so that several may go on at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trino

import bridge
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.runtime.spark_session import open_session
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.maven import Artifact, artifact_file
from bridge.trino.server import TrinoSpec, start_trino
from tests.benchmark.data import root
from tests.support.servers.stock_trino import stock_plugins
from tests.support.tpc import SALES, TABLES, by_date, by_month, day_ranges, month_slices

SCHEMA = "bench"
_FILES_PER_MONTH = 20
_DAYS_PER_INSERT = 400
_KEPT_INDEXES = 6
# Four files of each of these, else one or as many as Trino's writers make.
_LARGE = {*SALES, "lineitem", "orders", "partsupp", "inventory"}
_LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"
_LISTENER_JAR = Artifact("org.apache.hive.hcatalog", "hive-hcatalog-server-extensions", "2.3.10")


@dataclass(frozen=True, slots=True)
class Layout:
    """A benchmark's tables in one arrangement of files.

    Attributes:
        benchmark: ``tpcds`` or ``tpch``.
        partitioned: ``""``, or by ``date`` or ``month`` of sale.
    """

    name: str
    benchmark: str
    partitioned: str = ""

    @property
    def directory(self) -> Path:
        return root() / "tpc" / self.name

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def metastore(self) -> Path:
        return self.directory / "metastore"

    def stock(self) -> dict[str, str]:
        """The stock connector at its best: file metastore, native local file system."""
        return {
            "connector.name": "hive",
            "hive.metastore": "file",
            "hive.metastore.catalog.dir": f"local://{self.directory}/file-metastore",
            "hive.metastore.disable-location-checks": "true",
            "fs.native-local.enabled": "true",
            "local.location": "/",
        }


UNPARTITIONED = Layout("tpcds", "tpcds")
PARTITIONED = Layout("tpcds-partitioned", "tpcds", "date")
SMALL_FILES = Layout("tpcds-small-files", "tpcds", "month")
TPCH = Layout("tpch", "tpch")


def over_thrift(uri: str) -> dict[str, str]:
    """The stock connector over a Thrift metastore."""
    return {
        "connector.name": "hive",
        "hive.metastore.uri": uri,
        # Its native local file system reads file:/ locations as empty.
        "fs.hadoop.enabled": "true",
    }


def made(layout: Layout) -> Layout:
    """The layout, made now if it was not; takes minutes."""
    layout.directory.mkdir(parents=True, exist_ok=True)
    with alone(layout.directory):
        if not (layout.directory / "_DONE").exists():
            if layout.partitioned:
                made(UNPARTITIONED)
            layout.data.mkdir(exist_ok=True)
            _write(layout)
            age(layout.data)
            (layout.directory / "_DONE").touch()
    return layout


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Only one process at a time makes or changes a directory of the cache."""
    with directory.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _write(layout: Layout) -> None:
    """Writes the tables through the file metastore, then registers them in the Thrift one."""
    writes = {
        "hive.non-managed-table-writes-enabled": "true",
        "hive.max-partitions-per-writers": "2000",
    }
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        uri = stack.enter_context(new_metastore(layout.metastore))
        catalogs = {
            layout.benchmark: {"connector.name": layout.benchmark},
            "hive_file": layout.stock() | writes,
            "hive_thrift": over_thrift(uri) | writes,
        }
        source = f"{layout.benchmark}.sf1"
        if layout.partitioned:
            catalogs["source"] = UNPARTITIONED.stock()
            source = f"source.{SCHEMA}"
        plugins = stock_plugins("hive", layout.benchmark)
        server = stack.enter_context(
            start_trino(TrinoSpec(scratch, catalogs, plugins, port=0, heap="4G"))
        )
        for catalog in ("hive_file", "hive_thrift"):
            _ran(server.port, f"CREATE SCHEMA IF NOT EXISTS {catalog}.{SCHEMA}")
        for table in TABLES[layout.benchmark]:
            done = layout.directory / f"{table}.done"
            if done.exists():  # before an interruption
                continue
            started = time.monotonic()
            _write_table(server.port, layout, table, source)
            done.touch()
            print(f"{layout.name}: {table} in {time.monotonic() - started:.0f} s", flush=True)


def _write_table(port: int, layout: Layout, table: str, source: str) -> None:
    directory = layout.data / table
    for catalog in ("hive_file", "hive_thrift"):
        _ran(port, f"DROP TABLE IF EXISTS {catalog}.{SCHEMA}.{table}")
    shutil.rmtree(directory, ignore_errors=True)
    key, select, pieces = "", f"SELECT * FROM {source}.{table}", ["true"]
    if layout.partitioned and table in SALES:
        columns = [row[0] for row in _ran(port, f"SHOW COLUMNS FROM {source}.{table}")]
        if layout.partitioned == "date":
            key, select = by_date(table, source, columns)
            pieces = list(day_ranges(table, lambda s: _ran(port, s), source, _DAYS_PER_INSERT))
        else:
            key, select = by_month(table, source, columns)
            pieces = list(month_slices(table, _FILES_PER_MONTH))
    partitioned = f", partitioned_by = ARRAY['{key}']" if key else ""
    name = f"{SCHEMA}.{table}"
    _ran(
        port,
        f"CREATE TABLE hive_file.{name} WITH (format = 'PARQUET', "
        f"external_location = 'local://{directory}'{partitioned}) AS {select} WITH NO DATA",
    )
    writers = {
        "task_scale_writers_enabled": "false",
        "task_min_writer_count": "1" if key or table not in _LARGE else "4",
    }
    for piece in pieces:
        _ran(port, f"INSERT INTO hive_file.{name} {select} WHERE {piece}", writers)
    _ran(
        port,
        f"CREATE TABLE hive_thrift.{name} (LIKE hive_file.{name}) WITH (format = 'PARQUET', "
        f"external_location = 'file://{directory}'{partitioned})",
    )
    if key:
        _ran(port, f"CALL hive_thrift.system.sync_partition_metadata('{SCHEMA}', '{table}', 'ADD')")
    for catalog in ("hive_file", "hive_thrift"):
        _ran(port, f"ANALYZE {catalog}.{name}")


def _ran(port: int, sql: str, session: Mapping[str, str] | None = None) -> list[Any]:
    with trino.dbapi.connect(
        host="127.0.0.1", port=port, user="bench", session_properties=session
    ) as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall())


def age(directory: Path) -> None:
    """Files written just now are not trusted by an index (correctness 19); these are old."""
    past = time.time() - 3600
    for file in directory.rglob("*"):
        if file.is_file():
            os.utime(file, (past, past))


@contextmanager
def new_metastore(directory: Path, *, events: bool = False) -> Iterator[str]:
    """A Thrift metastore that keeps its database in this directory; its URI.

    Args:
        events: it records notification events, as docs/how-to/metastore.md recommends.
    """
    directory.mkdir(parents=True, exist_ok=True)
    # A database that is made once, or copied, need not survive a loss of power.
    (directory / "derby.properties").write_text("derby.system.durability=test\n")
    spec = MetastoreSpec(
        directory,
        port=0,
        heap="1g",
        properties={"hive.metastore.transactional.event.listeners": _LISTENER} if events else None,
        class_path=(artifact_file(_LISTENER_JAR),) if events else (),
    )
    with start_embedded_metastore(spec) as server:
        yield f"thrift://127.0.0.1:{server.port}"


@contextmanager
def copied_metastore(
    kept: Path, scratch: Path, prepare: Callable[[str], None] | None = None
) -> Iterator[str]:
    """A Thrift metastore over a copy of the database that another one has kept; its URI.

    Args:
        prepare: adds tables, given the URI of one that records no events: over a database that was
            made without them, 2.3.10 on Derby cannot write both.
    """
    copy = shutil.copytree(kept, scratch / "metastore")
    if prepare is not None:
        with new_metastore(copy) as uri:
            prepare(uri)
    with new_metastore(copy, events=not os.environ.get("TPC_WITHOUT_EVENTS")) as uri:
        yield uri


@contextmanager
def served(
    layout: Layout, scratch: Path, prepare: Callable[[str, Path], None]
) -> Iterator[tuple[str, Path]]:
    """A copy of the layout's Thrift metastore, running; its URI and the root of the indexes."""
    roots: list[Path] = []

    def indexed(uri: str) -> None:
        roots.append(_indexed(layout, uri))
        prepare(uri, roots[0])

    with copied_metastore(made(layout).metastore, scratch, indexed) as uri:
        yield uri, roots[0]


def _indexed(layout: Layout, uri: str) -> Path:
    """Indexes of all tables as `skipbridge index build TABLE` makes them, kept for this code."""
    index_root = layout.directory / f"index-{_code()}"
    with alone(layout.directory):
        if not (index_root / "_DONE").exists():
            shutil.rmtree(index_root, ignore_errors=True)
            _build(uri, index_root)
            (index_root / "_DONE").touch()
        os.utime(index_root)
        known = sorted(layout.directory.glob("index-*"), key=lambda p: p.stat().st_mtime)
        for old in known[:-_KEPT_INDEXES]:
            shutil.rmtree(old)
    return index_root


def _build(uri: str, index_root: Path) -> None:
    settings = {"metastore.uri": uri, "index.root": index_root.as_uri()}
    config = Config({key: Setting(text, "benchmark") for key, text in settings.items()})
    session = open_session(name="benchmark")
    try:
        with MetastoreClient(uri) as client:
            tables = client.get_all_tables(SCHEMA)
        for table in tables:
            report = index_table(
                config,
                f"{SCHEMA}.{table}",
                spark=session,
                progress=lambda done, total: None,
                say=print,
            )
            assert not report["failed"]
            print(f"indexed {table}: {report['seconds']:.1f} s", flush=True)
    finally:
        session.stop()


def _code() -> str:
    """A digest of the code that decides what an index holds."""
    package = Path(bridge.__file__).parent
    digest = hashlib.sha256()
    for part in ("index", "file_formats", "jobs", "spark", "types.py"):
        here = package / part
        for file in [here] if here.is_file() else sorted(here.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
