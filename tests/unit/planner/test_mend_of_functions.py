"""A function that no index answers is named with the option that would."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bridge.expression.bind import bind
from bridge.expression.text import parse_where
from bridge.index.registry import kind
from bridge.planner.files import FilePruner
from bridge.planner.index_view import IndexView
from bridge.table.model import Column
from bridge.types import STRING, TRINO, Field
from tests.support.lake import Lake


@pytest.mark.parametrize(
    ("where", "held", "expected"),
    [
        ("name LIKE 'a%b'", None, ("--values name",)),
        ("name LIKE 'a%b'", ("values", "name"), ()),
        ("lower(name) = 'a'", None, ("--expression 'lower(name)'",)),
        ("lower(name) = 'a'", ("bloom", "lower(name)"), ()),
        ("lower(name) = 'a'", ("values", "name"), ()),
        ("upper(name) = 'A'", ("bloom", "lower(name)"), ("--expression 'upper(name)'",)),
    ],
)
def test_what_would_mend_it(
    tmp_path: Path, where: str, held: tuple[str, str] | None, expected: tuple[str, ...]
) -> None:
    kinds = []
    if held is not None:
        definition = kind(held[0]).define(held[1])
        ask = kind(held[0]).concerns
        kinds.append(SimpleNamespace(concerns=lambda e: ask(definition, e), definition=definition))
    predicate = bind(parse_where(where, "trino")[0], [Field("name", STRING)], [], TRINO)
    lake = Lake(tmp_path, (Column("name", STRING),))
    view = IndexView(None, ())
    view.serving = SimpleNamespace(  # type: ignore[assignment]
        kinds=kinds, manifest=SimpleNamespace(settings=SimpleNamespace(minmax_visible=False))
    )
    pruner = FilePruner(lake.table(), view, TRINO)
    assert tuple(option for _, option in pruner.unindexed_functions(predicate)) == expected
