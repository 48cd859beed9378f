"""The index through the API: build, refresh, add, report, statistics."""

from __future__ import annotations

import datetime as dt
import decimal
import gc
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from tests.unit.api.api_flights import write


def kept(table: bridge.Table, where: str, **options: Any) -> int:
    return table.scan(where, **options).files().num_rows


def another(table: bridge.Table, name: str, first: int) -> Path:
    data = pa.table({"id": pa.array([first, first + 1], pa.int32()), "x": [1.0, 2.0]})
    return write(Path(table.name) / name, data)


def test_build_refresh_show_and_report(table: bridge.Table) -> None:
    ticks: list[tuple[int, int]] = []
    made = table.index.build(
        bloom="name:fpp=0.01", modes={"x": "none"}, progress=lambda *t: ticks.append(t)
    )
    assert (made.generation, made.files, made.read, made.committed) == (1, 12, 12, True)
    assert ticks[-1] == (12, 12)
    assert any(i.startswith("bloom(name") for i in table.index.show()["indexes"])
    again = table.index.refresh()
    assert (again.generation, again.committed) == (1, False)
    another(table, "month=3/new.parquet", 9000)
    assert table.index.refresh().read == 1
    assert {c.name for c in table.index.report().columns} >= {"id", "name"}
    assert table.index.list_failed() == []
    assert table.index.build(without=["bloom(name)"]).to_dict()["generation"] >= 3


def test_what_cannot_be_asked_of_a_build_is_refused(table: bridge.Table) -> None:
    for options, code in (
        ({"blom": "name"}, "INVALID_REQUEST"),
        ({"bloom": "nope"}, "COLUMN_NOT_FOUND"),
        ({"modes": {"id": "some"}}, "INVALID_CONFIGURATION"),
        ({"modes": "full"}, "INVALID_REQUEST"),
        ({"without": "bloom(id)"}, "INVALID_REQUEST"),
        ({"nan": "scna"}, "INVALID_REQUEST"),
    ):
        with pytest.raises(bridge.BridgeError) as caught:
            table.index.build(**options)
        assert caught.value.code == code
    for ask in (table.index.show, table.index.report, table.index.statistics):
        with pytest.raises(bridge.BridgeError) as caught:
            ask()
        assert caught.value.code == "GENERATION_NOT_FOUND"


def test_one_path_is_no_list_of_files(table: bridge.Table) -> None:
    for path in (Path(table.name) / "month=1", f"{table.name}/month=1"):
        with pytest.raises(bridge.BridgeError, match="give a list"):
            table.index.add(path)  # type: ignore[arg-type]


def test_a_session_that_refreshes_often_holds_nothing_of_before(
    table: bridge.Table, session: bridge.Session
) -> None:
    for _ in range(5):
        table.index.refresh()
        assert kept(table, "id = 2101") == 1
    gc.collect()
    assert not session._outdated


def test_added_files_prune_and_the_others_stay(table: bridge.Table) -> None:
    table.index.build()
    path = another(table, "month=2/new.parquet", 5000)
    assert kept(table, "id = 7") == 1  # the new file, which the index does not know
    made = table.index.add([path])
    assert (made.generation, made.files, made.read, made.removed) == (2, 1, 1, 0)
    assert kept(table, "id = 7") == 0
    assert kept(table, "id = 5001") == 1
    assert kept(table, "id = 2150") == 1
    assert table.index.show()["files"] == 13
    assert table.index.refresh().committed is False  # nothing is left to do


def test_files_added_again_or_changed(table: bridge.Table) -> None:
    table.index.build()
    path = another(table, "month=2/new.parquet", 5000)
    table.index.add([path])
    again = table.index.add([path])
    assert (again.committed, again.read) == (False, 0)
    another(table, "month=2/new.parquet", 6000)
    made = table.index.add([path])
    assert (made.read, made.removed) == (1, 1)
    assert kept(table, "id = 5000") == 0
    assert kept(table, "id = 6000") == 1
    assert table.index.show()["files"] == 13


def test_the_first_files_begin_an_index_that_is_no_file_set(table: bridge.Table) -> None:
    """A snapshot of it would lose all other files: they are listed still."""
    first = Path(table.name) / "month=1" / "f0.parquet"
    table.index.add([first])
    assert table.index.show()["complete"] is False
    assert table.scan(freshness="snapshot").to_arrow().num_rows == 1200
    assert kept(table, "id = 7") == 11
    table.index.build()
    assert table.index.show()["complete"] is True
    assert kept(table, "id = 7") == 0


def test_a_directory_stands_for_its_data_files(table: bridge.Table) -> None:
    table.index.build()
    root = Path(table.name) / "month=5"
    write(root / "a.parquet", pa.table({"id": pa.array([7], pa.int32())}))
    write(root / "b.parquet", pa.table({"id": pa.array([8], pa.int32())}))
    (root / "_SUCCESS").touch()
    write(root / "_temporary" / "c.parquet", pa.table({"id": pa.array([9], pa.int32())}))
    made = table.index.add([root])
    assert made.files == 2
    assert table.scan("id = 7").to_arrow()["month"].to_pylist() == [5]
    assert kept(table, "id = 7") == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../other/f.parquet", "INVALID_REQUEST"),
        ("../flights2/month=1/f.parquet", "INVALID_REQUEST"),
        ("month=1/_hidden.parquet", "INVALID_REQUEST"),
        ("plain/f.parquet", "INVALID_REQUEST"),
        ("month=1/absent.parquet", "FILE_UNREADABLE"),
    ],
)
def test_files_that_are_not_the_tables_are_refused(
    table: bridge.Table, name: str, code: str
) -> None:
    table.index.build()
    path = Path(os.path.normpath(Path(table.name) / name))
    if "absent" not in name:
        write(path, pa.table({"id": pa.array([1], pa.int32())}))
    with pytest.raises(bridge.BridgeError) as caught:
        table.index.add([path])
    assert caught.value.code == code
    assert len(list((Path(table.name) / ".skipbridge" / "generations").iterdir())) == 1


def test_a_path_with_dots_and_no_files_are_refused(table: bridge.Table) -> None:
    for files in ([f"file://{table.name}/month=1/../../x"], []):
        with pytest.raises(bridge.BridgeError):
            table.index.add(files)


def test_21_a_damaged_index_is_built_anew_and_not_added_to(table: bridge.Table) -> None:
    table.index.build()
    (manifest,) = (Path(table.name) / ".skipbridge" / "generations").glob("*.json")
    manifest.write_text("{}")
    with pytest.raises(bridge.BridgeError) as caught:
        table.index.add([another(table, "month=1/n.parquet", 1)])
    assert caught.value.code == "INDEX_CORRUPT"
    assert table.index.build().files == 13


def test_19_a_file_written_within_the_clocks_grain_is_waited_for(table: bridge.Table) -> None:
    path = Path(table.name) / "month=1" / "young.parquet"
    pq.write_table(pa.table({"id": pa.array([7], pa.int32())}), path)
    table.index.add([path])
    assert kept(table, "id = 9") == 12
    ahead = path.stat().st_mtime_ns + 3_600_000_000_000
    os.utime(path, ns=(ahead, ahead))  # a clock that is ahead: waiting does not help
    said: list[str] = []
    table.index.add([path], say=said.append)
    assert "not trusted yet" in said[0]
    assert kept(table, "id = 9") == 13


def test_writers_at_once_each_add_their_own(table: bridge.Table) -> None:
    table.index.build()
    paths = [another(table, f"month=1/w{i}.parquet", 10_000 + i * 10) for i in range(6)]
    problems: list[BaseException] = []

    def add(path: Path) -> None:
        try:
            table.index.add([path])
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=add, args=(p,)) for p in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert table.index.show()["files"] == 18
    for i in range(6):
        assert kept(table, f"id = {10_000 + i * 10}") == 1
    assert kept(table, "id = 7") == 0


def test_statistics_are_the_files_own_bounds(tmp_path: Path, session: bridge.Session) -> None:
    root = tmp_path / "t"
    day = dt.date(2024, 3, 1)
    data = {
        "i": pa.array([3, None, 1], pa.int16()),
        "f": pa.array([1.5, float("nan"), 0.5], pa.float32()),
        "d": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-7.50")]),
        "w": pa.array([decimal.Decimal(10) ** 24] * 3, pa.decimal128(30, 2)),
        "day": pa.array([day, day, None]),
        "at": pa.array([dt.datetime(2024, 3, 1, 12)] * 3, pa.timestamp("us")),
        "s": ["b", "é", None],
        "ok": [True, None, False],
        "n": [{"a": 5, "l": [1]}] * 3,
        "raw": pa.array([b"\x00\xff"] * 3),
    }
    write(root / "a.parquet", pa.table(data))
    write(root / "b.parquet", pa.table({"i": pa.array([9], pa.int16())}))
    table = session.table(root)
    table.index.build(nan="scan")
    wide = table.index.statistics("wide")
    first, second = wide.to_pylist()
    assert first["path"].endswith("/a.parquet")
    assert (first["rows"], second["rows"]) == (3, 1)
    expected = {
        "i": (1, 3, 1),
        "f": (0.5, 1.5, 0),
        "d": (decimal.Decimal("-7.50"), decimal.Decimal("1.25"), 1),
        "w": (decimal.Decimal(10) ** 24,) * 2 + (0,),
        "day": (day, day, 1),
        "at": (dt.datetime(2024, 3, 1, 12),) * 2 + (0,),
        "s": ("b", "é", 1),
        "ok": (False, True, 1),
        "n.a": (5, 5, 0),
        "raw": (b"\x00\xff", b"\x00\xff", 0),
    }
    for name, bounds in expected.items():
        assert tuple(first[f"{name}.{key}"] for key in ("min", "max", "nulls")) == bounds, name
    assert first["f.nans"] == 1 and first["i.exact"] is True
    assert second["s.min"] is None and second["s.nulls"] == 1
    assert wide.schema.field("i.min").type == pa.int16()
    long = table.index.statistics(columns=["I", "n.a"])
    assert long.column_names == [
        *("path", "column", "min", "max", "nulls", "nans", "rows", "exact", "bytes", "modified")
    ]
    assert min(first["i.bytes"], first["n.a.bytes"]) > 0 and second["s.bytes"] is None
    assert (
        sum(v for k, v in first.items() if k.endswith(".bytes"))
        < (root / "a.parquet").stat().st_size
    )
    assert first["modified"].timestamp() == (root / "a.parquet").stat().st_mtime_ns // 1000 / 1e6
    assert long.slice(0, 2).select(["column", "min", "max"]).to_pylist() == [
        {"column": "i", "min": "1", "max": "3"},
        {"column": "i", "min": "9", "max": "9"},
    ]
    assert table.index.statistics().num_rows == 2 * len(expected)
    for options in ({"form": "tall"}, {"columns": ["n.l"]}):
        with pytest.raises(bridge.BridgeError) as caught:
            table.index.statistics(**options)
        assert caught.value.code == "INVALID_REQUEST"


def test_statistics_fetch_all_columns_at_once(tmp_path: Path, session: bridge.Session) -> None:
    write(tmp_path / "t" / "f", pa.table({f"C{i}": [i] for i in range(40)}))
    table = session.table(tmp_path / "t")
    table.index.build()
    assert table.index.statistics().num_rows == 40
    packs = {p.name for p in (tmp_path / "cache").rglob("*.json")} - {"meta.json"}
    assert len(packs) == 1
