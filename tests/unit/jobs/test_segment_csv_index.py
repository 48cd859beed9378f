"""Indexes of tables of CSV and JSON segments: typed bounds from text, built in the one read."""

from __future__ import annotations

from pathlib import Path

import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import FileAmbiguous
from bridge.segments.commands import add, indexes, tables
from tests.support.lake import age

CONFIG = Config()


def write(root: Path, name: str, text: str) -> str:
    path = root / "facts" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    age(path)
    return str(path)


def kept(table: str, where: str) -> int:
    with bridge.connect() as session:
        return session.table(table).scan(where).explain().files_kept


def test_typed_csv_is_pruned_by_its_declared_types(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    columns = [("id", "bigint"), ("day", "date"), ("price", "decimal(8,2)")]
    tables.create_table(
        CONFIG, table, format="csv", columns=columns, properties={"csv.header_lines": "1"}
    )
    for i in range(3):
        rows = "".join(f"{i}.50,{9 + i},2024-0{i + 1}-05,more\n" for _ in range(3))
        path = write(tmp_path, f"f{i}.csv", "price,id,day,note\n" + rows)
        add.add_segment(CONFIG, table, paths=[path], local=True)
    indexes.create_index(CONFIG, table, name="m", kind="minmax", local=True)
    indexes.create_index(CONFIG, table, name="b", kind="bloom", columns=["id"], local=True)
    # As text, 9 is greater than 10 and 11.
    assert kept(table, "id > 9") == 2
    assert kept(table, "id = 10") == 1
    assert kept(table, "day >= date '2024-03-01'") == 1
    assert kept(table, "price = 1.5") == 1
    assert kept(table, "price = 1.6") == 0
    doubt = write(tmp_path, "g.csv", "price,id,day,note\n1.5,1e1,2024-01-05,x\n")
    add.add_segment(CONFIG, table, paths=[doubt], local=True)
    assert kept(table, "id = 10") == 2
    assert kept(table, "price = 1.6") == 0
    tables.change_type(CONFIG, table, "id", "string")
    assert kept(table, "price = 1.6") == 0  # of the other columns as much is known as before
    assert kept(table, "id = 'none'") == 4
    tables.drop_columns(CONFIG, table, ["day"])
    assert kept(table, "price = 1.6") == 0
    assert indexes.rebuild_index(CONFIG, table, local=True)["read"] == 4
    assert kept(table, "id = 'none'") == 0
    assert indexes.rebuild_index(CONFIG, table, local=True)["read"] == 0


def test_the_python_api_reads_what_is_certain_and_refuses_the_rest(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    columns = [("id", "bigint"), ("s", "string"), ("f", "float")]
    tables.create_table(CONFIG, table, format="csv", columns=columns)
    add.add_segment(CONFIG, table, paths=[write(tmp_path, "a", "1,x,0.5\n2,,\n")], local=True)
    with bridge.connect() as session:
        found = session.table(table).scan("id > 1").to_arrow().to_pylist()
        assert found == [{"id": 2, "s": "", "f": None}]
        assert session.table(table).scan().to_arrow().num_rows == 2
    add.add_segment(CONFIG, table, paths=[write(tmp_path, "b", "1e1,y,0.1\n")], local=True)
    with bridge.connect() as session:
        assert session.table(table).scan(columns=["s"]).to_arrow().num_rows == 3
        for column in ("id", "f"):
            with pytest.raises(FileAmbiguous, match=f"differ in values of '{column}'"):
                session.table(table).scan(columns=[column]).to_arrow()
    add.add_segment(
        CONFIG, table, paths=[write(tmp_path, "c", '3,"say ""y""",0.5\n\n4\n')], local=True
    )
    with bridge.connect() as session:
        found = session.table(table).scan(columns=["s"]).to_arrow()["s"].to_pylist()
        assert sorted(map(str, found)) == ["", "None", "None", 'say "y"', "x", "y"]
    add.add_segment(CONFIG, table, paths=[write(tmp_path, "d", "1,\0,0.1\n")], local=True)
    with bridge.connect() as session, pytest.raises(FileAmbiguous, match="it holds a NUL"):
        session.table(table).scan(columns=["s"]).to_arrow()


def test_json_is_pruned(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    tables.create_table(CONFIG, table, format="json", columns=[("id", "int"), ("s", "string")])
    for i in range(3):
        path = write(tmp_path, f"f{i}.json", f'{{"id": {i}, "s": "x{i}"}}\n')
        add.add_segment(CONFIG, table, paths=[path], local=True)
    indexes.create_index(CONFIG, table, name="m", kind="minmax", local=True)
    assert kept(table, "id = 1") == 1
    assert kept(table, "s = 'x9'") == 0
