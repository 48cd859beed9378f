"""The files of a Hudi table where its commits no longer tell them all.

The metadata table's ``files`` partition is asked first. A table without one is listed: a directory
belongs to it if it holds ``.hoodie_partition_metadata``, as in Hudi.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bridge.storage.port import FileTable, Storage
from bridge.table.hudi.file_system_view import FileListing, FileSystemView

_METAFILE = ".hoodie_partition_metadata"
_THREADS = 16


def file_set(storage: Storage, view: FileSystemView) -> FileListing:
    """Name and size of every file, by partition path.

    Errors:
        StorageFailure, FileCorrupt.
    """
    return list_partitions(storage, view.config.base)


def list_partitions(storage: Storage, base: str) -> FileListing:
    """Lists the whole table; directories at its root are listed side by side.

    Errors:
        StorageFailure.
    """
    found: dict[str, list[tuple[str, int]]] = {}
    own = storage.list_all(base, recursive=False)
    _add(found, own, base)
    children = [
        c for c in storage.list_directories(base) if not c.rpartition("/")[2].startswith(".")
    ]
    with ThreadPoolExecutor(_THREADS, "skipbridge-hudi-listing") as pool:
        for listing in pool.map(storage.list_all, children):
            _add(found, listing, base)
    return FileListing.of(
        {
            partition: [file for file in files if not file[0].startswith(_METAFILE)]
            for partition, files in found.items()
            if any(name.startswith(_METAFILE) for name, _ in files)
        }
    )


def _add(found: dict[str, list[tuple[str, int]]], listing: FileTable, base: str) -> None:
    start = len(base) + 1
    for path, size in zip(listing.paths.to_pylist(), listing.sizes.tolist(), strict=True):
        directory, _, name = path[start:].rpartition("/")
        found.setdefault(directory, []).append((name, size))
