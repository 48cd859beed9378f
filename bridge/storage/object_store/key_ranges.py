"""Listings of object stores in ranges of names, side by side, and whether they hold every file.

Ranges need a store that lists keys by name. Some list directory by directory (``a/1`` before
``a-1``), some in no order, some always from the first key on, some nothing after a key that is not
there. Of such a store ranges could overlook files.

Whatever a store's order is: a range is a stretch of it, from where it begins to the page in which
it sees a file that belongs to a later range. If the later ranges have listed such a file, too, the
stretches overlap, from the first key to the last. Then they hold every file. If not, or if a file
comes after one of a later name, the prefix must be listed as a whole.

Of a store which lists in another order, but begins after a key by comparing names, that proves
nothing: what it leaves out is in no range.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from queue import SimpleQueue

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.threads import Threads
from bridge.storage.listed_files import mask
from bridge.storage.port import EMPTY, FileTable
from bridge.storage.reading.requests import carry_count

_START_AFTER = frozenset({"s3", "gs"})
"""Stores that list keys in their order, so that a listing can start at one.

Azure does not with a hierarchical namespace: there ``a/1`` comes before ``a-1``.
"""
_UNORDERED = ("--x-s3", "--xa-s3")
"""How names of S3's directory buckets and of their access points end. These list keys in no order,
and from the first on."""
ListRange = Callable[[str | None, str | None], Iterator[FileTable]]
"""Pages of the files after a name; the last of them is the first that reaches past another name.

Errors: OutOfOrder.
"""


def lists_from_anywhere(uri: str) -> bool:
    """Whether a listing that starts after a path takes only the requests of the pages read."""
    scheme, _, place = uri.partition("://")
    return scheme in _START_AFTER and not place.partition("/")[0].endswith(_UNORDERED)


class OutOfOrder(Exception):
    """What was seen of a listing that may have overlooked files. The pages before it are right."""


class Order:
    """Whether the files of a listing come in the order of their names.

    Attributes:
        broken: the first file that does not, in words; empty as long as all do.
        marker: whether it may be a directory's marker ``d/``, told as ``d`` and so after ``d-1/f``.
    """

    def __init__(self, after: str | None = None) -> None:
        self.broken = ""
        self.marker = False
        self._last = after
        self._came = False

    def follow(self, paths: pa.Array) -> None:
        """More files, as the store gave them."""
        if self.broken or not len(paths):
            return
        first = paths[0].as_py()
        falls = np.flatnonzero(mask(pc.less_equal(paths[1:], paths[:-1])))
        if self._last is not None and first <= self._last:
            self.broken = f"{first} came after {self._last}"
            self.marker = self._last.startswith(first)
            if not self._came:
                self.broken = f"{first} came where what follows {self._last} was asked for"
        elif len(falls):
            at = int(falls[0])
            self.broken = f"{paths[at + 1].as_py()} came after {paths[at].as_py()}"
            self.marker = paths[at].as_py().startswith(paths[at + 1].as_py())
        self._last, self._came = paths[-1].as_py(), True


@dataclass(slots=True)
class _Range:
    """A range that is listed; changed by one thread, and read by another when it has ended.

    Files without content take no part in the proof: they may be markers of directories, which the
    client tells by other names.

    Attributes:
        after: its files have later names.
        until: the last name that may be in it; None for the last range.
        first: the files of its first page that has some.
        passed: files of later ranges that its last page held.
    """

    after: str | None
    until: str | None
    first: pa.Array = field(default_factory=lambda: EMPTY.paths)
    passed: FileTable = EMPTY

    def take(self, page: FileTable) -> FileTable:
        """The files of a page that are in the range."""
        if self.until is not None and page.paths[-1].as_py() > self.until:
            here = mask(pc.less_equal(page.paths, self.until))
            self.passed = page.filter(~here & (page.sizes > 0))
            page = page.filter(here)
        if not len(self.first):
            self.first = page.filter(page.sizes > 0).paths
        return page


def list_ranges(listed: ListRange, bounds: Sequence[str]) -> Generator[FileTable, None, None]:
    """The pages of all ranges, each as soon as it has come; no file twice.

    Args:
        bounds: different names, sorted. A range ends with each, and the next begins after it.

    Errors:
        OutOfOrder: there may be more files than those given.
    """
    over = threading.Event()
    came: SimpleQueue[FileTable | _Range | BaseException] = SimpleQueue()

    def fill(part: _Range) -> None:
        try:
            for page in listed(part.after, part.until):
                if over.is_set():
                    return
                files = part.take(page)
                if len(files):
                    came.put(files)
            came.put(part)
        except BaseException as error:
            came.put(error)

    ranges = [_Range(after, until) for after, until in pairwise([None, *bounds, None])]
    pool = Threads(len(ranges), "pages")
    try:
        work = carry_count(fill)
        for part in ranges:
            pool.submit(work, part)
        ended = 0
        while ended < len(ranges):
            found = came.get()
            if isinstance(found, BaseException):
                raise found
            if isinstance(found, _Range):
                ended += 1
            else:
                yield found
        yield from _passed(ranges, bounds)
    finally:
        over.set()
        pool.close()


def _passed(ranges: Sequence[_Range], bounds: Sequence[str]) -> Iterator[FileTable]:
    """Files that ranges passed before others were written or deleted in their turn.

    Errors:
        OutOfOrder: the ranges do not overlap.
    """
    firsts = given = pa.concat_arrays([part.first for part in ranges])
    for part in ranges:
        passed = part.passed
        if not len(passed):  # it has listed the store's last key
            continue
        if not mask(pc.is_in(passed.paths, value_set=firsts)).any():
            raise OutOfOrder(f"{passed.paths[0].as_py()} was listed before its turn, not in it")
        late = passed.filter(~mask(pc.is_in(passed.paths, value_set=given)))
        for path in late.paths.to_pylist():
            first = ranges[bisect_left(bounds, path)].first
            if len(first) and path > first[-1].as_py():  # a later page may have held it
                raise OutOfOrder(f"{path} was listed before its turn, perhaps not in it")
        if len(late):
            given = pa.concat_arrays([given, late.paths])
            yield late
