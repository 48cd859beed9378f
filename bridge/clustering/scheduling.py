"""Makes plans: from the listed files of a table and what its index knows of them.

Only files that the index holds in their listed state are planned. A file that
several partitions own, that a clustered one replaces already, or that waits in another plan is left
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.data_files import can_rewrite, check_format
from bridge.clustering.eligibility import Limits, PartitionFilter, plan_groups
from bridge.clustering.groupings.grouping import Candidates
from bridge.clustering.plan import Plan, PlannedGroup
from bridge.clustering.ranks import boundaries, rank
from bridge.clustering.registry import grouping, layout
from bridge.clustering.timeline import Timeline
from bridge.errors import ColumnNotFound, InvalidRequest, UnsupportedTable
from bridge.expression.format import format_value
from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics
from bridge.index.listed import Listed
from bridge.index.manifest import Manifest
from bridge.index.replacements import FileState
from bridge.index.snapshot import IndexSnapshot
from bridge.table.model import Table
from bridge.table.registry import DIRECTORY
from bridge.types import Field, Type

_BETWEEN = "\0"
"""Between the partitions that own one file."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """What a plan is to do.

    Attributes:
        columns: sort columns, most important first.
        again: files that were clustered are rewritten too, from their old files.
    """

    layout: str = "binpack"
    columns: tuple[str, ...] = ()
    grouping: str = "size"
    limits: Limits = field(default_factory=Limits)
    partitions: PartitionFilter = field(default_factory=PartitionFilter)
    compression: str | None = None
    row_group_bytes: int = 128 * 1024**2
    again: bool = False


def check_table(table: Table) -> None:
    """Errors: UnsupportedTable: its files cannot be clustered."""
    if table.table_format != DIRECTORY:
        raise UnsupportedTable(
            f"{table.name} is a {table.table_format} table",
            "skipbridge clusters plain tables of files; use the format's own service",
        )
    check_format(table.format, str(table.name))


def pending_files(timeline: Timeline, manifest: Manifest) -> list[FileState]:
    """Files that plans will rewrite which are neither completed nor ended.

    Errors:
        FileCorrupt: a plan is damaged.
    """
    return [
        file
        for each in timeline.states(manifest)
        if each.pending
        for group in timeline.plan(each.instant).groups
        for file in group.files
    ]


def make_plan(
    instant: str,
    table: Table,
    listed: Listed,
    index: IndexSnapshot,
    strategy: Strategy,
    pending: Iterable[FileState] = (),
) -> Plan:
    """A plan; it has no group if nothing is worth a rewrite.

    Args:
        pending: files that other plans will rewrite.

    Errors:
        ColumnNotFound, InvalidRequest: a sort column does not exist, or cannot be sorted by.
        InvalidConfiguration: no such layout or grouping, or a wrong number of columns.
        UnsupportedTable.
    """
    check_table(table)
    fields = [_field(table, name) for name in strategy.columns]
    if len({f.name.lower() for f in fields}) < len(fields):
        raise InvalidRequest(
            f"a column is named twice: {', '.join(strategy.columns)}", "name each column once"
        )
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
        found = index.clustered.replaced(ordinals, place)
        if found is not None:
            wanted &= ~found[0]
    waiting = {(state.path, state.size, state.modified) for state in pending}
    if waiting:
        here = zip(
            files.paths.to_pylist(), files.sizes.tolist(), files.modified.tolist(), strict=True
        )
        wanted &= np.array([each not in waiting for each in here], np.bool_)
    at = np.flatnonzero(wanted)
    known = index.statistics(tuple(Field(c.name, c.type) for c in table.columns))
    columns = [known.column(BoundReference((f.name,), f.type)) for f in fields]
    ranks = [_ranks(column, ordinals[at]) for column in columns]
    partitions = _candidates(listed, at, owners, ranks)
    groups = plan_groups(
        {name: each for name, (_, each) in partitions.items()},
        by,
        strategy.limits,
        strategy.partitions,
    )
    planned = []
    for number, (name, members) in enumerate(groups):
        places = partitions[name][0][members]
        states = tuple(_state(listed, int(i)) for i in places)
        planned.append(
            PlannedGroup(
                number,
                name,
                states,
                strategy.limits.outputs(sum(state.size for state in states)),
                tuple(
                    (f.name, _spelled(column, ordinals[places], f.type))
                    for f, column in zip(fields, columns, strict=True)
                ),
                listed.format_of(int(places[0]), table.format),
            )
        )
    return Plan(
        instant,
        str(table.name),
        table.location,
        strategy.grouping,
        strategy.layout,
        tuple(f.name for f in fields),
        tuple(planned),
        strategy.compression,
        strategy.row_group_bytes,
    )


def _field(table: Table, name: str) -> Field:
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


def _state(listed: Listed, i: int) -> FileState:
    files = listed.files
    etag = None if files.etags is None else files.etags[i].as_py()
    return FileState(files.paths[i].as_py(), int(files.sizes[i]), int(files.modified[i]), etag)


def _candidates(
    listed: Listed,
    at: npt.NDArray[np.int64],
    owners: Sequence[str],
    ranks: Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]],
) -> dict[str, tuple[npt.NDArray[np.int64], Candidates]]:
    """The candidates of each partition, with their places in the listing."""
    low = np.stack([r[0] for r in ranks]) if ranks else np.empty((0, len(at)), np.int64)
    high = np.stack([r[1] for r in ranks]) if ranks else np.empty((0, len(at)), np.int64)
    members: dict[str, list[int]] = {}
    for n, i in enumerate(at.tolist()):
        members.setdefault(owners[i], []).append(n)
    found = {}
    for name, held in members.items():
        place = at[held]
        files = listed.files
        found[name] = (
            place,
            Candidates(
                tuple(files.paths.take(pa.array(place)).to_pylist()),
                files.sizes[place],
                files.modified[place],
                low[:, held],
                high[:, held],
            ),
        )
    return found


def _ranks(
    column: ColumnStatistics | None, ordinals: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Ranks of the bounds of some files; unknown bounds span everything."""
    count = len(ordinals)
    if column is None or not count:
        return np.full(count, -1, np.int64), np.full(count, 2**62, np.int64)
    low, high = (_taken(bounds, ordinals) for bounds in (column.lower, column.upper))
    both = pa.concat_arrays([low, high])
    edges = boundaries(both, len(both), len(both))
    lower, upper = rank(low, edges), rank(high, edges)
    for ranks, known, bounds, unknown in (
        (lower, column.lower_known, low, -1),
        (upper, column.upper_known, high, 2**62),
    ):
        if known is not None:
            ranks[~known[ordinals]] = unknown
        if bounds.null_count:
            ranks[bounds.is_null().to_numpy(zero_copy_only=False)] = unknown
    return lower, upper


def _taken(bounds: Any, ordinals: npt.NDArray[np.int64]) -> pa.Array:
    if isinstance(bounds, np.ndarray):
        return pa.array(bounds[ordinals])
    found = bounds.take(pa.array(ordinals))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _spelled(
    column: ColumnStatistics | None, ordinals: npt.NDArray[np.int64], type: Type
) -> tuple[tuple[str | None, str | None], ...]:
    """Least and greatest value of each file as text; None where unknown."""
    if column is None:
        return tuple((None, None) for _ in ordinals)
    sides = []
    for bounds, known in (
        (column.lower, column.lower_known),
        (column.upper, column.upper_known),
    ):
        values = _taken(bounds, ordinals).to_pylist()
        sure = [True] * len(values) if known is None else known[ordinals].tolist()
        sides.append([_text(v, type) if k else None for v, k in zip(values, sure, strict=True)])
    return tuple(zip(*sides, strict=True))


def _text(value: Any, type: Type) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if not isinstance(value, int | float):
        return str(value)
    return format_value(bool(value) if type.kind.value == "boolean" else value, type)
