"""Whether a listing of an object store has ended, or an answer only looked like an end.

The client takes each well-formed XML document for a listing: an error under status 200, or the
page of a login, is one without files. It takes a page that is cut short without a token for the
last one. So an end that may be none is proven: an empty listing, and one of a full page or more, is
asked for what follows, and this answer is read strictly. The first listing in a bucket is, too.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, unquote_plus, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener
from weakref import WeakValueDictionary

import numpy as np
import obstore
import pyarrow as pa
from obstore.exceptions import (
    BaseError,
    GenericError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, S3Store

from bridge.kernel.errors import StorageFailure
from bridge.kernel.retry import Backoff
from bridge.kernel.types import whole_number
from bridge.storage import retry
from bridge.storage.listed_files import true_sizes
from bridge.storage.native import wait_for
from bridge.storage.object_store.azure_listing import listing_address, translate_to_s3
from bridge.storage.object_store.key_ranges import OutOfOrder
from bridge.storage.object_store.object_client import bucket_address, is_unsigned, sign, store_at
from bridge.storage.object_store.odd_keys import REFUSED
from bridge.storage.port import FileTable, one_spelling
from bridge.storage.reading.requests import count_requests
from bridge.storage.store_errors import ENDPOINT
from bridge.storage.uri import without_user

PAGE = 1_000
"""Names that a store lists in one answer, unless it says otherwise."""
_TOKEN = "NextContinuationToken"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = "\U0010ffff"
"""Comes after each name in a directory."""
T = TypeVar("T")
AreListed = Callable[[list[str]], bool]
"""Whether all of some keys were listed."""
_ATTEMPTS = 3
_PAUSE = 0.1
_LARGEST = 64 * 1024**2
_EMPTY_PAGES = 300
"""In a row; S3 gives some where it passes over many deleted versions."""


class NoListing(Exception):
    """What a store has answered instead of a listing, in words."""


@dataclass(frozen=True, slots=True)
class _Page:
    """Keys as the store spells them, and how many it gives in a full page; None: unknown."""

    keys: list[str]
    full: int | None


@dataclass(frozen=True, slots=True)
class _Found:
    """A page of files and directories.

    Attributes:
        token: of the next page; empty if there is none.
        last: the greatest name in it.
    """

    files: FileTable
    directories: list[str]
    token: str
    last: str


_lock = threading.Lock()


class ListingEnd:
    """Proves the ends of one bucket's listings.

    Args:
        base: the bucket's URI, with a slash at its end.
        timeout: seconds for an answer.
    """

    def __init__(
        self, store: S3Store | GCSStore | AzureStore, base: str, ordered: bool, timeout: float
    ) -> None:
        self._store, self._base, self._timeout = store, base, timeout
        self._ordered = ordered
        self._strict = isinstance(store, S3Store) and ordered
        self._lists: bool | None = self._strict if isinstance(store, S3Store) else None
        self._lock = threading.Lock()
        self._seen = False
        self._full: int | None = None
        self._bucket = ""

    @staticmethod
    def of(store: Any, base: str, ordered: bool, timeout: float) -> ListingEnd:
        """One for each client, so that a process asks its first question of a bucket once."""
        with _lock:
            return _ends.setdefault(id(store), ListingEnd(store, base, ordered, timeout))

    def is_reached(
        self, prefix: str, after: str | None, count: int, known: AreListed | None = None
    ) -> bool:
        """Whether nothing follows a listing that came to an end.

        Args:
            prefix: a key, without a slash at its end.
            after: the last key; None if there was none.
            count: how many names the client was given for one request of its own.
            known: for a listing in no order.

        Errors:
            OutOfOrder: the store does not begin after a key.
            StorageFailure: the store's answers are no listings.
        """
        if isinstance(self._store, AzureStore):  # the client reads its answers strictly
            return True
        return self._repeated(prefix, lambda: self._reached(prefix, after, count, known))

    def require_listing(self, prefix: str) -> None:
        """Asks for one listing without credentials and one with them, and follows no redirect.

        Errors: StorageFailure: the answer is no listing, or leads to another host.
        """
        if self._strict:
            self._repeated(prefix, lambda: self._page(prefix, None, signed=False) is None)
            self._repeated(prefix, lambda: self._page(prefix, None) is None)

    def _reached(self, prefix: str, after: str | None, count: int, known: AreListed | None) -> bool:
        if not self._seen:
            page = self._page(prefix, None)
            with self._lock:
                self._seen, self._full = True, PAGE if page is None else page.full
        # The client keeps the marker of the prefix to itself.
        if self._full and 0 < count < self._full - 1:
            return True
        page = self._page(prefix, after)
        if page is None:
            page = self._asked_again(prefix, after)
        if page.full:
            with self._lock:
                self._full = min(self._full or page.full, page.full)
        if known is not None:
            return known(page.keys)
        early = next((key for key in page.keys if after is not None and key <= after), None)
        if early is not None:
            raise OutOfOrder(f"{early} came where what follows {after} was asked for")
        return not any(after is None or key.rstrip("/") > after for key in page.keys)

    def _repeated(self, prefix: str, ask: Callable[[], T]) -> T:
        for _ in Backoff(_PAUSE, attempts=_ATTEMPTS):
            try:
                return ask()
            except NoListing as error:
                found = error
        raise StorageFailure(
            f"{self._base}{prefix}: the store answered a listing with {found}",
            f"check {ENDPOINT[self._base.partition(':')[0]]}: an object store's interface, no page",
        ) from found

    def _asked_again(self, prefix: str, after: str | None) -> _Page:
        """As the client lists it. Errors: NoListing: also a file that was never made is there."""
        count_requests("list")
        stream = obstore.list(
            self._store,
            prefix,
            offset=after if self._ordered else None,
            chunk_size=PAGE,
        )
        paths = [each["path"] for each in wait_for(lambda: _first(stream))]
        found = [path for path in paths if path != prefix]  # its own marker is no file in it
        if found or after is not None:
            return _Page(found, None)
        count_requests("look")
        made_up = f"{prefix}/.{uuid.uuid4().hex}".lstrip("/")
        with suppress(
            NotFoundError, FileNotFoundError, PermissionDeniedError, UnauthenticatedError
        ):
            wait_for(lambda: obstore.head_async(self._store, made_up))
            raise NoListing(f"no files, and says that there is {made_up}, which nobody has made")
        return _Page([], None)

    def list_pages(
        self, prefix: str, after: str | None, delimiter: str
    ) -> Iterator[tuple[FileTable, list[str]]]:
        """Pages of files and of directories' keys, as the store spells them and in its order.

        Markers of directories are left out, as engines do. Only if it `lists`.

        Errors: StorageFailure: it does not answer, or its answers are no listings.
        """
        ask = partial(self._found, prefix)
        repeated = lambda query: self._repeated(prefix, partial(ask, query))  # noqa: E731
        for found in self._pages(prefix, after, delimiter, repeated):
            yield found.files, found.directories

    def has_nameless(self) -> bool:
        """Whether a key begins with a slash, which the client leaves out of the key it tells."""
        if self.lists:
            with suppress(NoListing, BaseError):
                return bool(self._found("/", {"delimiter": "/"}).last)
        return False

    def require_progress(self, prefix: str, after: str | None, delimiter: str, names: int) -> None:
        """Call it when the client is late with a page, which it may seek for ever.

        Args:
            names: how many are looked at.

        Errors: StorageFailure: the store's pages lead nowhere.
        """
        if self.lists:
            with suppress(NoListing, BaseError):
                for found in self._pages(prefix, after, delimiter, partial(self._found, prefix)):
                    names -= len(found.files) + len(found.directories)
                    if names <= 0:
                        return

    def _pages(
        self,
        prefix: str,
        after: str | None,
        delimiter: str,
        ask: Callable[[dict[str, str]], _Found],
    ) -> Iterator[_Found]:
        """Errors: of ``ask``; StorageFailure: pages without a new key go on and on."""
        query = {"delimiter": delimiter, **({} if after is None else {"start-after": after})}
        tokens, last, empty, since = {""}, "", 0, time.monotonic()
        while True:
            found = ask(query)
            empty += 1
            if found.last > last:
                last, empty, since = found.last, 0, time.monotonic()
            yield found
            if not found.token:
                return
            late = empty >= _EMPTY_PAGES or time.monotonic() - since > retry.DEADLINE
            if found.token in tokens or late:
                raise StorageFailure(
                    f"{self._base}{prefix}: the store lists a page again and again"
                    + (f": {empty} pages in a row have no new key" if empty else ""),
                    "check the store: a page of its listing names itself as the next one",
                )
            tokens.add(found.token)
            query = {"delimiter": delimiter, "continuation-token": found.token}

    def _found(self, prefix: str, query: dict[str, str]) -> _Found:
        """Errors: NoListing; BaseError: no answer came in time, or only the client may ask."""
        if not self.lists:
            raise GenericError(f"{REFUSED}{prefix}")
        try:
            page = self._answered(prefix, query, True)
        except (OSError, HTTPException) as error:
            if "timed out" in str(error):
                raise GenericError(f"{error} (kind: Timeout)") from error
            raise NoListing(f"an error, again and again: {error}") from error
        try:
            files = _files(page, self._base)
        except (ValueError, OverflowError, GenericError) as error:
            raise NoListing(f"an object's size or time that is none: {error}") from error
        more = _said(page, "IsTruncated") == "true"
        token = _said(page, _TOKEN, strip=False) if more else ""
        directories = _texts(page, "CommonPrefixes", "Prefix")
        last = max((*_texts(page, "Contents", "Key"), *directories), default="")
        return _Found(files, directories, token, last)

    @property
    def lists(self) -> bool:
        """Whether `list_pages` may be asked. GCS and Azure need what signs addresses for it."""
        if self._lists is None:
            try:
                self._signed({}, "")
                self._lists = True
            except BaseError:
                self._lists = False
        return self._lists

    def _page(self, prefix: str, after: str | None, signed: bool = True) -> _Page | None:
        """The first page after a key; None if it cannot be asked for in this way.

        Errors: NoListing.
        """
        if not self._strict:
            return None
        query = {} if after is None else {"start-after": after}
        root = self._asked(prefix, query if prefix else {**query, "delimiter": "/"}, signed)
        return None if root is None else _parsed(root, f"{prefix}/")

    def _asked(
        self, prefix: str, query: dict[str, str], with_credentials: bool = True
    ) -> ElementTree.Element | None:
        """A page; None if it cannot be asked for in this way. Errors: NoListing."""
        if isinstance(self._store, AzureStore) or not self._ordered:
            return None
        try:
            return self._answered(prefix, query, with_credentials)
        except (BaseError, OSError, HTTPException):
            return None

    def _answered(
        self, prefix: str, query: dict[str, str], with_credentials: bool
    ) -> ElementTree.Element:
        """A page. Errors: NoListing, BaseError, OSError, HTTPException."""
        query = {"list-type": "2", "encoding-type": "url", **query}
        ask = self._signed if with_credentials else self._address
        url = ask({name: text for name, text in query.items() if text}, prefix)
        count_requests("list")
        try:
            body = wait_for(lambda: asyncio.to_thread(self._fetched, url))
        except HTTPError as error:
            with error:
                target = error.headers.get("Location") or ""
            if 300 <= error.code < 400 and urlsplit(target).netloc:
                raise NoListing(f"a redirect to {without_user(target)}") from error
            raise
        return _checked(body, without_user(url.partition("?")[0]))

    def _fetched(self, url: str) -> bytes:
        with _OPENER.open(url, timeout=self._timeout) as answer:
            body = bytes(answer.read(_LARGEST))
            if answer.length:
                raise OSError("the answer broke off")
            return body

    def _signed(self, query: dict[str, str], prefix: str) -> str:
        """The address of a listing, signed with whatever credentials the client has.

        A signed address is one of an object. So the bucket's is given a query, and ends in the
        prefix: the client adds the slash, and the key of no object.
        """
        store: Any = self._store
        if isinstance(store, AzureStore):
            return listing_address(store, query, prefix)
        address = self._address(query, prefix)
        return address if is_unsigned(store) else sign(store_at(store, address.removesuffix("/")))

    def _address(self, query: dict[str, str], prefix: str) -> str:
        store: Any = self._store
        self._bucket = self._bucket or bucket_address(store)
        end = "x-end="  # S3 and GCS ignore it
        if prefix:
            end = f"prefix={quote(prefix.rstrip('/'), safe='')}"
            end += "%2F&x-end=" * isinstance(store, GCSStore)
        return f"{self._bucket}?{urlencode(query, quote_via=quote, safe='')}&{end}/"


_ends: WeakValueDictionary[int, ListingEnd] = WeakValueDictionary()
"""By the client's identity, which lives as long as its value does."""


async def _first(stream: Any) -> Any:
    return await anext(stream, [])


def _checked(body: bytes, endpoint: str) -> ElementTree.Element:
    """Errors: NoListing."""
    try:
        root = translate_to_s3(ElementTree.fromstring(body))
    except ElementTree.ParseError as error:
        raise NoListing(f"what is no XML ({endpoint})") from error
    except ValueError as error:
        raise NoListing(f"an object's time that is none: {error}") from error
    tag = _name(root)
    if tag != "ListBucketResult":
        said = next((each.text for each in root if _name(each) == "Message"), None)
        raise NoListing(f"<{tag}>{f': {said}' if said else ''} ({endpoint})")
    truncated = _said(root, "IsTruncated")
    if truncated not in ("true", "false"):
        raise NoListing(f"a page that does not say whether it is the last one ({endpoint})")
    if truncated == "true" and not _said(root, _TOKEN, strip=False):
        raise NoListing(
            "a page that is not the last one and does not tell the next one, as in the first "
            f"version of S3's listings ({endpoint})"
        )
    return root


def _parsed(root: ElementTree.Element, prefix: str) -> _Page:
    keys = _texts(root, "Contents", "Key") + _texts(root, "CommonPrefixes", "Prefix")
    stated = whole_number(_said(root, "MaxKeys")) or 0
    truncated = _said(root, "IsTruncated") == "true"
    full = len(set(keys)) if truncated else stated
    return _Page([key for key in keys if key != prefix], full or None)


def _files(root: ElementTree.Element, base: str) -> FileTable:
    """The objects of a page, without markers of directories."""
    keys = _texts(root, "Contents", "Key")
    kept = [i for i, key in enumerate(keys) if not key.endswith("/")]
    sizes, times, etags = (_texts(root, "Contents", n) for n in ("Size", "LastModified", "ETag"))
    return FileTable(
        pa.array([base + keys[i] for i in kept], pa.large_string()),
        true_sizes(np.array([int(sizes[i]) for i in kept], np.int64)),
        np.array([micros(datetime.fromisoformat(times[i])) for i in kept], np.int64),
        pa.array([one_spelling(etags[i]) for i in kept], pa.large_string()),
    )


def micros(moment: datetime) -> int:
    """Since the epoch, rounded down."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _texts(root: ElementTree.Element, kind: str, what: str) -> list[str]:
    """What the entries of a kind say, empty where one does not."""
    encoded = what in ("Key", "Prefix") and _said(root, "EncodingType") == "url"
    found = [_said(each, what, strip=False) for each in root if _name(each) == kind]
    return [unquote_plus(text) for text in found] if encoded else found


def _said(element: ElementTree.Element, name: str, strip: bool = True) -> str:
    text = next((each.text or "" for each in element if _name(each) == name), "")
    return text.strip() if strip else text


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = build_opener(_NoRedirect)
