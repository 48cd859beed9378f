"""A directory with files that are not the table's: what can be read is, and the rest is named."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from bridge.kernel.errors import FileCorrupt, SchemaConflict, UnsupportedTable
from bridge.storage.routed import open_storage
from bridge.sync.schemas.schema import read_schemas
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.infer import infer_readable


def catalog(root: Path) -> DirectoryCatalog:
    return DirectoryCatalog(open_storage(), f"file://{root}")


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": [1]}), path)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("README.txt", b"read me", "text"),
        ("a.csv", b"a,b\n1,2\n", "CSV text"),
        ("a.json", b'{"a": 1}', "JSON text"),
        ("a.parquet", b"PAR1" + bytes(100), "a damaged Parquet file: its end is missing"),
        ("a.avro", b"Obj\x01" + bytes(100), "an Avro file"),
        ("a.parquet", b"PAR1" + bytes(20) + b"\xff\xff\xff\x7fPAR1", "damaged: is cut short"),
    ],
)
def test_27_one_file_blocks_nothing_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, content: bytes, what: str
) -> None:
    write(tmp_path / "b.parquet")
    (tmp_path / name).write_bytes(content)
    found = catalog(tmp_path)
    with caplog.at_level(logging.WARNING):
        table = found.table(found.name)
    assert [c.name for c in table.columns] == ["x"]
    (told,) = found.strays
    assert told.uri == f"file://{tmp_path}/{name}" and told.what.startswith(what) and told.read
    assert name in caplog.text and "queries that read it fail" in caplog.text
    caplog.clear()
    found.forget(found.name)
    found.table(found.name)
    assert found.strays == (told,) and not caplog.text  # a session is told once
    assert "remove" not in told.remedy
    assert ("a table of its own" in told.remedy) is (name in ("a.csv", "a.json", "a.avro"))


def test_columns_that_differ_only_in_case_are_no_damage(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet")
    pq.write_table(pa.table({"x": [1], "X": [2]}), tmp_path / "c.parquet")
    found = catalog(tmp_path)
    found.table(found.name)
    (told,) = found.strays
    assert told.what == "a file in which two columns differ only in case: 'x' and 'X'"
    assert "cannot tell them apart" in told.remedy and "restore" not in told.remedy


@pytest.mark.parametrize("most", ["parquet", "orc"])
def test_27_a_whole_file_of_the_other_format_is_not_called_damaged(
    tmp_path: Path, most: str
) -> None:
    parquet, orc_file = tmp_path / "b.parquet", tmp_path / "c.orc"
    write(parquet)
    orc.write_table(pa.table({"x": [2]}), orc_file)
    few = orc_file if most == "parquet" else parquet
    few.rename(tmp_path / f"z{few.suffix}")
    found = catalog(tmp_path)
    found.table(found.name)
    (told,) = found.strays
    name = "an ORC file" if most == "parquet" else "a Parquet file"
    assert told.what == f"{name} among files of another format" and told.read
    assert "of its own" in told.remedy and "restore" not in told.remedy


def test_alone_it_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\n")
    found = catalog(tmp_path)
    with pytest.raises(UnsupportedTable, match=r"a\.csv is CSV text") as raised:
        found.table(found.name)
    assert "remove" not in raised.value.hint and "rewrite" not in raised.value.hint


def test_beside_partitions_it_is_left_out_and_named(tmp_path: Path) -> None:
    """No engine takes it for a file of the table: it lies in no partition."""
    write(tmp_path / "p=1" / "a.parquet")
    (tmp_path / "README.txt").write_text("read me")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "more.md").write_text("more")
    found = catalog(tmp_path)
    table = found.table(found.name)
    assert [k.name for k in table.partition_keys] == ["p"]
    assert found.partition_names(table) == ["p=1"]
    assert [(s.uri.rpartition("/")[2], s.read) for s in found.strays] == [
        ("README.txt", False),
        ("more.md", False),
    ]


def test_between_the_levels_of_partitions_it_is_left_out_and_named(tmp_path: Path) -> None:
    write(tmp_path / "p=1" / "q=1" / "a.parquet")
    (tmp_path / "p=1" / "README.txt").write_text("read me")
    found = catalog(tmp_path)
    table = found.table(found.name)
    assert [k.name for k in table.partition_keys] == ["p", "q"]
    assert found.partition_names(table) == ["p=1/q=1"]
    assert [(s.uri.rpartition("/")[2], s.read) for s in found.strays] == [("README.txt", False)]


@pytest.mark.parametrize(
    ("first", "second"),
    [("p=1/a.parquet", "b.parquet"), ("p=1/q=1/a.parquet", "p=1/b.parquet")],
)
def test_data_beside_partitions_is_a_conflict_still(
    tmp_path: Path, first: str, second: str
) -> None:
    write(tmp_path / first)
    write(tmp_path / second)
    found = catalog(tmp_path)
    with pytest.raises(SchemaConflict) as raised:
        found.table(found.name)
    assert f"{tmp_path}/{first}" in str(raised.value)
    assert f"{tmp_path}/{second}" in str(raised.value)


def test_an_orc_table_whose_first_file_is_text(tmp_path: Path) -> None:
    from pyarrow import orc

    orc.write_table(pa.table({"x": [1]}), tmp_path / "b.orc")
    (tmp_path / "README.txt").write_text("read me")
    found = catalog(tmp_path)
    assert found.table(found.name).format == "orc"
    assert [s.what for s in found.strays] == ["text"]


def test_27_two_columns_that_differ_only_in_case_are_told_of_their_file_alone(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.parquet")
    pq.write_table(pa.table({"X": [1], "x": [2]}), tmp_path / "b.parquet")
    fields = pa.struct([("f", pa.int32()), ("F", pa.int32())])
    pq.write_table(pa.table({"x": [1], "s": pa.array([None], fields)}), tmp_path / "c.parquet")
    found = catalog(tmp_path)
    assert [c.name for c in found.table(found.name).columns] == ["x"]
    assert [s.uri.rpartition("/")[2] for s in found.strays] == ["b.parquet", "c.parquet"]
    assert all("differ only in case" in s.what for s in found.strays)
    files = [(f"file://{path}", path.stat().st_size) for path in sorted(tmp_path.iterdir())]
    read = read_schemas(open_storage(), files)
    assert [c.name for c in read.columns] == ["x"]
    assert [reason.rpartition("/")[2] for _, reason in read.unreadable] == [
        "b.parquet: two columns differ only in case: 'X' and 'x'",
        "c.parquet: two columns differ only in case: 'f' and 'F'",
    ]


def test_a_file_shorter_than_listed_blocks_nothing_and_is_named(tmp_path: Path) -> None:
    """So is a file on HDFS that its writer has flushed but not closed."""
    files = []
    for name, beyond in (("closed", 0), ("open", 100)):
        write(tmp_path / f"{name}.parquet")
        size = (tmp_path / f"{name}.parquet").stat().st_size
        files.append((f"file://{tmp_path}/{name}.parquet", size + beyond))
    columns, (told,) = infer_readable(open_storage(), files)
    assert [c.name for c in columns] == ["x"]
    assert (told.uri, told.what, told.read) == (files[1][0], "being written, or was cut", True)
    with pytest.raises(FileCorrupt, match=r"open\.parquet is being written"):
        infer_readable(open_storage(), files[1:])
    schemas = read_schemas(open_storage(), files)
    assert [c.name for c in schemas.columns] == ["x"]
    ((uri, reason),) = schemas.unreadable
    assert uri == files[1][0] and "is being written, or was cut" in reason
