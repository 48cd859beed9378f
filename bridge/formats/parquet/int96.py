"""Timestamps of Parquet with all their digits: INT96, and others of nanoseconds.

Arrow reads INT96 as nanoseconds, which end in 2262, or as microseconds, and cuts. Trino rounds to
the nearest microsecond, so that whoever knows the engine needs the nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.formats.parquet.tail import open_footer, read_tail
from bridge.kernel.errors import FileAmbiguous
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage
from bridge.storage.reading.source import RangeSource

_EDGE = (2**63 - 1) // 1000 - 1
_MILLIS = 2**63 // 1_000_000
_BATCH = 128 * 1024
_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def has_int96(metadata: pa.parquet.FileMetaData, leaves: list[int]) -> bool:
    return any(metadata.schema.column(leaf).physical_type == "INT96" for leaf in leaves)


def far_leaves(source: Any, metadata: pq.FileMetaData, leaves: Sequence[int]) -> Iterator[int]:
    """Those of some leaves with a time that is another one in microseconds, by way of nanoseconds.

    An INT96 may lie out of the range of nanoseconds; one at its edge counts as beyond it. Other
    nanoseconds may be no whole microseconds.

    Errors: those of Arrow.
    """
    reader = pq.core.ParquetReader()
    reader.open(source, metadata=metadata, coerce_int96_timestamp_unit="ms")
    groups = list(range(metadata.num_row_groups))
    for leaf in leaves:
        read = reader.iter_batches(_BATCH, groups, column_indices=[leaf], use_threads=False)
        if any(_is_far(batch.column(0)) for batch in read):
            yield leaf


def find_far(
    storage: Storage, uri: str, size: int, leaves: Sequence[int], most: int
) -> tuple[int, list[int]]:
    """The bytes that some leaves take in a file, and its `far_leaves`. Runs in the child.

    Args:
        most: bytes; of more none is read.

    Errors:
        FileCorrupt, FileUnreadable, StorageFailure.
    """
    tail = read_tail(storage, uri, size)
    metadata = open_footer(tail, uri)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    taken = sum(group.column(leaf).total_compressed_size for group in groups for leaf in leaves)
    if taken > most:
        return taken, []
    whole = len(tail) == size
    source = RangeSource(storage, uri, size)
    opened = pa.BufferReader(tail) if whole else pa.PythonFile(source, mode="r")
    return taken, list(far_leaves(opened, metadata, leaves))


FAR: ChildReader[tuple[int, list[int]]] = ChildReader(find_far)


def _is_far(array: pa.Array) -> bool:
    found = list(_times(array))
    for times in found:
        values = times.drop_null().cast(pa.int64()).to_numpy()
        far = values % 1000 if times.type.unit == "ns" else np.abs(values) >= _MILLIS
        if far.any():
            return True
    return not found  # the library gives it another type


def with_nanoseconds(micros: pa.Array, nanos: pa.Array, name: str, uri: str) -> pa.Array:
    """A column in the finest unit that holds all of its values.

    Args:
        micros: the column, with INT96 cut to microseconds.
        nanos: the same with nanoseconds, which begin again at both ends of 64 bits.

    Errors:
        FileAmbiguous: a value after 2262 or before 1677 has nanoseconds.
    """
    near = whole = True
    for coarse, fine in zip(_times(micros), _times(nanos), strict=True):
        if coarse.type != fine.type:
            number, exact = (t.cast(pa.int64()).fill_null(0).to_numpy() for t in (coarse, fine))
            whole = whole and not (exact - number * 1000).any()
            near = near and bool((np.abs(number) < _EDGE).all())
    if whole:
        return micros
    if near:
        return nanos
    raise FileAmbiguous(
        f"{uri}: engines round the nanoseconds of {name!r} differently", "read it with the engine"
    )


def _times(array: pa.Array) -> Iterator[pa.Array]:
    """The timestamps of a column, at any depth."""
    type = array.type
    if pa.types.is_timestamp(type):
        yield array
    elif pa.types.is_struct(type):
        for child in array.flatten():
            yield from _times(child)
    elif pa.types.is_map(type):
        yield from _times(array.keys)
        yield from _times(array.items)
    elif any(is_list(type) for is_list in _LISTS):
        yield from _times(array.flatten())
