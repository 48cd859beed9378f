"""Reader of HFiles, version 3: sorted keys with values, as Hudi's metadata table has.

The end of the file is read first: it says where the index is, and the index says which block of the
data holds a key. A small file is read at once. Blocks are plain or gzip. Every length is checked
against the bytes that are there, and a gzip block against its checksum; a plain block by HBase's
CRC32 if it has one. Damage is an error, never a missing key.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from typing import Any

from bridge.formats.hudi.log_format import read_exactly
from bridge.kernel.errors import FileCorrupt, UnsupportedTable
from bridge.storage.port import Range, Storage

FetchRanges = Callable[[Sequence[Range]], list[bytes]]
WHOLE = 8 << 20
"""A file of up to this many bytes is read in one request."""
_TAIL = 1 << 20
MAX_BLOCK = 128 << 20
"""Of one block, uncompressed. Hudi's own have 1 MiB; one holds all files of a partition."""
_MAX_LEVELS = 8
_TRAILER = 4096
_GZIP, _NONE = 1, 2
_CRC32 = 1
_BLOCK_HEADER = Struct(">8siiqbii")
_INDEX_ENTRY = Struct(">qi")
_ENTRY = Struct(">ii")
_INT = Struct(">i")
_HINT = "compact the table; if the file is of the metadata table, build that again"
_LONG = Struct(">q")
_SHORT = Struct(">h")
_ROOT, _LEAF, _MIDDLE = b"IDXROOT2", b"IDXLEAF2", b"IDXINTE2"
_DATA, _INFO, _END = b"DATABLK*", b"FILEINF2", b'TRABLK"$'


class _Damaged(Exception):
    """The bytes are no HFile."""


@dataclass(frozen=True, slots=True)
class _Trailer:
    """Offsets count from the start of the file, in bytes."""

    info: int
    load_on_open: int
    index_entries: int
    entries: int
    levels: int
    codec: int


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a block is; ``key`` is not greater than its keys, and greater than those before it."""

    key: bytes
    start: int
    length: int


class HFile:
    """One HFile. Safe for threads.

    Attributes:
        uri: for errors.
        entries: how many keys it has.
        info: its own properties.

    Errors of every method:
        FileCorrupt, FileChanged, FileUnreadable, StorageFailure, UnsupportedTable.
    """

    __slots__ = ("_fetch", "_places", "_size", "_trailer", "entries", "info", "uri")

    def __init__(self, fetch: FetchRanges, size: int, uri: str) -> None:
        self.uri = uri
        self._fetch = fetch
        self._size = size
        with _damage_is_told(uri):
            self._trailer = self._read_trailer()
            self.entries = self._trailer.entries
            self.info, self._places = self._read_index()
        self._check_supported()

    @staticmethod
    def open(storage: Storage, uri: str, length: int) -> HFile:
        """Opens a file of ``length`` bytes."""
        if length <= WHOLE:
            return HFile.parse(read_exactly(storage, uri, length), uri)
        return HFile(lambda ranges: storage.read_ranges(uri, ranges), length, uri)

    @staticmethod
    def parse(data: bytes | memoryview, uri: str) -> HFile:
        """Opens a file that is in memory."""
        view = memoryview(data)
        return HFile(lambda ranges: [bytes(view[a:b]) for a, b in ranges], len(view), uri)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys with their values, sorted by key as unsigned bytes."""
        seen = 0
        last = b""
        for places in _runs(self._places):
            for key, value in self._entries_of(places):
                if key < last:
                    raise self._corrupt(f"the key {key!r} follows {last!r}")
                last = key
                seen += 1
                yield key, value
        if seen != self.entries:
            raise self._corrupt(f"it has {seen} keys, and {self.entries} by its trailer")

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of some keys, without those that are not in the file."""
        wanted = set(keys)
        firsts = [place.key for place in self._places]
        needed = sorted({bisect_right(firsts, key) - 1 for key in wanted} - {-1})
        return {
            key: value
            for places in _runs([self._places[i] for i in needed])
            for key, value in self._entries_of(places)
            if key in wanted
        }

    def _entries_of(self, places: Sequence[_Place]) -> Iterator[tuple[bytes, bytes]]:
        with _damage_is_told(self.uri):
            for block in self._blocks(places, _DATA):  # one by one: each may unpack to much
                yield from _entries(block, self._has_versions)

    @property
    def _has_versions(self) -> bool:
        return self.info.get(b"KEY_VALUE_VERSION") == _INT.pack(1)

    def _corrupt(self, detail: str) -> FileCorrupt:
        return _corrupt(self.uri, detail)

    def _check_supported(self) -> None:
        newest = self.info.get(b"MAX_MEMSTORE_TS_KEY", _LONG.pack(0))
        if self._has_versions and newest != _LONG.pack(0):
            raise UnsupportedTable(f"{self.uri} keeps several versions of a key", _HINT)
        if b"hfile.MAX_TAGS_LEN" in self.info:
            raise UnsupportedTable(f"{self.uri} holds tags", _HINT)
        encoding = self.info.get(b"DATA_BLOCK_ENCODING", b"NONE")
        if encoding != b"NONE":
            said = encoding.decode("utf-8", "replace")
            raise UnsupportedTable(f"{self.uri} has blocks of the encoding {said}", _HINT)

    def _read_trailer(self) -> _Trailer:
        if self._size < _TRAILER:
            raise _Damaged("it is too short")
        tail_start = max(0, self._size - _TAIL)
        tail = self._fetch([(tail_start, self._size)])[0]
        trailer = tail[-_TRAILER:]
        # The bytes just read most often hold the index too.
        fetch = self._fetch
        self._fetch = lambda ranges: _from_tail(fetch, tail, tail_start, ranges)
        if trailer[:8] != _END:
            raise _Damaged("it has no trailer")
        major = int.from_bytes(trailer[-3:], "big")
        if major != 3:
            raise UnsupportedTable(
                f"{self.uri} is an HFile of version {major}, and 3 is read", _HINT
            )
        length, at = _varint(trailer, 8)
        fields = _message(trailer[at : at + length], length)
        found = _Trailer(
            info=_number(fields, 1),
            load_on_open=_number(fields, 2),
            index_entries=_number(fields, 5),
            entries=_number(fields, 7),
            levels=_number(fields, 8),
            codec=_number(fields, 12, _NONE),
        )
        if found.codec not in (_GZIP, _NONE):
            raise UnsupportedTable(
                f"{self.uri} is compressed with codec {found.codec}; gzip and none are read",
                _HINT,
            )
        if not found.load_on_open < found.info < self._size - _TRAILER:
            raise _Damaged("its trailer names places outside of it")
        return found

    def _read_index(self) -> tuple[dict[bytes, bytes], list[_Place]]:
        t = self._trailer
        head = self._fetch([(t.load_on_open, self._size - _TRAILER)])[0]
        root, _ = _block(memoryview(head), _ROOT, t.codec)
        info, _ = _block(memoryview(head)[t.info - t.load_on_open :], _INFO, t.codec)
        places = _root_entries(root, t.index_entries)
        if t.levels > _MAX_LEVELS:
            raise _Damaged(f"its index has {t.levels} levels")
        for level in range(t.levels - 1, 0, -1):
            kind = _MIDDLE if level > 1 else _LEAF
            places = [p for block in self._blocks(places, kind) for p in _leaf_entries(block)]
        limit = t.load_on_open
        if any(a.key > b.key for a, b in pairwise(places)):
            raise _Damaged("its index is not sorted")
        if any(p.start < 0 or p.length <= 0 or p.start + p.length > limit for p in places):
            raise _Damaged("its index names places outside of the data")
        if sum(place.length for place in places) > limit:
            raise _Damaged("its index names places several times")
        if self.entries and not places:
            raise _Damaged("it has keys and no index")
        return _file_info(info), places

    def _blocks(self, places: Sequence[_Place], magic: bytes) -> Iterator[memoryview]:
        for place in places:
            if not 0 <= place.start < place.start + place.length <= self._size:
                raise _Damaged("its index names places outside of it")
        if sum(place.length for place in places) > self._size:
            raise _Damaged("its index names places several times")
        for data in self._fetch([(p.start, p.start + p.length) for p in places]):
            yield _block(memoryview(data), magic, self._trailer.codec)[0]


def _from_tail(fetch: FetchRanges, tail: bytes, start: int, ranges: Sequence[Range]) -> list[bytes]:
    if all(a >= start for a, _ in ranges):
        return [tail[a - start : b - start] for a, b in ranges]
    return fetch(ranges)


def _runs(places: Sequence[_Place]) -> Iterator[Sequence[_Place]]:
    """Places to read together: all together would be too much of a large file."""
    run: list[_Place] = []
    size = 0
    for place in places:
        if run and size + place.length > WHOLE:
            yield run
            run, size = [], 0
        run.append(place)
        size += place.length
    if run:
        yield run


def _block(data: memoryview, magic: bytes, codec: int) -> tuple[memoryview, int]:
    """The content of the block at the start of some bytes, and how many it took."""
    found, stored, plain, _, checksum, per_checksum, end = _BLOCK_HEADER.unpack_from(data)
    if found != magic:
        raise _Damaged(f"a block begins with {found!r} and not {magic!r}")
    header = _BLOCK_HEADER.size
    if not header <= end <= header + stored <= len(data) or not 0 <= plain <= MAX_BLOCK:
        raise _Damaged("a block is longer than its place")
    content = data[header:end]
    if codec == _GZIP:
        unpacker = zlib.decompressobj(wbits=31)
        unpacked = unpacker.decompress(content, plain + 1)
        if len(unpacked) != plain or not unpacker.eof:
            raise _Damaged("a block does not unpack to its length")
        return memoryview(unpacked), header + stored
    if checksum == _CRC32 and per_checksum > 0:
        _check_crc32(data[:end], data[end : header + stored], per_checksum)
    if len(content) != plain:
        raise _Damaged("a block has another length than its header says")
    return content, header + stored


def _check_crc32(data: memoryview, sums: memoryview, step: int) -> None:
    parts = range(0, len(data), step)
    if len(sums) != 4 * len(parts):
        raise _Damaged("a block has another number of checksums")
    for i, start in enumerate(parts):
        if zlib.crc32(data[start : start + step]) != int.from_bytes(sums[4 * i : 4 * i + 4], "big"):
            raise _Damaged("a block differs from its checksum")


def _root_entries(block: memoryview, count: int) -> list[_Place]:
    places: list[_Place] = []
    at = 0
    for _ in range(count):
        start, length = _INDEX_ENTRY.unpack_from(block, at)
        size, at = _hadoop_varint(block, at + _INDEX_ENTRY.size)
        places.append(_Place(_content(_cut(block, at, size)), start, length))
        at += size
    if at != len(block):
        raise _Damaged("its index has more entries than its trailer says")
    return places


def _leaf_entries(block: memoryview) -> list[_Place]:
    (count,) = _INT.unpack_from(block)
    if not 0 <= count <= len(block) // _INDEX_ENTRY.size:
        raise _Damaged(f"an index block has {count} entries")
    offsets = Struct(f">{count + 1}i").unpack_from(block, _INT.size)
    first = _INT.size * (count + 2)
    places: list[_Place] = []
    for begin, end in pairwise(offsets):
        entry = _cut(block, first + begin, end - begin)
        start, length = _INDEX_ENTRY.unpack_from(entry)
        places.append(_Place(_content(entry[_INDEX_ENTRY.size :]), start, length))
    return places


def _entries(block: memoryview, versions: bool) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(block):
        key_length, value_length = _ENTRY.unpack_from(block, at)
        at += _ENTRY.size
        key = _cut(block, at, key_length)
        value = _cut(block, at + key_length, value_length)
        at += key_length + value_length
        if versions:
            # One byte, because the version is 0 in all files that are read.
            if bytes(_cut(block, at, 1)) != b"\0":
                raise _Damaged("a key has a version")
            at += 1
        yield _content(key), bytes(value)


def _content(key: memoryview) -> bytes:
    """The key as it was written: HBase adds family, time and type to it."""
    (length,) = _SHORT.unpack_from(key)
    return bytes(_cut(key, _SHORT.size, length))


def _cut(view: memoryview, start: int, length: int) -> memoryview:
    if length < 0 or start < 0 or start + length > len(view):
        raise _Damaged(f"a part has the length {length}")
    return view[start : start + length]


def _hadoop_varint(view: memoryview, at: int) -> tuple[int, int]:
    """A number as Hadoop's WritableUtils writes it, and where it ends."""
    (first,) = Struct(">b").unpack_from(view, at)
    if first >= -112:
        return int(first), at + 1
    size = -112 - first if first >= -120 else -120 - first
    number = int.from_bytes(_cut(view, at + 1, size), "big")
    return number if first >= -120 else ~number, at + 1 + size


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A number of a protocol buffer, and where it ends."""
    number = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise _Damaged("a number has more than 10 bytes")


def _message(data: bytes | memoryview, length: int) -> list[tuple[int, int | bytes]]:
    """The fields of a protocol buffer: number, and value."""
    if length != len(data):
        raise _Damaged("a message is longer than its place")
    fields: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 0:
            fields.append((tag >> 3, value))
        elif tag & 7 == 2:
            fields.append((tag >> 3, bytes(_cut(memoryview(data), at, value))))
            at += value
        else:
            raise _Damaged(f"a message has a field of wire type {tag & 7}")
    return fields


def _number(fields: Sequence[tuple[int, int | bytes]], number: int, default: int = 0) -> int:
    for found, value in fields:
        if found == number:
            if isinstance(value, bytes):
                raise _Damaged(f"field {number} of its trailer is no number")
            return value
    return default


def _file_info(block: memoryview) -> dict[bytes, bytes]:
    if bytes(block[:4]) != b"PBUF":
        raise _Damaged("its properties are no message")
    length, at = _varint(block, 4)
    info: dict[bytes, bytes] = {}
    for _, pair in _message(_cut(block, at, length), length):
        if not isinstance(pair, bytes):
            raise _Damaged("a property is no pair")
        entry: Mapping[int, Any] = dict(_message(pair, len(pair)))
        if not isinstance(entry.get(1), bytes):
            raise _Damaged("a property has no name")
        value = entry.get(2, b"")
        info[entry[1]] = value if isinstance(value, bytes) else b""
    return info


class _damage_is_told:  # noqa: N801 - reads as a statement
    """Turns what damaged bytes cause into one error."""

    __slots__ = ("_uri",)

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (_Damaged, struct.error, zlib.error, IndexError)):
            raise _corrupt(self._uri, str(error)) from error


def _corrupt(uri: str, detail: str) -> FileCorrupt:
    return FileCorrupt(f"{uri} is no whole HFile: {detail}", "restore it, or write it again")
