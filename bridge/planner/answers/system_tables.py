"""System tables as rows: a table's files, partitions, history, and the contents of its index.

Storage is listed with the table's freshness, as in a scan. Rows come in pieces, so that a million
files are never held as objects at once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from bridge.expression.format import format_value
from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics, Mask
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import BridgeError, InvalidRequest, ReadVersionUnsupported
from bridge.kernel.types import Type
from bridge.planner.scan_plan import ScanPlan
from bridge.table.slices import Int64Array, SliceBatch
from bridge.table.snapshot import HasSegments, HasTimeline, timeline_of

_PIECE = 10_000
_MAX_BOUNDS = 200
_MOST_BYTES = 200_000
"""Files of an index, at most, of which bytes by column are told."""
TableRows = list[list[Any]]
"""One list per column."""
COLUMNS: dict[str, tuple[str, ...]] = {
    "files": (
        "path",
        "partition",
        "size",
        "modified",
        "rows",
        "indexed",
        "bounds",
        "logs",
        "log_bytes",
        "commit",
    ),
    "partitions": (
        "partition",
        "location",
        "files",
        "size",
        "rows",
        "indexed_files",
        "modified",
        "logs",
        "log_bytes",
    ),
    "indexes": (
        "kind",
        "name",
        "column",
        "generation",
        "created",
        "files",
        "files_known",
        "files_exact",
        "problem",
    ),
    "timeline": ("instant", "completion", "action", "state", "size", "modified"),
    "segments": (
        "segment",
        "status",
        "started",
        "finished",
        "format",
        "files",
        "size",
        "indexed_files",
        "views",
        "merged_into",
        "paths",
    ),
}


def system_table_rows(plan: ScanPlan, kind: str, wanted: Collection[str]) -> Iterator[TableRows]:
    """Rows of a system table in pieces; each piece has one list per column of `COLUMNS`.

    Args:
        kind: ``files``, ``partitions``, ``indexes``, ``timeline`` or ``segments``.
        wanted: columns that the caller reads; other costly columns (``bounds``) are all None.
            Times are milliseconds since the epoch; None where they are not known.

    Errors:
        InvalidRequest: there is no such system table.
        ReadVersionUnsupported: the table's format keeps no timeline, or has no segments.
    """
    makers = {
        "files": _files,
        "partitions": _partitions,
        "indexes": _indexes,
        "timeline": _timeline,
        "segments": _segments,
    }
    if kind not in makers:
        raise InvalidRequest(f"no system table ${kind}", f"there are {', '.join(sorted(makers))}")
    return makers[kind](plan, frozenset(wanted))


def _files(plan: ScanPlan, wanted: frozenset[str]) -> Iterator[TableRows]:
    held = _ColumnBytes()
    for whole in plan.batches():
        for begin in range(0, len(whole), _PIECE):
            piece = whole.slice(begin, min(begin + _PIECE, len(whole)))
            yield _file_rows(plan, piece, wanted, held)


class _ColumnBytes:
    """Bytes of columns by index, read once for all pieces. A damaged index tells none."""

    def __init__(self) -> None:
        self._known: dict[int, Mapping[str, Int64Array]] = {}

    def of(self, batch: SliceBatch, column: str) -> list[int | None]:
        """Bytes of a column in each file; None: not known."""
        index = batch.index
        if not isinstance(index, IndexSnapshot):
            return [None] * len(batch)
        if id(index) not in self._known:
            self._known[id(index)] = self._read(index)
        sizes = self._known[id(index)].get(column.lower())
        if sizes is None:
            return [None] * len(batch)
        held = np.where(batch.ordinals >= 0, sizes[batch.ordinals], -1)
        return [None if size < 0 else size for size in held.tolist()]

    def _read(self, index: IndexSnapshot) -> Mapping[str, Int64Array]:
        if index.num_files > _MOST_BYTES:
            return {}
        with suppress(BridgeError):
            return index.column_bytes()
        return {}


def _file_rows(
    plan: ScanPlan, batch: SliceBatch, wanted: frozenset[str], held: _ColumnBytes
) -> TableRows:
    files, known = batch.files, plan.context.statistics(batch)
    names = [p.name for p in batch.partitions]
    logs, log_bytes = _logs(batch)
    based = _has_base(batch).tolist()
    history = plan.snapshot
    commits: list[str | None] = [None] * len(files)
    if "commit" in wanted and isinstance(history, HasTimeline):
        commits = history.commits(batch)
    return [
        [path if b else None for path, b in zip(files.paths.to_pylist(), based, strict=True)],
        [names[i] for i in batch.partition.tolist()],
        [size if b else None for size, b in zip(files.sizes.tolist(), based, strict=True)],
        [None if t < 0 else t // 1000 for t in files.modified.tolist()],
        [None if n < 0 else n for n in known.rows.tolist()],
        (batch.ordinals >= 0).tolist(),
        _bounds(plan, batch, held) if "bounds" in wanted else [None] * len(files),
        logs.tolist(),
        log_bytes.tolist(),
        commits,
    ]


def _has_base(batch: SliceBatch) -> Mask:
    return np.ones(len(batch), np.bool_) if batch.has_base is None else batch.has_base


def _logs(batch: SliceBatch) -> tuple[Int64Array, Int64Array]:
    """The number of logs of each slice, and their bytes."""
    if batch.logs is None:
        return np.zeros(len(batch), np.int64), np.zeros(len(batch), np.int64)
    before = np.concatenate(([0], np.cumsum(batch.logs.files.sizes)))
    return batch.logs.counts, np.diff(before[batch.logs.offsets])


def _bounds(plan: ScanPlan, batch: SliceBatch, held: _ColumnBytes) -> list[str | None]:
    """For each file a JSON object: min, max, NULL count and bytes by column, as far as known."""
    found: list[dict[str, dict[str, Any]]] = [{} for _ in range(len(batch))]
    known = plan.context.statistics(batch)
    for column in plan.table.columns[:_MAX_BOUNDS]:
        if column.type.is_nested:
            continue
        statistics = known.column(BoundReference((column.name,), column.type))
        if statistics is None:
            continue
        lows = _values(statistics, column.type, lower=True)
        highs = _values(statistics, column.type, lower=False)
        nulls = statistics.null_count.tolist()
        sizes = held.of(batch, column.name)
        for row, low, high, null, size in zip(found, lows, highs, nulls, sizes, strict=True):
            entry = {"min": low, "max": high, "nulls": None if null < 0 else null, "bytes": size}
            told = {name: value for name, value in entry.items() if value is not None}
            if told:
                row[column.name] = told
    return [json.dumps(row, ensure_ascii=False) if row else None for row in found]


def _values(statistics: ColumnStatistics, type: Type, *, lower: bool) -> list[str | None]:
    bounds = statistics.lower if lower else statistics.upper
    known = statistics.lower_known if lower else statistics.upper_known
    if isinstance(bounds, np.ndarray):
        values: list[Any] = bounds.tolist()
    else:
        values = bounds.to_pylist()
    if known is not None:
        values = [v if k else None for v, k in zip(values, known.tolist(), strict=True)]
    return [None if v is None else _text(v, type) for v in values]


def _text(value: Any, type: Type) -> str:
    if not isinstance(value, int | float | bytes):
        return str(value)  # a decimal of more than 18 digits
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    return format_value(bool(value) if type.kind.value == "boolean" else value, type)


def _partitions(plan: ScanPlan, wanted: frozenset[str]) -> Iterator[TableRows]:
    """One row per partition, even if its directory comes in several batches.

    Files are base files. Logs count apart, and merging them leaves the number of rows unknown.
    """
    held: dict[str, list[Any]] = {}  # of the batches before, as long as more may follow
    for batch in plan.batches():
        known = plan.context.statistics(batch)
        owner, count = batch.partition, len(batch.partitions)
        rows = np.bincount(owner, np.maximum(known.rows, 0), count)
        doubt = np.bincount(owner, known.rows < 0, count)
        based = _has_base(batch)
        slices = np.bincount(owner, minlength=count)
        files = np.bincount(owner, based, count)
        size = np.bincount(owner, np.where(based, batch.files.sizes, 0), count)
        indexed_files = np.bincount(owner, (batch.ordinals >= 0) & based, count)
        modified = np.full(count, -1, np.int64)
        np.maximum.at(modified, owner, batch.files.modified // 1000)
        logs, log_bytes = (np.bincount(owner, each, count) for each in _logs(batch))
        names = {partition.name for partition in batch.partitions}
        piece = [row for name, row in held.items() if name not in names]
        held = {name: row for name, row in held.items() if name in names}
        for i, partition in enumerate(batch.partitions):
            if not slices[i]:
                continue
            row = [
                partition.name,
                partition.location,
                int(files[i]),
                int(size[i]),
                None if doubt[i] else int(rows[i]),
                int(indexed_files[i]),
                int(modified[i]) if modified[i] >= 0 else None,
                int(logs[i]),
                int(log_bytes[i]),
            ]
            before = held.get(partition.name)  # several partitions may share a location
            held[partition.name] = row if before is None else _merged(before, row)
        if piece:
            yield [list(column) for column in zip(*piece, strict=True)]
    if held:
        yield [list(column) for column in zip(*held.values(), strict=True)]


def _merged(one: list[Any], other: list[Any]) -> list[Any]:
    rows = None if one[4] is None or other[4] is None else one[4] + other[4]
    newest = None if one[6] is None or other[6] is None else max(one[6], other[6])
    files, size, indexed, logs, log_bytes = (one[i] + other[i] for i in (2, 3, 5, 7, 8))
    return [one[0], one[1], files, size, rows, indexed, newest, logs, log_bytes]


def _timeline(plan: ScanPlan, wanted: frozenset[str]) -> Iterator[TableRows]:
    for begin in range(0, len(entries := timeline_of(plan.snapshot)), _PIECE):
        piece = entries[begin : begin + _PIECE]
        yield [
            [each.instant for each in piece],
            [each.completion for each in piece],
            [each.action for each in piece],
            [each.state for each in piece],
            [None if each.size < 0 else each.size for each in piece],
            [None if each.modified < 0 else each.modified // 1000 for each in piece],
        ]


def _segments(plan: ScanPlan, wanted: frozenset[str]) -> Iterator[TableRows]:
    if not isinstance(plan.snapshot, HasSegments):
        raise ReadVersionUnsupported(
            f"{plan.table.name} has no segments: it is a table of the format "
            f"{plan.table.table_format}",
            "only tables made with skipbridge table create --format have them",
        )
    rows = [
        [
            each.id,
            each.status,
            each.started // 1000,
            each.finished // 1000,
            each.format,
            each.files,
            each.size,
            each.indexed_files if each.indexed_files >= 0 else None,
            ", ".join(f"{view}: {state}" for view, state in each.views.items()),
            each.merged_into,
            ",".join(each.paths),
        ]
        for each in plan.snapshot.segment_entries()
    ]
    for begin in range(0, len(rows), _PIECE):
        yield [list(column) for column in zip(*rows[begin : begin + _PIECE], strict=True)]


def _indexes(plan: ScanPlan, wanted: frozenset[str]) -> Iterator[TableRows]:
    """Min/max by column, then every other index that can be opened, then unusable ones."""
    rows: list[list[Any]] = []
    index = plan.view.index
    if index is not None:
        whole = plan.context.pruner_of(index).statistics
        head = [index.generation, index.manifest.created // 1000, index.num_files]
        for column in plan.table.columns:
            if whole is None:
                break
            found = whole.column(BoundReference((column.name,), column.type))
            if found is not None:
                rows.append(["minmax", "minmax", column.name, *head, *_coverage(found), None])
        for opened in index.kinds:
            definition = opened.definition
            problem = None if opened.problem is None else str(opened.problem)
            rows.append([definition.kind, opened.name, definition.on, *head, None, None, problem])
    for missing in plan.view.not_used:
        blank = [None] * 6
        rows.append([missing.index, missing.index, *blank, f"{missing.reason}: {missing.detail}"])
    if rows:
        yield [list(column) for column in zip(*rows, strict=True)]


def _coverage(found: ColumnStatistics) -> tuple[int, int]:
    """Number of files with both bounds (or nothing to bound), and of those with exact bounds."""
    n = len(found.row_count)
    every = np.ones(n, np.bool_)
    known = every if found.lower_known is None else found.lower_known.copy()
    if found.upper_known is not None:
        known = known & found.upper_known
    exact = known if found.exact is None else known & found.exact
    if found.all_null is not None:
        known, exact = known | found.all_null, exact | found.all_null
    return int(np.count_nonzero(known)), int(np.count_nonzero(exact))
