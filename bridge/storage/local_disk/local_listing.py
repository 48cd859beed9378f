"""Lists local directories. Threads stat files while names are still being read.

Calling stat takes four times as long as reading the names, and pyarrow releases the interpreter's
lock for it. A flat directory of 39,000 files takes 107 ms on two cores, and 173 ms sequentially.
"""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from bridge.kernel.errors import InvalidUri
from bridge.kernel.threads import Threads
from bridge.storage.local_disk.local_errors import failure
from bridge.storage.port import EMPTY, DirectoryListings, FileTable, Int64, LinkOutside
from bridge.storage.uri import is_text, printable

_ROOT = "file://"
_THREADS = 2
_CHUNK = 1 << 10
_FIRST_PAGE = 1 << 13
_PAGE = 1 << 16

_Looked = tuple[Int64, Int64]


def list_files(root: str, recursive: bool) -> FileTable:
    """All files below a directory, sorted. Errors: StorageFailure, InvalidUri."""
    return _looked_at(_chunks(root, recursive))


def list_many(roots: Sequence[str], recursive: bool) -> DirectoryListings:
    """`list_files` of several directories, in one pass without an array per directory."""
    paths: list[str] = []
    offsets = np.zeros(len(roots) + 1, np.int64)
    large: list[int] = []
    with _Lookers() as lookers:
        looked = 0
        for number, root in enumerate(roots):
            chunks = 0
            for chunk in _chunks(root, recursive):
                chunk.sort()
                paths += chunk
                chunks += 1
                if len(paths) - looked >= _CHUNK:
                    lookers.look(paths[looked:])
                    looked = len(paths)
            if chunks > 1:
                large.append(number)
            offsets[number + 1] = len(paths)
        if looked < len(paths):
            lookers.look(paths[looked:])
        if not paths:
            return DirectoryListings(EMPTY, offsets)
        uris = _uris(paths)
        sizes, modified = lookers.result()
    files = FileTable(uris, sizes, modified)
    if large:
        order = np.arange(len(paths))
        for number in large:
            begin, end = offsets[number : number + 2].tolist()
            order[begin:end] = begin + pc.sort_indices(uris.slice(begin, end - begin)).to_numpy()
        files = files.take(order)
    return DirectoryListings(files, offsets).filter(files.sizes >= 0)


def list_pages(root: str, recursive: bool, start_after: str | None) -> Iterator[FileTable]:
    """Yields the same in pages: the first pages of a large directory come before it is fully read.

    Args:
        start_after: an absolute path; only paths that sort after it are listed.
    """
    paths: list[str] = []
    chunks = _chunks(root, recursive)
    if start_after is None:
        whole = _small(paths, chunks)
        if whole is not None:
            if len(whole):
                yield whole
            return
    for chunk in chunks:
        paths += chunk
    paths.sort()
    begin = 0 if start_after is None else bisect_right(paths, start_after)
    size = _PAGE if len(paths) - begin <= _PAGE else _FIRST_PAGE
    while begin < len(paths):
        page = paths[begin : begin + size]
        parts = (page[at : at + _CHUNK] for at in range(0, len(page), _CHUNK))
        found = _looked_at(parts)
        if len(found):
            yield found
        begin += size
        size = _PAGE


def _looked_at(chunks: Iterable[list[str]]) -> FileTable:
    """The files of all chunks, sorted. Each chunk is stat-ed while the next one is read."""
    paths: list[str] = []
    with _Lookers() as lookers:
        for chunk in chunks:
            paths += chunk
            lookers.look(chunk)
        return _sorted(paths, lookers)


def _small(paths: list[str], chunks: Iterator[list[str]]) -> FileTable | None:
    """All files of a directory of one page; None if it is larger (and partly read)."""
    with _Lookers() as lookers:
        for chunk in chunks:
            paths += chunk
            if len(paths) > _PAGE:
                return None
            lookers.look(chunk)
        return _sorted(paths, lookers)


def list_directories(root: str) -> list[str]:
    """Paths of the direct subdirectories, sorted. Errors: LinkOutside: it names the others."""
    directories: list[str] = []
    refused: list[InvalidUri] = []
    for _ in _files_of(root, root, directories, refused):
        pass
    if refused:
        found = [_ROOT + path for path in sorted(directories)]
        raise LinkOutside(refused[0].message, refused[0].hint, found)
    return sorted(directories)


class _Lookers:
    """Threads that stat files. None is started for few files."""

    def __init__(self) -> None:
        self._arrow = fs.LocalFileSystem()
        self._pool: Threads | None = None
        self._parts: list[Future[_Looked] | list[str]] = []

    def __enter__(self) -> _Lookers:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def cancel(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def look(self, paths: list[str]) -> None:
        if len(paths) < _CHUNK:
            self._parts.append(paths)
            return
        if self._pool is None:
            self._pool = Threads(_THREADS, "stat")
        self._parts.append(self._pool.submit(self._look, paths))

    def result(self) -> _Looked:
        """Size and mtime of all submitted files, in order; size -1 if deleted meanwhile."""
        parts = [self._look(p) if isinstance(p, list) else p.result() for p in self._parts]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _look(self, paths: list[str]) -> _Looked:
        try:
            infos = self._arrow.get_file_info(paths)
        except OSError as error:
            if len(paths) > 1:  # one of them, which the error must name
                parts = [self._look([path]) for path in paths]
                return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
            raise failure(error, paths[0]) from error
        sizes = (-1 if info.size is None else info.size for info in infos)
        times = (info.mtime_ns or 0 for info in infos)
        count = len(infos)
        return np.fromiter(sizes, np.int64, count), np.fromiter(times, np.int64, count) // 1000


def _sorted(paths: list[str], lookers: _Lookers) -> FileTable:
    if not paths:
        return EMPTY
    uris = _uris(paths)
    order = pc.sort_indices(uris)
    sizes, modified = lookers.result()
    at = order.to_numpy()
    return FileTable(uris.take(order), sizes[at], modified[at]).filter(sizes[at] >= 0)


def _uris(paths: list[str]) -> pa.Array:
    text = pa.large_string()
    try:
        names = pa.array(paths, text)
    except (UnicodeEncodeError, pa.ArrowInvalid) as error:
        wrong = next(path for path in paths if not is_text(path))
        raise InvalidUri(f"{printable(wrong)} is no name in UTF-8", "rename it") from error
    return pc.binary_join_element_wise(pa.scalar(_ROOT, text), names, pa.scalar("", text))


def _chunks(root: str, recursive: bool) -> Iterator[list[str]]:
    """Paths of all files, unordered, in chunks that are large enough for a thread."""
    pending, held = [root], []
    while pending:
        directories: list[str] = []
        for files in _files_of(pending.pop(), root, directories):
            held += files
            if len(held) >= _CHUNK:
                yield held
                held = []
        if recursive:
            pending += directories
    if held:
        yield held


def _files_of(
    directory: str, root: str, directories: list[str], refused: list[InvalidUri] | None = None
) -> Iterator[list[str]]:
    """Paths of the files in a directory. Appends its subdirectories to ``directories``.

    Errors: StorageFailure; InvalidUri: a link out of the root, unless ``refused`` takes it.
    """
    try:
        with os.scandir(directory) as entries:
            while batch := list(islice(entries, _CHUNK)):
                files = [entry.path for entry in batch if entry.is_file(follow_symlinks=False)]
                if len(files) < len(batch):
                    for entry in batch:
                        if entry.is_file(follow_symlinks=False):
                            continue
                        if entry.is_symlink():
                            if entry.name.startswith(".") and not Path(entry.path).exists():
                                continue  # an editor's lock file, not data
                            if _is_circle(entry.path):
                                continue  # like one that leads nowhere: it holds no rows
                            try:
                                _inside(entry.path, root)
                            except InvalidUri as error:
                                if refused is None:
                                    raise
                                refused.append(error)
                                continue
                        (directories if entry.is_dir() else files).append(entry.path)
                yield files
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise failure(error, directory) from error


def _is_circle(link: str) -> bool:
    """Whether links lead back to a link."""
    try:
        Path(link).stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _inside(link: str, root: str) -> None:
    # Skipping the link would lose rows that the engine reads. Following it would leave the root.
    target = os.path.realpath(link)
    above = Path(link).parent
    while True:  # links may form a cycle
        if (os.path.realpath(above) + os.sep).startswith(target + os.sep):
            raise InvalidUri(f"{link} is a link to {target}, above itself", "remove the link")
        if str(above) in (root, os.sep, "."):
            break
        above = above.parent
    if not target.startswith(os.path.realpath(root) + os.sep):
        raise InvalidUri(
            f"{link} is a link to {target}, outside {root}",
            "move the files or name their own place",
        )
