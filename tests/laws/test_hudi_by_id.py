"""The law of columns by id: random changes of a schema, read by what each file was written with.

Rows equal a model's, with every predicate, with an index and without. An index's entries are by the
files' own names: a renamed column is asked by the old name, and a retyped one is unknown.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridge
from tests.support.hudi_evolving import Column, EvolvingTable, condition

Row = dict[str, Any]


def key(row: Row) -> str:
    return repr(sorted(row.items()))


def kinds(made: EvolvingTable) -> dict[str, list[str]]:
    """Columns of indexes beside min/max, perhaps one that vanishes later."""
    names = [column.name for column in made.columns]
    return {
        kind: made.random.sample(names, made.random.randint(1, len(names)))
        for kind in ("bloom", "values")
        if made.random.random() < 0.6
    }


def check(made: EvolvingTable, table: bridge.Table) -> None:
    """Rows are the model's, with single predicates and two together."""
    expected = made.expected()
    names = [c.name for c in made.columns]
    rows = table.scan().to_arrow().select(names).to_pylist()
    assert sorted(rows, key=key) == sorted(expected, key=key)
    for _ in range(6):
        columns = made.random.sample(made.columns, made.random.randint(1, 2))
        asked = {column.name: condition(column, made.random) for column in columns}
        text = " AND ".join(text for text, _ in asked.values())
        kept = [r for r in expected if all(holds(r[name]) for name, (_, holds) in asked.items())]
        rows = table.scan(text).to_arrow().select(names).to_pylist()
        assert sorted(rows, key=key) == sorted(kept, key=key), text


@pytest.mark.parametrize("logs", [False, True])
@settings(max_examples=max(settings.default.max_examples // 30, 3))
@given(random=st.randoms(use_true_random=False), version=st.sampled_from([6, 8]))
def test_rows_are_those_of_the_ids(logs: bool, random: Random, version: int) -> None:
    with tempfile.TemporaryDirectory() as scratch, bridge.connect() as session:
        made = EvolvingTable(Path(scratch) / "t", random, version, logs)
        made.run(random.randint(1, 10))
        table = session.table(str(made.hudi.root))
        check(made, table)
        table.index.build(**kinds(made))
        check(made, table)
        made.run(random.randint(0, 4))  # the index knows neither these files nor these names
        check(made, table)
        table.index.refresh()
        check(made, table)


@pytest.mark.parametrize("version", [6, 8])
def test_a_renamed_column_skips_by_its_old_name(tmp_path: Path, version: int) -> None:
    made = EvolvingTable(tmp_path / "t", Random(3), version)
    for _ in range(8):
        made.write()
    made._change(made.columns[1], Column(1, "d", "int"))
    with bridge.connect() as session:
        table = session.table(str(made.hudi.root))
        table.index.build()
        values = [row["d"] for row in made.expected() if row["d"] is not None]
        kept = table.scan(f"d = {values[0]}").files().num_rows
        assert 0 < kept < 8
        assert table.scan(f"d = {max(values) + 1}").files().num_rows == 0
        assert table.scan("d IS NOT NULL").to_arrow().num_rows == len(values)


def test_a_name_that_moved_is_not_asked_of_the_other_column(tmp_path: Path) -> None:
    """``a`` is now what was ``b``: the entries of the files' ``a`` say nothing of it."""
    made = EvolvingTable(tmp_path / "t", Random(5))
    made.write()
    made._change(made.columns[1], Column(1, "c", "int"))
    made._change(made.columns[2], Column(2, "a", "string"))
    with bridge.connect() as session:
        table = session.table(str(made.hudi.root))
        table.index.build()
        for row in made.expected():
            if row["a"] is not None:
                assert table.scan(f"a = '{row['a']}'").to_arrow().num_rows >= 1
