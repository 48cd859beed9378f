"""Local files.

Own code and not obstore's LocalStore: that lists a flat directory of 39,000 files in 280 ms where
this takes 120 ms, sends names through URLs, and does not sync what it writes.
"""

from __future__ import annotations

import errno
import os
import uuid
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from stat import S_ISREG

import numpy as np
import pyarrow as pa
from pyarrow import fs

from bridge.errors import BridgeError, FileUnreadable, InvalidUri, StorageFailure, StorageFull
from bridge.storage.port import EMPTY, FileListing, FileStat, Int64, Range
from bridge.storage.uri import parse

_ROOT = "file://"
_THREADS = 4
_FIRST_PAGE = 1 << 13
_PAGE = 1 << 16
_PARALLEL_FROM = 2_000
"""Below this many files starting threads costs more than it saves."""


class LocalStorage:
    """`Storage` over the machine's own file system; writes are durable before they are seen."""

    def __init__(self) -> None:
        self._arrow = fs.LocalFileSystem()

    def pages(
        self,
        prefix: str,
        *,
        start_after: str | None = None,
        recursive: bool = True,
        hints: pa.Array | None = None,
    ) -> Iterator[FileListing]:
        paths = self._names(prefix, recursive)
        begin = 0 if start_after is None else bisect_right(paths, _path(start_after))
        size = _PAGE if len(paths) - begin <= _PAGE else _FIRST_PAGE
        while begin < len(paths):
            listing = self._listing(paths[begin : begin + size], prefix)
            if len(listing):
                yield listing
            begin += size
            size = _PAGE

    def list_all(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> FileListing:
        return self._listing(self._names(prefix, recursive), prefix)

    def _names(self, prefix: str, recursive: bool) -> list[str]:
        root = _path(prefix)
        paths: list[str] = []
        pending = [root]
        while pending:
            directories, files = _entries(pending.pop(), root)
            paths += files
            if recursive:
                pending += directories
        paths.sort()
        return paths

    def _listing(self, paths: list[str], prefix: str) -> FileListing:
        if not paths:
            return EMPTY
        try:
            uris = pa.array([_ROOT + path for path in paths], pa.large_string())
        except (UnicodeEncodeError, pa.ArrowInvalid) as error:
            raise InvalidUri(f"a file name below {prefix} is not UTF-8", "rename it") from error
        sizes, modified = self._stat_all(paths)
        listing = FileListing(uris, sizes, modified)
        return listing.filter(sizes >= 0)

    def _stat_all(self, paths: list[str]) -> tuple[Int64, Int64]:
        # pyarrow's stat loop runs outside the interpreter lock; os.stat in threads gains nothing
        step = len(paths) if len(paths) < _PARALLEL_FROM else -(-len(paths) // _THREADS)
        parts = [paths[i : i + step] for i in range(0, len(paths), step)]
        try:
            if len(parts) == 1:
                found = [self._arrow.get_file_info(parts[0])]
            else:
                with ThreadPoolExecutor(_THREADS) as pool:
                    found = list(pool.map(self._arrow.get_file_info, parts))
        except OSError as error:
            raise _failure(error, paths[0]) from error
        infos = [info for part in found for info in part]
        # Gone since the directory was read: size None.
        sizes = np.fromiter(
            (-1 if info.size is None else info.size for info in infos), np.int64, len(infos)
        )
        times = np.fromiter((info.mtime_ns or 0 for info in infos), np.int64, len(infos))
        return sizes, times // 1000

    def list_directories(self, prefix: str) -> list[str]:
        root = _path(prefix)
        directories, _ = _entries(root, root)
        return sorted(_ROOT + path for path in directories)

    def stat(self, uri: str) -> FileStat | None:
        try:
            found = Path(_path(uri)).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _failure(error, uri) from error
        if not S_ISREG(found.st_mode):
            return None
        return FileStat(uri, found.st_size, found.st_mtime_ns // 1000)

    def read(self, uri: str) -> bytes:
        try:
            return Path(_path(uri)).read_bytes()
        except OSError as error:
            raise _unreadable(error, uri) from error

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        try:
            descriptor = os.open(_path(uri), os.O_RDONLY)
            try:
                parts = [_exactly(descriptor, start, end - start) for start, end in ranges]
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _unreadable(error, uri) from error
        for (start, end), part in zip(ranges, parts, strict=True):
            if len(part) != end - start:
                raise FileUnreadable(
                    f"{uri} ends before byte {end}",
                    "the file was cut or rewritten: refresh the index",
                )
        return parts

    def put(self, uri: str, content: bytes) -> None:
        path = Path(_path(uri))
        try:
            temporary = _write_aside(path, content)
            temporary.replace(path)
            _sync(path.parent)
        except OSError as error:
            raise _failure(error, uri) from error

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        path = Path(_path(uri))
        try:
            temporary = _write_aside(path, content)
            try:
                # link, not rename: it fails if the name is taken, and the content is whole by then
                os.link(temporary, path)
            except FileExistsError:
                return False
            finally:
                temporary.unlink()
            _sync(path.parent)
        except OSError as error:
            raise _failure(error, uri) from error
        return True

    def delete(self, uri: str) -> None:
        try:
            Path(_path(uri)).unlink(missing_ok=True)
        except OSError as error:
            raise _failure(error, uri) from error


def _path(uri: str) -> str:
    place = parse(uri)
    if place.scheme != "file":
        raise InvalidUri(f"not a local file: {uri}", "open the storage of its scheme")
    return "/" + place.path


def _entries(directory: str, root: str) -> tuple[list[str], list[str]]:
    """Paths of the directories and files right below a directory."""
    directories: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    _inside(entry.path, root)
                (directories if entry.is_dir() else files).append(entry.path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise _failure(error, directory) from error
    return directories, files


def _inside(link: str, root: str) -> None:
    # Skipping the link would lose rows that the engine reads, following it would leave the root.
    target = os.path.realpath(link)
    if os.path.realpath(Path(link).parent).startswith(target):
        raise InvalidUri(f"{link} is a link to {target}, above itself", "remove the link")
    if not target.startswith(os.path.realpath(root) + os.sep):
        raise InvalidUri(
            f"{link} is a link to {target}, outside {root}",
            "move the files or name their own place",
        )


def _exactly(descriptor: int, start: int, length: int) -> bytes:
    part = os.pread(descriptor, length, start)
    while len(part) < length:
        more = os.pread(descriptor, length - len(part), start + len(part))
        if not more:
            break
        part += more
    return part


def _write_aside(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(error: OSError, uri: str) -> FileUnreadable:
    hint = "refresh the index" if isinstance(error, FileNotFoundError) else "check its permissions"
    return FileUnreadable(f"{uri} cannot be read: {error.strerror or error}", hint)


def _failure(error: OSError, uri: str) -> BridgeError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"no space left to write {uri}", "free space or choose another place")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageFailure(
            f"no permission for {uri}: {error.strerror}", "check the directory's permissions"
        )
    return StorageFailure(f"{uri}: {error.strerror or error}", "check the path and the disk")
