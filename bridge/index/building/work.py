"""The files that one build has read so far."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.index.generations import identity
from bridge.index.generations.entries import Entries, one_chunk
from bridge.index.generations.manifest import Shard
from bridge.index.generations.store import new_id
from bridge.storage.port import FileTable

Progress = Callable[[int, int], None]
_TRIED_AGAIN = ("FILE_UNREADABLE", "FILE_CHANGED")
"""Problems that may go away although the file does not change: missing rights, a busy writer."""
_READ_AS = re.compile(r" \(read as ([^()]+)\)$")


def is_lasting(problem: str | None) -> bool:
    """Whether a file with this problem is not retried until its identity changes."""
    return problem is not None and not problem.startswith(_TRIED_AGAIN)


def same_code(one: str | None, other: str | None) -> bool:
    """Whether two problems have the same code. Texts differ: they may hold a time or request id."""
    return (one or "").partition(":")[0] == (other or "").partition(":")[0]


def read_as(problem: str) -> str:
    """The format as which a file was read that has a is_lasting problem; empty: it is not told.

    >>> read_as("FILE_CORRUPT: file:///t/f ends too early (read as parquet)")
    'parquet'
    """
    found = _READ_AS.search(problem)
    return "" if found is None else found[1]


def lasting_entries(entries: Entries) -> npt.NDArray[np.bool_]:
    """Entries of files that fail again until they change."""
    found = np.zeros(len(entries), np.bool_)
    for i, problem in _problems(entries):
        found[i] = is_lasting(problem)
    return found


def failed_otherwise(entries: Entries, format_now: Callable[[int], str]) -> npt.NDArray[np.bool_]:
    """Entries of files that failed as another format than they have now.

    Args:
        format_now: of the file of an entry.
    """
    found = np.zeros(len(entries), np.bool_)
    for i, problem in _problems(entries):
        found[i] = read_as(problem) not in ("", format_now(i))
    return found


def _problems(entries: Entries) -> Iterator[tuple[int, str]]:
    problems = one_chunk(entries.files["problem"]) if len(entries) else pa.nulls(0)
    for i in np.flatnonzero(problems.is_valid().to_numpy(zero_copy_only=False)).tolist():
        yield i, problems[i].as_py()


@dataclass(slots=True)
class Work:
    """Shards written by this build. Arrays have one slot per listed file.

    Attributes:
        shard_of, ordinal: where the file's entry is; -1 if none was written.
        trusted: whether that entry is trusted.
        seen: the file was read, but got no entry, because the base already says the same.
        problems: why a file could not be read.
        oldest: earliest time of this build's first uncommitted shard, in monotonic seconds.
        lost: entries of files that changed during the build, by shard and ordinal.
    """

    builder: str
    shards: list[Shard]
    shard_of: npt.NDArray[np.int32]
    ordinal: npt.NDArray[np.int64]
    trusted: npt.NDArray[np.bool_]
    seen: npt.NDArray[np.bool_]
    problems: dict[int, str] = field(default_factory=dict)
    lost: list[tuple[int, int]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    written: int = 0
    committed: int = 0
    untrusted: int = 0
    oldest: float = field(default_factory=time.monotonic)

    @staticmethod
    def over(count: int) -> Work:
        """The state before any of ``count`` files is read."""
        nowhere, none = np.full(count, -1, np.int64), np.zeros(count, np.bool_)
        return Work(new_id(), [], nowhere.astype(np.int32), nowhere, none, none.copy())

    @property
    def read(self) -> int:
        """Files read so far, including those of this build's earlier commits."""
        return self.committed + int(np.count_nonzero((self.ordinal >= 0) | self.seen))

    @property
    def doubted(self) -> int:
        mine = ((self.ordinal >= 0) & ~self.trusted) | self.seen
        return self.untrusted + int(np.count_nonzero(mine))

    def begin_anew(self) -> None:
        """Resets the state after a commit; the base now holds what was read."""
        self.committed += int(np.count_nonzero(self.ordinal >= 0))
        self.untrusted += int(np.count_nonzero((self.ordinal >= 0) & ~self.trusted))
        self.builder, self.shards, self.lost = new_id(), [], []
        self.oldest = time.monotonic()
        self.shard_of[:], self.ordinal[:], self.trusted[:] = -1, -1, False

    def forget(self) -> None:
        """Discards what was read; the shards already written become garbage."""
        self.oldest = time.monotonic()
        self.ordinal.fill(-1)
        self.trusted.fill(False)
        self.seen.fill(False)
        self.problems.clear()
        for held in (self.shards, self.lost, self.failed):
            held.clear()

    def move(self, old: FileTable, new: FileTable) -> None:
        """Adopts a new listing; entries of files that were deleted or changed are lost."""
        held = np.flatnonzero((self.ordinal >= 0) | self.seen)
        place = identity.find(new.paths, old.paths.take(pa.array(held)))
        same = place >= 0
        at = np.where(same, place, 0)
        if len(new):
            same &= new.sizes[at] == old.sizes[held]
            same &= new.modified[at] == old.modified[held]
        gone = held[~same]
        gone = gone[self.ordinal[gone] >= 0]
        self.lost += zip(self.shard_of[gone].tolist(), self.ordinal[gone].tolist(), strict=True)
        kept, at = held[same], at[same]
        before, after = self, Work.over(len(new))
        for name in ("shard_of", "ordinal", "trusted", "seen"):
            getattr(after, name)[at] = getattr(before, name)[kept]
            setattr(self, name, getattr(after, name))
        moved = zip(kept.tolist(), at.tolist(), strict=True)
        self.problems = {n: self.problems[k] for k, n in moved if k in self.problems}


@dataclass(slots=True)
class Steps:
    """Divides the files to read among commits, and reports progress over all of them."""

    size: int
    progress: Progress | None
    _before: int = 0
    _total: int = 0

    def next(
        self,
        missing: npt.NDArray[np.int64],
        modified: npt.NDArray[np.int64],
        work: Work,
        *,
        whole: bool,
    ) -> npt.NDArray[np.int64]:
        """The files to read before the next commit: those written last, which no index had yet.

        Args:
            modified: when each listed file was written.
        """
        self._before = work.read
        self._total = self._before + len(missing)
        if whole or not self.size or len(missing) <= self.size:
            return missing
        newest = np.argsort(modified[missing], kind="stable")[-self.size :]
        return missing[np.sort(newest)]

    def tick(self, done: int, _: int) -> None:
        if self.progress is not None:
            self.progress(self._before + done, self._total)
