"""Whole lines of a text file, in blocks, as far as all engines agree where a line ends.

Hadoop's and Trino's line readers both end a line at LF, CR LF, and a lone CR. Here a file with a
lone CR, a NUL, a byte order mark before its first row, or bytes that are not UTF-8 is ambiguous:
readers treat these differently further on. Files are decompressed by the suffix of their name, as
engines do it. A compressed file that ends early, or that has anything after its end, is ambiguous,
too.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from bridge.formats.lines.hadoop_blocks import CODECS, hadoop_blocks
from bridge.kernel.errors import FileAmbiguous
from bridge.storage.port import Storage

BLOCK = 8 * 1024 * 1024
_LEAST = 1024 * 1024
"""Bytes of lines that are parsed at once, unless the file has less."""
_FIRST = 1024
"""Bytes that a member of a compressed file gets at first."""
_LONGEST = 64 * 1024 * 1024
"""Bytes of a line. Engines have limits, too."""
_HEADER, _FOOTER = "skip.header.line.count", "skip.footer.line.count"
_UNDECODED = (".lzo", ".lzo_deflate", ".lzop", ".z", ".xz", ".zip")
"""Suffixes of codecs that are not read here."""
_READ = (".gz", ".bz2", ".zst", ".deflate", *CODECS)
_BOM = b"\xef\xbb\xbf"
_INPUT_FORMATS = frozenset(
    {
        "org.apache.hadoop.mapred.TextInputFormat",
        "io.skipbridge.hive.BridgeTextInputFormat",
    }
)
COMMON = frozenset(
    {"serialization.lib", "file.inputformat", "serialization.encoding", _HEADER, _FOOTER}
)
"""Properties that `header_lines` checks."""


def ambiguous_file_error(uri: str, why: str) -> FileAmbiguous:
    """The error that leaves a file unknown."""
    return FileAmbiguous(
        f"{uri}: {why}", "no index can be sure of this file, so each query reads it"
    )


def header_lines(uri: str, properties: Mapping[str, str], known: frozenset[str]) -> int:
    """The number of lines to leave out at the beginning.

    Args:
        known: further properties that the caller has understood.

    Errors:
        FileAmbiguous: a property says what is not understood here.
    """
    for name in properties:
        if name not in COMMON and name not in known:
            raise ambiguous_file_error(
                uri, f"the property {name!r} may change how its lines are read"
            )
    encoding = properties.get("serialization.encoding", "UTF-8")
    if encoding.lower() not in ("utf-8", "utf8"):
        raise ambiguous_file_error(uri, f"its encoding is {encoding!r}")
    used = properties.get("file.inputformat")
    if used and used not in _INPUT_FORMATS:
        raise ambiguous_file_error(uri, f"its input format is {used!r}")
    if properties.get(_FOOTER, "0") != "0":
        raise ambiguous_file_error(
            uri, f"lines at its end are left out: {_FOOTER}={properties[_FOOTER]!r}"
        )
    count = properties.get(_HEADER, "0")
    if not (count.isascii() and count.isdigit() and len(count) < 6):
        raise ambiguous_file_error(uri, f"{_HEADER}={count!r} is no number of lines")
    return int(count)


def line_blocks(storage: Storage, uri: str, size: int, header: int) -> Iterator[bytes]:
    """Blocks of whole lines without the header. Every line ends with LF, also the last one.

    Errors:
        FileAmbiguous, FileUnreadable, StorageFailure.
    """
    rest = bytearray()
    for part in _gathered(_content(storage, uri, size)):
        end = part.rfind(b"\n") + 1
        if not end:
            rest += part
            if len(rest) > _LONGEST:
                raise ambiguous_file_error(uri, f"a line is longer than {_LONGEST} bytes")
            continue
        block, rest = b"".join((rest, memoryview(part)[:end])), bytearray(part[end:])
        block, header = _without(uri, _checked(uri, block), header)
        if block:
            yield block
    if rest:
        block, header = _without(uri, _checked(uri, bytes(rest) + b"\n"), header)
        if block:
            yield block


def _without(uri: str, block: bytes, header: int) -> tuple[bytes, int]:
    """The block without so many lines, and how many of them are still to be left out."""
    at = 0
    while header and at < len(block):
        at = block.index(b"\n", at) + 1
        header -= 1
    found = block[at:] if at else block
    if found.startswith(_BOM):  # Arrow skips it, wherever a block begins
        raise ambiguous_file_error(uri, "it holds a byte order mark")
    return found, header


def _checked(uri: str, block: bytes) -> bytes:
    if b"\0" in block:
        raise ambiguous_file_error(uri, "it holds a NUL")
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
        if b"\r" in block:
            raise ambiguous_file_error(
                uri, "it holds a carriage return that is not before a line feed"
            )
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError as error:
            raise ambiguous_file_error(uri, "it is not UTF-8") from error
    return block


def _content(storage: Storage, uri: str, size: int) -> Iterator[bytes]:
    """The file's bytes, decompressed, in parts that are not empty."""
    name = uri.rpartition("/")[2]
    suffix = "." + name.rpartition(".")[2] if "." in name else ""
    if suffix == ".gz":
        yield from _members(uri, _raw(storage, uri, size), lambda: zlib.decompressobj(31), True)
    elif suffix == ".deflate":
        yield from _members(uri, _raw(storage, uri, size), zlib.decompressobj, True)
    elif suffix in CODECS:
        try:
            yield from hadoop_blocks(_raw(storage, uri, size), suffix)
        except ValueError as error:
            raise ambiguous_file_error(uri, f"it cannot be decompressed: {error}") from error
    elif suffix == ".bz2":
        yield from _members(uri, _raw(storage, uri, size), bz2.BZ2Decompressor, False)
    elif suffix == ".zst":
        yield from _zstd(storage, uri, size)
    elif suffix.lower() in (*_UNDECODED, *_READ, ".zstd", ".gzip"):
        raise ambiguous_file_error(uri, f"files with the suffix {suffix} are not decompressed here")
    else:
        yield from _raw(storage, uri, size)


def _gathered(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts, small ones joined: a file may have a member or a chunk for each of its bytes."""
    held = bytearray()
    for part in parts:
        held += part
        if len(held) >= _LEAST:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _raw(storage: Storage, uri: str, size: int) -> Iterator[bytes]:
    for start in range(0, size, BLOCK):
        (part,) = storage.read_ranges(uri, [(start, min(size, start + BLOCK))])
        yield bytes(part)


def _members(uri: str, parts: Iterator[bytes], fresh: Any, several: bool) -> Iterator[bytes]:
    """The content of all members.

    Args:
        several: whether every reader reads more than one. Of bzip2 they differ.
    """
    member, most = fresh(), _FIRST
    for part in parts:
        view, at = memoryview(part), 0
        while at < len(part):
            if member.eof:
                if not several:
                    raise ambiguous_file_error(uri, "it holds more than one compressed stream")
                member, most = fresh(), _FIRST
            # What a member does not take is copied, so each gets little until it has taken more.
            taken = view[at : at + most]
            try:
                yield from _pieces(member, taken)
            except (zlib.error, OSError, ValueError) as error:
                raise ambiguous_file_error(uri, f"it cannot be decompressed: {error}") from error
            at += len(taken) - len(member.unused_data)
            most = min(2 * most, BLOCK)
    if not member.eof:
        raise ambiguous_file_error(uri, "it ends in the middle of a compressed stream")


def _pieces(member: Any, part: memoryview) -> Iterator[bytes]:
    """What a part decompresses to, in bounded pieces: a small file may hold many zeros."""
    piece = member.decompress(part, BLOCK)
    while piece:
        yield piece
        if member.eof:
            return
        left = getattr(member, "unconsumed_tail", b"")  # zlib keeps it here, bz2 inside
        piece = member.decompress(left, BLOCK)


def _zstd(storage: Storage, uri: str, size: int) -> Iterator[bytes]:
    if not size:
        raise ambiguous_file_error(uri, "it holds no compressed stream")
    source = pa.PythonFile(_Raw(_raw(storage, uri, size)), mode="r")
    try:
        with pa.CompressedInputStream(source, "zstd") as stream:
            while part := stream.read(BLOCK):
                yield part
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ambiguous_file_error(uri, f"it cannot be decompressed: {error}") from error


class _Raw:
    """The parts of a file as a stream for Arrow."""

    closed = False

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._held = parts, b""

    def read(self, count: int = -1) -> bytes:
        while not self._held:
            part = next(self._parts, None)
            if part is None:
                return b""
            self._held = part
        count = len(self._held) if count is None or count < 0 else count
        found, self._held = self._held[:count], self._held[count:]
        return found

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing is open."""
