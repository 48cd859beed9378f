"""The law of units: a Hudi table's schema tells the unit of its times, whatever files call it.

Files of all units under schemas of all units, also in structs, lists and logs, give the rows of a
model with every predicate, with an index and without. Files whose own units are certain are
skipped by their times; the others never are.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridge
from tests.support.hudi_evolving import COMMIT_TIME, EVENT_TIME
from tests.support.hudi_units import (
    BASE,
    FAR,
    Row,
    UnitsTable,
    condition,
    shown,
    spelled,
)

MODES = [None, COMMIT_TIME, EVENT_TIME]


def key(row: Row) -> str:
    text: str = row["k"]
    return text


def check(made: UnitsTable, table: bridge.Table, count: int) -> int:
    """Compares rows; returns how many slices were skipped."""
    assert sorted(made.found(table), key=key) == sorted(made.expected(), key=key)
    skipped = 0
    for _ in range(count):
        text, holds = condition(made)
        expected = [shown(row) for row in made.rows if holds(row)]
        assert sorted(made.found(table, text), key=key) == sorted(expected, key=key), text
        skipped += len(made.groups) - table.scan(text).files().num_rows
    return skipped


def kinds(random: Random) -> dict[str, list[str]]:
    """Indexes beside min/max."""
    chosen = {"bloom": ["t", "k"], "values": ["t", "n"], "expression": ["date_trunc('day', t)"]}
    return {kind: on for kind, on in chosen.items() if random.random() < 0.5}


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=max(settings.default.max_examples // 100, 3))
@given(
    random=st.randoms(use_true_random=False), version=st.sampled_from([6, 8]), mixed=st.booleans()
)
def test_rows_are_in_the_units_of_the_table(
    mode: str | None, random: Random, version: int, mixed: bool
) -> None:
    with tempfile.TemporaryDirectory() as scratch, bridge.connect() as session:
        root = Path(scratch) / "t"
        made = UnitsTable(root, random, version, mode, mixed=mixed)
        made.run(random.randint(1, 9))
        table = session.table(str(root))
        check(made, table, 2)
        table.index.build(**kinds(random))
        check(made, table, 6)
        made.run(random.randint(0, 3))  # the index does not know these
        check(made, table, 4)
        table.index.refresh()
        check(made, table, 6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", BASE)
def test_files_are_skipped_by_times_that_are_certain(
    kind: str, mode: str | None, tmp_path: Path
) -> None:
    """Where no file calls milliseconds microseconds, and none has plain numbers for times."""
    made = UnitsTable(tmp_path / "t", Random(7), 8, mode, mixed=False)
    made.kinds = dict.fromkeys(made.kinds, kind)
    made.run(12)
    certain = kind in ("timestamp-millis", "timestamp-micros")
    with bridge.connect() as session:
        table = session.table(str(made.hudi.root))
        table.index.build()
        skipped = check(made, table, 40)
        kept = table.scan(f"t = {spelled(FAR)}").files().num_rows
        assert table.scan("n > 9").files().num_rows == 0
    held = sum(any(row["t"] is not None for row in g.rows.values()) for g in made.groups)
    assert kept == 0 if certain else kept >= held
    assert skipped > (40 if certain else 0)


@pytest.mark.parametrize("mode", MODES)
def test_files_of_uncertain_units_are_skipped_by_other_columns(
    mode: str | None, tmp_path: Path
) -> None:
    made = UnitsTable(tmp_path / "t", Random(11), 8, mode)
    made.kinds = dict.fromkeys(made.kinds, "timestamp-millis")
    made.run(16)
    with bridge.connect() as session:
        table = session.table(str(made.hudi.root))
        table.index.build(values=["n"])
        check(made, table, 40)
        assert table.scan(f"t = {spelled(FAR)}").files().num_rows == len(made.groups)
        assert table.scan("n > 9").files().num_rows == 0
