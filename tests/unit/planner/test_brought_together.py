"""The columns of a predicate come from storage together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bridge.expression.bind import bind
from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import BIGINT, TRINO, Field
from bridge.planner.file_pruner import FilePruner
from bridge.table.model import Column
from tests.support.lake import Lake

NAMES = ("a", "b", "c")


def test_columns_of_a_predicate_are_one_pack(tmp_path: Path) -> None:
    lake = Lake(tmp_path, recursive=True)
    for i in range(4):
        lake.write(f"f{i}", {name: [i, i + 1] for name in NAMES})
    lake.build()
    serving = lake.snapshot()
    table = replace(lake.table(), columns=tuple(Column(name, BIGINT) for name in NAMES))
    fields = tuple(Field(name, BIGINT) for name in NAMES)
    predicate = bind(parse_where("a > 1 AND b > 1 AND c < 4")[0], fields, (), TRINO)
    pruner = FilePruner(table, serving, TRINO)
    assert pruner.minmax is not None
    assert pruner.minmax.columns(predicate) == NAMES
    never = pruner.minmax.over_all(predicate)
    assert never is not None and never.tolist() == [True, False, False, False]
    packs = [p for p in serving.local.directory.glob("*.json") if p.name != "meta.json"]
    assert len(packs) == 1
