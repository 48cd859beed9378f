"""Hudi tables that Spark wrote, read through the Python API: rows equal Spark's own answers.

The law: rows with pruning equal the rows without, and those equal Spark's, for the newest version,
for older ones, for changes and for the read-optimised form.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.errors import BridgeError, ReadVersionNotFound, SchemaConflict, UnsupportedTable
from bridge.storage.local_disk.local import LocalStorage
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_expectations import (
    changes_unlike_spark,
    refused_by_api,
    unlike_spark,
)
from tests.support.hudi_fixtures import Answer, HudiFixture, few, hudi_fixtures
from tests.support.hudi_tables import HudiTable
from tests.tiers import examples

EVERY = few(hudi_fixtures())
CONDITIONS = examples(12, 12, 40)
FIXTURES = [pytest.param(f, id=f.id) for f in EVERY if not refused_by_api(f)]
LIKE_SPARK = [
    pytest.param(f, id=f.id) for f in EVERY if not refused_by_api(f) and not unlike_spark(f)
]
CHANGES = [
    pytest.param(f, id=f.id)
    for f in EVERY
    if not refused_by_api(f) and not unlike_spark(f) and not changes_unlike_spark(f)
]


@pytest.fixture(scope="module")
def session() -> Iterator[bridge.Session]:
    with bridge.connect() as opened:
        yield opened


def rows(found: pa.Table, answer: Answer) -> list[list[object]]:
    """Our rows in the columns and the types of Spark's answer."""
    expected = answer.table(answer.schema.names)
    names = [n.lower() for n in expected.column_names]
    chosen = found.select(names).rename_columns(expected.column_names)
    arrays = [_as(chosen[field.name].combine_chunks(), field.type) for field in expected.schema]
    return encode_table(pa.Table.from_arrays(arrays, schema=expected.schema))


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if pa.types.is_string(kind):
        # Spark shows the key of a Timestamp key generator as text.
        return pa.array([None if v is None else str(v) for v in values.to_pylist()], kind)
    if pa.types.is_struct(kind):
        # Spark keeps the case of names.
        parts = [_as(values.field(i), field.type) for i, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=values.is_null())
    return pa.array(values.to_pylist(), kind)


def spark(answer: Answer) -> list[list[object]]:
    return encode_table(answer.table(answer.schema.names))


@pytest.mark.parametrize("fixture", LIKE_SPARK)
def test_the_newest_version_is_sparks(fixture: HudiFixture, session: bridge.Session) -> None:
    answers = fixture.answers()
    found = session.table(str(fixture.path())).scan().to_arrow()
    assert rows(found, answers.snapshot) == spark(answers.snapshot)


@pytest.mark.parametrize("fixture", [pytest.param(f, id=f.id) for f in EVERY if refused_by_api(f)])
def test_what_is_not_read_right_is_refused(fixture: HudiFixture, session: bridge.Session) -> None:
    with pytest.raises((UnsupportedTable, SchemaConflict)):
        session.table(str(fixture.path())).scan().to_arrow()


@pytest.mark.parametrize("fixture", LIKE_SPARK)
def test_base_files_alone_are_sparks_read_optimised_rows(
    fixture: HudiFixture, session: bridge.Session
) -> None:
    answer = fixture.answers().read_optimized
    if answer.error is not None:
        pytest.skip("Spark has no answer")
    found = session.table(str(fixture.path())).scan(read_optimized=True).to_arrow()
    assert rows(found, answer) == spark(answer)


@pytest.mark.parametrize("fixture", LIKE_SPARK)
def test_older_versions_are_sparks_or_are_refused(
    fixture: HudiFixture, session: bridge.Session
) -> None:
    table = session.table(str(fixture.path()))
    for old in fixture.answers().as_of:
        if old.answer.error is not None:
            continue
        try:
            found = table.scan(version=old.instant).to_arrow()
        except ReadVersionNotFound:
            continue  # what was cleaned cannot be proven to be whole
        assert rows(found, old.answer) == spark(old.answer), old.instant


@pytest.mark.parametrize("fixture", CHANGES)
def test_changes_are_sparks(fixture: HudiFixture, session: bridge.Session) -> None:
    """Of logs, Spark also shows versions of a row that came late and lost the merge."""
    table = session.table(str(fixture.path()))
    answers = fixture.answers()
    by = "completion" if answers.table_version >= 8 else "requested"
    for asked in answers.incremental:
        if asked.answer.error is not None or asked.by != by:
            continue
        after = asked.begin
        if fixture.bundle == "1.0.2" and by == "completion":
            after = str(max(int(after) - 1, 0))  # there the start belongs to the window
        found = rows(table.scan(changes=(after, asked.end or "")).to_arrow(), asked.answer)
        expected = spark(asked.answer)
        if answers.table_type == "MERGE_ON_READ":
            assert all(row in expected for row in found), (asked.begin, asked.end)
            assert len(found) > 0 or not expected
        else:
            assert found == expected, (asked.begin, asked.end)


def conditions(found: pa.Table, rng: random.Random, count: int) -> list[str]:
    """Conditions about values that the table holds, and about their neighbours."""
    made: list[str] = []
    simple = [
        field
        for field in found.schema
        if pa.types.is_integer(field.type)
        or pa.types.is_string(field.type)
        or pa.types.is_floating(field.type)
    ]
    while len(made) < count and simple:
        field = rng.choice(simple)
        values = found[field.name].drop_null().to_pylist() or [1]
        value = rng.choice(values)
        if isinstance(value, str):
            text = "'" + value.replace("'", "''") + "'"
        elif isinstance(value, float):
            text = (
                "1.5e0"
                if value != value or value in (float("inf"), -float("inf"))
                else f"{value!r}e0"
            )
        else:
            text = str(value + rng.choice((-1, 0, 0, 1)))
        op = rng.choice(("=", "=", "<", ">", "<=", ">=", "<>"))
        made.append(
            rng.choice(
                (
                    f'"{field.name}" {op} {text}',
                    f'"{field.name}" IS NULL',
                    f'NOT ("{field.name}" {op} {text})',
                )
            )
        )
    return made


@pytest.mark.parametrize("fixture", FIXTURES)
def test_pruning_drops_no_row(
    fixture: HudiFixture, session: bridge.Session, tmp_path: Path
) -> None:
    location = str(fixture.unpack(tmp_path))
    table = session.table(location)
    whole = table.scan().to_arrow()
    table.index.build()
    rng = random.Random(fixture.id)
    for condition in conditions(whole, rng, CONDITIONS):
        kept = table.scan(condition).to_arrow()
        every = table.scan(condition, pruning=False).to_arrow()
        assert encode_table(kept) == encode_table(every), condition


def test_an_index_skips_base_files(session: bridge.Session, tmp_path: Path) -> None:
    for fixture in hudi_fixtures(names=["cow_upserts"]):
        location = str(fixture.unpack(tmp_path / fixture.bundle))
        table = session.table(location)
        table.index.build()
        report = table.scan("id = 5").explain()
        assert report.files_kept < report.files_total


def test_an_index_skips_slices_with_logs(session: bridge.Session, tmp_path: Path) -> None:
    for fixture in hudi_fixtures(names=["mor_upserts"]):
        location = str(fixture.unpack(tmp_path / fixture.bundle))
        table = session.table(location)
        before = table.scan("id = -7").explain()
        assert before.files_kept == before.files_total == 3
        table.index.build()
        assert table.scan("id = -7").explain().files_kept == 0
        # The update in a log moved the row into the predicate; the base file's bounds exclude it.
        assert table.scan("name = 'uno'").to_arrow()["id"].to_pylist() == [1]
        assert table.scan("name = 'uno'").explain().files_kept < 3
        assert table.scan("price = -2").to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("name", ["cow_upserts", "mor_upserts", "cow_metadata", "mor_metadata"])
def test_a_query_lists_no_directory_of_data(
    session: bridge.Session, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for fixture in hudi_fixtures(names=[name]):
        table = session.table(str(fixture.path()))
        table.scan("id = 5").explain()
        listed: list[str] = []
        for method in ("pages", "list_all", "list_directories"):
            original = getattr(LocalStorage, method)

            def note(
                self: Any, prefix: str, *a: Any, _f: Any = original, _to: Any = listed, **k: Any
            ):
                _to.append(prefix)
                return _f(self, prefix, *a, **k)

            monkeypatch.setattr(LocalStorage, method, note)
        assert table.scan("id = 5").explain().files_total > 0
        monkeypatch.undo()
        assert listed and all("/.hoodie" in prefix for prefix in listed), (fixture.id, listed)


def test_a_new_version_of_a_file_is_a_row_of_its_own(
    session: bridge.Session, tmp_path: Path
) -> None:
    """RFC-27's example: ``file1_c1`` holds other values than ``file1_c2``, which replaces it."""
    table = HudiTable(tmp_path / "t", 8, "COPY_ON_WRITE", hoodie__table__recordkey__fields="k")
    schema = {"type": "record", "name": "t", "fields": [{"name": "k", "type": ["null", "long"]}]}

    def write(instant: str, first: int) -> None:
        file = table.base("", "file1-0", instant)
        path = table.root / file.name
        pq.write_table(pa.table({"k": range(first, first + 10)}), path)
        written = replace(file, size=path.stat().st_size)
        table.commit(instant, [written], action="commit", schema=json.dumps(schema))

    write("20260101000000001", 0)
    opened = session.table(str(table.root))
    opened.index.build()
    assert opened.scan("k = 5").files().num_rows == 1
    assert opened.scan("k = 105").files().num_rows == 0
    write("20260101000000002", 100)
    for refreshed in (False, True):
        if refreshed:
            opened.index.refresh()
        assert opened.scan("k = 105").to_arrow()["k"].to_pylist() == [105]
        assert opened.scan("k = 5").files().num_rows == (0 if refreshed else 1)
        older = opened.scan("k = 5", version="20260101000000001").to_arrow()
        assert older["k"].to_pylist() == [5]
        assert opened.scan("k = 105", version="20260101000000001").to_arrow().num_rows == 0


def test_a_file_that_a_clean_removed_meanwhile_is_an_error(
    session: bridge.Session, tmp_path: Path
) -> None:
    for fixture in hudi_fixtures(names=["cow_upserts", "mor_upserts"]):
        location = fixture.unpack(tmp_path / fixture.bundle)
        scan = session.table(str(location)).scan()
        paths = scan.files()["path"].to_pylist()
        Path(paths[0].removeprefix("file://")).unlink()
        with pytest.raises(BridgeError, match=r"FILE_CHANGED|FILE_UNREADABLE"):
            scan.to_arrow()
