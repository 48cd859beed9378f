"""A listing of a table's root, on a bucket in memory: what each directory alone would give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.storage.port import EMPTY, DirectoryListings, FileTable, join_listings
from bridge.storage.uri import join
from bridge.table.directory import root_listing
from bridge.table.directory.freshness import Cached, Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.directory.root_listing import TableTree
from bridge.table.directory.shared_listings import Listing, ListingStream, SharedListings
from bridge.table.model import Partition


class Bucket:
    """Keys in memory, listed as object stores list them."""

    def __init__(self, *uris: str) -> None:
        self.uris = set(uris)
        self.prefixes: list[str] = []

    def has_directories(self, uri: str) -> bool:
        return False

    def directory_exists(self, uri: str) -> bool:
        return True

    def pages(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> Iterator[FileTable]:
        self.prefixes.append(prefix)
        inside = join(prefix, "")
        found = sorted(u for u in self.uris if u.startswith(inside))
        found = [u for u in found if recursive or "/" not in u[len(inside) :]]
        if found:
            ones = np.ones(len(found), np.int64)
            yield FileTable(pa.array(found, pa.large_string()), ones, ones)

    def list_many(
        self, directories: Sequence[str], pool: Executor, *, recursive: bool = True
    ) -> DirectoryListings:
        return join_listings([next(self.pages(d, recursive=recursive), EMPTY) for d in directories])

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def partitions(locations: Sequence[str]) -> list[Partition]:
    return [Partition(f"p={i}", (str(i),), uri) for i, uri in enumerate(locations)]


def files(found: dict[str, Listing | ListingStream], location: str) -> list[str]:
    listing = found[location]
    if isinstance(listing, ListingStream):
        return listing.whole().paths.to_pylist()  # type: ignore[no-any-return]
    assert listing.found is not None
    number = listing.directories[location]
    begin, end = listing.found.offsets[number : number + 2].tolist()
    return listing.found.files.paths[begin:end].to_pylist()  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _always_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_listing, "_LEAST", 1)


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("given_up", [False, True])
def test_a_table_may_be_a_whole_bucket(
    recursive: bool, given_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if given_up:
        monkeypatch.setattr(root_listing, "take_all", lambda *_: None)
        monkeypatch.setattr("bridge.table.directory.lister.take_all", lambda *_: None)
    locations = ["s3://b/p=1", "s3://b/p=10", "s3://b/", "s3://b/p=2"]
    bucket = Bucket("s3://b/p=1/a", "s3://b/p=10/b", "s3://b/c", "s3://b/p=1/x/d")
    lister = DirectoryLister(bucket, 4, recursive=recursive)  # type: ignore[arg-type]
    for _ in "ab":
        tree = TableTree("s3://b/", 4, 4)
        found = lister.each(partitions(locations), Live(), 0.0, None, tree)
        for location in locations:
            alone = next(bucket.pages(location, recursive=recursive), EMPTY)
            assert files(found, location) == alone.paths.to_pylist()
    lister.close()


@pytest.mark.parametrize("new", [1, 40])
def test_a_partition_newer_than_a_cached_listing_is_not_empty(
    new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without a common root: what was not there when it was listed is looked at again."""
    monkeypatch.undo()
    locations = [f"s3://b/t/p={i}" for i in range(100)]
    bucket = Bucket(*(f"{d}/a" for d in locations))
    lister = DirectoryLister(bucket, 4)  # type: ignore[arg-type]

    def ask() -> dict[str, Listing | ListingStream]:
        tree = TableTree("s3://b/t", len(locations), len(locations))
        return lister.each(partitions(locations), Cached(600.0), 0.0, None, tree)

    ask()
    assert bucket.prefixes == ["s3://b/t"]
    locations += [f"s3://b/t/p=new{i}" for i in range(new)]
    bucket.uris.update(f"{d}/a" for d in locations)
    found = ask()
    assert all(files(found, d) == [f"{d}/a"] for d in locations)
    assert bucket.prefixes[1:] == (["s3://b/t"] if new > 1 else locations[100:])
    again = ask()
    assert all(files(again, d) == [f"{d}/a"] for d in locations)
    assert len(bucket.prefixes) == 2
    lister.close()


def test_a_directory_whose_listing_just_vanished_is_listed_anew() -> None:
    """Between a listing's end of life and its removal another query may come upon it."""
    shared = SharedListings()
    made: list[Listing] = []

    def make(listing: Listing) -> None:
        made.append(listing)
        listing.found = DirectoryListings(EMPTY, np.zeros(2, np.int64))

    shared.get(["d"], 0.0, make)
    reference = shared._newest["d"]
    made.clear()  # nothing holds the listing any more
    assert reference() is None
    shared._newest["d"] = reference  # as if it was not removed yet
    assert shared.ended_listing("d", 0.0) is None
    assert len(shared.get(["d", "e"], 0.0, _empty)) == 2


def _empty(listing: Listing) -> None:
    listing.found = DirectoryListings(EMPTY, np.zeros(len(listing.directories) + 1, np.int64))
