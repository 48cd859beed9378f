"""The partitions of a Hudi table that hold files, by its timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from bridge.storage.port import Storage
from bridge.sync.hudi.timeline import TouchedPartitions, touched_partitions
from bridge.table.directory.discovered import SCHEMA, Discovered
from bridge.table.hudi.files.file_sets import check_history, file_set
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.timeline.instant import Instant

_Sizes = Mapping[str, tuple[int, int]]


class HudiFiles:
    """One state of a table, read at the start.

    Args:
        root: canonical URI.

    Errors:
        TableNotFound, UnsupportedTable, FileCorrupt, StorageFailure.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage = storage
        self._root = root
        self._touched: dict[tuple[str, ...], tuple[Discovered, Discovered]] = {}
        self.view = check_history(storage, FileSystemView.open(storage, root))

    def partitions(self) -> Discovered:
        """All partitions with a file slice, with number and bytes of its files."""
        return self._all

    @cached_property
    def _all(self) -> Discovered:
        files = None if self.view.commits_suffice() else file_set(self.storage, self.view)
        return self._discovered(_sizes(self.view.slices(files=files)))

    def find_touched(self, commits: Sequence[Instant]) -> tuple[Discovered, Discovered]:
        """The partitions of some commits: those that hold files now, and all.

        A partition whose files were all replaced is listed: it may hold others.
        """
        key = tuple(i.name for i in commits)
        if key not in self._touched:
            found = touched_partitions(self.view.commit(i) for i in commits)
            living = {**found.written, **self._living(found)}
            every = {**living, **{path: living.get(path, (0, 0)) for path in found.emptied}}
            self._touched[key] = self._discovered(living), self._discovered(every)
        return self._touched[key]

    def _living(self, found: TouchedPartitions) -> _Sizes:
        if not found.emptied:
            return {}
        listed: dict[str, list[tuple[str, int]]] = {}
        for path in sorted(found.emptied):
            place = f"{self._root}/{path}" if path else self._root
            files = self.storage.list_all(place, recursive=False)
            names = (uri.rpartition("/")[2] for uri in files.paths.to_pylist())
            listed[path] = list(zip(names, files.sizes.tolist(), strict=True))
        return _sizes(self.view.slices(files=FileListing.of(listed)))

    def _discovered(self, sizes: _Sizes) -> Discovered:
        rows = {
            "path": sorted(sizes),
            "files": [sizes[path][0] for path in sorted(sizes)],
            "bytes": [sizes[path][1] for path in sorted(sizes)],
            "newest": [0] * len(sizes),
            "sample": [""] * len(sizes),
            "sample_bytes": [0] * len(sizes),
        }
        return Discovered(self._root, pa.table(rows, SCHEMA))


def _sizes(slices: FileSlices) -> _Sizes:
    """Number and bytes of the files of each partition that has a slice."""
    count = len(slices.partitions)
    logs = np.repeat(slices.partition, slices.log_counts)
    files = np.bincount(slices.partition, slices.has_base + slices.log_counts, count)
    sizes = np.bincount(slices.partition, slices.base_sizes, count)
    sizes += np.bincount(logs, slices.log_sizes, count)
    return {
        path: (int(files[i]), int(sizes[i])) for i, path in enumerate(slices.partitions) if files[i]
    }
