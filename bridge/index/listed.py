"""The files found in the locations of a table's partitions, each with the partitions that own it.

A location may belong to several partitions, and one location may contain another, so the owners of
a file are a set (correctness 28). An entry keeps them as one text: the sorted names, separated by
NUL, which no partition name contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.storage.port import FileListing, Storage, concatenate, data_files
from bridge.table.model import Partition

_BETWEEN = "\0"


@dataclass(frozen=True, slots=True)
class Listed:
    """The table's files now, sorted by path, each once.

    Attributes:
        owners: of each file, as `owners_text` spells them.
    """

    files: FileListing
    owners: pa.Array


def owners_text(names: Iterable[str]) -> str:
    """The partitions that own a file, as entries keep them.

    >>> owners_text(["p=2", "p=1", "p=2"])
    'p=1\\x00p=2'
    """
    return _BETWEEN.join(sorted(set(names)))


def owners_of(text: str) -> tuple[str, ...]:
    """The partitions that an entry names.

    >>> owners_of("p=1")
    ('p=1',)
    """
    return tuple(text.split(_BETWEEN))


def list_files(partitions: Sequence[Partition], storage: Storage, *, recursive: bool) -> Listed:
    """Lists every location once.

    Errors:
        StorageFailure, FileUnreadable: a location that cannot be listed is not taken as empty.
    """
    names: dict[str, list[str]] = {}
    for partition in partitions:
        names.setdefault(partition.location, []).append(partition.name)

    def one(location: str) -> FileListing:
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
        whole, owner, texts = _once(whole, owner, texts)
    return Listed(whole, pa.array(texts, pa.large_string()).take(pa.array(owner)))


def _once(
    files: FileListing, owner: np.ndarray, texts: list[str]
) -> tuple[FileListing, np.ndarray, list[str]]:
    """Locations may lie in one another: a file that several list has the owners of all of them."""
    first = np.ones(len(files), np.bool_)
    first[1:] = pc.not_equal(files.paths[1:], files.paths[:-1]).to_numpy(zero_copy_only=False)
    if first.all():
        return files, owner, texts
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(files))
    merged = owner[starts].copy()
    numbers: dict[tuple[int, ...], int] = {}
    for i in np.flatnonzero(ends - starts > 1).tolist():
        together = tuple(sorted(owner[starts[i] : ends[i]].tolist()))
        if together not in numbers:
            names = [name for one in together for name in owners_of(texts[one])]
            numbers[together] = len(texts)
            texts = [*texts, owners_text(names)]
        merged[i] = numbers[together]
    return files.filter(first), merged, texts
