"""What comes of an engine's predicate, and the reading of the document that carries it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bridge.errors import InvalidPredicate
from bridge.expression.nodes import Expression
from bridge.types import INTEGER_RANGE, Kind, Type

VERSION = 1
MAX_DEPTH = 200
"""Parts nested deeper are dropped: they prune nothing, and the engine filters by them itself."""
MAX_NODES = 100_000
"""Parts beyond this many are dropped."""


@dataclass(frozen=True, slots=True)
class Translation:
    """An engine's predicate as an expression.

    The law: every row that satisfies the engine's predicate satisfies the expression.

    Attributes:
        dropped: the parts that could not be translated, by name.
        exact: the expression says all that the engine said.
    """

    expression: Expression
    dropped: tuple[str, ...] = ()
    exact: bool = True


def read_document(text: str, engine: str) -> dict[str, Any]:
    """The JSON object of docs/predicates.md.

    Errors:
        InvalidPredicate: no JSON object, or one of another version.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise malformed(engine, f"no JSON: {error}") from None
    except RecursionError:
        raise malformed(engine, "nested too deeply") from None
    if not isinstance(document, dict):
        raise malformed(engine, f"a JSON {type(document).__name__} in place of an object")
    version = document.get("version")
    if version != VERSION:
        raise InvalidPredicate(
            f"the {engine} predicate has version {version!r}, this planner reads {VERSION}",
            "install the connector that belongs to this planner",
        )
    return document


def malformed(engine: str, what: str) -> InvalidPredicate:
    """The error for a document that breaks its own format."""
    return InvalidPredicate(
        f"the {engine} predicate is malformed: {what}",
        "the connector and the planner must come from one release",
    )


def keeps_order(source: Type, target: Type) -> bool:
    """Whether an engine's cast loses no value and no order, so that it may be left out (rule 8).

    Types here do not tell how many digits of a second they hold; where an engine's do, a cast to
    fewer digits is one that rounds (rule 24), which is for its translation to see.
    """
    if source == target:
        return not source.is_nested and source.kind is not Kind.UNKNOWN
    if source.is_integer:
        greatest: int = INTEGER_RANGE[source.kind][1]
        if target.is_integer:
            return greatest <= INTEGER_RANGE[target.kind][1]
        if target.kind is Kind.DECIMAL:
            return bool(greatest < 10 ** (target.precision - target.scale))
        return greatest <= {Kind.FLOAT: 2**24, Kind.DOUBLE: 2**53}.get(target.kind, 0)
    match source.kind, target.kind:
        case Kind.DECIMAL, Kind.DECIMAL:
            whole = target.precision - target.scale >= source.precision - source.scale
            return whole and target.scale >= source.scale
        case (Kind.FLOAT, Kind.DOUBLE) | (Kind.VARCHAR, Kind.STRING) | (Kind.DATE, Kind.TIMESTAMP):
            return True
        case Kind.VARCHAR, Kind.VARCHAR:
            return target.length >= source.length
    return False
