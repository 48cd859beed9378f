"""Checksums of rows that do not depend on their order, for values of any type.

Each row is hashed over all of its values, and the hashes are added. So a checksum changes if a row
is lost, doubled or altered, or if values of two rows are swapped. It finds faults of programs and
machines; it is no protection against someone who wants to forge it.

All rows of a batch are hashed at once. Batches are small: they stay in the processor's cache.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UInt64 = npt.NDArray[np.uint64]
_NULL = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD1B54A32D192ED03)
_BATCH_ROWS = 1 << 15
_LONG_TEXT = 256
"""Bytes from which on each text is hashed alone, and not word by word."""
_TAILS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
"""Masks of the first bytes of a word."""


def _mixed(h: UInt64) -> UInt64:
    """Spreads every bit of the input over the output (the finaliser of SplitMix64)."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def _salt(place: int) -> np.uint64:
    """A number for the place of a column, field or word."""
    return np.uint64((place + 1) * int(_STEP) % 2**64)


def _placed(h: UInt64, place: int) -> UInt64:
    """Hashes that depend on a place. Different hashes stay different."""
    salt = _mixed(np.array([_salt(place)]))[0] | np.uint64(1)
    found = h >> np.uint64(32)
    found ^= h
    found *= salt
    return found


def checksum(table: pa.Table) -> int:
    """The checksum of a table: a number below 2**64. Names of columns do not count."""
    total = 0
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        total += int(row_hashes(batch).sum(dtype=np.uint64))
    return total % 2**64


def row_hashes(batch: pa.RecordBatch) -> UInt64:
    """One hash per row over all columns, each at its place."""
    found = np.zeros(batch.num_rows, np.uint64)
    for i, column in enumerate(batch.columns):
        found += _placed(_hashes(column), i)
    return _mixed(found)


def _hashes(array: pa.Array) -> UInt64:
    """One hash per value; that of a plain number is its bits."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type = array.type
    if pa.types.is_dictionary(type):
        each = np.append(_hashes(array.dictionary), _NULL)
        found: UInt64 = each[pc.fill_null(array.indices.cast(pa.int64()), len(each) - 1).to_numpy()]
        return found
    if pa.types.is_null(type):
        return np.full(len(array), _NULL)
    found = _present(array)
    if array.null_count:
        found[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return found


def _present(array: pa.Array) -> UInt64:
    """Hashes of the values; anything in the place of NULL."""
    type = array.type
    if pa.types.is_struct(type):
        found = np.zeros(len(array), np.uint64)
        for i in range(type.num_fields):
            found += _mixed(_hashes(array.field(i)) + _salt(i))
        return _mixed(found)
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_map(type):
        return _lists(array)
    if pa.types.is_fixed_size_list(type):
        return _lists(array.cast(pa.large_list(type.value_field)))
    if pa.types.is_boolean(type):
        return np.asarray(pc.fill_null(array, False).cast(pa.uint8()), np.uint64)
    if _is_bytes(type):
        return _texts(array)
    width = type.bit_width // 8
    if width > 8:  # decimals and intervals
        words = np.frombuffer(array.buffers()[1], np.uint64)
        per = width // 8
        here = words[array.offset * per : (array.offset + len(array)) * per].reshape(-1, per)
        found = here[:, 0].copy()
        for i in range(1, per):
            found += _placed(here[:, i], i)
        return found
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[width]
    bits = np.frombuffer(array.buffers()[1], kind, len(array), array.offset * width)
    return bits.astype(np.uint64)


def _is_bytes(type: pa.DataType) -> bool:
    return (
        pa.types.is_string(type)
        or pa.types.is_binary(type)
        or pa.types.is_large_string(type)
        or pa.types.is_large_binary(type)
        or pa.types.is_fixed_size_binary(type)
        or pa.types.is_string_view(type)
        or pa.types.is_binary_view(type)
    ) and not pa.types.is_decimal(type)


def _texts(array: pa.Array) -> UInt64:
    """Hashes of the words of eight bytes of each text, all texts at once, and of its length."""
    type = array.type
    small = pa.types.is_string(type) or pa.types.is_binary(type)
    if not small and not (pa.types.is_large_string(type) or pa.types.is_large_binary(type)):
        array = array.cast(pa.large_binary())
    width = np.dtype(np.int32 if small else np.int64)
    offsets = np.frombuffer(
        array.buffers()[1], width, len(array) + 1, array.offset * width.itemsize
    ).astype(np.int64)
    begin, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    data = array.buffers()[2]
    held = np.zeros(int(offsets[-1] - offsets[0]) + 8, np.uint8)
    if data is not None:
        held[:-8] = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    # One word begins at each byte.
    words = np.ndarray((len(held) - 7,), np.dtype("<u8"), held.data, 0, (1,))
    found = lengths.astype(np.uint64) * _STEP
    long = lengths > _LONG_TEXT
    rows = np.flatnonzero((lengths > 0) & ~long)
    at, left = begin[rows], lengths[rows]
    for place in range(_LONG_TEXT // 8):
        if not len(rows):
            break
        found[rows] += _placed(words[at] & _TAILS[np.minimum(left, 8)], place)
        more = left > 8
        rows, at, left = rows[more], at[more] + 8, left[more] - 8
    for row in np.flatnonzero(long).tolist():
        value = held[begin[row] : begin[row] + lengths[row]].data
        digest = hashlib.blake2b(value, digest_size=8).digest()
        found[row : row + 1] += np.frombuffer(digest, "<u8")  # arrays wrap without a warning
    return _mixed(found)


def _lists(array: pa.Array) -> UInt64:
    """Hashes of lists: of their length, and of each element with its place."""
    large = pa.types.is_large_list(array.type)
    offsets = np.frombuffer(
        array.buffers()[1],
        np.int64 if large else np.int32,
        len(array) + 1,
        array.offset * (8 if large else 4),
    ).astype(np.int64)
    lengths = np.diff(offsets)
    if pa.types.is_map(array.type):
        elements = _mixed(_hashes(array.keys)) + _STEP * _hashes(array.items)
    else:
        elements = _hashes(array.values)
    held = elements[offsets[0] : offsets[-1]] if len(elements) else elements
    place = np.arange(len(held)) - np.repeat(offsets[:-1] - offsets[0], lengths)
    mixed = _mixed(held + place.astype(np.uint64) * _STEP)
    sums = np.concatenate(([np.uint64(0)], np.cumsum(mixed, dtype=np.uint64)))
    at = offsets - offsets[0]
    found: UInt64 = sums[at[1:]] - sums[at[:-1]] + lengths.astype(np.uint64) * _NULL
    return _mixed(found)
