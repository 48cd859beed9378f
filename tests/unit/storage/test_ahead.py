"""Pages that are asked for come; what is asked wrongly harms nothing."""

from __future__ import annotations

import mmap
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bridge.storage import prefetch
from tests.benchmark.cold import cached_share, drop

COUNT = 1_000_000


def _mapped(path: Path) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, np.int64)


def _settled(path: Path) -> float:
    before, share = -1.0, 0.0
    while share != before:
        time.sleep(0.1)
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


def test_whole_arrays(path: Path) -> None:
    numbers = _mapped(path)
    prefetch.whole(numbers)
    assert _settled(path) == 1
    prefetch.whole(numbers)  # nothing to do, which is remembered a moment
    prefetch.whole(numbers)


@pytest.mark.parametrize("count", [1, 20, 500])
def test_some_places_and_no_more_than_near_them(path: Path, count: int) -> None:
    numbers = _mapped(path)
    places = np.random.default_rng(count).choice(COUNT, count, replace=False)
    prefetch.some(numbers, places)
    pages = len(np.unique(places // 512))
    share = _settled(path) * COUNT / 512
    assert pages <= share + 1 and share <= 4 * pages
    assert (numbers[places] == places).all()


def test_texts(path: Path) -> None:
    offsets = _mapped(path)[: COUNT // 2]  # texts of one byte each
    data = pa.py_buffer(bytes(COUNT))
    texts = pa.Array.from_buffers(
        pa.large_string(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
    )
    prefetch.texts(texts, np.array([5, 400_000]))
    prefetch.texts(texts[10:], np.array([0, 7]))
    prefetch.texts(texts.cast(pa.string()), np.array([5]))
    assert _settled(path) > 0


def test_what_is_not_mapped_or_not_in_order() -> None:
    numbers = np.arange(COUNT)
    for array in (numbers, numbers[::2], numbers[:0], np.broadcast_to(numbers[:1], COUNT)):
        prefetch.whole(array)
        prefetch.some(array, np.array([300_000, 5, 299_999]))
        prefetch.some(array, np.empty(0, np.int64))


def test_an_empty_text_behind_the_last_page() -> None:
    size = 64 * mmap.PAGESIZE
    data = mmap.mmap(-1, size)
    offsets = np.array([0, size, size], np.int64)
    array = pa.Array.from_buffers(
        pa.large_binary(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    prefetch.texts(array, np.array([1]))
    prefetch.texts(array, np.array([0, 1]))
