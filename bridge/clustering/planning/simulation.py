"""What a layout would let queries skip: new files simulated from sampled rows.

The law: for the sampled rows it is exact. A simulated file is kept by a predicate exactly if a file
that held just its rows would be kept by its bounds. Bloom filters and value lists of the table's
index are simulated, too (`simulated_filters`). Files that a plan does not touch are asked by their
real indexes, and groups of which too few rows were sampled count like the others of their
plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.clustering.layouts.layout import Layout, arrange
from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.planning.questions import Question
from bridge.clustering.planning.row_sample import RowSample, SampledColumn
from bridge.clustering.planning.simulated_filters import (
    Filter,
    IndexedFiles,
    SimulatedFilter,
    filters_of,
    narrow,
)
from bridge.expression.nodes import BoundExpression, BoundPredicate, BoundReference
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics
from bridge.index.building.listed import Listed
from bridge.index.reading.replaced_files import FileState
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import TRINO, Field

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_FEWEST_ROWS = 8
"""Sampled rows of a new file. With fewer, its bounds would say too little."""


@dataclass(frozen=True, slots=True)
class KeptByScans:
    """What a scan keeps, on average over the logged scans.

    Attributes:
        files, num_bytes: of the kept files.
        cost: the bytes, and the price of opening a file for each of them.
    """

    files: float
    num_bytes: float
    cost: float


class SimulatedFiles:
    """Statistics of files that hold some rows of a sample each; implements `PruningStatistics`.

    Args:
        order: rows of the sample, file by file.
        edges: where files begin in ``order``, and its end; no file is empty.
    """

    def __init__(self, sample: RowSample, order: Int64, edges: Int64) -> None:
        self._sample, self._order, self._edges = sample, order, edges
        self._known: dict[str, ColumnStatistics] = {}

    @property
    def num_files(self) -> int:
        return len(self._edges) - 1

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        name = reference.path[0].lower()
        column = self._sample.columns.get(name)
        if column is None or len(reference.path) != 1 or column.type != reference.type:
            return None
        if name not in self._known:
            self._known[name] = self._statistics(column)
        return self._known[name]

    def _statistics(self, column: SampledColumn) -> ColumnStatistics:
        begin, rows = self._edges[:-1], np.diff(self._edges)
        rank = column.rank[self._order]
        absent = rank < 0
        nulls = np.asarray(column.values.is_null().to_numpy(zero_copy_only=False))[self._order]
        low = np.minimum.reduceat(np.where(absent, len(column.distinct), rank), begin)
        high = np.maximum.reduceat(rank, begin)
        null_count = np.add.reduceat(nulls.astype(np.int64), begin)
        nan_count = np.add.reduceat((absent & ~nulls).astype(np.int64), begin)
        known = high >= 0
        lower = column.distinct.take(pa.array(low, mask=~known))
        upper = column.distinct.take(pa.array(high, mask=~known))
        if not isinstance(column.distinct, pa.Int64Array | pa.DoubleArray):
            bounds = (lower, upper)
        elif isinstance(column.distinct, pa.DoubleArray):
            bounds = (_filled(lower, -np.inf), _filled(upper, np.inf))
        else:
            edge = np.iinfo(np.int64)
            bounds = (_filled(lower, edge.min), _filled(upper, edge.max))
        return ColumnStatistics(
            type=column.type,
            lower=bounds[0],
            upper=bounds[1],
            lower_known=known,
            upper_known=known,
            exact=known,
            null_count=null_count,
            nan_count=nan_count,
            row_count=rows,
            all_null=null_count == rows,
        )


def _filled(bounds: pa.Array, unknown: float) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    return np.asarray(pc.fill_null(bounds, pa.scalar(unknown, bounds.type)).to_numpy())


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The simulated files of a plan.

    Attributes:
        statistics: None if no group could be simulated.
        filters: what tells of simulated files which values they hold.
        files, num_bytes: how many real new files, and how many bytes, each of them stands for.
    """

    statistics: SimulatedFiles | None
    files: Floats
    num_bytes: Floats
    all_files: float
    all_bytes: float
    filters: tuple[SimulatedFilter, ...] = ()

    def never(self, predicate: BoundExpression) -> npt.NDArray[np.bool_] | None:
        """The simulated files that hold no matching row; None: there are none."""
        files = self.statistics
        if files is None:
            return None
        found = prune(predicate, files, TRINO).never

        def bounds(expression: BoundExpression, at: Int64) -> npt.NDArray[np.bool_] | None:
            if not isinstance(expression, BoundPredicate):
                return None
            return prune(expression, files, TRINO).never[at]

        asks = [bounds, *(each.never for each in self.filters)] if self.filters else []
        return narrow(predicate, found, asks)

    def sum_kept(self, never: npt.NDArray[np.bool_] | None) -> tuple[float, float]:
        """Files and bytes that are kept; ``never`` is of the simulated files."""
        simulated = float(self.num_bytes.sum())
        if never is None or not simulated:
            return self.all_files, self.all_bytes
        left = ~never
        files, size = float(self.files[left].sum()), float(self.num_bytes[left].sum())
        return (
            files * self.all_files / float(self.files.sum()),
            size * self.all_bytes / simulated,
        )


def simulate(
    plan: ClusteringPlan, sample: RowSample, layout: Layout, filters: Sequence[Filter] = ()
) -> NewFiles:
    """The new files of a plan, as far as rows of its old files were sampled.

    Args:
        filters: of the table's index.
    """
    place = {path: i for i, path in enumerate(sample.paths)}
    group_of = np.full(len(sample.paths), -1, np.int64)
    for number, group in enumerate(plan.groups):
        for state in group.files:
            if state.path in place:
                group_of[place[state.path]] = number
    row_group = group_of[sample.file] if len(sample) else np.empty(0, np.int64)
    orders: list[Int64] = []
    edges, files, sizes = [0], [], []
    columns = [sample.columns.get(name.lower()) for name in plan.columns]
    for number, group in enumerate(plan.groups):
        rows = np.flatnonzero(row_group == number)
        pieces = min(group.outputs, len(rows) // _FEWEST_ROWS)
        if not pieces or any(column is None for column in columns):
            continue
        keys = pa.table(
            [c.values.take(pa.array(rows)) for c in columns if c is not None],
            [f"c{i}" for i in range(len(columns))],
        )
        order, cuts = arrange(layout, keys, len(rows), pieces)
        orders.append(rows if order is None else rows[order])
        held = [end - begin for begin, end in pairwise(cuts) if end > begin]
        edges += [edges[-1] + cut for cut in np.cumsum(held).tolist()]
        files += [group.outputs / len(held)] * len(held)
        sizes += [group.num_bytes * count / len(rows) for count in held]
    found = None
    known: list[SimulatedFilter] = []
    if orders:
        every, ends = np.concatenate(orders), np.array(edges, np.int64)
        found = SimulatedFiles(sample, every, ends)
        rows = np.diff(ends) * max(sample.whole / len(sample), 1) / np.array(files)
        known = [
            SimulatedFilter(each, sample.columns[each.column], every, ends, rows)
            for each in filters
            if each.column in sample.columns
        ]
    return NewFiles(
        found,
        np.array(files, np.float64),
        np.array(sizes, np.float64),
        float(sum(group.outputs for group in plan.groups)),
        float(sum(group.num_bytes for group in plan.groups)),
        tuple(known),
    )


class CurrentFiles:
    """The files that scans read today, asked by their real bounds, filters and value lists.

    Args:
        fields: the table's data columns.
    """

    def __init__(self, listed: Listed, index: IndexSnapshot, fields: Sequence[Field]) -> None:
        self._files, self._index = listed.files, index
        self._ordinals = index.match(listed.files)
        owners = listed.owners.to_pylist()
        names = {name: i for i, name in enumerate(dict.fromkeys(owners))}
        self._owner = np.array([names[name] for name in owners], np.int32)
        self._paths = listed.files.paths.to_pylist()
        self._asked = [IndexedFiles(each, tuple(fields)) for each in self.indexes]

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Of the table's index: new files get them, too."""
        return filters_of(self._index)

    @property
    def indexes(self) -> tuple[IndexSnapshot, ...]:
        """The indexes whose statistics tell what is kept."""
        clustered = self._index.clustered
        return (self._index,) if clustered is None else (self._index, clustered.index)  # type: ignore[return-value]

    def without(self, planned: Collection[str]) -> tuple[Int64, Int64, Int64]:
        """The files that are read if some files are taken away.

        Returns:
            Positions in the listing of files that no index knows; ordinals of files of the table's
            index, and of that of clustered files.
        """
        gone = np.array([path in planned for path in self._paths], np.bool_)
        ordinals = np.where(gone, -1, self._ordinals)
        new: Int64 = np.empty(0, np.int64)
        left = ~gone
        clustered = self._index.clustered
        found = None if clustered is None else clustered.find_replaced(ordinals, self._owner)
        if clustered is not None and found is not None:
            left &= ~found[0]
            new = found[1]
            paths = clustered.index.paths.take(pa.array(new)).to_pylist()
            new = new[np.array([path not in planned for path in paths], np.bool_)]
        own = ordinals[left]
        return np.flatnonzero(left)[own < 0], own[own >= 0], new

    def costs(
        self, groups: Sequence[Sequence[FileState]], open_cost: int
    ) -> Callable[[Sequence[npt.NDArray[np.bool_]]], Floats]:
        """What a scan pays for the files of each group, by what `never_matching` has said.

        Args:
            groups: no two have a file in common. A file that no index knows is read by all scans.
            open_cost: bytes that opening a file is worth.
        """
        number = {state.path: i for i, states in enumerate(groups) for state in states}
        mine = [
            np.array([number.get(path, -1) for path in index.paths.to_pylist()], np.int64)
            for index in self.indexes
        ]
        listed = np.zeros(len(mine[0]), np.bool_)
        listed[self._ordinals[self._ordinals >= 0]] = True
        mine[0][~listed] = -1
        prices = [index.sizes + open_cost for index in self.indexes]

        def paid(never: Sequence[npt.NDArray[np.bool_]]) -> Floats:
            found = np.zeros(len(groups))
            for at, price, skipped in zip(mine, prices, never, strict=True):
                kept = (at >= 0) & ~skipped
                found += np.bincount(at[kept], price[kept], minlength=len(groups))
            return found

        whole = [float(sum(state.size + open_cost for state in states)) for states in groups]
        unknown = np.maximum(
            np.array(whole) - paid([np.zeros(len(at), np.bool_) for at in mine]), 0
        )
        return lambda never: unknown + paid(never)

    def sums(self, planned: Collection[str]) -> _Sums:
        """`without`, as what each file of an index adds to a scan that keeps it."""
        unknown, *held = self.without(planned)
        sizes = self._files.sizes[unknown]
        counts = []
        for index, ordinals in zip(self.indexes, held, strict=False):
            count = np.bincount(ordinals, minlength=index.num_files).astype(np.float64)
            counts.append((count, count * index.sizes))
        return _Sums(float(len(unknown)), float(sizes.sum()), tuple(counts))

    def never_matching(self, question: Question) -> list[npt.NDArray[np.bool_]]:
        """The files of each index that hold no matching row."""
        return [files.never(question.predicate) for files in self._asked]


@dataclass(frozen=True, slots=True)
class _Sums:
    """Files and bytes that are read whatever is asked, and those of each file of each index."""

    files: float
    num_bytes: float
    each: tuple[tuple[Floats, Floats], ...]

    def sum_kept(self, never: Sequence[npt.NDArray[np.bool_]]) -> tuple[float, float]:
        files, size = self.files, self.num_bytes
        for (count, sizes), mask in zip(self.each, never, strict=True):
            files += float(count[~mask].sum())
            size += float(sizes[~mask].sum())
        return files, size

    @property
    def whole(self) -> tuple[float, float]:
        """All files and bytes."""
        files = self.files + sum(float(count.sum()) for count, _ in self.each)
        return files, self.num_bytes + sum(float(sizes.sum()) for _, sizes in self.each)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a table would be like after a plan.

    Attributes:
        files, num_bytes: of the whole table.
        kept: by the logged scans.
    """

    files: float
    num_bytes: float
    kept: KeptByScans


def forecasts(
    questions: Sequence[Question],
    current: CurrentFiles,
    plans: Sequence[tuple[ClusteringPlan, NewFiles] | None],
    open_cost: int,
) -> list[Forecast]:
    """Asks each question of the table as it would be after each plan; None: as it is.

    Args:
        open_cost: bytes that opening a file is worth.
    """
    sums = [
        current.sums(
            frozenset()
            if each is None
            else {state.path for group in each[0].groups for state in group.files}
        )
        for each in plans
    ]
    totals = np.zeros((len(plans), 2))
    weight = sum(question.weight for question in questions)
    for question in questions:
        never = current.never_matching(question)
        for i, (each, held) in enumerate(zip(plans, sums, strict=True)):
            totals[i] += question.weight * np.array(held.sum_kept(never))
            if each is not None:
                skipped = each[1].never(question.predicate)
                totals[i] += question.weight * np.array(each[1].sum_kept(skipped))
    found = []
    for each, held, (files, size) in zip(plans, sums, totals / max(weight, 1e-9), strict=True):
        added = (0.0, 0.0) if each is None else (each[1].all_files, each[1].all_bytes)
        kept = KeptByScans(float(files), float(size), float(size + files * open_cost))
        found.append(Forecast(held.whole[0] + added[0], held.whole[1] + added[1], kept))
    return found
