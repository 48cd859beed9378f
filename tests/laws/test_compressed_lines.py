"""Text in every codec that is read: the lines of the file, or the file is ambiguous."""

from __future__ import annotations

import bz2
import gzip
import random
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import cramjam
import pyarrow as pa
import pytest

from bridge.formats.lines import lines
from bridge.formats.lines.lines import line_blocks
from bridge.kernel.errors import FileAmbiguous
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.segments.headers import first_line
from tests.tiers import examples, seed


def blocks(rng: random.Random, raw: bytes, codec: str) -> bytes:
    """As Hadoop writes: blocks, each of one or more chunks."""
    found, at = b"", 0
    while at < len(raw):
        block = raw[at : at + rng.choice((1, 7, 100, 5000))]
        at += len(block)
        found += len(block).to_bytes(4, "big")
        while block:
            size = rng.choice((1, 50, 5000))
            chunk, block = block[:size], block[size:]
            packed = bytes(
                cramjam.snappy.compress_raw(chunk)
                if codec == "snappy"
                else cramjam.lz4.compress_block(chunk, store_size=False)
            )
            found += len(packed).to_bytes(4, "big") + packed
        found += rng.choice((b"", b"", bytes(4)))
    return found


PACKED: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "gz": lambda rng, raw: gzip.compress(raw),
    "deflate": lambda rng, raw: zlib.compress(raw),
    "bz2": lambda rng, raw: bz2.compress(raw),
    "zst": lambda rng, raw: pa.compress(raw, "zstd", asbytes=True),
    "snappy": lambda rng, raw: blocks(rng, raw, "snappy"),
    "lz4": lambda rng, raw: blocks(rng, raw, "lz4"),
}


def read(path: Path) -> bytes:
    size = path.stat().st_size
    return b"".join(line_blocks(LocalStorage(), f"file://{path}", size, 0))


@pytest.mark.parametrize("codec", PACKED)
def test_the_lines_are_those_that_were_packed(
    tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed(19))
    path = tmp_path / f"a.csv.{codec}"
    for number in range(examples(15, 60, 2000)):
        monkeypatch.setattr(lines, "BLOCK", rng.choice((3, 64, 8 << 20)))
        count = rng.choice((1, 5, 400))
        raw = b"id,name\n" + b"".join(b"%d,n%d\n" % (i, i % 7) for i in range(count))
        packed = PACKED[codec](rng, raw)
        path.write_bytes(packed)
        assert read(path) == raw, number
        assert first_line(LocalStorage(), f"file://{path}", len(packed)) == "id,name"


@pytest.mark.parametrize("codec", PACKED)
def test_damage_gives_the_lines_or_no_file(tmp_path: Path, codec: str) -> None:
    """Cut anywhere it is never a file with fewer lines; of other bytes it is told as ambiguous."""
    rng = random.Random(seed(20))
    raw = b"".join(b"%d,n%d\n" % (i, i % 7) for i in range(300))
    path = tmp_path / f"a.csv.{codec}"
    packed = PACKED[codec](rng, raw)
    for _ in range(examples(60, 300, 5000)):
        path.write_bytes(packed[: rng.randrange(len(packed))])
        try:
            found = read(path)
        except FileAmbiguous:
            pass
        else:  # between two blocks nothing tells of more
            assert codec in ("snappy", "lz4") and raw.startswith(found.rstrip(b"\n"))
        harmed = bytearray(packed)
        for _ in range(rng.choice((1, 4))):
            harmed[rng.randrange(len(harmed))] = rng.randrange(256)
        path.write_bytes(bytes(harmed))
        with suppress(FileAmbiguous):
            assert len(read(path)) < 1 << 24


@pytest.mark.parametrize("suffix", ["lzo", "lzo_deflate", "xz", "SNAPPY", "Lz4"])
def test_other_codecs_are_ambiguous(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.csv.{suffix}"
    path.write_bytes(b"a\n")
    with pytest.raises(FileAmbiguous, match="not decompressed here"):
        read(path)


@pytest.mark.rule("32")
def test_32_each_byte_in_a_member_of_its_own() -> None:
    """What decompressors are given, which they copy, grows with the file, not its square."""
    given = [0, 0]

    class Counted:
        def __init__(self, run: int) -> None:
            self._member, self._run = zlib.decompressobj(31), run

        def decompress(self, part: bytes, most: int) -> bytes:
            given[self._run] += len(part)
            return self._member.decompress(part, most)

        def __getattr__(self, name: str) -> object:
            return getattr(self._member, name)

    for run, count in enumerate((2000, 4000)):
        packed = gzip.compress(b"8") * count
        members = lines._members("a.gz", iter([packed]), lambda run=run: Counted(run), True)
        assert [len(each) for each in lines._gathered(members)] == [count]
    assert given[1] < 2.5 * given[0] < 2.5 * 1000 * 2100
