"""The law: Iceberg's expressions, asked of the planner as each client evaluates them.

Random tables and random expressions as JSON. A file is kept if one of its rows matches for Java
(two values, NaN and 0.0 in Java's order), for Arrow (three values, IEEE) or for Spark. A residual
for Java matches exactly the rows of the expression.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from bridge.expression.evaluate import Row
from bridge.expression.nodes import Or, Unknown
from bridge.expression.parsing.calendar import format_date
from bridge.iceberg_rest import expressions
from bridge.iceberg_rest.expressions import (
    MOST_LEVELS,
    SEMANTICS,
    Condition,
    IcebergColumn,
    Junction,
    parse,
    to_expression,
    to_java,
)
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import DOUBLE, Kind, Type, Value
from bridge.planner.request import ScanRequest
from tests.support.lake import NAME, owned
from tests.support.planner_world import LAW, World
from tests.support.strategies import Case, cases, value
from tests.tiers import examples

_OPS = ("eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq", "in", "not-in", "is-null", "not-null")
_TEXT_OPS = ("starts-with", "not-starts-with")
_NAN_OPS = ("is-nan", "not-nan")
_TRUE_FOR_NULL = ("not-eq", "not-in", "not-starts-with", "not-nan", "is-null")
_NEGATED = {"eq": "not-eq", "in": "not-in", "lt": "gt-eq", "lt-eq": "gt", "is-null": "not-null"}
_NEGATED |= {"is-nan": "not-nan", "starts-with": "not-starts-with"}
_NEGATED |= {v: k for k, v in _NEGATED.items()}
Types = Mapping[tuple[str, ...], Type]
asked: Counter[str] = Counter()


def spell(rng: random.Random, found: Value, type: Type) -> Any:
    """A value as Java or PyIceberg spells it."""
    match type.kind:
        case Kind.DECIMAL:
            assert isinstance(found, int)
            digits = str(abs(found)).rjust(type.scale + 1, "0")
            whole, part = digits[: len(digits) - type.scale], digits[len(digits) - type.scale :]
            return ("-" if found < 0 else "") + whole + ("." + part if part else "")
        case Kind.BINARY:
            assert isinstance(found, bytes)
            return found.hex().upper() if rng.random() < 0.5 else found.hex()
        case Kind.STRING | Kind.VARCHAR:
            assert isinstance(found, bytes)
            return found.decode()
        case Kind.DATE:
            assert isinstance(found, int)
            return format_date(found) if rng.random() < 0.5 else found
    if isinstance(found, float) and math.isinf(found):
        return "Infinity" if found > 0 else "-Infinity"  # as Java
    return found


def leaf(rng: random.Random, types: Types, pools: Mapping[tuple[str, ...], list[Value]]) -> Any:
    path = rng.choice(list(types))
    type = types[path]
    ops = [*_OPS, *(_TEXT_OPS * type.is_bytes), *(_NAN_OPS * type.is_floating)]
    op = rng.choice(ops)
    found: dict[str, Any] = {"type": op, "term": ".".join(path)}
    if op in ("is-null", "not-null", *_NAN_OPS):
        return found
    drawn: list[Value] = []
    while len(drawn) < (rng.choice((1, 2, 5)) if op in ("in", "not-in") else 1):
        one = rng.choice(pools[path]) if rng.random() < 0.8 else value(rng, type)
        if not (isinstance(one, float) and math.isnan(one)):  # JSON has none
            drawn.append(one)
        elif rng.random() < 0.3:
            drawn.append(rng.choice((0.0, -0.0, math.inf, -math.inf)))
    if op in _TEXT_OPS and type.kind is not Kind.BINARY:
        text = drawn[0]
        assert isinstance(text, bytes)
        drawn = [text.decode()[: rng.randint(0, 3)].encode()]
    spelled = [spell(rng, one, type) for one in drawn]
    found |= {"values": spelled} if op in ("in", "not-in") else {"value": spelled[0]}
    canonical[found["term"], repr(spelled)] = drawn
    return found


canonical: dict[tuple[str, str], list[Value]] = {}
"""Values as the table holds them, by the term and how they are spelled."""


def tree(rng: random.Random, types: Types, pools: Any, depth: int) -> Any:
    kind = rng.random() if depth else 1.0
    if kind < 0.15:
        return {"type": "not", "child": tree(rng, types, pools, depth - 1)}
    if kind < 0.7:
        sides = [tree(rng, types, pools, depth - 1) for _ in range(2)]
        both = {"type": rng.choice(("and", "or")), "left": sides[0], "right": sides[1]}
        return {"type": "not", "child": both} if kind < 0.35 else both
    if kind < 0.73:
        return rng.choice((True, False, {"type": "apply", "function": "f"}))
    return leaf(rng, types, pools)


Truth = bool | None


def holds(node: Any, row: Row, client: str, negated: bool = False) -> Truth:
    """What a client makes of an expression; Java pushes ``not`` to the leaves, others do not."""
    if isinstance(node, bool):
        return node is not negated
    match node["type"]:
        case "not" if client == "java":
            return holds(node["child"], row, client, not negated)
        case "not":
            found = holds(node["child"], row, client)
            return None if found is None else not found
        case "and" | "or":
            both = [holds(node[side], row, client, negated) for side in ("left", "right")]
            if (node["type"] == "and") is not negated:
                return False if False in both else None if None in both else True
            return True if True in both else None if None in both else False
        case "apply":
            return True  # anything
    return _leaf(node, row, client, negated)


def _leaf(node: Any, row: Row, client: str, negated: bool) -> Truth:
    term = node["term"]
    if isinstance(term, dict):
        assert term["transform"] == "identity"
        term = term["term"]
    found = row[tuple(term.split("."))]
    op = _NEGATED[node["type"]] if negated else node["type"]
    if op in ("is-null", "not-null"):
        return (found is None) is (op == "is-null")
    if found is None:
        if client == "java":
            return op in _TRUE_FOR_NULL
        if client == "arrow" and op in ("in", "not-in"):
            return op == "not-in"
        return None
    if op in _NAN_OPS:
        return (isinstance(found, float) and math.isnan(found)) is (op == "is-nan")
    spelled = node.get("values", [node.get("value")])
    values = canonical.get((term, repr(spelled)), spelled)  # a residual has numbers of its own
    if op in _TEXT_OPS:
        prefix = values[0]
        assert isinstance(found, bytes) and isinstance(prefix, bytes)
        return found.startswith(prefix) is (op == "starts-with")
    orders = [_order(found, one, client) for one in values]
    match op:
        case "eq" | "in":
            return 0 in orders
        case "not-eq" | "not-in":
            return 0 not in orders
    order = orders[0]
    if order is None:
        return False
    return {"lt": order < 0, "lt-eq": order <= 0, "gt": order > 0, "gt-eq": order >= 0}[op]


def _order(one: Any, other: Any, client: str) -> int | None:
    if isinstance(one, float):
        if math.isnan(one):
            return None if client == "arrow" else 1
        if client == "java" and one == other == 0:
            one, other = math.copysign(1, one), math.copysign(1, other)
    return (one > other) - (one < other)


@settings(LAW, max_examples=examples(12, 100, 1000))
@given(cases())
def test_53_no_matching_file_is_lost(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    world = World.make(case, tmp_path_factory.mktemp("law"), {"1": (1,), "02": (2,), None: (None,)})
    rng = world.rng
    world.lake.build(nan=rng.choice(("footer", "scan")))
    planner = world.lake.planner()
    types = {p: t for p, t in world.data.paths.items() if p[0][0] != "$" and t.kind != Kind.CHAR}
    by_term = {
        ".".join(p): IcebergColumn(p, t, t.kind is Kind.TIMESTAMP_TZ) for p, t in types.items()
    }
    if len(by_term) < len(types) or any("." in name for path in types for name in path):
        return  # a term names one column
    for _ in range(8):
        canonical.clear()
        body = tree(rng, types, world.data.pools, rng.choice((0, 1, 2, 3)))
        found = parse(body)
        request = ScanRequest(
            NAME, to_expression(found, by_term.get), semantics=SEMANTICS, freshness="snapshot"
        )
        kept = owned(planner.plan(request))
        must = {
            file
            for file, rows in world.rows.items()
            if any(holds(body, row, c) is True for row in rows for c in ("java", "arrow", "spark"))
        }
        assert must <= kept, (body, must - kept)
        asked["files"] += len(world.rows)
        asked["skipped"] += len(world.rows) - len(kept)
        _same_rows(body, world, by_term)
    planner.lister.close()


def _same_rows(body: Any, world: World, columns: Mapping[str, IcebergColumn]) -> None:
    """The residual for Java is the expression by row."""
    residual = to_java(parse(body), columns.get)
    for rows in world.rows.values():
        for row in rows:
            assert holds(residual, row, "java") == holds(body, row, "java"), (body, residual)


def test_the_law_was_asked() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["skipped"] > asked["files"] // 5, asked


def test_a_chain_is_flat_and_what_is_too_deep_tells_nothing() -> None:
    chain: Any = {"type": "eq", "term": "x", "value": 0}
    for i in range(20_000):
        chain = {"type": "or", "left": chain, "right": {"type": "eq", "term": "x", "value": i}}
    found = parse(chain)
    assert isinstance(found, Junction) and len(found.children) == 20_001
    deep: Any = {"type": "eq", "term": "x", "value": 0}
    for i in range(20_000):
        side = {"type": "eq", "term": "x", "value": i}
        deep = {"type": ("and", "or")[i % 2], "left": side, "right": deep}
    depth, one = 0, parse(deep)
    while isinstance(one, Junction):
        depth, one = depth + 1, one.children[-1]
    assert depth == MOST_LEVELS and isinstance(one, Condition) and not one.op
    # Java would judge row groups by what lies there, and knows no NaN.
    with pytest.raises(InvalidRequest, match="changes between AND and OR more than 100 times"):
        to_java(parse(deep), lambda term: IcebergColumn((term,), DOUBLE))


def test_values_beyond_the_limit_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MOST_VALUES", 5)
    column = IcebergColumn(("x",), DOUBLE)
    lists = [{"type": "not-in", "term": "x", "values": [i, i + 1, i + 2]} for i in (1, 5)]
    found = parse({"type": "and", "left": lists[0], "right": lists[1]})
    assert isinstance(found, Junction)
    first, second = (to_expression(each, lambda term: column) for each in found.children)
    assert isinstance(first, Or) and isinstance(second, Unknown)
    residual = to_java(found, lambda term: column)
    nan = {"type": "is-nan", "term": "x"}
    assert residual["left"] == {"type": "or", "left": lists[0], "right": nan}
    assert residual["right"] == {"type": "or", "left": lists[1], "right": nan}
