"""A blob storage of Azure whose listings lie: what is listed is all there is, or there is an error.

A server answers whatever is asked; what makes the answers of Azure itself is in the other tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bridge.kernel.errors import StorageFailure
from bridge.storage.routed import open_storage
from tests.support.azurite import ACCOUNT, KEY, URI
from tests.support.memory_store import Answer, Asked, MemoryStore

pytestmark = pytest.mark.full

_BLOB = (
    "<Blob><Name>t/{}</Name><Properties><Last-Modified>Fri, 27 Nov 2026 10:00:00 GMT"
    '</Last-Modified><Etag>"0x8D"</Etag><Content-Length>3</Content-Length><BlobType>BlockBlob</BlobType>'
    "<Content-Type>x/y</Content-Type></Properties></Blob>"
)
_ROOT = "<?xml version='1.0' encoding='utf-8'?><EnumerationResults>{}</EnumerationResults>"


def listing(*names: str, marker: str = "<NextMarker />") -> str:
    return _ROOT.format(f"<Blobs>{''.join(map(_BLOB.format, names))}</Blobs>{marker}")


LIES = {
    "error": "<?xml version='1.0'?><Error><Code>InternalError</Code></Error>",
    "login": "<html><head><title>Sign in</title></head><body>proxy</body></html>",
    "of S3": "<?xml version='1.0'?><ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>",
    "no blobs": _ROOT.format("<NextMarker />"),
    "nothing": "",
    "JSON": "{}",
    "cut": listing("a", "b")[:-60],
    "cut in a name": listing("a", "b")[:120],
}


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with MemoryStore() as running:
        yield running


def ways_to_list(store: MemoryStore) -> list[Callable[[], Any]]:
    options = {
        "azure_storage_account_key": KEY,
        "azure_storage_endpoint": f"{store.endpoint}/{ACCOUNT}",
        "allow_http": "true",
        "retries": "1",
        "timeout": "20",
    }
    storage = open_storage(options=options)
    place = f"{URI}/t"
    return [
        lambda: storage.list_all(place).paths.to_pylist(),
        lambda: [p for page in storage.pages(place) for p in page.paths.to_pylist()],
        lambda: storage.list_many(
            [place], ThreadPoolExecutor(2), recursive=False
        ).files.paths.to_pylist(),
    ]


def answer(
    store: MemoryStore, body: Callable[[int], str], own: Callable[[int], str] | None = None
) -> None:
    """Answers with a body; ``own``: to the requests that are not the client's."""

    def lie(asked: Asked, answer: Answer) -> Answer:
        chosen = own if own and "sig" in asked.query else body
        return Answer(200, chosen(len(store.asked)).encode(), {"Content-Type": "application/xml"})

    store.lie = lie


def test_an_honest_listing_is_read(store: MemoryStore) -> None:
    answer(store, lambda number: listing("a", "b"))
    for ask in ways_to_list(store):
        assert ask() == [f"{URI}/t/a", f"{URI}/t/b"]


@pytest.mark.rule("43")
@pytest.mark.parametrize("lie", LIES)
def test_43_what_is_no_listing_is_never_an_empty_one(store: MemoryStore, lie: str) -> None:
    answer(store, lambda number: LIES[lie])
    for ask in ways_to_list(store):
        with pytest.raises(StorageFailure):
            ask()


def test_a_page_with_an_odd_key_is_read_by_a_request_of_our_own(store: MemoryStore) -> None:
    odd = listing("a", "a&#9;b", "d/")
    answer(store, lambda number: odd)
    for ask in ways_to_list(store):
        assert ask() == [f"{URI}/t/a", f"{URI}/t/a\tb"]


NO_TIME = listing("a").replace("27 Nov", "99 Nov")
NO_SIZE = listing("a").replace(">3<", ">?<")


@pytest.mark.rule("43")
@pytest.mark.parametrize("lie", [*LIES.values(), NO_TIME, NO_SIZE], ids=[*LIES, "time", "size"])
def test_43_nor_is_it_where_a_key_is_odd(store: MemoryStore, lie: str) -> None:
    answer(store, lambda number: listing("a", "a&#9;b"), lambda number: lie)
    for ask in ways_to_list(store):
        with pytest.raises(StorageFailure):
            ask()


@pytest.mark.rule("47")
def test_47_a_marker_that_repeats_is_seen_where_a_key_is_odd(store: MemoryStore) -> None:
    odd = listing("a", "a&#9;b", marker="<NextMarker>again</NextMarker>")
    answer(store, lambda number: odd)
    for ask in ways_to_list(store):
        with pytest.raises(StorageFailure, match="again and again"):
            ask()


@pytest.mark.rule("47")
def test_47_a_marker_that_repeats_ends_in_an_error(store: MemoryStore) -> None:
    answer(store, lambda number: listing("a", marker="<NextMarker>again</NextMarker>"))
    with pytest.raises(StorageFailure):
        ways_to_list(store)[0]()


def test_a_name_that_is_listed_twice_is_no_second_file(store: MemoryStore) -> None:
    answer(store, lambda number: listing("a", "a", "b"))
    for ask in ways_to_list(store):
        try:
            assert ask() == [f"{URI}/t/a", f"{URI}/t/b"]
        except StorageFailure:
            continue
