"""Exact evaluation of expressions over known values of columns.

The law: where `evaluate` gives a value, Trino, Hive and Spark compute it, in every session, zone
and locale. `UNDECIDED` stands for everything else: an error, an overflow, text beyond ASCII where
letters, order or length matter, text that is no UTF-8 or ends with a space, a zero or NaN of a
double, a date before 1900. It is contagious, so that an expression that may fail decides nothing,
whatever stands beside it.

A `Computed` is a boolean expression in place of a column. Files in which all its columns are
constant decide it, and so do lists of a single column's values.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.function_catalog import FUNCTIONS, columns_of, engines_agree
from bridge.expression.nodes import (
    Apply,
    BoundCall,
    BoundComputed,
    BoundPredicate,
    BoundReference,
    Computed,
    Literal,
    Op,
    Predicate,
    Reference,
    Slot,
    Term,
)
from bridge.expression.parsing.calendar import format_date
from bridge.expression.residual import is_true_for
from bridge.expression.statistics import ColumnStatistics, Mask, Places, PruningStatistics
from bridge.kernel.types import BOOLEAN, INTEGER_RANGE, Kind, Type, Value

MOST_VALUES = 4096
"""An expression is evaluated on so many values of its columns at most."""
_DAY = 86_400_000_000
_DIGITS = decimal.Context(prec=39)
_DEEPEST = 64
_NUMBER = re.compile(rb"-?[0-9]{1,18}")
_TYPES = (Kind.BOOLEAN, Kind.DATE, Kind.STRING, Kind.VARCHAR, Kind.DECIMAL, Kind.DOUBLE)


class Undecided(Enum):
    """The type of `UNDECIDED`."""

    UNDECIDED = "undecided"


UNDECIDED: Final = Undecided.UNDECIDED
ComputedValue = Value | None | Undecided


def to_condition(text: str, term: Term, columns: Sequence[Reference]) -> Predicate | None:
    """The condition that a boolean term is true; None without columns, or with other types.

    Args:
        text: for reports.
        columns: what its slots stand for.
    """
    if not columns or not _computable(term, 0):
        return None
    reference = Computed(("", f"({text})"), "computed", tuple(columns), term)
    return Predicate(Op.EQ, reference, (Literal(True, BOOLEAN),))


def bind_computed(call: Computed, columns: Sequence[BoundReference]) -> BoundComputed | None:
    """On resolved columns; None if they have other types than the expression was written for."""
    if not all(_alike(of, columns[slot].type) for slot, of in _slots(call.term)):
        return None
    return BoundComputed(call.path, BOOLEAN, False, call.function, tuple(columns), term=call.term)


def on_keys(call: BoundCall) -> BoundComputed:
    """A function of partition keys: no index has its values, whatever files hold of that name."""
    path = "", f"({call.path[1]})"
    return BoundComputed(
        path, call.type, False, "computed", tuple(columns_of(call)), term=term_of(call)
    )


def constants(predicate: BoundPredicate, statistics: PruningStatistics) -> Mask | None:
    """Files whose columns are constant, and do not satisfy a predicate on a function of them.

    A constant is an exact bound that is the other one too, in a file without NULL and NaN; or NULL
    in a file of nothing else.
    """
    places = np.arange(statistics.num_files)
    held: list[Any] = []
    for reference in columns_of(predicate.reference):
        if reference.path[0].startswith("$"):  # a hidden column: no file has it
            return None
        column = statistics.column(reference)
        if column is None or not is_usable(reference.type):
            return None
        sure, empty = _constant(column)
        places = places[(sure | empty)[places]]
        if not len(places):
            return None
        held.append((column, empty))
    codes = np.zeros(len(places), np.int64)
    values: list[Sequence[Value | None]] = []
    for column, empty in held:
        mine, own = _coded(column, empty, places)
        values.append(own)
        codes = np.unique(codes * len(own) + mine, return_inverse=True)[1]
    _, first = np.unique(codes, return_index=True)
    if len(first) > MOST_VALUES:
        return None
    rows: list[list[Value | None]] = [[] for _ in first]
    for column, empty in held:
        mine, own = _coded(column, empty, places[first])
        for row, code in zip(rows, mine.tolist(), strict=True):
            row.append(own[code])
    failed = np.array([decide(predicate, row) is False for row in rows], np.bool_)
    never = np.zeros(statistics.num_files, np.bool_)
    never[places[failed[codes]]] = True
    return never


def _constant(column: ColumnStatistics) -> tuple[Mask, Mask]:
    """Files in which a column has one value and no NULL, and those in which it is NULL."""
    if isinstance(column.lower, np.ndarray):
        sure: Mask = np.equal(column.lower, column.upper)
    else:
        same = pc.fill_null(pc.equal(column.lower, column.upper), False)
        sure = np.asarray(same.to_numpy(zero_copy_only=False), np.bool_)
    for known in (column.lower_known, column.upper_known, column.exact):
        if known is not None:
            sure = sure & known
    sure = sure & (column.null_count == 0) & (column.nan_count == 0) & (column.row_count != 0)
    return sure, np.zeros(len(sure), np.bool_) if column.all_null is None else column.all_null


def _coded(
    column: ColumnStatistics, empty: Mask, places: Places
) -> tuple[npt.NDArray[np.int64], list[Value | None]]:
    """The value of a column in files where it is constant, as places in a list of them."""
    if isinstance(column.lower, np.ndarray):
        own, codes = np.unique(column.lower[places], return_inverse=True)
        values: list[Value | None] = own.tolist()
        if column.type.kind is Kind.BOOLEAN:
            values = [bool(v) for v in own]
    else:
        coded = column.lower.take(pa.array(places)).dictionary_encode()
        listed: list[Any] = coded.dictionary.to_pylist()
        if column.type.kind is Kind.DECIMAL:
            listed = [int(v.scaleb(column.type.scale, _DIGITS)) for v in listed]
        values = [*listed]
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    values.append(None)
    return np.where(empty[places], len(values) - 1, codes).astype(np.int64), values


def is_usable(type: Type) -> bool:
    """Whether values of a type take part: no CHAR, no time of day, no single-precision float."""
    return type.is_integer or type.kind in _TYPES


def decide(predicate: BoundPredicate, values: Sequence[Value | None]) -> bool | None:
    """Whether a predicate on a function of columns holds for one row; None if undecided.

    Args:
        values: of `columns_of` its reference, in order. NULL is not true.
    """
    call = predicate.reference
    assert isinstance(call, BoundCall)
    found = evaluate(term_of(call), values)
    if isinstance(found, Undecided) or _doubtful(found):
        return None
    return is_true_for(predicate, found)


def term_of(call: BoundCall) -> Term:
    """The term of a function of the catalog; its integers have the width of their column."""
    if isinstance(call, BoundComputed):
        return call.term
    columns = columns_of(call)

    def term(argument: BoundReference | Literal) -> Term:
        if isinstance(argument, Literal):
            return argument
        if isinstance(argument, BoundCall):
            return Apply(argument.function, _type(argument), tuple(map(term, argument.arguments)))
        return Slot(columns.index(argument), argument.type)

    return term(call)


def _type(call: BoundCall) -> Type:
    (column, *_) = columns_of(call)
    return column.type if column.type.is_integer else call.type


def _slots(term: Term) -> set[tuple[int, Type]]:
    if isinstance(term, Slot):
        return {(term.index, term.type)}
    return set() if isinstance(term, Literal) else set().union(*map(_slots, term.arguments))


def _computable(term: Term, depth: int) -> bool:
    if depth > _DEEPEST or not is_usable(term.type):
        return False
    if not isinstance(term, Apply):
        return True
    conditions = {"and": term.arguments, "or": term.arguments, "not": term.arguments}
    conditions["if"] = term.arguments[:-1:2]
    if any(a.type.kind is not Kind.BOOLEAN for a in conditions.get(term.function, ())):
        return False
    least, most = _ARITY.get(term.function, (1, 3))
    if term.function not in _OPERATIONS or not least <= len(term.arguments) <= most:
        return False
    return all(_computable(a, depth + 1) for a in term.arguments)


def _alike(one: Type, other: Type) -> bool:
    texts = (Kind.STRING, Kind.VARCHAR)
    return one == other or (one.kind in texts and other.kind in texts)


def evaluate(term: Term, values: Sequence[Value | None]) -> ComputedValue:
    """The value of a term for one row; None is NULL.

    Args:
        values: of the columns that its slots stand for.
    """
    if isinstance(term, Literal):
        return term.value
    if isinstance(term, Slot):
        return _read(values[term.index], term.type)
    found = [evaluate(a, values) for a in term.arguments]
    known = [v for v in found if not isinstance(v, Undecided)]
    if len(known) < len(found):
        return UNDECIDED
    operation = _OPERATIONS.get(term.function)
    return UNDECIDED if operation is None else operation(term, known)


def _read(value: Value | None, type: Type) -> ComputedValue:
    if value is None:
        return None
    if not is_usable(type) or _doubtful(value):
        return UNDECIDED
    if isinstance(value, bytes) and not _is_plain(value):
        return UNDECIDED
    if type.kind is Kind.DATE and not engines_agree(True, np.array([value]) * _DAY):
        return UNDECIDED
    return value


def _is_plain(text: bytes) -> bool:
    """Whether it is UTF-8, which some engines mend, and ends with no space, which some cut."""
    try:
        return not text.decode().endswith(" ")
    except UnicodeDecodeError:
        return False


def _doubtful(value: Value | None) -> bool:
    """A zero or NaN: engines order them differently (rules 1 and 2)."""
    return isinstance(value, float) and (value == 0 or math.isnan(value))


# Operations: of a term and the values of its arguments.

_Given = Sequence[Value | None]
_Operation = Callable[[Apply, _Given], ComputedValue]


def _strict(of: _Operation) -> _Operation:
    """NULL where an argument is NULL."""
    return lambda term, given: None if None in given else of(term, given)


def _types(term: Apply) -> list[Type]:
    return [a.type for a in term.arguments]


def _all(term: Apply, given: _Given) -> ComputedValue:
    return False if False in given else None if None in given else True


def _any(term: Apply, given: _Given) -> ComputedValue:
    return True if True in given else None if None in given else False


def _order(term: Apply, given: _Given) -> int | Undecided:
    """Compares two values that are not NULL."""
    left, right = given
    one, other = _types(term)
    if one.is_text and other.is_text:
        assert isinstance(left, bytes) and isinstance(right, bytes)
        if any(t.length and t.length < len(v) for t in (one, other) for v in (left, right)):
            return UNDECIDED  # of a varchar that Hive might cut
        if left != right and not (left.isascii() and right.isascii()):
            return 2  # unequal; rule 12
        return (left > right) - (left < right)
    exact = [t.is_integer or t.kind is Kind.DECIMAL for t in (one, other)]
    if not all(exact) and one.kind is not other.kind:
        return UNDECIDED
    assert not isinstance(left, bytes | None) and not isinstance(right, bytes | None)
    if _doubtful(left) or _doubtful(right):
        return UNDECIDED
    if all(exact):
        left, right = left * 10**other.scale, right * 10**one.scale
    return (left > right) - (left < right)


def _compare(test: Callable[[int], bool], equality: bool = False) -> _Operation:
    def of(term: Apply, given: _Given) -> ComputedValue:
        order = _order(term, given)
        if isinstance(order, Undecided) or (order == 2 and not equality):
            return UNDECIDED
        return test(order)

    return _strict(of)


def _identical(same: bool) -> _Operation:
    def of(term: Apply, given: _Given) -> ComputedValue:
        if None in given:
            return (given[0] is given[1]) is same
        order = _order(term, given)
        return UNDECIDED if isinstance(order, Undecided) else (order == 0) is same

    return of


def _coalesce(term: Apply, given: _Given) -> ComputedValue:
    if not _same_types([term.type, *_types(term)]):
        return UNDECIDED
    return next((v for v in given if v is not None), None)


def _if(term: Apply, given: _Given) -> ComputedValue:
    """Pairs of a condition and a value, and the value otherwise."""
    if not _same_types([term.type, *_types(term)[1::2], *_types(term)[-1:]]):
        return UNDECIDED
    for i in range(0, len(given) - 1, 2):
        if given[i] is True:
            return given[i + 1]
    return given[-1]


def _same_types(types: Sequence[Type]) -> bool:
    whole = all(t.is_integer for t in types)
    texts = all(t.kind in (Kind.STRING, Kind.VARCHAR) for t in types)
    return whole or texts or all(t == types[0] for t in types)


def _nullif(term: Apply, given: _Given) -> ComputedValue:
    if given[0] is None or given[1] is None:
        return given[0]
    order = _order(term, given)
    return UNDECIDED if isinstance(order, Undecided) else None if order == 0 else given[0]


def _whole(change: Callable[..., int]) -> _Operation:
    """Of integers; beyond the width of the result's type Hive wraps, and Trino fails."""

    def of(term: Apply, given: _Given) -> ComputedValue:
        if not all(t.is_integer for t in (term.type, *_types(term))):
            return UNDECIDED
        try:
            found = change(*given)
        except ZeroDivisionError:
            return UNDECIDED
        least, greatest = INTEGER_RANGE[term.type.kind]
        return found if least <= found <= greatest else UNDECIDED

    return _strict(of)


def _quotient(value: int, by: int) -> int:
    found = abs(value) // abs(by)
    return found if (value < 0) is (by < 0) else -found


def _remainder(value: int, by: int) -> int:
    return int(math.copysign(1, value)) * (abs(value) % abs(by))


def _length(term: Apply, given: _Given) -> ComputedValue:
    (text,) = given
    return len(text) if isinstance(text, bytes) and text.isascii() else UNDECIDED


def _concat(term: Apply, given: _Given) -> ComputedValue:
    texts = [v for v in given if isinstance(v, bytes)]
    return b"".join(texts) if len(texts) == len(given) else UNDECIDED


def _of_catalog(name: str) -> _Operation:
    function = FUNCTIONS[name]

    def of(term: Apply, given: _Given) -> ComputedValue:
        constants = [a.value for a in term.arguments if isinstance(a, Literal)]
        inner = [
            (a.type, v)
            for a, v in zip(term.arguments, given, strict=True)
            if not isinstance(a, Literal)
        ]
        if len(inner) != 1 or function.apply is None or not function.constants(constants):
            return UNDECIDED
        ((kind, value),) = inner
        if kind.kind not in function.takes:
            return UNDECIDED
        if isinstance(value, bytes):
            try:
                found = function.apply(pa.array([value.decode()], pa.large_string()), constants)
            except UnicodeDecodeError:
                return UNDECIDED
            if found is None:
                return UNDECIDED
            told = found[0].as_py()
            return told.encode() if isinstance(told, str) else told
        if kind.kind is not Kind.DATE:
            return UNDECIDED
        micros = np.array([value]) * _DAY
        if not engines_agree(True, micros):
            return UNDECIDED
        number = int(function.apply(micros, constants)[0])
        return number // _DAY if name == "date_trunc" else number

    return _strict(of)


def _cast(term: Apply, given: _Given) -> ComputedValue:
    (value,), (source,) = given, _types(term)
    target = term.type
    if source == target:
        return value
    if target.kind in (Kind.STRING, Kind.VARCHAR):
        text = _text(value, source)
        if text is None or (target.length and len(text) > target.length):
            return UNDECIDED
        return text
    if isinstance(value, bytes) and target.is_integer and _NUMBER.fullmatch(value):
        value, source = int(value), Type(Kind.BIGINT)
    if not source.is_integer or not isinstance(value, int):
        return UNDECIDED
    if target.is_integer:
        least, greatest = INTEGER_RANGE[target.kind]
        return value if least <= value <= greatest else UNDECIDED
    if target.kind is Kind.DECIMAL:
        unscaled: int = value * 10**target.scale
        return unscaled if abs(unscaled) < 10**target.precision else UNDECIDED
    return float(value) if target.kind is Kind.DOUBLE and abs(value) <= 2**53 else UNDECIDED


def _text(value: Value | None, source: Type) -> bytes | None:
    if isinstance(value, bytes):
        return value
    if isinstance(value, int) and source.is_integer:
        return str(value).encode()
    if (
        isinstance(value, int)
        and source.kind is Kind.DATE
        and engines_agree(True, np.array([value * _DAY]))
    ):
        return format_date(value).encode()
    return None


_OPERATIONS: dict[str, _Operation] = {
    "and": _all,
    "or": _any,
    "not": _strict(lambda _, given: not given[0]),
    "is_null": lambda _, given: given[0] is None,
    "=": _compare(lambda order: order == 0, equality=True),
    "<>": _compare(lambda order: order != 0, equality=True),
    "<": _compare(lambda order: order < 0),
    "<=": _compare(lambda order: order <= 0),
    ">": _compare(lambda order: order > 0),
    ">=": _compare(lambda order: order >= 0),
    "identical": _identical(True),
    "distinct": _identical(False),
    "coalesce": _coalesce,
    "if": _if,
    "nullif": _nullif,
    "add": _whole(lambda a, b: a + b),
    "subtract": _whole(lambda a, b: a - b),
    "multiply": _whole(lambda a, b: a * b),
    "divide": _whole(_quotient),
    "modulus": _whole(_remainder),
    "negate": _whole(lambda a: -a),
    "abs": _whole(abs),
    "length": _strict(_length),
    "concat": _strict(_concat),
    "cast": _strict(_cast),
    **{
        name: _of_catalog(name)
        for name in FUNCTIONS
        if name not in ("add", "subtract", "multiply", "modulus", "great_circle_distance")
    },
}
"""`if` has conditions and values in turn, and the value otherwise last; the others as in SQL."""
_ARITY = {
    **dict.fromkeys(("not", "is_null", "negate", "abs", "length", "cast"), (1, 1)),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "identical", "distinct", "nullif"), (2, 2)),
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "modulus"), (2, 2)),
    **dict.fromkeys(("and", "or", "coalesce", "concat"), (1, 1000)),
    "if": (3, 1001),
}
