"""A real Trino shows a Hudi table's timeline and slices, and reads its base files alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures
from tests.support.hudi_registration import as_text, register, table_name

pytestmark = pytest.mark.full

SCHEMA = "hudi_history"
FIXTURES = hudi_fixtures(names=["cow_upserts", "mor_upserts"])
PARAMETERS = [pytest.param(f, id=f.id) for f in FIXTURES]


@pytest.fixture(scope="module", autouse=True)
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root = tmp_path_factory.mktemp("hudi_history")
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{root}")
        for fixture in FIXTURES:
            location = fixture.unpack(root / fixture.bundle)
            name = TableName(SCHEMA, table_name(fixture))
            register(client, name, location, fixture.answers().snapshot.schema)
    yield


@pytest.mark.parametrize("fixture", PARAMETERS)
def test_the_timeline_and_the_slices(stack: Stack, fixture: HudiFixture) -> None:
    answers, table = fixture.answers(), f'{SCHEMA}."{table_name(fixture)}'
    based = sum(s.base_file is not None for s in answers.slices)
    logs = sum(len(s.logs) for s in answers.slices)
    timeline = stack.query(f'SELECT instant, action, state FROM {table}$timeline"')
    assert sorted(timeline) == sorted(
        [i.requested, i.action, i.state.lower()] for i in answers.timeline
    )
    files = f'SELECT count(*), sum(logs), count("commit") FROM {table}$files"'
    assert stack.query(files) == [[len(answers.slices), logs, based]]
    partitions = f'SELECT sum(files), sum(logs) FROM {table}$partitions"'
    assert stack.query(partitions) == [[based, logs]]


@pytest.mark.parametrize("fixture", PARAMETERS)
def test_a_session_reads_base_files_alone(stack: Stack, fixture: HudiFixture) -> None:
    answer = fixture.answers().read_optimized
    names = [f.name.lower() for f in answer.schema]
    columns = ", ".join(f'"{n}"' for n in names)
    sql = f"SELECT {columns} FROM {SCHEMA}.{table_name(fixture)}"
    found = as_text(stack.query(sql, {"read_optimized": "true"}), answer, names)
    assert found == encode_table(answer.table(answer.schema.names))
