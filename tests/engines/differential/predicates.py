"""Random conditions in Trino's SQL and in Hive's, with literals that the files hold."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from tests.engines.differential import values as v
from tests.engines.differential.table import KEYS, SPECS, STRUCTS
from tests.engines.differential.values import Sort

OFTEN = ("r", "d", "name")
COMPARISONS = ("=", "=", "=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Condition:
    """A tree of AND, OR and NOT over conditions; ``text`` is one without parts."""

    op: str
    parts: tuple[Condition, ...] = ()
    text: str = ""

    @property
    def sql(self) -> str:
        if self.op == "leaf":
            return self.text
        if self.op == "not":
            return f"NOT ({self.parts[0].sql})"
        return f" {self.op.upper()} ".join(f"({p.sql})" for p in self.parts)

    def smaller(self) -> Iterator[Condition]:
        """Conditions with one part less, the smallest first."""
        yield from self.parts
        for i, part in enumerate(self.parts):
            if self.op != "not" and len(self.parts) > 2:
                yield Condition(self.op, self.parts[:i] + self.parts[i + 1 :])
            for other in part.smaller():
                yield Condition(self.op, (*self.parts[:i], other, *self.parts[i + 1 :]))


def leaf(text: str) -> Condition:
    return Condition("leaf", text=text)


@dataclass(frozen=True, slots=True)
class Term:
    """An expression and the values that it may take."""

    sql: str
    sort: Sort


class Conditions:
    """Draws terms, literals and conditions; a subclass knows another dialect."""

    def __init__(self, rng: random.Random, partitioned: bool) -> None:
        self.rng = rng
        self.columns = [Term(s.name, s.sort) for s in SPECS]
        self.fields = [
            Term(f"{name}.{f.name}", f.sort) for name, fields in STRUCTS.items() for f in fields
        ]
        self.keys = [Term(s.name, s.sort) for s in KEYS] if partitioned else []

    # Conditions

    def condition(self, depth: int | None = None) -> Condition:
        """A tree; half of them are a leaf, since what is around a term may hide what it does."""
        rng = self.rng
        if depth is None:
            depth = rng.choice([0, 0, 0, 0, 1, 1, 2, 3])
        drawn = rng.random() + 0.25 * (depth == 1)
        if depth == 0 or drawn < 0.3:
            return leaf(self.simple())
        if drawn < 0.45:
            return Condition("not", (self.condition(depth - 1),))
        op = "and" if drawn < 0.75 else "or"
        number = rng.choice([2, 2, 2, 3, 4])
        return Condition(op, tuple(self.condition(depth - 1) for _ in range(number)))

    def simple(self) -> str:
        rng = self.rng
        if rng.random() < 0.03:
            return self.whole_struct()
        if rng.random() < 0.04:
            return self.box()
        term = self.term()
        drawn = rng.random()
        if term.sort.name == "bool" and drawn < 0.4:
            return rng.choice([term.sql, f"NOT {term.sql}"])
        if term.sort.name == "text" and drawn < 0.35:
            return self.like(term)
        if drawn < 0.38:
            return f"{term.sql} {rng.choice(COMPARISONS)} {self.literal(term.sort)}"
        if drawn < 0.6:
            return self.listed(term)
        if drawn < 0.7:
            word = rng.choice(["BETWEEN", "BETWEEN", "NOT BETWEEN"])
            low, high = self.literal(term.sort), self.literal(term.sort)
            return f"{term.sql} {word} {low} AND {high}"
        if drawn < 0.78:
            return f"{term.sql} IS {rng.choice(['', 'NOT '])}NULL"
        if drawn < 0.86:
            other = "NULL" if rng.random() < 0.15 else self.literal(term.sort)
            return self.distinct(term.sql, other)
        if drawn < 0.92:
            return self.columns_compared(term)
        return self.chosen(term)

    def whole_struct(self) -> str:
        name = self.rng.choice(sorted(STRUCTS))
        return f"{name} IS {self.rng.choice(['', 'NOT '])}NULL"

    def box(self) -> str:
        lat, lon = (sorted(self.rng.sample(range(-90, 90), 2)) for _ in range(2))
        low = f"lat >= {self.double(lat[0])} AND lat <= {self.double(lat[1])}"
        return f"{low} AND lon >= {self.double(lon[0])} AND lon <= {self.double(lon[1])}"

    def listed(self, term: Term) -> str:
        rng = self.rng
        number = rng.choice([1, 2, 2, 3, 5, 30])
        items = [self.literal(term.sort) for _ in range(number)]
        if term.sort.name in ("float", "double") and rng.random() < 0.4:
            zero = self.single if term.sort.name == "float" else self.double
            items.append(zero(rng.choice([0.0, -0.0])))
        if rng.random() < 0.1:
            items.append("NULL")
        word = rng.choice(["IN", "NOT IN"])
        return f"{term.sql} {word} ({', '.join(items)})"

    def distinct(self, one: str, other: str) -> str:
        return f"{one} IS {self.rng.choice(['', 'NOT '])}DISTINCT FROM {other}"

    def columns_compared(self, term: Term) -> str:
        numbers = ("int", "decimal", "double", "float")
        alike = [
            t
            for t in (*self.columns, *self.fields, *self.keys)
            if t.sort.name == term.sort.name
            or (t.sort.name in numbers and term.sort.name in numbers and self.mixes)
        ]
        if not alike:
            return f"{term.sql} IS NOT NULL"
        return f"{term.sql} {self.rng.choice(COMPARISONS)} {self.rng.choice(alike).sql}"

    mixes = True

    def chosen(self, term: Term) -> str:
        """NULLIF, COALESCE and CASE around a term."""
        rng = self.rng
        one, other = self.literal(term.sort), self.literal(term.sort)
        drawn = rng.random()
        if drawn < 0.35:
            told = f"NULLIF({term.sql}, {one})"
        elif drawn < 0.7:
            told = f"COALESCE({term.sql}, {one})"
        else:
            told = f"CASE WHEN {self.simple()} THEN {term.sql} ELSE {one} END"
        if rng.random() < 0.25:
            return f"{told} IS {rng.choice(['', 'NOT '])}NULL"
        return f"{told} {rng.choice(COMPARISONS)} {other}"

    def like(self, term: Term) -> str:
        rng = self.rng
        marked = [t for t in term.sort.pool if set(str(t)) & set("\\%_")]
        text = str(rng.choice(marked if marked and rng.random() < 0.6 else term.sort.pool))
        escape = rng.choice(["", "", "\\", "#", "%", "_"]) if self.escapes else ""
        start = rng.randrange(len(text) + 1)
        cut = text[start : start + rng.choice([1, 2, 4, 9])]
        special = "".join(c for c in ("%", "_", escape) if c)
        told = ""
        for c in cut:
            if escape and c in special:
                told += c if rng.random() < 0.1 and c != escape else escape + c
            elif rng.random() < 0.08 and escape != "_":
                told += "_"
            else:
                told += c
        if escape != "%":
            told = rng.choice(["", "%"]) + told + rng.choice(["", "%", "%"])
        tail = f" ESCAPE {self.text(escape)}" if escape else ""
        return f"{term.sql} {rng.choice(['', '', 'NOT '])}LIKE {self.text(told)}{tail}"

    escapes = True

    # Terms

    def term(self) -> Term:
        rng = self.rng
        drawn = rng.random()
        if self.keys and drawn < 0.12:
            term = rng.choice(self.keys)
        elif drawn < 0.27:
            term = rng.choice(self.fields)
        elif drawn < 0.37:
            term = rng.choice([t for t in self.columns if t.sql in OFTEN])
        elif drawn < 0.43:
            term = Term("id", Sort("int", tuple(range(0, 200_000, 197)), 64))
        else:
            term = rng.choice(self.columns)
        if rng.random() < 0.35:
            term = self.function(term)
        return term

    def function(self, term: Term) -> Term:
        """A function of a term, or a cast."""
        makers = getattr(self, f"of_{term.sort.name}", None)
        return makers(term.sql, term.sort) if makers is not None else term

    def of_int(self, x: str, sort: Sort) -> Term:
        n = self.rng.choice([1, 2, 3, 7, 10])
        wide = Sort("int", sort.pool, 64)
        options = [
            Term(f"CAST({x} AS bigint) + {n}" if sort.precision < 64 else f"{x} % {n}", wide),
            Term(f"{x} % {n}", Sort("int", tuple(range(-n, n + 1)), sort.precision)),
            Term(f"CAST({x} AS double)", v.DOUBLE),
            Term(f"CAST({x} AS {self.real})", v.FLOAT),
            Term(f"CAST({x} AS decimal(20,1))", v.decimals(20, 1)),
            Term(f"CAST({x} AS {self.string})", Sort("text", tuple(str(i) for i in sort.pool))),
            Term(f"{self.attempt}({x} AS smallint)", v.ints(16)),
            Term(f"{self.attempt}({x} AS tinyint)", v.ints(8)),
        ]
        if sort.precision < 64:
            options += [Term(f"CAST({x} AS bigint) * {n} - 1", wide), Term(f"{x} + {n}", sort)]
        return self.rng.choice(options)

    def of_decimal(self, x: str, sort: Sort) -> Term:
        options = [
            Term(f"CAST({x} AS double)", v.DOUBLE),
            Term(f"{self.attempt}({x} AS decimal(5,1))", v.decimals(5, 1)),
            Term(f"{self.attempt}({x} AS bigint)", v.ints(32)),
            Term(f"{self.attempt}({x} AS decimal(38,12))", v.decimals(30, 12)),
        ]
        if sort.precision < 38:
            options.append(Term(f"{x} + 1", sort))
        return self.rng.choice(options)

    def of_float(self, x: str, sort: Sort) -> Term:
        return self.rng.choice([Term(f"CAST({x} AS double)", v.DOUBLE), Term(f"-{x}", sort)])

    def of_double(self, x: str, sort: Sort) -> Term:
        options = [Term(f"CAST({x} AS {self.real})", v.FLOAT), Term(f"{x} * 2", sort)]
        return self.rng.choice([*options, Term(f"abs({x})", sort), Term(f"-{x}", sort)])

    def of_text(self, x: str, sort: Sort) -> Term:
        n = self.rng.choice([1, 2, 3])
        cut = Sort("text", tuple(sorted({str(t)[:n] for t in sort.pool})))
        options = [
            Term(f"lower({x})", Sort("text", tuple(str(t).lower() for t in sort.pool))),
            Term(f"upper({x})", Sort("text", tuple(str(t).upper() for t in sort.pool))),
            Term(f"substring({x}, 1, {n})", cut),
            Term(f"substring({x}, 2)", Sort("text", tuple(str(t)[1:] for t in sort.pool))),
            Term(f"length({x})", Sort("int", tuple(range(9)), 64)),
            Term(f"CAST({x} AS varchar({n}))", cut),
            Term(f"trim({x})", sort),
            Term(f"concat({x}, 'a')", Sort("text", tuple(f"{t}a" for t in sort.pool))),
        ]
        return self.rng.choice(options)

    def of_char(self, x: str, sort: Sort) -> Term:
        n = self.rng.choice([2, 4, 8])
        return Term(f"CAST({x} AS varchar({n}))", Sort("text", sort.pool))

    def of_date(self, x: str, sort: Sort) -> Term:
        years = Sort("int", tuple(sorted({d.year for d in v.DATES})), 64)
        options = [
            Term(f"year({x})", years),
            Term(f"month({x})", Sort("int", tuple(range(1, 13)), 64)),
            Term(f"day({x})", Sort("int", (1, 4, 15, 28, 29, 30, 31), 64)),
            Term(f"CAST({x} AS timestamp)", v.TIME),
        ]
        return self.rng.choice(options)

    def of_time(self, x: str, sort: Sort) -> Term:
        years = Sort("int", tuple(sorted({d.year for d in v.DATES})), 64)
        options = [
            Term(f"year({x})", years),
            Term(f"month({x})", Sort("int", tuple(range(1, 13)), 64)),
            Term(f"hour({x})", Sort("int", (0, 1, 2, 9, 10, 23), 64)),
            Term(f"CAST({x} AS date)", v.DATE),
        ]
        return self.rng.choice([*options, *self.more_of_time(x)])

    def more_of_time(self, x: str) -> list[Term]:
        unit = self.rng.choice(["hour", "day", "month", "quarter", "year"])
        digits = self.rng.choice([0, 1, 3, 5, 6, 9])
        return [
            Term(f"date_trunc('{unit}', {x})", v.TIME),
            Term(f"CAST({x} AS timestamp({digits}))", v.TIME),
            Term(f"CAST({x} AS timestamp({digits}))", v.TIME),
        ]

    # Literals

    real = "real"
    string = "varchar"
    attempt = "try_cast"

    def literal(self, sort: Sort) -> str:
        """A value of the pool, or one beside it, at times in the words of another type."""
        rng = self.rng
        value = rng.choice(sort.pool) if sort.pool else 0
        name = sort.name
        if name == "int":
            return self.integer(value + rng.choice([0, 0, 0, 0, 1, -1]))
        if name == "float":
            return self.single(value)
        if name == "double":
            return self.double(value)
        if name == "decimal":
            return self.number(value)
        if name in ("text", "char"):
            return self.text(value)
        if name == "date":
            return self.date(value)
        if name == "time":
            return self.time(value)
        if name == "bool":
            return "true" if value else "false"
        return f"X'{value.hex()}'"

    def integer(self, value: int) -> str:
        drawn = self.rng.random()
        if drawn < 0.06:
            return f"{value}.5"
        if drawn < 0.1:
            return self.double(float(value))
        return f"DECIMAL '{value}'" if not -(2**63) < value < 2**63 else str(value)

    def number(self, value: Decimal) -> str:
        if self.rng.random() < 0.08:
            return self.double(float(value))
        drawn = self.rng.random()
        text = format(value.normalize(_WIDE) if drawn < 0.2 else value, "f")
        if drawn > 0.93 and len(value.as_tuple().digits) < 30:
            text += "5" if "." in text else ".5"
        return f"DECIMAL '{text}'"

    def single(self, value: float) -> str:
        if self.rng.random() < 0.15:
            return self.double(value)
        return f"REAL '{number_text(value)}'"

    def double(self, value: float) -> str:
        return f"DOUBLE '{number_text(value)}'"

    def text(self, value: Any) -> str:
        told = str(value).replace("'", "''")
        return f"'{told}'"

    def date(self, value: dt.date) -> str:
        if self.rng.random() < 0.1:
            return self.time(dt.datetime(value.year, value.month, value.day))
        return f"DATE '{value.isoformat()}'"

    def time(self, value: dt.datetime) -> str:
        told = value.isoformat(" ")
        drawn = self.rng.random()
        if drawn < 0.15:
            told = value.isoformat(" ", "milliseconds")
        elif drawn < 0.2:
            told = value.isoformat(" ", "microseconds") + "5"
        return f"TIMESTAMP '{told}'"


def number_text(value: float | Decimal) -> str:
    """Digits as both engines read them."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if value != value:
        return "NaN"
    if value in (v.INF, -v.INF):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


_WIDE = Context(prec=60)
