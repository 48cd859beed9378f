"""A whole WHERE clause applied to rows, as the engine that is named reads it.

The law: a row passes if and only if the predicate is true of it there. A comparison whose binding
is exact is computed by Arrow over all rows; what two engines compute differently (floating numbers
that round, CHAR) is computed in the named engine's way; what cannot be computed so is an error,
never a row too many or too few.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.bind import Scope, bind_in
from bridge.expression.evaluate import Oracle, Rounding
from bridge.expression.fold import is_exact
from bridge.expression.function_catalog import FUNCTIONS, columns_of, engines_agree
from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundAnd,
    BoundCall,
    BoundExpression,
    BoundFalse,
    BoundOr,
    BoundPredicate,
    BoundReference,
    Call,
    Expression,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
    Unknown,
    reference_text,
)
from bridge.expression.parsing.literals import is_nan
from bridge.expression.parsing.text import brief
from bridge.expression.rewrite import normalise
from bridge.expression.unwrap import unwrap
from bridge.kernel.arrow_types import arrow_scalar, arrow_type
from bridge.kernel.errors import InvalidPredicate
from bridge.kernel.types import HIVE, SPARK, STRING, TRINO, Field, Kind, NanOrder, Semantics, Type

Mask = npt.NDArray[np.bool_]
ArrowColumns = Mapping[str, pa.Array]
RowTest = Callable[[ArrowColumns, int], Mask]
SEMANTICS: dict[str, Semantics] = {"trino": TRINO, "hive": HIVE, "spark": SPARK}
_DAY = 86_400_000_000
_CHARS = "compare it with a text: engines pad and trim a char, each in its own way"
_REMEDY = "leave this part out, and filter what the scan returns"
_ARROW: dict[Op, Any] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}
_PATTERNS = (Op.STARTS_WITH, Op.NOT_STARTS_WITH, Op.LIKE, Op.NOT_LIKE)
_DUMMY: dict[Kind, Any] = {Kind.BOOLEAN: False, Kind.FLOAT: 0.0, Kind.DOUBLE: 0.0}


@dataclass(frozen=True, slots=True)
class RowFilter:
    """One predicate over one table.

    Attributes:
        columns: top-level columns that it looks at, as the table spells them.
    """

    columns: tuple[str, ...]
    _node: RowTest

    def mask(self, columns: ArrowColumns, rows: int) -> Mask:
        """Which rows pass.

        Args:
            columns: at least those of `columns`, in the Arrow form of the table's types.

        Errors:
            InvalidPredicate: a value about which engines disagree.
        """
        return self._node(columns, rows)


def row_filter(expression: Expression, fields: Sequence[Field], engine: str) -> RowFilter:
    """Compiles a predicate.

    Args:
        fields: all columns of the table, partition keys and hidden columns among them.
        engine: one of `SEMANTICS`.

    Errors:
        ColumnNotFound, AmbiguousColumn.
        InvalidPredicate: a part of it cannot be computed here, by name.
    """
    return _Compiler(fields, engine).compile(expression)


class _Compiler:
    def __init__(self, fields: Sequence[Field], engine: str) -> None:
        self._scope = Scope(fields, (), case_sensitive=False)
        self._engine, self._semantics = engine, SEMANTICS[engine]
        self._columns: dict[str, None] = {}

    def compile(self, expression: Expression) -> RowFilter:
        _refuse_unknown(expression)
        ranges = unwrap(expression, lambda column: self._scope.resolve(column).type)
        node = self._node(normalise(ranges, self._semantics))
        return RowFilter(tuple(self._columns), node)

    def _node(self, expression: Expression) -> RowTest:
        match expression:
            case And(children):
                return _all([self._node(c) for c in children])
            case Or(children):
                return _any([self._node(c) for c in children])
            case AlwaysTrue():
                return _constant(True)
            case AlwaysFalse():
                return _constant(False)
        assert isinstance(expression, Predicate), expression
        return self._leaf(expression)

    def _leaf(self, predicate: Predicate) -> RowTest:
        node = self._compared(predicate)
        if self._engine != "hive" or predicate.op not in (Op.IN, Op.NOT_IN):
            return node
        if isinstance(predicate.reference, Call) or all(v.value != 0 for v in predicate.literals):
            return node
        column = self._scope.resolve(predicate.reference)
        if not column.type.is_floating:
            return node

        def check_zeros(columns: ArrowColumns, rows: int) -> Mask:
            values = _at(columns, column.path)
            zeros = values.filter(pc.equal(values, 0.0))
            if np.signbit(zeros.to_numpy(zero_copy_only=False)).any():
                raise InvalidPredicate(
                    f"{brief(predicate)}: {reference_text(column)} holds -0.0",
                    "compare it by = and <>: whether Hive finds -0.0 in a list depends on its plan",
                )
            return node(columns, rows)

        return check_zeros

    def _compared(self, predicate: Predicate) -> RowTest:
        if not isinstance(predicate.reference, Call):
            column = self._scope.resolve(predicate.reference)
            is_char = column.type.kind is Kind.CHAR
            if (predicate.op in _PATTERNS or not is_char) and any(
                v.type.kind is Kind.CHAR for v in predicate.literals
            ):
                raise InvalidPredicate(f"{brief(predicate)} cannot be computed here", _CHARS)
            if is_char:
                return self._char(predicate, column)
        bound = bind_in(self._scope, predicate, self._semantics, strict=True)
        if is_exact(bound):
            return self._bound(bound)
        if isinstance(predicate.reference, Call):
            raise InvalidPredicate(f"{brief(predicate)} cannot be computed here", _REMEDY)
        return self._row_by_row(predicate)

    def _bound(self, bound: BoundExpression) -> RowTest:
        match bound:
            case BoundAnd(children):
                return _all([self._bound(c) for c in children])
            case BoundOr(children):
                return _any([self._bound(c) for c in children])
            case BoundPredicate(Op.IN | Op.NOT_IN as op, reference, given):
                values, inside = self._values(reference), _members(reference.type, given)
                if op is Op.IN:
                    return lambda columns, _: inside(values(columns))
                return lambda columns, _: _outside(inside, values(columns))
            case BoundPredicate():
                values = self._values(bound.reference)
                return lambda columns, _: _compare(bound, values(columns), self._semantics)
            case BoundFalse():
                return _constant(False)
        return _constant(True)

    def _values(self, reference: BoundReference) -> Callable[[ArrowColumns], pa.Array]:
        for column in columns_of(reference):
            self._columns[column.path[0]] = None
        if isinstance(reference, BoundCall):
            return lambda columns: _called(reference, columns)
        return lambda columns: _at(columns, reference.path)

    def _char(self, predicate: Predicate, column: BoundReference) -> RowTest:
        """Rule 11: Trino and Spark compare padded texts, Hive those without trailing spaces.

        Patterns are matched as they are written.
        """
        texts = [v for v in predicate.literals if isinstance(v.value, bytes)]
        if any(v.value is not None and not v.type.is_text for v in predicate.literals):
            raise InvalidPredicate(
                f"{reference_text(column)} is {column.type}: {brief(predicate)}",
                "write the value in 'single quotes'",
            )
        self._columns[column.path[0]] = None
        pattern = predicate.op in _PATTERNS
        lengths = [] if pattern else [len(_decoded(v)) for v in texts]
        width = max([column.type.length, *lengths])
        hive = self._engine == "hive"

        def text_of(literal: Literal) -> Literal:
            if literal.value is None or pattern:
                return Literal(literal.value, STRING)
            text = _decoded(literal).rstrip(" ")
            return Literal((text if hive else text.ljust(width)).encode(), STRING)

        renamed = Reference(("c",))
        plain = Predicate(predicate.op, renamed, tuple(text_of(v) for v in predicate.literals))
        scope = Scope([Field("c", STRING)], (), case_sensitive=False)
        bound = bind_in(scope, plain, self._semantics, strict=True)

        def node(columns: ArrowColumns, rows: int) -> Mask:
            values = _at(columns, column.path)
            values = pc.utf8_rtrim(values, " ") if hive else pc.utf8_rpad(values, width, " ")
            return compiled({"c": values}, rows)

        inner = _Compiler([Field("c", STRING)], self._engine)
        compiled = inner._bound(bound)
        return node

    def _row_by_row(self, predicate: Predicate) -> RowTest:
        """What Arrow does not compute as the engine does; exact, one row after another."""
        column = self._scope.resolve(predicate.reference)
        types = {predicate.reference.path: column.type}

        def oracle(literal: Literal) -> Oracle:
            how = rounding(self._engine, column.type, literal.type)
            return Oracle(self._semantics, types, how)

        if predicate.op in (Op.IN, Op.NOT_IN):
            passes = _one_of(predicate, column.type, oracle)
        else:
            judge = oracle(predicate.literals[0])

            def passes(value: Any) -> bool:
                return judge.truth(predicate, {predicate.reference.path: value}) is True

        if arrow_type(column.type) is None or column.type.is_nested:
            raise InvalidPredicate(
                f"{reference_text(column)} is {column.type}: not compared", _REMEDY
            )
        passes(_DUMMY.get(column.type.kind, b"" if column.type.is_bytes else 0))  # may refuse
        self._columns[column.path[0]] = None

        def node(columns: ArrowColumns, rows: int) -> Mask:
            values = canonical(_at(columns, column.path), column.type)
            return np.fromiter((passes(v) for v in values), np.bool_, rows)

        return node


def _one_of(
    predicate: Predicate, type: Type, oracle: Callable[[Literal], Oracle]
) -> Callable[[Any], bool]:
    """IN or NOT IN, where each literal is compared, and rounded, in its own way."""
    negated = predicate.op is Op.NOT_IN
    known = [v for v in predicate.literals if v.value is not None]
    if negated and len(known) < len(predicate.literals):
        return lambda value: False
    # Values and literals of one kind are brought to one form, and then looked up.
    samples: dict[Kind, tuple[Oracle, Literal, set[object]]] = {}
    nan = False
    dummy = _DUMMY.get(type.kind, b"" if type.is_bytes else 0)
    for literal in known:
        if is_nan(literal):
            nan = oracle(literal).semantics.nan is NanOrder.LARGEST
            continue
        kind = literal.type.kind
        if kind not in samples:
            samples[kind] = oracle(literal), literal, set()
        judge, _, forms = samples[kind]
        forms.add(judge.comparable(dummy, type, literal)[1])

    def equal(value: Any) -> bool:
        if isinstance(value, float) and value != value:
            return nan
        return any(o.comparable(value, type, v)[0] in forms for o, v, forms in samples.values())

    return lambda value: value is not None and equal(value) is not negated


def rounding(engine: str, column: Type, literal: Type) -> Rounding:
    """In which floating type an engine compares an exact number with a floating one.

    Trino takes the floating side's type, Hive and Spark a double wherever a decimal is compared. A
    literal that is a double makes all of them compare doubles.
    """
    exact_decimal = Kind.DECIMAL in (column.kind, literal.kind)
    if literal.kind is Kind.DOUBLE or (engine != "trino" and exact_decimal):
        return Rounding.DOUBLE
    return Rounding.SINGLE


def canonical(array: pa.Array, type: Type) -> list[Any]:
    """The canonical values of a column (`bridge.kernel.types`); None is NULL."""
    if type.is_bytes:
        return list(array.cast(pa.binary()).to_pylist())
    if type.kind is Kind.DECIMAL:
        found = array.to_pylist()
        return [None if v is None else int(v.scaleb(type.scale, _CONTEXT)) for v in found]
    if type.is_floating or type.kind is Kind.BOOLEAN:
        return list(array.to_pylist())
    return list(_numbers(array).to_pylist())


_CONTEXT = decimal.Context(prec=76)


def _refuse_unknown(expression: Expression) -> None:
    """Errors: InvalidPredicate: a part of the predicate could not be translated."""
    match expression:
        case And(children) | Or(children):
            for child in children:
                _refuse_unknown(child)
        case Not(child):
            _refuse_unknown(child)
        case Unknown(text):
            raise InvalidPredicate(f"{text} cannot be computed here", _REMEDY)


def _decoded(literal: Literal) -> str:
    assert isinstance(literal.value, bytes)
    return literal.value.decode("utf-8", "replace")


def _constant(value: bool) -> RowTest:
    return lambda columns, rows: np.full(rows, value, np.bool_)


def _all(nodes: Sequence[RowTest]) -> RowTest:
    def node(columns: ArrowColumns, rows: int) -> Mask:
        found = nodes[0](columns, rows)
        for each in nodes[1:]:
            if not found.any():
                break
            found = found & each(columns, rows)
        return found

    return node


def _any(nodes: Sequence[RowTest]) -> RowTest:
    def node(columns: ArrowColumns, rows: int) -> Mask:
        found = nodes[0](columns, rows)
        for each in nodes[1:]:
            if found.all():
                break
            found = found | each(columns, rows)
        return found

    return node


def _at(columns: ArrowColumns, path: tuple[str, ...]) -> pa.Array:
    values = columns[path[0]]
    for name in path[1:]:
        values = pc.struct_field(values, [values.type.get_field_index(name)])
    return values


def _numbers(array: pa.Array) -> pa.Array:
    """Whole numbers, dates and times as int64."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    return array.cast(pa.int64())


def _mask(found: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), np.bool_)


def _compare(predicate: BoundPredicate, values: pa.Array, semantics: Semantics) -> Mask:
    op, type = predicate.op, predicate.reference.type
    match op:
        case Op.IS_NULL:
            return _mask(values.is_null())
        case Op.IS_NOT_NULL:
            return _mask(values.is_valid())
        case Op.IS_NAN:
            return _mask(pc.is_nan(values))
        case Op.IS_NOT_NAN:
            return _mask(pc.invert(pc.is_nan(values)))
    (given,) = predicate.values
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        found = pc.starts_with(values.cast(pa.binary()), given)
        return _mask(found if op is Op.STARTS_WITH else pc.invert(found))
    if type.is_bytes:
        return _mask(_ARROW[op](values.cast(pa.binary()), pa.scalar(given, pa.binary())))
    if type.is_floating or type.kind is Kind.DECIMAL:
        mask = _mask(_ARROW[op](values, arrow_scalar(given, type)))
        if op in (Op.GT, Op.GE) and type.is_floating and semantics.nan is NanOrder.LARGEST:
            mask |= _mask(pc.is_nan(values))
        return mask
    return _mask(_ARROW[op](_numbers(values), pa.scalar(int(given), pa.int64())))


def _members(type: Type, given: Sequence[Any]) -> Callable[[pa.Array], Mask]:
    """Whether a column's values are among the given ones; false for NULL.

    The work of each call is in proportion to its values, however many are given.
    """
    if type.is_bytes:
        listed = pa.array(given, pa.binary())
    elif type.is_floating or type.kind is Kind.DECIMAL:
        listed = pa.array([arrow_scalar(v, type) for v in given])
    else:
        listed = pa.array([int(v) for v in given], pa.int64())
    known = frozenset(listed.to_pylist())

    def inside(values: pa.Array) -> Mask:
        if type.is_bytes:
            values = values.cast(pa.binary())
        elif type.is_floating:
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0
        elif type.kind is not Kind.DECIMAL:
            values = _numbers(values)
        if len(values) < len(known):
            return np.fromiter((v in known for v in values.to_pylist()), np.bool_, len(values))
        return _mask(pc.is_in(values, listed))

    return inside


def _outside(inside: Callable[[pa.Array], Mask], values: pa.Array) -> Mask:
    return ~inside(values) & _mask(values.is_valid())


def _called(call: BoundCall, columns: ArrowColumns) -> pa.Array:
    """A function's values, in the Arrow form of its type.

    Errors:
        InvalidPredicate: engines disagree about it for some value.
    """
    inner = call.arguments[0]
    if not isinstance(inner, BoundReference):
        raise InvalidPredicate(f"{reference_text(call)} cannot be computed here", _REMEDY)
    values = _called(inner, columns) if isinstance(inner, BoundCall) else _at(columns, inner.path)
    function = FUNCTIONS[call.function]
    constants = [a.value for a in call.arguments if isinstance(a, Literal)]
    if function.apply is None:
        raise InvalidPredicate(f"{reference_text(call)} cannot be computed here", _REMEDY)
    if inner.type.is_text:
        known = values.drop_null()
        found = function.apply(known.cast(pa.large_string()), constants)
        if found is None:
            raise _disagree(call)
        place = np.cumsum(values.is_valid().to_numpy(zero_copy_only=False)) - 1
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        spread = found.take(pa.array(np.where(valid, place, 0), mask=~valid))
        return spread.cast(arrow_type(call.type))
    whole = _numbers(values)
    null = whole.is_null().to_numpy(zero_copy_only=False)
    numbers = whole.drop_null().to_numpy()
    days = inner.type.kind is Kind.DATE
    if days and len(numbers) and np.abs(numbers).max() > 10**7:
        raise _disagree(call)
    given = numbers * _DAY if days else numbers
    if not engines_agree(function.dates, given):
        raise _disagree(call)
    applied = function.apply(given, constants)
    limit = {Kind.TINYINT: 2**7, Kind.SMALLINT: 2**15, Kind.INTEGER: 2**31}.get(
        inner.type.kind, 2**62
    )
    if applied is None or (not function.dates and len(applied) and np.abs(applied).max() >= limit):
        raise _disagree(call)
    if call.type.kind is Kind.DATE:
        applied = applied // _DAY
    spread_numbers = np.zeros(len(null), np.int64)
    spread_numbers[~null] = applied
    result = pa.array(spread_numbers, mask=null)
    if call.type.kind is Kind.DATE:
        return result.cast(pa.int32()).cast(pa.date32())
    return result.cast(arrow_type(call.type))


def _disagree(call: BoundCall) -> InvalidPredicate:
    return InvalidPredicate(
        f"engines compute {reference_text(call)} differently for some value of the table", _REMEDY
    )
