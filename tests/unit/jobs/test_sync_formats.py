"""Directories of every format: registered by sync as asked for, and told of by name elsewhere."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.errors import InvalidRequest, UnsupportedTable
from bridge.kernel.types import STRING
from bridge.metastore.classify import storage_format
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.schemas.file_options import given_columns
from bridge.sync.table import TableSync
from bridge.table.model import Column
from tests.support.sync_lake import NAME, ModelMetastore

TABLE = pa.table({"id": [1, 2], "s": ["a", None]})
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "ID", "type": "long"}, {"name": "s", "type": ["null", "string"]}],
}


def write(path: Path, format: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match format:
        case "parquet":
            pq.write_table(TABLE, path)
        case "orc":
            po.write_table(TABLE, path)
        case "avro":
            with path.open("wb") as out:
                rows = [{"ID": r["id"], "s": r["s"]} for r in TABLE.to_pylist()]
                fastavro.writer(out, fastavro.parse_schema(AVRO), rows)
        case "json":
            path.write_bytes(b'{"id": 1, "s": "a"}\n{"id": 2, "s": null}\n')
        case "csv":
            path.write_bytes(b"id,s\n1,a\n2,\n")
        case "csv.gz":
            path.write_bytes(gzip.compress(b"id,s\n1,a\n2,\n"))
        case "text":
            path.write_bytes(b"1;a\n2;\n")


def sync(store: ModelMetastore, root: Path, **options: Any) -> SyncReport:
    if "columns" in options:
        options["columns"] = given_columns(options["columns"], options.get("format"))
    request = SyncRequest(NAME, location=str(root), **options)
    return TableSync(store, LocalStorage(), request, SyncSettings()).run()  # type: ignore[arg-type]


STRINGS, TYPED = [("id", "string"), ("s", "string")], [("id", "bigint"), ("s", "string")]


@pytest.mark.parametrize(
    ("format", "asked", "columns"),
    [
        ("parquet", {}, TYPED),
        ("orc", {}, TYPED),
        ("avro", {}, TYPED),
        ("avro", {"columns": "id bigint, s string"}, TYPED),
        ("json", {"format": "json"}, TYPED),
        ("csv", {"format": "csv", "header": True}, STRINGS),
        ("csv", {"format": "csv", "columns": "id, s"}, STRINGS),
        ("csv.gz", {"format": "csv", "header": True}, STRINGS),
        ("text", {"format": "text", "columns": "id int, s string", "delimiter": ";"}, None),
    ],
)
@pytest.mark.parametrize("keyed", [False, True])
def test_every_format_is_registered(
    tmp_path: Path, format: str, asked: dict[str, Any], columns: Any, keyed: bool
) -> None:
    store = ModelMetastore()
    root = tmp_path / "t"
    write(root / ("p=1" if keyed else "") / f"a.{format}", format)
    if format == "avro" and "columns" in asked:
        asked = {**asked, "format": "avro"}
    report = sync(store, root, **asked)
    assert report.outcome == "synced" and not report.problems, report
    made = store.record
    assert made is not None
    assert storage_format(made.sd) == format.removesuffix(".gz")
    held = [(c.name, c.type) for c in made.sd.cols]
    assert held == (columns or [("id", "int"), ("s", "string")])
    assert [k.name for k in made.partitionKeys] == (["p"] if keyed else [])
    header = made.parameters.get("skip.header.line.count")
    assert header == ("1" if asked.get("header") else None)
    assert made.sd.serdeInfo.parameters.get("field.delim") == asked.get("delimiter")
    if keyed:
        write(root / "p=2" / f"b.{format}", format)
        assert len(sync(store, root).added) == 1
    assert sync(store, root).outcome == "in step"
    assert [(c.name, c.type) for c in store.record.sd.cols] == held  # type: ignore[union-attr]


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_a_header_of_one_field_asks_for_the_delimiter(tmp_path: Path, mark: str) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text(f"id{mark}s\n1{mark}x\n")
    asked = {"format": "csv", "header": True}
    with pytest.raises(InvalidRequest, match="names one field") as refused:
        sync(ModelMetastore(), tmp_path / "t", **asked)
    assert f"--delimiter {mark!r}" in (refused.value.hint or "")
    store = ModelMetastore()
    sync(store, tmp_path / "t", **asked, delimiter=mark)
    assert store.record is not None and [c.name for c in store.record.sd.cols] == ["id", "s"]


def test_a_row_is_not_taken_for_a_header(tmp_path: Path) -> None:
    """First lines that differ are rows, or name fields in another order: both lose values."""
    (tmp_path / "t").mkdir()
    for n, line in enumerate(("1,2024-01-01,x", "2,2024-01-02,y")):
        (tmp_path / "t" / f"{n}.csv").write_text(f"{line}\n3,2024-01-03,z\n")
    with pytest.raises(InvalidRequest, match="names 2, 2024_01_02, y") as refused:
        sync(ModelMetastore(), tmp_path / "t", format="csv", header=True)
    assert "--columns" in refused.value.hint


def test_fields_may_be_appended_to_headers(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for n, line in enumerate(("a,b", "a,b,c", "a")):
        (tmp_path / "t" / f"{n}.csv").write_text(f"{line}\n1\n")
    store = ModelMetastore()
    sync(store, tmp_path / "t", format="csv", header=True)
    assert store.record is not None and [c.name for c in store.record.sd.cols] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("format", "what"),
    [
        ("avro", "an Avro file"),
        ("json", "JSON text"),
        ("csv", "CSV text"),
        ("csv.gz", "CSV text, compressed"),
        ("text", "text"),
    ],
)
def test_a_directory_that_tells_no_columns_says_what_it_holds(
    tmp_path: Path, format: str, what: str
) -> None:
    for name in ("a", "b"):
        write(tmp_path / "t" / f"{name}.{format}", format)
    with pytest.raises(UnsupportedTable, match=rf"is {what}") as refused, bridge.connect() as s:
        s.table(f"{tmp_path}/t/").scan().to_arrow()
    wanted = format.removesuffix(".gz")
    assert f"--format {wanted}" in refused.value.hint and "sync" in refused.value.hint
    if format == "avro":
        return
    with pytest.raises(UnsupportedTable, match=rf"is {what}") as refused:
        sync(ModelMetastore(), tmp_path / "t")
    assert f"--format {wanted}" in refused.value.hint


def test_options_that_do_not_fit_the_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "c" / "a.csv", "csv")
    write(tmp_path / "p" / "a.parquet", "parquet")
    for where, asked in (
        ("p", {"header": True}),
        ("p", {"columns": "a int"}),
        ("c", {"format": "csv"}),
        ("c", {"format": "csv", "columns": "id int"}),
        ("c", {"format": "text", "columns": "id int", "header": True}),
    ):
        with pytest.raises(InvalidRequest):
            sync(ModelMetastore(), tmp_path / where, **asked)
    with pytest.raises(UnsupportedTable, match="'iceberg' are not synced"):
        sync(ModelMetastore(), tmp_path / "c", format="iceberg")


CSV = {"format": "csv", "header": True}
TEXT = {"format": "text", "columns": "id int, s string", "delimiter": ";"}


@pytest.mark.parametrize(
    ("made", "asked", "held"),
    [
        (CSV, {"delimiter": ";"}, "--delimiter ';' contradicts it: its delimiter is ','"),
        (CSV, {"format": "csv", "columns": "a, b"}, "its columns are id string, s string"),
        ({"format": "csv", "columns": "id, s"}, {"header": True}, "skip.header.line.count is 0"),
        (TEXT, {"delimiter": ","}, "its delimiter is ';'"),
        (TEXT, {"columns": "id bigint, s string"}, "its columns are id int, s string"),
        ({}, {"delimiter": ","}, "it is stored as parquet"),
        ({}, {"keys": (Column("p", STRING),)}, "has the partition key p int, not string"),
    ],
)
def test_options_that_contradict_the_table_are_refused(
    tmp_path: Path, made: dict[str, Any], asked: dict[str, Any], held: str
) -> None:
    format = made.get("format", "parquet")
    write(tmp_path / "p=1" / f"a.{format}", format)
    store = ModelMetastore()
    sync(store, tmp_path, **made)
    with pytest.raises(InvalidRequest) as refused:
        sync(store, tmp_path, **asked)
    assert held in refused.value.message and "leave --" in refused.value.hint
    # What says the same as the table is no contradiction.
    assert sync(store, tmp_path, **made).outcome == "in step"


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_a_file_of_tabs_asks_for_its_delimiter(tmp_path: Path, name: str) -> None:
    data = b"id\ts\n1\ta\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(UnsupportedTable) as refused:
        sync(ModelMetastore(), tmp_path)
    assert "--format csv --delimiter $'\\t' --header" in refused.value.hint
    with pytest.raises(UnsupportedTable) as refused, bridge.connect() as s:
        s.table(f"{tmp_path}/").index.build()
    assert "--format csv --delimiter $'\\t' --header" in refused.value.hint


def test_a_column_that_a_partition_key_hides_is_told_once(tmp_path: Path) -> None:
    write(tmp_path / "s=1" / "a.parquet", "parquet")
    store = ModelMetastore()
    told = "~ the files' column s is hidden: the partition key has its name"
    assert told in sync(store, tmp_path).table_changes
    assert told not in sync(store, tmp_path, full=True).table_changes
