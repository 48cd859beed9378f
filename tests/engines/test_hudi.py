"""A real Trino reads Hudi tables that Spark wrote: every row, and no file that cannot match."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from trino.exceptions import TrinoQueryError

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_expectations import changes_unlike_spark, refused_by_trino, unlike_spark
from tests.support.hudi_fixtures import Answer, HudiFixture, few, hudi_fixtures
from tests.support.hudi_registration import as_text, register, table_name

pytestmark = pytest.mark.full

SCHEMA = "hudi"
EVERY = list(
    dict.fromkeys(
        (
            *few(hudi_fixtures(prefix="cow_")),
            *hudi_fixtures(names=["cow_upserts", "mor_upserts", "cow_zone_utc"]),
        )
    )
)
FIXTURES = [f for f in EVERY if not unlike_spark(f) and not refused_by_trino(f)]
PARAMETERS = [pytest.param(f, id=f.id) for f in FIXTURES]


@pytest.fixture(scope="module", autouse=True)
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every fixture as a table of the schema ``hudi``, with an index."""
    root = tmp_path_factory.mktemp("hudi")
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{root}")
        for fixture in FIXTURES:
            location = fixture.unpack(root / fixture.bundle)
            schema = fixture.answers().snapshot.schema
            name = TableName(SCHEMA, table_name(fixture))
            register(client, name, location, schema)
            optimized = TableName(SCHEMA, f"{name.table}_ro")
            register(client, optimized, location, schema, read_optimized=True)
            index_table(
                config,
                str(name),
                local=True,
                progress=lambda done, total: None,
                say=lambda text: None,
            )
    yield


def rows(stack: Stack, fixture: HudiFixture, answer: Answer, suffix: str = "") -> object:
    names = [f.name.lower() for f in answer.schema]
    columns = ", ".join(f'"{n}"' for n in names)
    return as_text(
        stack.query(f"SELECT {columns} FROM {SCHEMA}.{table_name(fixture)}{suffix}"), answer, names
    )


def spark(answer: Answer) -> object:
    return encode_table(answer.table(answer.schema.names))


@pytest.mark.parametrize("fixture", PARAMETERS)
def test_the_newest_version_is_sparks(stack: Stack, fixture: HudiFixture) -> None:
    answer = fixture.answers().snapshot
    assert rows(stack, fixture, answer) == spark(answer)


@pytest.mark.parametrize("fixture", PARAMETERS)
def test_base_files_alone_are_sparks(stack: Stack, fixture: HudiFixture) -> None:
    answer = fixture.answers().read_optimized
    if answer.error is None:
        assert rows(stack, fixture, answer, "_ro") == spark(answer)


@pytest.mark.parametrize("fixture", PARAMETERS)
def test_older_versions_are_sparks(stack: Stack, fixture: HudiFixture) -> None:
    for old in fixture.answers().as_of[-3:]:
        if old.answer.error is None:
            found = rows(stack, fixture, old.answer, f" FOR VERSION AS OF '{old.instant}'")
            assert found == spark(old.answer), old.instant


def test_a_time_means_the_newest_instant_by_then(stack: Stack) -> None:
    for fixture in hudi_fixtures(names=["cow_zone_utc"]):
        found = 0
        for old in fixture.answers().as_of:
            if old.answer.error is None and fixture in FIXTURES:
                at = datetime.strptime(old.instant, "%Y%m%d%H%M%S%f").isoformat(" ", "milliseconds")
                when = f" FOR TIMESTAMP AS OF TIMESTAMP '{at} UTC'"
                assert rows(stack, fixture, old.answer, when) == spark(old.answer), old.instant
                found += 1
        assert found or fixture not in FIXTURES


def test_a_file_that_is_gone_is_an_error(stack: Stack, tmp_path: Path) -> None:
    """As a clean may remove it under a running query: never fewer rows."""
    for fixture in hudi_fixtures(names=["cow_upserts", "mor_upserts"], bundle="1.2.0"):
        location = fixture.unpack(tmp_path)
        name = TableName(SCHEMA, f"{fixture.name}_gone")
        with MetastoreClient(stack.metastore_uri) as client:
            register(client, name, location, fixture.answers().snapshot.schema)
        count = stack.query(f"SELECT count(name) FROM {name}")
        slices = [s for s in fixture.answers().snapshot.slices or () if s.base_file is not None]
        (location / slices[0].partition / slices[0].base_file).unlink()
        with pytest.raises(TrinoQueryError, match="FILE_CHANGED"):
            stack.query(f"SELECT count(name) FROM {name}")
        assert count != [[0]]


def test_files_that_cannot_match_are_skipped(stack: Stack) -> None:
    for fixture in hudi_fixtures(names=["cow_upserts"]):
        table = f"{SCHEMA}.{table_name(fixture)}"
        assert stack.kept_files(f"SELECT name FROM {table}") == 5
        assert stack.kept_files(f"SELECT name FROM {table} WHERE id = 5") < 5


def test_slices_with_logs_that_cannot_match_are_skipped(stack: Stack) -> None:
    for fixture in hudi_fixtures(names=["mor_upserts"]):
        table = f"{SCHEMA}.{table_name(fixture)}"
        assert stack.kept_files(f"SELECT name FROM {table}") == 3
        assert stack.kept_files(f"SELECT name FROM {table} WHERE name = 'uno'") < 3
        assert stack.query(f"SELECT id, price FROM {table} WHERE name = 'uno'") == [[1, -2.0]]
        assert stack.query(f"SELECT id FROM {table} WHERE price = -2") == [[1]]
        assert stack.query(f"SELECT count(*), min(id) FROM {table}") == [[7, 1]]


def test_changes_are_sparks(stack: Stack) -> None:
    asked = 0
    for fixture in FIXTURES:
        answers = fixture.answers()
        by = "completion" if answers.table_version >= 8 else "requested"
        if fixture.bundle == "1.0.2" or changes_unlike_spark(fixture):
            continue  # to that bundle, the start belongs to the window
        for window in [w for w in answers.incremental if w.by == by][:2]:
            if window.answer.error is not None:
                continue
            end = "" if window.end is None else f", '{window.end}'"
            call = f"'{SCHEMA}', '{table_name(fixture)}', '{window.begin}'{end}"
            names = [f.name.lower() for f in window.answer.schema]
            columns = ", ".join(f'"{n}"' for n in names)
            found = stack.query(f"SELECT {columns} FROM TABLE(bridge.system.table_changes({call}))")
            assert as_text(found, window.answer, names) == spark(window.answer), fixture.id
            asked += 1
    assert asked > 20
