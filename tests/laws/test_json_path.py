"""The law over paths into JSON, against two plain models: one reads as Trino does, one as Hive.

The texts are what engines differ about: keys that occur twice, arrays and scalars on the way,
objects at its end, numbers in every spelling, text that is no JSON, and all of them well-behaved
in most files.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.expression.bind import bind
from bridge.expression.function_catalog import call
from bridge.expression.nodes import Call, Literal, Not, Op, Predicate, Reference
from bridge.expression.parsing.json_path import scalars
from bridge.index.kinds import evaluate_indexes
from bridge.index.kinds.opened import OpenedKind
from bridge.index.kinds.registry import kind
from bridge.kernel.types import HIVE, STRING, TRINO, Field, Semantics
from tests.support.lake import Lake

FILES, ROWS, TABLES, PREDICATES = 16, 5, 24, 40
asked: Counter[str] = Counter()
KEYS = ("a", "b")


class Pairs(list[tuple[str, Any]]):
    """An object, with all its keys."""


class Number(str):
    """A number as it is spelled."""


def document(text: str) -> Any:
    """The value of a text, None if it is no JSON."""
    try:
        return json.loads(
            text, object_pairs_hook=Pairs, parse_int=Number, parse_float=Number,
            parse_constant=lambda _: 1 / 0,
        )  # fmt: skip
    except (ValueError, ZeroDivisionError, RecursionError):
        return None


def trino(value: Any, keys: tuple[str, ...]) -> str | None:
    """The first of equal keys; scalars as they are spelled; all else is NULL."""
    for key in keys:
        found = [v for k, v in value if k == key] if isinstance(value, Pairs) else []
        if not found:
            return None
        value = found[0]
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str) else None


def hive(value: Any, keys: tuple[str, ...]) -> str | None:
    """The last of equal keys; arrays are looked into; objects are text; numbers are Java's."""
    for key in keys:
        if isinstance(value, Pairs):
            value = dict(value).get(key)
        elif type(value) is list:
            inside = [dict(v).get(key) for v in value if isinstance(v, Pairs)]
            value = [v for v in inside if v is not None] or None
        else:
            return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Number):
        whole = value.removeprefix("-").isdigit()
        return str(int(value)) if whole else str(float(value)).replace("e", "E")
    return value if value is None or isinstance(value, str) else json.dumps(value)


def text(rng: random.Random, wild: bool) -> str | None:
    scalar = rng.choice((f'"x{rng.randrange(9)}"', str(rng.randrange(-20, 20)), "true", "null",
                         '"\\u00e9"', '"é\U0001d11e"', '""', '" 1"'))  # fmt: skip
    if not wild:
        return rng.choice(
            (f'{{"a": {{"b": {scalar}, "c": [1.50]}}}}', f'{{"a":{{"c":{scalar}}}}}', '{"a": 7}')
        )
    return rng.choice((
        None, "", "{", "null", "3", f'{{"a": {{"b": {scalar}', f'{{"a": {{"b": {scalar}}}}} rest',
        f'{{"a": {{"b": {scalar}, "b": 3}}}}', f'{{"a": 1, "a": {{"b": {scalar}}}}}',
        f'[{{"a": {{"b": {scalar}}}}}]', f'{{"a": [{{"b": {scalar}}}]}}', '{"a": {"b": 1.50}}',
        '{"a": {"b": 1e3}}', '{"a": {"b": -0}}', '{"a": {"b": 12345678901234567890}}',
        '{"a": {"b": {"c": 1}}}', '{"a": {"b": [1, "x"]}}', '{"a": {"b": NaN}}',
        '{"a": {"b": "\\ud800"}}', f"{{'a': {{'b': {scalar}}}}}", '{"A": {"b": 1}}', "[" * 3000,
    ))  # fmt: skip


def predicate(rng: random.Random, asked_for: Call) -> Predicate:
    words = sorted(rng.sample(("x1", "x4", "x7", "é", "3", "-5", "true", "", " 1", "1.5", "1.50",
                               "0", "null", "1000.0", "[1", "-0"), 2))  # fmt: skip
    literals = tuple(Literal(word.encode(), STRING) for word in words)
    op = rng.choice((Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IN, Op.IS_NULL, Op.IS_NOT_NULL))
    if op is Op.IN:
        return Predicate(op, asked_for, literals)
    return Predicate(op, asked_for, () if op in (Op.IS_NULL, Op.IS_NOT_NULL) else literals[:1])


def truth(asked_for: Predicate, found: str | None) -> bool | None:
    if asked_for.op in (Op.IS_NULL, Op.IS_NOT_NULL):
        return (found is None) is (asked_for.op is Op.IS_NULL)
    if found is None:
        return None
    value = found.encode("utf-8", "surrogatepass")
    others = [one.value for one in asked_for.literals]
    first = others[0]
    assert isinstance(first, bytes)
    return {
        Op.EQ: value == first, Op.NE: value != first, Op.LT: value < first, Op.LE: value <= first,
        Op.GT: value > first, Op.GE: value >= first, Op.IN: value in others,
    }[asked_for.op]  # fmt: skip


@pytest.mark.parametrize("number", range(TABLES))
def test_paths_keep_the_law(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    lake = Lake(tmp_path, recursive=True)
    files: list[list[str | None]] = []
    for i in range(FILES):
        wild = rng.random() < 0.4
        files.append([text(rng, wild and rng.random() < 0.5) for _ in range(ROWS)])
        lake.write(f"f{i:02d}", {"doc": pa.array(files[-1], pa.string())})
    asked_for = call("json_extract_scalar", [Reference(("doc",)), Literal(b"$.a.b", STRING)])
    assert asked_for is not None
    over = asked_for.text
    if number % 3 == 2:
        upper = call("upper", [asked_for])
        assert upper is not None
        over = upper.text
    names = {"expression": over, "bloom": over, "values": "doc"}
    definitions = [kind(name).define(on) for name, on in names.items()]
    lake.build(settings=lambda held: held.adding(definitions))
    serving = lake.snapshot()
    fields = (Field("doc", STRING),)
    everything = np.arange(FILES)
    for _ in range(PREDICATES):
        leaf = predicate(rng, upper if number % 3 == 2 else asked_for)  # type: ignore[arg-type]
        semantics, model = rng.choice(((TRINO, trino), (HIVE, hive)))
        negated = rng.random() < 0.3
        bound = bind(Not(leaf) if negated else leaf, fields, (), semantics)
        matched = []
        for rows in files:
            results = [None if row is None else model(document(row), KEYS) for row in rows]
            if number % 3 == 2:
                results = [None if r is None else r.upper() for r in results]
            matched.append(any(truth(leaf, r) is not negated and truth(leaf, r) is not None
                               for r in results))  # fmt: skip
        for opened in serving.kinds:
            assert opened.problem is None, opened.problem
            if not opened.concerns(bound):
                continue
            never = evaluate_indexes.never(bound, everything, [partial(_ask, opened, semantics)])
            for i in np.flatnonzero(never):
                assert not matched[i], (opened.kind.name, leaf, negated, files[i])
            asked[f"{opened.kind.name} pairs"] += FILES
            asked[f"{opened.kind.name} never"] += int(never.sum())


def _ask(opened: OpenedKind, semantics: Semantics, asked_for: Any, ordinals: Any) -> Any:
    return opened.never(asked_for, ordinals, semantics)


@pytest.mark.parametrize(
    "more", ["[" * 600 + "]" * 600, "1" * 600, "0." + "1" * 600, '"' + "x" * 60_000 + '"']
)
def test_what_a_reader_may_refuse_is_disputed(more: str) -> None:
    """Engines' JSON readers have limits: beyond them a text is an error, or NULL, to some."""
    texts = pa.array([f'{{"a": {{"b": "x"}}, "c": {more}}}'], pa.large_string())
    assert scalars(texts, [b"$.a.b"]) is None
    plain = pa.array(['{"a": {"b": "x"}, "c": [[1.5], "x"]}'], pa.large_string())
    assert scalars(plain, [b"$.a.b"]).to_pylist() == ["x"]


def test_it_was_asked_and_pruning_did_happen() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    for name in ("expression", "bloom"):
        assert asked[f"{name} pairs"] > 2_000, asked
        assert asked[f"{name} never"] > asked[f"{name} pairs"] // 12, asked
