"""One listing of a table's root in place of one for each of its partitions, on object stores.

There a request lists 1,000 files below a prefix, however many directories they lie in, and a
directory of its own costs a request. The files are given to their partitions by the directory in
their path. Where the root holds much else, partitions are listed one by one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.storage.port import DirectoryListings, FileTable, Int64, concatenate
from bridge.storage.uri import join

PAGE = 1_000
"""Files that a request lists."""
_LEAST = 32
"""Directories from which a common listing may pay."""
_PARALLEL = 8
_PARALLEL_FROM = 16 * PAGE


@dataclass(frozen=True, slots=True)
class TableTree:
    """What is known of a partitioned table before its directories are listed.

    Attributes:
        root: canonical URI of the table.
        partitions: number of partitions that the scan needs.
        total: number of partitions of the table.
        paths: sorted paths of files in the index; None without an index.
    """

    root: str
    partitions: int
    total: int
    paths: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class RootRequest:
    """A listing of a root that should take less time than those of its directories.

    Attributes:
        root: canonical URI.
        most: files at which the listing has taken as long, and is given up.
        hints: paths between which parts are listed side by side.
    """

    root: str
    most: int
    hints: pa.Array | None = None


def common_root(directories: Sequence[str]) -> str:
    """The deepest directory that is, or holds, each of the directories."""
    # With a slash at the end, all that sorts between the first and the last begins like both.
    ends = [f"{d}/" for d in directories]
    root, last = min(ends)[:-1], max(ends)
    while not last.startswith(f"{root}/"):
        root = root.rpartition("/")[0]
    return root


def plan_root_listing(
    tree: TableTree, root: str, directories: int, threads: int
) -> RootRequest | None:
    """How to list the common root of some directories of a table; None if that does not pay.

    Compares how many requests must follow one another. Files that the index does not know are
    counted as one for each partition.

    Args:
        root: the table's own, or a directory below it.
        directories: number of directories below it that are to be listed now.
        threads: how many directories are listed side by side.
    """
    narrower = len(root) > len(tree.root)
    needed = directories if narrower else max(directories, tree.partitions)
    files = directories if narrower else max(needed, tree.total)
    if tree.paths is not None:
        files = max(files, _count_below(tree.paths, root))
    side_by_side = tree.paths is not None and files >= _PARALLEL_FROM
    most = needed * PAGE // threads * (_PARALLEL if side_by_side else 1)
    if needed < _LEAST or files > most:
        return None
    return RootRequest(root, max(most, PAGE), tree.paths if side_by_side else None)


def take_all(pages: Iterable[FileTable], most: int) -> FileTable | None:
    """All files of a listing; None if there are more than ``most``."""
    parts: list[FileTable] = []
    count = 0
    for page in pages:
        count += len(page)
        if count > most:
            return None
        parts.append(page)
    return concatenate(parts)


class RootListing:
    """All files below a root, by directory.

    Args:
        files: sorted by path.
        recursive: a directory's files are all below it, otherwise those directly in it.
    """

    def __init__(self, files: FileTable, recursive: bool) -> None:
        self._files = files
        self._recursive = recursive
        if recursive:
            self._paths: list[str] = files.paths.to_pylist()
            return
        parents = pc.dictionary_encode(pc.replace_substring_regex(files.paths, r"/[^/]*$", ""))
        group = parents.indices.to_numpy()
        if len(group) and (np.diff(group) < 0).any():
            order = np.argsort(group, kind="stable")
            self._files, group = files.take(order), group[order]
        self._numbers = {text: i for i, text in enumerate(parents.dictionary.to_pylist())}
        self._offsets = np.searchsorted(group, np.arange(len(self._numbers) + 1))

    def of(self, directories: Sequence[str]) -> DirectoryListings:
        """The files of some directories; one that is not there is empty."""
        begin, end = self._ranges(directories)
        counts = end - begin
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        positions = np.repeat(begin - offsets[:-1], counts) + np.arange(offsets[-1])
        if len(positions) and (np.diff(positions) == 1).all():
            files = self._files.slice(int(positions[0]), int(positions[-1]) + 1)
        else:
            files = self._files.take(positions)
        return DirectoryListings(files, offsets)

    def _ranges(self, directories: Sequence[str]) -> tuple[Int64, Int64]:
        n = len(directories)
        if not self._recursive:
            names = (d.removesuffix("/") for d in directories)  # a bucket's root ends with one
            number = np.fromiter((self._numbers.get(name, -1) for name in names), np.int64, n)
            known = number >= 0
            begin = np.where(known, self._offsets[np.maximum(number, 0)], 0)
            return begin, np.where(known, self._offsets[number + 1], 0)
        inside = [join(d, "") for d in directories]
        begin = np.fromiter((bisect_left(self._paths, text) for text in inside), np.int64, n)
        after = (text[:-1] + "0" for text in inside)  # "0" follows "/"
        return begin, np.fromiter((bisect_left(self._paths, text) for text in after), np.int64, n)


def _count_below(paths: pa.Array, root: str) -> int:
    def at(text: str) -> int:
        return bisect_left(range(len(paths)), text, key=lambda i: paths[i].as_py())

    return at(f"{root}0") - at(f"{root}/")
