"""The files of partitions, for builds without a catalog."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.index.building.listed import Listed, ListFiles, merge_owners, owners_text
from bridge.storage.port import FileTable, Storage, concatenate, data_files
from bridge.table.model import Partition


def in_directories(
    partitions: Sequence[Partition], storage: Storage, *, recursive: bool = False
) -> ListFiles:
    """Lists the partitions' directories each time it is asked."""
    return partial(list_directories, partitions, storage, recursive=recursive)


def list_directories(
    partitions: Sequence[Partition], storage: Storage, *, recursive: bool = False
) -> Listed:
    """Lists every location once.

    Errors:
        StorageFailure, FileUnreadable: a location that cannot be listed is not taken as empty.
    """
    names: dict[str, list[str]] = {}
    for partition in partitions:
        names.setdefault(partition.location, []).append(partition.name)

    def one(location: str) -> FileTable:
        return data_files(storage.list_all(location, recursive=recursive), location)

    if len(names) > 1:
        with ThreadPoolExecutor(16) as pool:
            parts = list(pool.map(one, names))
    else:
        parts = [one(location) for location in names]
    texts = [owners_text(found) for found in names.values()]
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    whole = concatenate(parts)
    if sum(len(part) > 0 for part in parts) > 1:
        unsorted = pa.concat_arrays([part.paths for part in parts])
        owner = owner[pc.sort_indices(unsorted).to_numpy()]
        whole, owner, texts, _ = merge_owners(whole, owner, texts)
    return Listed(whole, pa.array(texts, pa.large_string()).take(pa.array(owner)))
