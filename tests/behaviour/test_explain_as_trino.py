"""What a person types is explained as Trino will run it; what prunes nothing is named."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest

from bridge.engines.trino.translate import translate
from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import BIGINT, DATE, STRING, TIMESTAMP
from bridge.planner.reports.report import PruneReport
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.support.lake import NAME, Lake, drained


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A file a year, 2020 to 2025, with one moment of it."""
    columns = (Column("ts", TIMESTAMP), Column("d", DATE), Column("s", STRING))
    made = Lake(tmp_path, columns, ())
    for year in range(2020, 2026):
        moment = dt.datetime(year, 7, 1, 13, 30)
        rows = {
            "ts": pa.array([moment], pa.timestamp("us")),
            "d": pa.array([moment.date()], pa.date32()),
            "s": pa.array([f"{year}-07-01"], pa.string()),
        }
        made.write(f"{year}.parquet", pa.table(rows))
    made.build()
    return made


def explained(lake: Lake, text: str, engine: str = "trino") -> PruneReport:
    predicate, dropped = parse_where(text, engine)
    request = ScanRequest(NAME, predicate, dropped, engine=engine, strict=True)
    plan = lake.planner().plan(request)
    drained(plan)
    return plan.report()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("year(ts) = 2024", 1),
        ("year(d) IN (2021, 2024)", 2),
        ("year(d) <> 2021", 5),
        ("NOT (year(ts) >= 2022)", 2),
        ("date(ts) = DATE '2024-07-01'", 1),
        ("CAST(ts AS date) > DATE '2024-07-01'", 1),
        ("date(d) <= DATE '2020-07-01'", 1),
        ("date_trunc('month', ts) = TIMESTAMP '2023-07-01 00:00:00'", 1),
        ("date_trunc('hour', ts) = TIMESTAMP '2023-07-01 13:00:00'", 1),
        ("date_trunc('year', d) < DATE '2021-01-01'", 1),
    ],
)
def test_what_trino_unwraps_prunes_and_needs_no_index(lake: Lake, text: str, kept: int) -> None:
    report = explained(lake, text)
    assert report.files_kept == kept
    assert report.dropped == () and report.not_used == ()
    assert "year" not in report.predicate and "date_trunc" not in report.predicate


@pytest.mark.parametrize(
    "text",
    [
        "date(s) = DATE '2024-07-01'",
        "year(s) = 2024",
    ],
)
def test_what_prunes_nothing_is_named(lake: Lake, text: str) -> None:
    report = explained(lake, text)
    assert report.files_kept == 6
    assert report.predicate == "true" and len(report.dropped) == 1
    both = explained(lake, f"{text} AND year(d) = 2024")
    assert both.files_kept == 1 and both.dropped == report.dropped


def test_what_trino_leaves_as_it_is_still_names_its_index(lake: Lake) -> None:
    report = explained(lake, "quarter(ts) = 3")
    assert [n.reason for n in report.not_used] == ["NO_INDEX"]


def test_what_an_engine_sends_and_is_evaluated_is_not_called_dropped(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("n", BIGINT),), ())
    for n in (-3, 3, 5):
        lake.write(f"{n}.parquet", pa.table({"n": pa.array([n, n])}))
    lake.build()
    column = {"column": "n", "type": "bigint"}
    node = {"call": "abs", "type": "bigint", "args": [column]}
    equal = [node, {"constant": 3, "type": "bigint"}]
    random = [{"call": "rand", "type": "double", "args": []}, {"constant": 0.5, "type": "double"}]
    parts = [
        {"call": call, "type": "boolean", "args": args}
        for call, args in (("$equal", equal), ("$less_than", random))
    ]
    whole = {"call": "$and", "type": "boolean", "args": parts}
    document = {"version": 1, "none": False, "domains": [], "expression": whole}
    asked = translate(json.dumps(document))
    plan = lake.planner().plan(ScanRequest(NAME, asked.expression, asked.dropped))
    drained(plan)
    report = plan.report()
    assert report.files_kept == 2 and len(asked.dropped) == 2
    assert len(report.dropped) == 1 and "rand" in report.dropped[0]
