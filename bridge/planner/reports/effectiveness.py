"""Measures how much an index helps, per column, and advises how to improve it.

Files overlap in a column if their ranges do. The depth at a value is the number of files whose
range contains it, which is what a query for that value must read. In a sorted table the depth is 1.
In a column in random order it is the number of files, and min/max cannot help.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.statistics import ColumnStatistics
from bridge.index.reading.trust import NotBelieved
from bridge.planner.predicate_log import Logged
from bridge.planner.reports.text import count_files, human_bytes

Int64 = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
_POINTS = 2000
_SORTED = 0.05
_MIXED = 0.5
_ENOUGH = 20
"""After this many logged scans, an index that never helped is reported as dead weight."""
_HEAVY = 65_536
"""Bounds of fewer bytes are not worth a word."""
_EQUAL = frozenset({"=", "IN", "IS NOT DISTINCT FROM"})
_RANGE = frozenset({"<", "<=", ">", ">=", "STARTS WITH"})


@dataclass(frozen=True, slots=True)
class ColumnEffect:
    """One column.

    Attributes:
        coverage: share of the files whose bounds are known, or that are all NULL.
        depth: files per value, averaged over values in the files' ranges; ``deepest``: the maximum.
        overlap: 0 if no two files overlap, 1 if all do.
        keeps: share of the files kept by a predicate for one value, 1 % and 10 % of the values.
        constant: whether all files hold the same single value.
        size: bytes in storage; -1 if unknown.
        asked: number of logged scans with a predicate on it, by operator.
        distinct: estimate of its distinct values, as the optimiser gets it; None if unknown.
        distinct_source: ``sketch``, ``sample`` or ``bounds``.
        data: bytes of its values in the files, as far as they are known; -1: of no file.
    """

    name: str
    coverage: float
    depth: float
    deepest: int
    overlap: float
    keeps: tuple[float, float, float]
    constant: bool
    size: int
    asked: Mapping[str, int]
    distinct: float | None = None
    distinct_source: str | None = None
    data: int = -1

    def uses(self, operators: frozenset[str]) -> int:
        return sum(count for op, count in self.asked.items() if op in operators)


@dataclass(frozen=True, slots=True)
class IndexEffect:
    """One index, or min/max as a whole.

    Attributes:
        coverage: share of the files that it covers.
        size: bytes in storage.
        visible: whether planners use it.
        scans, seen, skipped: logged scans that used it, files it evaluated, and files it skipped.
    """

    name: str
    coverage: float
    size: int
    visible: bool
    scans: int
    seen: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Advice:
    """One recommendation.

    Attributes:
        kind: ``cluster``, ``bloom``, ``dead``, ``counts``, ``refresh``, ``failed``, ``log``,
            ``reveal``, ``unknown``.
        on: the column or index.
        why: one sentence with the figures.
        how: a command, if there is one.
    """

    kind: str
    on: str
    why: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Effectiveness:
    """The report on one table's index.

    Attributes:
        files: that scans read, as far as the index knows them.
        clustered_files, replaced_files: of them, those that clustering wrote; and the files of the
            table in place of which they are read.
        unknown_files: files of the table that are new or changed since the build.
        failed_files: files of the table that could not be read when they were indexed.
        not_believed: writers of whose statistics some stay unknown.
        written: times of the oldest and the newest file, in microseconds since the epoch; None: of
            no file.
    """

    table: str
    generation: int
    age_seconds: int
    files: int
    unknown_files: int
    failed_files: int
    size: int
    scans: int
    columns: tuple[ColumnEffect, ...]
    indexes: tuple[IndexEffect, ...]
    advice: tuple[Advice, ...]
    clustered_files: int = 0
    replaced_files: int = 0
    not_believed: tuple[NotBelieved, ...] = ()
    written: tuple[int, int] | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def column_effect(
    name: str, statistics: ColumnStatistics | None, files: int, size: int, log: Sequence[Logged]
) -> ColumnEffect:
    """Measures one column by its bounds in all files and by the query log."""
    asked: Counter[str] = Counter()
    for scan in log:
        asked.update({op for column, op in scan.asked if column.lower() == name.lower()})
    used = dict(sorted(asked.items()))
    if statistics is None or not files:
        return ColumnEffect(name, 0.0, float(files), files, 1.0, (1.0, 1.0, 1.0), False, size, used)
    known, null = _known(statistics, files)
    lower, upper, values = _numbers(statistics, known)
    unknown = files - len(lower) - null
    coverage = 1 - unknown / files
    if not len(lower):
        depth = float(unknown)
        share = unknown / files
        return ColumnEffect(
            name, coverage, depth, unknown, 1.0, (share, share, share), False, size, used
        )
    lower.sort()
    upper.sort()
    values.sort()
    points = values[np.linspace(0, len(values) - 1, min(_POINTS, len(values))).astype(np.int64)]
    depth = float(_kept(lower, upper, points, points).mean())
    deepest = int(_kept(lower, upper, lower, lower).max())
    keeps = [depth] + [_ranged(lower, upper, values, share) for share in (0.01, 0.1)]
    one, low, high = (min((k + unknown) / files, 1.0) for k in keeps)
    overlap = (depth - 1) / (len(lower) - 1) if len(lower) > 1 else 0.0
    constant = unknown == 0 and bool(lower[0] == upper[-1])
    return ColumnEffect(
        name, coverage, depth + unknown, deepest + unknown, max(overlap, 0.0), (one, low, high),
        constant, size, used,
    )  # fmt: skip


def _known(statistics: ColumnStatistics, files: int) -> tuple[npt.NDArray[np.bool_], int]:
    """The files with both bounds, and the number of files that hold only NULL."""
    known = np.ones(files, np.bool_)
    for mask in (statistics.lower_known, statistics.upper_known):
        if mask is not None:
            known &= mask
    if statistics.all_null is None:
        return known, 0
    return known & ~statistics.all_null, int(np.count_nonzero(statistics.all_null))


def _numbers(
    statistics: ColumnStatistics, known: npt.NDArray[np.bool_]
) -> tuple[Numbers, Numbers, Numbers]:
    """Bounds as numbers in the same order, and sample values between them.

    Only the bounds are known. Numbers are assumed to be uniform over each file's range. For text
    and wide decimals the middle of the range by rank is used.
    """
    if not isinstance(statistics.lower, pa.Array):
        low = np.nan_to_num(np.asarray(statistics.lower)[known].astype(np.float64))
        high = np.nan_to_num(np.asarray(statistics.upper)[known].astype(np.float64))
        parts = [low * (1 - share) + high * share for share in (0.125, 0.375, 0.625, 0.875)]
        return low, high, np.concatenate(parts)
    mask = pa.array(known)
    both: tuple[Any, Any] = (statistics.lower, statistics.upper)
    bounds = [array.filter(mask) for array in both]
    ranks = pc.rank(pa.concat_arrays(bounds), sort_keys="ascending", tiebreaker="dense")
    found = ranks.to_numpy().astype(np.float64)
    low, high = found[: len(bounds[0])].copy(), found[len(bounds[0]) :].copy()
    return low, high, (low + high) / 2


def _kept(lower: Numbers, upper: Numbers, low: Numbers, high: Numbers) -> Int64:
    """The number of files whose range intersects [low, high]; lower and upper are sorted."""
    begun = np.searchsorted(lower, high, side="right")
    ended = np.searchsorted(upper, low, side="left")
    return (begun - ended).astype(np.int64)


def _ranged(lower: Numbers, upper: Numbers, values: Numbers, share: float) -> float:
    """The average number of files kept by a range with this share of the values."""
    span = max(int(len(values) * share), 1)
    last = max(len(values) - 1 - span, 0)
    starts = np.linspace(0, last, min(_POINTS, len(values))).astype(np.int64)
    stops = np.minimum(starts + span, len(values) - 1)
    return float(_kept(lower, upper, values[starts], values[stops]).mean())


def index_effect(
    name: str, coverage: float, size: int, visible: bool, log: Sequence[Logged]
) -> IndexEffect:
    """Sums up the query log's entries of an index."""
    stages = [(t, k) for scan in log for index, t, k in scan.stages if index == name]
    seen = sum(t for t, _ in stages)
    kept = sum(k for _, k in stages)
    return IndexEffect(name, coverage, size, visible, len(stages), seen, seen - kept)


def advise(found: Effectiveness, table: str, command: str) -> tuple[Advice, ...]:
    """Recommendations, the most useful first.

    Args:
        table: the table's name in reports.
        command: the table's name in commands.
    """
    advice: list[Advice] = []
    if found.unknown_files:
        advice.append(
            Advice(
                "refresh",
                table,
                f"every query reads {count_files(found.unknown_files)} that the index lacks",
                f"skipbridge index refresh {command}",
            )
        )
    if found.failed_files:
        advice.append(
            Advice(
                "failed",
                table,
                f"every query reads {count_files(found.failed_files)} that could not be indexed",
                f"skipbridge index show {command} --failed",
            )
        )
    unknown = [column.name for column in found.columns if found.files and not column.coverage]
    if unknown:
        why = "the index knows no bounds, so that only a test for NULL can skip files by it"
        advice.append(Advice("unknown", ", ".join(unknown), why))
    advice += _clustering(found, command)
    advice += _blooms(found, command)
    advice += _dead(found, command)
    if not found.scans:
        advice.append(
            Advice(
                "log",
                table,
                "no predicate is logged: what queries ask is not known",
                "set planner.predicate_log to a file",
            )
        )
    return tuple(advice)


def _clustering(found: Effectiveness, command: str) -> list[Advice]:
    """The column by which sorting would save the most files of logged scans."""
    best: tuple[float, ColumnEffect] | None = None
    for column in found.columns:
        uses = column.uses(_EQUAL) + column.uses(_RANGE)
        if not uses or column.constant or column.overlap < _SORTED:
            continue
        # If the table were sorted by it, a value would be in one file, a range in its share.
        one = column.keeps[0] * _left(found, column.name) - 1 / max(found.files, 1)
        ranged = column.keeps[1] - 0.01 - 1 / max(found.files, 1)
        saved = column.uses(_EQUAL) * one + column.uses(_RANGE) * ranged
        if saved > 0 and (best is None or saved > best[0]):
            best = (saved, column)
    if best is None:
        return []
    saved, column = best
    uses = column.uses(_EQUAL) + column.uses(_RANGE)
    return [
        Advice(
            "cluster",
            column.name,
            f"{uses} of {found.scans} logged scans ask about it, and {column.depth:.0f} of "
            f"{found.files} files hold a value: sorted by it, about "
            f"{100 * saved / uses:.0f} % of the files less",
            f"skipbridge cluster advise {command}",
        )
    ]


def _left(found: Effectiveness, column: str) -> float:
    """The share of files that the column's filters and lists leave when it is asked for a value."""
    names = {f"bloom({column.lower()})", f"values({column.lower()})"}
    left = 1.0
    for index in found.indexes:
        if index.name.lower() in names and index.visible:
            kept = 1 - index.skipped / index.seen if index.seen else 0.0
            left *= 1 - index.coverage * (1 - kept)
    return left


def _blooms(found: Effectiveness, command: str) -> list[Advice]:
    """Unsorted columns queried by value, where a bloom filter helps without a rewrite."""
    held = {index.name.lower() for index in found.indexes}
    return [
        Advice(
            "bloom",
            column.name,
            f"{column.uses(_EQUAL)} logged scans ask it for values, and min/max keeps "
            f"{100 * column.keeps[0]:.0f} % of the files",
            f"skipbridge index build {command} --bloom {shlex.quote(column.name)}",
        )
        for column in found.columns
        if column.uses(_EQUAL) and column.overlap >= _MIXED and not column.constant
        and not {f"bloom({column.name.lower()})", f"values({column.name.lower()})"} & held
    ]  # fmt: skip


def _dead(found: Effectiveness, command: str) -> list[Advice]:
    advice: list[Advice] = []
    for index in found.indexes:
        if index.name == "minmax":
            continue
        if not index.visible:
            advice.append(
                Advice(
                    "reveal",
                    index.name,
                    f"it takes {human_bytes(index.size)} and planners pass it over",
                    f"skipbridge index reveal {command} {shlex.quote(index.name)}",
                )
            )
        elif found.scans >= _ENOUGH and not index.skipped:
            why = (
                f"skipped no file in {index.scans} logged scans"
                if index.scans
                else f"none of {found.scans} logged scans asked it"
            )
            advice.append(
                Advice(
                    "dead",
                    index.name,
                    f"it takes {human_bytes(index.size)} and {why}",
                    f"skipbridge index drop {command} {shlex.quote(index.name)}",
                )
            )
    for column in found.columns:
        useless = column.overlap > 0.95 and column.keeps[0] > 0.95 and column.coverage > 0
        heavy = column.size >= max(0.01 * found.size, _HEAVY)
        if useless and heavy and not column.uses(_EQUAL | _RANGE):
            advice.append(
                Advice(
                    "counts",
                    column.name,
                    f"its bounds skip nothing and take {human_bytes(column.size)}",
                    f"skipbridge index build {command} --mode "
                    f"{shlex.quote(column.name + '=counts')}",
                )
            )
    return advice
