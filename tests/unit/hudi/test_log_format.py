"""Hudi's log files: blocks, damage, rollbacks and log compaction."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from bridge.formats.hudi.log_format import (
    MAGIC,
    BlockType,
    Header,
    LogBlock,
    blocks_in_merge_order,
    parse_blocks,
    read_logs,
)
from bridge.kernel.errors import BridgeError, FileChanged, FileCorrupt, UnsupportedTable
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from tests.support.hudi_writer import log_block, rollback_block

URI = "file:/t/.f_1.log.1_0-0-0"


def block(instant: str, content: bytes = b"rows", **header: str) -> bytes:
    entries: dict[int, str] = {Header.INSTANT_TIME: instant, Header.SCHEMA: '"string"'}
    entries.update({Header[name.upper()]: text for name, text in header.items()})
    return log_block(BlockType.AVRO_DATA, entries, content)


def instants(blocks: list[LogBlock]) -> list[str]:
    return [b.instant for b in blocks]


def whole(blocks: list[LogBlock]) -> list[LogBlock]:
    return [b for b in blocks if b.type is not BlockType.CORRUPT]


def test_blocks_of_a_file_are_found_in_order() -> None:
    first, second = block("1", b"a" * 100), block("2", b"")
    found = parse_blocks(first + second, URI)
    assert instants(found) == ["1", "2"]
    assert [bytes(b.content) for b in found] == [b"a" * 100, b""]
    assert [b.offset for b in found] == [0, len(first)]
    assert found[0].header[Header.SCHEMA] == '"string"'


def test_a_file_without_a_byte_has_no_blocks() -> None:
    assert parse_blocks(b"", URI) == []


def test_truncated_at_every_byte_whole_blocks_stay() -> None:
    parts = [block("1", b"abc"), rollback_block("2", "0"), block("3", MAGIC + b"x" * 20)]
    data = b"".join(parts)
    for length in range(len(data) + 1):
        ends = [len(parts[0]), len(parts[0] + parts[1]), len(data)]
        complete = sum(end <= length for end in ends)
        try:
            found = parse_blocks(data[:length], URI)
        except FileCorrupt:
            # Content that looks like a block: never fewer whole blocks, and never wrong ones.
            assert complete == 2
            continue
        assert instants(whole(found)) == ["1", "2", "3"][:complete], length


def test_what_a_dead_writer_left_is_passed_over() -> None:
    torn, after = block("1", b"abcdefgh" * 4), block("2")
    for length in range(len(MAGIC), len(torn)):
        found = parse_blocks(torn[:length] + after, URI)
        assert instants(whole(found)) == ["2"]
        assert found[0].type is BlockType.CORRUPT
        assert found[0].content == torn[:length]


def test_no_flipped_bit_of_a_frame_loses_a_block() -> None:
    parts = [block("1", b"abc"), block("2", b"defg"), block("3", b"h")]
    data = b"".join(parts)
    for place in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            try:
                found = parse_blocks(bytes(damaged), URI)
            except (FileCorrupt, UnsupportedTable):
                continue
            assert len(whole(found)) == 3, (place, bit)


@pytest.mark.parametrize("data", [b"PAR1" * 5, b"\0" * 100, b"x" + block("1")])
def test_a_file_that_begins_with_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(FileCorrupt, match="begin with the magic"):
        parse_blocks(data, URI)


def test_bytes_between_whole_blocks_are_damage() -> None:
    with pytest.raises(FileCorrupt, match="no other block follows"):
        parse_blocks(block("1") + b"\0" * 64 + block("2"), URI)


@pytest.mark.parametrize("length", [-1, 0, 7, -(1 << 63)])
@pytest.mark.rule("32")
def test_a_length_that_no_block_has_is_damage(length: int) -> None:
    with pytest.raises(FileCorrupt, match="its length is"):
        parse_blocks(MAGIC + struct.pack(">q", length) + b"\0" * 40, URI)


def test_magic_alone_many_times_ends() -> None:
    found = parse_blocks(MAGIC * 10_000, URI)
    assert whole(found) == []


@pytest.mark.parametrize("count", [-1, 1 << 20, (1 << 31) - 1])
def test_a_header_with_a_wrong_count_is_damage(count: int) -> None:
    data = bytearray(log_block(BlockType.DELETE, {}))
    struct.pack_into(">i", data, len(MAGIC) + 16, count)
    with pytest.raises(FileCorrupt):
        parse_blocks(bytes(data), URI)


def test_later_formats_are_refused() -> None:
    for data in (
        log_block(BlockType.AVRO_DATA, {}, version=2),
        log_block(BlockType.AVRO_DATA, {}, version=0),
        log_block(99, {}),
        log_block(BlockType.CORRUPT, {}),
        log_block(BlockType.AVRO_DATA, {99: "x"}),
    ):
        with pytest.raises(UnsupportedTable):
            parse_blocks(data, URI)


def test_files_are_read_to_the_planned_length(tmp_path: Path) -> None:
    path = tmp_path / ".f_1.log.1_0-0-0"
    first, second = block("1"), block("2")
    path.write_bytes(first + second)
    empty = tmp_path / ".f_1.log.2_0-0-0"
    empty.write_bytes(b"")
    storage = open_storage()
    uri = canonical(str(path))
    read = read_logs(storage, [(uri, len(first)), (canonical(str(empty)), 0)])
    assert instants(read) == ["1"]
    path.write_bytes(first)
    with pytest.raises(FileChanged, match="planned"):
        read_logs(storage, [(uri, len(first) + len(second))])
    path.unlink()
    with pytest.raises(BridgeError):
        read_logs(storage, [(uri, len(first))])


def order(*blocks: bytes, valid: str = "123456789") -> list[str]:
    found = blocks_in_merge_order(parse_blocks(b"".join(blocks), URI), set(valid).__contains__)
    return instants(found)


def test_blocks_of_instants_that_are_not_valid_are_left_out() -> None:
    assert order(block("1"), block("2"), block("3"), valid="13") == ["1", "3"]


def test_blocks_of_an_instant_stay_together() -> None:
    assert order(block("1"), block("2"), block("1")) == ["1", "1", "2"]


def test_a_rollback_removes_its_target_wherever_it_stands() -> None:
    blocks = [block("1"), block("2"), block("3"), rollback_block("4", "2"), block("5")]
    assert order(*blocks) == ["1", "3", "5"]
    assert order(*blocks, valid="1235") == ["1", "3", "5"]


def test_a_rollback_leaves_what_comes_after_it() -> None:
    assert order(block("1"), rollback_block("2", "1"), block("1")) == ["1"]
    assert order(block("1"), block("2"), rollback_block("3", "1"), block("1")) == ["2", "1"]


def test_a_rollback_of_nothing_does_nothing() -> None:
    assert order(rollback_block("4", "9"), block("1")) == ["1"]


def test_an_unknown_command_is_refused() -> None:
    header = {Header.INSTANT_TIME: "1", Header.TARGET_INSTANT_TIME: "0"}
    with pytest.raises(UnsupportedTable, match="unknown command '1'"):
        order(log_block(BlockType.COMMAND, {**header, Header.COMMAND_BLOCK_TYPE: "1"}))
    with pytest.raises(FileCorrupt, match="COMMAND_BLOCK_TYPE"):
        order(log_block(BlockType.COMMAND, header))


def test_a_block_without_an_instant_is_damage() -> None:
    with pytest.raises(FileCorrupt, match="INSTANT_TIME"):
        order(log_block(BlockType.AVRO_DATA, {}))


def test_log_compaction_takes_the_place_of_its_blocks() -> None:
    merged = block("4", compacted_block_times="1,2")
    assert order(block("1"), block("2"), block("3"), merged) == ["4", "3"]


def test_log_compaction_of_a_log_compaction() -> None:
    first = block("3", compacted_block_times="1,2")
    second = block("6", compacted_block_times="3,4")
    blocks = [block("1"), block("2"), first, block("4"), block("5"), second]
    assert order(*blocks) == ["6", "5"]


def test_log_compaction_that_is_not_committed_is_left_out() -> None:
    merged = block("4", compacted_block_times="1,2")
    assert order(block("1"), block("2"), block("3"), merged, valid="123") == ["1", "2", "3"]


def test_log_compaction_without_its_blocks_is_never_dropped() -> None:
    with pytest.raises(FileCorrupt, match="compacts"):
        order(block("3"), block("4", compacted_block_times="1,2"))


def test_change_data_blocks_are_ignored() -> None:
    cdc = log_block(BlockType.CDC_DATA, {Header.INSTANT_TIME: "2"})
    assert order(block("1"), cdc) == ["1"]


@pytest.mark.parametrize("count", [500, 1000])
def test_blocks_that_claim_all_that_follows_cost_in_proportion(count: int) -> None:
    """Each ends where the last one does, whose length alone is right."""
    size = len(MAGIC) + 8
    total = count * size + 30
    data = bytearray()
    for n in range(count):
        data += MAGIC + struct.pack(">q", total - (n + 1) * size)
    data = data.ljust(total - 8, b"\0") + struct.pack(">q", total - (count - 1) * size - 8)

    class Counted(bytes):
        looks = 0

        def find(self, *wanted: Any) -> int:
            Counted.looks += 1
            return super().find(*wanted)

    with pytest.raises(UnsupportedTable, match=rf"at byte {(count - 1) * size} has version 0"):
        parse_blocks(Counted(data), URI)
    assert count < Counted.looks < 4 * count


def test_blocks_of_many_instants_cost_in_proportion() -> None:
    class Counted(str):
        __slots__ = ()
        looks = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Counted.looks += 1
            return str.__eq__(self, other)

    count = 500
    blocks = [
        LogBlock(URI, n, BlockType.DELETE, {Header.INSTANT_TIME: Counted(n)}, memoryview(b""))
        for n in range(count)
    ]
    assert blocks_in_merge_order(blocks, lambda instant: True) == blocks
    assert Counted.looks < 8 * count
