"""Which layout would help the logged queries most: candidates, simulated on sampled rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.planning.questions import Asked, hot_columns, questions
from bridge.clustering.planning.row_sample import RowSample, SampledFile
from bridge.clustering.planning.simulation import CurrentFiles, Forecast, forecasts, simulate
from bridge.clustering.registry import layout, layouts
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import Field
from bridge.planner.predicate_log import Logged

_HOTTEST = 4
_PLAIN = "binpack"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout, and what scans would keep under it.

    Attributes:
        old_files, old_bytes: that would be rewritten; ``groups``: in so many groups.
        new_files: that would replace them.
        gain: share of the cost of today's scans that would be saved.
    """

    layout: str
    columns: tuple[str, ...]
    groups: int
    old_files: int
    old_bytes: int
    new_files: int
    after: Forecast
    gain: float


@dataclass(frozen=True, slots=True)
class ClusteringAdvice:
    """Candidates by what they gain, the best first.

    Attributes:
        now: the table as it is.
        asked: of how many logged scans the questions are, and of how many the values are known.
        sampled_files, sampled_rows: what was read.
    """

    now: Forecast
    asked: Asked
    sampled_files: int
    sampled_rows: int
    candidates: tuple[Candidate, ...] = field(default=())


def choices(
    scans: Sequence[Logged], fields: Sequence[Field], answered: Collection[str] = ()
) -> list[tuple[str, tuple[str, ...]]]:
    """Layouts and columns to try: each hot column alone, and curves over the two to four hottest.

    Layouts of one's own are tried with as many of these columns as they order by.

    Args:
        answered: columns of which an index tells which values a file holds.
    """
    hot = [name for name, _ in hot_columns(scans, fields, answered)][:_HOTTEST]
    found: list[tuple[str, tuple[str, ...]]] = [(_PLAIN, ())]
    for name, each in sorted(layouts().items()):
        if each.fewest <= 1 <= each.most:
            found += [(name, (column,)) for column in hot]
        for count in range(max(2, each.fewest), min(each.most, len(hot)) + 1):
            found.append((name, tuple(hot[:count])))
    return found


def chosen_files(
    plans: Sequence[ClusteringPlan], index: IndexSnapshot, most: int
) -> list[SampledFile]:
    """Files of plans to read rows of: whole partitions, evenly spread, as far as they fit.

    Of a partition with more files than that, evenly spread ones.
    """
    held: dict[str, dict[str, int]] = {}
    for plan in plans:
        for group in plan.groups:
            files = held.setdefault(group.partition, {})
            files.update((state.path, state.size) for state in group.files)
    found: list[tuple[str, int]] = []
    for name in _spread(sorted(held)):
        inside = sorted(held[name].items())
        room = most - len(found)
        if found and len(inside) > room:
            continue
        if len(inside) > room:
            places = np.linspace(0, len(inside) - 1, room).astype(int).tolist()
            inside = [inside[i] for i in places]
        found += inside
    rows = _rows(index, [path for path, _ in found])
    return [SampledFile(path, size, count) for (path, size), count in zip(found, rows, strict=True)]


def _spread(names: Sequence[str]) -> list[str]:
    """Names so that the first few are spread over all of them.

    >>> _spread(["a", "b", "c", "d", "e"])
    ['a', 'e', 'c', 'b', 'd']
    """
    width = max(1, (len(names) - 1).bit_length())
    order = sorted(range(len(names)), key=lambda i: int(f"{i:0{width}b}"[::-1], 2))
    return [names[i] for i in order]


def _rows(index: IndexSnapshot, paths: Sequence[str]) -> list[int]:
    known: dict[str, int] = {}
    clustered = index.clustered
    for each in (index, None if clustered is None else clustered.index):
        if isinstance(each, IndexSnapshot):
            wanted = np.isin(each.paths.to_numpy(zero_copy_only=False), list(paths))
            at = np.flatnonzero(wanted)
            known.update(zip(each.paths.take(at).to_pylist(), each.rows[at].tolist(), strict=True))
    return [known.get(path, -1) for path in paths]


def advise(
    scans: Sequence[Logged],
    fields: Sequence[Field],
    current: CurrentFiles,
    plan_of: Callable[[str, tuple[str, ...]], ClusteringPlan],
    sample_of: Callable[[Sequence[ClusteringPlan]], RowSample],
    open_cost: int,
) -> ClusteringAdvice:
    """Simulates the candidates.

    Args:
        fields: the table's data columns.
        plan_of: the plan of a layout with its columns.
        sample_of: rows of the files of some plans.
        open_cost: bytes that opening a file is worth.

    Errors: those of the arguments.
    """
    made: list[tuple[str, tuple[str, ...], ClusteringPlan]] = []
    answered = {each.column for each in current.filters}
    for name, columns in choices(scans, fields, answered):
        plan = plan_of(name, columns)
        if plan.groups:
            made.append((name, columns, plan))
    sample = sample_of([plan for _, _, plan in made])
    asked = questions(scans, fields, sample)
    plans = [
        (plan, simulate(plan, sample, layout(name, len(columns)), current.filters))
        for name, columns, plan in made
    ]
    now, *after = forecasts(asked.questions, current, [None, *plans], open_cost)
    found = [
        Candidate(
            name,
            columns,
            len(plan.groups),
            sum(len(group.files) for group in plan.groups),
            sum(group.num_bytes for group in plan.groups),
            sum(group.outputs for group in plan.groups),
            each,
            gain(now, each),
        )
        for (name, columns, plan), each in zip(made, after, strict=True)
    ]
    found.sort(key=lambda c: (c.after.kept.cost, len(c.columns), c.layout))
    return ClusteringAdvice(now, asked, len(sample.paths), len(sample), tuple(found))


def gain(before: Forecast, after: Forecast) -> float:
    """The share of the cost of scans that is saved; negative if they get dearer."""
    return 1 - after.kept.cost / before.kept.cost if before.kept.cost else 0.0
