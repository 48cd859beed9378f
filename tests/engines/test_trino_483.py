"""The newest supported Trino family: the same predicates, the same answers."""

from __future__ import annotations

import re

import pytest

from tests.engines.everything import CASES
from tests.engines.stack import Stack

pytestmark = pytest.mark.full


def test_predicates(stack_483: Stack) -> None:
    """One test, so that a run without it costs no server."""
    wrong = []
    for case in CASES:
        expected = sorted(stack_483.everything.rows.filter(case.arrow)["id"].to_pylist())
        rows = stack_483.query(f"SELECT id FROM laws.everything WHERE {case.sql}")
        if sorted(row[0] for row in rows) != expected:
            wrong.append(case.sql)
    assert wrong == []


def test_pruning_happened(stack_483: Stack) -> None:
    kept = stack_483.kept_files("SELECT count(*) FROM laws.everything WHERE id = 77")
    assert kept < stack_483.everything.files


def test_join_with_dynamic_filter(stack_483: Stack) -> None:
    sql = (
        "SELECT count(*), min(e.id), max(e.id) FROM laws.everything e "
        "JOIN (VALUES BIGINT '5', BIGINT '6', BIGINT '700') AS v(k) ON e.id = v.k"
    )
    assert stack_483.query(sql) == [[3, 5, 700]]


def test_a_join_filter_on_a_key_prunes_partitions(stack_483: Stack) -> None:
    sql = (
        "SELECT count(*), count(DISTINCT e.q) FROM laws.everything e "
        "JOIN (SELECT q + 0 AS k FROM laws.everything WHERE id = 3) AS v ON e.q = v.k"
    )
    assert stack_483.query(sql) == [[150, 1]]
    text = stack_483.analyzed(sql)
    counts = re.findall(r"skipbridge partitions dynamic-filters (\w+).*?(?:total=|=\s*)(\d+)", text)
    found = {name: int(n) for name, n in counts}
    assert 0 < found["kept"] < found["total"], text


def test_planner_down_is_one_clear_error(stack_483: Stack) -> None:
    stack_483.stop_planner()
    try:
        with pytest.raises(Exception, match="skipbridge serve"):
            stack_483.query("SELECT count(*) FROM laws.everything")
    finally:
        stack_483.start_planner()
    assert stack_483.query("SELECT count(*) FROM laws.everything") == [[750]]
