"""The time by the clock that makes a store's modification times."""

from __future__ import annotations

import time
import uuid

from bridge.kernel.errors import StorageFailure
from bridge.storage.port import Storage
from bridge.storage.uri import join


def store_now(storage: Storage, directory: str) -> int:
    """Microseconds since the epoch, as a file that is written now to a directory shows them.

    This machine's own time where files are local. Elsewhere a hidden file is written and deleted.

    Errors: StorageFailure, StorageFull.
    """
    if not storage.is_remote(directory):
        return time.time_ns() // 1000
    probe = join(directory, f".clock.{uuid.uuid4().hex}.tmp")
    try:
        storage.put(probe, b"now")
        found = storage.stat(probe)
    finally:
        storage.delete(probe)
    if found is None:
        raise StorageFailure(
            f"{probe} was written, and is not there", "check the store: its times are needed"
        )
    return found.modified
