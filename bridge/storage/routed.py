"""One storage for all URIs: partitions of a table may be in different buckets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from bridge.storage.hdfs import HdfsStorage
from bridge.storage.local import LocalStorage
from bridge.storage.objectstore import ObjectStorage
from bridge.storage.port import FileStat, FileTable, Range, Storage
from bridge.storage.uri import Location, parse


def open_storage(uri: str | None = None, options: Mapping[str, str] | None = None) -> Storage:
    """A storage for all URIs. Opens one store per bucket, on first use.

    Args:
        uri: its store is opened now, so that a wrong URI fails here and not at first use.
        options: for all object stores; see `bridge.storage.objectstore.open_store`.

    Errors:
        InvalidUri, StorageFailure.
    """
    storage = RoutedStorage(options or {})
    if uri is not None:
        storage.store(uri)
    return storage


class RoutedStorage:
    """`Storage` that routes each call to the store of the URI's scheme and bucket."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)
        self._stores: dict[str, Storage] = {}
        self._lock = threading.Lock()

    def store(self, uri: str) -> Storage:
        """The store of a URI."""
        end = uri.find("/", uri.find("://") + 3)
        known = self._stores.get(uri[:end])
        if known is not None:
            return known
        place = parse(uri)
        key = f"{place.scheme}://{place.authority}"
        with self._lock:
            if key not in self._stores:
                self._stores[key] = _open(place, self.options)
            return self._stores[key]

    def pages(
        self,
        prefix: str,
        *,
        start_after: str | None = None,
        recursive: bool = True,
        hints: pa.Array | None = None,
    ) -> Iterator[FileTable]:
        return self.store(prefix).pages(
            prefix, start_after=start_after, recursive=recursive, hints=hints
        )

    def list_all(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> FileTable:
        return self.store(prefix).list_all(prefix, recursive=recursive, hints=hints)

    def list_directories(self, prefix: str) -> list[str]:
        return self.store(prefix).list_directories(prefix)

    def directory_exists(self, uri: str) -> bool:
        return self.store(uri).directory_exists(uri)

    def stat(self, uri: str) -> FileStat | None:
        return self.store(uri).stat(uri)

    def read(self, uri: str) -> bytes:
        return self.store(uri).read(uri)

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        return self.store(uri).read_ranges(uri, ranges)

    def put(self, uri: str, content: bytes) -> None:
        self.store(uri).put(uri, content)

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        return self.store(uri).put_if_absent(uri, content)

    def delete(self, uri: str) -> None:
        self.store(uri).delete(uri)


def _open(place: Location, options: Mapping[str, str]) -> Storage:
    if place.scheme == "file":
        return LocalStorage()
    if place.scheme == "hdfs":
        return HdfsStorage(place)
    return ObjectStorage(place, options)
