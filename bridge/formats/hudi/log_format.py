"""Blocks of Hudi's log files: how a file is cut into blocks, and which blocks count.

A file is read up to the length that was planned: bytes after it belong to later commits. A block is
a magic, its length, versions, a header of numbered texts, the content, and the length once more. A
writer that died leaves the beginning of a block; the next writer appends after it. Such a beginning
is passed over, as Hudi does. Any other damage to the frame of a block is an error: Hudi passes over
it too on some file systems, and loses rows. Content has no checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from bridge.kernel.errors import FileChanged, FileCorrupt, FileUnreadable, UnsupportedTable
from bridge.kernel.threads import Threads
from bridge.storage.port import Storage

MAGIC = b"#HUDI#"
VERSION = 1
MAX_BYTES = (1 << 31) - 1
"""Of one log file. Hudi starts a new one far earlier, at 1 GiB."""
_INT = Struct(">i")
_LONG = Struct(">q")
_READERS = 16


class BlockType(IntEnum):
    """What a block holds; the numbers are those of the files."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class Header(IntEnum):
    """The entries of a block's header; the numbers are those of the files."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


_TYPES = frozenset(BlockType) - {BlockType.CORRUPT}
_HEADERS = frozenset(Header)


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block.

    Attributes:
        uri: of its file.
        offset: of its magic in the file, in bytes.
        header: empty if the type is CORRUPT.
        content: without header and lengths; the type says how it is encoded.
    """

    uri: str
    offset: int
    type: BlockType
    header: Mapping[Header, str]
    content: memoryview

    @property
    def instant(self) -> str:
        """The request time of the instant that wrote the block. Errors: FileCorrupt."""
        return self.text(Header.INSTANT_TIME)

    def text(self, entry: Header) -> str:
        """An entry of the header. Errors: FileCorrupt if it is missing."""
        try:
            return self.header[entry]
        except KeyError:
            raise damage(self.uri, self.offset, f"its header has no {entry.name}") from None


class _Damaged(Exception):
    """The bytes are not what a writer leaves."""


def damage(uri: str, offset: int, detail: str) -> FileCorrupt:
    """The error for a block that cannot be decoded."""
    return FileCorrupt(
        f"{uri}: the log block at byte {offset} is damaged: {detail}",
        "restore the file, or roll back the commit that wrote it",
    )


def read_logs(storage: Storage, logs: Sequence[tuple[str, int]]) -> list[LogBlock]:
    """All blocks of some log files, file by file in the order given.

    Args:
        logs: URI, and the length in bytes that was planned.

    Errors:
        FileChanged: a file is shorter than planned.
        FileCorrupt, FileUnreadable, StorageFailure.
        UnsupportedTable: a later version of Hudi wrote a block, or a file is too long.
    """
    files = [log for log in logs if log[1]]
    if len(files) > 1 and storage.is_remote(files[0][0]):
        with Threads(min(_READERS, len(files)), "log") as pool:
            contents = list(pool.map(lambda file: read_exactly(storage, *file), files))
    else:
        contents = [read_exactly(storage, *file) for file in files]
    return [
        block
        for (uri, _), content in zip(files, contents, strict=True)
        for block in parse_blocks(content, uri)
    ]


def read_exactly(storage: Storage, uri: str, length: int) -> bytes:
    """The first ``length`` bytes of a file.

    Errors:
        FileChanged: it is shorter.
        FileUnreadable, StorageFailure, UnsupportedTable.
    """
    if not 0 <= length <= MAX_BYTES:
        raise UnsupportedTable(
            f"{uri} has {length} bytes, and at most {MAX_BYTES} are read", "compact the table"
        )
    try:
        return storage.read_ranges(uri, [(0, length)])[0]
    except FileUnreadable:
        now = storage.stat(uri)
        if now is None or now.size >= length:
            raise
        raise FileChanged(
            f"{uri} has {now.size} bytes and not the {length} that were planned", "scan again"
        ) from None


def parse_blocks(data: bytes, uri: str) -> list[LogBlock]:
    """The blocks of a file, in its order.

    Args:
        uri: for errors.

    Errors:
        FileCorrupt: see the law of this module.
        UnsupportedTable: a later version of Hudi wrote a block.
    """
    view = memoryview(data)
    blocks: list[LogBlock] = []
    start = 0
    # The rest is no block if not even a magic fits: a writer died while it wrote one.
    while start + len(MAGIC) <= len(data):
        try:
            if data[start : start + len(MAGIC)] != MAGIC:
                raise _Damaged("it does not begin with the magic bytes")
            end = _end_of_block(data, start)
            if end is None:
                end = data.find(MAGIC, start + len(MAGIC))
                end = len(data) if end < 0 else end
                _check_torn(data, start, end)
                block = LogBlock(uri, start, BlockType.CORRUPT, {}, view[start:end])
            else:
                block = _whole_block(view, start, end, uri)
        except _Damaged as error:
            raise damage(uri, start, str(error)) from None
        blocks.append(block)
        start = end
    return blocks


def _end_of_block(data: bytes, start: int) -> int | None:
    """Where a block ends; None if the file, or the next block, begins before that."""
    at = start + len(MAGIC)
    if at + _LONG.size > len(data):
        return None
    (length,) = _LONG.unpack_from(data, at)
    if length < _LONG.size:
        raise _Damaged(f"its length is {length}")
    end: int = at + _LONG.size + length
    if end > len(data):
        return None
    # The copy at the end counts the magic too.
    copy = _LONG.unpack_from(data, end - _LONG.size)[0]
    agrees = copy == length + len(MAGIC)
    follower = data[end : end + len(MAGIC)]
    if agrees and (follower == MAGIC or len(follower) < len(MAGIC)):
        return end
    if agrees:
        raise _Damaged("no other block follows it")
    # The next block may begin in the last bytes that this one claims.
    torn = data.find(MAGIC, at, end + len(MAGIC) - 1) >= 0
    if torn and (not follower or follower == MAGIC):
        # Either this block ends here, or a later one does whose magic stands in between.
        inner = end - _LONG.size - copy
        torn = at <= inner <= end - len(MAGIC) and data.startswith(MAGIC, inner)
    if not torn:
        raise _Damaged("its two lengths differ")
    return None


def _check_torn(data: bytes, start: int, end: int) -> None:
    """Errors: _Damaged if the bytes are a whole block whose length is wrong."""
    written = end - start
    if written < len(MAGIC) + 2 * _LONG.size:
        return
    if _LONG.unpack_from(data, end - _LONG.size)[0] == written - _LONG.size:
        raise _Damaged("its two lengths differ")


def _whole_block(view: memoryview, start: int, end: int, uri: str) -> LogBlock:
    reader = _Reader(view, start + len(MAGIC) + _LONG.size, end - _LONG.size)
    version = reader.number()
    if version != VERSION:
        raise UnsupportedTable(
            f"{uri}: the log block at byte {start} has version {version}, and {VERSION} is read",
            "compact the table, or upgrade",
        )
    number = reader.number()
    if number not in _TYPES:
        raise UnsupportedTable(
            f"{uri}: the log block at byte {start} is of the unknown type {number}",
            "compact the table, or upgrade",
        )
    header: dict[Header, str] = {}
    for entry, text in reader.entries():
        if entry not in _HEADERS:
            raise UnsupportedTable(
                f"{uri}: the log block at byte {start} has the unknown header {entry}",
                "compact the table, or upgrade",
            )
        header[Header(entry)] = text
    content = reader.take(reader.long_number())
    if reader.entries() or reader.at != reader.end:
        raise _Damaged("its parts are not as long as it is")
    return LogBlock(uri, start, BlockType(number), header, content)


class _Reader:
    """Reads big-endian numbers and texts up to an end. Errors of all methods: _Damaged."""

    def __init__(self, view: memoryview, at: int, end: int) -> None:
        self._view = view
        self.at = at
        self.end = end

    def take(self, length: int) -> memoryview:
        if not 0 <= length <= self.end - self.at:
            raise _Damaged(f"a part has the length {length}")
        self.at += length
        return self._view[self.at - length : self.at]

    def number(self) -> int:
        return int(_INT.unpack(self.take(_INT.size))[0])

    def long_number(self) -> int:
        return int(_LONG.unpack(self.take(_LONG.size))[0])

    def entries(self) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        count = self.number()
        if count < 0:
            raise _Damaged(f"its header has {count} entries")
        for _ in range(count):
            entry = self.number()
            try:
                found.append((entry, str(self.take(self.number()), "utf-8")))
            except UnicodeDecodeError:
                raise _Damaged(f"header {entry} is no text") from None
        return found


def blocks_in_merge_order(
    blocks: Sequence[LogBlock], is_valid: Callable[[str], bool]
) -> list[LogBlock]:
    """The data and delete blocks that count, in the order in which they apply.

    Blocks of one instant stay together, at the place of its first. A rollback removes the blocks of
    its target that stand before it. Blocks that a log compaction merged are replaced by its own, at
    the place of the last of them.

    Args:
        blocks: of one file slice, file by file in the order of the logs.
        is_valid: whether an instant is committed. Rollbacks apply in any case.

    Errors:
        FileCorrupt, UnsupportedTable.
    """
    found: dict[str, list[LogBlock]] = {}
    for block in blocks:
        if block.type is BlockType.COMMAND:
            command = block.text(Header.COMMAND_BLOCK_TYPE)
            if command != "0":
                raise UnsupportedTable(
                    f"{block.uri}: the log block at byte {block.offset} holds the unknown command "
                    f"{command!r}",
                    "compact the table, or upgrade",
                )
            found.pop(block.text(Header.TARGET_INSTANT_TIME), None)
        elif block.type not in (BlockType.CORRUPT, BlockType.CDC_DATA) and is_valid(block.instant):
            found.setdefault(block.instant, []).append(block)
    return _compacted(found)


def _compacted(found: dict[str, list[LogBlock]]) -> list[LogBlock]:
    replaced: dict[str, str] = {}
    compactions: list[str] = []
    order: dict[str, None] = {}
    for instant in reversed(found):
        times = found[instant][0].header.get(Header.COMPACTED_BLOCK_TIMES)
        final = replaced.get(instant, instant)
        if times is not None:
            compactions.append(final)
            replaced.update((original, final) for original in times.split(","))
        else:
            order.setdefault(final)
    for instant in compactions:
        if instant not in order:
            # Hudi would leave the block out; its rows would be lost without a word.
            block = found[instant][0]
            raise damage(block.uri, block.offset, "no block that it compacts is in the slice")
    return [block for instant in reversed(order) for block in found[instant]]
