"""PruningStatistics from the local copy of an index: resolves, converts and joins stored columns.

Columns are found by name, ignoring case, as in Hive. A column is unknown in a file if two of the
file's columns match, if engines disagree about the case of a letter, or if it is a leaf in one file
and a group in another (correctness 14). In a
file without the column all its values are NULL, as external tables read missing columns (15). Where
engines may find columns by position, name and position must agree: see
`bridge.index.reading.column_resolution`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.intervals import Intervals
from bridge.expression.nodes import BoundCall, BoundReference
from bridge.expression.statistics import ColumnStatistics, Counts, Mask, PruningStatistics
from bridge.formats.physical_column import INT_MAX, INT_MIN
from bridge.index.generations.convert import (
    Converted,
    bound_representation,
    cast,
    convert,
    keeps_nulls,
)
from bridge.index.reading.column_resolution import (
    WIDTH,
    Names,
    by_letters,
    in_lower_case,
    match_columns,
)
from bridge.index.reading.local_cache import EXACT, LOWER, PRESENT, UPPER, CachedColumn, CachedIndex
from bridge.index.reading.pack import Loaded
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import BridgeError, LimitExceeded
from bridge.kernel.types import Field, Kind, Semantics, Type

_MOST_CERTAIN = 64
_Key = tuple[tuple[str, ...], Type, tuple[bool, bool], int | None]


class ColumnView:
    """Columns of one generation. Each (path, type, timestamp rule) is joined once and cached.

    The cache is bounded in bytes and evicts the least recently used column first. A column that
    cannot be read is unknown. `problems` says why, and the read is retried after some seconds.
    """

    def __init__(self, compiled: CachedIndex) -> None:
        self.compiled = compiled
        self.num_files: int = compiled.files.num_rows
        self.rows: npt.NDArray[np.int64] = compiled.files.column("rows").to_numpy()
        self._without_rows: Mask = self.rows == 0
        self._some_without_rows = bool(self._without_rows.any())
        self.trusted: Mask = compiled.files.column("trusted").to_numpy().view(np.bool_)
        self._by_path: dict[tuple[str, ...], list[CachedColumn]] = {}
        self._placed: list[CachedColumn] = []
        self._widths: list[CachedColumn] = []
        for column in compiled.columns:
            if column.column.position is not None:
                self._placed.append(column)
            elif column.column.path == WIDTH:
                self._widths.append(column)
            else:
                self._by_path.setdefault(in_lower_case(column.column.path), []).append(column)
        self._named = [c for columns in self._by_path.values() for c in columns]
        self._names = Names(column.column.path for column in self._named)
        self._near: dict[tuple[str, ...] | int | None, list[CachedColumn]] = {}
        for column in self._placed:
            path = column.column.path
            for near in {column.column.position, in_lower_case(path), by_letters(path)}:
                self._near.setdefault(near, []).append(column)
        self._cache: BoundedCache[_Key, ColumnStatistics | None] = BoundedCache(
            capacity=compiled.limits.memory, weigh=_bytes
        )
        self._certain: BoundedCache[tuple[tuple[str, ...], Type, int | None], Mask] = BoundedCache(
            _MOST_CERTAIN
        )
        self.problems: dict[str, tuple[float, BridgeError]] = {}
        compiled.parts.add(self)

    def statistics(self, columns: tuple[Field, ...], semantics: Semantics) -> PruningStatistics:
        """Statistics as an engine with these semantics reads the files.

        Args:
            columns: the table's columns in order, for files whose columns may be found by position.
        """
        self.compiled.limits.open_files.used(self.compiled)
        places = {c.name.lower(): i for i, c in enumerate(columns)} if self._widths else {}
        return _Statistics(self, semantics, places)

    def column(
        self, reference: BoundReference, semantics: Semantics, place: int | None = None
    ) -> ColumnStatistics | None:
        """The statistics of a column; None if nothing is known.

        Args:
            place: its position among the table's columns; None if unknown.
        """
        if reference.partition or isinstance(reference, BoundCall):
            return None
        key = (in_lower_case(reference.path), reference.type, semantics.reading, place)
        if key in self._cache:
            return self._cache.get(key)
        name = ".".join(key[0])
        problem = self.problems.get(name)
        if problem is not None and time.monotonic() - problem[0] < self.compiled.limits.retry_after:
            return None
        try:
            found = self._cache.load(
                key, lambda: self._join(key[0], reference.type, semantics, place)
            )
        except LimitExceeded:  # of the process: it tells nothing of the column
            raise
        except BridgeError as error:  # unknown keeps every file; the report says why
            self.problems[name] = (time.monotonic(), error)
            return None
        self.problems.pop(name, None)
        self.compiled.keeps("columns", 0, self._cache.weight)
        return found

    def release(self) -> None:
        """Gives up all columns. They are joined again on request."""
        self._cache.clear()
        self._certain.clear()

    def stored_types(self, path: tuple[str, ...]) -> frozenset[str]:
        """The logical types that files have for a column."""
        return frozenset(c.column.type.logical for c in self._by_path.get(in_lower_case(path), []))

    def stored_names(self, path: tuple[str, ...]) -> frozenset[str]:
        """The names that files have for a column, or for the one that it is a part of."""
        return frozenset(c.column.path[0] for c in self._by_path.get(in_lower_case(path), []))

    def stored_units(self, column: str) -> frozenset[str]:
        """The units of the times that files hold in a column or below it; case is ignored."""
        return frozenset(
            each.column.type.unit
            for path, columns in self._by_path.items()
            if path[0] == column.lower()
            for each in columns
            if each.column.type.logical == "timestamp"
        )

    def used(self) -> list[tuple[str, ...]]:
        """Paths of the cached columns, the most recently used last."""
        return list(dict.fromkeys(path for path, _, _, _ in self._cache))

    def prefetch(self, paths: Iterable[tuple[str, ...]]) -> None:
        """Fetches all columns that are not cached, together, and starts to read them.

        Errors: as `CachedIndex.fetch`.
        """
        ready = {path for path, _, _, _ in self._cache}
        wanted = [
            column
            for path in map(in_lower_case, paths)
            if path not in ready
            for column in (
                *self._by_path.get(path, []),
                *(c for c in self._near.get(path, []) if in_lower_case(c.column.path) == path),
            )
        ]
        if wanted:
            self.compiled.fetch(wanted)
            self.compiled.expect(wanted)

    def _join(
        self, path: tuple[str, ...], target: Type, semantics: Semantics, place: int | None
    ) -> ColumnStatistics | None:
        if bound_representation(target) == "none" or not self.num_files:
            return None
        variants = self._by_path.get(path, [])
        conflicts = [self._named[i] for i in self._names.find_conflicts(path)]
        if self._placed:
            sure, doubtful = self._agreeing(path, place, target)
            variants = [*variants, *sure]
            conflicts += doubtful
        if len(variants) == 1 and not conflicts:
            loaded = self.compiled.load(variants[0])
            if loaded.every & PRESENT:
                return self._single(variants[0], loaded, target, semantics)
        self.compiled.fetch([*variants, *conflicts, *self._widths])
        lacking = self._lacking(place if len(path) == 1 else None)
        return self._many(variants, conflicts, target, semantics, lacking)

    def _agreeing(
        self, path: tuple[str, ...], place: int | None, target: Type
    ) -> tuple[list[CachedColumn], list[CachedColumn]]:
        """See `agreeing`, of the columns that have a position."""
        keys = dict.fromkeys((place, path, by_letters(path)))
        near = list({id(c): c for key in keys for c in self._near.get(key, [])}.values())
        sure, doubtful = match_columns([c.column for c in near], path, place, target)
        return [near[i] for i in sure], [near[i] for i in doubtful]

    def certain(self, reference: BoundReference, place: int | None) -> Mask | None:
        """Files in which engines find the column of this name by any way they look for it.

        None: in all files, because no file's columns are found by their position.

        Args:
            place: as for `column`.

        Errors: as `CachedIndex.load`.
        """
        if not self._placed:
            return None
        key = (in_lower_case(reference.path), reference.type, place)
        held: Mask | None = self._certain.get(key)
        if held is not None:
            return held
        wanted, _ = self._agreeing(key[0], place, reference.type)
        self.compiled.fetch([*wanted, *self._widths])
        found = np.ones(self.num_files, np.bool_)
        for column in self._widths:
            found &= (self.compiled.load(column).flags & PRESENT) == 0
        for column in wanted:
            found |= (self.compiled.load(column).flags & PRESENT) != 0
        self._certain.put(key, found)
        return found

    def _lacking(self, place: int | None) -> Mask | None:
        """Files read by name only, and files with no column at that position. None: all files."""
        if not self._widths:
            return None
        lacking = np.ones(self.num_files, np.bool_)
        for column in self._widths:
            loaded = self.compiled.load(column)
            assert loaded.upper is not None
            wide = (loaded.flags & UPPER) == 0
            if place is None:
                wide[:] = True
            else:
                wide |= loaded.upper.to_numpy() > place
            lacking &= ((loaded.flags & PRESENT) == 0) | ~wide
        return lacking

    def _single(
        self, variant: CachedColumn, loaded: Loaded, target: Type, semantics: Semantics
    ) -> ColumnStatistics | None:
        """All files have the column in one type. Arrays of the table's type are not copied."""
        flags, every = loaded.flags, loaded.every
        lower_known = None if every & LOWER else (flags & LOWER) != 0
        upper_known = None if every & UPPER else (flags & UPPER) != 0
        exact = None if every & EXACT else (flags & EXACT) != 0
        converted = self._bounds(variant, loaded, target, semantics)
        counts = self._counts(variant, loaded, target, converted)
        if converted is None:
            converted = _unknown(target, self.num_files)
            lower_known = upper_known = exact = np.zeros(self.num_files, np.bool_)
        elif converted.doubtful is not None and converted.doubtful.any():
            sure = ~converted.doubtful
            lower_known = sure if lower_known is None else lower_known & sure
            upper_known = sure if upper_known is None else upper_known & sure
            exact = sure if exact is None else exact & sure
        if converted.rounded:
            exact = np.zeros(self.num_files, np.bool_)
        whole = lower_known is None and upper_known is None
        found = self._result(target, converted, (lower_known, upper_known, exact), counts)
        if converted.kept and target.kind is not Kind.BOOLEAN:  # rule 13 needs both bounds
            found = replace(found, cells=self.compiled.cells(variant), expect=loaded.expect)
        return _searchable(found, loaded.ascending and whole)

    def _result(
        self,
        target: Type,
        bounds: Converted,
        masks: tuple[Mask | None, Mask | None, Mask | None],
        counts: tuple[Counts, Counts],
    ) -> ColumnStatistics:
        lower_known, upper_known, exact = masks
        nulls, nans = counts
        all_null: Mask | None
        if nulls.strides == (0,) and nulls[0] <= 0:  # in all files 0, or unknown in all
            none = self._some_without_rows and nulls[0] == 0
            all_null = self._without_rows if none else None
        else:
            found = (nulls == self.rows) & (self.rows >= 0)
            all_null = found if found.any() else None
        lower, upper = bounds.lower, bounds.upper
        if not bounds.kept:  # stored bounds are already infinite where unknown
            lower = _hide(lower, lower_known, lower=True)
            upper = _hide(upper, upper_known, lower=False)
        return ColumnStatistics(
            type=target,
            lower=lower,
            upper=upper,
            lower_known=lower_known,
            upper_known=upper_known,
            exact=exact,
            null_count=nulls,
            nan_count=nans,
            row_count=self.rows,
            all_null=all_null,
        )

    def _bounds(
        self, variant: CachedColumn, loaded: Loaded, target: Type, semantics: Semantics
    ) -> Converted | None:
        stored = variant.column.type
        if stored.holds == "none":
            return None
        lower, upper = loaded.lower, loaded.upper
        assert lower is not None and upper is not None  # such types have bounds
        if stored.holds in ("int", "float"):
            lower, upper = lower.to_numpy(), upper.to_numpy()
        found = convert(stored, target, semantics, lower, upper)
        if found is None:
            return cast(stored, target, lower, upper)
        if found.lower is not lower or found.upper is not upper:
            return found
        return replace(found, kept=found.doubtful is None or not found.doubtful.any())

    def _counts(
        self,
        variant: CachedColumn,
        loaded: Loaded,
        target: Type,
        converted: Converted | None,
    ) -> tuple[Counts, Counts]:
        """Counts of NULL and NaN as the engine reads the column; -1 where they may differ."""
        stored = variant.column.type
        nulls = loaded.nulls
        if not target.is_floating or stored.logical in ("int", "uint"):
            nans = np.zeros(self.num_files, np.int64)
        elif not stored.is_floating:
            nans = np.full(self.num_files, -1, np.int64)
        else:
            nans = loaded.nans
        changed: Mask | None = None
        if not keeps_nulls(stored, target):  # some engines read what does not convert as NULL
            changed = np.ones(self.num_files, np.bool_)
        elif converted is not None:
            changed = converted.to_null
        if changed is not None and changed.any():
            nulls = np.where(changed & (nulls != self.rows), -1, nulls)  # NULL stays NULL
        return nulls, nans

    def _many(
        self,
        variants: list[CachedColumn],
        conflicts: list[CachedColumn],
        target: Type,
        semantics: Semantics,
        lacking: Mask | None,
    ) -> ColumnStatistics | None:
        """Files differ: some lack the column, or store it in another type or case."""
        count = self.num_files
        joined = _Joined(target, count)
        seen = np.zeros(count, np.int32)
        for variant in variants:
            loaded = self.compiled.load(variant)
            flags = loaded.flags
            present = (flags & PRESENT) != 0
            seen += present
            converted = self._bounds(variant, loaded, target, semantics)
            counts = self._counts(variant, loaded, target, converted)
            joined.put(present, flags, converted, counts)
        doubtful = seen > 1
        for column in conflicts:
            flags = self.compiled.load(column).flags
            doubtful |= (flags & PRESENT) != 0
        absent = (seen == 0) & ~doubtful & self.trusted & (self.rows >= 0)
        if lacking is not None:
            absent &= lacking
        if not variants and not absent.any():
            return None
        return joined.finish(self.rows, absent, doubtful)


class _Joined:
    """Arrays joined from several stored columns."""

    def __init__(self, target: Type, count: int) -> None:
        self._target = target
        unknown = _unknown(target, count)
        self._lower, self._upper = unknown.lower, unknown.upper
        if bound_representation(target) in ("int", "float"):
            self._lower, self._upper = self._lower.copy(), self._upper.copy()
        self._low = np.zeros(count, np.bool_)
        self._high = np.zeros(count, np.bool_)
        self._exact = np.zeros(count, np.bool_)
        self._nulls = np.full(count, -1, np.int64)
        self._nans = np.full(count, -1, np.int64)

    def put(
        self,
        present: Mask,
        flags: npt.NDArray[np.uint8],
        converted: Converted | None,
        counts: tuple[Counts, Counts],
    ) -> None:
        self._nulls[present] = counts[0][present]
        self._nans[present] = counts[1][present]
        if converted is None:
            return
        sure = present if converted.doubtful is None else present & ~converted.doubtful
        low, high = sure & ((flags & LOWER) != 0), sure & ((flags & UPPER) != 0)
        self._lower = _choose(low, converted.lower, self._lower)
        self._upper = _choose(high, converted.upper, self._upper)
        self._low |= low
        self._high |= high
        if not converted.rounded:
            self._exact |= sure & ((flags & EXACT) != 0)

    def finish(self, rows: npt.NDArray[np.int64], absent: Mask, doubtful: Mask) -> ColumnStatistics:
        nulls = np.where(doubtful, -1, np.where(absent, rows, self._nulls))
        nans = np.where(doubtful, -1, np.where(absent, 0, self._nans))
        low, high = self._low & ~doubtful, self._high & ~doubtful
        all_null = (nulls == rows) & (rows >= 0)
        return ColumnStatistics(
            type=self._target,
            lower=_hide(self._lower, low, lower=True),
            upper=_hide(self._upper, high, lower=False),
            lower_known=low,
            upper_known=high,
            exact=self._exact & ~doubtful,
            null_count=nulls,
            nan_count=nans,
            row_count=rows,
            all_null=all_null if all_null.any() else None,
        )


class RenamedColumns:
    """A view by other names of columns. Nested fields of a renamed column are unknown.

    Args:
        names: stored names by those that are asked for, in lower case; None: unknown.
    """

    def __init__(self, view: ColumnView, names: Mapping[str, str | None]) -> None:
        self._view, self._names = view, names
        self.num_files = view.num_files
        self.problems = view.problems

    def statistics(self, columns: tuple[Field, ...], semantics: Semantics) -> PruningStatistics:
        return _Statistics(self, semantics, {})

    def column(
        self, reference: BoundReference, semantics: Semantics, place: int | None = None
    ) -> ColumnStatistics | None:
        path = None if isinstance(reference, BoundCall) else self._stored(reference.path)
        if path is None:
            return None
        return self._view.column(replace(reference, path=path), semantics, place)

    def certain(self, reference: BoundReference, place: int | None) -> Mask | None:
        path = self._stored(reference.path)
        if path is None:
            return np.zeros(self.num_files, np.bool_)
        return self._view.certain(replace(reference, path=path), place)

    def stored_types(self, path: tuple[str, ...]) -> frozenset[str]:
        stored = self._stored(path)
        return frozenset() if stored is None else self._view.stored_types(stored)

    def stored_names(self, path: tuple[str, ...]) -> frozenset[str]:
        stored = self._stored(path)
        return frozenset() if stored is None else self._view.stored_names(stored)

    def stored_units(self, column: str) -> frozenset[str]:
        stored = self._stored((column,))
        return frozenset() if stored is None else self._view.stored_units(stored[0])

    def used(self) -> list[tuple[str, ...]]:
        return self._view.used()

    def prefetch(self, paths: Iterable[tuple[str, ...]]) -> None:
        self._view.prefetch(path for path in map(self._stored, paths) if path is not None)

    def _stored(self, path: tuple[str, ...]) -> tuple[str, ...] | None:
        name = path[0].lower()
        if name not in self._names:
            return path
        stored = self._names[name]
        return None if stored is None or len(path) > 1 else (stored,)


@dataclass(frozen=True, slots=True)
class _Statistics:
    """`PruningStatistics` of the view under one engine's semantics."""

    view: ColumnView | RenamedColumns
    semantics: Semantics
    places: Mapping[str, int]

    @property
    def num_files(self) -> int:
        return self.view.num_files

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        place = self.places.get(reference.path[0].lower())
        return self.view.column(reference, self.semantics, place)


def _searchable(found: ColumnStatistics, ascending: bool) -> ColumnStatistics:
    """Adds the forms that are fast to search. Conversions keep the order of bounds."""
    lower, upper = found.lower, found.upper
    if not isinstance(lower, np.ndarray) or not isinstance(upper, np.ndarray):
        return found
    return replace(found, ascending=ascending, intervals=Intervals(lower, upper, ascending))


def _bytes(found: ColumnStatistics | None) -> int:
    """Bytes of the arrays, mapped or not."""
    if found is None:
        return 0
    arrays = (found.lower, found.upper, found.lower_known, found.upper_known, found.exact)
    counts = (found.null_count, found.nan_count, found.all_null)  # rows are shared
    return sum(array.nbytes for array in (*arrays, *counts) if array is not None)


def _unknown(target: Type, count: int) -> Converted:
    form = bound_representation(target)
    if form == "int":
        return Converted(np.full(count, INT_MIN), np.full(count, INT_MAX))
    if form == "float":
        return Converted(np.full(count, -np.inf), np.full(count, np.inf))
    kind = pa.large_binary() if form == "bytes" else pa.decimal128(38, target.scale)
    return Converted(pa.nulls(count, kind), pa.nulls(count, kind))


def _choose(mask: Mask, left: Any, right: Any) -> Any:
    if isinstance(left, np.ndarray):
        return np.where(mask, left, right)
    return pc.if_else(pa.array(mask), left, right)


def _hide(bounds: Any, known: Mask | None, *, lower: bool) -> Any:
    """Makes unknown bounds infinite. Returns the array itself if they already are."""
    if known is None:
        return bounds
    if not isinstance(bounds, np.ndarray):
        if bounds.null_count == np.count_nonzero(~known):
            return bounds
        return pc.if_else(pa.array(known), bounds, pa.scalar(None, bounds.type))
    if bounds.dtype == np.int64:
        return np.where(known, bounds, INT_MIN if lower else INT_MAX)
    return np.where(known, bounds, -np.inf if lower else np.inf)
