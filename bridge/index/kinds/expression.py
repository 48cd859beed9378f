"""Bounds of a function of a column: ``lower(name)``, ``year(day)``, ``id % 10``.

They apply to a query's expression if it is the same function of the same column and constants, in
any spelling. `bridge.expression.function_catalog` defines the functions, and the manifest holds
their versions. A file has no bounds if it holds a value for which engines may differ.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bridge.expression.function_catalog import columns_of
from bridge.expression.nodes import (
    BoundExpression,
    BoundPredicate,
    BoundReference,
    Call,
)
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics, Mask
from bridge.formats.physical_column import (
    INT_MAX,
    INT_MIN,
    PhysicalColumn,
    PhysicalType,
    parse_key,
)
from bridge.index.generations.convert import bound_representation
from bridge.index.kinds.canonical import pack_values, unpack_values
from bridge.index.kinds.definition import KindDefinition
from bridge.index.kinds.functions import (
    NUMBER,
    column_of,
    compute,
    is_call,
    leaf_of,
    longest_text,
    parse_definition,
    parse_stored,
    reads_alike,
)
from bridge.index.kinds.kind import Arrays, FileFacts, IndexKind, Ordinals, Row, predicates
from bridge.index.kinds.payload import Payload
from bridge.kernel.types import Kind, Semantics, Type


class ExpressionBounds(IndexKind):
    """See the module."""

    name = "expression"
    cost = 3.0
    functions = True
    help = "Bounds of a function of a column: 'lower(name)', 'year(day)', 'id % 10'."
    options = {"semantics": "1"}
    schema = pa.schema(
        [
            pa.field("stored", pa.dictionary(pa.int32(), pa.large_string())),
            pa.field("lower", pa.large_binary()),
            pa.field("upper", pa.large_binary()),
            pa.field("nulls", pa.int64(), nullable=False),
            pa.field("rows", pa.int64(), nullable=False),
            pa.field("longest", pa.int32(), nullable=False),  # bytes of the longest text
        ]
    )

    def define(self, text: str) -> KindDefinition:
        found = super().define(text)
        return KindDefinition(found.kind, parse_definition(found.on).text, found.options)

    def columns(self, definition: KindDefinition) -> list[tuple[str, ...]]:
        return [column_of(parse_stored(definition.on))]

    def gather(self, definition: KindDefinition, file: FileFacts) -> _Gathering | None:
        call = parse_stored(definition.on)
        leaf = leaf_of(call, file)
        if leaf is None:
            return None
        return _Gathering(leaf, file.leaves[leaf], call, file.legacy)

    def concerns(self, definition: KindDefinition, expression: BoundExpression) -> bool:
        return any(is_call(p.reference, definition.on) for p in predicates(expression))

    def open(self, definition: KindDefinition, payload: Payload) -> FunctionBounds:
        return FunctionBounds(payload, definition.on)


class _Gathering:
    def __init__(self, leaf: int, column: PhysicalColumn, call: Call, legacy: bool) -> None:
        self.leaves = (leaf,)
        self._column, self._call, self._legacy = column, call, legacy
        self._bounds: Any = None
        self._held: PhysicalType | None = None
        self._nulls = self._rows = self._longest = 0
        self._over = self._some_null = False

    def update(self, arrays: Arrays) -> None:
        if self._over:
            return
        (leaf,) = self.leaves
        rows, nulls = arrays.counts(leaf)
        self._rows += rows
        self._nulls += nulls
        values = arrays.each_value(leaf)
        found = compute(self._call, self._column, values, self._legacy)
        if found is None:
            self._over = True
            return
        results, self._held = found
        self._longest = max(self._longest, longest_text(self._column, values))
        if not isinstance(results, np.ndarray) and results.null_count:
            self._some_null = True
            results = results.drop_null()
        if not len(results):
            return
        if isinstance(results, np.ndarray):
            ends = np.array([results.min(), results.max()])
        else:
            found = pa.compute.min_max(results).as_py()
            ends = pa.array([found["min"], found["max"]], pa.large_binary())
        self._bounds = ends if self._bounds is None else _wider(self._bounds, ends)

    def finish(self) -> Iterable[Row]:
        if self._over:
            return
        ends = [None, None] if self._bounds is None else pack_values(self._bounds).to_pylist()
        nulls = self._nulls
        if self._some_null:  # the number of NULL rows is unknown unless all are NULL
            nulls = self._rows if self._bounds is None else -1
        yield {
            "stored": self._column.key(),
            "lower": ends[0],
            "upper": ends[1],
            "nulls": nulls,
            "rows": self._rows,
            "longest": self._longest,
        }


def _wider(held: Any, ends: Any) -> Any:
    if isinstance(held, np.ndarray):
        return np.array([min(held[0], ends[0]), max(held[1], ends[1])])
    one, other = held.to_pylist(), ends.to_pylist()
    return pa.array([min(one[0], other[0]), max(one[1], other[1])], pa.large_binary())


class FunctionBounds:
    """The bounds of one function in all files; see `KindStatistics`."""

    def __init__(self, payload: Payload, text: str) -> None:
        self._payload, self._text = payload, text
        self._known: dict[tuple[tuple[Type, ...], tuple[bool, bool]], ColumnStatistics | None] = {}
        self._lock = threading.Lock()

    def never(
        self, expression: BoundExpression, ordinals: Ordinals, semantics: Semantics
    ) -> Mask | None:
        if not isinstance(expression, BoundPredicate) or not is_call(
            expression.reference, self._text
        ):
            return None
        columns = tuple(c.type for c in columns_of(expression.reference))
        key = columns, semantics.reading
        with self._lock:
            if key not in self._known:
                self._known[key] = self._column(expression.reference, semantics)
            column = self._known[key]
        if column is None:
            return None
        statistics = _Statistics(self._payload.num_files, column, expression.reference)
        return prune(expression, statistics, semantics).never[ordinals]

    def _column(self, reference: BoundReference, semantics: Semantics) -> ColumnStatistics | None:
        """Statistics as an engine with these semantics reads the function's column."""
        (column,) = columns_of(reference)
        rows, count = self._payload.rows, self._payload.num_files
        if not rows.num_rows or column.type.kind is Kind.CHAR:
            return None
        chunk = rows["stored"].combine_chunks()
        chunk = chunk.chunk(0) if isinstance(chunk, pa.ChunkedArray) else chunk
        usable = np.zeros(rows.num_rows, np.bool_)
        for code, text in enumerate(chunk.dictionary.to_pylist()):
            if reads_alike(parse_key(text).type, column.type, semantics):
                usable |= chunk.indices.to_numpy() == code
        if column.type.kind is Kind.VARCHAR:  # engines truncate longer values
            usable &= rows["longest"].to_numpy() <= column.type.length
        bounded = usable & rows["lower"].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
        return _spread(rows, self._payload.ordinal, usable, bounded, reference.type, count)


def _spread(
    rows: pa.Table, ordinal: Ordinals, usable: Mask, bounded: Mask, kind: Type, count: int
) -> ColumnStatistics:
    nulls = np.full(count, -1, np.int64)
    total = np.full(count, -1, np.int64)
    nulls[ordinal[usable]] = rows["nulls"].to_numpy()[usable]
    total[ordinal[usable]] = rows["rows"].to_numpy()[usable]
    known = np.zeros(count, np.bool_)
    known[ordinal[bounded]] = True
    sides: list[Any] = []
    for name, unknown in (("lower", INT_MIN), ("upper", INT_MAX)):
        flat = rows[name].combine_chunks().filter(pa.array(bounded))
        if bound_representation(kind) == "bytes":
            place = np.full(count, -1, np.int64)
            place[ordinal[bounded]] = np.arange(len(flat))
            sides.append(flat.cast(pa.large_binary()).take(pa.array(place, mask=place < 0)))
        else:
            values = np.full(count, unknown, np.int64)
            values[ordinal[bounded]] = unpack_values(NUMBER, flat)
            sides.append(values)
    all_null = (nulls == total) & (total >= 0)
    return ColumnStatistics(
        type=kind,
        lower=sides[0],
        upper=sides[1],
        lower_known=known,
        upper_known=known,
        exact=known,
        null_count=nulls,
        nan_count=np.zeros(count, np.int64),
        row_count=total,
        all_null=all_null if all_null.any() else None,
    )


@dataclass(frozen=True, slots=True)
class _Statistics:
    """`PruningStatistics` of one function."""

    num_files: int
    known: ColumnStatistics
    reference: BoundReference

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        return self.known if reference == self.reference else None


KIND = ExpressionBounds()
