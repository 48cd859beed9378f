"""Listing many directories at once finds what one listing for each finds, on every storage."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.kernel.errors import StorageFailure
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.storage.uri import join
from bridge.table.directory import root_listing
from bridge.table.directory.freshness import Cached, Freshness, Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.directory.root_listing import TableTree, common_root, plan_root_listing
from tests.storage.conftest import BUCKET, Place
from tests.support.listing_trees import (
    Tree,
    agrees,
    expected,
    listed,
    open_snapshot,
    partitions_of,
    trees,
)
from tests.tiers import examples

pytestmark = pytest.mark.full

_number = itertools.count()


def fill(storage: Storage, root: str, files: dict[str, int]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda f: storage.put(join(root, f[0]), b"x" * f[1]), files.items()))


@settings(
    max_examples=examples(6, 12, 200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(trees())
def test_many_directories_are_listed_as_each_alone(place: Place, tree: Tree) -> None:
    root = join(place.root, str(next(_number)))
    fill(place.storage, root, tree.files)
    batches = partitions_of(tree, root)
    wanted = expected(place.storage, batches, tree.recursive, True)
    lister = DirectoryLister(place.storage, 4, recursive=tree.recursive)
    snapshot = open_snapshot(lister, root, Live(), True)
    for _ in "ab":
        assert agrees(listed(snapshot, batches), wanted)
    lister.close()


@settings(max_examples=examples(10, 60, 600), deadline=None)
@given(trees(), st.sampled_from([2, 1000]), st.sampled_from([Live(), Cached(60.0)]))
def test_a_listing_of_the_root_finds_what_those_of_directories_find(
    s3_options: dict[str, str], tree: Tree, page: int, freshness: Freshness
) -> None:
    """Also where the root holds more files than pay, so that the listing is given up."""
    storage = open_storage(options=s3_options)
    root = f"s3://{BUCKET}/law/{next(_number)}"
    fill(storage, root, tree.files)
    batches = partitions_of(tree, root)
    wanted = expected(storage, batches, tree.recursive, False)
    lister = DirectoryLister(storage, 2, recursive=tree.recursive)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(root_listing, "_LEAST", 1)
        patch.setattr(root_listing, "PAGE", page)
        for _ in "ab":
            snapshot = open_snapshot(lister, root, freshness)
            for _ in "ab":
                assert agrees(listed(snapshot, batches), wanted)
    lister.close()


class Counted:
    """A storage that notes which directories and which roots are listed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.directories = 0
        self.roots: list[str] = []
        self.refused = ""

    def list_many(self, directories: Sequence[str], *rest: Any, **options: Any) -> Any:
        self.directories += len(directories)
        return self._storage.list_many(directories, *rest, **options)

    def pages(self, prefix: str, **options: Any) -> Any:
        self.roots.append(prefix)
        if prefix == self.refused:
            raise StorageFailure(f"no permission for {prefix}", "ask for it")
        return self._storage.pages(prefix, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


def table_of(
    options: dict[str, str], name: str, partitions: int
) -> tuple[Counted, DirectoryLister, str, Tree]:
    """A table with a file in each partition, which are fetched in batches of ten."""
    storage = Counted(open_storage(options=options))
    root = f"s3://{BUCKET}/{name}"
    places = [f"t/p={n}" for n in range(partitions)]
    fill(storage, root, {f"{place}/a": 1 for place in places})
    batches = tuple(tuple(places[i : i + 10]) for i in range(0, partitions, 10))
    return storage, DirectoryLister(storage), root, Tree({}, batches, False)


def test_the_root_is_listed_once_for_all_batches(s3_options: dict[str, str]) -> None:
    storage, lister, root, tree = table_of(s3_options, "once", 40)
    snapshot = open_snapshot(lister, root, Live())
    snapshot.partitions([""] * 40)
    assert len(listed(snapshot, partitions_of(tree, root))) == 40
    assert (storage.roots, storage.directories) == ([f"{root}/t"], 0)
    fill(storage, root, {"t/p=7/b": 1})
    again = open_snapshot(lister, root, Live())
    again.partitions([""] * 40)
    assert len(listed(again, partitions_of(tree, root))) == 41
    assert len(storage.roots) == 2
    lister.close()


def test_a_root_that_may_not_be_listed_is_left(s3_options: dict[str, str]) -> None:
    storage, lister, root, tree = table_of(s3_options, "refused", 40)
    storage.refused = f"{root}/t"
    snapshot = open_snapshot(lister, root, Live())
    snapshot.partitions([""] * 40)
    assert len(listed(snapshot, partitions_of(tree, root))) == 40
    assert (storage.roots, storage.directories) == ([f"{root}/t"], 40)
    lister.close()


def test_a_root_with_far_more_files_is_given_up_once(
    s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, lister, root, tree = table_of(s3_options, "more", 40)
    fill(storage, root, {f"t/other/{n}": 1 for n in range(60)})
    monkeypatch.setattr(root_listing, "PAGE", 16)  # 40 directories cost as much as 40 files
    snapshot = open_snapshot(lister, root, Live())
    snapshot.partitions([""] * 40)
    assert len(listed(snapshot, partitions_of(tree, root))) == 40
    assert (storage.roots, storage.directories) == ([f"{root}/t"], 40)
    lister.close()


@pytest.mark.parametrize(
    ("directories", "root"),
    [
        (["s3://b/t/p=1"], "s3://b/t/p=1"),
        (["s3://b/t/p=1", "s3://b/t/p=10"], "s3://b/t"),
        (["s3://b/t/a", "s3://b/t/a/c", "s3://b/t/a-b"], "s3://b/t"),
        (["s3://b/t/a", "s3://b/t/a/c"], "s3://b/t/a"),
        (["s3://b/t/y=1/m=1", "s3://b/t/y=1/m=2"], "s3://b/t/y=1"),
    ],
)
def test_the_common_root(directories: list[str], root: str) -> None:
    assert common_root(directories) == root


@pytest.mark.parametrize(
    ("kept", "total", "indexed", "pays"),
    [
        (1824, 1824, 0, True),
        (10, 1824, 0, False),
        (100, 20_000, 0, False),
        (2_000, 20_000, 0, True),
        (100, 1824, 1_000_000, False),
        (1824, 1824, 1_000_000, False),
        (20_000, 20_000, 1_000_000, True),
    ],
)
def test_when_a_listing_of_the_root_pays(kept: int, total: int, indexed: int, pays: bool) -> None:
    numbers = np.arange(indexed).astype(str)
    paths = pa.array(np.sort(np.char.add("s3://b/t/p=1/", numbers)), pa.large_string())
    tree = TableTree("s3://b/t", kept, total, paths if indexed else None)
    assert (plan_root_listing(tree, "s3://b/t", 10, 16) is not None) == pays
