"""Hive's SearchArgument: a tree over leaves, as Hive passes it to file readers.

Follows ``org.apache.hadoop.hive.ql.io.sarg``: a leaf is an operator on one column with literals.
There are no >, >= and <>; they are NOT of <=, < and =.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from bridge.engines.translation import MAX_DEPTH, MAX_NODES, TOO_DEEP, malformed_predicate


class Operator(Enum):
    EQUALS = "EQUALS"
    NULL_SAFE_EQUALS = "NULL_SAFE_EQUALS"
    LESS_THAN = "LESS_THAN"
    LESS_THAN_EQUALS = "LESS_THAN_EQUALS"
    IN = "IN"
    BETWEEN = "BETWEEN"
    IS_NULL = "IS_NULL"


class TruthValue(Enum):
    """The possible outcomes of a condition; several if the reader cannot tell."""

    YES = "YES"
    NO = "NO"
    NULL = "NULL"
    YES_NO = "YES_NO"
    YES_NULL = "YES_NULL"
    NO_NULL = "NO_NULL"
    YES_NO_NULL = "YES_NO_NULL"

    @property
    def outcomes(self) -> frozenset[str]:
        return frozenset(self.value.split("_"))


@dataclass(frozen=True, slots=True)
class PredicateLeaf:
    """One leaf.

    Attributes:
        operator: None if this planner does not know it. Such a leaf prunes nothing.
        type: Hive's name of the literals' type.
        literals: as in the JSON; none for IS_NULL, two for BETWEEN.
        column_type: Hive's type of the column; empty if the sender does not know it.
    """

    operator: Operator | None
    name: str
    type: str
    column: str
    literals: tuple[Any, ...]
    column_type: str = ""

    def __str__(self) -> str:
        shown = ", ".join(str(v) for v in self.literals[:3])
        more = ", …" if len(self.literals) > 3 else ""
        return f"{self.column} {self.name} ({shown}{more})"


@dataclass(frozen=True, slots=True)
class Tree:
    """A node: AND, OR or NOT with children, a leaf, or a constant; ``op`` None if unknown."""

    op: str | None
    children: tuple[Tree, ...] = ()
    leaf: PredicateLeaf | None = None
    constant: TruthValue | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class SearchArgument:
    """A whole predicate."""

    tree: Tree

    @classmethod
    def parse(cls, document: dict[str, Any]) -> SearchArgument:
        """Parses ``search_argument`` of docs/reference/predicates.md.

        Errors:
            InvalidPredicate: the document is malformed.
        """
        argument = document.get("search_argument")
        if not isinstance(argument, dict):
            raise malformed_predicate("Hive", "no search_argument")
        leaves = argument.get("leaves", [])
        if not isinstance(leaves, list):
            raise malformed_predicate("Hive", "leaves is no list")
        return cls(_Reader([_leaf(entry) for entry in leaves]).tree(argument.get("tree"), 0))


def _leaf(entry: Any) -> PredicateLeaf:
    if not isinstance(entry, dict):
        raise malformed_predicate("Hive", "a leaf that is no object")
    name, type, column = (entry.get(key) for key in ("operator", "type", "column"))
    if not (isinstance(name, str) and isinstance(type, str) and isinstance(column, str)):
        raise malformed_predicate("Hive", f"a leaf {str(entry)[:100]!r}")
    operator = Operator.__members__.get(name)
    listed = entry.get("literal_list")
    match operator:
        case Operator.IS_NULL:
            literals: tuple[Any, ...] = ()
        case Operator.IN | Operator.BETWEEN:
            if not isinstance(listed, list) or (operator is Operator.BETWEEN and len(listed) != 2):
                raise malformed_predicate("Hive", f"{name} with literals {str(listed)[:100]}")
            literals = tuple(listed)
        case _:
            literals = (entry.get("literal"),)
    column_type = entry.get("column_type", "")
    if not isinstance(column_type, str):
        raise malformed_predicate("Hive", f"a column type {str(column_type)[:100]!r}")
    return PredicateLeaf(operator, name, type, column, literals, column_type)


class _Reader:
    def __init__(self, leaves: list[PredicateLeaf]) -> None:
        self._leaves = leaves
        self._nodes = 0

    def tree(self, node: Any, depth: int) -> Tree:
        if not isinstance(node, dict):
            raise malformed_predicate("Hive", "a tree node that is no object")
        self._nodes += 1
        if depth > MAX_DEPTH:
            return Tree(None, text=TOO_DEEP)
        if self._nodes > MAX_NODES:
            return Tree(None, text=f"what follows {MAX_NODES} parts")
        op = node.get("op")
        match op:
            case "AND" | "OR" | "NOT":
                children = node.get("children")
                if not isinstance(children, list) or (op == "NOT" and len(children) != 1):
                    raise malformed_predicate("Hive", f"{op} with children {str(children)[:100]}")
                return Tree(op, tuple(self.tree(c, depth + 1) for c in children))
            case "LEAF":
                ordinal = node.get("leaf")
                if type(ordinal) is not int or not 0 <= ordinal < len(self._leaves):
                    raise malformed_predicate("Hive", f"leaf {ordinal!r} of {len(self._leaves)}")
                return Tree(op, leaf=self._leaves[ordinal])
            case "CONSTANT":
                constant = TruthValue.__members__.get(str(node.get("value")))
                if constant is None:
                    raise malformed_predicate("Hive", f"a constant {node.get('value')!r}")
                return Tree(op, constant=constant)
            case str():
                return Tree(None, text=op)
        raise malformed_predicate("Hive", f"a node {op!r}")
