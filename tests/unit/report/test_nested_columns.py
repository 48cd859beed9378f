"""`explain` says why arrays, maps and whole structs skip no file."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge


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
