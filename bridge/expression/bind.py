"""Binding resolves names once against a schema and converts literals to the column's own values.

The law: a row that satisfies the expression satisfies the bound one. If `fold.is_exact` is True,
the two are equivalent. Binding adds an inexact `BoundTrue` where it rounds a literal outward, or
where engines differ about a comparison.

>>> from bridge.expression.builders import gt
>>> from bridge.kernel.types import INTEGER, TRINO, Field, decimal
>>> bound = bind(gt("A", 55, decimal(2, 1)), [Field("a", INTEGER)], [], TRINO)
>>> bound.op, bound.reference.path, bound.values
(<Op.GE: '>='>, ('a',), (6,))
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.expression.computed import bind_computed, on_keys
from bridge.expression.fold import FALSE, KEPT, TRUE, conjunction, disjunction, membership
from bridge.expression.function_catalog import bound_call, columns_of
from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundCall,
    BoundExpression,
    BoundPredicate,
    BoundReference,
    Call,
    Computed,
    Expression,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
    Unknown,
)
from bridge.expression.parsing.literals import Placement, domain, is_nan, place
from bridge.expression.rewrite import normalise
from bridge.kernel.errors import AmbiguousColumn, ColumnNotFound, InvalidPredicate
from bridge.kernel.types import INTEGER_RANGE, Field, Kind, NanOrder, Semantics, Value

_SHOWN = 10
_WITHOUT_ZONE = (Kind.DATE, Kind.TIMESTAMP)


class TextExpected(InvalidPredicate):
    """A text is compared with a value of another type."""

    def __init__(self, reference: BoundReference, literal: Literal) -> None:
        super().__init__(
            f"{_spell(reference.path)} is {reference.type}, compared with a {literal.type}",
            "write the value in 'single quotes'",
        )
        self.reference, self.value = reference, literal.value


def bind(
    expression: Expression,
    columns: Sequence[Field],
    partition_keys: Sequence[Field],
    semantics: Semantics,
    *,
    case_sensitive: bool = False,
    strict: bool = False,
) -> BoundExpression:
    """Rewrites an expression and binds it to a schema.

    Args:
        columns: data columns, and hidden columns whose values per file the caller knows.
        partition_keys: a name that is also a data column is a partition key.
        strict: for conditions typed by a user. Text that is compared with a date or timestamp but
            is not an ISO date is an error, and so is an unknown column in a dropped part. If not
            strict, such a comparison prunes nothing.

    Errors:
        ColumnNotFound, AmbiguousColumn: the hint has the nearest names.
        InvalidPredicate: only if ``strict``.
    """
    scope = Scope(columns, partition_keys, case_sensitive)
    return bind_in(scope, expression, semantics, strict=strict)


def bind_in(
    scope: Scope,
    expression: Expression,
    semantics: Semantics,
    *,
    strict: bool = False,
    dropped: list[Predicate] | None = None,
) -> BoundExpression:
    """`bind` in a scope that is shared by many expressions.

    Args:
        dropped: receives the comparisons that prune nothing because engines differ about them.
    """
    if strict:
        _require_columns(scope, expression)
    lost: list[Predicate] = [] if dropped is None else dropped
    return _Binder(scope, semantics, strict, lost).bind(normalise(expression, semantics))


def _require_columns(scope: Scope, expression: Expression) -> None:
    """Checks all names, also in dropped parts. Errors: ColumnNotFound, AmbiguousColumn."""
    pending = [expression]
    while pending:
        match pending.pop():
            case And(children) | Or(children):
                pending.extend(reversed(children))
            case Not(child):
                pending.append(child)
            case Predicate(_, reference, _):
                _require(scope, reference)
            case Unknown(_, columns):
                for column in columns:
                    _require(scope, column)


def _require(scope: Scope, reference: Reference) -> None:
    if not isinstance(reference, Call):
        scope.resolve(reference)
        return
    for argument in reference.arguments:
        if isinstance(argument, Reference):
            _require(scope, argument)


class Scope:
    """The names of a table, resolved once to path tuples (rule 14); immutable."""

    __slots__ = ("_by_name", "_columns", "_fold", "_members", "_partition_names")

    def __init__(
        self, columns: Sequence[Field], partition_keys: Sequence[Field], case_sensitive: bool
    ) -> None:
        self._fold = (lambda name: name) if case_sensitive else str.lower
        self._partition_names = {f.name for f in partition_keys}
        self._columns = (
            *(f for f in columns if f.name not in self._partition_names),
            *partition_keys,
        )
        self._by_name = self._named(self._columns)
        self._members: dict[tuple[str, ...], dict[str, list[Field]]] = {}
        """The fields of structs that were asked for, by path: a struct may have thousands."""

    def _named(self, fields: Sequence[Field]) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for f in fields:
            found.setdefault(self._fold(f.name), []).append(f)
        return found

    def resolve(self, reference: Reference) -> BoundReference:
        """Resolves a column. Errors: ColumnNotFound, AmbiguousColumn."""
        found = self._find(reference.path[0], self._by_name, reference)
        path, type = [found.name], found.type
        for name in reference.path[1:]:
            if type.kind is not Kind.STRUCT:
                raise ColumnNotFound(
                    f"{_spell(reference.path)}: {_spell(path)} is {type}, it has no fields",
                    "only fields of a struct are named by path",
                )
            named = self._members.get(tuple(path))
            if named is None:
                named = self._members[tuple(path)] = self._named(type.fields)
            member = self._find(name, named, reference)
            path.append(member.name)
            type = member.type
        return BoundReference(tuple(path), type, path[0] in self._partition_names)

    def _find(self, name: str, named: dict[str, list[Field]], reference: Reference) -> Field:
        matches = named.get(self._fold(name), [])
        if len(matches) == 1:
            return matches[0]
        where = _spell(reference.path)
        if matches:
            names = ", ".join(f.name for f in matches)
            raise AmbiguousColumn(
                f"{where} may be any of {names}, which differ only in case",
                "rename one of them, or leave this condition to the engine",
            )
        near = [named[n][-1].name for n in difflib.get_close_matches(self._fold(name), named, n=3)]
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {_some(named)}"
        if not near and len(reference.path) == 1:
            text = where.replace("'", "''")
            hint += f"; if {where} is a text, write '{text}'"
        raise ColumnNotFound(f"there is no column {where}", hint)


def _some(named: dict[str, list[Field]]) -> str:
    """The names of some columns: those of a table format's own and hidden ones come last."""
    names = [f.name for same in named.values() for f in same]
    names.sort(key=lambda name: name.startswith(("_", "$")))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _spell(path: Sequence[str]) -> str:
    return ".".join(path)


@dataclass(frozen=True, slots=True)
class _Binder:
    scope: Scope
    semantics: Semantics
    strict: bool
    dropped: list[Predicate]

    def bind(self, expression: Expression) -> BoundExpression:
        match expression:
            case AlwaysTrue():
                return TRUE
            case AlwaysFalse():
                return FALSE
            case And(children):
                return conjunction([self.bind(c) for c in children])
            case Or(children):
                return disjunction([self.bind(c) for c in children])
            case Predicate(op, reference, literals):
                column = self._column(reference)
                found = KEPT if column is None else self._predicate(op, column, literals)
                if found == FALSE and isinstance(column, BoundCall):
                    found = KEPT  # the call may fail, and the engine says so
                if found == KEPT:
                    self.dropped.append(expression)
                return found
        return KEPT  # Unknown; NOT is only at the leaves

    def _column(self, reference: Reference) -> BoundReference | None:
        if isinstance(reference, Call):
            return self._call(reference)
        return self.scope.resolve(reference)

    def _call(self, call: Call) -> BoundCall | None:
        if isinstance(call, Computed):
            columns = [self.scope.resolve(a) for a in call.arguments if isinstance(a, Reference)]
            return bind_computed(call, columns)
        found = self._function(call)
        if found is not None and any(c.partition for c in columns_of(found)):
            return on_keys(found)
        return found

    def _function(self, call: Call) -> BoundCall | None:
        arguments: list[BoundReference | Literal] = []
        for argument in call.arguments:
            if isinstance(argument, Call):
                inner = self._function(argument)
                if inner is None:
                    return None
                arguments.append(inner)
            elif isinstance(argument, Reference):
                arguments.append(self.scope.resolve(argument))
            else:
                arguments.append(argument)
        return bound_call(call, arguments)

    def _predicate(
        self, op: Op, reference: BoundReference, literals: tuple[Literal, ...]
    ) -> BoundExpression:
        match op:
            case Op.IS_NULL | Op.IS_NOT_NULL:
                return BoundPredicate(op, reference)
            case Op.IS_NAN | Op.IS_NOT_NAN:
                return _is_nan(op, reference)
        if _pads(reference, literals):
            return KEPT
        match op:
            case Op.IN:
                known = tuple(v for v in literals if v.value is not None)  # = NULL is never true
                points, others = self._points(reference, known)
                parts = [self._equal(reference, v) for v in others]
                return disjunction([membership(Op.IN, reference, points), *parts])
            case Op.NOT_IN:
                if any(v.value is None for v in literals):
                    return FALSE
                points, others = self._points(reference, literals)
                parts = [self._unequal(reference, v) for v in others]
                return conjunction([membership(Op.NOT_IN, reference, points), *parts])
        (literal,) = literals
        if literal.value is None:
            return _with_null(op, reference)
        match op:
            case Op.STARTS_WITH | Op.NOT_STARTS_WITH | Op.LIKE | Op.NOT_LIKE:
                return self._pattern(op, reference, literal)
            case Op.EQ:
                return self._equal(reference, literal)
            case Op.NE:
                return self._unequal(reference, literal)
            case Op.NULL_SAFE_EQ:
                if is_nan(literal):  # the same under either order
                    return _is_nan(Op.IS_NAN, reference)
                return self._equal(reference, literal)
            case Op.NULL_SAFE_NE:
                null = BoundPredicate(Op.IS_NULL, reference)
                if is_nan(literal):
                    return disjunction([null, _is_nan(Op.IS_NOT_NAN, reference)])
                return disjunction([null, self._unequal(reference, literal)])
        return self._ordered(op, reference, literal)

    @property
    def _largest(self) -> bool:
        return self.semantics.nan is NanOrder.LARGEST

    def _place(self, reference: BoundReference, literal: Literal) -> Placement | None:
        minutes = self.semantics.reads_minutes
        placement = place(literal, reference.type, reads_minutes=minutes)
        if placement is None and self.strict:
            _refuse_incomparable(reference, literal)
        return placement

    def _points(
        self, reference: BoundReference, literals: tuple[Literal, ...]
    ) -> tuple[list[Value], list[Literal]]:
        """Splits literals into exact values of the column and others. Lists can be long."""
        points: list[Value] = []
        others: list[Literal] = []
        edges = INTEGER_RANGE.get(reference.type.kind)
        for literal in literals:
            value = literal.value
            # Fast path: integer literals on an integer column.
            whole = edges and type(value) is int and literal.type.is_integer
            if whole and edges[0] <= value <= edges[1]:  # type: ignore[index, operator]
                points.append(value)  # type: ignore[arg-type]
                continue
            at = None if is_nan(literal) else self._place(reference, literal)
            if at is not None and at.point and not _beyond(reference, at.low):
                points.append(_zero(at.low))  # type: ignore[arg-type]
            else:
                others.append(literal)
        return points, others

    def _equal(self, reference: BoundReference, literal: Literal) -> BoundExpression:
        if is_nan(literal):
            return _is_nan(Op.IS_NAN, reference) if self._largest else FALSE
        at = self._place(reference, literal)
        if at is None:
            return KEPT
        if at.low is None or at.high is None:
            return FALSE
        if at.point and not _beyond(reference, at.low):
            return membership(Op.IN, reference, (_zero(at.low),))
        if at.exact and not at.point:
            return FALSE  # between two neighbours
        span = [_bounded(Op.GE, reference, at.low), _bounded(Op.LE, reference, at.high)]
        return conjunction([*span, KEPT])

    def _unequal(self, reference: BoundReference, literal: Literal) -> BoundExpression:
        not_null = BoundPredicate(Op.IS_NOT_NULL, reference)
        if is_nan(literal):
            return _is_nan(Op.IS_NOT_NAN, reference) if self._largest else not_null
        at = self._place(reference, literal)
        if at is None:
            return KEPT
        if at.point and not _beyond(reference, at.low):
            assert at.low is not None
            return membership(Op.NOT_IN, reference, (_zero(at.low),))
        return not_null if at.exact and not at.point else conjunction([not_null, KEPT])

    def _pattern(self, op: Op, reference: BoundReference, literal: Literal) -> BoundExpression:
        """Patterns of texts, and prefixes of bytes. Engines write other values as text first."""
        column, given = reference.type, literal.type
        plain = (Kind.STRING, Kind.VARCHAR)
        both = column.kind in plain and given.kind in plain
        if both and op in (Op.LIKE, Op.NOT_LIKE):
            equal = self._equal if op is Op.LIKE else self._unequal
            return equal(reference, literal)
        if both or (column.kind is given.kind is Kind.BINARY):
            return _prefix(op, reference, literal)
        if self.strict and column.kind is not Kind.CHAR:
            raise InvalidPredicate(
                f"{_spell(reference.path)} is {column}, and a pattern is of texts",
                "compare it with a value of its type",
            )
        return KEPT

    def _ordered(self, op: Op, reference: BoundReference, literal: Literal) -> BoundExpression:
        if is_nan(literal):
            return self._against_nan(op, reference)
        at = self._place(reference, literal)
        if at is None:
            return KEPT
        less = op in (Op.LT, Op.LE)
        limit = at.high if less else at.low
        if limit is None:
            # No value is beyond the type's range; floating types have no range.
            return FALSE
        if not at.point:
            op = Op.LE if less else Op.GE
        bound = _bounded(op, reference, _zero(limit))
        return bound if at.exact else conjunction([bound, KEPT])

    def _against_nan(self, op: Op, reference: BoundReference) -> BoundExpression:
        """Rule 1: under IEEE no order comparison with NaN holds; otherwise NaN is the greatest."""
        if not self._largest or op is Op.GT:
            return FALSE
        match op:
            case Op.LT:
                return _is_nan(Op.IS_NOT_NAN, reference)
            case Op.LE:
                return BoundPredicate(Op.IS_NOT_NULL, reference)
        return _is_nan(Op.IS_NAN, reference)


def _refuse_incomparable(reference: BoundReference, literal: Literal) -> None:
    """Refuses comparisons in typed conditions that engines reject or cast differently."""
    given, wanted = literal.type, reference.type
    numeric = wanted.is_integer or wanted.is_floating or wanted.kind is Kind.DECIMAL
    if wanted.kind is Kind.UNKNOWN:
        raise InvalidPredicate(
            f"{_spell(reference.path)} holds NULL alone, or values of a type that Hive does not "
            f"have, compared with a {given}",
            "leave this part out, and filter what the scan returns",
        )
    if given.is_text and isinstance(literal.value, bytes):
        text = literal.value.decode("utf-8", "replace")
        if wanted.kind in (Kind.DATE, Kind.TIMESTAMP):
            raise InvalidPredicate(
                f"{_spell(reference.path)} is a {wanted}, and {text!r} is none",
                "write 2024-03-01 or 2024-03-01 12:00:00.5",
            )
        if numeric or wanted.kind is Kind.BOOLEAN:
            raise InvalidPredicate(
                f"{_spell(reference.path)} is {wanted}, and {text!r} is a text",
                "write the value without quotes",
            )
    elif wanted.is_text and wanted.kind is not Kind.CHAR and not given.is_text:
        raise TextExpected(reference, literal)
    elif given.kind is Kind.TIMESTAMP_TZ and wanted.kind in _WITHOUT_ZONE:
        raise InvalidPredicate(
            f"{_spell(reference.path)} is a {wanted}, compared with a timestamp that has a zone",
            "engines read it in the session's zone: write the value without a zone, as the column "
            "shows it: TIMESTAMP '2024-03-01 12:00:00'",
        )
    elif wanted.kind is Kind.TIMESTAMP_TZ and given.kind in _WITHOUT_ZONE:
        raise InvalidPredicate(
            f"{_spell(reference.path)} is a timestamp with a zone, compared with a {given}",
            "write the zone: TIMESTAMP '2024-03-01 12:00:00 UTC'",
        )


def _pads(reference: BoundReference, literals: tuple[Literal, ...]) -> bool:
    """Whether a text is compared with a char, for which each engine pads or trims it (rule 11)."""
    return reference.type.kind is not Kind.CHAR and any(v.type.kind is Kind.CHAR for v in literals)


def _is_nan(op: Op, reference: BoundReference) -> BoundExpression:
    if reference.type.is_floating:
        return BoundPredicate(op, reference)
    return FALSE if op is Op.IS_NAN else BoundPredicate(Op.IS_NOT_NULL, reference)


def _with_null(op: Op, reference: BoundReference) -> BoundExpression:
    """A comparison with NULL. Rule 6: only null-safe ones are ever true."""
    match op:
        case Op.NULL_SAFE_EQ:
            return BoundPredicate(Op.IS_NULL, reference)
        case Op.NULL_SAFE_NE:
            return BoundPredicate(Op.IS_NOT_NULL, reference)
    return FALSE


def _prefix(op: Op, reference: BoundReference, literal: Literal) -> BoundExpression:
    assert literal.value is not None
    if literal.value == b"":
        return BoundPredicate(Op.IS_NOT_NULL, reference) if op is Op.STARTS_WITH else FALSE
    return BoundPredicate(op, reference, (literal.value,))


def _beyond(reference: BoundReference, value: Value | None) -> bool:
    """Whether a value has more digits than its decimal type; a file may hold such values."""
    if reference.type.kind is not Kind.DECIMAL:
        return False
    least, greatest = domain(reference.type) or (0, 0)
    return value is not None and not least <= value <= greatest  # type: ignore[operator]


def _bounded(op: Op, reference: BoundReference, value: Value) -> BoundExpression:
    """An order comparison, folded at the ends of the type's range.

    If the value is beyond a decimal's digits, so is what a row has to hold, or any row may match.
    """
    edges = domain(reference.type)
    if edges is not None and reference.type.kind is Kind.DECIMAL:
        least, greatest = edges
        if least <= value <= greatest:  # type: ignore[operator]
            return BoundPredicate(op, reference, (value,))
        greater, above = op in (Op.GT, Op.GE), value > greatest  # type: ignore[operator]
        needed = BoundPredicate(Op.IS_NOT_NULL, reference)
        if greater is above:
            needed = BoundPredicate(
                Op.GT if above else Op.LT, reference, (greatest if above else least,)
            )
        return conjunction([needed, KEPT])
    if edges is not None:
        least, greatest = edges
        if (op is Op.LT and value == least) or (op is Op.GT and value == greatest):
            return FALSE
        if (op is Op.GE and value == least) or (op is Op.LE and value == greatest):
            return BoundPredicate(Op.IS_NOT_NULL, reference)
    return BoundPredicate(op, reference, (value,))


def _zero(value: Value) -> Value:
    """Rule 2: -0.0 becomes 0.0."""
    return 0.0 if isinstance(value, float) and value == 0 else value
