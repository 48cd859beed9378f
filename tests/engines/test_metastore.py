"""The metastore client and catalog against real metastores, 2.3.10 and 4.0.1."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import (
    MetastoreFailure,
    MetastoreUnavailable,
    PortInUse,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    UnsupportedTable,
)
from bridge.metastore._gen import ttypes
from bridge.metastore.batches import BatchSettings, fetch_partitions
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import LOOPBACK, free_port
from bridge.table.model import TableName
from bridge.table.partition import NULL_MARKER, parse_partition_name, partition_name

PARQUET = (
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)
TEXT = (
    "org.apache.hadoop.mapred.TextInputFormat",
    "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
FOREIGN = ("com.acme.AcmeInputFormat", "com.acme.AcmeOutputFormat", "com.acme.AcmeSerDe")
ORC = (
    "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
)
SPECIAL = [
    ("plain", "1"),
    ("with space", "50%"),
    ("a=b/c:d", "x\ty"),
    ("#\"'*?\\{[]^}", "%2F"),
    ("été 😀", "01"),
    (NULL_MARKER, "1"),
    ("plain", NULL_MARKER),
]
LADDER = BatchSettings(cap=100, adapt=False)
_databases = itertools.count()


def descriptor(location: str, classes: tuple[str, str, str] = PARQUET) -> ttypes.StorageDescriptor:
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("k", "bigint", ""), ttypes.FieldSchema("v", "array<int>", "note")],
        location=location,
        inputFormat=classes[0],
        outputFormat=classes[1],
        compressed=False,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(serializationLib=classes[2], parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


class Shop:
    """A database of its own for one test."""

    def __init__(self, client: MetastoreClient, root: Path, name: str = "") -> None:
        self.client = client
        self.root = root
        self.name = name or f"shop{next(_databases)}"
        client.create_database(self.name)

    def table(self, name: str, *keys: str, **changes: object) -> ttypes.Table:
        table = ttypes.Table(
            tableName=name,
            dbName=self.name,
            owner="test",
            createTime=0,
            lastAccessTime=0,
            retention=0,
            sd=descriptor((self.root / self.name / name).as_uri()),
            partitionKeys=[ttypes.FieldSchema(k, "string", "") for k in keys],
            parameters={"EXTERNAL": "TRUE"},
            tableType="EXTERNAL_TABLE",
        )
        for attribute, value in changes.items():
            setattr(table, attribute, value)
        self.client.create_table(table)
        return table

    def partition(
        self,
        table: str,
        values: list[str],
        location: str = "",
        classes: tuple[str, str, str] = PARQUET,
    ) -> ttypes.Partition:
        if not location:
            # Hadoop's Path, and not a URI's escaping: a `%` in a location stands for itself.
            nullable = [None if v == NULL_MARKER else v for v in values]
            name = partition_name("pq"[: len(values)], nullable)
            location = f"file:{self.root}/{self.name}/{table}/{name}"
        return ttypes.Partition(
            values=values,
            dbName=self.name,
            tableName=table,
            createTime=0,
            lastAccessTime=0,
            sd=descriptor(location, classes),
            parameters={},
        )


@pytest.fixture(params=["metastore", "metastore_401"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    running = request.getfixturevalue(request.param)
    with running.client() as client:
        yield Shop(client, tmp_path)


def test_databases_and_tables(shop: Shop) -> None:
    client = shop.client
    assert client.get_version()
    assert shop.name in client.get_all_databases()
    assert client.create_database(shop.name) is False
    assert client.get_all_tables(shop.name) == []
    shop.table("Orders", "p")
    shop.table("items")
    assert client.get_all_tables(shop.name) == ["items", "orders"]
    with pytest.raises(TableExists):
        shop.table("orders")

    found = client.get_table(shop.name, "orders")
    found.parameters["skipbridge.index"] = "here"
    client.alter_table(shop.name, "orders", found)
    assert client.get_table(shop.name, "orders").parameters["skipbridge.index"] == "here"

    client.drop_table(shop.name, "items")
    assert client.get_all_tables(shop.name) == ["orders"]
    client.call("drop_database", shop.name, False, True)
    assert shop.name not in client.get_all_databases()


def test_many_who_make_one_table_at_once(shop: Shop) -> None:
    def make(round_: int) -> str:
        try:
            shop.table(f"contested{round_}")
        except TableExists:
            return "exists"
        return "made"

    with ThreadPoolExecutor(8) as threads:
        for round_ in range(5):
            done = list(threads.map(make, [round_] * 8))
            assert sorted(done) == [*["exists"] * 7, "made"], done


def test_unknown_names_come_with_the_nearest(shop: Shop) -> None:
    client = shop.client
    with pytest.raises(
        TableNotFound, match=rf"schema {shop.name} has no table: write SCHEMA\.TABLE"
    ):
        client.get_table(shop.name, "orders")
    table = shop.table("orders", "p")
    calls: list[Callable[[], object]] = [
        lambda: client.get_table(shop.name, "ordrs"),
        lambda: client.get_partition_names(shop.name, "ordrs"),
        lambda: client.get_partitions_by_names(shop.name, "ordrs", ["p=1"]),
        lambda: client.add_partitions(shop.name, "ordrs", [shop.partition("ordrs", ["1"])]),
        lambda: client.alter_table(shop.name, "ordrs", table),
        lambda: client.drop_table(shop.name, "ordrs"),
    ]
    for call in calls:
        with pytest.raises(TableNotFound, match=rf"did you mean {shop.name}\.orders"):
            call()
    nowhere = shop.name[:-1] + "x"
    for call in (
        lambda: client.get_table(nowhere, "orders"),
        lambda: client.get_all_tables(nowhere),
        lambda: client.get_database(nowhere),
    ):
        with pytest.raises(SchemaNotFound, match="did you mean"):
            call()


def test_partitions_with_special_characters(shop: Shop) -> None:
    shop.table("t", "p", "q")
    elsewhere = f"file:{shop.root}/some where/100%"
    added = [shop.partition("t", list(values)) for values in SPECIAL]
    added[0].sd.location = elsewhere
    shop.client.add_partitions(shop.name, "t", added)
    shop.client.add_partitions(shop.name, "t", added)  # those that exist are left alone

    catalog = HiveCatalog(shop.client)
    table = catalog.table(TableName(shop.name, "t"))
    assert [str(c.type) for c in table.columns] == ["bigint", "array<int>"]
    names = catalog.partition_names(table)
    wanted = {tuple(None if v == NULL_MARKER else v for v in values) for values in SPECIAL}
    # What Hive writes is what our escaping writes, and reads back the same.
    assert set(names) == {partition_name(["p", "q"], values) for values in wanted}
    assert {tuple(v for _, v in parse_partition_name(n)) for n in names} == wanted

    whole = shop.client.get_partitions_by_names(shop.name, "t", names).partitions
    for fetch in (shop.client.get_partitions_by_names, shop.client.get_partition_locations):
        found = fetch(shop.name, "t", [*names[:3], "p=not/q=there", *names[3:]])
        assert found.names == tuple(names) and found.missing == ("p=not/q=there",)
        assert [p.sd.location for p in found.partitions] == [p.sd.location for p in whole]
        assert {p.sd.inputFormat for p in found.partitions} == {PARQUET[0]}
        assert {p.sd.serdeInfo.serializationLib for p in found.partitions} == {PARQUET[2]}
        with pytest.raises(TableNotFound):
            fetch(shop.name, "nowhere", names)

    names.reverse()
    batch = next(catalog.partitions(table, names))
    assert [p.name for p in batch.partitions] == names
    assert {p.values for p in batch.partitions} == wanted
    for partition in batch.partitions:
        assert partition.values == tuple(v for _, v in parse_partition_name(partition.name))
        own = f"file://{shop.root}/{shop.name}/t/{partition.name}"
        assert partition.location in (own, f"file://{shop.root}/some where/100%")


def test_altering_and_dropping_partitions_in_batches(shop: Shop) -> None:
    client = shop.client
    shop.table("t", "p")
    client.add_partitions(shop.name, "t", [shop.partition("t", [str(i)]) for i in range(300)])
    names = [f"p={i}" for i in range(300)]
    found = client.get_partitions_by_names(shop.name, "t", names[:120]).partitions
    for part in found:
        part.sd.location = f"file:{shop.root}/moved/{part.values[0]}"
        part.sd.cols.append(ttypes.FieldSchema("late", "string", ""))
        part.parameters["moved"] = "yes"
    client.alter_partitions(shop.name, "t", found, {"DO_NOT_UPDATE_STATS": "true"})
    again = client.get_partitions_by_names(shop.name, "t", names[:130]).partitions
    assert [p.sd.location.endswith(f"/moved/{p.values[0]}") for p in again] == [True] * 120 + [
        False
    ] * 10
    assert again[0].parameters["moved"] == "yes" and again[0].sd.cols[-1].name == "late"
    # One that does not exist: none is altered.
    again[125].sd.location = f"file:{shop.root}/never"
    with pytest.raises(MetastoreFailure, match="alter_partitions"):
        client.alter_partitions(shop.name, "t", [again[125], shop.partition("t", ["999"])])
    (same,) = client.get_partitions_by_names(shop.name, "t", ["p=125"]).partitions
    assert not same.sd.location.endswith("never")

    client.drop_partitions(shop.name, "t", names[100:])
    assert sorted(client.get_partition_names(shop.name, "t")) == sorted(names[:100])
    client.drop_partitions(shop.name, "t", names[90:110])  # ten of them are gone already
    assert len(client.get_partition_names(shop.name, "t")) == 90
    for call in (
        lambda: client.drop_partitions(shop.name, "x", ["p=1"]),
        lambda: client.alter_partitions(shop.name, "x", [shop.partition("x", ["1"])]),
    ):
        with pytest.raises(TableNotFound):
            call()


def test_altering_a_database_and_a_table_with_its_partitions(shop: Shop) -> None:
    client = shop.client
    database = client.get_database(shop.name)
    database.parameters = {"skipbridge.sync": "yes"}
    client.call("alter_database", shop.name, database)
    assert client.get_database(shop.name).parameters == {"skipbridge.sync": "yes"}
    shop.table("t", "p")
    client.add_partitions(shop.name, "t", [shop.partition("t", ["1"])])
    table = client.get_table(shop.name, "t")
    table.sd.cols.append(ttypes.FieldSchema("late", "string", ""))
    client.alter_table(shop.name, "t", table, {"CASCADE": "true"})
    (part,) = client.get_partitions_by_names(shop.name, "t", ["p=1"]).partitions
    assert [c.name for c in part.sd.cols] == ["k", "v", "late"]
    assert client.get_config_value("hive.metastore.no.such.setting", "none") == "none"


def test_an_unpartitioned_table_is_one_partition(shop: Shop) -> None:
    shop.table("t")
    catalog = HiveCatalog(shop.client)
    table = catalog.table(TableName(shop.name, "t"))
    assert catalog.partition_names(table) == [""]
    batches = list(catalog.partitions(table, [""]))
    assert [(p.name, p.values, p.location) for b in batches for p in b.partitions] == [
        ("", (), table.location)
    ]


def test_two_thousand_partitions_by_the_ladder(shop: Shop) -> None:
    shop.table("t", "p")
    added = [shop.partition("t", [str(i)]) for i in range(2000)]
    for partition in added:  # as for real tables; the metastore takes 20 ms to make each
        Path(partition.sd.location.removeprefix("file:")).mkdir(parents=True)
    for begin in range(0, 2000, 500):
        shop.client.add_partitions(shop.name, "t", added[begin : begin + 500])
    names = shop.client.get_partition_names(shop.name, "t")
    assert len(names) == 2000
    gone = [f"p={i}" for i in range(5000, 5003)]
    asked = [*names[:25], *gone[:2], *names[25:], gone[2]]
    started = time.perf_counter()
    with fetch_partitions(shop.client, shop.name, "t", asked, LADDER) as stream:
        batches = [next(stream)]
        first = time.perf_counter() - started
        batches.extend(stream)
    whole = time.perf_counter() - started
    print(f"2,000 partitions: first batch {first * 1000:.0f} ms, all {whole * 1000:.0f} ms")
    assert [len(b.names) + len(b.missing) for b in batches[:5]] == [10, 20, 40, 80, 100]
    assert [n for b in batches for n in b.names] == names
    assert [n for b in batches for n in b.missing] == gone
    for batch in batches:
        assert [f"p={p.values[0]}" for p in batch.partitions] == list(batch.names)


def test_closing_a_stream_stops_its_calls(shop: Shop) -> None:
    shop.table("t", "p")
    shop.client.add_partitions(shop.name, "t", [shop.partition("t", [str(i)]) for i in range(100)])
    names = shop.client.get_partition_names(shop.name, "t")
    before = set(threading.enumerate())  # planners of other tests have such threads, too
    stream = fetch_partitions(shop.client, shop.name, "t", names, BatchSettings(start=5))
    next(stream)
    stream.close()
    assert list(stream) == []
    deadline = time.monotonic() + 5
    while any("partitions" in t.name and t not in before for t in threading.enumerate()):
        assert time.monotonic() < deadline, "a thread is left behind"
        time.sleep(0.01)
    assert shop.client.get_partition_names(shop.name, "t") == names


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("a view", {"tableType": "VIRTUAL_VIEW", "viewOriginalText": "SELECT 1"}),
        ("an Iceberg table", {"parameters": {"EXTERNAL": "TRUE", "table_type": "ICEBERG"}}),
        (
            "a Delta table",
            {"parameters": {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "DELTA"}},
        ),
    ],
)
def test_tables_of_other_kinds_are_refused(
    shop: Shop, kind: str, changes: dict[str, object]
) -> None:
    shop.table("t", **changes)
    with pytest.raises(UnsupportedTable, match=kind) as caught:
        HiveCatalog(shop.client).table(TableName(shop.name, "t"))
    assert caught.value.hint


def test_a_hudi_table_is_of_its_own_format(shop: Shop) -> None:
    shop.table("t", parameters={"EXTERNAL": "TRUE", "spark.sql.sources.provider": "hudi"})
    found = HiveCatalog(shop.client).table(TableName(shop.name, "t"))
    assert (found.table_format, found.format) == ("hudi", "parquet")


def test_an_acid_table_is_refused(metastore: Any, tmp_path: Path) -> None:
    """On 2.3.10 alone: 4.0.1 lets no client create one that does not name its capabilities."""
    with metastore.client() as client:
        shop = Shop(client, tmp_path)
        orc = descriptor((metastore.warehouse / shop.name / "t").as_uri(), ORC)
        orc.numBuckets, orc.bucketCols = 2, ["k"]
        transactional = {"transactional": "true"}
        shop.table("t", parameters=transactional, tableType="MANAGED_TABLE", sd=orc)
        with pytest.raises(UnsupportedTable, match="an ACID table"):
            HiveCatalog(client).table(TableName(shop.name, "t"))


def test_an_unknown_format_is_refused_in_a_table_and_in_a_partition(shop: Shop) -> None:
    shop.table("notes", sd=descriptor((shop.root / "notes").as_uri(), FOREIGN))
    catalog = HiveCatalog(shop.client)
    with pytest.raises(UnsupportedTable, match="AcmeInputFormat"):
        catalog.table(TableName(shop.name, "notes"))
    shop.table("lines", sd=descriptor((shop.root / "lines").as_uri(), TEXT))
    assert catalog.table(TableName(shop.name, "lines")).format == "text"

    shop.table("t", "p")
    shop.client.add_partitions(
        shop.name,
        "t",
        [
            shop.partition("t", ["1"]),
            shop.partition("t", ["2"], classes=TEXT),
            shop.partition("t", ["3"], classes=FOREIGN),
        ],
    )
    table = catalog.table(TableName(shop.name, "t"))
    (batch,) = catalog.partitions(table, ["p=1", "p=2"])
    own, other = batch.partitions
    assert own.reader is None and other.reader is not None and other.reader.format == "text"
    with pytest.raises(UnsupportedTable, match=r"partition p=3 .*AcmeInputFormat"):
        list(catalog.partitions(table, ["p=1", "p=3"]))


def test_a_bucketed_table_is_read_plainly(shop: Shop) -> None:
    bucketed = descriptor((shop.root / "b").as_uri())
    bucketed.numBuckets, bucketed.bucketCols = 4, ["k"]
    shop.table("b", sd=bucketed)
    assert HiveCatalog(shop.client).table(TableName(shop.name, "b")).format == "parquet"


def test_a_restarted_metastore_is_found_again(tmp_path: Path) -> None:
    spec = MetastoreSpec(tmp_path / "metastore", port=free_port())
    uri = f"thrift://{LOOPBACK}:{free_port()},thrift://{LOOPBACK}:{spec.port}"
    settings = MetastoreSettings(retry_deadline=60.0)
    with MetastoreClient(uri, settings) as client:
        with start_embedded_metastore(spec) as server:
            client.create_database("kept")
            with pytest.raises(PortInUse, match=str(spec.port)):
                start_embedded_metastore(spec)
            server.kill()
        impatient = MetastoreClient(uri, replace(settings, retry_deadline=0.0))
        with pytest.raises(MetastoreUnavailable, match="skipbridge metastore start"):
            impatient.get_all_databases()

        answers: list[list[str]] = []
        asking = threading.Thread(target=lambda: answers.append(client.get_all_databases()))
        asking.start()  # while there is no metastore
        with start_embedded_metastore(spec):
            asking.join(60)
            assert answers == [["default", "kept"]]
            assert client.create_database("kept") is False


class _Web(BaseHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


def test_addresses_that_are_no_metastore() -> None:
    quick = MetastoreSettings(connect_timeout=1.0, retry_deadline=1.0)
    with HTTPServer((LOOPBACK, 0), _Web) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        with pytest.raises(MetastoreFailure, match="does not answer as a Hive metastore"):
            MetastoreClient(f"{LOOPBACK}:{web.server_port}", quick).get_all_databases()
        web.shutdown()
    with socket.create_server((LOOPBACK, 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(MetastoreFailure, match="no answer"):
            MetastoreClient(f"{LOOPBACK}:{port}", quick).get_all_databases()
    with pytest.raises(MetastoreUnavailable, match=rf"{LOOPBACK}:{port}"):
        MetastoreClient(f"{LOOPBACK}:{port}", quick).get_all_databases()
