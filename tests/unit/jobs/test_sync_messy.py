"""A first sync of files that are not alike: what was looked at, what is wrong, and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.kernel.errors import (
    AmbiguousColumn,
    BridgeError,
    FileCorrupt,
    InvalidRequest,
    SchemaConflict,
    TableNotFound,
    all_errors,
)
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.report import SyncReport, table_changes, warnings
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.schemas.file_options import given_columns
from bridge.sync.table import TableSync
from tests.support.sync_lake import NAME, ModelMetastore


def sync(root: Path, recursive: bool = False, **options: Any) -> SyncReport:
    request = SyncRequest(NAME, location=str(root), **options)
    settings = SyncSettings(recursive=recursive)
    return TableSync(ModelMetastore(), LocalStorage(), request, settings).run()  # type: ignore[arg-type]


def columns(report: SyncReport) -> dict[str, str]:
    lines = [line.split(" ", 3) for line in report.table_changes if line.startswith("+ column")]
    return {name: type for _, _, name, type in lines}


def explain(directory: Path) -> str:
    return CliRunner().invoke(cli, ["explain", str(directory)]).stderr


def objects(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write(path: Path, data: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path)


@pytest.mark.parametrize("keyed", [False, True])
def test_columns_of_json_are_those_of_all_files_that_are_looked_at(
    tmp_path: Path, keyed: bool
) -> None:
    for i in range(6):
        row = {"id": i, "price": i / 2 if i == 4 else i, **({"late": "x"} if i == 5 else {})}
        objects(tmp_path / "t" / (f"p={i}" if keyed else "") / f"{i}.json", row)
    report = sync(tmp_path / "t", format="json")
    assert columns(report) == {"id": "bigint", "price": "double", "late": "string"}
    assert "~ columns as the first lines of 6 of 6 files have them" in table_changes(report)


@pytest.mark.parametrize("format", ["json", "csv"])
def test_of_many_files_it_is_said_how_many_were_looked_at(tmp_path: Path, format: str) -> None:
    for i in range(120):
        more = {"late": i} if i == 119 else {}
        if format == "json":
            objects(tmp_path / "t" / f"{i:03}.json", {"id": i, **more})
        else:
            path = tmp_path / "t" / f"{i:03}.csv"
            path.parent.mkdir(exist_ok=True)
            path.write_text(",".join(["id", *more]) + "\n")
    report = sync(tmp_path / "t", format=format, header=format == "csv")
    assert set(columns(report)) == {"id", "late"}  # the last file is among those looked at
    told = "~ columns as the first lines of 50 of 120 files have them; for a column of other files"
    assert [line for line in table_changes(report) if line.startswith(told)]
    assert not warnings(report)


def test_json_files_that_disagree_are_both_named(tmp_path: Path) -> None:
    objects(tmp_path / "t" / "a.json", {"n": 1, "id": 1})
    objects(tmp_path / "t" / "b.json", {"n": 1.5, "id": 2})
    objects(tmp_path / "t" / "c.json", {"n": 2, "id": "x"})
    with pytest.raises(SchemaConflict) as conflict:
        sync(tmp_path / "t", format="json")
    told = conflict.value.message
    assert "'id' is bigint in" in told and "a.json and string in" in told and "c.json" in told
    (tmp_path / "t" / "b.json").write_text('{"n": }\n')
    with pytest.raises(FileCorrupt, match=r"b\.json: its columns cannot be inferred"):
        sync(tmp_path / "t", format="json")


def test_a_json_value_of_another_type_is_no_damage(tmp_path: Path) -> None:
    objects(tmp_path / "t" / "a.json", {"id": 1, "n": "1"}, {"id": 2, "n": 2})
    with pytest.raises(SchemaConflict, match=r"a\.json: .*/n\) changed from string") as conflict:
        sync(tmp_path / "t", format="json")
    assert "--columns 'id bigint" in conflict.value.hint


@pytest.mark.parametrize(
    ("header", "told"),
    [("id;Note;note", "names 'note' twice"), ("id;;x", "a field without a name")],
)
def test_a_header_that_names_no_columns_is_told_by_its_file(
    tmp_path: Path, header: str, told: str
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text(f"{header}\n1;2;3\n")
    options = {"format": "csv", "header": True, "delimiter": ";"}
    with pytest.raises(InvalidRequest, match=rf"a\.csv .*{told}") as refused:
        sync(tmp_path / "t", **options)
    assert "--header --columns" in refused.value.hint
    report = sync(tmp_path / "t", columns=given_columns("a, b, c", "csv"), **options)
    assert columns(report) == dict.fromkeys(("a", "b", "c"), "string")


def test_names_that_differ_only_in_case_are_told_alike(tmp_path: Path) -> None:
    twins = pa.table([[1], [2]], names=["Id", "id"])
    for name in ("a", "b"):
        write(tmp_path / "t" / f"{name}.parquet", twins)
    with pytest.raises(AmbiguousColumn) as refused:
        sync(tmp_path / "t")
    assert "'Id' and 'id'" in refused.value.message and "other names" in refused.value.hint
    assert str(refused.value) in explain(tmp_path / "t")
    assert all_errors()["AMBIGUOUS_COLUMN"] is AmbiguousColumn
    write(tmp_path / "t" / "good.parquet", pa.table({"id": [1]}))  # the others are named
    assert [file.rpartition("/")[2] for file, _ in sync(tmp_path / "t").unreadable] == [
        "a.parquet",
        "b.parquet",
    ]


def test_types_that_have_no_common_one_are_told_alike(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.parquet", pa.table({"id": [1]}))
    write(tmp_path / "t" / "b.parquet", pa.table({"id": ["x"]}))
    with pytest.raises(SchemaConflict) as refused:
        sync(tmp_path / "t")
    told = refused.value.message
    assert "is bigint in" in told and "a.parquet and string in" in told and "b.parquet" in told
    assert "two tables" in refused.value.hint and str(refused.value) in explain(tmp_path / "t")


def test_files_without_columns_are_not_gone(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.parquet", pa.table({"n": [1]}).select([]))
    with pytest.raises(TableNotFound, match="its files have no columns"):
        sync(tmp_path / "t")


def test_subdirectories_name_the_setting(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "a" / "b" / "x.parquet", pa.table({"n": [1]}))
    with pytest.raises(InvalidRequest) as refused:
        sync(tmp_path / "deep")
    assert "planner.recursive" in str(refused.value)
    deep = sync(tmp_path / "deep", recursive=True)
    assert deep.outcome == "synced"
    assert any("`serve` need planner.recursive" in line for line in table_changes(deep))

    write(tmp_path / "keyed" / "p=1" / "x.parquet", pa.table({"n": [1]}))
    write(tmp_path / "keyed" / "p=1" / "more" / "y.parquet", pa.table({"n": [1]}))
    write(tmp_path / "keyed" / "odd" / "z.parquet", pa.table({"n": [1]}))
    told = dict(sync(tmp_path / "keyed").unparsable)
    assert "subdirectories of p=1: set planner.recursive" in told["p=1/more"]
    assert "recursive" not in told["odd"]
    keyed = sync(tmp_path / "keyed", recursive=True)
    assert "p=1/more" not in dict(keyed.unparsable)
    assert any("`serve` need planner.recursive" in line for line in table_changes(keyed))
    write(tmp_path / "flat" / "p=1" / "x.parquet", pa.table({"n": [1]}))
    assert "recursive" not in str(sync(tmp_path / "flat", recursive=True).table_changes)


@pytest.mark.parametrize(
    ("format", "text", "told"),
    [
        ("json", "id bigint price decimal(10, 2)", "commas separate columns"),
        ("json", "price decimal(10, 2) string", "commas separate columns"),
        ("csv", "id, price decimal(10, 2)", "leave the types out"),
        ("csv", "price decimal(10, 2) string", "commas separate columns"),
    ],
)
def test_columns_say_how_they_are_separated(format: str, text: str, told: str) -> None:
    with pytest.raises(BridgeError) as refused:
        given_columns(text, format)
    assert told in refused.value.hint, refused.value
