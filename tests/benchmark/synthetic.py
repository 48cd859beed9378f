"""Tables of files that do not exist, for indexes larger than any disk here would hold files of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bridge.storage.port import FileTable
from bridge.storage.routed import open_storage


class Listed:
    """Lists files that do not exist; everything else goes to the real storage."""

    def __init__(self, location: str, count: int) -> None:
        names = [f"{location}/part-{n:08d}.parquet" for n in range(count)]
        self._location = location
        self._storage = open_storage()
        self._listing = FileTable(
            pa.array(names, pa.large_string()),
            np.full(count, 4096, np.int64),
            np.full(count, 1_600_000_000_000_000, np.int64),
        )

    def list_all(self, prefix: str, **options: object) -> FileTable:
        if prefix == self._location:
            return self._listing
        return self._storage.list_all(prefix, **options)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)
