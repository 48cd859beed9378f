"""Footers of files: what is to be checked before a client reads, kept while a file is the same."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.formats.parquet.stored_file import StoredFile, StoredFileReader
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import FileChanged, FileCorrupt, FileUnreadable, LimitExceeded
from bridge.kernel.threads import Threads
from bridge.storage.port import FileStat, Storage, same_state

_MOST_FILES = 500_000
_AT_ONCE = 64


class Footers:
    """Reads footers, and keeps what they say while a file is the same.

    Args:
        threads: reads under way at once.
    """

    def __init__(self, storage: Storage, threads: int = 16) -> None:
        self._storage = storage
        self._pool = Threads(threads, "footer")
        self._held: BoundedCache[FileStat, StoredFile] = BoundedCache(_MOST_FILES)
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

    def _read(self, file: FileStat) -> StoredFile:
        try:
            return self._reader.read(self._storage, file)
        except (FileUnreadable, FileCorrupt) as error:
            now = self._storage.stat(file.uri)
            if now is not None and same_state(file, now):
                raise
            raise FileChanged(
                f"{file.uri} has changed since it was listed", "run the query again"
            ) from error
