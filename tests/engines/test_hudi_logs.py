"""A real Trino merges the logs of Hudi tables as Spark does, and no predicate changes the merge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from trino.exceptions import TrinoQueryError

from bridge.kernel.errors import UnsupportedTable
from bridge.metastore.client import MetastoreClient
from bridge.storage.routed import open_storage
from bridge.table.hudi.table_config import load_table_config
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.fixtures.hudi.text import encode, encode_table
from tests.support.hudi_fixtures import Answer, HudiFixture, few, hudi_fixtures
from tests.support.hudi_registration import as_text, register, table_name

pytestmark = pytest.mark.full

SCHEMA = "hudi_logs"
# Trino reads the float 0.1 as the double that is nearest to it, Spark as the double 0.1; and a
# partition key as the text of the directory, Spark as the number that the files hold.
_OTHER_VALUES = ("mor_widened", "mor_timestamp_keys")
_REFUSED = ("mor_partial_updates",)
# Hudi 0.15 lets a delete in a log win over a later event, and orders log rows of
# OverwriteWithLatestAvroPayload by event. Hudi 1.2, whose reader merges here, does not.
_OF_OLD_HUDI = (
    ("0.15.0", "mor_delete_marker"),
    ("0.15.0", "mor_is_deleted_payload_default"),
    ("0.15.0", "mor_payload_latest"),
)


# Asked about in every bundle.
_ASKED = ("mor_upserts", "mor_parquet_logs", "mor_deletes_only")
# Renamed columns: in all logs, in some, and in the base file alone.
_EVOLVED = ("mor_renamed", "mor_renamed_under_logs", "mor_renamed_and_compacted")


def _compared(fixture: HudiFixture) -> bool:
    answer = fixture.answers().snapshot
    logs = any(one.logs for one in answer.slices or ())
    other = fixture.name in _OTHER_VALUES or (fixture.bundle, fixture.name) in _OF_OLD_HUDI
    return answer.error is None and logs and not other


FIXTURES = [
    f
    for f in dict.fromkeys(
        (*few(hudi_fixtures(prefix="mor_")), *hudi_fixtures(names=(*_ASKED, *_EVOLVED)))
    )
    if _compared(f)
]
PARAMETERS = [pytest.param(f, id=f.id) for f in FIXTURES]


@pytest.fixture(scope="module", autouse=True)
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every fixture with logs as a table; nothing is indexed."""
    root = tmp_path_factory.mktemp("hudi_logs")
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{root}")
        for fixture in FIXTURES:
            location = fixture.unpack(root / fixture.bundle)
            schema = fixture.answers().snapshot.schema
            try:
                load_table_config(open_storage(), f"file://{location}")
            except UnsupportedTable:
                continue
            register(client, TableName(SCHEMA, table_name(fixture)), location, schema)
    yield


def ask(stack: Stack, fixture: HudiFixture, answer: Answer, rest: str = "") -> list[list[Any]]:
    names = [f.name.lower() for f in answer.schema]
    columns = ", ".join(f'"{n}"' for n in names)
    sql = f"SELECT {columns} FROM {SCHEMA}.{table_name(fixture)} {rest}"
    return as_text(stack.query(sql), answer, names)


@pytest.mark.parametrize("fixture", PARAMETERS)
def test_merged_rows_are_sparks(stack: Stack, fixture: HudiFixture) -> None:
    answer = fixture.answers().snapshot
    if fixture.name in _REFUSED:
        with pytest.raises(TrinoQueryError, match=r"MERGE_ON_READ|UNSUPPORTED_TABLE"):
            ask(stack, fixture, answer)
        return
    assert ask(stack, fixture, answer) == encode_table(answer.table(answer.schema.names))
    count = stack.query(f"SELECT count(*) FROM {SCHEMA}.{table_name(fixture)}")
    assert count == [[len(answer.rows)]]


@pytest.mark.parametrize("name", _ASKED)
def test_a_predicate_applies_after_the_merge(stack: Stack, name: str) -> None:
    """Values that only the base files or only logs hold are asked for, as well as the newest."""
    for fixture in hudi_fixtures(names=[name]):
        answers = fixture.answers()
        answer = answers.snapshot
        place = answer.schema.names.index("id")
        ids = {row[place] for old in answers.as_of for row in old.answer.rows}
        ids |= {row[place] for row in answer.rows}
        for key in sorted(ids):
            expected = [row for row in answer.rows if row[place] == key]
            found = ask(stack, fixture, answer, f"WHERE id = {key}")
            assert found == [list(row) for row in expected], (fixture.id, key)
        names = {row[answer.schema.names.index("name")] for row in answers.read_optimized.rows}
        kind = answer.schema.field("name").type
        for text in sorted(filter(None, names)):
            expected = [r for r in answer.rows if r[answer.schema.names.index("name")] == text]
            found = ask(stack, fixture, answer, f"WHERE name = '{encode(text, kind)}'")
            assert len(found) == len(expected), (fixture.id, text)


def test_older_versions_are_merged_up_to_their_instant(stack: Stack) -> None:
    for fixture in hudi_fixtures(names=["mor_upserts"]):
        for old in fixture.answers().as_of:
            if old.answer.error is None:
                found = ask(stack, fixture, old.answer, f"FOR VERSION AS OF '{old.instant}'")
                expected = encode_table(old.answer.table(old.answer.schema.names))
                assert found == expected, (fixture.id, old.instant)
