"""A function that no index answers is named with the option that would."""

from __future__ import annotations

import shlex
from types import SimpleNamespace

import pytest

from bridge.expression.bind import bind
from bridge.expression.parsing.text import parse_where
from bridge.index.kinds.registry import kind
from bridge.kernel.types import STRING, TRINO, Field
from bridge.planner.file_pruner import unindexed_functions


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
def test_the_remedy(where: str, held: tuple[str, str] | None, expected: tuple[str, ...]) -> None:
    kinds = []
    if held is not None:
        definition = kind(held[0]).define(held[1])
        ask = kind(held[0]).concerns
        kinds.append(SimpleNamespace(concerns=lambda e: ask(definition, e), definition=definition))
    predicate = bind(parse_where(where, "trino")[0], [Field("name", STRING)], [], TRINO)
    found = unindexed_functions(predicate, kinds)  # type: ignore[arg-type]
    assert tuple(shlex.join(options) for _, options in found) == expected
