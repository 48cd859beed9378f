"""A store whose listings lie: what is read is all there is, or there is a clear error.

The lies are drawn, for good or for one answer. One that passes never ends in an error.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import count, product
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.app.doctor import _store
from bridge.index.generations.store import IndexStore, next_generation
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import (
    BridgeError,
    FileUnreadable,
    IndexConflict,
    InvalidUri,
    StorageFailure,
)
from bridge.storage.port import FileStat
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from tests.storage.test_requests_in_flight import build
from tests.support.memory_store import Answer, Asked, Lie, MemoryStore
from tests.tiers import examples, seed

ROOT = "s3://lake/t"
_ERROR = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>sorry</Message></Error>"
_LOGIN = b"<html><head><title>Sign in</title></head><body>proxy</body></html>"
_END = b"</ListBucketResult>"
_MORE = re.compile(rb"<NextContinuationToken>[^<]*</NextContinuationToken>")
_ENTRY = re.compile(rb"<Contents>.*?</Contents>")


def _body(change: Callable[[bytes], bytes]) -> Lie:
    def lie(asked: Asked, answer: Answer) -> Answer:
        return Answer(answer.status, change(answer.body), answer.headers)

    return lie


LIES: dict[str, Lie] = {
    "error": _body(lambda _: _ERROR),
    "login": _body(lambda _: _LOGIN),
    "no token": _body(lambda body: _MORE.sub(b"", body)),
    "end unsaid": _body(lambda body: re.sub(rb"<IsTruncated>[^<]*</IsTruncated>", b"", body)),
    "twice": _body(lambda body: _ENTRY.sub(rb"\g<0>\g<0>", body)),
    "backwards": _body(
        lambda body: _ENTRY.sub(b"", body).replace(
            _END, b"".join(_ENTRY.findall(body)[::-1]) + _END
        )
    ),
    "elsewhere": _body(lambda body: body.replace(b"<Key>t", b"<Key>u", 1)),
    "first again": _body(
        lambda body: body.replace(_END, b"".join(_ENTRY.findall(body)[:1]) + _END)
    ),
}

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda body: body[: len(body) // 2],
    "no size": lambda body: re.sub(rb"<Size>[^<]*</Size>", b"", body),
    "less than nothing": lambda body: re.sub(rb"<Size>[^<]*", b"<Size>-1", body),
    "too much": lambda body: re.sub(rb"<Size>[^<]*", b"<Size>%d" % 2**63, body),
    "far too much": lambda body: re.sub(rb"<Size>[^<]*", b"<Size>%d" % 10**25, body),
    "no time": lambda body: re.sub(rb"<LastModified>[^<]*", b"<LastModified>now", body),
}


def _names_itself(asked: Asked, answer: Answer) -> Answer:
    """A page that is its own next one."""
    begin = asked.query.get("continuation-token", asked.query.get("start-after", ""))
    token = b"<NextContinuationToken>%s</NextContinuationToken>" % quote_plus(begin, "/").encode()
    return Answer(answer.status, _MORE.sub(token, answer.body), answer.headers)


WAYS: dict[str, Lie] = {
    **LIES,
    **{name: _body(change) for name, change in DAMAGE.items()},
    "names itself": _names_itself,
}
WHEN = (*("once",) * 8, "always", "later pages")
"""Most lies are of one answer: another one then tells the truth."""


def drawn(
    number: int, rng: random.Random, whens: Sequence[str] = WHEN, of: Iterable[str] = WAYS
) -> tuple[list[str], str]:
    """Ways to lie, each in its turn and one in three together with another; and when."""
    ways = sorted(of)
    turn, names = ways[number % len(ways)], {*rng.sample(ways, 1)}
    return sorted({turn, *(names if rng.random() < 1 / 3 else ())}), rng.choice(whens)


def lie_of(ways: Sequence[str], when: str) -> Lie:
    """Lies about listings in all of some ways."""
    told: list[bool] = []

    def lie(asked: Asked, answer: Answer) -> Answer:
        later = "continuation-token" in asked.query
        if not asked.listing or (when == "later pages" and not later) or (when == "once" and told):
            return answer
        told.append(True)
        for way in ways:
            answer = WAYS[way](asked, answer)
        return answer

    return lie


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with MemoryStore(page=5) as running:
        yield running


def options(store: MemoryStore, scheme: str) -> dict[str, str]:
    """Its listings and objects are those of the interface of GCS that the client uses, too."""
    google = {"google_base_url": store.endpoint, "google_skip_signature": "true"}
    return store.options if scheme == "s3" else {**google, "allow_http": "true"}


def rows(store: MemoryStore, **options: object) -> list[int]:
    with bridge.connect(
        storage_endpoint=store.endpoint, storage_region="us-east-1", storage_allow_http=True
    ) as session:
        return sorted(session.table(ROOT).scan(**options).to_arrow()["x"].to_pylist())


def parquet(*values: int) -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table({"x": values}), sink)
    return sink.getvalue()


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.storage.object_store.listing_end._PAUSE", 0.0)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.mark.rule("35", "43", "47")
def test_43_listings_that_lie_lose_and_double_nothing(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way, alone and with another one, for all answers, for later pages, or for one answer.

    What passes costs no error, all that lies end in few, and in a bounded number of our requests;
    the honest store is whole afterwards, for who has seen the lies, too.
    """
    monkeypatch.setattr("bridge.storage.retry._FIRST", 0.0)
    monkeypatch.setattr("bridge.storage.native.STALL", 0.1)
    rng, seen, ends = random.Random(seed(43)), Counter[str](), Counter[str]()
    for number in range(examples(20, 40, 400) * len(WAYS)):
        store.lie = lambda asked, answer: answer
        store.objects.clear()
        for i in range(size := rng.choice((0, 1, 4, 5, 9, 10, 11, 23))):
            store.put(f"t/f{i:03}", b"x")
        wanted = [f"{ROOT}/f{i:03}" for i in range(size)]
        ways, when = drawn(number, rng)
        store.lie = lie_of(ways, when)
        store.asked.clear()
        storage, recursive = open_storage(options=store.options), rng.choice((True, False))
        try:
            found = storage.list_all(ROOT, recursive=recursive).paths.to_pylist()
        except BridgeError as error:
            assert isinstance(error, StorageFailure) and error.hint, error
            assert when != "once", (number, ways, error)
            ends["error"] += 1
        else:
            assert found == wanted, (number, ways, when, size)
            ends["right"] += 1
        own = [asked for asked in store.asked if asked.query.get("encoding-type") == "url"]
        assert len(own) < 50, (number, ways, when, len(own))  # the client is stopped by time
        seen.update(ways)
        store.lie = lambda asked, answer: answer
        assert storage.list_all(ROOT, recursive=recursive).paths.to_pylist() == wanted
    print(dict(seen), dict(ends))
    assert min(seen[way] for way in WAYS) >= 20
    assert 0 < ends["error"] <= ends.total() / 5, ends


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.rule("35")
def test_35_a_damaged_listing_is_asked_for_again_and_loses_nothing(
    damage: str, odd: bool, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the client's listings, and in our own where a key is odd."""
    monkeypatch.setattr("bridge.storage.retry._FIRST", 0.0)
    for i in range(12):
        store.put(f"t/f{i:02}", b"x")
    if odd:
        store.put("t/f\t", b"x")
    wanted = sorted(f"s3://lake/{key}" for key in store.objects)

    def ours(asked: Asked) -> bool:
        return asked.listing and asked.query.get("encoding-type") == "url"

    for when in ("once", "always"):
        for recursive in (True, False):
            left = [when]

            def lie(
                asked: Asked, answer: Answer, when: str = when, left: list[str] = left
            ) -> Answer:
                if not asked.listing or ours(asked) != odd or not left:
                    return answer
                if when == "once":
                    left.clear()
                return Answer(200, DAMAGE[damage](answer.body), answer.headers)

            store.lie = lie
            storage = open_storage(options=store.options)
            try:
                found = storage.list_all(ROOT, recursive=recursive).paths.to_pylist()
            except StorageFailure:
                assert when == "always"
            else:
                assert when == "once" and found == wanted


@pytest.mark.parametrize(
    ("name", "text"),
    [("Last-Modified", "now"), ("Content-Range", "bytes 3-9/20"), ("Content-Range", ""), ("", "")],
)
def test_an_answer_to_a_read_that_cannot_be_is_asked_for_again(
    name: str, text: str, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headers that are none, another range, or fewer bytes than the headers say."""
    monkeypatch.setattr("bridge.storage.retry._FIRST", 0.0)
    store.put("t/f", bytes(range(20)))
    for times in (1, 100):
        left = [times]

        def lie(asked: Asked, answer: Answer, left: list[int] = left) -> Answer:
            left[0] -= 1
            if left[0] < 0:
                return answer
            if not name:
                return Answer(answer.status, answer.body[:-1], answer.headers)
            return Answer(answer.status, answer.body, {**answer.headers, name: text})

        store.lie = lie
        storage = open_storage(options=store.options)
        if times == 1:
            assert storage.read_ranges(f"{ROOT}/f", [(2, 9)]) == [bytes(range(2, 9))]
        else:
            with pytest.raises(FileUnreadable):
                storage.read_ranges(f"{ROOT}/f", [(2, 9)])


@pytest.mark.parametrize("pages", [0, 1, 3])
@pytest.mark.rule("47")
def test_47_a_token_that_repeats_ends_in_an_error(
    pages: int, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.storage.retry.DEADLINE", 2.0)
    for i in range(20 if pages else 0):
        store.put(f"t/f{i:03}", b"x")

    def lie(asked: Asked, answer: Answer) -> Answer:
        if not asked.listing:
            return answer
        again = b"<NextContinuationToken>t/f%03d</NextContinuationToken>" % (5 * pages)
        body = _MORE.sub(b"", answer.body).replace(b"<IsTruncated>false", b"<IsTruncated>true")
        body = body.replace(b"</IsTruncated>", b"</IsTruncated>" + again)
        return Answer(200, body, answer.headers)

    store.lie = lie
    for recursive in (True, False):
        with pytest.raises(StorageFailure):
            open_storage(options=store.options).list_all(ROOT, recursive=recursive)


@pytest.mark.parametrize("scheme", ["s3", "gs"])
@pytest.mark.rule("47")
def test_47_pages_without_a_new_key_end_by_their_number(
    scheme: str, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their tokens are, long before the time that a slow store has for one page."""
    monkeypatch.setattr("bridge.storage.native.STALL", 0.3)
    monkeypatch.setattr("bridge.storage.object_store.listing_end._EMPTY_PAGES", 20)
    for i in range(12):
        store.put(f"t/f{i:02}", b"x")
    tokens = count()
    for fresh, recursive in product((True, False), (True, False)):

        def lie(asked: Asked, answer: Answer, fresh: bool = fresh) -> Answer:
            time.sleep(0.01 if asked.listing else 0)
            last = b"<IsTruncated>false" in answer.body
            if not asked.listing or not last:
                return answer
            token = b"</IsTruncated><NextContinuationToken>~%d</NextContinuationToken>" % (
                next(tokens) if fresh else 0
            )
            body = answer.body.replace(b"<IsTruncated>false", b"<IsTruncated>true")
            return Answer(200, body.replace(b"</IsTruncated>", token, 1), answer.headers)

        store.lie = lie
        with pytest.raises(StorageFailure, match="pages in a row have no new key"):
            open_storage(options=options(store, scheme)).list_all(
                f"{scheme}://lake/t", recursive=recursive
            )


def test_a_slow_store_is_waited_for(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is late is asked for in another way too, and the listing goes on."""
    monkeypatch.setattr("bridge.storage.native.STALL", 0.02)
    for i in range(12):
        store.put(f"t/f{i:02}", b"x")

    def slow(asked: Asked, answer: Answer) -> Answer:
        time.sleep(0.05 if asked.listing else 0)
        return answer

    store.lie = slow
    for recursive in (True, False):
        found = open_storage(options=store.options).list_all(ROOT, recursive=recursive)
        assert found.paths.to_pylist() == [f"{ROOT}/f{i:02}" for i in range(12)]


@pytest.mark.full
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.rule("47")
def test_47_a_listing_that_goes_on_has_no_bound_in_all(
    own: bool, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a directory with many names, whether we can list it by ourselves or not."""
    monkeypatch.setattr("bridge.storage.retry.DEADLINE", 1.5)
    if not own:
        monkeypatch.setattr("bridge.storage.object_store.listing_end.ListingEnd.lists", False)
        monkeypatch.setattr("bridge.storage.object_store.objectstore._PAGE", store.page)
    for i in range(30):
        store.put(f"t/f{i:02}", b"x")
        store.put(f"t/d{i % 5}/f{i:02}", b"x")
        store.put(f"t/d{i % 5}/", b"")

    def slow(asked: Asked, answer: Answer) -> Answer:
        time.sleep(0.25 if asked.listing else 0)
        return answer

    store.lie = slow
    storage = open_storage(options=store.options)
    found = storage.list_all(ROOT, recursive=False)
    assert found.paths.to_pylist() == [f"{ROOT}/f{i:02}" for i in range(30)]
    assert storage.list_directories(ROOT) == [f"{ROOT}/d{i}" for i in range(5)]


def test_43_a_table_whose_listing_is_a_login_is_an_error(store: MemoryStore) -> None:
    for i in range(7):
        store.put(f"t/f{i}.parquet", parquet(i))
    assert rows(store) == list(range(7))
    store.lie = lambda asked, answer: LIES["login"](asked, answer) if asked.listing else answer
    with pytest.raises(StorageFailure, match="<html>"):
        rows(store)


def test_43_a_generation_is_never_below_one_that_was_seen(store: MemoryStore) -> None:
    """Not if the store lists none of them, and not if another process chose the number."""
    storage = open_storage(options=store.options)
    index = IndexStore(storage, f"{ROOT}/.skipbridge")
    for number in (4, 5):
        index.commit(next_generation(None, number, builder=f"b{number}"))

    def none(asked: Asked, answer: Answer) -> Answer:
        if not asked.listing:
            return answer
        return Answer(200, _ENTRY.sub(b"", _MORE.sub(b"", answer.body)), answer.headers)

    store.lie = none
    with pytest.raises(StorageFailure, match="lacks generation 5"):
        index.generations()
    other = IndexStore(storage, f"{ROOT}/.skipbridge")
    assert other.generations() == []
    store.lie = lambda asked, answer: answer
    with pytest.raises(IndexConflict, match="there is generation 5"):
        other.commit(next_generation(None, 1, builder="late"))
    assert index.generations() == [4, 5]


def test_43_a_manifest_counts_as_written_if_it_is_there(store: MemoryStore) -> None:
    def unwritten(asked: Asked, answer: Answer) -> Answer:
        if asked.method == "PUT" and "/generations/1.json" in asked.key:
            del store.objects[asked.key]
            return Answer(200, _ERROR, answer.headers)
        return answer

    store.lie = unwritten
    index = IndexStore(open_storage(options=store.options), f"{ROOT}/.skipbridge")
    with pytest.raises(StorageFailure, match="and it is not there"):
        index.commit(next_generation(None, 1, builder="b"))
    store.lie = lambda asked, answer: answer
    assert index.commit(next_generation(None, 1, builder="b")).generation == 1


@pytest.mark.rule("43")
def test_43_a_cleanup_deletes_nothing_that_a_manifest_names_which_it_is_not_told(
    store: MemoryStore,
) -> None:
    """From some answer on, what is read of it is a login, or nothing is there."""
    index = IndexStore(open_storage(options=store.options), f"{ROOT}/.skipbridge")
    for i in range(4):
        store.put(f"t/f{i}.parquet", parquet(i))
        build(open_storage(options=store.options), ROOT)
    whole = dict(store.objects)
    for first, status in product(range(8), (200, 404)):
        store.objects = dict(whole)

        at = first, status, count()

        def lie(it: Asked, answer: Answer, at: tuple[int, int, Iterator[int]] = at) -> Answer:
            of = it.method if it.key.endswith(".json") else ""
            late = of == "GET" and next(at[2]) >= at[0]
            return Answer(at[1], _LOGIN) if late or (of == "HEAD" and at[1] == 404) else answer

        store.lie = lie
        with suppress(BridgeError):
            index.clean(2, -10)
        store.lie = lambda asked, answer: answer
        kept = index.generations()[-2:]
        assert kept == [3, 4]
        for number in kept:
            assert index.lacks(index.manifest(number).blobs()) is None, (first, status, number)
    store.objects = whole
    assert index.clean(2, -10) == 2


@pytest.mark.rule("43")
def test_43_what_a_store_says_it_has_written_is_looked_at(store: MemoryStore) -> None:
    index = IndexStore(open_storage(options=store.options), f"{ROOT}/.skipbridge")
    for stored in (None, b"hal"):

        def lie(asked: Asked, answer: Answer, stored: bytes | None = stored) -> Answer:
            if asked.method == "PUT":
                store.objects.pop(asked.key)
                if stored is not None:
                    store.put(asked.key, stored)
            return answer

        store.lie = lie
        with pytest.raises(StorageFailure, match="the store says that it has written"):
            index.put_blob("shards/a", b"half of it")


@pytest.mark.parametrize("etag", [True, False])
@pytest.mark.parametrize("sent", [b"new content", b"other bytes", b"longer"])
def test_after_a_lost_answer_to_a_plain_write_the_object_decides(
    sent: bytes, etag: bool, store: MemoryStore
) -> None:
    """Its size, then its etag or its bytes: it was written, or it was not."""

    def lost(asked: Asked, answer: Answer) -> Answer:
        if asked.method != "PUT":
            headers = {k: v for k, v in answer.headers.items() if etag or k != "ETag"}
            return Answer(answer.status, answer.body, headers)
        store.put("t/f", b"new content")
        return Answer(500, _ERROR)

    store.lie = lost
    storage = open_storage(options={**store.options, "retries": "0"})
    if sent == b"new content":
        storage.put(f"{ROOT}/f", sent)
        return
    with pytest.raises(StorageFailure, match="sorry"):
        storage.put(f"{ROOT}/f", sent)


def test_a_name_that_is_neither_free_nor_there_is_named(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delete marker of a bucket with versions. No number is passed over, and readers go on."""
    monkeypatch.setattr("bridge.storage.object_store.atomic_create._PAUSE", 0.0)
    index = IndexStore(open_storage(options=store.options), f"{ROOT}/.skipbridge")
    first = index.commit(next_generation(None, 1, builder="b"))

    def marker(asked: Asked, answer: Answer) -> Answer:
        if not asked.key.endswith("/generations/2.json"):
            return answer
        store.objects.pop(asked.key, None)
        return Answer(412 if asked.method == "PUT" else 404)

    store.lie = marker
    with pytest.raises(StorageFailure, match=r"2\.json can be neither created nor read") as caught:
        index.commit(next_generation(first, 2, builder="b"))
    assert "versioning" in caught.value.hint
    assert index.generations() == [1] and index.latest() == first
    store.lie = lambda asked, answer: answer
    assert index.commit(next_generation(first, 2, builder="b")).generation == 2


def test_a_bucket_that_is_missing_is_an_error_of_each_operation(store: MemoryStore) -> None:
    body = b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>"
    store.lie = lambda asked, answer: Answer(404, body if asked.method != "HEAD" else b"")
    uri, storage = f"{ROOT}/f", open_storage(options=store.options)
    for ask in (
        lambda: storage.stat(uri),
        lambda: storage.put(uri, b"x"),
        lambda: storage.put_if_absent(uri, b"x"),
        lambda: storage.list_all(ROOT),
        lambda: storage.list_directories(ROOT),
        lambda: storage.delete(uri),
        lambda: storage.read(uri),
        lambda: storage.read_ranges(uri, [(0, 1)]),
        lambda: storage.read_state(uri, [(0, 1)]),
        lambda: storage.copy(FileStat(uri, 1, 1), f"{ROOT}/g"),
    ):
        with pytest.raises((StorageFailure, FileUnreadable), match="there is no bucket lake"):
            ask()


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("RequestTimeTooSkewed", "clock"),
        ("InvalidObjectState", "archive"),
        ("QuotaExceeded", "quota"),
    ],
)
def test_what_no_policy_mends_is_no_missing_permission(
    code: str, wanted: str, store: MemoryStore
) -> None:
    body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    store.lie = lambda asked, answer: Answer(403, body)
    storage = open_storage(options=store.options)
    for ask in (lambda: storage.put(f"{ROOT}/f", b"x"), lambda: storage.read(f"{ROOT}/f")):
        with pytest.raises((StorageFailure, FileUnreadable), match=wanted):
            ask()


def _console(asked: Asked, answer: Answer) -> Answer:
    """An endpoint that sends whoever has no session to a login elsewhere."""
    if not asked.listing or "authorization" in asked.headers:
        return answer
    return Answer(302, b"", {"Location": "http://me:SECRET@login.example/?next=lake"})


def _begins_anew(asked: Asked, answer: Answer, store: MemoryStore) -> Answer:
    if not asked.listing:
        return answer
    query = {k: v for k, v in asked.query.items() if k != "start-after"}
    return store.answer(Asked(asked.method, asked.key, query, asked.headers), b"")


@pytest.mark.rule("43")
def test_43_the_doctor_tries_a_store(store: MemoryStore) -> None:
    """Of a store that lists otherwise than S3, or an address that is none, it says so."""
    config = Config(
        {
            f"storage.{name}": Setting(store.options[name], "test")
            for name in ("endpoint", "region", "allow_http")
        }
    )
    told: dict[str, tuple[Lie, str]] = {
        "honest": (lambda asked, answer: answer, ""),
        "ignores": (lambda asked, answer: _begins_anew(asked, answer, store), "start-after"),
        "login": (_body(lambda _: _LOGIN), "<html>"),
        "console": (_console, "a redirect to http://login.example/"),
        "empty": (lambda asked, answer: _begin_empty(asked, answer), "0 of 2 files"),
    }
    for name, (lie, words) in told.items():
        store.lie = lambda asked, answer: answer
        store.objects.clear()
        for i in range(3):
            store.put(f"t/f{i}.parquet", parquet(i))
        store.lie = lie
        (found,) = _store(config, ROOT)
        assert found.status == ("error" if words else "ok"), (name, found)
        assert words in found.detail and "SECRET" not in found.detail, (name, found)
        if name != "login":
            assert sorted(store.objects) == [f"t/f{i}.parquet" for i in range(3)]


def _begin_empty(asked: Asked, answer: Answer) -> Answer:
    return Answer(200, _ENTRY.sub(b"", answer.body)) if asked.listing else answer


def test_credentials_in_addresses_are_never_printed() -> None:
    for uri in ("s3a://KEY:SECRET@bucket/t", "s3://KEY:SECRET@bucket", "gs://KEY:SECRET@b/t"):
        with pytest.raises(InvalidUri) as caught:
            canonical(uri)
        assert "SECRET" not in str(caught.value) and "KEY" not in str(caught.value)
    for endpoint in ("http://me:SECRET@host:9000", "me:SECRET@host"):
        with pytest.raises(StorageFailure) as failed:
            open_storage("s3://b", {"endpoint": endpoint})
        assert "SECRET" not in str(failed.value) and "host" in str(failed.value)
