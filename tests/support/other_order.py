"""A server of S3's listings, which gives the keys of a bucket in an order of its own.

Some list directory by directory, some in no order. What such a store does with a key after which
it is to begin is its own affair, too.
"""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from bridge.servers.process import LOOPBACK

BUCKET = "lake"
Order = Callable[[Iterable[str]], list[str]]
_OBJECT = (
    "<Contents><Key>{}</Key><LastModified>2026-01-05T10:00:00.000Z</LastModified>"
    '<ETag>"1"</ETag><Size>{}</Size></Contents>'
)
_PREFIX = "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>"


def by_name(keys: Iterable[str]) -> list[str]:
    """As S3 does."""
    return sorted(keys)


def by_directory(keys: Iterable[str]) -> list[str]:
    """Each directory with all that is in it: ``a/1`` before ``a-1``."""
    return sorted(keys, key=lambda key: key.split("/"))


def files_first(keys: Iterable[str]) -> list[str]:
    """A directory's files, and then each of its directories."""

    def place(key: str) -> list[tuple[bool, str]]:
        *directories, name = key.split("/")
        return [*((True, directory) for directory in directories), (False, name)]

    return sorted(keys, key=place)


def in_no_order(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=lambda key: hashlib.sha256(key.encode()).digest())


def by_name_up_to(last: str) -> Order:
    """Those up to a key by name, and later ones the other way round."""

    def order(keys: Iterable[str]) -> list[str]:
        named = sorted(keys)
        place = bisect_right(named, last)
        return [*named[:place], *reversed(named[place:])]

    return order


@dataclass(slots=True)
class Listings:
    """How keys are listed.

    Attributes:
        keys: those that there are.
        order: of the listing.
        start: from where a listing begins that is to start after a key: that key's ``place``
            in the order; ``there`` if the key is, else nowhere; or the first key (``ignored``).
        page: keys in an answer.
        cut: answers with a page after the first one, which break off.
        then: is called after the first answer.
    """

    keys: frozenset[str]
    order: Order = by_name
    start: str = "place"
    page: int = 1_000
    cut: int = 0
    then: Callable[[], None] | None = None


@dataclass(slots=True)
class Asked:
    """What was asked for since the last look.

    Attributes:
        whole: listings from the first key on.
        starts: keys after which others were to start.
        directories: listings of one directory alone.
        proofs: whether a listing has ended, or is one.
    """

    whole: int = 0
    starts: list[str] = field(default_factory=list)
    directories: int = 0
    proofs: int = 0


class OtherOrder:
    """A running server. As a context manager it stops.

    Args:
        sizes: of all keys that there may be.

    Attributes:
        listings: may be changed at any time.
        asked: may be replaced at any time.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.listings = Listings(frozenset())
        self.asked = Asked()
        self.lock = threading.Lock()
        self.open: list[list[str]] = []
        self._server = ThreadingHTTPServer((LOOPBACK, 0), _Answers)
        self._server.daemon_threads = True
        self._server.front = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def options(self) -> dict[str, str]:
        """Of `bridge.storage.routed.open_storage`."""
        return {
            "endpoint": f"http://{LOOPBACK}:{self._server.server_address[1]}",
            "region": "us-east-1",
            "access_key_id": "test",
            "secret_access_key": "test",
            "allow_http": "true",
        }

    def __enter__(self) -> OtherOrder:
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


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        query = {name: texts[0] for name, texts in parse_qs(urlsplit(self.path).query).items()}
        front = self._front
        with front.lock:
            listings = front.listings
            if token := query.get("continuation-token", ""):
                number, at = map(int, token.split(":"))
            else:
                number, at = len(front.open), 0
                front.open.append(self._entries(query))
            entries = front.open[number]
            cut = at > 0 and listings.cut > 0
            listings.cut -= int(cut)
            if not at and listings.then is not None:
                listings.then()
            end = at + listings.page
            more = end < len(entries)
        told = "".join(entries[at:end])
        if more:
            told += f"<NextContinuationToken>{number}:{end}</NextContinuationToken>"
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
            f"<MaxKeys>{listings.page}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{told}</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def _entries(self, query: dict[str, str]) -> list[str]:
        """A listing's keys, and prefixes of keys, in XML."""
        front, listings = self._front, self._front.listings
        prefix, start = query.get("prefix", ""), query.get("start-after", "")
        if "X-Amz-Signature" in query:
            front.asked.proofs += 1
        elif "delimiter" in query:
            front.asked.directories += 1
        elif start:
            front.asked.starts.append(start)
        else:
            front.asked.whole += 1
        keys = {key for key in listings.keys if key.startswith(prefix)}
        ordered = listings.order(keys)
        if start and listings.start == "there" and start not in keys:
            ordered = []
        elif start and listings.start != "ignored":
            ordered = listings.order(keys | {start})
            ordered = ordered[ordered.index(start) + 1 :]
        found: dict[str, None] = {}  # in order, each once
        for key in ordered:
            head, slash, _ = key[len(prefix) :].partition("/")
            if slash and "delimiter" in query:
                found[_PREFIX.format(escape(prefix + head + slash))] = None
            else:
                found[_OBJECT.format(escape(key), front.sizes[key])] = None
        return list(found)

    @property
    def _front(self) -> OtherOrder:
        found: OtherOrder = self.server.front  # type: ignore[attr-defined]
        return found

    def log_message(self, format: str, *args: Any) -> None:
        pass
