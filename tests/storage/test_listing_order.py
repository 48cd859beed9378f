"""A store whose listings come in another order than that of their keys, and break off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from bridge.storage.routed import open_storage

ROOT = "abfss://lake@account.dfs.core.windows.net/t"
PAGES = ([f"t/a/{i:04}" for i in range(1000)], ["t/a-b/1", "t/c/1"])
"""As a hierarchical namespace has them: directories by name, each with all that is in it."""
_BLOB = (
    "<Blob><Name>{}</Name><Properties><Last-Modified>Mon, 05 Jan 2026 10:00:00 GMT</Last-Modified>"
    "<Etag>0x1</Etag><Content-Length>1</Content-Length><Content-Type>text/plain</Content-Type>"
    "<BlobType>BlockBlob</BlobType></Properties></Blob>"
)


class _Answers(BaseHTTPRequestHandler):
    """Lists two pages, and cuts the second one at first."""

    protocol_version = "HTTP/1.1"
    cuts: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        second = "marker" in parse_qs(urlsplit(self.path).query)
        blobs = "".join(map(_BLOB.format, PAGES[second]))
        marker = "" if second else "more"
        body = (
            '<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>'
            f"{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
        ).encode()
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
