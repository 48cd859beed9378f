"""Tables that keep a history of schemas: columns are known by their ids."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import bridge
from bridge.formats.hudi.by_id import FileColumn, FileColumns
from bridge.kernel.errors import UnsupportedTable
from bridge.table.hudi.schema.schema_history import Node, SchemaHistory, SchemaPart, SchemaVersion
from tests.support.hudi_evolving import EvolvingTable
from tests.support.hudi_fixtures import hudi_fixtures

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


UNSURE = {
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


@pytest.mark.parametrize("version", [6, 8])
def test_a_change_that_failed_long_ago_was_none(tmp_path: Path, version: int) -> None:
    """It left its history behind. Files that were written since have the older names."""
    made = EvolvingTable(tmp_path / "t", Random(2), version)
    made.write()
    made.rename()
    made.fail_to_change()
    for _ in range(4):
        made.write()
    instants = [instant for instant, _, _ in made.states]
    made.hudi.archive(*instants[:3])
    names = [column.name for column in made.columns]
    found = rows(made.hudi.root).select(names).to_pylist()
    assert sorted(found, key=repr) == sorted(made.expected(), key=repr)
    assert any(row[name] is not None for row in found for name in names)


@pytest.mark.parametrize("version", [6, 8])
def test_a_savepoint_tells_nothing_of_later_changes(tmp_path: Path, version: int) -> None:
    """The newest commit, of a service, does not tell its schema's version."""
    made = EvolvingTable(tmp_path / "t", Random(3), version)
    made.write()
    made.rename()
    while made.states[-1][0] not in made.telling:
        made.write()
    saved = made.states[-1][0]
    made.rename()
    while made.states[-1][0] in made.telling:
        made.write()
    made.hudi.complete(saved, "savepoint", {"comments": "keep"})
    instants = [instant for instant, _, _ in made.states]
    made.hudi.archive(*(instant for instant in instants[:-1] if instant != saved))
    names = [column.name for column in made.columns]
    found = rows(made.hudi.root).select(names).to_pylist()
    assert sorted(found, key=repr) == sorted(made.expected(), key=repr)


def node(*fields: tuple[int, str, Any]) -> SchemaVersion:
    """A version with these columns; a list of fields is a struct."""

    def of(kind: Any) -> Node:
        if isinstance(kind, str):
            return Node(kind)
        return Node("record", tuple(SchemaPart(i, name, of(inner)) for i, name, inner in kind))

    return SchemaVersion(0, of(list(fields)))


def told(old: SchemaVersion, new: SchemaVersion) -> FileColumns:
    return SchemaHistory([old, replace(new, number=9)], {}).columns(old, new)


def test_what_stayed_is_found_by_name() -> None:
    old = node((1, "a", "int"), (2, "st", [(3, "x", "int")]), (9, "gone", "int"))
    new = node((2, "st", [(3, "x", "int"), (5, "y", "int")]), (1, "a", "int"), (4, "b", "int"))
    assert told(old, new) == {}


def test_names_and_types_of_a_file() -> None:
    old = node((1, "a", "int"), (2, "b", "string"), (3, "c", "int"))
    new = node((1, "b", "int"), (4, "a", "string"), (3, "c", "long"))
    assert told(old, new) == {
        "b": FileColumn("a"),
        "a": None,
        "c": FileColumn("c", "int"),
    }


def test_fields_of_structs_have_ids_too() -> None:
    old = node((1, "st", [(2, "x", "int"), (3, "y", [(4, "z", "int")])]))
    new = node((1, "st", [(2, "w", "int"), (5, "x", "int"), (3, "y", [(4, "z", "long")])]))
    assert told(old, new) == {
        "st": FileColumn(
            "st",
            "",
            {
                "w": FileColumn("x"),
                "x": None,
                "y": FileColumn("y", "", {"z": FileColumn("z", "int")}),
            },
        )
    }


def test_the_version_of_an_instant() -> None:
    first, second, third = (replace(node((i, "a", "int")), number=i * 10) for i in range(3))
    history = SchemaHistory([third, first, second], {"25": second})
    assert [history.at(i).number for i in ("1", "10", "19", "20", "24", "25", "30")] == [
        *(0, 10, 10, 20),
        *(20, 10, 20),
    ]
