"""The storage side of a sync: listings, checks of single locations, and their spelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bridge.kernel.errors import InvalidRequest, InvalidUri, StorageFailure
from bridge.kernel.threads import Threads
from bridge.runtime.compose import absolute_location
from bridge.storage.port import Storage, data_files
from bridge.storage.uri import canonical
from bridge.table.directory.discovered import Discovered
from bridge.table.registry import DIRECTORY, format_named

T = TypeVar("T")
# Hadoop's names of the scheme s3; Hive and Spark open only these.
_HADOOP = frozenset({"s3a", "s3n"})


@dataclass(frozen=True, slots=True)
class TableRoot:
    """A table's root.

    Attributes:
        root: canonical URI.
        scheme: the scheme to record in the metastore.
    """

    root: str
    scheme: str

    def spell(self, uri: str) -> str:
        """A canonical URI below the root, in the metastore's spelling."""
        return self.scheme + uri[uri.index(":") :]


def place_of(name: str, given: str | None, registered: str | None) -> TableRoot:
    """The table's root and its spelling.

    Args:
        given: the user's location; a path may be relative.
        registered: the location of the existing table.

    Errors:
        InvalidRequest: there is neither.
        InvalidUri.
    """
    if given is None:
        if registered is None:
            raise InvalidRequest(
                f"{name} is not in the metastore, and no location is given",
                "add --location with the directory that holds its files",
            )
        given = registered
    given = absolute_location(given)
    root = canonical(given)
    scheme = root.partition(":")[0]
    for spelled in (registered, given):
        if spelled is not None and spelled.partition(":")[0].lower() in _HADOOP and scheme == "s3":
            scheme = spelled.partition(":")[0].lower()
            break
    return TableRoot(root, scheme)


class SyncStorage:
    """The listings of one run."""

    def __init__(self, storage: Storage, threads: int, recursive: bool) -> None:
        self.storage = storage
        self._threads = threads
        self._recursive = recursive

    def look(self, root: str, *, format: str = DIRECTORY) -> Discovered:
        """All directories with data below the root of a table of a format.

        Errors:
            UnsupportedTable: the format is not installed.
        """
        return format_named(format).discover(root, self.storage, self._threads)

    def holds_data(self, location: str) -> bool:
        """Whether there is data at or below a location.

        True if the location cannot be read: nothing is dropped for lack of a permission.
        """
        try:
            return any(len(data_files(p, location)) for p in self.storage.pages(location))
        except (StorageFailure, InvalidUri):
            return True

    def list_staging(
        self, places: Sequence[str], prefixes: tuple[str, ...]
    ) -> list[list[tuple[str, int | None]]]:
        """The directories directly in each place whose names begin so.

        Each comes with the time of its newest file, microseconds since the epoch; None if it has no
        files, or cannot be read.
        """

        def newest(uri: str) -> int | None:
            times = [int(page.modified.max()) for page in self.storage.pages(uri) if len(page)]
            return max(times, default=None)

        def staging_in(place: str) -> list[tuple[str, int | None]]:
            try:
                every = [uri.rstrip("/") for uri in self.storage.list_directories(place)]
                some = [uri for uri in every if uri.rpartition("/")[2].startswith(prefixes)]
                return [(uri, newest(uri)) for uri in some]
            except (StorageFailure, InvalidUri):
                return [(place, None)]

        return self._all(staging_in, places)

    def present(self, locations: Sequence[str]) -> list[bool]:
        """For each directory, whether it directly contains data (or below, as engines read it).

        False if a file there cannot be named: its partition is not added.
        """

        def has_data(location: str) -> bool:
            try:
                pages = list(self.storage.pages(location, recursive=self._recursive))
            except InvalidUri:
                return False
            return any(len(data_files(page, location)) for page in pages)

        return self._all(has_data, locations)

    def files(self, directories: Sequence[str]) -> list[tuple[str, int]]:
        """All data files, with sizes, directly in the directories (or below, as engines read)."""

        def listed(directory: str) -> list[tuple[str, int]]:
            pages = self.storage.pages(directory, recursive=self._recursive)
            found = (data_files(page, directory) for page in pages)
            return [
                (uri, int(size))
                for part in found
                for uri, size in zip(part.paths.to_pylist(), part.sizes, strict=True)
            ]

        return [file for part in self._all(listed, directories) for file in part]

    def sizes(self, files: Sequence[str]) -> list[tuple[str, int]]:
        """Those of the files that are still there, with sizes."""
        found = zip(files, self._all(self.storage.stat, files), strict=True)
        return [(uri, now.size) for uri, now in found if now is not None]

    def find_occupied(self, locations: Sequence[str]) -> list[bool]:
        """`holds_data` for many locations."""
        return self._all(self.holds_data, locations)

    def _all(self, ask: Callable[[str], T], locations: Sequence[str]) -> list[T]:
        with Threads(self._threads, "look") as pool:
            return list(pool.map(ask, locations))
