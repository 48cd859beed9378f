"""Functions of columns whose values an index can hold, with the same meaning in every engine.

The law: Trino, Hive and Spark compute the same result for every value that `Function.apply`
accepts. If it refuses a value, the index holds nothing for the file:

=====================  =======================================================================
lower, upper           ASCII only: beyond it engines map letters by different tables
substring(s, b[, n])   ASCII only (Hive counts UTF-16 units); b and n are constants, b from 1
year, month, day,      of dates and zone-free timestamps from 1900 to 9999, in the proleptic
quarter, hour, minute  Gregorian calendar
date_trunc(unit, t)    the same; year, quarter, month, week (from Monday), day, hour, minute
add, subtract,         integers, where the result fits the column's own width: Hive wraps,
multiply, modulus      Trino fails; one side is a constant; modulus has the dividend's sign
like(s, pattern)       valid UTF-8, of Trino: % and _ stand for line ends too, _ for a code point;
                       the pattern's escape is the backslash: `expression.parsing.like`
json_extract_scalar    of paths of keys alone ($.a.b); strings, whole numbers, true, false and
(s, path)              null, see `expression.parsing.json_path`. NULL where there is no such key
great_circle_distance  kilometres on a sphere of 6371.01 km; no values are held of it
=====================  =======================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.like_match import like_mask
from bridge.expression.nodes import BoundCall, BoundReference, Call, Literal, Reference
from bridge.expression.parsing.json_path import is_path, scalars
from bridge.expression.parsing.literals import exact_number
from bridge.kernel.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Kind, Type

Argument = BoundReference | Literal
_TEXT = (Kind.STRING, Kind.VARCHAR)
_TIMES = (Kind.DATE, Kind.TIMESTAMP)
_INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_DAY = 86_400_000_000
_FROM, _TO = -25_567, 2_932_897
"""Days of 1900-01-01 and, exclusively, of 10000-01-01."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes:
        takes: the kinds of columns it accepts.
        gives: its result type, from the column's type.
        constants: whether it accepts these other arguments.
        apply: computes the results from the column's values (Arrow text, or int64 in canonical
            form) and the constants. Returns None if engines may differ about a value. Results may
            be NULL only for text.
        dates: whether it accepts dates and timestamps.
    """

    takes: tuple[Kind, ...]
    gives: Callable[[Type], Type]
    constants: Callable[[Sequence[Any]], bool]
    apply: Callable[[Any, Sequence[Any]], Any] | None
    dates: bool = False


def _text(change: Callable[[pa.Array], pa.Array]) -> Function:
    def apply(values: pa.Array, constants: Sequence[Any]) -> pa.Array | None:
        return change(values) if _ascii(values) else None

    return Function(_TEXT, lambda _: STRING, lambda c: not c, apply)


def _ascii(values: pa.Array) -> bool:
    return bool(pc.all(pc.string_is_ascii(values)).as_py() in (True, None))


def _substring(values: pa.Array, constants: Sequence[Any]) -> pa.Array | None:
    if not _ascii(values):
        return None
    begin = constants[0] - 1
    stop = begin + constants[1] if len(constants) > 1 else None
    return pc.utf8_slice_codeunits(values, begin, stop)


def _like(values: pa.Array, constants: Sequence[Any]) -> pa.Array | None:
    return like_mask(values, constants[0].decode())


def _is_text(constant: Any) -> bool:
    try:
        return isinstance(constant, bytes) and constant.decode() is not None
    except UnicodeDecodeError:
        return False


def _counts(constants: Sequence[Any]) -> bool:
    whole = all(isinstance(c, int) and not isinstance(c, bool) for c in constants)
    return whole and len(constants) in (1, 2) and constants[0] >= 1 and min(constants) >= 0


def _part(unit: str, of: Callable[[Any], Any]) -> Function:
    takes = _TIMES if unit not in ("h", "m") else (Kind.TIMESTAMP,)
    return Function(takes, lambda _: BIGINT, lambda c: not c, lambda v, _: of(v), dates=True)


def _months(micros: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Months since 1970."""
    return np.asarray(_days(micros).astype("M8[D]").astype("M8[M]").astype(np.int64))


def _days(micros: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return micros // _DAY


def _day_of_month(micros: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    first = _months(micros).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return _days(micros) - first + 1


def _since(months: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.asarray(months.astype("M8[M]").astype("M8[D]").astype(np.int64)) * _DAY


_TRUNCATED: dict[str, Callable[[Any], Any]] = {
    "year": lambda v: _since(_months(v) // 12 * 12),
    "quarter": lambda v: _since(_months(v) // 3 * 3),
    "month": lambda v: _since(_months(v)),
    "week": lambda v: ((_days(v) + 3) // 7 * 7 - 3) * _DAY,
    "day": lambda v: _days(v) * _DAY,
    "hour": lambda v: v // 3_600_000_000 * 3_600_000_000,
    "minute": lambda v: v // 60_000_000 * 60_000_000,
}


def _arithmetic(change: Callable[[Any, int], Any]) -> Function:
    def fits(constants: Sequence[Any]) -> bool:
        if len(constants) != 1 or not isinstance(constants[0], int):
            return False
        return not isinstance(constants[0], bool) and 0 < abs(constants[0]) < 2**31

    def apply(values: npt.NDArray[np.int64], constants: Sequence[Any]) -> Any:
        if len(values) and max(-int(values.min()), int(values.max())) >= 2**31:
            return None
        return change(values, constants[0])

    return Function(_INTEGERS, lambda _: BIGINT, fits, apply)


FUNCTIONS: dict[str, Function] = {
    "lower": _text(pc.ascii_lower),
    "upper": _text(pc.ascii_upper),
    "substring": Function(_TEXT, lambda _: STRING, _counts, _substring),
    "like": Function(_TEXT, lambda _: BOOLEAN, lambda c: len(c) == 1 and _is_text(c[0]), _like),
    "year": _part("y", lambda v: _months(v) // 12 + 1970),
    "quarter": _part("q", lambda v: _months(v) % 12 // 3 + 1),
    "month": _part("M", lambda v: _months(v) % 12 + 1),
    "day": _part("d", _day_of_month),
    "hour": _part("h", lambda v: v % _DAY // 3_600_000_000),
    "minute": _part("m", lambda v: v % 3_600_000_000 // 60_000_000),
    "date_trunc": Function(
        _TIMES,
        lambda t: DATE if t.kind is Kind.DATE else TIMESTAMP,
        lambda c: len(c) == 1 and _is_text(c[0]) and c[0].decode() in _TRUNCATED,
        lambda v, c: _TRUNCATED[c[0].decode()](v),
        dates=True,
    ),
    "add": _arithmetic(lambda v, k: v + k),
    "subtract": _arithmetic(lambda v, k: v - k),
    "multiply": _arithmetic(lambda v, k: v * k),
    "modulus": _arithmetic(lambda v, k: np.fmod(v, k)),
    "json_extract_scalar": Function(
        _TEXT, lambda _: STRING, lambda c: len(c) == 1 and is_path(c[0]), scalars
    ),
    "great_circle_distance": Function(
        (Kind.DOUBLE, Kind.FLOAT), lambda _: DOUBLE, lambda c: len(c) == 2, None
    ),
}
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_WORDS = (
    "all alter and any as between case create cross current_catalog current_date current_time "
    "current_timestamp current_user distinct drop else except false fetch for from glob grant "
    "having ilike inner insert intersect into join lateral like localtime localtimestamp "
    "match_recognize not notnull null on or outer partitioned_by regexp returning revoke rlike "
    "rollback select tablesample then true uncache union using values when where with xor"
)
_KEYWORDS = frozenset(_WORDS.split())
"""What is no column's name in Trino's dialect unless it is quoted."""
_SWAPS = frozenset({"add", "multiply"})
ALIASES = {
    "substr": "substring",
    "day_of_month": "day",
    "mod": "modulus",
    "get_json_object": "json_extract_scalar",
}


def call(name: str, arguments: Sequence[Reference | Literal]) -> Call | None:
    """A call in normal form: canonical name, columns before constants. None if unsupported.

    >>> from bridge.kernel.types import BIGINT
    >>> call("add", [Literal(1, BIGINT), Reference(("c",))]).text
    'add(c, 1)'
    """
    name = ALIASES.get(name.lower(), name.lower())
    if name not in FUNCTIONS:
        return None
    columns = [a for a in arguments if isinstance(a, Reference)]
    constants = [_constant(a) for a in arguments if isinstance(a, Literal)]
    if None in constants or len(columns) != (2 if name == "great_circle_distance" else 1):
        return None
    if name == "great_circle_distance":
        # The distance is symmetric.
        if [isinstance(a, Reference) for a in arguments] not in (
            [True, True, False, False],
            [False, False, True, True],
        ):
            return None
    elif name == "date_trunc":
        if len(arguments) != 2 or not isinstance(arguments[1], Reference):
            return None
    elif not isinstance(arguments[0], Reference) and name not in _SWAPS:
        return None
    given = [c for c in constants if c is not None]
    if name == "date_trunc" and isinstance(given[0].value, bytes):
        given = [Literal(given[0].value.lower(), given[0].type)]
    shown = [*map(_column, columns), *map(_spelled, given)]
    if name == "date_trunc":
        shown.reverse()
    text = f"{name}({', '.join(shown)})"
    return Call(("", text), name, (*columns, *given))


def _constant(literal: Literal) -> Literal | None:
    """A constant in normal form: integers of all types are equal. None if not comparable."""
    if literal.value is None or isinstance(literal.value, bool):
        return None
    if isinstance(literal.value, bytes):
        return Literal(literal.value, STRING)
    if literal.type.is_floating:
        return Literal(float(literal.value), DOUBLE)
    number = exact_number(literal)
    if number is None:
        return None
    try:
        return (
            Literal(int(number), BIGINT)
            if number == int(number)
            else Literal(float(number), DOUBLE)
        )
    except (OverflowError, ValueError):
        return None


def _column(reference: Reference) -> str:
    if isinstance(reference, Call):
        return reference.text
    names = map(str.lower, reference.path)
    plain = (n if _PLAIN.fullmatch(n) and n not in _KEYWORDS else _quoted(n) for n in names)
    return ".".join(plain)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _spelled(literal: Literal) -> str:
    if isinstance(literal.value, bytes):
        return "'" + literal.value.decode("utf-8", "replace").replace("'", "''") + "'"
    return repr(literal.value)


def bound_call(unbound: Call, arguments: Sequence[Argument]) -> BoundCall | None:
    """A call on resolved columns; None if it is not defined for their types."""
    function = FUNCTIONS[unbound.function]
    columns = [a for a in arguments if isinstance(a, BoundReference)]
    constants = [a.value for a in arguments if isinstance(a, Literal)]
    if any(c.type.kind not in function.takes for c in columns):
        return None
    if not function.constants(constants):
        return None
    gives = function.gives(columns[0].type)
    return BoundCall(unbound.path, gives, False, unbound.function, tuple(arguments))


def columns_of(reference: BoundReference) -> list[BoundReference]:
    """The columns of a call, or the column itself."""
    if not isinstance(reference, BoundCall):
        return [reference]
    return [c for a in reference.arguments if isinstance(a, BoundReference) for c in columns_of(a)]


def innermost(call: BoundCall) -> str:
    """The name of the function that is applied directly to the column."""
    inner = call.arguments[0]
    return innermost(inner) if isinstance(inner, BoundCall) else call.function


def engines_agree(dates: bool, values: npt.NDArray[np.int64]) -> bool:
    """Whether engines agree about all dates (days) or timestamps (microseconds)."""
    if not dates or not len(values):
        return True
    return bool(values.min() >= _FROM * _DAY and values.max() < _TO * _DAY)
