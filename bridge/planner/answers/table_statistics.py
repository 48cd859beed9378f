"""Table and column statistics for an engine's optimiser, from the index alone.

These are estimates, never answers. They describe the files that survive pruning, as of the index's
generation. Neither storage nor the catalog is called. Row counts, ranges, NULL fractions and the
distinct values of partition keys are exact where the index knows all of these files. For the
distinct values of other columns see `bridge.planner.answers.distinct_values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.nodes import (
    BoundAnd,
    BoundPredicate,
    BoundReference,
    BoundTrue,
    Op,
)
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import BridgeError
from bridge.kernel.types import STRING, Kind, Type
from bridge.planner.answers.composite_statistics import CompositePruningStatistics, select
from bridge.planner.answers.distinct_values import (
    CountSource,
    TableDistinct,
    bounded_distinct,
    constants,
)
from bridge.planner.index_view import IndexView
from bridge.planner.partitions import PartitionStatistics
from bridge.planner.scan_context import ScanContext
from bridge.storage.port import FileTable
from bridge.table.catalog_statistics import CatalogStatistics
from bridge.table.model import CatalogTable, Partition
from bridge.table.partition import typed_values
from bridge.table.slices import ReaderSpec, SliceBatch

_MAX_COLUMNS = 500
_COMPARED = 256
_OF_VALUES = (Op.EQ, Op.NULL_SAFE_EQ, Op.IN)


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """Statistics of one column; None where unknown.

    Attributes:
        low, high: as numbers: days for a date, microseconds for a timestamp.
        data_bytes: bytes of all values of a text or binary column.
        source: where the number of distinct values comes from, see `Source`.
        overlapping: whether each file's values overlap those of another; see `overlapping`.
    """

    nulls_fraction: float | None = None
    distinct: float | None = None
    low: float | None = None
    high: float | None = None
    data_bytes: float | None = None
    source: CountSource | None = None
    overlapping: bool | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows of the table and columns by name; None and empty without an index."""

    rows: float | None = None
    columns: dict[str, ColumnEstimate] = field(default_factory=dict)


def row_estimate(view: IndexView) -> float | None:
    """Rows of the whole table, from the index's list of files alone."""
    index = view.index
    if index is None:
        return None
    return _rows(index.rows[index.list_owned()[0]] if index.shared else index.rows)


def distinct_values(
    index: IndexSnapshot, name: str, found: ColumnStatistics | None
) -> tuple[float | None, CountSource | None]:
    """What the index alone tells of a data column's distinct values in the whole table.

    Args:
        found: its statistics over all files.
    """
    rows = _rows(index.rows)
    if rows is None or found is None:
        return None, None
    sample = index.sample.get(name.lower())
    told = TableDistinct(rows, index.distinct_values(name), sample, width=_width(found))
    estimate = _column(found, rows, told)
    return estimate.distinct, estimate.source


def estimate(context: ScanContext, catalog: CatalogStatistics | None = None) -> Estimate:
    """Statistics of the rows in files that the scan's predicate keeps.

    Args:
        catalog: what the catalog holds; None if nothing is known of that.
    """
    index, held = context.view.index, catalog or CatalogStatistics()
    if index is None:
        return rough_estimate(context.table, context.view, held)
    sample = index.sample  # first: it is small, and a rough estimate takes it from there
    known = all_indexed(context)
    left: npt.NDArray[np.int64] | None = None
    if not isinstance(context.predicate, BoundTrue):
        kept = ~prune(context.predicate, known, context.request.semantics).never
        left = None if kept.all() else np.flatnonzero(kept)
    whole = _rows(known.rows)
    rows = whole if left is None else _rows(known.rows[left])
    if rows is None or whole is None:
        return rough_estimate(context.table, context.view, held)
    with suppress(BridgeError):  # a column that cannot be read is unknown
        # Side by side, and into one pack: each pack is a file that stays mapped.
        index.prefetch((name,) for name, _, is_key in _columns(context.table) if not is_key)
    columns: dict[str, ColumnEstimate] = {}
    shares = {} if left is None else _shares(context, known, whole)
    for name, type, is_key in _columns(context.table):
        found = known.column(BoundReference((name,), type, is_key))
        if found is None and is_key:
            found = _key_as_text(known, context.table, name)
        if found is None:
            continue
        everywhere = found
        if left is not None:
            found = select(found, left)
        if is_key:
            columns[name] = _key(found, rows)
        else:
            told = TableDistinct(
                whole,
                index.distinct_values(name),
                sample.get(name.lower()),
                held.columns.get(name.lower()),
                held,
                _width(everywhere),
            )
            columns[name] = replace(
                _column(found, rows, told, shares.get(name, 1.0)),
                overlapping=overlapping(everywhere) or None,
            )
    return Estimate(rows, columns)


def rough_estimate(table: CatalogTable, view: IndexView, held: CatalogStatistics) -> Estimate:
    """What is known of the whole table without the index's columns."""
    rows = row_estimate(view)
    rows = held.rows if rows is None else rows
    if rows is None:
        return Estimate()
    sample = {} if view.index is None else view.index.loaded_sample
    columns: dict[str, ColumnEstimate] = {}
    for name, type, is_key in _columns(table):
        key = name.lower()
        told = TableDistinct(rows, None, sample.get(key), held.columns.get(key), held)
        if is_key or (told.sample is None and told.catalog is None):
            continue
        distinct, source = told.best()
        nulls = told.nulls_fraction()
        present = rows * (1.0 - (nulls or 0.0))
        length = told.length() if type.is_bytes else None
        columns[name] = ColumnEstimate(
            nulls,
            None if distinct is None else min(distinct, present),
            *told.range(),
            None if length is None else present * length,
            None if distinct is None else source,
        )
    return Estimate(rows, columns)


def all_indexed(context: ScanContext) -> CompositePruningStatistics:
    """What is known of all indexed files, with partitions as the index names them.

    A file appears once for each partition that owns it. The caller ensures that there is an index.
    """
    index, keys = context.view.index, context.table.partition_keys
    assert index is not None
    ordinals, owner, names = index.list_owned()
    values = list(zip(*typed_values(names, keys), strict=True)) if keys else [()] * len(names)
    files = FileTable(index.paths, index.sizes, index.modified, index.etags)
    batch = SliceBatch(
        files.take(ordinals) if index.shared else files,
        ordinals,
        owner,
        tuple(Partition(name, (), "") for name in names),
        (ReaderSpec(context.table.format),),
        index,
    )
    pruner = context.pruner_of(index)
    return CompositePruningStatistics(batch, pruner.statistics, index.rows, keys, values)


def _columns(table: CatalogTable) -> Sequence[tuple[str, Type, bool]]:
    data = [(c.name, c.type, False) for c in table.columns if not c.type.is_nested]
    keys = [(c.name, c.type, True) for c in table.partition_keys]
    return keys + data[:_MAX_COLUMNS]


def _rows(counts: npt.NDArray[np.int64]) -> float | None:
    """The sum of the counts; a file without a count contributes the average."""
    counted = counts[counts >= 0]
    if not len(counted):
        return None if len(counts) else 0.0
    return float(counted.sum()) * len(counts) / len(counted)


def _key_as_text(
    known: CompositePruningStatistics, table: CatalogTable, name: str
) -> ColumnStatistics | None:
    """The values of a partition key whose type has no bounds, as text."""
    keys = [replace(key, type=STRING) for key in table.partition_keys]
    names = [partition.name for partition in known.batch.partitions]
    texts = PartitionStatistics(names, keys, typed_values(names, keys))
    found = texts.column(BoundReference((name,), STRING, True))
    return None if found is None else known.by_partition(found)


def _key(found: ColumnStatistics, rows: float) -> ColumnEstimate:
    """A partition key: each file holds one value."""
    nulls = _nulls_fraction(found)
    values = float(len(constants(found.lower, found.lower_known)))
    present = rows * (1.0 - (nulls or 0.0))
    return ColumnEstimate(nulls, min(values, present), *_range(found), source="exact")


def _shares(
    context: ScanContext, known: CompositePruningStatistics, whole: float
) -> dict[str, float]:
    """For columns that must hold one of some values: the share of rows in files that may hold one.

    Such a file was kept because of its values, and the rows of these are all in the kept files. An
    engine that divides these files' rows by the distinct values of the table counts that twice.
    """
    predicate, found = context.predicate, dict[str, float]()
    for part in predicate.children if isinstance(predicate, BoundAnd) else (predicate,):
        if not isinstance(part, BoundPredicate) or part.op not in _OF_VALUES:
            continue
        if type(part.reference) is BoundReference:
            kept = ~prune(part, known, context.request.semantics).never
            share = (_rows(known.rows[kept]) or 0.0) / (whole or 1.0)
            name = part.reference.path[0]
            found[name] = min(share, found.get(name, 1.0))
    return found


def _column(
    found: ColumnStatistics, rows: float, told: TableDistinct, share: float = 1.0
) -> ColumnEstimate:
    """A data column in the files of ``found``, which hold so many rows.

    Args:
        share: of the distinct values, as `_shares` gives it.
    """
    nulls = _nulls_fraction(found)
    if nulls is None:
        nulls = told.nulls_fraction()
    present = rows * (1.0 - (nulls or 0.0))
    best, of = told.best()
    best = best and max(1.0, best * share)
    distinct, source = bounded_distinct(found, present, best, of)
    length = told.length() if found.type.is_bytes else None
    size = None if length is None else present * length
    low, high = _range(found)
    if low is None:
        low, high = told.range()
    return ColumnEstimate(nulls, distinct, low, high, size, source)


def overlapping(found: ColumnStatistics) -> bool:
    """Whether a range or a value of the column can hardly hold for a whole file.

    So it is where no file holds a single value, and the values of each file overlap those of the
    next in order. An engine need not ask whether such a condition is enforced.
    """
    some = found.row_count != 0
    for mask in (found.lower_known, found.upper_known):
        some &= True if mask is None else mask
    if found.all_null is not None:
        some &= ~found.all_null
    place = np.flatnonzero(some)
    place = place[:: -(-len(place) // _COMPARED) or 1]
    lower, upper = (
        bounds[place]
        if isinstance(bounds, np.ndarray)
        else np.array([b"", *bounds.take(pa.array(place)).to_pylist()], object)[1:]
        for bounds in (found.lower, found.upper)
    )
    order = np.argsort(lower, kind="stable")
    lower, upper = lower[order], upper[order]
    return not bool((lower == upper).any()) and not bool((upper[:-1] < lower[1:]).any())


def _nulls_fraction(found: ColumnStatistics) -> float | None:
    """The share of NULLs in the files whose counts are known, if these are most rows."""
    known = (found.null_count >= 0) & (found.row_count >= 0)
    total = float(found.row_count[known].sum())
    if not total or total < float(found.row_count[found.row_count >= 0].sum()) / 2:
        return None
    return float(found.null_count[known].sum()) / total


def _width(found: ColumnStatistics) -> float | None:
    low, high = _range(found)
    return None if low is None or high is None else high - low


def _range(found: ColumnStatistics) -> tuple[float | None, float | None]:
    type = found.type
    numeric = (
        type.is_integer
        or type.is_floating
        or type.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL)
    )
    if not numeric or not isinstance(found.lower, np.ndarray):
        return None, None
    upper = found.upper
    assert isinstance(upper, np.ndarray)
    present = np.ones(len(upper), np.bool_) if found.all_null is None else ~found.all_null
    present &= found.row_count != 0
    for mask in (found.lower_known, found.upper_known):
        if mask is not None and not mask[present].all():
            return None, None
    if not present.any():
        return None, None
    scale = 10.0**type.scale if type.kind is Kind.DECIMAL else 1.0
    return float(found.lower[present].min()) / scale, float(upper[present].max()) / scale
