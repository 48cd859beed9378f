"""HFiles: what is written is read; damage is told."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest

from bridge.formats.hudi import hfile as module
from bridge.formats.hudi.hfile import HFile
from bridge.kernel.errors import FileCorrupt, UnsupportedTable
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from tests.support.hudi_writer import hfile

URI = "file:/t/files-0000-0_0-1-2_001.hfile"


def entries_of(count: int) -> list[tuple[bytes, bytes]]:
    return [(f"day={n:05}".encode(), bytes([n % 251]) * (n % 40)) for n in range(count)]


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 4, 5, 200])
def test_round_trip(count: int, levels: int, checksums: bool, compressed: bool) -> None:
    entries = entries_of(count)
    data = hfile(entries, compressed=compressed, levels=levels, checksums=checksums)
    read = HFile.parse(data, URI)
    assert read.entries == count
    assert list(read.scan()) == entries
    assert read.get(key for key, _ in entries) == dict(entries)
    some = dict(random.Random(count).sample(entries, min(3, count)))
    assert read.get(some) == some
    assert read.get([b"", b"day=", b"day=00000x", b"zz"]) == {}


def test_no_entries() -> None:
    read = HFile.parse(hfile([]), URI)
    assert list(read.scan()) == []
    assert read.get([b"a"]) == {}


def test_long_keys_and_values() -> None:
    entries = [(b"k" * 30_000 + bytes([n]), b"v" * 100_000) for n in range(5)]
    for compressed in (True, False):
        read = HFile.parse(hfile(entries, compressed=compressed, checksums=True), URI)
        assert list(read.scan()) == entries
        assert read.get([entries[3][0]]) == dict([entries[3]])


def test_properties_are_read() -> None:
    read = HFile.parse(hfile(entries_of(1), info={b"schema": b'"string"', b"empty": b""}), URI)
    assert read.info[b"schema"] == b'"string"'
    assert read.info[b"empty"] == b""


def test_a_large_file_is_read_by_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(f"k{n:06}".encode(), bytes(random.Random(n).randbytes(200))) for n in range(3000)]
    path = tmp_path / "f.hfile"
    path.write_bytes(hfile(entries, per_block=10, levels=2))
    monkeypatch.setattr(module, "WHOLE", 10_000)
    monkeypatch.setattr(module, "_TAIL", 8_000)
    storage = open_storage()
    read = HFile.open(storage, canonical(str(path)), path.stat().st_size)
    assert list(read.scan()) == entries
    assert read.get([b"k000000", b"k001500", b"k002999", b"k003000"]) == {
        key: value for key, value in entries if key in (b"k000000", b"k001500", b"k002999")
    }


def outcome(data: bytes, entries: list[tuple[bytes, bytes]]) -> str:
    try:
        read = HFile.parse(data, URI)
        assert list(read.scan()) == entries
        assert read.get(key for key, _ in entries) == dict(entries)
    except (FileCorrupt, UnsupportedTable) as error:
        return error.code
    return "the same"


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.rule("35")
def test_truncated_at_every_byte_is_an_error(compressed: bool) -> None:
    entries = entries_of(9)
    data = hfile(entries, compressed=compressed, levels=2)
    for length in range(len(data)):
        assert outcome(data[:length], entries) != "the same", length


@pytest.mark.parametrize("compressed", [True, False])
def test_flipped_bits_never_give_other_entries(compressed: bool) -> None:
    entries = entries_of(9)
    data = hfile(entries, compressed=compressed, levels=2, checksums=True)
    trailer = len(data) - 4096
    told = 0
    for place in [*range(trailer + 80), *range(len(data) - 4, len(data))]:
        for bit in (0, 3, 7):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            told += outcome(bytes(damaged), entries) != "the same"
    assert told > 1000


def test_keys_out_of_order_are_damage() -> None:
    entries = [(b"b", b"1"), (b"a", b"2")]
    with pytest.raises(FileCorrupt, match="follows"):
        list(HFile.parse(hfile(entries), URI).scan())


def test_what_is_not_read_is_refused() -> None:
    one = entries_of(1)
    for info in (
        {b"MAX_MEMSTORE_TS_KEY": b"\0" * 7 + b"\1"},
        {b"hfile.MAX_TAGS_LEN": b"\0\0\0\1"},
        {b"DATA_BLOCK_ENCODING": b"FAST_DIFF"},
    ):
        with pytest.raises(UnsupportedTable):
            HFile.parse(hfile(one, info=info), URI)
    older = bytearray(hfile(one))
    older[-1] = 2
    with pytest.raises(UnsupportedTable, match="version 2"):
        HFile.parse(bytes(older), URI)
    with pytest.raises(FileCorrupt):
        HFile.parse(b"PAR1" * 2000, URI)


@pytest.mark.rule("32")
@pytest.mark.parametrize("levels", [1, 2, 7])
def test_32_a_block_that_the_index_names_many_times_is_damage(levels: int) -> None:
    """A thousand times at each of seven levels would be more blocks than memory holds."""
    data = hfile([(b"k", b"v")], per_block=1000, levels=levels, repeat=1000)
    assert len(data) < 20_000
    with pytest.raises(FileCorrupt, match="several times"):
        list(HFile.parse(data, URI).scan())


@pytest.mark.rule("32")
def test_32_blocks_are_unpacked_one_by_one() -> None:
    entries = [(b"k%02d" % n, bytes(4 << 20)) for n in range(16)]
    data = hfile(entries, per_block=1)
    tracemalloc.start()
    try:
        assert sum(len(value) for _, value in HFile.parse(data, URI).scan()) == 64 << 20
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
