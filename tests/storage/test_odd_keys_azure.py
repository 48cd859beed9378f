"""Keys that the storage library refuses, in a container of Azure: as in S3, nothing is lost.

Azure itself refuses some control characters; the server here takes what XML can say.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

import bridge
from bridge.kernel.errors import InvalidRequest, InvalidUri
from bridge.storage.object_store import azure_listing
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.table.directory.discovered import list_directories
from tests.storage.test_lying_store import parquet
from tests.storage.test_odd_keys import real
from tests.storage.test_requests_in_flight import build
from tests.support.azurite import ACCOUNT, KEY, Azurite, create_container, shared_access

pytestmark = pytest.mark.full

ODD = ("a\tb", "_tmp//x", "é\n&<+ %2F", "d/", "d/below", "/x", "p=1//x", "e/", "a b", " ")


class Container:
    """A new container, into which odd keys can be put."""

    def __init__(self, azure: Azurite) -> None:
        self.azure, self.name = azure, f"c{uuid.uuid4().hex}"
        assert azure.server.port is not None
        create_container(azure.server.port, self.name)
        self.uri = f"abfss://{self.name}@{ACCOUNT}.dfs.core.windows.net"

    def put(self, key: str, content: bytes) -> None:
        place = f"{self.azure.options['azure_storage_endpoint']}/{self.name}/{quote(key)}"
        headers = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-08-06"}
        url = f"{place}?{shared_access('cw', container=self.name)}"
        urlopen(Request(url, content, headers, method="PUT")).close()

    def storage(self, by: str = "account_key") -> Storage:
        access = {"azure_storage_account_key": KEY}
        if by == "sas_token":
            access = {"azure_storage_sas_token": shared_access("rl", container=self.name)}
        kept = {k: v for k, v in self.azure.options.items() if k != "azure_storage_account_key"}
        return open_storage(options={**kept, **access})

    def files(self, keys: Sequence[str], below: str) -> list[str]:
        found = [k for k in keys if k.startswith(below) and not k.endswith("/")]
        return sorted((f"{self.uri}/{key}" for key in found), key=str.encode)


@pytest.fixture
def container(azure: Azurite) -> Container:
    return Container(azure)


@pytest.fixture
def _environment(azure: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", azure.options["azure_storage_endpoint"])
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")


@pytest.mark.parametrize("by", ["account_key", "sas_token"])
@pytest.mark.parametrize("below", ["", "t/"])
def test_every_way_of_listing_tells_every_file_once(
    container: Container, monkeypatch: pytest.MonkeyPatch, below: str, by: str
) -> None:
    """In the container's root, too, over many pages, and with each way to sign them."""
    monkeypatch.setattr(azure_listing, "_PAGE", 1)
    keys = [f"{below}{odd}" for odd in ODD]
    for key in keys:
        container.put(key, key.encode())
    root = f"{container.uri}/{below}".rstrip("/")
    storage = container.storage(by)
    wanted = container.files(keys, below)
    assert real(storage.list_all(root)) == wanted
    direct = [uri for uri in wanted if "/" not in uri.removeprefix(f"{root}/")]
    assert real(storage.list_all(root, recursive=False)) == direct
    with ThreadPoolExecutor(2) as pool:
        assert real(storage.list_many([root, root], pool).files) == 2 * wanted
    assert storage.list_directories(root) == [
        f"{root}/{name}" for name in ("_tmp", "d", "e", "p=1")
    ]
    for uri in wanted:
        content = uri.removeprefix(f"{container.uri}/").encode()
        state = storage.stat(uri)
        assert state is not None and state.size == len(content) and storage.read(uri) == content
        assert storage.read_state(uri, [(0, 1)]) == ([content[:1]], state)
    assert storage.stat(f"{root}/none\t") is None


@pytest.mark.usefixtures("_environment")
@pytest.mark.parametrize(
    ("odd", "folder", "is_data"),
    [
        ("a\tb.parquet", "", True),
        ("_tmp//x", "", False),
        ("_tmp/./x", "", False),
        ("", "", False),
        ("d/", "", False),
        ("p=1/a\tb.parquet", "p=1/", True),
        ("p=1/p\tq=1/x.parquet", "p=0/p\tq=1/", True),
        ("p=1/", "p=1/", False),
        ("_tmp//x", "p=1/", False),
    ],
)
def test_a_table_with_an_odd_key_is_read_and_indexed(
    container: Container, tmp_path: Path, odd: str, folder: str, is_data: bool
) -> None:
    """What is hidden is left out, what may be data is read."""
    container.put(f"t/{odd}", parquet(99))
    for i in range(4):
        container.put(f"t/{folder}f{i}.parquet", parquet(i))
    wanted, root = [*range(4), *([99] if is_data else [])], f"{container.uri}/t"

    def rows(where: str | None = None) -> list[int]:
        with bridge.connect(planner_cache_dir=str(tmp_path / "cache")) as session:
            return sorted(session.table(root).scan(where).to_arrow()["x"].to_pylist())

    assert rows() == wanted
    if not folder:
        assert build(container.storage(), root).files == len(wanted)
    assert rows("x = 3") == [3]
    assert rows("x >= 90") == wanted[4:]


@pytest.mark.usefixtures("_environment")
def test_a_key_with_an_empty_part_is_named(container: Container) -> None:
    container.put("t//x", parquet(99))
    container.put("t/f", parquet(1))
    with bridge.connect() as session, pytest.raises(InvalidRequest, match="empty part") as caught:
        session.table(f"{container.uri}/t").scan().to_arrow()
    assert f"{container.uri}/t//x" in str(caught.value)


def test_who_has_neither_key_nor_token_is_told_the_object(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client keeps to itself what an identity gets. The other directories are listed."""
    monkeypatch.setattr(azure_listing, "_access", lambda store: None)
    for key in ("p=1/f", "p=2/f", "p=2/a\tb"):
        container.put(f"t/{key}", b"x")
    storage = container.storage()
    with pytest.raises(InvalidUri, match="cannot be listed"):
        storage.list_all(f"{container.uri}/t")
    found = list_directories(storage, f"{container.uri}/t")
    assert [directory for directory, _ in found.refused] == ["p=2"] and "p=1" in found.paths
