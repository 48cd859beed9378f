"""One suite for every storage: local files, and real servers of S3, HDFS and Azure."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from bridge.kernel.errors import FileUnreadable
from bridge.storage.port import data_files
from bridge.storage.uri import join
from tests.storage.conftest import Place

STRANGE = [
    "a b",
    "a%20b",
    "ä€𝄞",
    "x=1",
    "a+b",
    "k#v",
    "q?x",
    "it's",
    'say"so"',
    "a&b;c",
    "~t",
    "[x]{y}",
    "50%",
    "a%zz+%2F",
    "u\u0308",
]


def fill(place: Place, *names: str, content: bytes = b"data") -> list[str]:
    uris = [join(place.root, name) for name in names]
    with ThreadPoolExecutor(8) as pool:  # closing a file on HDFS may wait half a second
        list(pool.map(lambda uri: place.storage.put(uri, content), uris))
    return sorted(uris, key=str.encode)


def test_what_is_written_is_read(place: Place) -> None:
    (uri,) = fill(place, "a/b.bin", content=b"0123456789")
    assert place.storage.read(uri) == b"0123456789"
    assert place.storage.read_ranges(uri, [(0, 2), (8, 10), (3, 4)]) == [b"01", b"89", b"3"]
    place.storage.put(uri, b"other")
    assert place.storage.read(uri) == b"other"


def test_a_copy_is_made_of_one_state(place: Place) -> None:
    (uri,) = fill(place, "a/b.bin", content=b"0123456789")
    target = join(place.root, "c/d/copy.bin")
    first = place.storage.stat(uri)
    assert first is not None
    assert place.storage.copy(first, target)
    assert place.storage.read(target) == b"0123456789" == place.storage.read(uri)
    place.storage.put(uri, b"another")
    assert not place.storage.copy(first, join(place.root, "c/stale.bin"))
    second = place.storage.stat(uri)
    assert second is not None
    assert place.storage.copy(second, target)  # replaces
    assert place.storage.read(target) == b"another"
    place.storage.delete(uri)
    assert not place.storage.copy(second, join(place.root, "c/gone.bin"))
    assert place.storage.list_all(place.root).paths.to_pylist() == [target]


def test_a_listing_agrees_with_stat(place: Place) -> None:
    uris = fill(place, "b", "a/x", "a/y", "a-b/z", "c/d/e")
    listing = place.storage.list_all(place.root)
    assert listing.paths.to_pylist() == uris
    assert listing.paths.type == pa.large_string()
    for i, uri in enumerate(uris):
        found = place.storage.stat(uri)
        assert found is not None
        assert (found.size, found.modified) == (listing.sizes[i], listing.modified[i])
        if listing.etags is not None:
            assert listing.etags[i].as_py() == found.etag


def test_a_flat_listing_and_directories(place: Place) -> None:
    fill(place, "b", "a/x", "m=1/y", "m=2/d=1/z")
    flat = place.storage.list_all(place.root, recursive=False)
    assert flat.paths.to_pylist() == [join(place.root, "b")]
    assert place.storage.list_directories(place.root) == [
        join(place.root, name) for name in ("a", "m=1", "m=2")
    ]


def test_a_prefix_is_a_directory_not_a_text(place: Place) -> None:
    fill(place, "a/x", "ab/y")
    listing = place.storage.list_all(join(place.root, "a"))
    assert listing.paths.to_pylist() == [join(place.root, "a/x")]


def test_what_is_not_there(place: Place) -> None:
    missing = join(place.root, "nothing/here")
    assert len(place.storage.list_all(missing)) == 0
    assert list(place.storage.pages(missing)) == []
    assert place.storage.list_directories(missing) == []
    assert place.storage.stat(missing) is None
    place.storage.delete(missing)
    for read in (place.storage.read, lambda uri: place.storage.read_ranges(uri, [(0, 1)])):
        with pytest.raises(FileUnreadable, match="nothing/here"):
            read(missing)


def test_a_directory_that_is_gone_is_told_where_there_are_directories(place: Place) -> None:
    (file,) = fill(place, "a/x")
    assert place.storage.directory_exists(join(place.root, "a"))
    flat = not place.storage.has_directories(place.root)  # so there is none that is gone
    assert place.storage.directory_exists(join(place.root, "none")) == flat
    assert place.storage.directory_exists(file) == flat


def test_a_directory_is_no_file(place: Place) -> None:
    fill(place, "a/x")
    assert place.storage.stat(join(place.root, "a")) is None


@pytest.mark.parametrize("name", STRANGE)
def test_names_are_raw(place: Place, name: str) -> None:
    uris = fill(place, f"{name}/{name}.parquet")
    assert place.storage.list_all(place.root).paths.to_pylist() == uris
    assert place.storage.list_directories(place.root) == [join(place.root, name)]
    assert place.storage.read(uris[0]) == b"data"
    state, directory = place.storage.stat(uris[0]), join(place.root, name)
    assert state is not None
    for recursive in (True, False):
        assert place.storage.list_all(directory, recursive=recursive).paths.to_pylist() == uris
    other, made = join(directory, f"2 {name}"), join(directory, f"3 {name}")
    assert place.storage.copy(state, other)
    assert place.storage.put_if_absent(made, b"made")
    assert not place.storage.put_if_absent(made, b"late")
    place.storage.delete(uris[0])
    assert place.storage.list_all(directory).paths.to_pylist() == [other, made]
    assert place.storage.read_ranges(other, [(1, 3)]) == [b"at"]


def test_pages_begin_after_any_name(place: Place) -> None:
    uris = fill(place, *STRANGE)
    for number, uri in enumerate(uris):
        pages = place.storage.pages(place.root, start_after=uri)
        assert [path for page in pages for path in page.paths.to_pylist()] == uris[number + 1 :]


def test_pages_begin_after_a_path(place: Place) -> None:
    uris = fill(place, *(f"f{i:03d}" for i in range(25)))
    found = [p for page in place.storage.pages(place.root, start_after=uris[9]) for p in
             page.paths.to_pylist()]  # fmt: skip
    assert found == uris[10:]
    flat = place.storage.pages(place.root, start_after=uris[-1], recursive=False)
    assert list(flat) == []


def test_hints_do_not_change_what_is_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.storage.object_store.objectstore._RANGE_FROM", 10)
    uris = fill(place, *(f"f{i:03d}" for i in range(60)), "sub/deep")
    stale = pa.array([join(place.root, f"f{i:03d}") for i in range(0, 200, 3)], pa.large_string())
    for recursive, expected in ((True, uris), (False, uris[:-1])):
        listing = place.storage.list_all(place.root, recursive=recursive, hints=stale)
        assert listing.paths.to_pylist() == expected


def test_put_if_absent_has_one_winner(place: Place) -> None:
    uri = join(place.root, "generations/1.json")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda i: place.storage.put_if_absent(uri, b"%d" % i), range(8)))
    assert won.count(True) == 1
    assert place.storage.read(uri) == b"%d" % won.index(True)
    listing = place.storage.list_all(join(place.root, "generations"))
    assert listing.paths.to_pylist() == [uri]


def test_a_range_past_the_end_is_an_error(place: Place) -> None:
    (uri,) = fill(place, "short")
    with pytest.raises(FileUnreadable):
        place.storage.read_ranges(uri, [(2, 100)])


def test_data_files(place: Place) -> None:
    fill(place, "a", "_SUCCESS", ".a.crc", "_temporary/0/x", "m=1/.hidden/y", "m=1/b_c.d")
    fill(place, "empty", content=b"")
    listing = place.storage.list_all(place.root)
    kept = data_files(listing, place.root).paths.to_pylist()
    assert kept == [join(place.root, "a"), join(place.root, "m=1/b_c.d")]
    for start in range(len(listing)):
        part = listing.slice(start, len(listing) - 1)
        found = data_files(part, place.root).paths.to_pylist()
        assert found == [path for path in part.paths.to_pylist() if path in kept]


def test_the_root_itself_may_be_hidden(place: Place) -> None:
    uris = fill(place, "_k=1/.x/a", "_k=1/.x/b")
    root = join(place.root, "_k=1/.x")
    listing = place.storage.list_all(root)
    assert data_files(listing, root).paths.to_pylist() == uris
    assert len(data_files(listing, place.root)) == 0


def test_a_file_that_is_rewritten_with_equal_size_is_another_one(place: Place) -> None:
    """By its etag where the store has some, else by its time once the time's grain is over."""
    (uri,) = fill(place, "a/f", content=b"first")
    first = place.storage.stat(uri)
    assert first is not None
    if first.etag is None:
        time.sleep(0.05)  # times of local files and of HDFS are finer
    place.storage.put(uri, b"other")
    second = place.storage.stat(uri)
    assert second is not None
    assert first.size == second.size
    assert (first.modified, first.etag) != (second.modified, second.etag)
    listing = place.storage.list_all(place.root)
    assert listing.modified.tolist() == [second.modified]
    parts, state = place.storage.read_state(uri, [(1, 3)])
    assert (parts, state) == ([b"th"], second)
    now = time.time() * 1e6
    assert abs(now - second.modified) < 120e6


def test_listings_are_sorted_as_bytes(place: Place) -> None:
    names = ["\U0001d11e", "\uffee", "z", "A", "a.b", "a/b", "a0"]
    uris = fill(place, *names)
    listing = place.storage.list_all(place.root)
    assert listing.paths.to_pylist() == uris
    assert listing.sizes.dtype == np.int64


def test_pages_are_what_list_all_finds(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("local_disk.local_listing._FIRST_PAGE", 4),
        ("local_disk.local_listing._PAGE", 10),
        ("local_disk.local_listing._CHUNK", 3),
        ("object_store.objectstore._RANGE_FROM", 8),
    ):
        monkeypatch.setattr(f"bridge.storage.{name}", value)
    uris = fill(place, *(f"f{i:03d}" for i in range(35)), "sub/deep")
    hints = pa.array(uris[::2], pa.large_string())
    for recursive, expected in ((True, uris), (False, uris[:-1])):
        pages = list(place.storage.pages(place.root, recursive=recursive, hints=hints))
        assert len(pages) > 1 or place.root.startswith(("hdfs:", "abfss:"))  # listed at once
        assert all(page.paths.equals(page.paths.sort()) for page in pages)
        found = sorted(path for page in pages for path in page.paths.to_pylist())
        assert found == sorted(expected)
        whole = place.storage.list_all(place.root, recursive=recursive)
        assert sum(int(page.sizes.sum()) for page in pages) == int(whole.sizes.sum())
