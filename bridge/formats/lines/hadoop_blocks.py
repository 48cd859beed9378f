"""Snappy and LZ4 in Hadoop's framing: blocks of chunks, each with its length in front.

A block is the number of its bytes before compression, then chunks until it has so many. A chunk is
the number of its compressed bytes, and these. Numbers have four bytes, the greatest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import cramjam

LARGEST = 64 * 1024 * 1024
"""Bytes of a chunk, compressed or not. Hadoop's have 256 KiB, unless its settings say otherwise."""


def _snappy(chunk: bytes, out: bytearray) -> int:
    return int(cramjam.snappy.decompress_raw_into(chunk, out))


def _lz4(chunk: bytes, out: bytearray) -> int:
    return int(cramjam.lz4.decompress_block_into(chunk, out, output_len=len(out)))


CODECS: dict[str, tuple[Callable[[bytes, bytearray], int], int]] = {
    ".snappy": (_snappy, 64),
    ".lz4": (_lz4, 256),
}
"""Decoders of one chunk, by the end of a file's name; and how much a byte becomes at most."""


def hadoop_blocks(parts: Iterator[bytes], suffix: str) -> Iterator[bytes]:
    """What a file of blocks holds, chunk by chunk.

    Args:
        parts: the file's bytes.
        suffix: one of `CODECS`.

    Errors:
        ValueError: it ends within a block, or a length is not true.
    """
    decode, ratio = CODECS[suffix]
    source = _Source(parts)
    while left := source.number():
        while left > 0:
            length = source.number()
            if not length or not 0 < length <= LARGEST:
                raise ValueError("a block of it lacks bytes, or has a chunk without any")
            chunk = source.take(length)
            out = bytearray(min(left, LARGEST, ratio * length + 64))
            try:
                count = decode(chunk, out)
            except cramjam.DecompressionError as error:
                raise ValueError(f"a chunk cannot be decompressed: {error}") from error
            if not count:
                raise ValueError("a chunk holds nothing")
            left -= count
            yield bytes(memoryview(out)[:count])


class _Source:
    """Reads exact numbers of bytes from parts."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._held, self._at = parts, b"", 0

    def take(self, count: int) -> bytes:
        """Errors: ValueError: the end comes first."""
        found = [self._held[self._at : self._at + count]]
        self._at += len(found[0])
        missing = count - len(found[0])
        while missing:
            self._held = next(self._parts, b"")
            if not self._held:
                raise ValueError("it ends in the middle of a block")
            found.append(self._held[:missing])
            self._at = len(found[-1])
            missing -= self._at
        return b"".join(found)

    def number(self) -> int | None:
        """None at the end of the file. An empty block is passed over, as by Hadoop."""
        while True:
            if self._at == len(self._held):
                self._held, self._at = next(self._parts, b""), 0
                if not self._held:
                    return None
            found = int.from_bytes(self.take(4), "big")
            if found:
                return found
