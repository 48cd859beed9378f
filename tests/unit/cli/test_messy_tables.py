"""Tables of a newcomer that are not as they should be: one answer everywhere, with a remedy."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bridge
from bridge.app.cli.main import cli
from bridge.kernel.errors import BridgeError

DAYS = [dt.datetime(2026, 1, day) for day in (1, 2, 3)]
TIMES = pa.table({"ts": pa.array(DAYS, pa.timestamp("us")), "day": pa.array(DAYS, pa.date32())})


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))


def write(path: Path, data: pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path)
    return path.parent


def explain(directory: Path, where: str = "") -> Any:
    return CliRunner().invoke(cli, ["explain", str(directory), where])


def scan(directory: Path, where: str | None = None, **options: Any) -> pa.Table:
    with bridge.connect() as session:
        return session.table(directory).scan(where, **options).to_arrow()


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("ts = TIMESTAMP '2026-01-02 00:00:00 UTC'", "without a zone"),
        ("day < TIMESTAMP '2026-01-02 00:00:00+02:00'", "without a zone"),
        ("ts IN (TIMESTAMP '2026-01-02 00:00:00Z', NULL)", "without a zone"),
        ("\"$file_modified_time\" > TIMESTAMP '2026-01-02 00:00:00'", "00:00 UTC'"),
        ("ts < TIMESTAMP '2026-01-02 23:59:59.999999999'", "at most six digits"),
        ("ts = TIMESTAMP '2026-01-02 00:00:00.000000001 UTC'", "at most six digits"),
    ],
)
def test_a_time_that_is_not_compared_has_one_answer(tmp_path: Path, where: str, told: str) -> None:
    table = write(tmp_path / "t" / "a.parquet", TIMES)
    with pytest.raises(BridgeError) as refused:
        scan(table, where)
    assert refused.value.code == "INVALID_PREDICATE" and told in str(refused.value)
    explained = explain(table, where)
    assert explained.exit_code == 2 and str(refused.value) in explained.stderr


ODD = pa.table(
    {
        "id": [1, 2],
        "nothing": pa.nulls(2),
        "clock": pa.array([dt.time(1, 2, 3), None], pa.time64("us")),
        "address": pa.array([{"zip": 1, "none": None}] * 2),
    }
)


def test_columns_of_nulls_are_scanned_and_other_types_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = write(tmp_path / "t" / "a.parquet", ODD)
    found = scan(table)
    assert found.schema.field("nothing").type == pa.null()
    assert found.select(["id", "nothing"]).to_pylist() == [
        {"id": 1, "nothing": None},
        {"id": 2, "nothing": None},
    ]
    assert "clock, address.none: Hive has no such type" in caplog.text
    assert "nothing" not in caplog.text
    assert scan(table, "nothing IS NULL", columns=["nothing"]).num_rows == 2
    assert scan(table, "nothing IS NOT NULL").num_rows == 0
    caplog.clear()
    assert explain(table, "id = 1").exit_code == 0
    assert caplog.text.count("clock") == 1 and "string or bigint" in caplog.text


@pytest.mark.parametrize("where", ["clock = '01:02:03'", "nothing = 5", "nothing IN ('a', NULL)"])
def test_a_column_without_a_type_is_compared_with_nothing(tmp_path: Path, where: str) -> None:
    table = write(tmp_path / "t" / "a.parquet", ODD)
    with pytest.raises(BridgeError) as refused:
        scan(table, where)
    assert refused.value.code == "INVALID_PREDICATE" and "NULL alone" in str(refused.value)
    assert str(refused.value) in explain(table, where).stderr


def test_a_value_beyond_the_files_inspected_is_no_null(tmp_path: Path) -> None:
    late = 5  # of 60 files, 50 are inspected, and not this one
    for i in range(60):
        values = pa.array([i]) if i == late else pa.nulls(1)
        table = write(tmp_path / "t" / f"{i:02}.parquet", pa.table({"id": [i], "v": values}))
    for where in (None, "v IS NULL", "v IS NOT NULL"):
        with pytest.raises(BridgeError) as refused:
            scan(table, where)
        assert refused.value.code == "SCHEMA_CONFLICT" and "05.parquet" in str(refused.value)
        assert "name the columns" in str(refused.value)
    assert scan(table, columns=["id"]).num_rows == 60
