"""The law of columns by id: random changes of a schema, each file read as it was written.

Rows equal a model's, with every predicate, with an index and without, now and as of an instant. An
index's entries are by the files' own names: a renamed column is asked by the old name, a retyped
one is unknown. Blocks of logs are read by the schema of their instant.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridge
from bridge.kernel.errors import ReadVersionNotFound, SchemaConflict
from tests.support.hudi_columns import Narrowed, function_of
from tests.support.hudi_evolving import (
    COMMIT_TIME,
    EVENT_TIME,
    Column,
    EvolvingTable,
    condition,
)

Row = dict[str, Any]


def key(row: Row) -> str:
    return repr(sorted(row.items()))


def kinds(made: EvolvingTable) -> dict[str, list[str]]:
    """Indexes beside min/max, perhaps of a column that vanishes later."""
    random = made.random
    simple = [column for column in made.columns if not column.parts]
    found: dict[str, list[str]] = {}
    for kind in ("bloom", "values"):
        if random.random() < 0.6:
            chosen = random.sample(simple, random.randint(1, len(simple)))
            found[kind] = [column.name for column in chosen]
    functions = [function_of(c.name, c.type, random) for c in simple]
    known = [each for each in functions if each is not None]
    if random.random() < 0.6:
        found["expression"] = random.sample(known, random.randint(1, len(known)))
    return found


def check(made: EvolvingTable, table: bridge.Table, at: int = -1) -> None:
    """Rows are the model's, with single predicates and two together."""
    expected = made.expected(at)
    instant, columns, _ = made.states[at]
    as_of = {} if at == -1 else {"version": instant}
    names = [c.name for c in columns]
    rows = table.scan(**as_of).to_arrow().select(names).to_pylist()
    assert sorted(rows, key=key) == sorted(expected, key=key)
    for _ in range(6):
        chosen = made.random.sample(columns, made.random.randint(1, 2))
        asked = {column.name: condition(column, made.random) for column in chosen}
        text = " AND ".join(text for text, _ in asked.values())
        kept = [r for r in expected if all(holds(r[name]) for name, (_, holds) in asked.items())]
        rows = table.scan(text, **as_of).to_arrow().select(names).to_pylist()
        assert sorted(rows, key=key) == sorted(kept, key=key), text


@pytest.mark.parametrize("mode", [None, COMMIT_TIME, EVENT_TIME])
@settings(max_examples=max(settings.default.max_examples // 30, 3))
@given(random=st.randoms(use_true_random=False), version=st.sampled_from([6, 8]))
def test_rows_are_those_of_the_ids(mode: str | None, random: Random, version: int) -> None:
    with tempfile.TemporaryDirectory() as scratch, bridge.connect() as session:
        root = Path(scratch) / "t"
        made = EvolvingTable(root, random, version, mode is not None, mode or COMMIT_TIME)
        made.run(random.randint(1, 14))
        table = session.table(str(root))
        check(made, table)
        table.index.build(**kinds(made))
        check(made, table)
        made.run(random.randint(0, 4))  # the index knows neither these files nor these names
        if random.random() < 0.3:
            made.archive()
        check(made, table)
        table.index.refresh()
        check(made, table)
        at = random.randrange(len(made.states))
        open_writes = [instant for instant in made.pending if instant <= made.states[at][0]]
        if open_writes:  # their rows would belong to the version
            with pytest.raises(ReadVersionNotFound, match=open_writes[0]):
                table.scan(version=made.states[at][0]).to_arrow()
            return
        try:
            check(made, table, at)
        except Narrowed:
            with suppress(SchemaConflict):  # unless the values fit
                table.scan(version=made.states[at][0]).to_arrow()


@pytest.mark.parametrize("version", [6, 8])
def test_a_renamed_column_skips_by_its_old_name(tmp_path: Path, version: int) -> None:
    made = EvolvingTable(tmp_path / "t", Random(3), version)
    for _ in range(8):
        made.write()
    made._change(made._newest[2], Column(2, "d", "int"))
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
    made._change(made._newest[2], Column(2, "c", "int"))
    made._change(made._newest[3], Column(3, "a", "string"))
    with bridge.connect() as session:
        table = session.table(str(made.hudi.root))
        table.index.build()
        for row in made.expected():
            if row["a"] is not None:
                assert table.scan(f"a = '{row['a']}'").to_arrow().num_rows >= 1
