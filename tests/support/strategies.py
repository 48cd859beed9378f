"""Random tables, files, predicates and statistics for the laws.

A case is drawn as a few interesting choices and a seed; everything else comes from a generator of
that seed. That is a hundred times faster than drawing each value, and a failing case still replays.
"""

from __future__ import annotations

import math
import random
import struct as binary
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from bridge.expression.bounds import _DIGITS
from bridge.expression.evaluate import Row
from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundCall,
    BoundReference,
    Expression,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
    Unknown,
)
from bridge.expression.quantised_bounds import QuantisedBounds
from bridge.expression.statistics import ColumnStatistics
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HIVE,
    INTEGER,
    INTEGER_RANGE,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    TRINO,
    Field,
    Kind,
    Semantics,
    Type,
    Value,
    char,
    decimal,
    struct,
    varchar,
)

TYPES = (
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INTEGER,
    BIGINT,
    FLOAT,
    DOUBLE,
    decimal(5, 2),
    decimal(18, 0),
    decimal(30, 10),
    decimal(38, 0),
    DATE,
    TIMESTAMP,
    TIMESTAMP_TZ,
    STRING,
    varchar(10),
    char(4),
    BINARY,
)
_TEXTS = (
    "",
    "a",
    "ab",
    "abc",
    "b",
    "z",
    "z\t",
    "za",
    "zz",
    "é",
    "é" * 3,
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "\U0010ffff" * 2,
    "a\U0010ffff",
    "x" * 70,
    "x" * 70 + "y",
    "\\",
    "\\b",
    "a\\",
    "a%b\\",
    "_\nz",
)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.1, 1.5, 5.0, 1e300, -1e300, 2.0**53, 2.0**24, 5e-324)


def single(value: float) -> float:
    """The value as a float32 holds it."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def value(rng: random.Random, type: Type) -> Value:
    """A value of a type, often an awkward one."""
    match type.kind:
        case Kind.BOOLEAN:
            return rng.random() < 0.5
        case Kind.FLOAT | Kind.DOUBLE:
            found = _float(rng)
            return single(found) if type.kind is Kind.FLOAT else found
        case Kind.DECIMAL:
            limit = 10**type.precision - 1
            return _integer(rng, -limit, limit)
        case Kind.DATE:
            return rng.choice((-25568, -141428, 0, 19783, 19784, rng.randint(-800_000, 60_000)))
        case Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            return rng.choice((0, -1, 19783 * 86_400_000_000, rng.randint(-(2**61), 2**61)))
        case Kind.BINARY:
            return rng.choice((b"", b"\x00", b"\xff", b"\xff\xff", b"\x7f\x80", rng.randbytes(3)))
        case Kind.STRING | Kind.VARCHAR | Kind.CHAR:
            text = rng.choice(_TEXTS)
            if type.kind is Kind.CHAR:
                text = text.rstrip(" ")
            return (text[: type.length] if type.length else text).encode()
    return _integer(rng, *INTEGER_RANGE[type.kind])


def _integer(rng: random.Random, least: int, greatest: int) -> int:
    near = rng.randint(-5, 5)
    edges = (0, 0, 0, least, least + 1, greatest - 1, greatest, 2**24 + 1, 2**53 + 1, near)
    edge = rng.choice(edges)
    found = near if rng.random() < 0.6 else edge
    return max(least, min(greatest, found))


def _float(rng: random.Random) -> float:
    if rng.random() < 0.25:
        return rng.choice((math.nan, math.inf, -math.inf))
    if rng.random() < 0.2:
        (any_bits,) = binary.unpack("<d", rng.randbytes(8))
        return float(any_bits)
    return rng.choice(_FLOATS)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, and rows grouped into files; ``paths`` are the leaves a predicate may name."""

    columns: tuple[Field, ...]
    paths: dict[tuple[str, ...], Type]
    pools: dict[tuple[str, ...], list[Value]]
    files: list[list[Row]]


def table(
    rng: random.Random,
    types: tuple[Type, ...],
    files: int,
    *,
    alike: bool = False,
    more_digits: bool = False,
) -> Table:
    """A table with a column per type, the last one within a struct.

    Each file draws from a few values of each column's pool, so that files differ and prune.

    Args:
        alike: columns may be easy to mistake: structs of the same type, names with dots.
        more_digits: decimals may have more digits than their type declares, as files may.
    """
    names = [f"c{i}" for i in range(len(types))]
    nested = len(types) - 1
    if alike:
        nested = rng.choice((0, nested))
        types = (types[0],) * len(types) if rng.random() < 0.5 else types
        if nested and rng.random() < 0.4:
            names[0] = f"{names[-1]}.leaf"
    columns = [Field(n, t) for n, t in zip(names, types, strict=True)]
    paths: dict[tuple[str, ...], Type] = {(c.name,): c.type for c in columns[:nested]}
    for i in range(nested, len(types)):
        columns[i] = Field(names[i], struct(Field("leaf", types[i])))
        paths[(names[i], "leaf")] = types[i]
    pools = {path: [value(rng, type) for _ in range(6)] for path, type in paths.items()}
    for path, type in paths.items():
        if type.is_floating and rng.random() < 0.7:
            pools[path][0] = math.nan
        if more_digits and type.kind is Kind.DECIMAL:
            most = 10 ** min(type.precision + 2, 18 if type.precision <= 18 else 38) - 1
            pools[path][:3] = (_integer(rng, -most, most) for _ in range(3))
    rows: list[list[Row]] = []
    for _ in range(files):
        local = {p: rng.sample(pool, rng.randint(1, 3)) for p, pool in pools.items()}
        nulls = {p: rng.choice((0.0, 0.0, 0.3, 1.0)) for p in paths}
        size = rng.choice((0, 1, 1, 2, 3, 4))
        rows.append(
            [
                {p: None if rng.random() < nulls[p] else rng.choice(local[p]) for p in paths}
                for _ in range(size)
            ]
        )
    return Table(tuple(columns), paths, pools, rows)


def literal(rng: random.Random, type: Type, pool: list[Value]) -> Literal:
    """A literal to compare a column with: of its type, of a neighbouring one, or NULL."""
    if rng.random() < 0.05:
        return Literal(None, type)
    if rng.random() < 0.7:
        found = rng.choice(pool) if rng.random() < 0.8 else value(rng, type)
        return Literal(found, type)
    other = rng.choice(_COMPARABLE.get(type.kind, (type,)))
    if type == TIMESTAMP and other == DATE and rng.random() < 0.2:
        return Literal(rng.choice(_BEYOND_TIMESTAMPS), DATE)
    return Literal(value(rng, other), other)


_BEYOND_TIMESTAMPS = (-(2**31), -106_751_992, 106_751_992, 2**31 - 1)
_NUMBERS = (INTEGER, BIGINT, FLOAT, DOUBLE, decimal(3, 1), decimal(38, 10))
_COMPARABLE: dict[Kind, tuple[Type, ...]] = {
    **dict.fromkeys((*INTEGER_RANGE, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL), _NUMBERS),
    Kind.DATE: (TIMESTAMP,),
    Kind.TIMESTAMP: (DATE,),
    Kind.STRING: (varchar(10),),
    Kind.VARCHAR: (STRING,),
}
_COMPARISONS = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.NULL_SAFE_EQ, Op.NULL_SAFE_NE)


def predicate(rng: random.Random, table: Table) -> Predicate:
    path = rng.choice(list(table.paths))
    type, pool, name = table.paths[path], table.pools[path], Reference(path)
    kind = rng.random()
    if kind < 0.08:
        return Predicate(rng.choice((Op.IS_NULL, Op.IS_NOT_NULL)), name)
    if kind < 0.25:
        count = rng.choice((1, 2, 3, 12))
        literals = tuple(literal(rng, type, pool) for _ in range(count))
        return Predicate(rng.choice((Op.IN, Op.NOT_IN)), name, literals)
    if kind < 0.3 and type.is_floating:
        return Predicate(rng.choice((Op.IS_NAN, Op.IS_NOT_NAN)), name)
    if kind < 0.45 and type.is_bytes:
        whole = rng.choice(pool)
        assert isinstance(whole, bytes)
        prefix = Literal(whole[: rng.randint(0, len(whole))], type)
        return Predicate(rng.choice((Op.STARTS_WITH, Op.NOT_STARTS_WITH)), name, (prefix,))
    return Predicate(rng.choice(_COMPARISONS), name, (literal(rng, type, pool),))


def expression(rng: random.Random, table: Table, depth: int) -> Expression:
    """A tree of at most ``depth`` levels above its predicates."""
    kind = rng.random() if depth else 1.0
    if kind < 0.2:
        return Not(expression(rng, table, depth - 1))
    if kind < 0.65:
        children = tuple(expression(rng, table, depth - 1) for _ in range(rng.choice((1, 2, 2, 3))))
        return And(children) if kind < 0.42 else Or(children)
    if rng.random() < 0.04:
        return rng.choice((AlwaysTrue(), AlwaysFalse(), Unknown("f(x)"), Unknown("g(x)")))
    return predicate(rng, table)


class Statistics:
    """Statistics of a table made from its rows; implements PruningStatistics.

    Args:
        weaken: None for all that can be known; else a generator that forgets and blurs at random,
            and never says what does not hold.
        cells: how many cells bounds are rounded to; 0 for none.
    """

    def __init__(
        self, table: Table, weaken: random.Random | None = None, *, cells: int = 0
    ) -> None:
        self._table = table
        self._weaken = weaken
        self._cells = cells
        self._columns: dict[tuple[str, ...], ColumnStatistics | None] = {}
        self.num_files = len(table.files)

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        if isinstance(reference, BoundCall):
            return None
        if reference.path not in self._columns:
            forget = self._weaken is not None and self._weaken.random() < 0.1
            self._columns[reference.path] = None if forget else self._build(reference)
        return self._columns[reference.path]

    def _build(self, reference: BoundReference) -> ColumnStatistics:
        type = reference.type
        files = [_summary([r[reference.path] for r in rows]) for rows in self._table.files]
        if self._weaken is not None:
            files = [_weakened(self._weaken, f, type) for f in files]
        lower_known = np.array([f.lower is not None for f in files], dtype=np.bool_)
        upper_known = np.array([f.upper is not None for f in files], dtype=np.bool_)
        exact = np.array([f.exact for f in files], dtype=np.bool_)
        all_null = np.array([f.all_null for f in files], dtype=np.bool_)
        lower = bounds([f.lower for f in files], type, least=True)
        upper = bounds([f.upper for f in files], type, least=False)
        rounded = self._cells and type.kind is not Kind.BOOLEAN
        return ColumnStatistics(
            type,
            lower,
            upper,
            None if lower_known.all() else lower_known,
            None if upper_known.all() else upper_known,
            None if exact.all() else exact,
            np.array([f.nulls for f in files], dtype=np.int64),
            np.array([f.nans for f in files], dtype=np.int64),
            np.array([f.rows for f in files], dtype=np.int64),
            all_null if all_null.any() else None,
            cells=QuantisedBounds.of(lower, upper, self._cells) if rounded else None,
        )


def bounds(values: list[Any], type: Type, *, least: bool) -> Any:
    """One side's bounds in the form ColumnStatistics asks for; None is unknown."""
    if type.is_bytes:
        return pa.array(values, pa.large_binary())
    if type.kind is Kind.DECIMAL and type.precision > 18:
        import decimal as numbers

        scaled = [
            None if v is None else numbers.Decimal(v).scaleb(-type.scale, _DIGITS) for v in values
        ]
        return pa.array(scaled, pa.decimal128(38, type.scale))
    if type.is_floating:
        infinite = -math.inf if least else math.inf
        return np.array([infinite if v is None else v for v in values], dtype=np.float64)
    edge = -(2**63) if least else 2**63 - 1
    return np.array([edge if v is None else int(v) for v in values], dtype=np.int64)


@dataclass(slots=True)
class _Summary:
    lower: Any
    upper: Any
    exact: bool
    nulls: int
    nans: int
    rows: int
    all_null: bool


def _summary(values: list[Value | None]) -> _Summary:
    known: list[Any] = [v for v in values if v is not None]
    ordered = [v for v in known if v == v]
    return _Summary(
        lower=min(ordered, default=None),
        upper=max(ordered, default=None),
        exact=bool(ordered),
        nulls=len(values) - len(known),
        nans=len(known) - len(ordered),
        rows=len(values),
        all_null=bool(values) and not known,
    )


def _weakened(rng: random.Random, file: _Summary, type: Type) -> _Summary:
    if rng.random() < 0.15:
        file.lower = None
    if rng.random() < 0.15:
        file.upper = None
    if type.is_bytes and rng.random() < 0.5:
        _truncate(rng, file, type)
    elif rng.random() < 0.2:
        _widen(file, type)
    if rng.random() < 0.2:
        file.exact = False
    if rng.random() < 0.3:
        file.nulls = -1
    if type.is_floating and rng.random() < 0.5:
        file.nans = -1
    if type == BOOLEAN and rng.random() < 0.2:
        file.lower, file.upper = True, False  # corrupt (rule 13)
    if type.is_floating and rng.random() < 0.1:
        file.lower = file.upper = math.nan  # an old writer's bound of a file with a NaN
    if rng.random() < 0.2:
        file.rows = -1
    if rng.random() < 0.3:
        file.all_null = False
    if file.lower is None or file.upper is None:
        file.exact = False
    return file


def _truncate(rng: random.Random, file: _Summary, type: Type) -> None:
    """Rule 3: a prefix below, a prefix with its last code point incremented above."""
    length = rng.randint(1, 2)
    if file.lower is not None:
        file.lower = _prefix(file.lower, length, type)
    if file.upper is not None and len(file.upper) > length:
        file.upper = _incremented(_prefix(file.upper, length, type), type)
    file.exact = False


def _prefix(text: bytes, length: int, type: Type) -> bytes:
    return text[:length] if type.kind is Kind.BINARY else text.decode()[:length].encode()


def _incremented(text: bytes, type: Type) -> bytes | None:
    if type.kind is Kind.BINARY:
        stripped = text.rstrip(b"\xff")
        return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
    points = [ord(c) for c in text.decode()]
    while points and points[-1] == 0x10FFFF:
        points.pop()
    if not points:
        return None
    points[-1] = 0xE000 if points[-1] == 0xD7FF else points[-1] + 1
    return "".join(map(chr, points)).encode()


def _widen(file: _Summary, type: Type) -> None:
    if isinstance(file.lower, int) and isinstance(file.upper, int) and type != BOOLEAN:
        wide = type.kind is Kind.DECIMAL and type.precision > 18
        least, greatest = (1 - 10**38, 10**38 - 1) if wide else (-(2**63), 2**63 - 1)
        file.lower, file.upper = max(file.lower - 2, least), min(file.upper + 2, greatest)
        file.exact = False


@dataclass(frozen=True, slots=True)
class Case:
    """What hypothesis draws; the rest follows from it."""

    types: tuple[Type, ...]
    semantics: Semantics
    seed: int

    def rng(self) -> random.Random:
        return random.Random(self.seed)


def cases() -> st.SearchStrategy[Case]:
    # Floats and text have the most rules, so they are asked about more often.
    often = (*TYPES, FLOAT, DOUBLE, DOUBLE, STRING, STRING)
    types = st.lists(st.sampled_from(often), min_size=1, max_size=3).map(tuple)
    seeds = st.integers(min_value=0, max_value=2**32 - 1)
    return st.builds(Case, types, st.sampled_from((TRINO, HIVE)), seeds)
