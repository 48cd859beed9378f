"""The engine-agnostic predicate, before and after binding.

An unbound tree (``Expression``) names columns by path and holds literals with the type their engine
gave them. Rewriting pushes NOT to the leaves and weakens unknown parts; binding resolves names
against a schema and converts literals to canonical values of the column's type
(`bridge.kernel.types`). A bound tree has no Not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from bridge.kernel.types import Type, Value


class Op(Enum):
    """Operator of a predicate on one column. Each has a negation in three-valued logic."""

    __hash__ = object.__hash__  # members are singletons, and Enum's own hash is slow Python code

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    NULL_SAFE_EQ = "IS NOT DISTINCT FROM"
    NULL_SAFE_NE = "IS DISTINCT FROM"
    IN = "IN"
    NOT_IN = "NOT IN"
    IS_NULL = "IS NULL"
    IS_NOT_NULL = "IS NOT NULL"
    IS_NAN = "IS NAN"
    IS_NOT_NAN = "IS NOT NAN"
    STARTS_WITH = "STARTS WITH"
    NOT_STARTS_WITH = "NOT STARTS WITH"
    LIKE = "LIKE"
    """A pattern without wildcards. It is equality only once the column's type is known: CHAR is
    padded for one and not for the other. A bound tree has none."""
    NOT_LIKE = "NOT LIKE"


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by name, or a nested field by path: ``("st", "a")`` is field a of column st."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call(Reference):
    """A function of columns and constants, used in place of a column.

    `bridge.expression.function_catalog` lists the functions. ``path`` is an empty name, which no
    column has, and the call in normal form, so that equal calls have equal paths.
    """

    function: str
    arguments: tuple[Reference | Literal, ...]

    @property
    def text(self) -> str:
        return self.path[1]


@dataclass(frozen=True, slots=True)
class Literal:
    """A canonical value with the type given by its source; ``value`` None is SQL NULL."""

    value: Value | None
    type: Type


@dataclass(frozen=True, slots=True)
class Slot:
    """A column of a `Computed`, by its place among the arguments."""

    index: int
    type: Type


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation of `bridge.expression.computed` on terms."""

    function: str
    type: Type
    arguments: tuple[Term, ...]


Term = Slot | Literal | Apply


@dataclass(frozen=True, slots=True)
class Computed(Call):
    """A boolean expression of any number of columns; see `bridge.expression.computed`.

    ``path`` is not its identity: two texts may be equal.
    """

    term: Term


class Expression:
    """Base of unbound predicates. Immutable."""

    __slots__ = ("_hash",)
    _hash: int


def _hash_once(node: Expression | BoundExpression, held: tuple[object, ...]) -> int:
    """The node's hash, kept: a deep tree would else be hashed whole at every level."""
    try:
        return node._hash
    except AttributeError:
        found = hash((type(node), held))
        object.__setattr__(node, "_hash", found)
        return found


@dataclass(frozen=True, slots=True)
class AlwaysTrue(Expression):
    """Matches every row."""


@dataclass(frozen=True, slots=True)
class AlwaysFalse(Expression):
    """False for every row; never NULL, so its negation is true."""


@dataclass(frozen=True, slots=True)
class Unknown(Expression):
    """A part that could not be translated, named by ``text``. It and its negation prune nothing.

    Attributes:
        columns: the columns it uses, as far as known.
    """

    text: str
    columns: tuple[Reference, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class And(Expression):
    children: tuple[Expression, ...]

    def __hash__(self) -> int:
        return _hash_once(self, self.children)


@dataclass(frozen=True, slots=True)
class Or(Expression):
    children: tuple[Expression, ...]

    def __hash__(self) -> int:
        return _hash_once(self, self.children)


@dataclass(frozen=True, slots=True)
class Not(Expression):
    child: Expression


@dataclass(frozen=True, slots=True)
class Predicate(Expression):
    """An operator on one column with its literals (none, one, or many for IN)."""

    op: Op
    reference: Reference
    literals: tuple[Literal, ...] = ()


class BoundExpression:
    """Base of bound predicates. Immutable; no node negates another."""

    __slots__ = ("_hash",)
    _hash: int


@dataclass(frozen=True, slots=True)
class BoundTrue(BoundExpression):
    """Excludes no row.

    Attributes:
        exact: True if it holds for every row. False if it replaces a condition that could not be
            translated or was rounded outward. An inexact one stays a child of AND, so that ALWAYS
            (M1) is never claimed for a weakened expression.
    """

    exact: bool = True


@dataclass(frozen=True, slots=True)
class BoundFalse(BoundExpression):
    """Matches no row."""


@dataclass(frozen=True, slots=True)
class BoundAnd(BoundExpression):
    children: tuple[BoundExpression, ...]

    def __hash__(self) -> int:
        return _hash_once(self, self.children)


@dataclass(frozen=True, slots=True)
class BoundOr(BoundExpression):
    children: tuple[BoundExpression, ...]

    def __hash__(self) -> int:
        return _hash_once(self, self.children)


@dataclass(frozen=True, slots=True)
class BoundReference:
    """A resolved column or nested field.

    Attributes:
        path: the names as in the schema, outermost first.
        type: the column's type in the table.
        partition: whether it is a partition key, whose value comes from the partition.
    """

    path: tuple[str, ...]
    type: Type
    partition: bool = False


@dataclass(frozen=True, slots=True)
class BoundCall(BoundReference):
    """A function of resolved columns; ``path`` as in `Call`, ``type`` is the result type."""

    function: str = ""
    arguments: tuple[BoundReference | Literal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundComputed(BoundCall):
    """A `Computed` on resolved columns; ``partition`` if all of them are partition keys."""

    term: Term


def reference_text(reference: BoundReference) -> str:
    """A column's dotted name, or a call's text, for reports and settings."""
    return reference.path[1] if isinstance(reference, BoundCall) else ".".join(reference.path)


@dataclass(frozen=True, slots=True)
class BoundPredicate(BoundExpression):
    """An operator on a resolved column. Values are canonical in the column's type, never None.

    IN and NOT_IN hold sorted, distinct values. Binding has resolved NULL and NaN literals,
    NULL_SAFE_EQ and NULL_SAFE_NE. A value is never -0.0.
    """

    op: Op
    reference: BoundReference
    values: tuple[Value, ...] = ()

    def __hash__(self) -> int:
        return _hash_once(self, (self.op, self.reference, self.values))
