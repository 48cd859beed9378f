"""Keys that the storage library refuses or tells otherwise: nothing is lost, doubled, or refused.

The model is the set of keys: what ends in a slash is the marker of a directory, all else a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import obstore
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from obstore.store import GCSStore

import bridge
from bridge.kernel.errors import InvalidRequest, InvalidUri
from bridge.storage.object_store import objectstore
from bridge.storage.object_store.listing_end import ListingEnd
from bridge.storage.object_store.odd_keys import OddKeys
from bridge.storage.port import FileTable
from bridge.storage.routed import open_storage
from bridge.storage.uri import join
from bridge.sync.discovered_partitions import read_directories
from bridge.sync.extractors import find_extractor
from bridge.table.directory.discovered import Discovered, combine, list_directories, summaries
from tests.storage.test_lying_store import options, parquet
from tests.storage.test_requests_in_flight import build
from tests.support.azurite import CONTAINER, URI, Azurite, shared_access
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


def files(keys: Sequence[str], below: str = "t/", scheme: str = "s3") -> list[str]:
    return sorted(
        (
            f"{scheme}://lake/{key}"
            for key in keys
            if key.startswith(below) and not key.endswith("/")
        ),
        key=str.encode,
    )


def real(listing: FileTable) -> list[str]:
    """Without markers of no content, which are no data."""
    return listing.filter(listing.sizes > 0).paths.to_pylist()


@pytest.mark.parametrize("scheme", ["s3", "gs"])
@settings(
    max_examples=examples(15, 200, 3_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sets(KEYS, max_size=12), st.sets(KEYS, max_size=3), st.data())
@example({"0", "a\tb", "z"}, set(), None)
@example({"0", "a"}, {""}, None)
@example({"a-1/f", "a/f"}, {"a"}, None)
def test_every_way_of_listing_tells_every_file_once(
    store: MemoryStore,
    scheme: str,
    names: set[str],
    marked: set[str],
    data: st.DataObject | None,
) -> None:
    """Also where a marker of a directory has content, and files below it."""
    store.objects.clear()
    for name in names:
        if not f"/{name}".endswith("/"):
            store.put(f"t/{name}", b"x" * len(name.encode()))
    alone = len(names) + len(marked) <= 3  # among more small files a marker is taken for one
    for name in marked:
        store.put(f"t/{name}/" if name else "t/", b"marker")
        if data is None or not alone or data.draw(st.booleans()):
            store.put(f"t/{name}/below", b"x")
    keys = [key for key, held in store.objects.items() if held.content]
    wanted, root = files(keys, scheme=scheme), f"{scheme}://lake/t"
    storage = open_storage(options=options(store, scheme))
    found = storage.list_all(root)
    assert real(found) == wanted
    assert all(store.objects[u.removeprefix(f"{scheme}://lake/")].content for u in real(found))
    direct = [uri for uri in wanted if "/" not in uri.removeprefix(f"{root}/")]
    assert real(storage.list_all(root, recursive=False)) == direct
    with ThreadPoolExecutor(2) as pool:
        for recursive in (True, False):
            many = storage.list_many([root, root], pool, recursive=recursive)
            assert real(many.files) == 2 * (wanted if recursive else direct)
    parts = {key[2:].partition("/")[0] for key in keys if "/" in key[2:]}
    assert storage.list_directories(root) == sorted(
        join(root, part) for part in parts if part not in ("", ".", "..")
    )
    if data is not None and wanted:
        after = data.draw(st.sampled_from(wanted))
        rest = [path for page in storage.pages(root, start_after=after) for path in real(page)]
        assert rest == [uri for uri in wanted if uri.encode() > after.encode()]
    bucket = storage.store(root)  # type: ignore[attr-defined]
    assert bucket._ordered  # no odd key makes a bucket one without an order
    for uri in wanted:
        key = uri.removeprefix(f"{scheme}://lake/")
        if {".", ".."} & set(key.split("/")):
            with pytest.raises(InvalidUri, match="cannot name the object"):
                storage.read(uri)
            continue
        state = storage.stat(uri)
        assert state is not None and state.size == len(store.objects[key].content)
        assert storage.read_state(uri, [(0, 1)]) == ([store.objects[key].content[:1]], state)


@pytest.mark.parametrize("key", ["none\t", "p=1/\x7f"])
def test_an_object_of_an_odd_key_that_is_missing_is_none(store: MemoryStore, key: str) -> None:
    assert open_storage(options=store.options).stat(f"{ROOT}/{key}") is None


@pytest.mark.parametrize("scheme", ["s3", "gs"])
@pytest.mark.parametrize("odd", ["/a.parquet", "/p/f.parquet"])
def test_a_slash_at_the_begin_of_a_key_is_part_of_it(
    store: MemoryStore, scheme: str, odd: str
) -> None:
    """The client leaves it out: another file was told, or the same one twice."""
    root, storage = f"{scheme}://lake", open_storage(options=options(store, scheme))
    for others in ([], ["p/f.parquet"], ["p/f.parquet", "a.parquet"]):
        for key in (odd, *others):
            store.put(key, b"x" * 3_000)
        assert real(storage.list_all(root)) == files([odd, *others], "", scheme)
        direct = [f"{root}/{key}" for key in others if "/" not in key]
        assert real(storage.list_all(root, recursive=False)) == direct


@pytest.mark.parametrize("scheme", ["s3", "gs"])
@pytest.mark.parametrize("odd", ["/", "/x", "/p/x"])
def test_a_bucket_is_no_directory_in_itself(store: MemoryStore, scheme: str, odd: str) -> None:
    """The client tells the prefix ``/`` as an empty one."""
    store.put(odd, b"x")
    store.put("p/f", b"x")
    root, storage = f"{scheme}://lake", open_storage(options=options(store, scheme))
    assert storage.list_directories(root) == [f"{root}/p"]
    assert storage.list_all(root, recursive=False).paths.to_pylist() == []
    assert real(storage.list_all(root)) == files([odd, "p/f"], "", scheme)


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


@pytest.mark.parametrize("odd", ["/x", "/p=9/x", "p=1//x", "p=1//q=2/x"])
def test_a_key_with_an_empty_part_is_no_file_of_a_table(store: MemoryStore, odd: str) -> None:
    """It is named, and a sync passes it over alone."""
    folder = "p=1/" if "=" in odd else ""
    store.put(f"t/{odd}", parquet(99))
    store.put(f"t/{folder}f", parquet(1))
    given = {name: store.options[name] for name in ("endpoint", "region", "allow_http")}
    with bridge.connect(**{f"storage_{name}": value for name, value in given.items()}) as session:
        with pytest.raises(InvalidRequest, match="empty part") as caught:
            session.table(ROOT).scan().to_arrow()
        assert f"{ROOT}/{odd}" in str(caught.value)
        store.put("t/_tmp//x", parquet(99))
        del store.objects[f"t/{odd}"]
        assert session.table(ROOT).scan().to_arrow()["x"].to_pylist() == [1]
    store.put(f"t/{odd}", parquet(99))
    storage = open_storage(options=store.options)
    (page,) = summaries(storage, ROOT, ROOT)
    found = read_directories(Discovered(ROOT, combine([page])), find_extractor("hive"))
    assert [p.directory for p in found.partitions.values()] == [folder.removesuffix("/")]
    assert [reason for _, reason in found.unparsable if "empty part" in reason], found.unparsable


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


@pytest.mark.parametrize("scheme", ["s3", "gs"])
@pytest.mark.parametrize("content", [b"", b"marker"])
def test_a_directory_that_holds_only_its_marker_is_empty(
    store: MemoryStore, scheme: str, content: bytes
) -> None:
    store.put("t/", content)
    assert real(open_storage(options=options(store, scheme)).list_all(f"{scheme}://lake/t")) == []


def test_addresses_of_listings_in_gcs_are_signed(store: MemoryStore) -> None:
    """By the key of a service account; who cannot sign them lists by the client alone."""
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {"private_key_id": "1", "client_email": "a@b", "gcs_base_url": store.endpoint}
    account["private_key"] = key.decode()
    client = GCSStore(
        "lake", service_account_key=json.dumps(account), client_options={"allow_http": True}
    )
    end = ListingEnd.of(client, "gs://lake/", True, 5.0)
    assert end.lists
    address = urlsplit(end._signed({"list-type": "2"}, "t/a b"))
    query = parse_qs(address.query)
    assert address.path == "/lake" and query["prefix"] == ["t/a b/"] and query["X-Goog-Signature"]


@pytest.mark.parametrize("odd", ["p=2//f", "p=2/a\tb", "p=2/q=1/\n", "p=2/q=1//f"])
def test_a_directory_with_a_key_that_cannot_be_listed_leaves_the_others(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    """As where no credentials sign an address, and the client alone may list."""
    monkeypatch.setattr(ListingEnd, "lists", False)
    for key in ("p=1/f", "p=2/f", odd, "p=2/q=2/f", "p=3/q=1/f"):
        store.put(f"t/{key}", b"x")
    found = list_directories(open_storage(options=options(store, "s3")), "s3://lake/t")
    ((directory, reason),) = found.refused
    assert odd.startswith(f"{directory}/") and "cannot be listed" in reason, found.refused
    assert {"p=1", "p=3/q=1"} <= {*found.paths} and directory not in found.paths
    with pytest.raises(InvalidUri, match="cannot be listed"):
        open_storage(options=options(store, "s3")).list_all("s3://lake/t")


@pytest.mark.full
@pytest.mark.parametrize("below", [False, True])
def test_a_marker_with_content_is_no_file_in_azure(azure: Azurite, below: bool) -> None:
    """Nor in another store."""
    root = f"{URI}/marked{below}"
    storage = open_storage(options=azure.options)
    names = ["a.csv", "d-1/f.csv", "p%2Fq.csv", "x y%.csv", *(["d/f"] if below else [])]
    for name in names:
        storage.put(f"{root}/{name}", b"x")
    address = f"{azure.options['azure_storage_endpoint']}/{CONTAINER}/marked{below}/d/"
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-08-06"}
    asked = Request(f"{address}?{shared_access('cw')}", b"marker", headers, method="PUT")
    urlopen(asked).close()
    assert storage.list_all(root).paths.to_pylist() == sorted(f"{root}/{name}" for name in names)


def test_a_marker_with_content_is_no_file_in_gcs_without_a_key(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ListingEnd, "lists", False)
    for key in ("t/a", "t/d/", "t/d/f.csv", "t/e/"):
        store.put(key, b"x")
    found = open_storage(options=options(store, "gs")).list_all("gs://lake/t")
    assert found.paths.to_pylist() == ["gs://lake/t/a", "gs://lake/t/d/f.csv"]
