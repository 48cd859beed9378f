"""Which files and partitions are worth a rewrite, and the groups that they form.

The law: a file is in at most one group, and all files of a group belong to one partition. A group
that would only be written again as it is (one file) is not planned unless the caller asks for it.

Without new files nothing is rewritten again. A file that a plan has written is rewritten only
together with new files, only if these and the smaller files of plans have at least as many bytes as
it, and only if fewer files remain. So a rewrite at least doubles the file in which a row is, or
makes files of about the target, except where files join sooner (`_JOINED`).
"""

from __future__ import annotations

import datetime as dt
import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt

from bridge.clustering.group_filters.group_filter import GroupFilter
from bridge.clustering.groupings.grouping import Candidates, Grouping
from bridge.clustering.groupings.overlap import GROUPING as BY_OVERLAP
from bridge.clustering.groupings.range import GROUPING as BY_KEY_RANGE

GIB = 1024**3
MIB = 1024**2
_DAYS = (
    re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(\d{4})(\d\d)(\d\d)(?!\d)"),
    re.compile(r"(?i)\by(?:ear)?=(\d{4})/m(?:onth)?=(\d{1,2})/d(?:ay)?=(\d{1,2})(?!\d)"),
)
_JOINED = 8
"""How many times the bytes of new files the smallest file of plans may have, if a larger one rests
beside it; but not after more rewrites than so many. The next larger one joins, too, if it was not
rewritten more often. So a partition that grew in a few dozen small steps has two files, not one for
each power of two: two files of at most r rewrites hold r (r + 1) / 2 steps."""
Eligible = Callable[[Candidates], np.ndarray]
Mask = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of a plan; sizes are bytes.

    Attributes:
        target: size of new files.
        small: only smaller files are rewritten.
        most_per_group: bytes of the files of one group, whose rows one task puts in order.
        most_groups: groups of one plan; the next plan takes up the rest.
        fewest_files: in a group.
    """

    target: int = GIB
    small: int = 600 * MIB
    most_per_group: int = 2 * GIB
    most_groups: int = 30
    fewest_files: int = 2

    @property
    def packed(self) -> int:
        """Smaller files are rewritten together whatever values they hold."""
        return min(self.small, self.target) // 4

    def eligible(self, sizes: np.ndarray) -> np.ndarray:
        """Marks the files that are small enough; never one larger than the target."""
        return np.asarray((sizes < self.small) & (sizes <= self.target), np.bool_)

    def outputs(self, num_bytes: int) -> int:
        """How many new files of about the target size so many bytes make.

        >>> Limits(target=250).outputs(500), Limits(target=250).outputs(300)
        (2, 1)
        """
        return max(1, (2 * num_bytes + self.target) // (2 * self.target))


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """Which partitions are planned, and in which order.

    Attributes:
        selected: patterns of names, as ``day=2026-01-*``; empty: all.
        newest_first: the order in which groups are planned.
        recent: only so many of the newest partitions; None: all.
        skip: so many of the newest ones are left alone: writers may still add to them.
        days: only partitions of so many days up to the newest one that a name tells; None: all.
        rolling: partitions are divided into so many parts, and each hour has another one; None:
            they are not.
        hour: since the epoch; None: whatever hour it is.
    """

    selected: tuple[str, ...] = ()
    newest_first: bool = True
    recent: int | None = None
    skip: int = 0
    days: int | None = None
    rolling: int | None = None
    hour: int | None = None

    def of(self, names: Sequence[str]) -> list[str]:
        """The partitions to plan, in order.

        >>> PartitionFilter(recent=2).of(["d=9", "d=10", "d=8"])
        ['d=10', 'd=9']
        """
        newest = sorted(set(names), key=_natural, reverse=True)
        end = None if self.recent is None else self.skip + self.recent
        kept = newest[self.skip : end]
        if self.selected:
            kept = [n for n in kept if any(fnmatch.fnmatchcase(n, p) for p in self.selected)]
        if self.days is not None:
            dated = {name: day for name in kept if (day := day_of(name)) is not None}
            first = max(dated.values(), default=dt.date.min).toordinal() - self.days
            kept = [name for name in kept if name in dated and dated[name].toordinal() > first]
        if self.rolling is not None and self.hour is not None:
            turn = self.hour % self.rolling
            kept = [name for name in kept if crc32(name.encode()) % self.rolling == turn]
        return kept if self.newest_first else kept[::-1]


def day_of(name: str) -> dt.date | None:
    """The day in the name of a partition.

    >>> day_of("region=eu/dt=2026-01-31/hour=5")
    datetime.date(2026, 1, 31)
    >>> day_of("year=2026/month=1/day=31")
    datetime.date(2026, 1, 31)
    """
    for form in _DAYS:
        found = form.search(name)
        if found is not None:
            with suppress(ValueError):
                return dt.date(*(int(part) for part in found.groups()))
    return None


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Numbers in names compare as numbers."""
    parts = re.split(r"(\d+)", name)
    return [(p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in parts]


def plan_groups(
    partitions: Mapping[str, Candidates],
    grouping: Grouping,
    limits: Limits,
    chosen: PartitionFilter | None = None,
    *,
    eligible: Eligible | None = None,
    filters: Sequence[GroupFilter] = (),
    rewrites: Mapping[str, Int64] | None = None,
) -> list[tuple[str, list[int]]]:
    """The groups of a plan: a partition, and positions among its candidates.

    Args:
        partitions: the files of each partition. Those not eligible are left out here.
        eligible: marks files, whoever wrote them; None: those that are small enough.
        filters: a group is planned only if all of them keep it.
        rewrites: how often plans have rewritten the rows of each file, at most; None: none did.
    """
    found: list[tuple[str, list[int]]] = []
    for name in (chosen or PartitionFilter()).of(list(partitions)):
        files = partitions[name]
        if eligible is not None:
            kept = np.flatnonzero(eligible(files))
            groups = iter(_within(kept, files, grouping, limits))
        else:
            mine = np.zeros(len(files), np.int64) if rewrites is None else rewrites[name]
            groups = _small(files, mine, grouping, limits)
        for group in groups:
            if len(group) < limits.fewest_files:
                continue
            members = files.some(np.array(group, np.int64)) if filters else files
            if not all(each.keeps(members, limits.target) for each in filters):
                continue
            if len(found) == limits.most_groups:
                return found
            found.append((name, group))
    return found


def _small(
    files: Candidates, rewrites: Int64, grouping: Grouping, limits: Limits
) -> Iterator[list[int]]:
    """Groups of small files. By overlap only files are chosen that are worth opening alone."""
    eligible, written = limits.eligible(files.sizes), rewrites > 0
    new = np.flatnonzero(eligible & ~written)
    packed, by = new, grouping
    if grouping is BY_OVERLAP:
        tiny = files.sizes[new] < limits.packed
        packed, by = new[tiny], BY_KEY_RANGE
        yield from _within(new[~tiny], files, grouping, limits)
    if not len(packed):
        return
    old = np.flatnonzero(eligible & written)
    again = _rewritten(packed, old, files.sizes, rewrites, limits, _JOINED)
    pool = np.sort(np.concatenate([packed, again]))
    groups = _within(pool, files, by, limits)
    alone: list[int] = []
    for group in groups:
        if len(groups) > 1:  # each with new files of its own
            held = np.array(group, np.int64)
            new, old = held[~written[held]], held[written[held]]
            again = _rewritten(new, old, files.sizes, rewrites, limits)
            group = sorted([*new.tolist(), *again.tolist()])
        if len(group) < limits.fewest_files:
            alone += group
        else:
            yield group
    yield from _within(np.array(sorted(alone), np.int64), files, by, limits)


def _rewritten(
    new: Int64, old: Int64, sizes: Int64, rewrites: Int64, limits: Limits, most: int = 0
) -> Int64:
    """Those of the files that plans have written that are rewritten together with new files.

    Args:
        most: rewrites of a file that joins sooner, see `_JOINED`.
    """
    held = int(sizes[new].sum())
    ascending = old[np.argsort(sizes[old], kind="stable")]
    most = most if min(len(new), len(old)) > 1 else 0
    taken, remain = 0, limits.outputs(held)
    for count, i in enumerate(ascending.tolist(), 1):
        joins = count <= 2 and rewrites[i] <= most
        if int(sizes[i]) > held * (_JOINED if joins else 1):
            break
        held += int(sizes[i])
        most = min(most, int(rewrites[i]))
        if limits.outputs(held) - count < remain:
            taken, remain = count, limits.outputs(held) - count
    return ascending[:taken]


def _within(
    places: Int64, files: Candidates, grouping: Grouping, limits: Limits
) -> list[list[int]]:
    """Groups of some files, as positions among all of them."""
    if len(places) < limits.fewest_files:
        return []
    groups = grouping.groups(files.some(places), limits.most_per_group)
    return [sorted(int(places[i]) for i in group) for group in groups]
