"""Files that are read once: bytes, their state, what is not kept, and limits of memory."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from bridge.kernel.errors import FileUnreadable
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.reading import one_read
from bridge.storage.reading.one_read import OneRead
from bridge.storage.uri import canonical

pytestmark = pytest.mark.full


class Counted(LocalStorage):
    reads = 0

    def read_ranges(self, uri: str, ranges: list[tuple[int, int]]) -> list[bytes]:  # type: ignore[override]
        self.reads += 1
        return super().read_ranges(uri, ranges)


def kept(
    tmp_path: Path, sizes: list[int], memory: int = 1000
) -> tuple[Counted, OneRead, list[str]]:
    for i, size in enumerate(sizes):
        (tmp_path / str(i)).write_bytes(bytes([i]) * size)
    storage = Counted()
    files = storage.list_all(canonical(str(tmp_path)))
    sizes = dict(zip(files.paths.to_pylist(), files.sizes.tolist(), strict=True))
    return storage, OneRead(storage, sizes, memory), list(sizes)


def test_a_file_is_read_once_however_it_is_asked_for(tmp_path: Path) -> None:
    storage, once, (uri,) = kept(tmp_path, [10])
    assert once.read_ranges(uri, [(0, 3), (7, 10)]) == [bytes(3), bytes(3)]
    assert once.read(uri) == bytes(10)
    parts, state = once.read_state(uri, [(9, 10)])
    assert parts == [b"\0"] and state == storage.stat(uri)
    assert storage.reads == 1
    with pytest.raises(FileUnreadable, match="10 bytes"):
        once.read_ranges(uri, [(5, 11)])


def test_the_state_is_that_of_the_bytes(tmp_path: Path) -> None:
    _, once, (uri,) = kept(tmp_path, [10])
    _, before = once.read_state(uri, [(0, 1)])
    (tmp_path / "0").write_bytes(b"other")
    parts, after = once.read_state(uri, [(0, 1)])
    assert parts == [b"\0"] and after == before


def test_the_oldest_makes_room_and_large_files_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, once, (first, second, large) = kept(tmp_path, [60, 60, 200], memory=100)
    monkeypatch.setattr(one_read, "LARGEST", 100)
    for uri in (first, second, second, large, large):
        once.read_ranges(uri, [(0, 1)])
    assert storage.reads == 4
    once.read_ranges(first, [(0, 1)])
    assert storage.reads == 5
    assert once.stat(first) is not None  # all else is the storage's


class Remote(Counted):
    def is_remote(self, uri: str) -> bool:
        return True


def test_parts_of_large_files_of_a_remote_store_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_read, "LARGEST", 10)
    content = bytes(range(256)) * 10
    path = tmp_path / "large"
    path.write_bytes(content)
    uri, storage = canonical(str(path)), Remote()
    once = OneRead(storage, {uri: len(content)})
    rng = random.Random(1)
    for _ in range(100):
        start = rng.randrange(len(content))
        ranges = [(start, min(start + rng.randrange(900), len(content))), (0, 5)]
        parts, state = once.read_state(uri, ranges)
        assert parts == [content[a:b] for a, b in ranges]
        assert state == storage.stat(uri)
    before = storage.reads
    assert once.read_ranges(uri, [(0, len(content))]) and storage.reads <= before + 1
    assert once.read_ranges(uri, [(7, 1000)]) == [content[7:1000]]
    assert storage.reads <= before + 1 < 100
    path.write_bytes(b"x" * 3000)
    once.forget(uri)
    assert once.read_ranges(uri, [(0, 2)]) == [b"xx"]


def test_parts_of_two_versions_are_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_read, "LARGEST", 1)
    path = tmp_path / "large"
    path.write_bytes(b"aaaa")
    uri, storage = canonical(str(path)), Remote()
    once = OneRead(storage, {uri: 4})
    once.read_ranges(uri, [(0, 2)])
    path.write_bytes(b"bbbb")
    os.utime(path, (1, 1))
    parts, state = once.read_state(uri, [(0, 2), (2, 4)])
    assert parts == [b"bb", b"bb"] and state == storage.stat(uri)
