"""A store whose listings come in another order than that of their keys, and break off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

from bridge.kernel.errors import StorageFailure
from bridge.storage.port import FileTable, Storage, data_files
from bridge.storage.routed import open_storage

pytestmark = pytest.mark.full

ROOT = "abfss://lake@account.dfs.core.windows.net/t"
PAGES = ([f"t/a/{i:04}" for i in range(1000)], ["t/a-b/1", "t/c/1"])
"""As a hierarchical namespace has them: directories by name, each with all that is in it."""
_BLOB = (
    "<Blob><Name>{}</Name><Properties><Last-Modified>Mon, 05 Jan 2026 10:00:00 GMT</Last-Modified>"
    "<Etag>0x1</Etag><Content-Length>1</Content-Length><Content-Type>text/plain</Content-Type>"
    "<BlobType>BlockBlob</BlobType></Properties></Blob>"
)
_DIRECTORY_BUCKETS = ["s3://lake--use1-az4--x-s3/t", "s3://lake--use1-az4--xa-s3/t"]
_OBJECT = (
    "<Contents><Key>{}</Key><LastModified>2026-01-05T10:00:00.000Z</LastModified>"
    '<ETag>"1"</ETag><Size>1</Size></Contents>'
)


def _of_azure(asked: dict[str, list[str]]) -> tuple[bool, str]:
    second = "marker" in asked
    blobs = "".join(map(_BLOB.format, PAGES[second]))
    marker = "" if second else "more"
    return second, (
        '<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>'
        f"{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
    )


def _of_s3(asked: dict[str, list[str]]) -> tuple[bool, str]:
    """It begins after a key by name, as S3 does, whatever the order of its pages."""
    second = "continuation-token" in asked
    after = asked.get("start-after", [""])[0] if _Answers.heeds_start else ""
    keys = [*PAGES[0], *PAGES[1]] if after else [*reversed(PAGES[second])]
    objects = "".join(_object(key) for key in keys if key > after)
    more = "" if second or after else "<NextContinuationToken>more</NextContinuationToken>"
    truncated = str(bool(more)).lower()
    return second, (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
        f"<IsTruncated>{truncated}</IsTruncated>{more}{objects}</ListBucketResult>"
    )


def _object(key: str) -> str:
    listed = _OBJECT.format(key)
    return listed.replace("<Size>1<", "<Size>0<") if key.endswith("/") else listed


class _Answers(BaseHTTPRequestHandler):
    """Lists two pages, and cuts the second one at first."""

    protocol_version = "HTTP/1.1"
    cuts: ClassVar[list[int]] = []
    heeds_start: ClassVar[bool] = True

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        second, text = (_of_s3 if "list-type" in asked else _of_azure)(asked)
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if second and self.cuts:
            self.cuts.pop()
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_listing_in_another_order_that_breaks_off_loses_no_file(port: int) -> None:
    _Answers.cuts[:] = [1, 2]
    storage = open_storage(
        options={
            "azure_storage_endpoint": f"http://127.0.0.1:{port}",
            "azure_storage_account_key": "aGlkZGVu",
            "allow_http": "true",
        }
    )
    wanted = sorted(f"{ROOT}/{key.removeprefix('t/')}" for page in PAGES for key in page)
    assert storage.list_all(ROOT).paths.to_pylist() == wanted
    assert not _Answers.cuts
    after = [p.paths.to_pylist() for p in storage.pages(ROOT, start_after=f"{ROOT}/a/0998")]
    assert after == [[f"{ROOT}/a/0999", f"{ROOT}/c/1"]]


def s3(port: int) -> Storage:
    return open_storage(
        options={
            "endpoint": f"http://127.0.0.1:{port}",
            "region": "us-east-1",
            "access_key_id": "test",
            "secret_access_key": "test",
            "allow_http": "true",
        }
    )


def test_a_listing_of_s3_in_another_order_that_breaks_off_begins_anew(port: int) -> None:
    """What comes after the last key is not what is missing."""
    wanted = sorted(f"s3://lake/{key}" for page in PAGES for key in page)
    for cuts in (0, 2):
        _Answers.cuts[:] = [1] * cuts
        storage = s3(port)
        for _ in "ab":
            assert storage.list_all("s3://lake/t").paths.to_pylist() == wanted
        assert not _Answers.cuts
    _Answers.cuts[:] = [1] * 100
    with pytest.raises(StorageFailure):
        s3(port).list_all("s3://lake/t")


@pytest.mark.parametrize("heeds_start", [True, False])
def test_ranges_of_a_listing_need_the_order_of_names(
    heeds_start: bool, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a range would end before all of it was seen, or files would be listed twice."""
    _Answers.cuts[:] = []
    monkeypatch.setattr(_Answers, "heeds_start", heeds_start)
    wanted = sorted(f"s3://lake/{key}" for page in PAGES for key in page)
    hints = pa.array([f"s3://lake/t/a/{i:05}" for i in range(8_000)], pa.large_string())
    assert s3(port).list_all("s3://lake/t", hints=hints).paths.to_pylist() == wanted
    pages = s3(port).pages("s3://lake/t", start_after=wanted[5])
    assert [path for page in pages for path in page.paths.to_pylist()] == wanted[6:]


MARKED = [*(f"t/r=east-1/{i:04}" for i in range(1200)), "t/r=east/", "t/r=east/1", "t/r=west/1"]
"""In S3's order. The client tells the marker as `t/r=east`, which comes before all of them."""


def _in_order(asked: dict[str, list[str]]) -> tuple[bool, str]:
    """As S3 answers: by name, a thousand keys at once."""
    after = asked.get("continuation-token", asked.get("start-after", [""]))[0]
    keys = sorted(key for key in MARKED if key > after)
    more = f"<NextContinuationToken>{keys[999]}</NextContinuationToken>" if keys[1000:] else ""
    return False, (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
        f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}"
        f"{''.join(map(_object, keys[:1000]))}</ListBucketResult>"
    )


@pytest.mark.parametrize("at", [100, 999, 1000, 1199, 1200])
def test_markers_of_directories_are_no_other_order(
    at: int, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop and consoles make them. A table with some was refused once it had an index."""
    _Answers.cuts[:] = []
    monkeypatch.setattr(f"{__name__}._of_s3", _in_order)
    monkeypatch.setattr("bridge.storage.object_store.objectstore._RANGE_FROM", 2)
    wanted = [f"s3://lake/{key}" for key in MARKED if not key.endswith("/")]
    storage = s3(port)

    def files(listing: FileTable) -> list[str]:
        return [str(path) for path in data_files(listing, "s3://lake/t").paths.to_pylist()]

    assert files(storage.list_all("s3://lake/t")) == wanted
    hints = pa.array([*wanted[at : at + 2], *wanted[-2:]], pa.large_string())
    assert files(storage.list_all("s3://lake/t", hints=hints)) == wanted
    (after,) = [*storage.pages("s3://lake/t", start_after=wanted[at])][:1]
    assert after.paths[0].as_py() == wanted[at + 1]


@pytest.mark.parametrize("root", _DIRECTORY_BUCKETS)
def test_a_directory_bucket_is_listed_whole(
    root: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3's directory buckets list keys in no order, and from the first one on."""
    _Answers.cuts[:] = [1]
    monkeypatch.setattr(_Answers, "heeds_start", False)
    monkeypatch.setattr("bridge.storage.object_store.objectstore._RANGE_FROM", 100)
    storage = s3(port)
    wanted = sorted(f"{root}/{key.removeprefix('t/')}" for page in PAGES for key in page)
    assert storage.list_all(root).paths.to_pylist() == wanted
    hints = pa.array(wanted, pa.large_string())
    assert storage.list_all(root, hints=hints).paths.to_pylist() == wanted
    (after,) = storage.pages(root, start_after=wanted[-2])
    assert after.paths.to_pylist() == wanted[-1:]
