"""Trino's expressions against brute force: a row for which Trino may say true is never left out.

Operands are columns within casts between all types, lengths, precisions and zones (rule 24). Lists
are decided by values and by bits, as Trino has both (rule 26).
"""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from bridge.engines.trino.translate import translate
from bridge.expression.bind import bind
from bridge.expression.evaluate import Row, Truth
from bridge.expression.prune import prune
from bridge.kernel.types import TRINO, Kind
from tests.support.strategies import Case, Statistics, Table, cases, table, value
from tests.support.trino_casts import (
    Failed,
    Model,
    cast,
    model,
    named,
    plain,
    rounded,
    some_type,
    wire,
)

Node = dict[str, Any]
Meaning = Callable[[Row, bool], Truth]
"""What a condition says of a row, lists by values or by bits. Errors: Failed."""
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$equal": lambda a, b: a == b,
    "$not_equal": lambda a, b: a != b,
    "$less_than": lambda a, b: a < b,
    "$less_than_or_equal": lambda a, b: a <= b,
    "$greater_than": lambda a, b: a > b,
    "$greater_than_or_equal": lambda a, b: a >= b,
}
asked: Counter[str] = Counter()


def call(name: str, *args: Node, type: str = "boolean") -> Node:
    return {"call": name, "type": type, "args": list(args)}


def comparable(value: Any, type: Model) -> Any:
    """Texts compare as bytes, those of a char with their padding."""
    if not isinstance(value, str):
        return value
    return (value.ljust(type[1]) if type[0] == "char" else value).encode()


def alike(a: Any, b: Any, type: Model, bits: bool) -> bool:
    if type[0] in ("real", "double") and bits:
        form = ">f" if type[0] == "real" else ">d"
        return struct.pack(form, a) == struct.pack(form, b)
    return bool(comparable(a, type) == comparable(b, type))


class Conditions:
    """Random conditions over a table, each with its meaning."""

    def __init__(self, rng: random.Random, data: Table) -> None:
        self._rng = rng
        self._data = data

    def condition(self, depth: int) -> tuple[Node, Meaning]:
        rng = self._rng
        kind = rng.random() if depth else 1.0
        if kind < 0.2:
            node, meaning = self.condition(depth - 1)
            return call("$not", node), lambda row, bits: _not(meaning(row, bits))
        if kind < 0.55:
            every = kind < 0.38
            parts = [self.condition(depth - 1) for _ in range(rng.choice((1, 2, 2, 3)))]
            meanings = [m for _, m in parts]
            return (
                call("$and" if every else "$or", *(n for n, _ in parts)),
                lambda row, bits: _together([m(row, bits) for m in meanings], every),
            )
        return self._leaf()

    def _leaf(self) -> tuple[Node, Meaning]:
        rng = self._rng
        path = rng.choice(list(self._data.paths))
        column = self._data.paths[path]
        type = model(column)
        node: Node = {"column": path[0], "path": list(path[1:]), "type": named(type)}
        chain = [type]
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            type = some_type(rng, type)
            chain.append(type)
            node = call("$cast", node, type=named(type))

        def of(found: Any) -> Any:
            found = plain(found, column)
            for source, target in pairwise(chain):
                found = cast(found, source, target)
            return found

        return self._about(node, type, lambda row: of(row[path]), self._constants(path, type, of))

    def _constants(
        self, path: tuple[str, ...], type: Model, of: Callable[[Any], Any]
    ) -> list[tuple[Node, Any]]:
        """Constants of the operand's type, near what the operand is of some rows."""
        rng = self._rng
        column = self._data.paths[path]
        found: list[Any] = []
        for _ in range(rng.choice((1, 2, 3, 9))):
            pool = self._data.pools[path]
            try:
                made = of(rng.choice(pool) if rng.random() < 0.8 else value(rng, column))
            except Failed:
                made = None
            found.append(_near(rng, made, type))
        return [({"constant": wire(v, type), "type": named(type)}, v) for v in found]

    def _about(
        self,
        node: Node,
        type: Model,
        of: Callable[[Row], Any],
        constants: list[tuple[Node, Any]],
    ) -> tuple[Node, Meaning]:
        rng = self._rng
        (first, given), (last, other) = constants[0], constants[-1]

        def compared(name: str, row: Row, right: Any) -> Truth:
            left = of(row)
            if left is None or right is None:
                return None
            return OPERATORS[name](comparable(left, type), comparable(right, type))

        def among(row: Row, bits: bool) -> Truth:
            left = of(row)
            if left is None:
                return None
            hits = [None if v is None else alike(left, v, type, bits) for _, v in constants]
            return _together(hits, every=False)

        def distinct(row: Row, bits: bool) -> bool:
            left = of(row)
            if left is None or given is None:
                return left is not given
            same = alike(left, given, type, bits)
            return not (same or (not bits and left != left and given != given))

        kind = rng.random()
        if kind < 0.08:
            return call("$is_null", node), lambda row, _: of(row) is None
        if kind < 0.35:
            listed = call("$array", *(c for c, _ in constants), type=f"array({named(type)})")
            return call("$in", node, listed), among
        if kind < 0.45:
            names = "$greater_than_or_equal", "$less_than_or_equal"
            return call("$between", node, first, last), lambda row, _: _together(
                [compared(names[0], row, given), compared(names[1], row, other)], every=True
            )
        if kind < 0.55:
            return call("$is_distinct_from", node, first), distinct
        if kind < 0.65:
            return call("$identical", node, first), lambda row, bits: not distinct(row, bits)
        name = rng.choice(list(OPERATORS))
        return call(name, node, first), lambda row, _: compared(name, row, given)


def _near(rng: random.Random, found: Any, type: Model) -> Any:
    """The value itself or a neighbour of it."""
    if found is None or rng.random() < 0.6:
        return found
    match type:
        case (("timestamp" | "instant"), digits):
            return rounded(found + rng.choice((-1, 1)) * 10 ** (12 - digits), digits)
        case "decimal", precision, scale:
            unscaled = int(found * 10**scale) + rng.choice((-1, 1))
            return found.__class__(unscaled, 10**scale) if abs(unscaled) < 10**precision else found
        case (("real" | "double"), *_):
            return rng.choice((-found, 0.0, -0.0, float("nan"), 5.0))
    return found


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _together(found: list[Truth], every: bool) -> Truth:
    if (not every) in found:
        return not every
    return None if None in found else every


@given(cases())
def test_24_26_no_file_with_a_row_of_trinos_is_left_out(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, 6)
    if any(t.kind is Kind.BINARY for t in data.paths.values()):
        return  # there are no casts of it
    for _ in range(10):
        node, meaning = Conditions(rng, data).condition(rng.choice((0, 0, 1, 2)))
        found = translate(json.dumps({"version": 1, "expression": node}))
        bound = bind(found.expression, data.columns, [], TRINO)
        answers = prune(bound, Statistics(data), TRINO)
        always = answers.always
        asked["never"] += int(answers.never.sum())
        asked["always"] += int(always.sum())
        asked["pairs"] += len(always)
        for i, rows in enumerate(data.files):
            for row in rows:
                for bits in (False, True):
                    try:
                        truth = meaning(row, bits)
                    except Failed:
                        continue
                    assert not (truth is True and answers.never[i]), (bits, node, row)
                    assert not (truth is not True and always[i]), (bits, node, row)


def test_files_were_left_out() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["never"] > asked["pairs"] // 12, asked
    assert asked["always"] > asked["pairs"] // 100, asked
