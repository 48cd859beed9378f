"""Tables that keep a history of schemas: read where every name always was the same column."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import bridge
from bridge.errors import UnsupportedTable
from tests.support.hudi_expectations import keeps_schemas
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures

HISTORIES = [pytest.param(f, id=f.id) for f in hudi_fixtures() if keeps_schemas(f)]
Version = dict[str, Any]


def version(number: int, *fields: tuple[int, str, Any]) -> Version:
    told = [{"id": i, "name": name, "optional": True, "type": kind} for i, name, kind in fields]
    return {"version_id": number, "max_column_id": 9, "type": "record", "fields": told}


BEFORE = ((0, "id", "int"), (1, "name", "string"), (2, "price", "double"))
ADDED = (*BEFORE, (3, "extra", "string"))


def written(root: Path, latest: str, history: str | None) -> None:
    """Gives a table a history: in its commits, and in a file of its own."""
    for path in (root / ".hoodie" / "timeline").glob("*commit"):
        reader = fastavro.reader(io.BytesIO(path.read_bytes()))
        (body,) = list(reader)
        body["extraMetadata"]["latest_schema"] = latest
        out = io.BytesIO()
        fastavro.writer(out, reader.writer_schema, [body])
        path.write_bytes(out.getvalue())
    if history is not None:
        (root / ".hoodie" / ".schema").mkdir(exist_ok=True)
        (root / ".hoodie" / ".schema" / "1_2.schemacommit").write_text(history)


def history(*versions: Version) -> str:
    return json.dumps({"schemas": list(versions)})


def rows(root: Path) -> pa.Table:
    with bridge.connect() as session:
        return session.table(str(root)).scan().to_arrow()


@pytest.mark.parametrize("name", ["cow_added_column", "mor_added_column"])
def test_columns_that_were_only_added_are_found_by_name(name: str, tmp_path: Path) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=[name])
    plain, kept = fixture.unpack(tmp_path / "plain"), fixture.unpack(tmp_path / "kept")
    newest = version(7, *ADDED)
    written(kept, json.dumps(newest), history(newest, version(0, *BEFORE)))
    found = rows(kept)
    assert found.num_rows and found.equals(rows(plain))


RENAMED = version(5, *BEFORE[:2], (2, "cost", "double"))
RETYPED = version(5, *BEFORE[:2], (2, "price", "float"))
DROPPED = version(5, *BEFORE[:2], (9, "price", "double"))
OTHER_CASE = version(5, *BEFORE, (9, "PRICE", "double"))
NESTED = version(5, *BEFORE, (3, "extra", {"type": "array", "element_id": 8, "element": "int"}))
UNSURE = {
    "renamed": history(version(7, *ADDED), RENAMED),
    "retyped": history(version(7, *ADDED), RETYPED),
    "dropped and added again": history(version(7, *ADDED), DROPPED),
    "another case": history(version(7, *ADDED), OTHER_CASE),
    "of another shape": history(version(7, *ADDED), NESTED),
    "without the version in use": history(version(0, *BEFORE)),
    "without a history": None,
    "half-written": history(version(7, *ADDED))[:-9],
    "without fields": '{"schemas": [{"version_id": 7}]}',
    "of something else": "[]",
}


@pytest.mark.parametrize("told", UNSURE.values(), ids=UNSURE.keys())
def test_what_is_not_sure_is_refused(told: str | None, tmp_path: Path) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_added_column"])
    root = fixture.unpack(tmp_path)
    written(root, json.dumps(version(7, *ADDED)), told)
    with pytest.raises(UnsupportedTable, match="renamed"):
        rows(root)


@pytest.mark.parametrize("fixture", HISTORIES)
def test_histories_that_spark_wrote_are_refused(fixture: HudiFixture) -> None:
    """In all of them a name meant two columns, or a column had two types."""
    with pytest.raises(UnsupportedTable, match="renamed"):
        rows(fixture.path())
