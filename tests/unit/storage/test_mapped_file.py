"""Pages that are asked for come, and no others; advice that is wrong harms nothing."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from bridge.storage.local_disk.mapped_file import MappedFile
from tests.benchmark.cold import cached_share, drop

COUNT = 1_000_000


def settled(path: Path) -> float:
    before, share = -1.0, 0.0
    while share != before:
        time.sleep(0.3)
        before, share = share, cached_share(path)
    return share


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "numbers"
    found.write_bytes(np.arange(COUNT).tobytes())
    drop(found)
    if sys.platform != "linux" or cached_share(found) > 0:
        pytest.skip("here pages do not leave the cache")
    return found


def test_a_range(path: Path) -> None:
    MappedFile(str(path)).will_need(COUNT, 5 * COUNT)
    assert 0.45 < settled(path) < 0.55


def test_all(path: Path) -> None:
    MappedFile(str(path)).will_need(0, 8 * COUNT)
    assert settled(path) > 0.99  # advice: the system may leave a page out


@pytest.mark.parametrize("count", [1, 20, 500])
def test_some_items_and_no_more_than_near_them(path: Path, count: int) -> None:
    file = MappedFile(str(path))
    items = np.random.default_rng(count).choice(COUNT, count, replace=False)
    file.will_need_items(file.buffer, items * 8)
    pages = len(np.unique(items // 512))
    share = settled(path) * COUNT / 512
    assert pages <= share + 1 and share <= 4 * pages
    assert (np.frombuffer(file.buffer, np.int64)[items] == items).all()


def test_an_array_inside_the_file(path: Path) -> None:
    file = MappedFile(str(path))
    inside = file.buffer.slice(4096 * 1000)
    file.will_need_items(inside, np.array([0, 8 * COUNT]))  # the last is behind the end
    assert 0 < settled(path) < 0.01
    assert np.frombuffer(inside, np.int64)[0] == 512_000


def test_nothing_asked_for(path: Path) -> None:
    file = MappedFile(str(path))
    file.will_need(0, 0)
    file.will_need_items(file.buffer, np.empty(0, np.int64))
    assert settled(path) * COUNT / 512 <= 1  # the page that Arrow asks for when it maps


def test_a_map_holds_no_descriptor_and_a_shared_one_sees_other_writers(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"ab" * 5000)
    before = psutil.Process().num_fds()
    maps = [MappedFile(str(tmp_path / "file"), shared=True) for _ in range(20)]
    maps[0].will_need(0, 10_000)
    assert psutil.Process().num_fds() == before
    with (tmp_path / "file").open("r+b") as file:
        file.write(b"zz")
    assert {bytes(one.buffer[:4]) for one in maps} == {b"zzab"}


def test_a_deleted_file_stays_mapped_and_advice_is_lost(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"ab" * 5000)
    mapped = MappedFile(str(tmp_path / "file"))
    (tmp_path / "file").unlink()
    mapped.will_need(0, 10_000)
    assert bytes(mapped.buffer) == b"ab" * 5000


def test_arrays_keep_the_file_mapped(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(np.arange(COUNT).tobytes())
    array = pa.Array.from_buffers(
        pa.int64(), COUNT, [None, MappedFile(str(tmp_path / "file")).buffer]
    )
    assert array[COUNT - 1].as_py() == COUNT - 1
