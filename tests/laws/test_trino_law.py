"""Trino's TupleDomain against brute force: a row passes the expression as it passes the domains.

The domains are random JSON, unordered and overlapping; the judge below reads that JSON on its own.
"""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given

from bridge.engines.trino.translate import translate
from bridge.engines.trino.types import to_trino
from bridge.expression.bind import bind
from bridge.expression.evaluate import Oracle, Row
from bridge.expression.fold import is_exact
from bridge.expression.prune import prune
from bridge.kernel.types import BOOLEAN, TRINO, Kind, Type, Value
from tests.support.strategies import Case, Statistics, Table, cases, table


def encoded(value: Value, type: Type) -> Any:
    """A canonical value on the wire; None where it has no JSON."""
    if type.is_floating:
        return None if value != value else str(value).replace("inf", "Infinity")
    match type.kind:
        case Kind.DECIMAL:
            return str(value)
        case Kind.BINARY:
            import base64

            assert isinstance(value, bytes)
            return base64.b64encode(value).decode()
        case Kind.TIMESTAMP_TZ:
            assert isinstance(value, int)
            millis, micros = divmod(value, 1000)
            return f"{millis}.{micros:03d}000000" if micros else millis
    return value.decode() if isinstance(value, bytes) else value


def domain(rng: random.Random, data: Table, path: tuple[str, ...]) -> dict[str, Any]:
    type = data.paths[path]
    entry: dict[str, Any] = {
        "column": path[0],
        "path": list(path[1:]),
        "type": to_trino(type),
        "null_allowed": rng.random() < 0.4,
    }
    kind = rng.random()
    if kind < 0.1:
        return entry | {"all": True}
    if kind < 0.2:
        return entry | {"none": True}
    values = [v for v in data.pools[path] if encoded(v, type) is not None]
    if type == BOOLEAN or (kind < 0.35 and not type.is_floating):
        chosen = rng.sample(values, rng.randint(0, len(values)))
        return entry | {
            "values": [encoded(v, type) for v in chosen],
            "inclusive": rng.random() < 0.5,
        }
    return entry | {"ranges": [_range(rng, values, type) for _ in range(rng.randint(0, 4))]}


def _range(rng: random.Random, values: list[Value], type: Type) -> dict[str, Any]:
    low, high = sorted(rng.choice(values) for _ in range(2)) if values else (None, None)
    inclusive = low == high
    entry: dict[str, Any] = {}
    if low is not None and (inclusive or rng.random() < 0.7):
        entry |= {"low": encoded(low, type), "low_inclusive": inclusive or rng.random() < 0.5}
    if high is not None and (inclusive or rng.random() < 0.7):
        entry |= {"high": encoded(high, type), "high_inclusive": inclusive or rng.random() < 0.5}
    return entry


def passes(entry: dict[str, Any], row: Row, type: Type, pool: list[Value]) -> bool:
    """The domain's own meaning, value by value."""
    value = row[(entry["column"], *entry["path"])]
    if value is None:
        return bool(entry["null_allowed"])
    if "all" in entry or "none" in entry:
        return "all" in entry
    decoded = {json.dumps(encoded(v, type)): v for v in pool}

    def known(wire: Any) -> Any:
        return decoded[json.dumps(wire)]

    if "values" in entry:
        return (value in [known(v) for v in entry["values"]]) is entry["inclusive"]
    return any(_within(value, r, known) for r in entry["ranges"])


def _within(value: Any, entry: dict[str, Any], known: Any) -> bool:
    if not entry:
        return True  # the whole set, which alone contains NaN
    if "low" in entry:
        low = known(entry["low"])
        if not (value > low or (entry["low_inclusive"] and value == low)):
            return False
    if "high" in entry:
        high = known(entry["high"])
        if not (value < high or (entry["high_inclusive"] and value == high)):
            return False
    return value == value


def spans_everything(entry: dict[str, Any]) -> bool:
    """Ranges that only together are the whole set gain NaN, as they do within Trino."""
    return len(entry.get("ranges", ())) > 1


@given(cases())
def test_a_tuple_domain_keeps_exactly_its_rows(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, 6)
    judge = Oracle(TRINO, data.paths)
    for _ in range(10):
        entries = [domain(rng, data, p) for p in data.paths if rng.random() < 0.8]
        found = translate(json.dumps({"version": 1, "none": False, "domains": entries}))
        assert not found.dropped
        # Zeros, and instants near 1970, may be compared by bits (rule 26).
        doubtful = ("real", "double", "timestamp(6) with")
        assert found.exact or any(e["type"].startswith(doubtful) for e in entries)
        bound = bind(found.expression, data.columns, [], TRINO)
        answers = prune(bound, Statistics(data), TRINO)
        for i, rows in enumerate(data.files):
            for row in rows:
                passed = all(
                    passes(e, row, data.paths[p], data.pools[p])
                    for e in entries
                    for p in [(e["column"], *e["path"])]
                )
                kept = judge.truth(bound, row) is True
                assert kept or not passed, (entries, row)
                assert not (passed and answers.never[i])
                nan = any(v != v for v in row.values() if isinstance(v, float))
                if is_exact(bound) and not (nan and any(map(spans_everything, entries))):
                    assert kept is passed, (entries, row)
