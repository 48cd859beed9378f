"""What the rows themselves say: the truth of predicates, and the order of values."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from bridge.expression.evaluate import Oracle, Rounding, Row, Truth
from bridge.expression.nodes import And, Expression, Not, Op, Or, Predicate, Reference, Unknown
from bridge.kernel.types import INTEGER_RANGE, Kind, Type, Value
from bridge.planner.request import SortKey
from tests.support.strategies import Case, Table


def unknown(node: Unknown, row: Row) -> Truth:
    """Anything may hide behind an Unknown; the same for the same row."""
    return random.Random(f"{node.text}{sorted(row.items())}").choice((True, False, None))


def oracle(case: Case, data: Table, rounding: Rounding = Rounding.EXACT) -> Oracle:
    return Oracle(case.semantics, data.paths, rounding, unknown)


def place(value: Value | None, key: SortKey, nan_largest: bool) -> tuple[int, Any]:
    """Sorts as the order asks; NaN at either end, since engines differ."""
    if value is None:
        return (0 if key.nulls_first else 4, 0)
    if value != value:
        return (3 if nan_largest != key.descending else 1, 0)
    return (2, _Turned(value) if key.descending else value)


class _Turned:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Turned) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Turned) and self.value == other.value


class DuckDbOracle:
    """DuckDB's word on predicates that compare columns with literals of exactly their type.

    Whole numbers, dates and times are numbers there, and bytes their hexadecimal digits, which sort
    as the bytes do.
    """

    def __init__(self, rows: Sequence[Row], paths: Mapping[tuple[str, ...], Type]) -> None:
        self._names: dict[tuple[str, ...], tuple[str, Type]] = {}
        columns = {"row": pa.array(range(len(rows)), pa.int64())}
        for path, type in paths.items():
            if type.kind in _EXACT:
                name = f"c{len(columns)}"
                self._names[path] = name, type
                values = [v.hex() if isinstance(v := row[path], bytes) else v for row in rows]
                columns[name] = pa.array(values, _EXACT[type.kind])
        self._table = duckdb.connect().from_arrow(pa.table(columns))

    def matching(self, node: Expression) -> list[int] | None:
        """The places of the rows for which a predicate is true; None: it is not exact there."""
        sql = self._sql(node)
        if sql is None:
            return None
        return [i for (i,) in self._table.filter(sql).order("row").project("row").fetchall()]

    def _sql(self, node: Expression) -> str | None:
        match node:
            case And(children) | Or(children):
                parts = [self._sql(child) for child in children]
                word = " AND " if isinstance(node, And) else " OR "
                return None if None in parts else f"({word.join(map(str, parts))})"
            case Not(child):
                inner = self._sql(child)
                return None if inner is None else f"(NOT {inner})"
            case Predicate(op, Reference(path), literals) if path in self._names:
                name, type = self._names[path]
                if any(literal.type != type for literal in literals):
                    return None
                given = ", ".join(_duckdb_text(literal.value) for literal in literals)
                if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
                    negated = "" if op is Op.STARTS_WITH else "NOT "
                    return f"({negated}starts_with({name}, {given}))"
                return f"({name} {op.value} {f'({given})' if op in (Op.IN, Op.NOT_IN) else given})"
        return None


_EXACT: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    **dict.fromkeys((*INTEGER_RANGE, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ), pa.int64()),
    **dict.fromkeys((Kind.STRING, Kind.VARCHAR, Kind.BINARY), pa.string()),
}


def _duckdb_text(value: Value | None) -> str:
    if isinstance(value, bytes):
        return f"'{value.hex()}'"
    return "NULL" if value is None else str(value)
