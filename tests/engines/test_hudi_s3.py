"""Hudi tables that Spark wrote, on an object store with latency: every row is Spark's.

There the connector reads the logs and base files of slices ahead, as it never does of local files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.store_stack import HUDI, Stores, copy_directory
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_expectations import refused_by_trino, unlike_spark
from tests.support.hudi_fixtures import HudiFixture, few, hudi_fixtures
from tests.support.hudi_registration import as_text, register, table_name
from tests.support.slow_store import Behaviour
from tests.support.versitygw import BUCKET

pytestmark = pytest.mark.full

NAMES = (
    "cow_upserts",
    "mor_compaction_pending_then_upserts",
    "mor_deletes_only",
    "mor_log_only",
    "mor_many_logs",
    "mor_moved_partition",
    "mor_parquet_logs",
    "mor_renamed_under_logs",
    "mor_rolled_back",
    "mor_upgraded",
    "mor_upserts",
)
FIXTURES = [
    f for f in few(hudi_fixtures(names=NAMES)) if not unlike_spark(f) and not refused_by_trino(f)
]


@pytest.fixture(scope="module", autouse=True)
def tables(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every fixture as a table of the schema ``lake``."""
    root = tmp_path_factory.mktemp("hudi")
    with MetastoreClient(stores.settings["metastore.uri"]) as client:
        for fixture in FIXTURES:
            location: Path = fixture.unpack(root / fixture.bundle)
            name = table_name(fixture)
            uri = f"s3://{BUCKET}/{HUDI}/{name}"
            copy_directory(stores.storage, location, uri)
            schema = fixture.answers().snapshot.schema
            register(client, TableName("lake", name), location, schema, copy=uri)
    yield


@pytest.mark.parametrize("latency", [0.0, 0.03])
@pytest.mark.parametrize("fixture", [pytest.param(f, id=f.id) for f in FIXTURES])
def test_the_newest_version_is_sparks(stores: Stores, fixture: HudiFixture, latency: float) -> None:
    answer = fixture.answers().snapshot
    names = [f.name.lower() for f in answer.schema]
    columns = ", ".join(f'"{n}"' for n in names)
    stores.proxy.behave(Behaviour(latency=latency))
    found = stores.query(f"SELECT {columns} FROM lake.{table_name(fixture)}")
    assert as_text(found, answer, names) == encode_table(answer.table(answer.schema.names))
