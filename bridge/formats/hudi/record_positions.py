"""The places in a base file of the rows that a log block changes, as its header tells them.

They are a bitmap in the format of Roaring, which is portable and public: for each upper half of 32
bits a bitmap of containers of 65,536 values. The block's records are in the order of the places.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bridge.formats.hudi.avro_rows import DAMAGE
from bridge.formats.hudi.log_format import Header, LogBlock, damage

_PLAIN, _RUNS = 12346, 12347
_OFFSETS_FROM = 4
_LARGEST_ARRAY = 4096
_WORDS = 8192
Places = npt.NDArray[np.int64]


def positions_of(block: LogBlock, base_instant: str, rows: int) -> Places | None:
    """The places of a block's records in the base file that an instant wrote, ascending.

    None: the block tells none, or those of another base file.

    Args:
        rows: of the base file. A few bytes may state any number of places.

    Errors:
        FileCorrupt.
    """
    told = block.header.get(Header.RECORD_POSITIONS)
    of = block.header.get(Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
    if not told or not base_instant or of != base_instant:
        return None
    try:
        return _bitmap(base64.b64decode(told, validate=True), rows)
    except (*DAMAGE, OverflowError) as error:
        raise damage(block.uri, block.offset, f"its positions cannot be read: {error}") from error


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, type: str, count: int) -> Places:
        found = np.frombuffer(self._content, type, count, self._at)
        self._at += found.nbytes
        return found.astype(np.int64)

    def one(self, type: str) -> int:
        return int(self.take(type, 1)[0])

    @property
    def ended(self) -> bool:
        return self._at == len(self._content)


def _bitmap(content: bytes, rows: int) -> Places:
    source = _Reader(content)
    parts = [np.zeros(0, np.int64)]
    left = max(rows, _LARGEST_ARRAY)
    for _ in range(source.one("<i8")):
        upper = source.one("<u4")
        if upper >= 1 << 31:
            raise ValueError("a position has more than 63 bits")
        for part in _containers(source, left):
            left -= len(part)
            parts.append(part + (upper << 32))
    found = np.concatenate(parts)
    if not source.ended or (np.diff(found) <= 0).any():
        raise ValueError("they are no sorted bitmap")
    return found


def _containers(source: _Reader, rows: int) -> Iterator[Places]:
    cookie = source.one("<u4")
    if cookie == _PLAIN:
        count = source.one("<u4")
        runs = np.zeros(count, np.bool_)
    elif cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        bits = source.take("u1", -(-count // 8)).astype(np.uint8)
        runs = np.unpackbits(bits, bitorder="little")[:count].astype(np.bool_)
    else:
        raise ValueError(f"a bitmap begins with {cookie}")
    heads = source.take("<u2", 2 * count).reshape(count, 2)
    if cookie == _PLAIN or count >= _OFFSETS_FROM:
        source.take("<u4", count)
    if int(heads[:, 1].sum()) + count > rows:
        raise ValueError("they are more than the rows of the base file")
    for (key, last), is_run in zip(heads.tolist(), runs.tolist(), strict=True):
        if is_run:
            pairs = source.take("<u2", 2 * source.one("<u2")).reshape(-1, 2).tolist()
            if sum(more + 1 for _, more in pairs) != last + 1:
                raise ValueError("a container has not as many values as it says")
            ranges = [np.arange(first, first + more + 1) for first, more in pairs]
            low = np.concatenate([np.zeros(0, np.int64), *ranges])
        elif last < _LARGEST_ARRAY:
            low = source.take("<u2", last + 1)
        else:
            low = np.flatnonzero(
                np.unpackbits(source.take("u1", _WORDS).astype(np.uint8), bitorder="little")
            )
        if len(low) != last + 1:
            raise ValueError("a container has not as many values as it says")
        yield low + (key << 16)
