"""A sample of a table's values, from which the number of distinct values is estimated.

Each build reads the first rows of some row groups: of all files of a small table, of about
`_FILES` files of a large one, with limits in bytes and rows. What is read at once is a unit. A
shard keeps, per column, the values with the least hashes, how many units hold each of them, and how
many rows. Such sketches are merged without loss.

The estimate is not a bound. It follows Chao et al. (2014), "Rarefaction and extrapolation with Hill
numbers": values found in only one unit tell how many are still to be found.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.parquet.statistics import Footer
from bridge.formats.parquet.values import filled_groups, read_runs
from bridge.formats.physical_column import PhysicalType
from bridge.index.building.scan import leaf_values
from bridge.index.kinds.kind import Row
from bridge.index.kinds.payload import Payload, rows_schema
from bridge.index.kinds.plain import hashable, hashes
from bridge.index.kinds.xxh64 import Hashes
from bridge.storage.port import Storage
from bridge.storage.reading.source import open_source

SIGNATURE = "sample(*)"
"""Identifies the sample among a shard's payloads. It is no definition: every build makes one."""
SCHEMA = rows_schema(
    pa.schema(
        [
            pa.field("column", pa.large_string(), nullable=False),  # dotted, in lower case
            pa.field("units", pa.int64(), nullable=False),
            pa.field("rows", pa.int64(), nullable=False),
            pa.field("values", pa.int64(), nullable=False),  # rows that are not NULL
            pa.field("bytes", pa.int64()),  # of all values; NULL for types of fixed width
            pa.field("low", pa.float64()),  # of numbers, dates (days) and timestamps (microseconds)
            pa.field("high", pa.float64()),
            # Sums over the units: high - low, and distinct values after the first.
            pa.field("width", pa.float64(), nullable=False),
            pa.field("steps", pa.float64(), nullable=False),
            pa.field("hashes", pa.large_list(pa.uint64()), nullable=False),  # ascending
            pa.field("in_units", pa.large_list(pa.int64()), nullable=False),
            pa.field("in_rows", pa.large_list(pa.int64()), nullable=False),
        ]
    ),
    False,
)
_SUMS = ("units", "rows", "values", "width", "steps")
_KEPT = 1024
_FILES = 64
_ROWS = 250_000
_BYTES = 32 * 1024 * 1024
_STEP = 1024
"""Rows of text read at once."""
_EXPANDED = 8
"""Bytes in memory per stored byte at which reading stops: a long value may be stored only once."""
_RUNS = 8
_FEWEST = 4
"""Fewer units tell nothing about the values that are not in the sample."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which files are sampled, and how much of each.

    Attributes:
        share: the share of files. A file's path decides, so that every build decides alike.
        rows, bytes: limits per file.
    """

    share: float
    rows: int
    bytes: int

    @staticmethod
    def of(files: int) -> Sampling:
        """The sampling of a table with so many files."""
        taken = max(1, min(files, _FILES))
        return Sampling(taken / max(files, 1), _ROWS // taken, _BYTES // taken)

    def takes(self, uri: str) -> bool:
        return zlib.crc32(uri.encode("utf-8", "surrogateescape")) < self.share * 2**32


def sample_file(
    sampling: Sampling, footer: Footer, storage: Storage, uri: str, size: int
) -> list[Row]:
    """The file's rows of the sample. Empty if its values cannot be read: the sample is a help."""
    leaves = _leaves(footer)
    if not leaves or not footer.rows:
        return []
    try:
        return _sampled(sampling, footer, leaves, storage, uri, size)
    except Exception:
        return []


def _sampled(
    sampling: Sampling,
    footer: Footer,
    leaves: list[int],
    storage: Storage,
    uri: str,
    size: int,
) -> list[Row]:
    whole = len(footer.tail) == size
    source = pa.BufferReader(footer.tail) if whole else open_source(storage, uri, size)
    stored = sum(chunks[leaf].size for _, chunks in footer.groups for leaf in leaves)
    rows = min(sampling.rows, sampling.bytes * footer.rows // max(stored, 1))
    found: dict[int, list[Row]] = {leaf: [] for leaf in leaves}
    for unit in _units(source, footer, leaves, max(rows, 1), _EXPANDED * sampling.bytes):
        for leaf in leaves:
            column = footer.leaves[leaf].column
            row = _row(leaf_values(unit, column.path), column.type)
            if row is not None:
                found[leaf].append({"column": ".".join(column.path).lower(), **row})
    return [row for rows_of_leaf in found.values() for row in rows_of_leaf]


def _leaves(footer: Footer) -> list[int]:
    names = [".".join(leaf.column.path) for leaf in footer.leaves]
    times = Counter(names)
    return [
        i
        for i, leaf in enumerate(footer.leaves)
        if hashable(leaf.column.type) and times[names[i]] == 1
    ]


def _units(
    source: Any, footer: Footer, leaves: list[int], rows: int, most: int
) -> Iterator[pa.Table]:
    """The whole file as one unit, or the first rows of some row groups; at most so many bytes."""
    filled = filled_groups(footer)
    whole = rows >= footer.rows
    runs = [filled] if whole else [[n] for n in _spread(filled)]
    parts = 1 if whole else max(1, _FEWEST // len(runs))
    each = max(1, min(rows, footer.rows) // len(runs) // parts)
    text = any(footer.leaves[leaf].column.type.holds == "bytes" for leaf in leaves)
    step = min(each, _STEP) if text else each
    for batches in read_runs(source, footer, leaves, runs, step):
        for _ in range(parts):
            unit = _first(batches, each, most // len(runs) // parts)
            if unit:
                yield pa.Table.from_batches(unit)


def _spread(groups: list[int]) -> list[int]:
    runs = min(_RUNS, len(groups))
    return [groups[number * len(groups) // runs] for number in range(runs)]


def _first(batches: Iterator[pa.RecordBatch], rows: int, most: int) -> list[pa.RecordBatch]:
    """The next batches, until they hold so many rows or bytes."""
    found: list[pa.RecordBatch] = []
    for batch in batches:
        found.append(batch.slice(0, rows))
        rows, most = rows - len(batch), most - batch.nbytes
        if rows <= 0 or most <= 0:
            break
    return found


def _row(values: pa.ChunkedArray, stored: PhysicalType) -> Row | None:
    """A column of one unit; None if its type is not the stored one."""
    count = len(values)
    values = values.drop_null()
    present = len(values)
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    coded = pa.types.is_dictionary(values.type)  # as a data frame's categories are read
    counted = pc.value_counts(values.unify_dictionaries() if coded else values)
    each, times = counted.field("values"), counted.field("counts").to_numpy()
    if coded:
        each = each.dictionary_decode()
    found = hashes(stored, each)
    if found is None or len(found) != len(times):
        return None
    size = None
    if stored.holds == "bytes":
        lengths = pc.binary_length(each).to_numpy(zero_copy_only=False)
        size = int((lengths.astype(np.int64) * times).sum())
    low, high = _range(each)
    least = np.argsort(found)[:_KEPT]
    return {
        "file": -1,
        "units": 1,
        "rows": count,
        "values": present,
        "bytes": size,
        "low": low,
        "high": high,
        "width": 0.0 if low is None or high is None else high - low,
        "steps": float(max(len(found) - 1, 0)),
        "hashes": found[least],
        "in_units": np.ones(len(least), np.int64),
        "in_rows": times[least].astype(np.int64),
    }


def _range(values: pa.Array) -> tuple[float | None, float | None]:
    """The least and the greatest number; None for types that are not numbers."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if not len(values) or not (
        pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    ):
        return None, None
    found = pc.min_max(values)
    return float(found["min"].as_py()), float(found["max"].as_py())


def merge(rows: pa.Table) -> pa.Table:
    """Merges the rows into one per column."""
    held: dict[str, list[Row]] = {}
    for row in _rows(rows):
        held.setdefault(row["column"], []).append(row)
    merged = []
    for name, parts in held.items():
        found, place = np.unique(np.concatenate([p["hashes"] for p in parts]), return_inverse=True)
        sums = [
            np.bincount(place, np.concatenate([p[key] for p in parts]), len(found))[:_KEPT]
            for key in ("in_units", "in_rows")
        ]
        sizes, lows, highs = (
            [p[key] for p in parts if p[key] is not None] for key in ("bytes", "low", "high")
        )
        merged.append(
            {
                "file": -1,
                "column": name,
                **{key: sum(p[key] for p in parts) for key in _SUMS},
                "bytes": sum(sizes) if len(sizes) == len(parts) else None,
                "low": min(lows, default=None),
                "high": max(highs, default=None),
                "hashes": found[:_KEPT],
                "in_units": sums[0].astype(np.int64),
                "in_rows": sums[1].astype(np.int64),
            }
        )
    columns = [pa.array([row[field.name] for row in merged], field.type) for field in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def _rows(rows: pa.Table) -> Iterator[Row]:
    lists = ("hashes", "in_units", "in_rows")
    plain = rows.drop_columns(list(lists)).to_pylist()
    arrays = [[a for chunk in rows[name].chunks for a in _split(chunk)] for name in lists]
    for row, *held in zip(plain, *arrays, strict=True):
        yield {**row, **dict(zip(lists, held, strict=True))}


def _split(lists: pa.LargeListArray) -> list[npt.NDArray[Any]]:
    return [lists[i].values.to_numpy() for i in range(len(lists))]


@dataclass(frozen=True, slots=True)
class ColumnSample:
    """What the sample tells of one column.

    Attributes:
        units, rows, values: how many were read; values are not NULL.
        bytes: of all values; None for types of fixed width.
        distinct: distinct values in the sample: exact up to `_KEPT`, within 3 % above.
        once, twice: distinct values in exactly one unit, and in two.
        unique: no value repeats in the sample.
        low, high: of numbers, dates (days) and timestamps (microseconds).
        density: distinct values per 1 of the range, within units; 0 if unknown.
    """

    units: int
    rows: int
    values: int
    bytes: int | None
    distinct: float
    once: float
    twice: float
    unique: bool
    low: float | None = None
    high: float | None = None
    density: float = 0.0

    def distinct_in(self, rows: float, width: float | None = None) -> float | None:
        """Estimates the distinct values among so many rows of the table; None if too few were read.

        Args:
            width: from the table's least to its greatest value; None if unknown. Where values are
                sorted within files, the first rows of a row group say little of the others, but
                how densely the values lie says much.

        >>> ColumnSample(8, 800, 800, None, 100.0, 0.0, 0.0, False).distinct_in(1e6)
        100.0
        >>> ColumnSample(8, 800, 800, None, 80.0, 80.0, 0.0, False).distinct_in(8000)
        800.0
        """
        if not self.rows:
            return None
        if self.unique:
            return max(rows * self.values / self.rows, float(self.values))
        if rows <= self.rows:
            return self.distinct
        found = self._extrapolated(rows)
        if width is None or not self.density:
            return found
        as_dense = min(width * self.density + 1.0, self.distinct * rows / self.rows)
        return as_dense if found is None else max(found, as_dense)

    def _extrapolated(self, rows: float) -> float | None:
        if not self.once:
            return self.distinct
        if self.units < _FEWEST:
            return None
        more = self.units * (rows / self.rows - 1.0)
        if not self.twice:
            return self.distinct + self.once * more / self.units
        unseen = (self.units - 1) / self.units * self.once**2 / (2.0 * self.twice)
        rate = self.once / (self.units * unseen + self.once)
        return float(self.distinct - unseen * np.expm1(more * np.log1p(-rate)))


def column_samples(payload: Payload) -> dict[str, ColumnSample]:
    """The samples by the column's dotted name in lower case."""
    if not payload.rows.num_rows:
        return {}
    rows = payload.rows.select([name for name in SCHEMA.names if name != "file"])
    whole = merge(rows.add_column(0, SCHEMA.field("file"), payload.rows["ordinal"]))
    return {row["column"]: _column_sample(row) for row in _rows(whole)}


def _column_sample(row: Row) -> ColumnSample:
    found: Hashes = row["hashes"]
    scale = 1.0
    if len(found) == _KEPT:
        scale = (_KEPT - 1) * 2.0**64 / float(found[-1]) / _KEPT
    in_units: Sequence[int] = row["in_units"]
    once, twice = (int(np.count_nonzero(np.asarray(in_units) == n)) for n in (1, 2))
    return ColumnSample(
        row["units"],
        row["rows"],
        row["values"],
        row["bytes"],
        len(found) * scale,
        once * scale,
        twice * scale,
        # A value that fills half of the rows may have a hash above those that are kept.
        bool((np.asarray(row["in_rows"]) == 1).all()) and len(found) * scale > 0.9 * row["values"],
        row["low"],
        row["high"],
        row["steps"] / row["width"] if row["width"] else 0.0,
    )
