"""Hive's SearchArgument: shared vectors, and documents that break the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.engines.hive.translate import translate
from bridge.engines.translation import TOO_DEEP
from bridge.expression.format import format
from bridge.expression.nodes import AlwaysTrue
from bridge.kernel.errors import InvalidPredicate

VECTORS = Path(__file__).parents[2] / "vectors" / "hive_search_argument.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vectors(case: dict[str, Any]) -> None:
    found = translate(json.dumps(case["predicate"]))
    assert format(found.expression) == case["where"]
    assert list(found.dropped) == case["dropped"]
    assert found.exact is case["exact"]


def test_no_predicate() -> None:
    assert translate("").expression == AlwaysTrue()


def argument(tree: Any, leaves: Any = None) -> str:
    return json.dumps({"version": 1, "search_argument": {"leaves": leaves or [], "tree": tree}})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "a JSON list"),
        ('{"version": 2}', "version 2"),
        ('{"version": 1}', "no search_argument"),
        (argument({"op": "LEAF", "leaf": 0}), "leaf 0 of 0"),
        (argument({"op": "LEAF", "leaf": -1}), "leaf -1"),
        (argument({"op": "NOT", "children": []}), "NOT with children"),
        (argument({"op": "CONSTANT", "value": "MAYBE"}), "MAYBE"),
        (argument({"op": 5}), "a node 5"),
        (argument([]), "no object"),
        (argument({"op": "AND", "children": []}, [5]), "a leaf that is no object"),
    ],
)
def test_a_broken_document_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidPredicate, match=words):
        translate(text)


def test_a_value_of_another_type_is_refused() -> None:
    leaf = {"operator": "EQUALS", "type": "LONG", "column": "k", "literal": "5"}
    with pytest.raises(InvalidPredicate, match="'5' is no LONG"):
        translate(argument({"op": "LEAF", "leaf": 0}, [leaf]))


def test_what_is_nested_too_deeply_is_dropped_not_refused() -> None:
    tree: Any = {"op": "CONSTANT", "value": "YES"}
    for _ in range(300):
        tree = {"op": "NOT", "children": [tree]}
    found = translate(argument(tree))
    assert not found.exact and found.dropped == (TOO_DEEP,)
