"""What adding files checks: the columns of each file, and how it is read."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    BridgeError,
    FileUnreadable,
    InvalidRequest,
    SegmentSchemaMismatch,
    UnsupportedType,
)
from bridge.segments.commands import add, manage, tables
from bridge.segments.commands.fact_files import find_fact_files
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import FileTable
from bridge.table.segments import declare
from bridge.table.segments.log import SegmentLog
from bridge.table.segments.manifest import Segment
from bridge.table.segments.properties import PROPERTIES, check_properties, columns_of, reader_spec

CONFIG = Config()
COLUMNS = [("id", "bigint"), ("name", "string")]


def csv_table(root: Path, columns: list[tuple[str, str]] = COLUMNS, **properties: str) -> str:
    table = str(root / "t")
    named = {f"csv.{k}": v for k, v in properties.items()}
    tables.create_table(CONFIG, table, format="csv", columns=columns, properties=named)
    return table


def segments(table: str) -> tuple[Segment, ...]:
    return SegmentLog(LocalStorage(), f"file://{table}").latest().segments


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_first_lines_tell_the_fields_of_each_file(tmp_path: Path) -> None:
    table = csv_table(tmp_path, header_lines="1")
    data = tmp_path / "data"
    write(data / "a.csv", "ID, Name\n1,x\n")
    write(data / "b.csv", "﻿note,name,id\r\nn,x,1\r\n")
    write(data / "c.csv.gz", gzip.compress(b'"id","name"\n1,x\n' + b"2,y\n" * 100_000))
    write(data / "d.csv.bz2", bz2.compress(b"id,name\n1,x\n"))
    write(data / "e.csv.zst", pa.compress(b"id,name\n1,x\n", "zstd", asbytes=True))
    add.add_segment(CONFIG, table, paths=[str(data)], local=True)
    (made,) = segments(table)
    assert [r.fields for r in made.readers] == [("id", "name"), ("note", "name", "id")]
    held = SegmentLog(LocalStorage(), f"file://{table}").read_files(made.files)
    assert held.reader.tolist() == [0, 1, 0, 0, 0]
    manifest = SegmentLog(LocalStorage(), f"file://{table}").latest()
    spec = reader_spec(made.readers[1], columns_of(manifest.definition))
    assert spec.property_map["skipbridge.csv.fields"] == "note,name,id"
    assert spec.property_map["skipbridge.cast"] == "try"
    assert spec.property_map["skip.header.line.count"] == "1"
    assert [(c.name, str(c.type)) for c in spec.columns or ()] == [
        ("note", "string"),
        ("name", "string"),
        ("id", "bigint"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,title\n1,x\n", "names no field name"),
        ("id,name,ID\n1,x,2\n", "'id' twice"),
        (b"id,n\xffme\n", "not UTF-8"),
        ("id,name" + "x" * (2 << 20), "does not end"),
        ("\n1,x\n", "names no field"),
    ],
)
def test_a_wrong_first_line_is_refused_by_the_files_name(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    table = csv_table(tmp_path, header_lines="1")
    write(tmp_path / "data" / "a.csv", "id,name\n")
    write(tmp_path / "data" / "b.csv", content)
    with pytest.raises(SegmentSchemaMismatch, match=message) as refused:
        add.add_segment(CONFIG, table, paths=[str(tmp_path / "data")], local=True)
    assert "b.csv" in refused.value.message
    assert segments(table) == ()


def facts(path: Path) -> FileTable:
    return find_fact_files(LocalStorage(), [str(path)]).files


def test_names_of_a_messy_header(tmp_path: Path) -> None:
    """Other characters are underscores; what is no column may be there twice, or have no name."""
    path = write(tmp_path / "a.csv", "Call ID,note,,note,Seconds (s),note_3\n1,x,y,z,2,w\n")
    storage = LocalStorage()
    inferred = declare.infer_columns(storage, facts(path), "csv", {"csv.header_lines": "1"})
    columns = [("call_id", "bigint"), ("seconds_s", "bigint"), ("note_3", "string")]
    assert inferred == (columns, ["", "note"])
    made = csv_table(tmp_path, columns, header_lines="1")
    add.add_segment(CONFIG, made, paths=[str(path)], local=True)
    (reader,) = segments(made)[0].readers
    assert reader.fields is not None and len(set(reader.fields)) == 6
    with bridge.connect() as session:
        rows = session.table(made).scan().to_arrow().to_pylist()
    assert rows == [{"call_id": 1, "seconds_s": 2, "note_3": "w"}]


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    """Only names that cannot be read stop a file, and a header that is declared stands for them."""
    table = csv_table(tmp_path, header_lines="1")
    body = write(tmp_path / "body.csv", b"id,name\n1,J\xf6rg\n")
    add.add_segment(CONFIG, table, paths=[str(body)], local=True)
    head = write(tmp_path / "head.csv", b"id,n\xf6te,name\n1,x,y\n")
    with pytest.raises(SegmentSchemaMismatch, match="not UTF-8"):
        add.add_segment(CONFIG, table, paths=[str(head)], local=True)
    told = {"csv.header": "id,more,name"}
    add.add_segment(CONFIG, table, paths=[str(head)], properties=told, local=True)
    assert segments(table)[1].readers[0].fields == ("id", "more", "name")
    with pytest.raises(SegmentSchemaMismatch, match="the first line of"):
        body = write(tmp_path / "other.csv", b"id,name\n")
        add.add_segment(CONFIG, table, paths=[str(body)], properties=told, local=True)
    wide = write(tmp_path / "wide.csv", "id,name\n1,x\n".encode("utf-16"))
    with pytest.raises(SegmentSchemaMismatch, match="UTF-16"):
        add.add_segment(CONFIG, table, paths=[str(wide)], local=True)


def test_another_separator_is_hinted_at(tmp_path: Path) -> None:
    table = csv_table(tmp_path, header_lines="1")
    path = write(tmp_path / "a.csv", "id\tname\n1\tx\n")
    with pytest.raises(SegmentSchemaMismatch) as refused:
        add.add_segment(CONFIG, table, paths=[str(path)], local=True)
    assert "csv.delimiter" in (refused.value.hint or "")
    tab = {"csv.delimiter": "\\t"}  # as a shell gives it
    add.add_segment(CONFIG, table, paths=[str(path)], properties=tab, local=True)
    assert dict(segments(table)[0].readers[0].properties)["csv.delimiter"] == "\t"


def test_a_damaged_compressed_file_is_refused(tmp_path: Path) -> None:
    table = csv_table(tmp_path, header_lines="1")
    for name in ("a.csv.gz", "a.csv.snappy"):
        path = write(tmp_path / name, b"id,name\n1,x\n")
        with pytest.raises(SegmentSchemaMismatch, match="cannot be read"):
            add.add_segment(CONFIG, table, paths=[str(path)], local=True)
    # The fields may be told instead: then no file is opened.
    fields = {"csv.header": "id,name", "csv.header_lines": "0"}
    add.add_segment(CONFIG, table, paths=[str(tmp_path / "a.csv.gz")], properties=fields)
    assert segments(table)[0].readers[0].fields == ("id", "name")


def test_a_header_property_and_first_lines_must_agree(tmp_path: Path) -> None:
    table = csv_table(tmp_path, header="id,name", header_lines="1")
    good = write(tmp_path / "a.csv", "id,name\n")
    bad = write(tmp_path / "b.csv", "name,id\n")
    add.add_segment(CONFIG, table, paths=[str(good)], local=True)
    with pytest.raises(SegmentSchemaMismatch, match="the first line of"):
        add.add_segment(CONFIG, table, paths=[str(bad)], local=True)
    with pytest.raises(InvalidRequest, match="does not name name"):
        tables.set_properties(CONFIG, table, {"csv.header": "id"})


def test_without_headers_fields_are_the_columns_at_creation(tmp_path: Path) -> None:
    table = csv_table(tmp_path)
    first = write(tmp_path / "a.csv", "1,x\n")
    add.add_segment(CONFIG, table, paths=[str(first)], local=True)
    tables.drop_columns(CONFIG, table, ["ID"])
    other = write(tmp_path / "b.csv", "1,x\n")
    add.add_segment(CONFIG, table, paths=[str(other)], local=True)
    assert {s.readers[0].fields for s in segments(table)} == {("id", "name")}
    given = {"csv.header": "id"}
    with pytest.raises(SegmentSchemaMismatch, match="names no field name"):
        third = write(tmp_path / "c.csv", "1\n")
        add.add_segment(CONFIG, table, paths=[str(third)], properties=given)


def test_columns_of_self_describing_files_are_checked(tmp_path: Path) -> None:
    good = pa.table({"ID": pa.array([1], pa.int32()), "name": ["x"], "more": [1.0]})
    writers: dict[str, Any] = {"parquet": pq.write_table, "orc": po.write_table}
    for format, writer in writers.items():
        table = str(tmp_path / format)
        tables.create_table(CONFIG, table, format=format, columns=COLUMNS)
        data = tmp_path / f"{format}_data"
        data.mkdir()
        writer(good, data / "a")
        add.add_segment(CONFIG, table, paths=[str(data)], local=True)
        for wrong, message in (
            (good.drop(["name"]), "has no column name"),
            (good.set_column(0, "ID", pa.array(["1"])), "holds id as string"),
        ):
            writer(wrong, data / "b")
            with pytest.raises(SegmentSchemaMismatch, match=message) as refused:
                add.add_segment(CONFIG, table, paths=[str(data / "b")], local=True)
            assert f"{format}_data/b" in refused.value.message
        (data / "b").write_bytes(b"no such file at all, but long enough")
        with pytest.raises(BridgeError):
            add.add_segment(CONFIG, table, paths=[str(data / "b")], local=True)
        assert len(segments(table)) == 1


def test_paths_without_data_are_refused(tmp_path: Path) -> None:
    table = csv_table(tmp_path)
    (tmp_path / "empty").mkdir()
    hollow = write(tmp_path / "hollow.csv", "")
    write(tmp_path / "hidden" / "_a.csv", "1,x\n")
    for path in (tmp_path / "empty", hollow, tmp_path / "hidden"):
        with pytest.raises(InvalidRequest, match="no data files"):
            add.add_segment(CONFIG, table, paths=[str(path)], local=True)
    with pytest.raises(FileUnreadable, match="there is no file and no directory"):
        add.add_segment(CONFIG, table, paths=[str(tmp_path / "absent")], local=True)
    for none in ([], ["a,,b"], [""]):
        with pytest.raises(InvalidRequest, match="does not name paths"):
            add.add_segment(CONFIG, table, paths=none, local=True)
    with pytest.raises(InvalidRequest, match="own files"):
        add.add_segment(CONFIG, table, paths=[f"{table}/_segments"], local=True)
    told: list[str] = []
    full = write(tmp_path / "full.csv", "1,x\n")
    add.add_segment(CONFIG, table, paths=[f"{full}, {hollow}"], local=True, say=told.append)
    assert told == [f"left out, since it is empty: file://{hollow}"]
    assert manage.list_segments(CONFIG, table)["segments"][0]["files"] == 1


def test_properties_are_of_their_format() -> None:
    assert check_properties("csv", {"CSV.Delimiter": ";"}) == {"csv.delimiter": ";"}
    times = {"csv.timestamp_formats": "d/M/yy HH:mm,yyyy-MM-dd'T'HH:mm:ss.SSS"}
    assert check_properties("csv", times) == times
    for format, properties, message in (
        ("csv", {"orc.x": "1"}, "no property"),
        ("parquet", {"csv.header": "a"}, "no property"),
        ("csv", {"csv.delimiter": ";;"}, "one character"),
        ("csv", {"csv.header_lines": "-1"}, "from 0 to"),
        ("csv", {"csv.header": "a,A"}, "differ"),
        ("csv", {"csv.bad_values": "x"}, "null or error"),
        ("csv", {"csv.date_format": "the day"}, "dd.MM.yyyy"),
        ("csv", {"csv.date_format": ""}, "dd.MM.yyyy"),
        ("csv", {"csv.timestamp_formats": "yyyy-MM-dd,of"}, "dd.MM.yyyy"),
        ("delta", {}, "cannot be of the format"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            check_properties(format, properties)
        assert message in str(refused.value)


def test_every_property_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/segments-formats.md").read_text()
    assert [name for of in PROPERTIES.values() for name in of if f"`{name}`" not in page] == []


def test_columns_are_inferred_and_parsed(tmp_path: Path) -> None:
    storage = LocalStorage()
    path = write(
        tmp_path / "a.csv",
        "id;price;day;at;ok;name;none\n1;2.5;2024-05-01;2024-05-01 10:00:00;true;x;\n",
    )
    properties = {"csv.delimiter": ";", "csv.header_lines": "1"}
    assert declare.infer_columns(storage, facts(path), "csv", properties)[0] == [
        ("id", "bigint"),
        ("price", "double"),
        ("day", "date"),
        ("at", "timestamp"),
        ("ok", "boolean"),
        ("name", "string"),
        ("none", "string"),
    ]
    with pytest.raises(InvalidRequest, match="names one field: 'id;price") as refused:
        declare.infer_columns(storage, facts(path), "csv", {"csv.header_lines": "1"})
    assert "csv.delimiter=';'" in (refused.value.hint or "")
    lines = write(tmp_path / "a.json", '{"a": 1, "b": "x"}\n{"a": 2}\n')
    assert declare.infer_columns(storage, facts(lines), "json", {}) == (
        [("a", "bigint"), ("b", "string")],
        [],
    )
    with pytest.raises(UnsupportedType, match="does not tell the names"):
        declare.infer_columns(storage, facts(path), "csv", {})
    with pytest.raises(UnsupportedType, match="declare them"):
        declare.infer_columns(storage, facts(path), "text", {})
    assert declare.parse_columns("a int, b decimal(10, 2), c struct<x:int,y:string>") == [
        ("a", "int"),
        ("b", "decimal(10, 2)"),
        ("c", "struct<x:int,y:string>"),
    ]
    with pytest.raises(InvalidRequest, match="is no column"):
        declare.parse_columns("a int, b")
    for wrong in ([], [("a", "int"), ("A", "int")], [("a b", "int")], [("a", "money")]):
        with pytest.raises((InvalidRequest, UnsupportedType)):
            declare.declare_columns(wrong)
