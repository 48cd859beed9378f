"""Partition pruning on values alone, before any partition is fetched from the catalog.

The law: a partition is dropped only if no row with its key values can satisfy the predicate; a
value that does not parse is unknown and keeps its partition.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.fold import conjunction
from bridge.expression.function_catalog import columns_of
from bridge.expression.nodes import BoundAnd, BoundExpression, BoundReference, BoundTrue
from bridge.expression.prune import prune
from bridge.expression.residual import references, residual
from bridge.expression.statistics import ColumnStatistics
from bridge.kernel.types import Kind, Semantics, Type, Value
from bridge.table.model import Column
from bridge.table.partition import UNPARSABLE, UnparsableValue, typed_values

_LOW = np.iinfo(np.int64).min
_HIGH = np.iinfo(np.int64).max
_DIGITS = decimal.Context(prec=38)
PARTITION_COLUMN = "$partition"

TypedValues = list[Value | UnparsableValue | None]
Typed = tuple[Value | UnparsableValue | None, ...]


class PartitionStatistics:
    """Partition values as exact statistics (min = max = value), one entry per partition."""

    def __init__(
        self, names: Sequence[str], keys: Sequence[Column], values: list[TypedValues]
    ) -> None:
        self._names = names
        self._keys = {k.name.lower(): i for i, k in enumerate(keys)}
        self._types = [k.type for k in keys]
        self._values = values
        self._built: dict[str, ColumnStatistics | None] = {}

    @property
    def num_files(self) -> int:
        return len(self._names)

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        name = reference.path[0].lower()
        if name not in self._built:
            self._built[name] = self._build(name)
        return self._built[name]

    def _build(self, name: str) -> ColumnStatistics | None:
        if name == PARTITION_COLUMN:
            return constant_statistics(
                Type(Kind.STRING), [n.encode("utf-8", "surrogateescape") for n in self._names]
            )
        index = self._keys.get(name)
        if index is None:
            return None
        return constant_statistics(self._types[index], self._values[index])


def constant_statistics(type_: Type, values: TypedValues) -> ColumnStatistics | None:
    """Statistics of files that hold one value each (None is NULL, UNPARSABLE is unknown)."""
    n = len(values)
    null = np.fromiter((v is None for v in values), np.bool_, n)
    unknown = np.fromiter((v is UNPARSABLE for v in values), np.bool_, n)
    absent = null | unknown
    known = ~absent
    lower: pa.Array | npt.NDArray[np.int64]
    upper: pa.Array | npt.NDArray[np.int64]
    if type_.is_bytes:
        lower = upper = pa.array(
            [None if a else v for v, a in zip(values, absent, strict=True)], pa.large_binary()
        )
    elif type_.is_floating:
        return None
    elif type_.kind is Kind.DECIMAL and type_.precision > 18:
        exact = [None if a else _decimal(v, type_) for v, a in zip(values, absent, strict=True)]
        lower = upper = pa.array(exact, pa.decimal128(38, type_.scale))
    else:
        lower = np.fromiter(
            (_LOW if a else v for v, a in zip(values, absent, strict=True)), np.int64, n
        )
        upper = np.where(absent, _HIGH, lower)
    rows = np.ones(n, np.int64)
    return ColumnStatistics(
        type=type_,
        lower=lower,
        upper=upper,
        lower_known=None if known.all() else known,
        upper_known=None if known.all() else known,
        exact=None if known.all() else known,
        null_count=np.where(unknown, -1, null.astype(np.int64)),
        nan_count=np.zeros(n, np.int64),
        row_count=rows,
        all_null=null if null.any() else None,
    )


def _decimal(unscaled: object, type_: Type) -> decimal.Decimal:
    assert isinstance(unscaled, int)
    return decimal.Decimal(unscaled).scaleb(-type_.scale, _DIGITS)


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """The partitions that pruning kept.

    Attributes:
        names: kept names, in the catalog's order.
        total: number of partitions before pruning.
        values: typed values by name of the kept partition.
        columns: partition keys that the predicate refers to.
    """

    names: list[str]
    total: int
    values: dict[str, Typed]
    columns: tuple[str, ...]


def select_partitions(
    names: list[str], keys: Sequence[Column], predicate: BoundExpression, semantics: Semantics
) -> PartitionSelection:
    """Prunes partition names by their values in one pass."""
    if not keys:
        return PartitionSelection(names, len(names), {"": ()}, ())
    wanted = {k.name.lower() for k in keys} | {PARTITION_COLUMN}
    named = {c.path[0] for r in references(predicate) for c in columns_of(r)}
    used = tuple(sorted(name for name in named if name.lower() in wanted))
    columns = typed_values(names, keys)
    if not used or isinstance(predicate, BoundTrue):
        return PartitionSelection(names, len(names), _by_name(names, columns), used)
    answers = prune(predicate, PartitionStatistics(names, keys, columns), semantics)
    kept = np.flatnonzero(~answers.never).tolist()
    kept_names = [names[i] for i in kept]
    kept_columns = [[column[i] for i in kept] for column in columns]
    return PartitionSelection(kept_names, len(names), _by_name(kept_names, kept_columns), used)


def _by_name(names: list[str], columns: list[TypedValues]) -> dict[str, Typed]:
    return dict(zip(names, zip(*columns, strict=True), strict=True))


def split_by_keys(predicate: BoundExpression) -> tuple[BoundExpression, BoundExpression]:
    """The conjuncts that partition values alone decide, and the others."""
    conjuncts = predicate.children if isinstance(predicate, BoundAnd) else (predicate,)
    keys: list[BoundExpression] = []
    others: list[BoundExpression] = []
    for conjunct in conjuncts:
        used = references(conjunct)
        decided = used and all(r.partition or r.path[0] == PARTITION_COLUMN for r in used)
        (keys if decided else others).append(conjunct)
    return conjunction(keys), conjunction(others)


def exclude_partitions(
    names: Sequence[str],
    values: Sequence[Typed],
    keys: Sequence[Column],
    predicate: BoundExpression,
    semantics: Semantics,
) -> npt.NDArray[np.bool_]:
    """Marks the partitions whose values leave no row that satisfies the predicate.

    Args:
        values: of each partition; an empty tuple if nothing is known of it.
    """
    unknown: Typed = (UNPARSABLE,) * len(keys)
    columns: list[TypedValues] = [
        list(c) for c in zip(*(v or unknown for v in values), strict=True)
    ]
    return prune(predicate, PartitionStatistics(names, keys, columns), semantics).never


def partition_residual(
    predicate: BoundExpression,
    keys: Sequence[Column],
    name: str,
    values: Typed,
) -> BoundExpression:
    """The predicate that remains within one partition; unknown values stay unresolved."""
    if isinstance(predicate, BoundTrue):
        return predicate
    known: dict[tuple[str, ...], Value | None] = {
        (PARTITION_COLUMN,): name.encode("utf-8", "surrogateescape")
    }
    for key, value in zip(keys, values, strict=True):
        if not isinstance(value, UnparsableValue):
            known[(key.name,)] = value
    return residual(predicate, known)
