"""Value lists: all distinct values of a column, for files that have few.

A list is exact, so any predicate on the column or on a function of it can be evaluated on the list:
=, <>, IN, NOT IN, ranges, LIKE. A file has no list if it has more values than the limit, or a value
with no exact form in the table's type.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.bounds import arrow_scalar, compare
from bridge.expression.computed import MOST_VALUES, decide
from bridge.expression.function_catalog import columns_of, innermost
from bridge.expression.nodes import (
    BoundCall,
    BoundComputed,
    BoundExpression,
    BoundPredicate,
    BoundReference,
    Op,
)
from bridge.expression.statistics import Mask
from bridge.formats.physical_column import PhysicalColumn, PhysicalType, parse_key
from bridge.index.generations.convert import bound_representation, convert
from bridge.index.kinds.canonical import canonical, distinct, pack_values, unpack_values
from bridge.index.kinds.definition import KindDefinition
from bridge.index.kinds.functions import evaluate
from bridge.index.kinds.kind import (
    STORED,
    Arrays,
    FileFacts,
    IndexKind,
    Ordinals,
    Row,
    is_column,
    predicates,
)
from bridge.index.kinds.payload import Payload
from bridge.index.kinds.plain import BITS
from bridge.index.kinds.source import column_source
from bridge.kernel.errors import InvalidConfiguration
from bridge.kernel.types import Kind, NanOrder, Semantics, Type, Value, whole_number

_STORED = {
    **dict.fromkeys((Kind.STRING, Kind.VARCHAR), PhysicalType("BYTE_ARRAY", "string")),
    **{kind: PhysicalType("INT64", "int", bits) for kind, bits in BITS.items()},
    Kind.DATE: PhysicalType("INT32", "date", 32),
    Kind.TIMESTAMP: PhysicalType("INT64", "timestamp", 64, unit="us"),
}
"""The stored type in which functions see values of a table's type."""
_FEW = 64
"""Up to this many matching values, the files of each value are looked up one by one."""


class Values(IndexKind):
    """See the module."""

    name = "values"
    cost = 2.0
    single_values = True
    help = "Keep the distinct values of a column, in files that have few: COLUMN[:limit=64]."
    options = {"limit": "64", "max_bytes": "8192"}
    schema = pa.schema(
        [
            STORED,
            pa.field("values", pa.large_list(pa.large_binary()), nullable=False),
            pa.field("nan", pa.bool_(), nullable=False),
        ]
    )

    def define(self, text: str) -> KindDefinition:
        found = super().define(text)
        for name in self.options:
            if not whole_number(found.option(name)):
                raise InvalidConfiguration(
                    f"values: {name}={found.option(name)!r} is no number", f"{name}=64"
                )
        column_source(found.on)
        return found

    def gather(self, definition: KindDefinition, file: FileFacts) -> _Gathering | None:
        found = column_source(definition.on).attach(file)
        if found is None or found[1].holds == "none":
            return None
        limits = int(definition.option("limit")), int(definition.option("max_bytes"))
        return _Gathering(found[0], file.leaves[found[0]], limits, file.legacy)

    def most_values(self, definition: KindDefinition) -> int | None:
        return int(definition.option("limit"))

    def concerns(self, definition: KindDefinition, expression: BoundExpression) -> bool:
        columns = (c for p in predicates(expression) for c in columns_of(p.reference))
        return any(is_column(c, definition.on) for c in columns)

    def open(self, definition: KindDefinition, payload: Payload) -> ValueLists:
        return ValueLists(payload, definition.on)


class _Gathering:
    """The distinct values of one file, up to the limit."""

    def __init__(
        self, leaf: int, column: PhysicalColumn, limits: tuple[int, int], legacy: bool
    ) -> None:
        self.leaves = (leaf,)
        self._key, self._type = column.key(), column.type
        self._limit, self._bytes = limits
        self._legacy = legacy
        self._values: Any = None
        self._nan = self._over = False

    def update(self, arrays: Arrays) -> None:
        if self._over:
            return
        few = pa.chunked_array([arrays.distinct(self.leaves[0])])
        found = canonical(self._type, few, legacy=self._legacy)
        if found is None:
            self._over = True
            return
        if isinstance(found, np.ndarray) and self._type.is_floating:
            nan = np.isnan(found)
            self._nan = self._nan or bool(nan.any())
            found = found[~nan]
        if self._values is not None:
            parts = [self._values, found]
            whole = isinstance(found, np.ndarray)
            found = np.concatenate(parts) if whole else pa.concat_arrays(parts)
        self._values = distinct(found)
        self._over = len(self._values) > self._limit

    def finish(self) -> Iterable[Row]:
        if self._over:
            return
        values = (
            pack_values(self._values)
            if self._values is not None
            else pa.array([], pa.large_binary())
        )
        if (pc.sum(pc.binary_length(values)).as_py() or 0) <= self._bytes:
            yield {"stored": self._key, "values": values.to_pylist(), "nan": self._nan}


@dataclass(frozen=True, slots=True)
class _Lists:
    """The lists of all files, converted to one type of the table.

    Attributes:
        dictionary: distinct values of all files.
        codes, owner: the dictionary code and the file of each list item, ordered by code.
        starts: the first position of each code, and finally the number of items.
        known: files that have a list.
        nan: files with a NaN.
    """

    dictionary: Any
    codes: npt.NDArray[np.int32]
    owner: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    known: Mask
    nan: Mask


class ValueLists:
    """The lists of one column in all files; see `KindStatistics`."""

    def __init__(self, payload: Payload, on: str) -> None:
        self._payload, self._on = payload, on
        self._joined: dict[tuple[Type, tuple[bool, bool]], _Lists | None] = {}
        self._lock = threading.Lock()

    def never(
        self, expression: BoundExpression, ordinals: Ordinals, semantics: Semantics
    ) -> Mask | None:
        if not isinstance(expression, BoundPredicate):
            return None
        reference = expression.reference
        columns = columns_of(reference)
        if len(columns) != 1 or not is_column(columns[0], self._on):
            return None
        lists = self._lists(columns[0], semantics)
        if lists is None:
            return None
        if isinstance(reference, BoundComputed):
            satisfied = _of_computed(expression, reference, lists.dictionary)
        elif isinstance(reference, BoundCall):
            satisfied = _of_function(expression, reference, lists.dictionary, semantics)
        else:
            satisfied = _satisfied(expression, lists.dictionary, semantics)
        if satisfied is None:
            return None
        known = lists.known[ordinals]
        return (
            known
            & ~_files(lists, satisfied)[ordinals]
            & ~self._nan(expression, lists, semantics)[ordinals]
        )

    def _nan(self, predicate: BoundPredicate, lists: _Lists, semantics: Semantics) -> Mask:
        """Files with a NaN that satisfies the predicate."""
        computed = isinstance(predicate.reference, BoundComputed)
        always = computed or predicate.op in (Op.NE, Op.NOT_IN, Op.IS_NAN)
        largest = semantics.nan is NanOrder.LARGEST
        if always or (largest and predicate.op in (Op.GT, Op.GE)):
            return lists.nan
        return np.zeros(len(lists.nan), np.bool_)

    def _lists(self, reference: BoundReference, semantics: Semantics) -> _Lists | None:
        key = reference.type, semantics.reading
        with self._lock:
            if key not in self._joined:
                self._joined[key] = _join(self._payload, reference.type, semantics)
            return self._joined[key]


def _join(payload: Payload, target: Type, semantics: Semantics) -> _Lists | None:
    if bound_representation(target) == "none":
        return None
    count = payload.num_files
    known, nan = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    parts: list[Any] = []
    owners: list[npt.NDArray[np.int64]] = []
    for stored, rows in by_stored(payload):
        lists = payload.rows["values"].combine_chunks().take(pa.array(rows))
        lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
        lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
        ordinal = payload.ordinal[rows]
        flat = unpack_values(stored, lists.flatten())
        converted = convert(stored, target, semantics, flat, flat)
        if converted is None:
            continue
        owner = np.repeat(ordinal, lengths)
        known[ordinal] = True
        if converted.doubtful is not None:  # one doubtful value is enough
            known[owner[converted.doubtful]] = False
        if isinstance(converted.lower, pa.Array) and converted.lower.null_count:
            known[owner[converted.lower.is_null().to_numpy(zero_copy_only=False)]] = False
        nan[ordinal] = np.asarray(payload.rows["nan"].to_numpy(), np.bool_)[rows]
        parts.append(converted.lower)
        owners.append(owner)
    if not known.any():
        return None
    dictionary, codes = _coded(parts)
    owner = np.concatenate(owners)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    starts = np.searchsorted(codes, np.arange(len(dictionary) + 1))
    return _Lists(dictionary, codes, owner[order].astype(np.int32), starts, known, nan)


def by_stored(payload: Payload) -> Iterable[tuple[PhysicalType, npt.NDArray[np.int64]]]:
    """The rows of a payload, grouped by stored type."""
    column = payload.rows["stored"].combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if not len(column):
        return
    codes = column.indices.to_numpy()
    for code, key in enumerate(column.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        if len(rows):
            yield parse_key(key).type, rows


def _coded(parts: list[Any]) -> tuple[Any, npt.NDArray[np.int32]]:
    if isinstance(parts[0], np.ndarray):
        values, codes = np.unique(np.concatenate(parts), return_inverse=True)
        return values, codes.astype(np.int32)
    whole = pa.concat_arrays(parts)
    coded = pc.dictionary_encode(whole)
    return coded.dictionary, coded.indices.to_numpy().astype(np.int32)


def _files(lists: _Lists, satisfied: Mask) -> Mask:
    """Files with a satisfied value."""
    hit = np.zeros(len(lists.known), np.bool_)
    chosen = np.flatnonzero(satisfied)
    if len(chosen) <= _FEW:
        for code in chosen.tolist():
            hit[lists.owner[lists.starts[code] : lists.starts[code + 1]]] = True
    else:
        hit[lists.owner[satisfied[lists.codes]]] = True
    return hit


def _of_function(
    predicate: BoundPredicate, called: BoundCall, dictionary: Any, semantics: Semantics
) -> Mask | None:
    """Which values satisfy a predicate on a function. True also where engines may differ."""
    (column,) = columns_of(called)
    stored = _STORED.get(column.type.kind)
    if stored is None:
        return None
    sure = np.ones(len(dictionary), np.bool_)
    if stored.holds == "bytes" and innermost(called) != "like":
        try:
            plain = pc.string_is_ascii(dictionary.cast(pa.large_string()))
        except pa.ArrowInvalid:  # invalid UTF-8
            return None
        sure = np.asarray(plain.to_numpy(zero_copy_only=False), np.bool_)
    few = dictionary[sure] if isinstance(dictionary, np.ndarray) else dictionary.filter(sure)
    results = evaluate(called, stored, few)
    satisfied = None if results is None else _satisfied(predicate, results[0], semantics)
    if satisfied is None:
        return None
    found = ~sure
    found[sure] = satisfied
    return found


def _of_computed(predicate: BoundPredicate, called: BoundComputed, dictionary: Any) -> Mask | None:
    """Which values satisfy an expression, or may; None if NULL does, which no list holds."""
    (column,) = columns_of(called)
    if decide(predicate, [None]) is not False or len(dictionary) > MOST_VALUES:
        return None
    values = dictionary.tolist() if isinstance(dictionary, np.ndarray) else dictionary.to_pylist()
    if column.type.kind is Kind.BOOLEAN:
        values = [bool(v) for v in values]
    elif column.type.kind is Kind.DECIMAL and not isinstance(dictionary, np.ndarray):
        return None
    return np.array([decide(predicate, [v]) is not False for v in values], np.bool_)


def _satisfied(predicate: BoundPredicate, dictionary: Any, semantics: Semantics) -> Mask | None:
    """Which values satisfy a predicate; None if values cannot decide it."""
    op, values, kind = predicate.op, predicate.values, predicate.reference.type
    # Lists have only one zero, so they cannot decide where the engine has -0.0 < 0.0 (rule 2).
    zero = semantics.nan is NanOrder.LARGEST and kind.is_floating and 0 in values
    match op:
        case Op.EQ | Op.NULL_SAFE_EQ | Op.IN:
            return _among(dictionary, values)
        case Op.NE | Op.NOT_IN:
            return None if zero else ~_among(dictionary, values)
        case Op.LT | Op.LE:
            return compare(dictionary, "<=" if zero or op is Op.LE else "<", values[0])
        case Op.GT | Op.GE:
            return compare(dictionary, ">=" if zero or op is Op.GE else ">", values[0])
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH:
            found = pc.starts_with(dictionary, pattern=values[0])
            mask = np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
            return mask if op is Op.STARTS_WITH else ~mask
        case Op.IS_NAN:
            return np.zeros(len(dictionary), np.bool_)
    return None


def _among(dictionary: Any, values: tuple[Value, ...]) -> Mask:
    if isinstance(dictionary, np.ndarray):
        return np.isin(dictionary, np.asarray(values, dictionary.dtype))
    sought = pa.array([arrow_scalar(v, dictionary.type).as_py() for v in values], dictionary.type)
    found = pc.is_in(dictionary, value_set=sought)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


KIND = Values()
