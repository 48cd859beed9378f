"""An object store of S3's kind in this process's memory, whose answers a test may change.

It serves one bucket: listings in pages, reads of ranges, conditional creates, deletes. Each answer
passes through `MemoryStore.lie` before it is sent.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, quote_plus, unquote, unquote_plus, urlsplit
from xml.sax.saxutils import escape, unescape

from bridge.servers.process import LOOPBACK

BUCKET = "lake"
_TIME = "%Y-%m-%dT%H:%M:%S.000Z"


@dataclass(slots=True)
class Object:
    """An object; without ``etag`` the store tells none."""

    content: bytes
    modified: int = field(default_factory=lambda: int(time.time()))
    etag: str | None = ""
    metadata: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.etag == "":
            self.etag = f'"{hashlib.md5(self.content).hexdigest()}"'


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; ``listing`` if it asks for a page of keys."""

    method: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def listing(self) -> bool:
        return self.method == "GET" and "list-type" in self.query


@dataclass(slots=True)
class Answer:
    """An answer; the connection breaks off where ``missing`` of its body's bytes would follow."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    missing: int = 0


@dataclass(slots=True)
class Connections:
    """Of clients to a store; ``most`` were open at once."""

    opened: int = 0
    now: int = 0
    most: int = 0

    def count(self, change: int) -> None:
        self.opened += max(change, 0)
        self.now += change
        self.most = max(self.most, self.now)


Lie = Callable[[Asked, Answer], Answer]


class MemoryStore:
    """A running server. As a context manager it stops.

    Attributes:
        objects: by key.
        page: keys in an answer.
        lie: what becomes of each answer.
        asked: all requests.
        connections: how many were opened, and how many were open at once.
        before: what the key of the newest request held before it.
        undeleted: all objects before the newest request, if that deletes some.
    """

    def __init__(self, page: int = 1_000) -> None:
        self.objects: dict[str, Object] = {}
        self.page = page
        self.lie: Lie = lambda asked, answer: answer
        self.asked: list[Asked] = []
        self.connections = Connections()
        self.before: bytes | None = None
        self.undeleted: dict[str, Object] = {}
        self.lock = threading.RLock()
        self._server = ThreadingHTTPServer((LOOPBACK, 0), _Handler)
        self._server.daemon_threads = True
        self._server.store = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.endpoint = f"http://{LOOPBACK}:{self._server.server_address[1]}"

    @property
    def options(self) -> dict[str, str]:
        """Of `bridge.storage.routed.open_storage`."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": "test",
            "secret_access_key": "test",
            "allow_http": "true",
            "retries": "1",
            "timeout": "20",
        }

    def put(self, key: str, content: bytes, **more: Any) -> None:
        with self.lock:
            self.objects[key] = Object(content, **more)

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, asked: Asked, body: bytes) -> Answer:
        if asked.listing:
            return Answer(200, self._listing(asked.query), {"Content-Type": "application/xml"})
        held = self.objects.get(asked.key)
        if asked.method == "PUT":
            if held is not None and asked.headers.get("if-none-match") == "*":
                return _error(412, "PreconditionFailed")
            source = unquote(asked.headers.get("x-amz-copy-source", "")).removeprefix(f"{BUCKET}/")
            if source and source not in self.objects:
                return _error(404, "NoSuchKey")
            body = self.objects[source].content if source else body
            metadata = {k: v for k, v in asked.headers.items() if k.startswith("x-amz-meta-")}
            self.objects[asked.key] = made = Object(body, metadata=metadata)
            told = f"<CopyObjectResult><ETag>{escape(made.etag or '')}</ETag></CopyObjectResult>"
            return Answer(200, told.encode() if source else b"", {"ETag": made.etag or ""})
        if asked.method == "POST" and "delete" in asked.query:
            keys = re.findall(r"<Key>[^<]*</Key>", body.decode())
            for key in keys:
                self.objects.pop(unescape(key[5:-6]), None)
            told = "".join(f"<Deleted>{key}</Deleted>" for key in keys)
            return Answer(200, f"<DeleteResult>{told}</DeleteResult>".encode())
        if held is None:
            return _error(404, "NoSuchKey")
        if asked.headers.get("if-match", held.etag) != held.etag:
            return _error(412, "PreconditionFailed")
        headers = {"Last-Modified": formatdate(held.modified, usegmt=True), **held.metadata}
        if held.etag:
            headers["ETag"] = held.etag
        size = len(held.content)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", asked.headers.get("range", ""))
        if found is None:
            return Answer(200, held.content, headers)
        start, end = int(found[1]), min(int(found[2]) + 1, size)
        if start >= size:
            return _error(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        return Answer(206, held.content[start:end], headers)

    def _listing(self, query: dict[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        begin = query.get("start-after", "")
        if "continuation-token" in query:
            begin = unquote_plus(query["continuation-token"])
        url = query.get("encoding-type") == "url"
        spelled = partial(quote_plus, safe="/") if url else _escaped
        entries: dict[str, tuple[str, str]] = {}  # by what is listed: the last key, and its XML
        for key in sorted(self.objects):
            if not key.startswith(prefix) or key <= begin:
                continue
            head, slash, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if slash:
                name = f"{prefix}{head}/"
                xml = f"<CommonPrefixes><Prefix>{spelled(name)}</Prefix></CommonPrefixes>"
                entries[name] = key, xml
                continue
            each = self.objects[key]
            etag = f"<ETag>{escape(each.etag)}</ETag>" if each.etag else ""
            modified = time.strftime(_TIME, time.gmtime(each.modified))
            entries[key] = (
                key,
                (
                    f"<Contents><Key>{spelled(key)}</Key><LastModified>{modified}</LastModified>{etag}"
                    f"<Size>{len(each.content)}</Size></Contents>"
                ),
            )
        given = list(entries.values())[: self.page]
        more = len(entries) > self.page
        last = given[-1][0] if more else ""
        token = f"<NextContinuationToken>{quote_plus(last, safe='/')}</NextContinuationToken>"
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
            f"<MaxKeys>{self.page}</MaxKeys><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{'<EncodingType>url</EncodingType>' if url else ''}"
            f"{token if more else ''}{''.join(xml for _, xml in given)}</ListBucketResult>"
        ).encode()


def _escaped(key: str) -> str:
    """As S3 does: also controls, which XML has no place for."""
    return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"&#x{ord(found[0]):x};", escape(key))


def _error(status: int, code: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    return Answer(status, body, {"Content-Type": "application/xml"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: two wait for one another

    def setup(self) -> None:
        super().setup()
        self._count(1)

    def finish(self) -> None:
        self._count(-1)
        super().finish()

    def _count(self, change: int) -> None:
        store: MemoryStore = self.server.store  # type: ignore[attr-defined]
        with store.lock:
            store.connections.count(change)

    def _any(self) -> None:
        store: MemoryStore = self.server.store  # type: ignore[attr-defined]
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(
            self.command,
            unquote(parts.path).partition("/")[2].partition("/")[2],
            {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()},
            {k.lower(): v for k, v in self.headers.items()},
        )
        with store.lock:
            store.asked.append(asked)
            held = store.objects.get(asked.key)
            store.before = held.content if held else None
            store.undeleted = dict(store.objects) if self.command == "POST" else {}
            answer = store.lie(asked, store.answer(asked, body))
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body) + answer.missing))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.close_connection = self.close_connection or answer.missing > 0

    do_GET = do_PUT = do_HEAD = do_POST = _any  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        pass
