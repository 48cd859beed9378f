"""The interface of groupings, and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The eligible files of one partition, as columns in path order.

    Attributes:
        paths: canonical URIs.
        sizes: bytes.
        modified: microseconds since the epoch.
        low, high: the ranks of the least and greatest value of each sort column among all bounds
            of that column, one row per column; a file whose bounds are not known spans all ranks.
    """

    paths: tuple[str, ...]
    sizes: Int64
    modified: Int64
    low: Int64
    high: Int64

    def __len__(self) -> int:
        return len(self.paths)

    def some(self, places: Int64) -> Candidates:
        """The files at some positions."""
        return Candidates(
            tuple(self.paths[i] for i in places.tolist()),
            self.sizes[places],
            self.modified[places],
            self.low[:, places],
            self.high[:, places],
        )


class Grouping(Protocol):
    """Chooses which files are rewritten together.

    Attributes:
        name: unique, in lower case.
    """

    name: str

    def groups(self, files: Candidates, most_bytes: int) -> list[list[int]]:
        """Groups of positions.

        The law: groups are disjoint. A file in no group is not rewritten.

        Args:
            most_bytes: of the files of one group together, unless one file alone is larger.
        """
        ...


@runtime_checkable
class Tells(Protocol):
    """What a `Grouping` may have besides: facts that the plan keeps beside a group, for people."""

    def tell(self, files: Candidates, group: Sequence[int]) -> Mapping[str, str]:
        """Facts about a group that `groups` made, by name.

        Args:
            files: as for `groups`.
            group: positions.
        """
        ...


def cut(order: Iterable[int], sizes: Int64, most_bytes: int) -> list[list[int]]:
    """Cuts files into groups of at most so many bytes, in the given order.

    >>> cut([0, 1, 2], np.array([4, 4, 4]), 8)
    [[0, 1], [2]]
    """
    groups: list[list[int]] = []
    held = 0
    for i in order:
        size = int(sizes[i])
        if not groups or held + size > most_bytes:
            groups.append([])
            held = 0
        groups[-1].append(i)
        held += size
    return groups
