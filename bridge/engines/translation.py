"""What comes of an engine's predicate, and the reading of the document that carries it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bridge.errors import InvalidPredicate
from bridge.expression.nodes import Expression

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
