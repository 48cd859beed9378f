"""One storage for all URIs: partitions of a table may be in different buckets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor

import pyarrow as pa

from bridge.kernel.errors import InvalidUri
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import (
    EMPTY,
    DirectoryListings,
    FileStat,
    FileTable,
    Range,
    Storage,
    join_listings,
)
from bridge.storage.uri import Location, parse


def open_storage(uri: str | None = None, options: Mapping[str, str] | None = None) -> Storage:
    """A storage for all URIs. Opens one store per bucket, on first use.

    Args:
        uri: its store is opened now, so that a wrong URI fails here and not at first use.
        options: for all object stores; see `bridge.storage.object_store.objectstore.open_store`.

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
        known = self._stores.get(uri[:end] if end > 0 else uri)
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

    def list_many(
        self, directories: Sequence[str], pool: Executor, *, recursive: bool = True
    ) -> DirectoryListings:
        places: dict[Storage, list[int]] = {}
        for i, uri in enumerate(directories):
            places.setdefault(self.store(uri), []).append(i)
        if len(places) == 1:
            (store,) = places
            return store.list_many(directories, pool, recursive=recursive)
        parts = [EMPTY] * len(directories)
        for store, those in places.items():
            found = store.list_many([directories[i] for i in those], pool, recursive=recursive)
            for number, i in enumerate(those):
                parts[i] = found.files.slice(*found.offsets[number : number + 2].tolist())
        return join_listings(parts)

    def has_directories(self, uri: str) -> bool:
        return self.store(uri).has_directories(uri)

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

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        return self.store(uri).read_state(uri, ranges)

    def is_remote(self, uri: str) -> bool:
        return self.store(uri).is_remote(uri)

    def put(self, uri: str, content: bytes) -> None:
        self.store(uri).put(uri, content)

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        return self.store(uri).put_if_absent(uri, content)

    def copy(self, source: FileStat, target: str) -> bool:
        store = self.store(source.uri)
        if store is not self.store(target):
            raise InvalidUri(
                f"{source.uri} and {target} are in different stores", "copy within one store"
            )
        return store.copy(source, target)

    def delete(self, uri: str) -> None:
        self.store(uri).delete(uri)


def _open(place: Location, options: Mapping[str, str]) -> Storage:
    """Imports a store's client when it is needed: a command waits for it."""
    if place.scheme == "file":
        return LocalStorage()
    if place.scheme == "hdfs":
        from bridge.storage.hdfs import HdfsStorage

        return HdfsStorage(place)
    from bridge.storage.object_store.objectstore import ObjectStorage

    return ObjectStorage(place, options)
