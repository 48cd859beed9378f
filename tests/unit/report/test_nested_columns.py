"""`explain` says why arrays, maps and whole structs skip no file."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import BIGINT, parse_hive_type
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.support.lake import NAME, Lake, age, drained


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("nested") / "t"
    root.mkdir()
    for i in range(3):
        held = i > 0
        columns = {
            "x": [i],
            "tags": pa.array([[i] if held else None]),
            "props": pa.array([[("k", i)] if held else None], pa.map_(pa.string(), pa.int64())),
            "st": pa.array([{"a": i} if held else None]),
        }
        pq.write_table(pa.table(columns), root / f"f{i}.parquet")
        os.utime(root / f"f{i}.parquet", (1.7e9, 1.7e9))
    with bridge.connect() as session:
        session.table(root).index.build()
    return root


@pytest.mark.parametrize(
    ("column", "kind", "conditions"),
    [
        ("tags", "an array", ["tags IS NULL", "tags[1] = 2", "contains(TAGS, 1)"]),
        ("props", "a map", ["props IS NOT NULL", "props['k'] = 2", "cardinality(props) = 1"]),
        ("st", "a struct", ["st IS NULL", "st = 3"]),
    ],
)
def test_the_reason_is_told(table: Path, column: str, kind: str, conditions: list[str]) -> None:
    with bridge.connect() as session:
        for condition in conditions:
            report = session.table(table).scan(condition).explain()
            (told,) = [n for n in report.to_dict()["not_used"] if n["index"] == f"minmax({column})"]
            assert told["reason"] == "NO_STATISTICS" and f"it is {kind}" in told["detail"]
            assert report.files_kept == 3
            assert f"it is {kind}" in str(report)
            mixed = session.table(table).scan(f"({condition}) AND x = 2").explain()
            assert mixed.files_kept == 1 and f"it is {kind}" in str(mixed)


def test_members_of_structs_skip_and_names_within_names_are_no_columns(table: Path) -> None:
    with bridge.connect() as session:
        report = session.table(table).scan("st.a = 2").explain()
        assert report.files_kept < 3 and "it is a" not in str(report)
        other = session.table(table).scan("x = 1 AND soundex('tagsy props_') = 'T200'").explain()
        assert "it is a" not in str(other)


def test_what_has_no_bounds_has_a_remedy(tmp_path: Path) -> None:
    rows = pa.table({"tags": [[1]], "st": [{"a": 1}], "x": [1.0], "id": [1]})
    pq.write_table(rows, tmp_path / "f.parquet")
    with bridge.connect() as session:
        table = session.table(tmp_path)
        table.index.build(modes={"id": "none"})
        for condition, remedy in (
            ("tags IS NULL AND tags[1] = 1", "a column of its own"),
            ("st IS NULL AND st = 1", "one of its members"),
            ("id = 1", "--mode id=full"),
        ):
            (told,) = table.scan(condition).explain().to_dict()["not_used"]
            assert told["reason"] == "NO_STATISTICS" and remedy in told["remedy"], told


def test_a_mode_that_is_set_is_no_remedy(tmp_path: Path) -> None:
    """Footers of unsigned numbers beyond 63 bits give no bounds, whatever the mode."""
    pq.write_table(pa.table({"u": pa.array([2**63 + 5], pa.uint64())}), tmp_path / "f.parquet")
    with bridge.connect() as session:
        table = session.table(tmp_path)
        for mode, remedy in (("none", "--mode u=full"), ("full", "decimal(20,0)")):
            table.index.build(modes={"u": mode})
            (told,) = table.scan("u = 9223372036854775813").explain().to_dict()["not_used"]
            assert remedy in told["remedy"], told
            assert ("--mode" in told["remedy"]) is (mode == "none"), told


def test_times_of_orc_say_why_they_skip_less(tmp_path: Path) -> None:
    moments = [dt.datetime(2026, 1, day) for day in (1, 2)]
    for i, moment in enumerate(moments):
        zoned = pa.array([moment], pa.timestamp("us", "UTC"))
        rows = {"ts": pa.array([moment], pa.timestamp("us")), "tz": zoned, "k": [i]}
        po.write_table(pa.table(rows), tmp_path / f"{i}.orc")
    with bridge.connect() as session:
        table = session.table(tmp_path)
        table.index.build()

        def told(condition: str) -> list[str]:
            found = table.scan(condition).explain().to_dict()["not_used"]
            assert all(n["remedy"] for n in found)
            return [f"{n['reason']}: {n['detail']}" for n in found]

        (wide,) = told("ts = TIMESTAMP '2026-01-01 00:00:00' AND k = 0")
        assert wide.startswith("WIDE_BOUNDS: ORC keeps times in the zone of their writer")
        (none,) = told("tz = TIMESTAMP '2026-01-01 00:00:00'")
        assert none.startswith("NO_STATISTICS: ") and "times with a zone have none" in none
        assert told("k = 0") == told("ts IS NULL") == []


def test_a_member_of_nested_json_gets_no_advice_that_cannot_help(tmp_path: Path) -> None:
    columns = (Column("id", BIGINT), Column("extra", parse_hive_type("struct<a:int>")))
    lake = Lake(tmp_path, columns, format="json")
    file = lake.directory(()) / "a.json"
    file.write_bytes(b'{"id": 1, "extra": {"a": 1}}\n')
    age(file)
    lake.build()
    plan = lake.planner().plan(ScanRequest(NAME, *parse_where("extra.a = 1")))
    drained(plan)
    told = {n.index: n for n in plan.report().not_used}
    assert "column of its own" in told["minmax(extra.a)"].remedy.text, told
