"""Overlap depth: how many files a query for one point of the sort columns has to read.

The depth of a file is the largest number of files, itself included, that share a point of its
range. A file of depth 1 overlaps no other one. In several columns only the lower corners of files
are tried as points, so the depth may be found too small, never too large.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from bridge.clustering.groupings.grouping import Candidates
from bridge.clustering.planning.eligibility import Eligible
from bridge.index.generations.replacements import DIRECTORY, FileState

_WRITTEN = re.compile(rf"/{re.escape(DIRECTORY)}/(\d{{17}})/(.*?)(c\d+)-[^/]*$")
"""The instant, the partition and the group in the path of a new file."""
_NAMED = re.compile(
    rf"/{re.escape(DIRECTORY)}/.*/c\d{{5,}}-\d+-\d{{4,}}-[0-9a-f]{{12}}(?:-(\d{{1,4}}))?[^/]*$"
)
"""A file that a plan wrote, or its copy in a directory that was published; and `rewrites` of it."""
_UNKNOWN = 99
Int64 = npt.NDArray[np.int64]


def overlap_depth(low: Int64, high: Int64) -> Int64:
    """The depth of each file.

    Args:
        low, high: ranks of the least and greatest values, one row per sort column; both inclusive.

    >>> overlap_depth(np.array([[0, 5, 9, 20]]), np.array([[6, 9, 12, 30]])).tolist()
    [2, 2, 2, 1]
    """
    if not len(low) or not low.shape[1]:
        return np.ones(low.shape[1], np.int64)
    return _in_one(low[0], high[0]) if len(low) == 1 else _in_several(low, high)


def deeper_than(depth: int) -> Eligible:
    """Marks the files of a partition whose depth exceeds a threshold, whatever their size.

    A file of a single value is left alone: no rewrite makes it overlap less.
    """

    def eligible(files: Candidates) -> npt.NDArray[np.bool_]:
        several = (files.low < files.high).any(axis=0)
        return np.asarray((overlap_depth(files.low, files.high) > depth) & several, np.bool_)

    return eligible


def of_one_rewrite(files: Sequence[FileState], alike: Collection[str]) -> bool:
    """Whether one group of a plan wrote all of these files, so that it need not be done again.

    Args:
        alike: instants of plans with the layout and the columns that are asked for now.
    """
    groups = set()
    for file in files:
        found = _WRITTEN.search(file.path)
        groups.add(found.groups() if found else None)
    made = groups.pop() if len(groups) == 1 else None
    return made is not None and made[0] in alike


def instant_of(path: str) -> str:
    """The plan that wrote a file; empty if none did, or it was published since."""
    found = _WRITTEN.search(path)
    return found[1] if found else ""


def is_written(path: str) -> bool:
    """Whether a plan wrote a file, published or not."""
    return _NAMED.search(path) is not None


def rewrites_of(path: str) -> int:
    """How often plans have rewritten the row of a file that they rewrote most often, by its name.

    0 if no plan wrote the file; many if its name does not say.
    """
    found = _NAMED.search(path)
    return 0 if found is None else int(found[1] or _UNKNOWN)


def _in_one(low: Int64, high: Int64) -> Int64:
    starts = np.sort(low)
    covered = np.searchsorted(starts, starts, side="right") - np.searchsorted(
        np.sort(high), starts, side="left"
    )
    begin = np.searchsorted(starts, low, side="left")
    end = np.searchsorted(starts, high, side="right")
    # Greatest of covered[begin:end]: of two overlapping windows whose length is a power of two.
    levels = [covered]
    while 2 ** len(levels) <= len(covered):
        held, half = levels[-1], 2 ** (len(levels) - 1)
        levels.append(np.maximum(held[:-half], held[half:]))
    found = np.empty(len(low), np.int64)
    level = np.floor(np.log2(end - begin)).astype(np.int64)
    for number, held in enumerate(levels):
        at = np.flatnonzero(level == number)
        found[at] = np.maximum(held[begin[at]], held[end[at] - 2**number])
    return found


def _in_several(low: Int64, high: Int64) -> Int64:
    covered = np.array([_holding(low, high, low[:, i]).sum() for i in range(low.shape[1])])
    return np.array(
        [
            covered[((low >= low[:, i : i + 1]) & (low <= high[:, i : i + 1])).all(axis=0)].max()
            for i in range(low.shape[1])
        ],
        np.int64,
    )


def _holding(low: Int64, high: Int64, point: Int64) -> npt.NDArray[np.bool_]:
    """Files whose range holds a point."""
    at = point[:, None]
    return np.asarray(((low <= at) & (at <= high)).all(axis=0), np.bool_)
