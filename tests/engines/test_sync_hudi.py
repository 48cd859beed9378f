"""Hudi tables that Spark wrote, synced to real metastores and read there by Trino."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bridge
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.conftest import RunningMetastore
from tests.engines.stack import Stack, ask
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_fixtures import Answer, HudiFixture, hudi_fixtures
from tests.support.hudi_registration import as_text, table_name
from tests.support.hudi_sync import Hidden, sync_hudi

pytestmark = pytest.mark.full

_numbers = itertools.count()
BOTH = ["metastore", "metastore_401"]
UPSERTS = [pytest.param(f, id=f.id) for f in hudi_fixtures(names=["cow_upserts", "mor_upserts"])]


@pytest.fixture(params=BOTH)
def client(request: pytest.FixtureRequest) -> Iterator[MetastoreClient]:
    running: RunningMetastore = request.getfixturevalue(request.param)
    with running.client() as made:
        yield made


def records(client: MetastoreClient, name: TableName) -> list[Any]:
    found: list[Any] = []
    for table in client.call("get_tables", name.schema, f"{name.table}*"):
        found.append(client.get_table(name.schema, table))
        names = client.get_partition_names(name.schema, table) if found[-1].partitionKeys else []
        found.append(client.get_partitions_by_names(name.schema, table, names).partitions)
    return found


@pytest.mark.parametrize("fixture", UPSERTS)
def test_synced_in_stages_to_a_real_metastore(
    client: MetastoreClient, fixture: HudiFixture, tmp_path: Path
) -> None:
    name = TableName(f"hudi{next(_numbers)}", "t")
    root = fixture.unpack(tmp_path)
    later = Hidden(root, 1, tmp_path / "hidden")
    sync_hudi(client, root, name)
    before = records(client, name)
    again = sync_hudi(client, root, name)
    assert again.outcome == "in step", again.to_dict()
    assert sync_hudi(client, root, name, full=True).outcome == "in step"
    assert records(client, name) == before, "a sync that finds nothing to do writes nothing"
    later.put_back()
    report = sync_hudi(client, root, name)
    assert report.compared == "changes" and report.outcome == "synced"
    partitions = {s.partition for s in fixture.answers().slices}
    for table in client.call("get_tables", name.schema, "t*"):
        names = client.get_partition_names(name.schema, table)
        assert set(names) == {f"day={p}" for p in partitions}
        sync_hudi(client, root, name)
    assert (root / "2024-01-01").is_dir()


def test_dropped_partitions_are_dropped_and_their_files_stay(
    client: MetastoreClient, tmp_path: Path
) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_delete_partition"])
    name = TableName(f"hudi{next(_numbers)}", "t")
    root = fixture.unpack(tmp_path)
    later = Hidden(root, 1, tmp_path / "hidden")
    sync_hudi(client, root, name)
    later.put_back()
    files = sorted(root.rglob("*"))
    report = sync_hudi(client, root, name)
    assert report.dropped == ["day=2024-01-02"] and sorted(root.rglob("*")) == files
    assert client.get_partition_names(name.schema, "t") == ["day=2024-01-01"]


# Trino's connector reads table version 6 alone.
STOCK = [
    pytest.param(f, id=f.id)
    for f in hudi_fixtures(
        bundle="0.15.0",
        names=[
            *("cow_upserts", "mor_upserts", "cow_inserts", "cow_unpartitioned"),
            *("cow_two_levels_hive", "cow_clustered", "cow_url_encoded_hive"),
        ],
    )
]


@pytest.mark.parametrize("fixture", STOCK)
def test_trinos_own_connector_reads_what_spark_reads(
    metastore_401: RunningMetastore, stock_trino: int, fixture: HudiFixture
) -> None:
    name = TableName(f"hudi{next(_numbers)}", "t")
    answers = fixture.answers()
    with metastore_401.client() as client:
        sync_hudi(client, fixture.path(), name)
    merged = answers.table_type == "MERGE_ON_READ"
    table, answer = (f"{name}_ro", answers.read_optimized) if merged else (name, answers.snapshot)
    assert rows(stock_trino, "hudi", str(table), answer) == spark_rows(answer)


def rows(port: int, catalog: str, table: str, answer: Answer) -> list[str]:
    """The rows of a table in Trino, in the columns of Spark's answer but for Hudi's own."""
    columns = [f'"{f.name.lower()}"' for f in answer.schema if not f.name.startswith("_hoodie_")]
    found = ask(port, f"SELECT {', '.join(columns)} FROM {table}", catalog)
    return sorted(map(repr, map(tuple, found)))


def spark_rows(answer: Answer) -> list[str]:
    table = answer.table()
    return sorted(map(repr, zip(*(c.to_pylist() for c in table.itercolumns()), strict=True)))


# test_hudi.py reads all fixtures; these differ in what a sync registers.
READ = hudi_fixtures(
    names=[
        *("cow_upserts", "mor_upserts", "cow_unpartitioned", "mor_unpartitioned"),
        *("cow_two_levels", "cow_two_levels_hive", "mor_two_levels_hive"),
        *("cow_url_encoded", "cow_url_encoded_hive", "cow_delete_partition", "mor_log_only"),
    ]
)


PARAMETERS = [pytest.param(f, id=f.id) for f in READ]


def views(fixture: HudiFixture) -> dict[str, Answer]:
    """Spark's answers by suffix of the record."""
    answers = fixture.answers()
    if answers.table_type == "COPY_ON_WRITE":
        return {"": answers.snapshot}
    return {"": answers.snapshot, "_rt": answers.snapshot, "_ro": answers.read_optimized}


def register_all(uri: str) -> str:
    """A schema with every fixture, as sync registers it."""
    schema = f"hudi{next(_numbers)}"
    with MetastoreClient(uri) as made:
        for fixture in READ:
            name = TableName(schema, table_name(fixture))
            report = sync_hudi(made, fixture.path(), name)
            assert not report.problems and not report.unparsable, fixture.id
    return schema


@pytest.fixture(scope="module")
def schema_for_api(metastore: RunningMetastore) -> str:
    return register_all(metastore.uri)


@pytest.fixture(scope="module")
def schema_for_trino(stack: Stack) -> str:
    return register_all(stack.metastore_uri)


@pytest.mark.parametrize("fixture", PARAMETERS)
def test_the_python_api_reads_what_spark_reads(
    metastore: RunningMetastore, schema_for_api: str, fixture: HudiFixture
) -> None:
    with bridge.connect(metastore_uri=metastore.uri) as session:
        for suffix, answer in views(fixture).items():
            table = session.table(f"{schema_for_api}.{table_name(fixture)}{suffix}")
            found = table.scan().to_arrow()
            columns = [found[f.name.lower()].cast(f.type) for f in answer.schema]
            read = pa.Table.from_arrays(columns, schema=answer.schema)
            assert encode_table(read) == encode_table(answer.table(answer.schema.names)), suffix


@pytest.mark.parametrize("fixture", PARAMETERS)
def test_our_connector_reads_what_spark_reads(
    stack: Stack, schema_for_trino: str, fixture: HudiFixture
) -> None:
    for suffix, answer in views(fixture).items():
        names = [f.name.lower() for f in answer.schema]
        columns = ", ".join(f'"{n}"' for n in names)
        query = f"SELECT {columns} FROM {schema_for_trino}.{table_name(fixture)}{suffix}"
        found = as_text(stack.query(query), answer, names)
        assert found == encode_table(answer.table(answer.schema.names)), suffix
