"""Listing many directories at once finds what one listing for each directory finds."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.kernel.errors import StorageFailure
from bridge.storage.routed import open_storage
from bridge.table.directory.freshness import Cached, Freshness, Live
from bridge.table.directory.lister import DirectoryLister
from tests.support.listing_trees import (
    PLACES,
    Tree,
    agrees,
    expected,
    listed,
    open_snapshot,
    partitions_of,
    rows,
    trees,
)

LINKS = {
    "t/p=0/link": "../p=1",  # out of the partition
    "t/p=1/link": "deep",
    "t/p=2/up": "..",  # above itself
    "t/p=3/file": "a",
    "t/p=3/gone": "nothing",
    "t/p=3/.#lock": "someone@elsewhere.1",
    "t/linked": "p=2",  # a partition's place may be a link itself
    "t/p=1/out": "/dev",
}


@settings(max_examples=150, deadline=None)
@given(
    trees((*PLACES, "t/linked", "t/p=1/link", "t/p=0/a")),
    st.sets(st.sampled_from(sorted(LINKS)), max_size=3),
    st.sampled_from([Live(), Cached(60.0)]),
    st.booleans(),
    st.sampled_from([1, 2, 1024]),
)
def test_many_directories_are_listed_as_each_alone(
    tree: Tree, links: set[str], freshness: Freshness, absent_is_empty: bool, chunk: int
) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        write(Path(directory), tree, links)
        patch.setattr("bridge.storage.local_disk.local_listing._CHUNK", chunk)
        root, storage = f"file://{directory}", open_storage()
        batches = partitions_of(tree, root)
        wanted = expected(storage, batches, tree.recursive, absent_is_empty)
        lister = DirectoryLister(storage, 2, recursive=tree.recursive)
        snapshot = open_snapshot(lister, root, freshness, absent_is_empty)
        for _ in "ab":  # the second time from what the snapshot holds
            assert agrees(listed(snapshot, batches), wanted)
        again = open_snapshot(lister, root, freshness, absent_is_empty)
        assert agrees(listed(again, batches[::-1]), wanted)
        lister.close()


def write(base: Path, tree: Tree, links: set[str]) -> None:
    for number, (name, size) in enumerate(sorted(tree.files.items())):
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (1e9 + number, 1e9 + number))
    for link in links:
        path = base / link
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(LINKS[link])


def test_an_unreadable_directory_fails_the_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree({"t/p=0/a": 1, "t/p=1/a": 1}, (("t/p=0", "t/p=1"),), False)
    write(tmp_path, tree, set())
    scan = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if path.endswith("/p=1"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    lister = DirectoryLister(open_storage(), 2)
    root = f"file://{tmp_path}"
    snapshot = open_snapshot(lister, root, Live())
    with pytest.raises(StorageFailure, match=r"no permission for .*/t/p=1"):
        list(rows(snapshot, *partitions_of(tree, root)))
    monkeypatch.undo()
    assert len(listed(snapshot, partitions_of(tree, root))) == 2
    lister.close()
