"""What is to be checked in files before a client reads them, kept while a file is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from bridge.formats.parquet.int96 import FAR
from bridge.formats.parquet.stored_file import StoredFile, StoredFileReader
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import FileChanged, FileCorrupt, FileUnreadable, LimitExceeded
from bridge.kernel.threads import Threads
from bridge.storage.port import FileStat, Storage, same_state
from bridge.table.model import TableName

_MOST_FILES = 500_000
_AT_ONCE = 64
_MOST_BYTES = 256 << 20
_LEAST_BYTES = 16 << 10
"""Each file counts for so many bytes at least."""
Leaves = tuple[int, ...]
TimesOfFile = tuple[FileStat, Leaves]
"""A file, and leaves of it whose times are nanoseconds."""


class Footers:
    """Reads footers and times, and keeps what they say while a file is the same.

    Args:
        threads: reads under way at once.
    """

    def __init__(self, storage: Storage, threads: int = 16) -> None:
        self._storage = storage
        self._pool = Threads(threads, "footer")
        self._held: BoundedCache[FileStat, StoredFile] = BoundedCache(_MOST_FILES)
        self._far: BoundedCache[TimesOfFile, Leaves] = BoundedCache(_MOST_FILES)
        self._reader = StoredFileReader()

    def close(self) -> None:
        self._pool.close()

    def read(self, files: Sequence[FileStat], most: int) -> list[StoredFile]:
        """What the files' footers say.

        Args:
            most: footers that are read, of files of which nothing is held.

        Errors:
            LimitExceeded: there are more; none is read.
            FileCorrupt, FileUnreadable, StorageFailure: of the first file that cannot be read.
            FileChanged: it is no longer as it was listed.
        """
        found = self._held.get_all(files)
        missing = [file for file in files if file not in found]
        if len(missing) > most:
            raise LimitExceeded(
                f"the plan reads {len(missing)} footers for the first time, "
                f"service.http_footers is {most}",
                "filter the table, or raise the setting",
            )
        for begin in range(0, len(missing), _AT_ONCE):  # a large plan lets small ones in between
            some = missing[begin : begin + _AT_ONCE]
            read = dict(zip(some, self._pool.map(self._read, some), strict=True))
            self._held.put_all(read)
            found |= read
        return [found[file] for file in files]

    def far_leaves(self, table: TableName, asked: Sequence[TimesOfFile]) -> list[Leaves]:
        """Of each file those of some leaves that are `bridge.formats.parquet.int96.far_leaves`.

        Errors:
            LimitExceeded: one plan would read too much.
            FileCorrupt, FileUnreadable, StorageFailure, FileChanged: as `read`.
        """
        found = self._far.get_all(asked)
        missing = [each for each in asked if each not in found]
        left = _MOST_BYTES - _LEAST_BYTES * len(missing)
        while missing:
            some = _within(left, missing)
            missing = missing[len(some) :]
            read = list(self._pool.map(partial(self._far_of, left, table), some))
            left -= sum(taken for taken, _ in read)
            known = {each: far for each, (_, far) in zip(some, read, strict=True)}
            self._far.put_all(known)
            found |= known
        return [found[each] for each in asked]

    def _far_of(self, most: int, table: TableName, asked: TimesOfFile) -> tuple[int, Leaves]:
        file, leaves = asked
        with self._told_if_changed(file):
            taken, far = FAR.read(
                self._storage, file.uri, file.size, list(leaves), most, ahead=False
            )
        if taken > most:
            raise LimitExceeded(
                f"{table}: the planner would read more than {_MOST_BYTES >> 20} MiB of times in "
                "nanoseconds or INT96, to see that PyIceberg shows them rightly",
                f"run skipbridge index build {table} --nan scan, filter the table, or select other "
                "columns",
            )
        return taken, tuple(far)

    def _read(self, file: FileStat) -> StoredFile:
        with self._told_if_changed(file):
            return self._reader.read(self._storage, file)

    @contextmanager
    def _told_if_changed(self, file: FileStat) -> Iterator[None]:
        """Errors: FileChanged, in place of what a changed file causes."""
        try:
            yield
        except (FileUnreadable, FileCorrupt) as error:
            now = self._storage.stat(file.uri)
            if now is not None and same_state(file, now):
                raise
            raise FileChanged(
                f"{file.uri} has changed since it was listed", "run the query again"
            ) from error


def _within(bytes: int, asked: Sequence[TimesOfFile]) -> list[TimesOfFile]:
    """The first files, so many as have no more bytes together; at least one."""
    some = [asked[0]]
    for each in asked[1:_AT_ONCE]:
        bytes -= some[-1][0].size
        if each[0].size > bytes:
            break
        some.append(each)
    return some
