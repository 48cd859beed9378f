"""Trino 483 reads Hudi tables that Spark wrote, slices with logs included."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures
from tests.support.hudi_registration import as_text, register, table_name

pytestmark = pytest.mark.full

SCHEMA = "hudi_483"
FIXTURES = [
    *hudi_fixtures(names=["cow_upserts", "mor_upserts"]),
    *hudi_fixtures(names=["cow_nested_renamed"])[:1],
]


@pytest.mark.parametrize("fixture", [pytest.param(f, id=f.id) for f in FIXTURES])
def test_the_newest_version_is_sparks(
    stack_483: Stack, fixture: HudiFixture, tmp_path: Path
) -> None:
    answer = fixture.answers().snapshot
    location = fixture.unpack(tmp_path)
    name = TableName(SCHEMA, table_name(fixture))
    with MetastoreClient(stack_483.metastore_uri) as client:
        if SCHEMA not in client.get_all_databases():
            client.create_database(SCHEMA, f"file://{tmp_path}")
        register(client, name, location, answer.schema)
    columns = [field.name.lower() for field in answer.schema]
    named = ", ".join(f'"{column}"' for column in columns)
    found = stack_483.query(f"SELECT {named} FROM {name}")
    assert as_text(found, answer, columns) == encode_table(answer.table(answer.schema.names))
