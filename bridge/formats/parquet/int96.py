"""INT96 timestamps of Parquet with all their digits.

Arrow reads them as nanoseconds, which end in 2262, or as microseconds, and cuts. Trino rounds to
the nearest microsecond, so that whoever knows the engine needs the nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bridge.kernel.errors import FileAmbiguous

_EDGE = (2**63 - 1) // 1000 - 1


def has_int96(metadata: pa.parquet.FileMetaData, leaves: list[int]) -> bool:
    return any(metadata.schema.column(leaf).physical_type == "INT96" for leaf in leaves)


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
    elif pa.types.is_list(type) or pa.types.is_large_list(type):
        yield from _times(array.flatten())
