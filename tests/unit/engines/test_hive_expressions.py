"""Hive's filter as a tree: the vectors that the Java hooks write, and documents that break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.engines.hive.translate import translate
from bridge.engines.translation import TOO_DEEP
from bridge.expression.format import format
from bridge.kernel.errors import InvalidPredicate

VECTORS = Path(__file__).parents[2] / "vectors" / "hive_expressions.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vectors(case: dict[str, Any]) -> None:
    found = translate(json.dumps(case["predicate"]))
    assert format(found.expression) == case["where"]
    assert list(found.dropped) == case["dropped"]
    assert found.exact is case["exact"]


K = {"column": "k", "type": "bigint"}


def document(node: Any) -> str:
    return json.dumps({"version": 1, "expression": node})


def equal(*args: Any) -> dict[str, Any]:
    return {"call": "GenericUDFOPEqual", "type": "boolean", "args": list(args)}


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (5, "no object"),
        ({"call": "GenericUDFOPAnd", "type": "boolean"}, "without arguments"),
        ({"call": 5, "args": []}, "without arguments"),
        (equal(K, 5), "no object"),
        (equal(K, {"constant": "5", "type": "bigint"}), "'5' is no bigint"),
        (equal(K, {"constant": 2**63, "type": "bigint"}), "is no bigint"),
        (equal(K, {"constant": "x", "type": "double"}), "'x' is no double"),
        (equal(K, {"constant": "=", "type": "binary"}), "'=' is no binary"),
        (equal(K, {"constant": "1e5", "type": "decimal(9,2)"}), "'1e5' is no decimal"),
        (equal(K, {"constant": 5, "type": 7}), "a type '7'"),
    ],
)
def test_a_broken_tree_is_refused(node: Any, words: str) -> None:
    with pytest.raises(InvalidPredicate, match=words):
        translate(document(node))


def test_what_is_nested_too_deeply_is_dropped_not_refused() -> None:
    node: Any = equal(K, {"constant": 5, "type": "bigint"})
    for _ in range(300):
        node = {"call": "GenericUDFOPNot", "type": "boolean", "args": [node]}
    found = translate(document(node))
    assert not found.exact and found.dropped == (TOO_DEEP,)


def test_a_constant_that_no_file_can_hold_is_dropped() -> None:
    half = {"constant": "\ud800", "type": "string"}
    found = translate(document(equal({"column": "s", "type": "string"}, half)))
    assert not found.exact and len(found.dropped) == 1


@pytest.mark.parametrize("name", ["NotEqual", "GreaterThan"])
def test_26_row_by_row_minus_zero_is_less_than_a_whole_zero(name: str) -> None:
    constant = {"constant": "-0.0", "type": "double"}
    widened = {"call": "UDFToDouble", "type": "double", "args": [K]}
    for operand in (K, widened):
        node = {"call": f"GenericUDFOP{name}", "type": "boolean", "args": [operand, constant]}
        found = translate(document(node))
        assert not found.exact
        assert format(found.expression) != f'"k" {"<>" if name == "NotEqual" else ">"} -0.0E0'
