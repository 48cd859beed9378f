"""The result of translating an engine's predicate, and the parser of predicate documents."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from bridge.expression.nodes import Expression
from bridge.kernel.errors import InvalidPredicate
from bridge.kernel.types import INTEGER_RANGE, Kind, Type

VERSION = 1
MAX_DEPTH = 150
"""Parts nested deeper are dropped. They prune nothing, and the engine still applies them."""
MAX_NODES = 100_000
"""Parts beyond this many are dropped."""
TOO_DEEP = f"a part nested deeper than {MAX_DEPTH}"
# Each part is an object in its parent's argument array.
_MAX_BRACKETS = 2 * (MAX_DEPTH + 2)
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)


class NotTranslatable(Exception):
    """A part of the predicate cannot be expressed and is dropped. The message names it."""


@dataclass(frozen=True, slots=True)
class Translation:
    """An engine's predicate as an expression.

    The law: every row that satisfies the engine's predicate satisfies the expression.

    Attributes:
        dropped: the parts that could not be translated, by name.
        exact: whether the expression is equivalent to the engine's predicate.
    """

    expression: Expression
    dropped: tuple[str, ...] = ()
    exact: bool = True


def read_document(text: str, engine: str) -> dict[str, Any]:
    """Parses the JSON object of docs/reference/predicates.md.

    Objects that are nested too deeply are replaced by objects that prune nothing.

    Errors:
        InvalidPredicate: not a JSON object, or of another version.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise malformed_predicate(engine, f"no JSON: {error}") from None
    except RecursionError:
        document = _read_shallow(text, engine)
    if not isinstance(document, dict):
        raise malformed_predicate(engine, f"a JSON {type(document).__name__} in place of an object")
    version = document.get("version")
    if version != VERSION:
        raise InvalidPredicate(
            f"the {engine} predicate has version {version!r}, this planner reads {VERSION}",
            "install the connector that belongs to this planner",
        )
    return document


def _read_shallow(text: str, engine: str) -> Any:
    try:
        return json.loads(_without_the_deepest(text))
    except ValueError as error:
        raise malformed_predicate(engine, f"no JSON: {error}") from None
    except RecursionError:  # nested arrays
        raise malformed_predicate(engine, "arrays are nested too deeply") from None


def _without_the_deepest(text: str) -> str:
    """The document with the contents of objects beyond the depth limit removed."""
    stand_in = json.dumps({"opaque": TOO_DEEP, "op": TOO_DEEP})
    kept: list[str] = []
    depth = begin = 0
    deep: int | None = None
    for token in _BRACKETS.finditer(text):
        bracket = token[0]
        if bracket in ("{", "["):
            depth += 1
            if bracket == "{" and deep is None and depth > _MAX_BRACKETS:
                deep = depth
                kept.append(text[begin : token.start()])
        elif bracket in ("}", "]"):
            if depth == deep:
                kept.append(stand_in)
                begin, deep = token.end(), None
            depth -= 1
    return "".join((*kept, text[begin:] if deep is None else ""))


def malformed_predicate(engine: str, what: str) -> InvalidPredicate:
    """The error for a malformed document."""
    return InvalidPredicate(
        f"the {engine} predicate is malformed: {what}",
        "the connector and the planner must come from one release",
    )


def keeps_order(source: Type, target: Type) -> bool:
    """Whether a cast keeps values and their order, so that it may be omitted (rule 8).

    These types do not hold the precision of timestamps. If an engine's types do, a cast to fewer
    digits rounds (rule 24), and the engine's translation must check it.
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
