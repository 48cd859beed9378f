"""Commands on tables of segments: columns, properties, indexes, compaction, and what is blocked."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    ColumnNotFound,
    InvalidRequest,
    OperationBlocked,
    ReadVersionNotFound,
    ReadVersionUnsupported,
    SegmentNotFound,
    SegmentSchemaMismatch,
    TableExists,
    TableNotFound,
)
from bridge.segments.commands import add, compaction, indexes, manage, tables
from tests.unit.api.api_flights import write

CONFIG = Config()


@pytest.fixture
def table(tmp_path: Path) -> str:
    made = str(tmp_path / "t")
    columns = [("id", "int"), ("name", "string"), ("x", "float")]
    tables.create_table(CONFIG, made, format="parquet", columns=columns)
    return made


def fact(table: str, name: str, first: int, rows: int = 10) -> str:
    data = pa.table(
        {
            "id": pa.array(range(first, first + rows), pa.int32()),
            "name": [f"n{i}" for i in range(first, first + rows)],
            "x": pa.array([float(i) for i in range(rows)], pa.float32()),
        }
    )
    return str(write(Path(table).parent / "facts" / f"{name}.parquet", data))


def grow(table: str, count: int) -> None:
    for i in range(count):
        add.add_segment(CONFIG, table, paths=[fact(table, f"f{i}", i * 10)], local=True)


def states(table: str) -> dict[str, str]:
    return {s["id"]: s["status"] for s in manage.list_segments(CONFIG, table)["segments"]}


def rows(table: str, **how: Any) -> int:
    with bridge.connect() as session:
        return session.table(table).scan(**how).to_arrow().num_rows


def test_one_table_a_place(table: str) -> None:
    with pytest.raises(TableExists):
        tables.create_table(CONFIG, table, format="orc", columns=[("a", "int")])
    tables.drop_table(CONFIG, table)
    assert not tables.drop_table(CONFIG, table, if_exists=True)["dropped"]
    with pytest.raises(TableNotFound):
        tables.describe(CONFIG, table)
    tables.create_table(CONFIG, table, format="orc", columns=[("a", "int")])
    assert tables.describe(CONFIG, table)["format"] == "orc"


def test_other_tables_have_no_segments(tmp_path: Path) -> None:
    fact(str(tmp_path / "t"), "a", 0)
    for command in (
        lambda where: add.add_segment(CONFIG, where, paths=["x"]),
        lambda where: manage.list_segments(CONFIG, where),
        lambda where: compaction.compact(CONFIG, where),
        lambda where: tables.drop_table(CONFIG, where),
    ):
        with pytest.raises(OperationBlocked, match="has no segments"):
            command(str(tmp_path / "facts"))
    with pytest.raises(ReadVersionUnsupported):
        rows(str(tmp_path / "facts"), segments=["0"])


def test_columns_change(table: str) -> None:
    grow(table, 2)
    with pytest.raises(ColumnNotFound):
        tables.drop_columns(CONFIG, table, ["zz"])
    with pytest.raises(InvalidRequest, match="no column left"):
        tables.drop_columns(CONFIG, table, ["id", "name", "x"])
    with pytest.raises(InvalidRequest, match="cannot be read as string"):
        tables.change_type(CONFIG, table, "id", "string")
    with pytest.raises(ColumnNotFound):
        tables.change_type(CONFIG, table, "zz", "string")
    indexes.create_index(CONFIG, table, name="b", kind="bloom", columns=["id"], local=True)
    tables.change_type(CONFIG, table, "id", "bigint")
    tables.change_type(CONFIG, table, "x", "double")
    assert rows(table, where="id = 13") == 1
    assert rows(table, where="id IN (13, 4)") == 2
    with pytest.raises(InvalidRequest, match="index b is on column id"):
        tables.drop_columns(CONFIG, table, ["ID"])
    tables.drop_columns(CONFIG, table, ["X", "name"])
    described = tables.describe(CONFIG, table)
    assert described["columns"] == [{"name": "id", "type": "bigint", "comment": None}]
    assert rows(table) == 20
    # Files that carry the wider type are the table's now.
    wide = pa.table({"id": pa.array([100], pa.int64())})
    path = write(Path(table).parent / "facts" / "wide.parquet", wide)
    add.add_segment(CONFIG, table, paths=[str(path)], local=True)
    assert rows(table, where="id = 100") == 1


def test_a_segment_keeps_the_properties_it_was_added_with(tmp_path: Path) -> None:
    table = str(tmp_path / "c")
    tables.create_table(CONFIG, table, format="csv", columns=[("a", "int")])
    for name in ("skipbridge.x", "orc.x", "comment"):
        with pytest.raises(OperationBlocked, match="SET TBLPROPERTIES"):
            tables.set_properties(CONFIG, table, {name: "1"})
        with pytest.raises(OperationBlocked, match="UNSET TBLPROPERTIES"):
            tables.unset_properties(CONFIG, table, [name])
    with pytest.raises(InvalidRequest, match="one character"):
        tables.set_properties(CONFIG, table, {"csv.quote": "ab"})
    (tmp_path / "a.csv").write_text("1\n")
    add.add_segment(CONFIG, table, paths=[str(tmp_path / "a.csv")], local=True)
    assert tables.set_properties(CONFIG, table, {"csv.delimiter": ";"})["properties"] == {
        "csv.delimiter": ";",
        "csv.header": "a",
    }
    assert (
        "csv.delimiter"
        not in tables.unset_properties(CONFIG, table, ["csv.delimiter"])["properties"]
    )


def test_segments_are_managed_by_their_ids(table: str) -> None:
    grow(table, 3)
    manage.switch_segments(CONFIG, table, ids=["1"], enabled=False)
    assert states(table) == {"0": "Success", "1": "Disabled", "2": "Success"}
    assert rows(table) == 20
    with pytest.raises(SegmentNotFound, match="is 'Disabled'"):
        rows(table, segments=["1"])
    manage.switch_segments(CONFIG, table, ids=["1"], enabled=True)
    manage.delete_segments(CONFIG, table, ids=["0", "2"])
    assert rows(table) == 10
    enable = partial(manage.switch_segments, enabled=True)
    disable = partial(manage.switch_segments, enabled=False)
    for command in (manage.delete_segments, enable, disable):
        for id in ("0", "7", "x"):
            with pytest.raises(SegmentNotFound):
                command(CONFIG, table, ids=["1", id])
        with pytest.raises(InvalidRequest):
            command(CONFIG, table, ids=[])
    assert states(table)["1"] == "Success"
    assert manage.clean(CONFIG, table)["segments"] == ["0", "2"]
    assert states(table) == {"1": "Success"}
    assert add.add_segment(CONFIG, table, paths=[fact(table, "z", 90)], local=True)["segment"] == (
        "3"
    )


def test_segments_are_deleted_by_time(table: str) -> None:
    grow(table, 2)
    now = datetime.now().astimezone()
    early = manage.delete_segments_before(CONFIG, table, time=now - timedelta(hours=1))
    assert early["segments"] == []
    late = manage.delete_segments_before(CONFIG, table, time=now + timedelta(hours=1))
    assert late["segments"] == ["0", "1"]
    assert rows(table) == 0


def test_compaction_names_segments_by_the_first(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "THRESHOLD", (2, 2))
    grow(table, 9)
    indexes.create_index(CONFIG, table, name="m", kind="minmax", local=True)
    minor = compaction.compact(CONFIG, table)
    assert minor["merged"] == {
        "0.1": ["0", "1"],
        "2.1": ["2", "3"],
        "4.1": ["4", "5"],
        "6.1": ["6", "7"],
        "0.2": ["0.1", "2.1"],
        "4.2": ["4.1", "6.1"],
    }
    assert [i for i, s in states(table).items() if s == "Success"] == ["0.2", "4.2", "8"]
    assert compaction.compact(CONFIG, table)["merged"] == {}
    custom = compaction.compact(CONFIG, table, kind="custom", ids=["8", "4.2"])
    assert custom["merged"] == {"4.3": ["4.2", "8"]}
    manage.clean(CONFIG, table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "MAJOR_SIZE", 10)
        assert compaction.compact(CONFIG, table, kind="major")["merged"] == {}
    major = compaction.compact(CONFIG, table, kind="major")
    assert major["merged"] == {"0.4": ["0.2", "4.3"]}
    assert rows(table) == 90
    (last,) = [
        s for s in manage.list_segments(CONFIG, table)["segments"] if s["status"] == "Success"
    ]
    assert (last["files"], last["indexed_files"]) == (9, 9)
    with pytest.raises(SegmentNotFound, match=r"compacted into 0\.4"):
        manage.delete_segments(CONFIG, table, ids=["0.2"])


def test_wrong_compactions_are_refused(table: str) -> None:
    grow(table, 2)
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"kind": "custom", "ids": ["0"]}, InvalidRequest),
        ({"kind": "custom", "ids": ["0", "0"]}, InvalidRequest),
        ({"kind": "custom", "ids": ["0", "9"]}, SegmentNotFound),
        ({"kind": "minor", "ids": ["0", "1"]}, InvalidRequest),
        ({"kind": "other"}, InvalidRequest),
    ]
    for arguments, error in wrong:
        with pytest.raises(error):
            compaction.compact(CONFIG, table, **arguments)
    assert states(table) == {"0": "Success", "1": "Success"}


def test_indexes_by_name(table: str) -> None:
    indexes.create_index(CONFIG, table, name="M", kind="minmax", local=True)
    indexes.create_index(
        CONFIG, table, name="b", kind="bloomfilter", columns=["name", "id"], local=True
    )
    indexes.create_index(
        CONFIG, table, name="later", kind="values", columns=["name"], deferred=True, local=True
    )
    grow(table, 3)
    with bridge.connect() as session:

        def kept(where: str) -> int:
            return session.table(table).scan(where).explain().files_kept

        assert kept("id = 13") == 1
        assert kept("name = 'n13'") == 1
        held = {i["name"]: i for i in tables.describe(CONFIG, table)["indexes"]}
        assert held["later"]["deferred"]
        assert held["b"]["columns"] == ["name", "id"]
        indexes.show_index(CONFIG, table, name="b", visible=False)
        indexes.show_index(CONFIG, table, name="later", visible=False)
        indexes.rebuild_index(CONFIG, table, name="later", local=True)
        indexes.rebuild_index(CONFIG, table, local=True)
    with bridge.connect() as session:
        hidden = session.table(table).scan("name = 'n13'").explain()
        assert {u.index for u in hidden.not_used if u.reason == "INVISIBLE"} or (
            hidden.files_kept == 1  # min/max of the names
        )
    with pytest.raises(InvalidRequest, match="has an index b already"):
        indexes.create_index(CONFIG, table, name="B", kind="minmax", local=True)
    again = indexes.create_index(
        CONFIG, table, name="b", kind="minmax", if_not_exists=True, local=True
    )
    assert not again["created"]
    with pytest.raises(ColumnNotFound):
        indexes.create_index(CONFIG, table, name="z", kind="bloom", columns=["zz"], local=True)
    with pytest.raises(InvalidRequest, match="names no columns"):
        indexes.create_index(CONFIG, table, name="z", kind="bloom", local=True)
    for unknown in (indexes.drop_index, indexes.rebuild_index):
        with pytest.raises(InvalidRequest, match="has no index"):
            unknown(CONFIG, table, name="zz")
    assert indexes.drop_index(CONFIG, table, name="b")["dropped"]
    assert not indexes.drop_index(CONFIG, table, name="b", if_exists=True)["dropped"]
    for name in ("m", "later"):
        indexes.drop_index(CONFIG, table, name=name)
    assert manage.list_segments(CONFIG, table)["segments"][0]["indexed_files"] is None


def test_older_versions_are_read_by_number_and_time(table: str) -> None:
    grow(table, 3)
    assert rows(table, version="3") == 20
    assert rows(table, version="3", segments=["1"]) == 10
    for unknown in ("9", "x"):
        with pytest.raises(ReadVersionNotFound):
            rows(table, version=unknown)
    with pytest.raises(ReadVersionUnsupported):
        rows(table, changes=("1", "2"))
    tables.drop_table(CONFIG, table)
    tables.create_table(CONFIG, table, format="parquet", columns=[("id", "int")])
    with pytest.raises(ReadVersionNotFound):
        rows(table, version="4")


def test_segments_may_be_of_other_formats(table: str) -> None:
    import pyarrow.orc as po

    grow(table, 1)
    path = Path(table).parent / "facts" / "o.orc"
    po.write_table(
        pa.table({"id": pa.array([70], pa.int32()), "name": ["o"], "x": pa.array([0.5])}).cast(
            pa.schema([("id", pa.int32()), ("name", pa.string()), ("x", pa.float32())])
        ),
        path,
    )
    add.add_segment(CONFIG, table, paths=[str(path)], format="orc", local=True)
    compaction.compact(CONFIG, table, kind="custom", ids=["0", "1"])
    assert rows(table) == 11
    assert rows(table, where="id = 70") == 1
    assert manage.list_segments(CONFIG, table)["segments"][1]["format"] == "orc, parquet"


def test_a_file_with_another_type_is_refused_after_the_columns_changed(table: str) -> None:
    grow(table, 1)
    wrong = pa.table({"id": pa.array([1], pa.int64()), "name": ["a"], "x": pa.array([0.5])})
    path = Path(table).parent / "facts" / "wrong.parquet"
    pq.write_table(wrong, path)
    with pytest.raises(SegmentSchemaMismatch):
        add.add_segment(CONFIG, table, paths=[str(path)], local=True)


def test_entries_of_csv_hold_under_the_types_they_were_made_with(tmp_path: Path) -> None:
    table = str(tmp_path / "c")
    header = {"csv.header_lines": "1"}
    columns = [("id", "bigint"), ("name", "string")]
    tables.create_table(CONFIG, table, format="csv", columns=columns, properties=header)
    indexes.create_index(CONFIG, table, name="m", kind="minmax", local=True)
    for i in range(3):
        path = tmp_path / "facts" / f"{i}.csv"
        path.parent.mkdir(exist_ok=True)
        order = "note,name,id\nx," if i == 2 else "id,name\n"
        path.write_text(order + (f"n{i},{i + 5}\n" if i == 2 else f"{i + 5},n{i}\n"))
        os.utime(path, (1.6e9, 1.6e9))
    add.add_segment(CONFIG, table, paths=[str(tmp_path / "facts")], local=True)

    def kept(where: str) -> int:
        with bridge.connect() as session:
            return session.table(table).scan(where).explain().files_kept

    assert kept("id = 6") == 1
    assert kept("id > 10") == 0
    assert kept("name = 'n2'") == 1
    tables.change_type(CONFIG, table, "id", "string")
    assert kept("id > '10'") == 3  # as a text, '5' is more than '10'
    indexes.rebuild_index(CONFIG, table, local=True)
    assert kept("id > '10'") == 3
    assert kept("id = '6'") == 1
    tables.drop_columns(CONFIG, table, ["id"])
    indexes.rebuild_index(CONFIG, table, local=True)
    assert kept("name = 'n2'") == 1
