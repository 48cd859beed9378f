"""The files of a Hudi table where its commits no longer tell them all.

The metadata table's ``files`` partition is asked first. A table without one, or with a damaged one,
is listed: a directory belongs to it if it holds ``.hoodie_partition_metadata``, as in Hudi.
"""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace

from bridge.kernel.errors import (
    BridgeError,
    FileChanged,
    FileCorrupt,
    FileUnreadable,
    UnsupportedTable,
)
from bridge.kernel.threads import Threads
from bridge.storage.port import FileTable, Storage
from bridge.table.hudi.files.file_names import parse_names
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.files.metadata_table import Incomplete, read_file_listing

_METAFILE = ".hoodie_partition_metadata"
_NO_PARTITIONS = frozenset({".hoodie", ".skipbridge"})
_THREADS = 16
_log = logging.getLogger(__name__)


def file_set(storage: Storage, view: FileSystemView, pool: Executor | None = None) -> FileListing:
    """Name and size of every file, by partition path.

    Args:
        pool: reads side by side; None: one of its own.

    Errors:
        StorageFailure, FileCorrupt, UnsupportedTable.
        SnapshotExpired: what the view shows was undone meanwhile.
    """
    if pool is None:
        with Threads(_THREADS, "hudi") as own:
            return file_set(storage, view, own)
    try:
        found = read_file_listing(storage, view.config, view.timeline, pool=pool)
        if isinstance(found, FileListing):
            return found
        _log.info("Hudi table %s is listed: it %s", view.config.base, found.reason)
    except (FileChanged, FileCorrupt, FileUnreadable, UnsupportedTable) as error:
        # It is a copy of what storage can tell.
        _log.warning(
            "Hudi table %s is listed: its metadata table cannot be read, build it again (%s)",
            view.config.base,
            error,
        )
    listing = list_partitions(storage, view.config.base, pool)
    return replace(listing, cleans=view.since())


def check_history(
    storage: Storage, view: FileSystemView, pool: Executor | None = None
) -> FileSystemView:
    """A view of which is sure that commits tell all files, if its archive is empty.

    An archive may be empty because it was deleted. Then there are files of commits before the
    timeline's first, which it does not have.

    Errors:
        StorageFailure, UnsupportedTable.
    """
    if not view.history_is_empty:
        return view
    if pool is None:
        with Threads(_THREADS, "hudi") as own:
            return check_history(storage, view, own)
    config, timeline = view.config, view.timeline
    listing: FileListing | Incomplete | None = None
    with suppress(BridgeError):  # a damaged metadata table is no matter where commits suffice
        listing = read_file_listing(storage, config, timeline, pool=pool)
    if not isinstance(listing, FileListing):
        listing = list_partitions(storage, config.base, pool)
    instants = parse_names(listing.names, config.base_format).instants.unique().to_pylist()
    known = {i.requested for i in timeline.instants}
    older = any(i < timeline.first_active and i not in known for i in instants)
    return view.with_lost_history() if older else view


def list_partitions(storage: Storage, base: str, pool: Executor) -> FileListing:
    """Lists the whole table; directories at its root are listed side by side.

    Errors:
        StorageFailure.
    """
    found: dict[str, list[tuple[str, int]]] = {}
    own = storage.list_all(base, recursive=False)
    _add(found, own, base)
    # A partition's value may begin with a dot.
    inside = storage.list_directories(base)
    children = [c for c in inside if c.rpartition("/")[2] not in _NO_PARTITIONS]
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
