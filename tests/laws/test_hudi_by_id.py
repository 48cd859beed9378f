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
from tests.support.hudi_evolving import Column, EvolvingTable

Row = dict[str, Any]


def condition(column: Column, random: Random) -> tuple[str, Any]:
    """A condition, and what it says of a value."""
    number = random.randint(-1, 95)
    name = column.name
    if random.random() < 0.1:
        return f"{name} IS NULL", lambda v: v is None
    if column.type == "string":
        text = random.choice([f"s{number:03d}", str(number)])
        if random.random() < 0.5:
            return f"{name} = '{text}'", lambda v: v == text
        return f"{name} < '{text}'", lambda v: v is not None and v < text
    if random.random() < 0.5:
        return f"{name} = {number}", lambda v: v == number
    return f"{name} >= {number}", lambda v: v is not None and v >= number


def key(row: Row) -> str:
    return repr(sorted(row.items()))


@settings(max_examples=max(settings.default.max_examples // 30, 3))
@given(random=st.randoms(use_true_random=False), version=st.sampled_from([6, 8]))
def test_rows_are_those_of_the_ids(random: Random, version: int) -> None:
    with tempfile.TemporaryDirectory() as scratch, bridge.connect() as session:
        made = EvolvingTable(Path(scratch) / "t", random, version)
        made.run(random.randint(1, 10))
        expected = made.expected()
        table = session.table(str(made.hudi.root))
        names = [c.name for c in made.columns]
        asked = [condition(random.choice(made.columns), random) for _ in range(6)]
        for _ in range(2):  # without an index, then with one
            found = table.scan().to_arrow().select(names).to_pylist()
            assert sorted(found, key=key) == sorted(expected, key=key)
            for text, holds in asked:
                name = text.split()[0]
                rows = table.scan(text).to_arrow().select(names).to_pylist()
                kept = [row for row in expected if holds(row[name])]
                assert sorted(rows, key=key) == sorted(kept, key=key), text
            table.index.build()


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
