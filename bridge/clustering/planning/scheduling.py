"""Makes plans: from the listed files of a table and what its index knows of them.

Only files that the index holds in their listed state are planned, and files that replace such ones
(`eligibility` says when). A file that several partitions own, that a clustered one replaces
already, or that waits in another plan is left alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.groupings.grouping import Candidates, Grouping, Tells
from bridge.clustering.plan import ClusteringPlan, PlannedGroup
from bridge.clustering.planning.depth import (
    deeper_than,
    instant_of,
    of_one_rewrite,
    overlap_depth,
    rewrites_of,
)
from bridge.clustering.planning.eligibility import Limits, PartitionFilter, plan_groups
from bridge.clustering.planning.plannable import Plannable, bounds_in
from bridge.clustering.registry import group_filter, grouping, layout
from bridge.clustering.timeline import Timeline, Waiting
from bridge.formats.parquet.bloom_types import may_have_bloom
from bridge.formats.registry import can_rewrite, check_format
from bridge.index.building.listed import Listed
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.replacements import FileState
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import (
    BridgeError,
    ColumnNotFound,
    FileCorrupt,
    InvalidRequest,
    UnsupportedTable,
)
from bridge.kernel.types import Field
from bridge.storage.port import FileTable
from bridge.table.model import CatalogTable
from bridge.table.registry import DIRECTORY

_MOST_METRICS, _MOST_VALUES = 200, 2_000_000
"""Columns beside those of the order of which a plan keeps bounds, and bounds in all."""
_BETWEEN = "\0"
"""Between the partitions that own one file."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """What a plan is to do.

    Attributes:
        layout, grouping: empty: the usual one for the columns, see `with_usual`.
        columns: sort columns, most important first.
        again: files that were clustered are rewritten too, from their old files.
        depth: only files of a greater overlap depth are rewritten, whatever their size, and
            clustered ones as they are today; None: files that are small.
        filters: group filters; a group is planned only if all of them keep it.
        bloom: what new Parquet files get besides; see `data_files.Writing`.
    """

    layout: str = "binpack"
    columns: tuple[str, ...] = ()
    grouping: str = "size"
    limits: Limits = field(default_factory=Limits)
    partitions: PartitionFilter = field(default_factory=PartitionFilter)
    compression: str | None = None
    row_group_bytes: int = 128 * 1024**2
    again: bool = False
    depth: int | None = None
    filters: tuple[str, ...] = ()
    bloom: tuple[str, ...] = ()


def usual_grouping(columns: Sequence[str]) -> str:
    """The grouping if none is named."""
    return "overlap" if columns else "size"


def with_usual(strategy: Strategy, several: str = "kdtree") -> Strategy:
    """The strategy with the usual layout and grouping where it names none.

    Args:
        several: the layout for several columns.
    """
    columns = strategy.columns
    usual = "binpack" if not columns else "linear" if len(columns) == 1 else several
    by = strategy.grouping or usual_grouping(columns)
    return replace(strategy, layout=strategy.layout or usual, grouping=by)


def check_table(table: CatalogTable) -> None:
    """Errors: UnsupportedTable: its files cannot be clustered."""
    if table.table_format != DIRECTORY:
        raise UnsupportedTable(
            f"{table.name} is a {table.table_format} table",
            "this is for plain tables of files; of other formats, Hudi tables alone are clustered, "
            "and all readers see that at once",
        )
    check_format(table.format, str(table.name))


def pending_files(waiting: Waiting) -> list[FileState]:
    """Files that plans will rewrite. A damaged plan rewrites none."""
    return [file for _, plan in waiting.plans for group in plan.groups for file in group.files]


def alike_plans(timeline: Timeline, manifest: Manifest, strategy: Strategy) -> set[str]:
    """Instants of completed plans with the layout and the columns of a strategy."""
    found = set()
    for each in timeline.states(manifest):
        if each.state == "completed":
            # Damaged, or cleaned away meanwhile: its files count as laid out otherwise.
            with suppress(FileCorrupt, InvalidRequest):
                plan = timeline.plan(each.instant)
                if (plan.layout, plan.columns) == (strategy.layout, strategy.columns):
                    found.add(each.instant)
    return found


def make_plan(
    instant: str,
    table: CatalogTable,
    listed: Listed,
    index: IndexSnapshot,
    strategy: Strategy,
    pending: Iterable[FileState] = (),
    alike: Collection[str] = (),
    own: Collection[str] = (),
) -> ClusteringPlan:
    """A plan; it has no group if nothing is worth a rewrite.

    Args:
        pending: files that other plans will rewrite.
        alike: instants of completed plans with this layout and these columns.
        own: instants whose files are not taken up.

    Errors:
        ColumnNotFound, InvalidRequest: a sort column does not exist, or cannot be sorted by.
        InvalidConfiguration: no such layout or grouping, or a wrong number of columns.
        UnsupportedTable.
    """
    check_table(table)
    fields = [sort_field(table, name) for name in strategy.columns]
    if len({f.name.lower() for f in fields}) < len(fields):
        raise InvalidRequest(
            f"a column is named twice: {', '.join(strategy.columns)}", "name each column once"
        )
    if strategy.depth is not None and not fields:
        raise InvalidRequest("an overlap depth without sort columns", "give sort columns")
    if strategy.depth is not None and strategy.again:
        raise InvalidRequest(
            "an overlap depth takes clustered files as they are, not their old files",
            "leave out --again or --overlap-depth",
        )
    bloom = tuple(_bloomed(table, name).name for name in strategy.bloom)
    layout(strategy.layout, len(fields))
    by = grouping(strategy.grouping)
    files = listed.files
    ordinals = index.match(files)
    owners = listed.owners.to_pylist()
    wanted = ordinals >= 0
    for i in np.flatnonzero(wanted).tolist():
        shared = _BETWEEN in owners[i]
        wanted[i] = not shared and can_rewrite(listed.format_of(i, table.format))
    if not strategy.again and index.clustered is not None:
        names = {name: i for i, name in enumerate(dict.fromkeys(owners))}
        place = np.array([names[name] for name in owners], np.int32)
        replaced = index.clustered.find_replaced(ordinals, place)
        if replaced is not None:
            wanted &= ~replaced[0]
    waiting = {(state.path, state.size, state.modified) for state in pending}
    if waiting:
        here = zip(
            files.paths.to_pylist(), files.sizes.tolist(), files.modified.tolist(), strict=True
        )
        wanted &= np.array([each not in waiting for each in here], np.bool_)
    at = np.flatnonzero(wanted)
    columns = tuple(Field(c.name, c.type) for c in table.columns)
    found = Plannable(
        files.take(at),
        tuple(owners[i] for i in at.tolist()),
        tuple(listed.format_of(i, table.format) for i in at.tolist()),
        bounds_in(index, columns, fields, ordinals[at]),
        np.zeros(len(at), np.bool_),
    )
    if not strategy.again:
        formats = {name: listed.format_of(i, table.format) for i, name in enumerate(owners)}
        current = _current(index, ordinals, owners, columns, fields, waiting, formats, own)
        found = found.join(current)
    partitions = found.candidates()
    rewrites = np.zeros(len(found.files), np.int64)
    if not strategy.again:
        rewrites[:] = [rewrites_of(path) for path in found.files.paths.to_pylist()]
        rewrites = np.maximum(rewrites, found.clustered)
    groups = plan_groups(
        {name: each for name, (_, each) in partitions.items()},
        by,
        strategy.limits,
        replace(strategy.partitions, hour=_hour(instant)),
        eligible=None if strategy.depth is None else deeper_than(strategy.depth),
        filters=[group_filter(name) for name in strategy.filters],
        rewrites={name: rewrites[places] for name, (places, _) in partitions.items()},
    )
    depths = _depths(groups, {name: each for name, (_, each) in partitions.items()})
    planned: list[PlannedGroup] = []
    positions: list[npt.NDArray[np.int64]] = []
    for (name, members), depth in zip(groups, depths, strict=True):
        places = partitions[name][0][members]
        states = tuple(found.state(int(i)) for i in places)
        if bool(found.clustered[places].all()) and of_one_rewrite(states, alike):
            continue
        planned.append(
            PlannedGroup(
                len(planned),
                name,
                states,
                strategy.limits.outputs(sum(state.size for state in states)),
                tuple(
                    (f.name, bounds.texts(places))
                    for f, bounds in zip(fields, found.bounds, strict=True)
                ),
                found.formats[int(places[0])],
                depth,
                _told(by, partitions[name][1], members),
            )
        )
        positions.append(places)
    if _hour(instant) is not None:
        planned = _with_other_metrics(planned, positions, found, index, columns, fields)
    return ClusteringPlan(
        instant,
        str(table.name),
        table.location,
        strategy.grouping,
        strategy.layout,
        tuple(f.name for f in fields),
        tuple(planned),
        strategy.compression,
        strategy.row_group_bytes,
        index.generation,
        bloom,
        strategy.limits.target,
        strategy.limits.packed,
    )


def _told(by: Grouping, files: Candidates, members: Sequence[int]) -> tuple[tuple[str, str], ...]:
    if not isinstance(by, Tells):
        return ()
    return tuple(sorted((str(k), str(v)) for k, v in by.tell(files, members).items()))


def _with_other_metrics(
    groups: Sequence[PlannedGroup],
    positions: Sequence[npt.NDArray[np.int64]],
    found: Plannable,
    index: IndexSnapshot,
    columns: Sequence[Field],
    fields: Sequence[Field],
) -> list[PlannedGroup]:
    """Groups with bounds of the columns that they are not sorted by, as far as they are known."""
    named = {f.name for f in fields}
    others = [c for c in columns if c.name not in named and not c.type.is_nested][:_MOST_METRICS]
    places = np.concatenate([np.empty(0, np.int64), *positions])
    if not others or not 0 < len(places) * len(others) <= _MOST_VALUES:
        return list(groups)
    clustered = found.clustered[places]
    parts = [(index, places[~clustered])]
    if index.clustered is not None:
        parts.append((cast(IndexSnapshot, index.clustered.index), places[clustered]))
    whole: Plannable | None = None
    for known, at in parts:
        with suppress(BridgeError):  # such a column stays unknown
            known.prefetch([(c.name,) for c in others])
        files = found.files.take(at)
        ordinals = known.match(files)
        if (ordinals < 0).any():  # it has changed a moment ago
            return list(groups)
        bounds = bounds_in(known, columns, others, ordinals)
        part = Plannable(files, ("",) * len(at), ("",) * len(at), bounds, found.clustered[at])
        whole = part if whole is None else whole.join(part)
    assert whole is not None
    order = np.concatenate([places[~clustered], places[clustered]])
    place = {position: i for i, position in enumerate(order.tolist())}
    full = []
    for group, mine in zip(groups, positions, strict=True):
        at = np.array([place[i] for i in mine.tolist()], np.int64)
        spelled = ((c.name, b.texts(at)) for c, b in zip(others, whole.bounds, strict=True))
        more = tuple(
            (name, bounds)
            for name, bounds in spelled
            if any(side is not None for each in bounds for side in each)
        )
        full.append(replace(group, metrics=(*group.metrics, *more)))
    return full


def _depths(
    groups: Sequence[tuple[str, list[int]]], partitions: Mapping[str, Candidates]
) -> list[int]:
    """The overlap depth of each group among those of its partition."""
    places: dict[str, list[int]] = {}
    for i, (name, _) in enumerate(groups):
        places.setdefault(name, []).append(i)
    found = [1] * len(groups)
    for name, mine in places.items():
        files = partitions[name]
        if len(mine) > 1 and len(files.low):
            low = np.stack([files.low[:, groups[i][1]].min(axis=1) for i in mine], axis=1)
            high = np.stack([files.high[:, groups[i][1]].max(axis=1) for i in mine], axis=1)
            for i, depth in zip(mine, overlap_depth(low, high).tolist(), strict=True):
                found[i] = depth
    return found


def _hour(instant: str) -> int | None:
    """Hours since the epoch; None if a plan is only simulated."""
    try:
        found = dt.datetime.strptime(instant[:10], "%Y%m%d%H").replace(tzinfo=dt.UTC)
    except ValueError:
        return None
    return int(found.timestamp()) // 3600


def _bloomed(table: CatalogTable, name: str) -> Field:
    """A column that gets a bloom filter. Errors: those of `make_plan`."""
    field = sort_field(table, name)
    if not may_have_bloom(field.type):
        raise InvalidRequest(
            f"{field.name} is {field.type}, for which no bloom filter is written",
            "give columns of text, whole numbers, decimals, dates or times",
        )
    return field


def sort_field(table: CatalogTable, name: str) -> Field:
    for column in table.columns:
        if column.name.lower() == name.lower():
            if column.type.is_nested:
                raise InvalidRequest(
                    f"{column.name} is {column.type}, which has no order", "give plain columns"
                )
            return Field(column.name, column.type)
    if any(key.name.lower() == name.lower() for key in table.partition_keys):
        raise InvalidRequest(
            f"{name} is a partition key, the same in all files of a group", "give data columns"
        )
    raise ColumnNotFound(
        f"{table.name} has no column {name!r}",
        f"its columns are {', '.join(c.name for c in table.columns[:20])}",
    )


def _current(
    index: IndexSnapshot,
    ordinals: npt.NDArray[np.int64],
    owners: Sequence[str],
    columns: Sequence[Field],
    fields: Sequence[Field],
    waiting: Collection[tuple[str, int, int]],
    formats: Mapping[str, str],
    own: Collection[str],
) -> Plannable:
    """The clustered files that are read today and wait in no plan.

    Args:
        formats: of each partition.
        own: instants of plans whose files are left out.
    """
    clustered = index.clustered
    names = {name: i for i, name in enumerate(dict.fromkeys(owners))}
    place = np.array([names[name] for name in owners], np.int32)
    held = None if clustered is None else clustered.find_replaced(ordinals, place)
    new = np.empty(0, np.int64) if held is None else held[1]
    owner = np.empty(0, np.int32) if held is None else held[2]
    files = clustered.index if clustered is not None else index
    assert isinstance(files, IndexSnapshot)
    paths = files.paths.take(pa.array(new)).to_pylist()
    states = zip(paths, files.sizes[new].tolist(), files.modified[new].tolist(), strict=True)
    free = np.array(
        [state not in waiting and instant_of(state[0]) not in own for state in states], np.bool_
    )
    new, owner = new[free], owner[free]
    spelled = list(names)
    return Plannable(
        FileTable(
            files.paths.take(pa.array(new)),
            files.sizes[new],
            files.modified[new],
            files.etags.take(pa.array(new)),
        ),
        tuple(spelled[i] for i in owner.tolist()),
        tuple(formats[spelled[i]] for i in owner.tolist()),
        bounds_in(files, columns, fields, new),
        np.ones(len(new), np.bool_),
    )
