"""Columns of tables of segments that only names of directories hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    BridgeError,
    InvalidRequest,
    InvalidStatement,
    SegmentBadValue,
    SegmentSchemaMismatch,
    UnsupportedType,
)
from bridge.segments.commands import add, compaction, indexes, refresh, tables, views
from bridge.storage.routed import open_storage
from bridge.table.segments.log import SegmentLog
from tests.unit.api.api_flights import write

CONFIG = Config()
DAYS = [("day", "date")]


def made(tmp_path: Path, *keys: tuple[str, str], format: str = "parquet") -> str:
    table = str(tmp_path / "t")
    columns = [("id", "int"), ("name", "string")]
    tables.create_table(CONFIG, table, format=format, columns=columns, partition_columns=keys or ())
    return table


def fact(tmp_path: Path, directory: str, first: int, rows: int = 3) -> Path:
    data = pa.table(
        {
            "id": pa.array(range(first, first + rows), pa.int32()),
            "name": [f"n{i}" for i in range(first, first + rows)],
        }
    )
    return write(tmp_path / "facts" / directory / f"f{first}.parquet", data)


def grow(table: str, *paths: Path, **given: Any) -> None:
    add.add_segment(CONFIG, table, paths=[str(p) for p in paths], local=True, **given)


def scan(table: str, where: str = "", **how: Any) -> tuple[list[tuple[Any, ...]], int]:
    with bridge.connect() as session:
        found = session.table(table).scan(where or None, **how)
        rows = found.to_arrow()
        return sorted(tuple(r.values()) for r in rows.to_pylist()), found.explain().files_kept


def days(tmp_path: Path, table: str, count: int = 4) -> None:
    for i in range(count):
        fact(tmp_path, f"day=2024-05-0{i + 1}", 10 * i)
    grow(table, tmp_path / "facts")


def described(table: str) -> list[tuple[str, str]]:
    found = tables.describe(CONFIG, table)["partition_columns"]
    return [(c["name"], c["type"]) for c in found]


@pytest.mark.parametrize("declared", [True, False])
def test_directories_give_the_values_of_a_column(tmp_path: Path, declared: bool) -> None:
    table = made(tmp_path, *(DAYS if declared else ()))
    days(tmp_path, table)
    assert described(table) == [("day", "date")]
    with bridge.connect() as session:
        found = session.table(table).scan("day = date '2024-05-02'")
        rows = found.to_arrow()
        assert rows.column_names == ["id", "name", "day"]
        assert [str(d) for d in rows["day"].to_pylist()] == ["2024-05-02"] * 3
        assert found.explain().files_kept == 1
        assert session.table(table).scan("day > date '2024-05-02' AND id < 25").to_arrow()[
            "id"
        ].to_pylist() == [20, 21, 22]
        assert session.table(table).scan("day IS NULL").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("type", "texts", "values"),
    [
        ("int", ["01", "1", "+1", "-7"], [1, 1, 1, -7]),
        ("decimal(6,2)", ["1.5", "1.50", "1e1", "-0"], ["1.50", "1.50", "10.00", "0.00"]),
        ("boolean", ["TRUE", "false"], [True, False]),
        ("timestamp", ["2024-5-1", "2024-05-01 10:00:00.5"], None),
        ("string", ["a%2Fb", "%7E", "x y", "ä", "01"], ["a/b", "~", "x y", "ä", "01"]),
        ("varchar(3)", ["abc"], ["abc"]),
    ],
)
def test_texts_are_read_as_of_the_columns_type(
    tmp_path: Path, type: str, texts: list[str], values: list[Any] | None
) -> None:
    table = made(tmp_path, ("k", type))
    for i, text in enumerate(texts):
        fact(tmp_path, f"K={text}", i, 1)
    fact(tmp_path, "k=__HIVE_DEFAULT_PARTITION__", 90, 1)
    grow(table, tmp_path / "facts")
    rows, _ = scan(table)
    found = {r[0]: r[2] for r in rows}
    assert found.pop(90) is None
    if values is not None:
        assert [str(found[i]) for i in range(len(texts))] == [str(v) for v in values]
    assert [r[0] for r in scan(table, "k IS NULL")[0]] == [90]
    assert scan(table, "k IS NULL")[1] == 1


def test_two_keys_are_found_at_any_level_and_files_hold_no_value(tmp_path: Path) -> None:
    table = made(tmp_path, ("month", "int"), ("city", "string"))
    data = pa.table({"id": pa.array([1], pa.int32()), "name": ["a"], "city": ["in the file"]})
    write(tmp_path / "facts/city=Bonn/x/month=05/deep/a.parquet", data)
    write(tmp_path / "facts/month=6/city=Köln/b.parquet", data)
    grow(table, tmp_path / "facts")
    assert sorted(r[2:] for r in scan(table)[0]) == [(5, "Bonn"), (6, "Köln")]
    assert scan(table, "city = 'Bonn' OR month = 7")[1] == 1


@pytest.mark.parametrize(
    ("keys", "directories", "code", "said"),
    [
        ((), ["day=2024-05-01", "other"], SegmentSchemaMismatch, ["day=2024-05-01/", "other/"]),
        ((), ["a=1/b=2", "a=1"], SegmentSchemaMismatch, ["a=.../b=...", "a=1/f"]),
        ((), ["a=1/A=2"], SegmentSchemaMismatch, ["two directories a"]),
        (DAYS, ["day=2024-05-01", "x"], SegmentSchemaMismatch, ["x/f1", "day=2024-05-01/f0"]),
        (DAYS, ["day=2024-05-01/day=2024-05-02"], SegmentSchemaMismatch, ["two directories"]),
        (DAYS, ["day=Monday"], SegmentBadValue, ["'Monday' is no date", "f0.parquet"]),
        ([("day", "string")], ["day="], SegmentBadValue, ["'' is no string"]),
        ([("n", "tinyint")], ["n=300"], SegmentBadValue, ["'300' is no tinyint"]),
    ],
)
def test_directories_that_do_not_fit_are_refused_with_their_paths(
    tmp_path: Path,
    keys: list[tuple[str, str]],
    directories: list[str],
    code: type[BridgeError],
    said: list[str],
) -> None:
    table = made(tmp_path, *keys)
    for i, directory in enumerate(directories):
        fact(tmp_path, directory, i)
    with pytest.raises(code) as refused:
        grow(table, tmp_path / "facts")
    assert all(text in refused.value.message for text in said), refused.value.message
    assert scan(table)[0] == [] and not tables.describe(CONFIG, table)["segments"]


def test_what_is_declared_wrong_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedType, match="double"):
        made(tmp_path, ("d", "double"))
    with pytest.raises(InvalidRequest, match="twice"):
        made(tmp_path, ("ID", "int"))
    table = made(tmp_path, *DAYS)
    for change in (
        lambda: tables.drop_columns(CONFIG, table, ["day"]),
        lambda: tables.change_type(CONFIG, table, "day", "string"),
    ):
        with pytest.raises(InvalidRequest, match="partition column"):
            change()


def test_only_the_first_segment_brings_columns(tmp_path: Path) -> None:
    table = made(tmp_path)
    grow(table, fact(tmp_path, "plain", 0))
    grow(table, fact(tmp_path, "day=2024-05-01", 10))
    assert described(table) == [] and len(scan(table)[0]) == 6
    named = str(tmp_path / "named")
    tables.create_table(CONFIG, named, format="parquet", columns=[("id", "int")])
    grow(named, fact(tmp_path, "ID=9", 20))  # the files hold a column of this name
    assert described(named) == [] and [r[0] for r in scan(named)[0]] == [20, 21, 22]


def test_commands_keep_each_files_partition(tmp_path: Path) -> None:
    table = made(tmp_path, *DAYS)
    for i in range(3):
        grow(table, fact(tmp_path, f"day=2024-05-0{i + 1}", 10 * i))
    where = "day = date '2024-05-02'"
    before = scan(table, where)
    compaction.compact(CONFIG, table, kind="custom", ids=["0", "1", "2"])
    assert scan(table, where) == before and before[1] == 1
    fact(tmp_path, "day=2024-05-02", 10, rows=5)
    refresh.refresh_segments(CONFIG, table, local=True)
    rows, kept = scan(table, where)
    assert (len(rows), kept) == (5, 1) and {str(r[2]) for r in rows} == {"2024-05-02"}


def test_indexes_skip_beside_partitions(tmp_path: Path) -> None:
    table = made(tmp_path, *DAYS)
    indexes.create_index(CONFIG, table, name="m", kind="minmax", local=True)
    indexes.create_index(CONFIG, table, name="b", kind="bloomfilter", columns=["name"], local=True)
    days(tmp_path, table)
    for i in range(4):
        grow(table, fact(tmp_path, f"day=2024-05-0{i + 1}", 100 + 10 * i))
    assert scan(table, "id = 111")[1] == 1
    assert scan(table, "day = date '2024-05-02'")[1] == 2
    assert scan(table, "day = date '2024-05-02' AND name = 'n11'")[1] == 1
    assert scan(table, "day = date '2024-05-01' AND name = 'n11'")[1] == 0
    assert scan(table, "day = date '2024-05-01' OR id = 130")[1] == 3


@pytest.mark.parametrize("scope", ["local_sort", "global_sort"])
def test_views_hold_partition_columns(tmp_path: Path, scope: str) -> None:
    table = made(tmp_path, *DAYS)
    days(tmp_path, table)
    views.create_view(
        CONFIG,
        table,
        name="v",
        columns=["id", "day"],
        sort_by=["day", "id"],
        properties={"SORT_SCOPE": scope},
        local=True,
    )
    for i in range(2):
        grow(table, fact(tmp_path, f"day=2024-05-0{i + 1}", 100 + 10 * i))

    def used(where: str) -> tuple[list[int], list[str], int]:
        with bridge.connect() as session:
            found = session.table(table).scan(where, columns=["id", "day"])
            rows, report = found.to_arrow(), found.explain()
            assert "view(v)" in str(report), report
            return sorted(rows["id"].to_pylist()), rows["day"].to_pylist(), report.files_kept

    ids, values, kept = used("day = date '2024-05-02'")
    assert (ids, kept) == ([10, 11, 12, 110, 111, 112], 2)
    assert {str(v) for v in values} == {"2024-05-02"}
    compaction.compact(CONFIG, table, kind="custom", ids=["0", "1"])
    assert used("day = date '2024-05-02'")[0] == ids
    assert used("day = date '2024-05-04' AND id > 0")[0] == [30, 31, 32]
    with pytest.raises(InvalidRequest, match="no column"):
        views.create_view(CONFIG, table, name="w", columns=["day"], local=True)


def test_a_table_without_them_stays_readable_by_earlier_programs(tmp_path: Path) -> None:
    log = SegmentLog(open_storage(), f"file://{made(tmp_path)}")
    raw = Path(f"{log.root.removeprefix('file://')}/_segments/versions/{1:020}.json").read_bytes()
    assert json.loads(raw)["format_version"] == 1 and b"partition_columns" not in raw
    fact(tmp_path, "plain", 0)
    grow(str(tmp_path / "t"), tmp_path / "facts")
    (segment,) = log.latest().segments
    held = pq.read_table(f"{log.root.removeprefix('file://')}/{segment.files.blob.name}")
    assert "partition" not in held.column_names


def test_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fact(tmp_path, "day=2024-05-01", 0)
    with bridge.connect(metastore_uri="thrift://127.0.0.1:1") as session:
        session.sql(
            "CREATE TABLE `./t` (id int, name string) PARTITION COLUMNS (day date COMMENT 'when') "
            "STORED AS parquet; ALTER TABLE `./t` ADD SEGMENT 'facts'",
            local=True,
        )
        (shown,) = session.sql("DESCRIBE `./t`")
        assert shown.rows[-1] == ("day", "date", "when")
        (shown,) = session.sql("DESC FORMATTED `./t`")
        assert ("## partition column", "day", "date") in shown.rows
        (made,) = session.sql("SHOW CREATE TABLE `./t`")
        text = made.rows[0][0]
        assert "PARTITION COLUMNS (`day` date COMMENT 'when')" in text
        session.sql(f"DROP TABLE `./t`; {text}", local=True)
        assert described("./t") == [("day", "date")]
        for wrong in (
            "CREATE TABLE u (a int) PARTITION COLUMNS (A int) STORED AS csv",
            "CREATE TABLE u (a int) PARTITION COLUMNS (b int) PARTITION COLUMNS (c int) "
            "STORED AS csv",
            "CREATE TABLE u (a int) PARTITION COLUMNS STORED AS csv",
        ):
            with pytest.raises(InvalidStatement):
                session.sql(wrong)
