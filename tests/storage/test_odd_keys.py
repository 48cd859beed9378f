"""Keys that the storage library refuses or tells otherwise: nothing is lost, doubled, or refused.

The model is the set of keys: what ends in a slash is the marker of a directory, all else a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import bridge
from bridge.errors import InvalidUri
from bridge.storage import objectstore
from bridge.storage.odd_keys import OddKeys
from bridge.storage.port import FileTable
from bridge.storage.routed import open_storage
from bridge.storage.uri import join
from tests.storage.test_lying_store import parquet
from tests.storage.test_requests_in_flight import build
from tests.support.memory_store import MemoryStore
from tests.support.versitygw import BUCKET as GATEWAY
from tests.support.versitygw import Versitygw
from tests.tiers import examples

ROOT = "s3://lake/t"
CONTROLS = ("a\tb", "a\nb", "\x01", "a\r", "\x7f")
ODD = (*CONTROLS, "", ".", "..", " ", "a+b", "%2F", "a%", "ä\u0085", "é&<")
PARTS = st.sampled_from((*ODD, "a", "b", "a-1", "_tmp", "p=1", "c"))
KEYS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@pytest.fixture(scope="module")
def store() -> Iterator[MemoryStore]:
    with MemoryStore(page=3) as running:
        yield running


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    store.objects.clear()


def files(keys: Sequence[str], below: str = "t/") -> list[str]:
    return sorted(
        (f"s3://lake/{key}" for key in keys if key.startswith(below) and not key.endswith("/")),
        key=str.encode,
    )


def real(listing: FileTable) -> list[str]:
    """Without markers of no content, which are no data."""
    return listing.filter(listing.sizes > 0).paths.to_pylist()


@settings(
    max_examples=examples(20, 200, 3_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sets(KEYS, max_size=12), st.sets(KEYS, max_size=3), st.data())
@example({"0", "a\tb", "z"}, set(), None)
@example({"0", "a"}, {""}, None)
@example({"a-1/f", "a/f"}, {"a"}, None)
def test_every_way_of_listing_tells_every_file_once(
    store: MemoryStore, names: set[str], marked: set[str], data: st.DataObject | None
) -> None:
    """Also where a marker of a directory has content, and files below it."""
    store.objects.clear()
    for name in names:
        if not f"/{name}".endswith("/"):
            store.put(f"t/{name}", b"x" * len(name.encode()))
    for name in marked:
        store.put(f"t/{name}/" if name else "t/", b"marker")
        if data is None or data.draw(st.booleans()):
            store.put(f"t/{name}/below", b"x")
    keys = [key for key, held in store.objects.items() if held.content]
    wanted = files(keys)
    storage = open_storage(options=store.options)
    found = storage.list_all(ROOT)
    assert real(found) == wanted
    assert all(store.objects[u.removeprefix("s3://lake/")].content for u in real(found))
    direct = [uri for uri in wanted if "/" not in uri.removeprefix(f"{ROOT}/")]
    assert real(storage.list_all(ROOT, recursive=False)) == direct
    with ThreadPoolExecutor(2) as pool:
        for recursive in (True, False):
            many = storage.list_many([ROOT, ROOT], pool, recursive=recursive)
            assert real(many.files) == 2 * (wanted if recursive else direct)
    parts = {key[2:].partition("/")[0] for key in keys if "/" in key[2:]}
    assert storage.list_directories(ROOT) == sorted(
        join(ROOT, part) for part in parts if part not in ("", ".", "..")
    )
    if data is not None and wanted:
        after = data.draw(st.sampled_from(wanted))
        rest = [path for page in storage.pages(ROOT, start_after=after) for path in real(page)]
        assert rest == [uri for uri in wanted if uri.encode() > after.encode()]
    bucket = storage.store(ROOT)  # type: ignore[attr-defined]
    assert bucket._ordered  # no odd key makes a bucket one without an order
    for uri in wanted:
        key = uri.removeprefix("s3://lake/")
        if {".", ".."} & set(key.split("/")):
            with pytest.raises(InvalidUri, match="cannot name the object"):
                storage.read(uri)
            continue
        state = storage.stat(uri)
        assert state is not None and state.size == len(store.objects[key].content)
        assert storage.read_state(uri, [(0, 1)]) == ([store.objects[key].content[:1]], state)


def test_odd_keys_in_parallel_ranges(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objectstore, "_RANGE_FROM", 3)
    for i in range(40):
        store.put(f"t/f{i:02}", b"x")
        store.put(f"t/d{i:02}{'' if i % 5 else chr(9)}/f", b"x")
    store.put("t/f20/", b"marker")
    store.put("t/f20/below", b"x")
    wanted = files([*store.objects])
    hints = pa.array(wanted, pa.large_string())
    assert (
        open_storage(options=store.options).list_all(ROOT, hints=hints).paths.to_pylist() == wanted
    )


@pytest.mark.parametrize(
    ("odd", "folder", "is_data"),
    [
        ("a\tb.parquet", "", True),
        ("_tmp//x", "", False),
        (".h\x01/x", "", False),
        ("_tmp/./x", "", False),
        ("", "", False),
        ("p=1/\x7f.parquet", "p=1/", True),
        ("p=1/p\tq=\r/x.parquet", "p=0/p\tq=1/", True),
        ("p=a\n/x.parquet", "p=1/", True),
        ("p=1/", "p=1/", False),
        ("d/", "", False),
        ("p=2/", "p=1/", False),
        ("_tmp//x", "p=1/", False),
    ],
)
def test_a_table_with_an_odd_key_is_read_and_indexed(
    store: MemoryStore, tmp_path: Path, odd: str, folder: str, is_data: bool
) -> None:
    """What is hidden is left out, what may be data is read."""
    store.put(f"t/{odd}", parquet(99))
    for i in range(4):
        store.put(f"t/{folder}f{i}.parquet", parquet(i))
    wanted = [*range(4), *([99] if is_data else [])]
    given = {name: store.options[name] for name in ("endpoint", "region", "allow_http")}

    def rows(where: str | None = None) -> list[int]:
        cache = str(tmp_path / "cache")
        chosen = {f"storage_{name}": value for name, value in given.items()}
        with bridge.connect(planner_cache_dir=cache, **chosen) as session:
            return sorted(session.table(ROOT).scan(where).to_arrow()["x"].to_pylist())

    assert rows() == wanted
    if not folder:
        assert build(open_storage(options=store.options), ROOT).files == len(wanted)
    assert rows("x = 3") == [3]
    assert rows("x >= 90") == wanted[4:]


def test_a_gateway_takes_the_addresses_of_odd_keys(gateway: Versitygw) -> None:
    """It checks the signatures of what is asked for."""
    root = f"s3://{GATEWAY}/odd"
    storage = open_storage(options=gateway.options)
    bucket = storage.store(root)  # type: ignore[attr-defined]
    keys = ["odd/a\tb", "odd/ä \n+/f", "odd/z"]
    for key in keys:
        client, name = OddKeys(bucket._store).client_of(key)
        obstore.put(client, name, key.encode())
    found = storage.list_all(root)
    assert found.paths.to_pylist() == sorted(f"s3://{GATEWAY}/{key}" for key in keys)
    for uri in found.paths.to_pylist():
        assert storage.read(uri) == uri.removeprefix(f"s3://{GATEWAY}/").encode()
        state = storage.stat(uri)
        assert state is not None and storage.read_state(uri, [(1, 3)]) == ([b"dd"], state)
