"""Stores that list keys in another order than that of their names: no listing loses a file."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.kernel.errors import InvalidUri, StorageFailure
from bridge.storage.object_store import objectstore
from bridge.storage.object_store.key_ranges import OutOfOrder, list_ranges
from bridge.storage.port import FileTable, Storage
from bridge.storage.routed import open_storage
from tests.support.other_order import (
    BUCKET,
    Asked,
    Listings,
    Order,
    OtherOrder,
    by_directory,
    by_name,
    by_name_up_to,
    files_first,
    in_no_order,
)
from tests.tiers import drawn_anew, examples

pytestmark = pytest.mark.full

ROOT = f"s3://{BUCKET}/ordered/t"
DIRECTORIES = ("", "a/", "a-b/", "a.c/", "a/x/", "a/x-y/", "a/x/0/", "A/", "ä/", "a b/")
NAMES = [f"{place}{n}.f" for place in DIRECTORIES for n in range(9)]
EMPTY = ["a/", "a-b/", "a+/", "a/x/", "z/", "0.e", "a/3.e", "a-b/8.g", "zz.e"]
"""Markers of directories, and files without content."""
GONE = [f"{place}{n}.f" for place in (*DIRECTORIES, "a+/", "z/") for n in (3.5, 99)]
"""Files that an index knows, and that are there no more."""
SIZES = {name: i + 1 for i, name in enumerate(NAMES)} | dict.fromkeys(EMPTY, 0)
ORDERS: dict[str, Order] = {
    "name": by_name,
    "directory": by_directory,
    "files first": files_first,
    "none": in_no_order,
}
happened: Counter[tuple[str, str, int, str]] = Counter()


@pytest.fixture(scope="module")
def front() -> Iterator[OtherOrder]:
    with OtherOrder({f"ordered/t/{name}": size for name, size in SIZES.items()}) as found:
        yield found


@pytest.fixture
def store(front: OtherOrder, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """One that knows nothing yet of the order; its ranges are small, as are its pages."""
    small(monkeypatch, 5)
    front.asked = Asked()
    return open_storage(options=front.options)


def small(patch: pytest.MonkeyPatch, page: int) -> None:
    patch.setattr(objectstore, "_RANGE_FROM", 3)
    patch.setattr(objectstore, "_PAGE", page)


def keys(*names: str) -> frozenset[str]:
    return frozenset(f"ordered/t/{name}" for name in names)


def sorted_up_to(count: int, names: Iterable[str]) -> Order:
    """The first ones by name, and the others from the last one on."""
    return by_name_up_to(sorted(keys(*names))[:count][-1])


def paths(names: Any) -> pa.Array:
    return pa.array(sorted(f"{ROOT}/{name}" for name in names), pa.large_string())


def contents(files: FileTable) -> list[str]:
    """The names of files with content."""
    held = files.filter(files.sizes > 0)
    names = [path.removeprefix(f"{ROOT}/") for path in held.paths.to_pylist()]
    assert held.sizes.tolist() == [SIZES[name] for name in names]
    return names


def found(storage: Storage, **options: Any) -> list[str]:
    return contents(storage.list_all(ROOT, **options))


def some(names: list[str]) -> st.SearchStrategy[set[str]]:
    sizes = st.sampled_from([1, 20, 60])
    return sizes.flatmap(lambda least: st.sets(st.sampled_from(names), min_size=least))


@settings(
    max_examples=examples(12, 60, 600),
    derandomize=not drawn_anew(),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_order_loses_a_file(front: OtherOrder, data: st.DataObject) -> None:
    """Or lists one twice; with ranges, or without."""
    there = data.draw(some(NAMES), "there")
    empty = data.draw(st.sets(st.sampled_from(EMPTY)), "empty")
    order = data.draw(st.sampled_from([*ORDERS, "broken later"]), "order")
    page = data.draw(st.integers(1, 9), "page")
    start = data.draw(st.sampled_from(["place", "there", "ignored"]), "start")
    known = data.draw(some([*NAMES, *GONE]), "known")
    recursive = data.draw(st.booleans(), "recursive")
    ordered = ORDERS.get(order) or sorted_up_to(2 * page, there)
    front.listings = Listings(keys(*there, *empty), ordered, start, page)
    wanted = sorted(name for name in there if recursive or "/" not in name)
    with pytest.MonkeyPatch.context() as patch:
        small(patch, page)
        storage = open_storage(options=front.options)
        for number in range(2):
            front.asked = Asked()
            assert found(storage, recursive=recursive, hints=paths(known)) == wanted
            asked = front.asked
            how = "at once" if not asked.starts else "in ranges" if asked.whole == 1 else "anew"
            happened[order, start, number, how] += 1
        assert found(storage, recursive=recursive) == wanted
        pages = list(storage.pages(ROOT, recursive=recursive, hints=paths(known)))
        assert sorted(name for files in pages for name in contents(files)) == wanted
        assert all(files.paths.equals(files.paths.sort()) for files in pages)


def test_ranges_were_asked_for_and_given_up() -> None:
    if sum(happened.values()) < 60:
        pytest.skip("the law was not asked in this run")
    ways: Counter[tuple[bool, int, str]] = Counter()
    for (order, start, number, how), count in happened.items():
        ways[(order, start) == ("name", "place"), number, how] += count
    assert ways[True, 1, "in ranges"] and not ways[True, 0, "anew"], happened
    assert ways[False, 0, "anew"] and ways[False, 1, "at once"], happened


@pytest.mark.parametrize("known", ["there", "gone"])
def test_ranges_that_do_not_meet_lose_nothing(
    known: str, front: OtherOrder, store: Storage
) -> None:
    """The first ends within ``a``, the second begins within ``a-b``; both are in order."""
    there = [*NAMES[9:15], *NAMES[18:27]]  # of a/ and of a-b/
    front.listings = Listings(keys(*there), by_directory, page=5)
    end = ".f" if known == "there" else ".e"
    bound = f"a-b/3{end}"
    hints = paths([*(f"a-b/{n}{end}" for n in range(5)), f"a/0{end}"])
    assert found(store, hints=hints) == sorted(there)
    assert front.asked.starts == [f"ordered/t/{bound}"]
    assert front.asked.whole == 2


def listed(held: dict[str, list[str]], given: list[str]) -> None:
    """Lists ranges of these pages, by what they begin after; a file's name is a letter."""
    bounds = [f"{ROOT}/{name}" for name in sorted(held) if name]

    def pages(after: str | None, until: str | None) -> Iterator[FileTable]:
        for names in held[(after or "").removeprefix(f"{ROOT}/")]:
            ones = np.ones(len(names), np.int64)
            yield FileTable(paths(names), ones, ones)

    for page in list_ranges(pages, bounds):
        assert len(page)
        given += [path.removeprefix(f"{ROOT}/") for path in page.paths.to_pylist()]


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ({"": ["ab"], "b": []}, "ab"),
        ({"": ["abc"], "b": ["cd"]}, "abcd"),
        ({"": ["a", "bd"], "b": ["d"], "c": ["d", "e"]}, "abde"),
        ({"": ["abcde"], "b": ["ce"]}, "abcde"),
        ({"": ["abde"], "b": ["de"], "c": ["e"]}, "abde"),
        ({"": ["abcd"], "b": ["d"]}, "abcd"),
    ],
)
def test_what_ranges_pass_is_given_once(held: dict[str, list[str]], wanted: str) -> None:
    """Of files that are written or deleted meanwhile, one range may list what another does not."""
    given: list[str] = []
    listed(held, given)
    assert sorted(given) == list(wanted)


@pytest.mark.parametrize(
    ("held", "wanted", "doubt"),
    [
        ({"": ["abc"], "b": ["d"]}, "abd", "c"),
        ({"": ["abc"], "b": []}, "ab", "c"),
        ({"": ["abc"], "b": ["cde"], "c": []}, "abc", "d"),
        ({"": ["abce"], "b": ["c", "d"]}, "abcd", "e"),  # a further page might hold it
    ],
)
def test_ranges_that_do_not_overlap_are_a_doubt(
    held: dict[str, list[str]], wanted: str, doubt: str
) -> None:
    given: list[str] = []
    with pytest.raises(OutOfOrder, match=f"{ROOT}/{doubt} was listed before its turn"):
        listed(held, given)
    assert sorted(given) == list(wanted)


def test_ranges_end_when_nobody_draws_any_more() -> None:
    ended: dict[str | None, Event] = {None: Event(), f"{ROOT}/5": Event()}

    def endless(after: str | None, until: str | None) -> Iterator[FileTable]:
        try:
            for _ in itertools.count():
                one = np.ones(1, np.int64)
                yield FileTable(paths("16"[after is not None]), one, one)
        finally:
            ended[after].set()

    pages = list_ranges(endless, [f"{ROOT}/5"])
    seen = set()
    while len(seen) < 2:
        seen.add(next(pages).paths[0].as_py())
    pages.close()
    assert all(event.wait(60) for event in ended.values())


@pytest.mark.parametrize("recursive", [True, False])
def test_another_order_is_told_once_and_remembered(
    recursive: bool, front: OtherOrder, store: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    """Here it shows on the third page of the last range."""
    front.listings = Listings(keys(*NAMES), sorted_up_to(len(NAMES) - 2, NAMES), page=5)
    wanted = sorted(name for name in NAMES if recursive or "/" not in name)
    with caplog.at_level(logging.WARNING, "bridge"):
        for number in range(3):
            front.asked = Asked()
            assert found(store, recursive=recursive, hints=paths(NAMES)) == wanted
            assert bool(front.asked.starts) == (number == 0)
            assert front.asked.directories == (number > 0 and not recursive)
        assert found(store) == sorted(NAMES)
    (told,) = caplog.records
    assert f"s3://{BUCKET}/ lists its keys in another order" in told.message
    first, second = paths(NAMES)[-2:].to_pylist()
    assert f"{first} came after {second}" in told.message


@pytest.mark.rule("31")
def test_a_listing_of_too_many_files_to_remember_fails_once(
    front: OtherOrder, store: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objectstore, "_HELD", 10)
    front.listings = Listings(keys(*NAMES), sorted_up_to(len(NAMES) - 2, NAMES), page=5)
    with pytest.raises(StorageFailure, match="in another order"):
        found(store)
    assert found(store, hints=paths(NAMES)) == sorted(NAMES)


def test_an_order_that_shows_without_ranges_is_remembered_too(
    front: OtherOrder, store: Storage
) -> None:
    front.listings = Listings(keys(*NAMES), sorted_up_to(10, NAMES), page=5)
    assert found(store) == sorted(NAMES)
    assert (front.asked.whole, front.asked.starts) == (2, [])
    front.asked = Asked()
    assert found(store, hints=paths(NAMES)) == sorted(NAMES)
    assert (front.asked.whole, front.asked.starts) == (1, [])


def test_what_breaks_off_begins_anew_or_is_an_error(front: OtherOrder, store: Storage) -> None:
    """What comes after the last key is not what is missing."""
    front.listings = Listings(keys(*NAMES), by_directory, page=5, cut=2)
    assert found(store, hints=paths(NAMES)) == sorted(NAMES)
    front.listings = Listings(keys(*NAMES), by_directory, page=5, cut=1)
    assert found(store) == sorted(NAMES)
    assert not front.listings.cut
    front.listings = Listings(keys(*NAMES), by_directory, page=5, cut=1_000)
    with pytest.raises(StorageFailure):
        found(store)


def test_files_that_are_deleted_meanwhile_are_no_other_order(
    front: OtherOrder, store: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    """A range passes a file which is gone when its own range is listed."""
    listings = front.listings = Listings(keys(*NAMES), page=5)
    left = sorted(NAMES)[::2]

    def delete() -> None:
        listings.keys = keys(*left)

    listings.then = delete
    assert set(left) <= set(found(store, hints=paths(NAMES)))
    front.asked = Asked()
    assert found(store, hints=paths(NAMES)) == left
    assert front.asked.starts and front.asked.whole == 1
    assert not [told for told in caplog.records if told.levelno >= logging.WARNING]


def test_pages_after_a_name(front: OtherOrder, store: Storage) -> None:
    """Where the store does not begin there, all of it is listed."""
    after = f"{ROOT}/a-b/5.f"
    wanted = [path for path in paths(NAMES).to_pylist() if path > after]
    for _ in "ab":
        front.listings = Listings(keys(*NAMES), by_directory, "ignored", page=5)
        pages = store.pages(ROOT, start_after=after)
        assert [path for files in pages for path in files.paths.to_pylist()] == wanted


@pytest.mark.parametrize("odd", ["t//b", "t/./b", "t/a\tb"])
@pytest.mark.parametrize("recursive", [True, False])
def test_an_object_with_a_name_that_cannot_be_listed_is_told(odd: str, recursive: bool) -> None:
    """In a bucket without an order, which is listed by the client alone."""
    with OtherOrder({"t/a": 1, odd: 1}) as server:
        server.listings = Listings(frozenset(server.sizes))
        storage = open_storage(None, server.options)
        with pytest.raises(InvalidUri, match="holds an object that cannot be") as refused:
            storage.list_all(f"s3://{BUCKET}--x-s3/t", recursive=recursive)
    assert odd[:3] in refused.value.message
    assert refused.value.hint.startswith("rename or delete that object")
