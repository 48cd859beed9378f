"""Etags of planned files as numbers that a reader compares with those of the files it reads.

An index knows which version of a file it speaks of. A file may be written again with equal size
within the second that its store tells, and then only its etag differs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.table.slices import SliceBatch

_AROUND = 'W/"'
"""Letters around an etag: listings and headers differ in them."""
_ASCII = 128


def etag_hashes(batch: SliceBatch) -> npt.NDArray[np.int32] | None:
    """A number for the version of each base file that the index describes; 0: none is known.

    None if there is none at all. Files that are not in the index have none: that of an indexed file
    was the same in a listing and in the answer to a read, so that a reader may compare it.
    """
    index = batch.index
    if index is None or index.etags.null_count == len(index.etags):
        return None
    known = np.flatnonzero(batch.ordinals >= 0)
    if not len(known):
        return None
    found = np.zeros(len(batch), np.int32)
    found[known] = hashes(index.etags.take(pa.array(batch.ordinals[known])))
    return found


def hashes(etags: pa.Array) -> npt.NDArray[np.int32]:
    """Java's ``String.hashCode`` of each etag without what is around it.

    Args:
        etags: strings. 0 stands for null, the empty text, and what is not ASCII.
    """
    plain = pc.utf8_trim(etags.cast(pa.large_string()), characters=_AROUND)
    text = pc.fill_null(plain, "")
    found = np.zeros(len(text), np.uint32)
    _, starts, data = text.buffers()
    if data is None or not len(text):
        return found.view(np.int32)
    offsets = np.frombuffer(starts, np.int64, len(text) + 1, text.offset * 8)
    letters = np.frombuffer(data, np.uint8)
    lengths = np.diff(offsets)
    for length in np.unique(lengths).tolist():
        mine = np.flatnonzero(lengths == length)
        starts_at = offsets[:-1][mine]
        values, over = np.zeros(len(mine), np.uint32), np.zeros(len(mine), np.uint8)
        for at in range(length):
            letter = letters[starts_at + at]
            values = values * np.uint32(31) + letter
            over |= letter
        found[mine] = np.where(over < _ASCII, values, 0)
    return found.view(np.int32)
