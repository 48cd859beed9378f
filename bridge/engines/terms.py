"""Reads an engine's tree as an expression that is evaluated exactly.

`bridge.expression.computed` has the operations. The engines' documents differ in names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.engines.translation import NotTranslatable
from bridge.expression.computed import to_condition
from bridge.expression.nodes import Apply, Literal, Predicate, Reference, Slot, Term
from bridge.kernel.errors import BridgeError
from bridge.kernel.types import BOOLEAN, Type

_DEEPEST = 40
_MOST = 200


@dataclass(frozen=True, slots=True)
class Words:
    """An engine's words.

    Attributes:
        functions: operations by the engine's names.
        type: of a node.
        column: the column of a node that is one, or a field of one. Both may raise NotTranslatable.
        constant: the value of a node that is one.
        special: reads a call whose arguments are in another order, or several operations.
    """

    functions: Mapping[str, str]
    type: Callable[[Any], Type]
    column: Callable[[Any], Reference | None]
    constant: Callable[[Any], Literal | None]
    special: Callable[[str, list[Term], Type], Term | None]


def condition(node: Any, text: str, words: Words) -> Predicate | None:
    """The condition that a boolean node is true; None if it cannot be evaluated exactly.

    Args:
        text: the node, for reports.
    """
    reader = _Reader(words)
    try:
        term = reader.term(node, 0)
    except (NotTranslatable, BridgeError):  # it may be malformed where nothing else looks
        return None
    return to_condition(text, term, reader.columns) if term.type == BOOLEAN else None


@dataclass(slots=True)
class _Reader:
    words: Words
    columns: list[Reference] = field(default_factory=list)
    nodes: int = 0

    def term(self, node: Any, depth: int) -> Term:
        self.nodes += 1
        if depth > _DEEPEST or self.nodes > _MOST or not isinstance(node, dict):
            raise NotTranslatable
        if "constant" in node:
            found = self.words.constant(node)
            if found is None:
                raise NotTranslatable
            return found
        type = self.words.type(node)
        column = self.words.column(node)
        if column is not None:
            if column not in self.columns:
                self.columns.append(column)
            return Slot(self.columns.index(column), type)
        args = node.get("args")
        if not isinstance(args, list):
            raise NotTranslatable
        name = node.get("call", "")
        terms = [self.term(a, depth + 1) for a in args]
        special = self.words.special(name, terms, type)
        if special is not None:
            return special
        function = self.words.functions.get(name)
        if function is None:
            raise NotTranslatable
        return Apply(function, type, tuple(terms))
