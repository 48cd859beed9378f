"""Predicates nested however deeply: the part that is too deep is dropped, no query fails."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from bridge.engines.hive.translate import translate as translate_hive
from bridge.engines.translation import MAX_DEPTH, TOO_DEEP, Translation
from bridge.engines.trino.translate import translate as translate_trino
from bridge.expression.bind import bind
from bridge.expression.format import format, format_bound
from bridge.kernel.types import BIGINT, HIVE, TRINO, Field

LEAF = '{"call": "%s", "type": "boolean", "args": [%s, {"constant": 5, "type": "bigint"}]}'
COLUMN = '{"column": "a", "type": "bigint"}'
KEPT = '"domains": [{"column": "a", "type": "bigint", "null_allowed": false, "all": true}]'
Nested = Callable[[int], Translation]


def _around(name: str, type: str, inner: str, rest: str, depth: int) -> str:
    head = f'{{"call": "{name}", "type": "{type}", "args": ['
    return head * depth + inner + f"{rest}]}}" * depth


def sums(depth: int) -> Translation:
    terms = _around("$add", "bigint", COLUMN, ', {"constant": 1, "type": "bigint"}', depth)
    return translate_trino(f'{{"version": 1, {KEPT}, "expression": {LEAF % ("$equal", terms)}}}')


def nots(depth: int) -> Translation:
    node = _around("$not", "boolean", LEAF % ("$equal", COLUMN), "", depth)
    return translate_trino(f'{{"version": 1, {KEPT}, "expression": {node}}}')


def alternatives(depth: int) -> Translation:
    leaf = LEAF % ("$equal", COLUMN)
    node = _around("$or", "boolean", _around("$and", "boolean", leaf, f", {leaf}", 1), "", depth)
    return translate_trino(f'{{"version": 1, {KEPT}, "expression": {node}}}')


def casts(depth: int) -> Translation:
    inner = _around("UDFToLong", "bigint", COLUMN, "", depth)
    return translate_hive(f'{{"version": 1, "expression": {LEAF % ("GenericUDFOPEqual", inner)}}}')


def hive_nots(depth: int) -> Translation:
    node = _around("GenericUDFOPNot", "boolean", LEAF % ("GenericUDFOPEqual", COLUMN), "", depth)
    return translate_hive(f'{{"version": 1, "expression": {node}}}')


def fields(depth: int) -> Translation:
    node = '{"field": "b", "type": "bigint", "of": ' * depth + COLUMN + "}" * depth
    return translate_hive(f'{{"version": 1, "expression": {LEAF % ("GenericUDFOPEqual", node)}}}')


def types(depth: int) -> Translation:
    name = "array<" * depth + "int" + ">" * depth
    node = f'{{"column": "a", "type": "{name}"}}'
    return translate_hive(f'{{"version": 1, "expression": {LEAF % ("GenericUDFOPEqual", node)}}}')


def arguments(depth: int) -> Translation:
    tree = '{"op": "NOT", "children": [' * depth + '{"op": "LEAF", "leaf": 0}' + "]}" * depth
    leaf = '{"operator": "IS_NULL", "type": "LONG", "column": "a"}'
    return translate_hive(
        f'{{"version": 1, "search_argument": {{"leaves": [{leaf}], "tree": {tree}}}}}'
    )


ALL = (sums, nots, alternatives, casts, hive_nots, fields, types, arguments)


@pytest.mark.parametrize("nested", ALL)
@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 500, 3000, 50_000])
def test_what_is_too_deep_is_dropped(nested: Nested, depth: int) -> None:
    found = nested(depth)
    assert found.dropped and not found.exact
    if nested in (sums, nots, alternatives):
        assert format(found.expression).startswith('"a" IS NOT NULL')  # the rest is kept


@pytest.mark.parametrize("nested", [sums, nots, alternatives, casts, hive_nots, arguments])
def test_what_is_taken_goes_through_the_whole_planner(nested: Nested) -> None:
    found = nested(MAX_DEPTH - 10)
    assert not found.dropped
    engine = HIVE if nested in (casts, hive_nots, arguments) else TRINO
    bound = bind(found.expression, [Field("a", BIGINT)], [], engine)
    assert format_bound(bound) and format(found.expression) and repr(bound) and hash(bound)


@pytest.mark.parametrize("nested", ALL)
def test_little_stack_left_is_no_error(nested: Nested) -> None:
    limit = sys.getrecursionlimit()

    def deeper(frames: int) -> Translation:
        return nested(MAX_DEPTH - 10) if frames <= 0 else deeper(frames - 1)

    depth = 0
    frame = sys._getframe()
    while frame is not None:  # type: ignore[redundant-expr]
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    found = deeper(limit - depth - 420)
    assert found.dropped in ((), (TOO_DEEP,)) or nested in (fields, types)
