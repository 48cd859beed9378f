"""Object stores (S3, GCS, Azure) through obstore."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.compute as pc
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import AzureStore, GCSStore, S3Store

from bridge.errors import FileShort, FileUnreadable, InvalidUri, StorageFailure
from bridge.storage.again import DEADLINE, Patience, again
from bridge.storage.atomic_create import AtomicCreate
from bridge.storage.key_ranges import Order, OutOfOrder, list_ranges
from bridge.storage.port import (
    EMPTY,
    DirectoryListings,
    FileStat,
    FileTable,
    Range,
    concatenate,
    join_listings,
    sort,
)
from bridge.storage.ranges import cut, join_ranges
from bridge.storage.requests import asked, carried
from bridge.storage.store_errors import failure, unreadable
from bridge.storage.uri import Location, parse

_log = logging.getLogger(__name__)
Store = S3Store | GCSStore | AzureStore
_PAGE = 1_000
"""Files that a store lists in one answer."""
_PARALLEL = 8
_RANGE_FROM = 2_000
"""Least number of files per parallel range. A page of a listing has 1,000."""
_HELD = 1_000_000
"""Paths that a listing remembers, so that it can begin anew without giving a file twice."""
_COPIED_AT_ONCE = 5 * 1024**3
"""S3 copies larger files only part by part."""
_PART = 64 * 1024**2
_START_AFTER = frozenset({"s3", "gs"})
"""Stores that list keys in their order, so that a listing can start at one.

Azure does not with a hierarchical namespace: there ``a/1`` comes before ``a-1``.
"""
_UNORDERED = ("--x-s3", "--xa-s3")
"""How names of S3's directory buckets and of their access points end. These list keys in no order,
and from the first on."""


_PREFIXES = {"azure_": "abfss", "google_": "gs"}
"""How options begin that are for one kind of store; the others are for S3."""
_ENDPOINTS = {
    "s3": (
        ("endpoint", "endpoint_url"),
        ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
        "AWS_ALLOW_HTTP",
    ),
    "gs": (("google_base_url",), ("GOOGLE_BASE_URL",), "GOOGLE_ALLOW_HTTP"),
    "abfss": (
        ("azure_storage_endpoint", "azure_endpoint"),
        ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
        "AZURE_ALLOW_HTTP",
    ),
}
"""By scheme: the options that name an endpoint, the variables, and the one that allows HTTP."""
_AZURE_CLOUD = "core.windows.net"
"""The host of accounts in Azure's public cloud; others are in a location's own host."""


def open_store(place: Location, options: Mapping[str, str]) -> Store:
    """The store of a bucket.

    Args:
        options: ``allow_http``, ``timeout`` (of one answer, in seconds) and ``retries`` of every
            store, and obstore's configuration keys: those that begin with ``azure_`` are for
            Azure, those with ``google_`` for GCS, and all others, such as ``endpoint``,
            ``region`` and ``access_key_id``, for S3. Missing options come from the environment.
    """
    given = dict(options)
    client: dict[str, Any] = {"timeout": timedelta(seconds=float(given.pop("timeout", "60")))}
    if given.pop("allow_http", "false").lower() == "true":
        client["allow_http"] = True
    retries = int(given.pop("retries", "5"))
    config: dict[str, Any] = {k: v for k, v in given.items() if _scheme_of(k) == place.scheme}
    endpoint = checked_endpoint(config, client, place.scheme)
    if _http_by_environment(place.scheme):
        client["allow_http"] = True  # obstore heeds the variable only where it gets no options
    retry: Any = {"max_retries": retries, "retry_timeout": timedelta(seconds=DEADLINE)}
    arguments: dict[str, Any] = {"client_options": client, "retry_config": retry}
    try:
        if place.scheme == "s3":
            return S3Store(place.authority, **arguments, **config)
        if place.scheme == "gs":
            return GCSStore(place.authority, **arguments, **config)
        container, _, host = place.authority.partition("@")
        before, _, suffix = host.partition(".dfs.")
        if not endpoint and suffix not in ("", _AZURE_CLOUD):
            config["azure_storage_endpoint"] = f"https://{before}.blob.{suffix}"
        account = host.partition(".")[0]
        return AzureStore(container, account_name=account, **arguments, **config)
    except (BaseError, TypeError) as error:
        raise StorageFailure(
            f"cannot open {place.scheme}://{place.authority}: {error}",
            "check the storage.* options",
        ) from error


def _scheme_of(option: str) -> str:
    return next((scheme for start, scheme in _PREFIXES.items() if option.startswith(start)), "s3")


def _http_by_environment(scheme: str) -> bool:
    return os.environ.get(_ENDPOINTS[scheme][2], "").lower() == "true"


def checked_endpoint(
    config: Mapping[str, Any], client: Mapping[str, Any], scheme: str = "s3"
) -> str:
    """The endpoint by the options or the environment; empty for that of the cloud.

    Errors:
        StorageFailure: it has no scheme, or is plain HTTP, which is not allowed.
    """
    options, variables, _ = _ENDPOINTS[scheme]
    name = "storage.endpoint" if scheme == "s3" else options[0]
    named = [(name, next(filter(None, (config.get(option, "") for option in options)), ""))]
    named += [(name, os.environ.get(name, "")) for name in variables]
    name, endpoint = next(((n, e) for n, e in named if e), ("", ""))
    if not endpoint:
        return ""
    if not endpoint.lower().startswith(("http://", "https://")):
        raise StorageFailure(
            f"{name} is {endpoint!r}, not an address with a scheme", f"write https://{endpoint}"
        )
    allowed = client.get("allow_http") or _http_by_environment(scheme)
    if endpoint.lower().startswith("http://") and not allowed:
        raise StorageFailure(
            f"{name} is {endpoint}, and plain HTTP is not allowed: "
            "it carries keys and data unencrypted",
            "write https://, or set storage.allow_http = true if the network is yours",
        )
    return str(endpoint)


def lists_from_anywhere(uri: str) -> bool:
    """Whether a listing that starts after a path takes only the requests of the pages read."""
    scheme, _, place = uri.partition("://")
    return scheme in _START_AFTER and not place.partition("/")[0].endswith(_UNORDERED)


class ObjectStorage:
    """`Storage` on one bucket, with the store's conditional writes (`AtomicCreate`)."""

    def __init__(self, place: Location, options: Mapping[str, str]) -> None:
        self._base = f"{place.scheme}://{place.authority}/"
        self._store = open_store(place, options)
        self._creation = AtomicCreate(self._store, self._base)
        self._ordered = lists_from_anywhere(self._base)
        self._lock = threading.Lock()

    def pages(
        self,
        prefix: str,
        *,
        start_after: str | None = None,
        recursive: bool = True,
        hints: pa.Array | None = None,
    ) -> Iterator[FileTable]:
        bounds = self._bounds(prefix, hints) if start_after is None else []
        if not bounds and not recursive:
            yield from _some(_after(self._flat(prefix), start_after))
            return
        given, count = [EMPTY.paths], 0
        if self._ordered:
            try:
                with closing(self._by_name(prefix, start_after, bounds)) as pages:
                    for page in pages:
                        files = page if recursive else _directly_in(prefix, page)
                        count += len(files)
                        if count <= _HELD:
                            given.append(files.paths)
                        yield from _some(files)
                return
            except OutOfOrder as error:
                self._require_held(prefix, count, error)
        whole = _after(self._whole(prefix), start_after)
        if not recursive:
            whole = _directly_in(prefix, whole)
        known = pc.is_in(whole.paths, value_set=pa.concat_arrays(given))
        yield from _some(whole.filter(_mask(pc.invert(known))))

    def list_all(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> FileTable:
        return concatenate(self.pages(prefix, recursive=recursive, hints=hints))

    def list_many(
        self, directories: Sequence[str], pool: Executor, *, recursive: bool = True
    ) -> DirectoryListings:
        one = partial(self.list_all, recursive=recursive)
        return join_listings(list(pool.map(carried(one), directories)))

    def has_directories(self, uri: str) -> bool:
        return False

    def _bounds(self, prefix: str, hints: pa.Array | None) -> list[str]:
        """Paths between which ranges pay; none if they do not, or must not be."""
        if hints is None or not self._ordered:
            return []
        ranges = min(_PARALLEL, len(hints) // _RANGE_FROM)
        if ranges < 2:
            return []
        chosen = [hints[len(hints) * i // ranges].as_py() for i in range(1, ranges)]
        return sorted({uri for uri in chosen if uri.startswith(_inside(prefix))})

    def _by_name(
        self, prefix: str, start_after: str | None, bounds: Sequence[str]
    ) -> Generator[FileTable, None, None]:
        """The pages of a store that lists keys by name. Errors: OutOfOrder."""
        if bounds:
            return list_ranges(partial(self._between, prefix), bounds)
        return self._in_order(prefix, start_after)

    def _require_held(self, prefix: str, count: int, error: OutOfOrder) -> None:
        """Errors: StorageFailure: more files were given than are remembered."""
        if count > _HELD:
            self._note(str(error))
            raise StorageFailure(
                f"{prefix}: the store lists its keys in another order than that of their names: "
                f"{error}",
                "ask again: from now on this process lists it as a whole",
            ) from error
        _log.info("%s: listed anew, as a whole: %s", prefix, error)

    def _between(self, prefix: str, after: str | None, until: str | None) -> Iterator[FileTable]:
        """Pages up to the first that holds a file after ``until``. Errors: OutOfOrder."""
        for page in self._in_order(prefix, after):
            yield page
            held = page.filter(page.sizes > 0)
            if until is not None and len(held) and held.paths[-1].as_py() > until:
                return

    def _in_order(self, prefix: str, start_after: str | None) -> Generator[FileTable, None, None]:
        """Pages in path order. A listing that breaks off goes on after the last page that came.

        Errors:
            OutOfOrder: they do not come in this order, or not from there on.
            StorageFailure: it fails as a whole. A listing never ends early without an error.
        """
        patience, last, order = Patience(), start_after, Order(start_after)
        asked("list")
        while True:
            after = last
            try:
                for given, files in self._answered(prefix, after):
                    page = given
                    order.follow(files)
                    if order.broken:
                        self._note(order.broken)
                        raise OutOfOrder(order.broken)
                    # The client tells a directory's marker `d/` as `d`, which comes before `d-1/f`.
                    held = page.filter(page.sizes > 0)
                    if after is not None:
                        page = page.filter(_mask(pc.greater(page.paths, after)))
                    if len(page):
                        end = (held if len(held) else page).paths[-1].as_py()
                        last = end if last is None else max(last, end)
                        yield page
                    patience.progressed()
                return
            except BaseError as error:
                try:
                    patience.bear(error)
                except BaseError:
                    raise failure(error, prefix) from error

    def _note(self, seen: str) -> None:
        """Remembers that the store lists its keys in another order; says so once."""
        with self._lock:
            if not self._ordered:
                return
            self._ordered = False
        _log.warning(
            "%s lists its keys in another order than that of their names: %s. From now on this "
            "process lists each directory there as a whole, one page after the other",
            self._base,
            seen,
        )

    def _whole(self, prefix: str) -> FileTable:
        """All files of a store that lists them in any order. What breaks off begins anew."""

        def ask() -> FileTable:
            asked("list")
            order, pages = Order(), []
            for page, files in self._answered(prefix, None):
                order.follow(files)
                pages.append(page)
            if order.broken:
                self._note(order.broken)
            return concatenate(pages)

        try:
            return again(ask)
        except BaseError as error:
            raise failure(error, prefix) from error

    def _answered(self, prefix: str, after: str | None) -> Iterator[tuple[FileTable, pa.Array]]:
        """The pages of one listing, each sorted, and its files with content as the store gave them.

        Errors: BaseError.
        """
        whole = 0
        for batch in obstore.list(
            self._store,
            self._key(prefix),
            offset=None if after is None else self._key(after),
            chunk_size=_PAGE,
            return_arrow=True,
        ):
            page = self._listing(pa.record_batch(batch))
            if len(page):
                asked("list", whole // _PAGE)  # the page before was full, and had a successor
                whole = len(page)
                yield sort(page), page.filter(page.sizes > 0).paths

    def _flat(self, prefix: str) -> FileTable:
        try:
            key = self._key(prefix)
            asked("list")
            found = again(lambda: obstore.list_with_delimiter(self._store, key, return_arrow=True))
        except BaseError as error:
            raise failure(error, prefix) from error
        names = found["objects"].num_rows + len(found["common_prefixes"])
        asked("list", max(names - 1, 0) // _PAGE)
        batches = pa.table(found["objects"]).to_batches()
        return concatenate(sort(self._listing(batch)) for batch in batches)

    def _listing(self, batch: pa.RecordBatch) -> FileTable:
        if not batch.num_rows:
            return EMPTY
        keys = batch.column("path").cast(pa.large_string())
        paths = pc.binary_join_element_wise(
            pa.scalar(self._base, pa.large_string()), keys, pa.scalar("", pa.large_string())
        )
        modified = batch.column("last_modified").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        return FileTable(
            paths,
            batch.column("size").to_numpy().astype(np.int64),
            modified.to_numpy(),
            _quoted(batch.column("e_tag").cast(pa.large_string())),
        )

    def list_directories(self, prefix: str) -> list[str]:
        try:
            asked("list")
            found = again(lambda: obstore.list_with_delimiter(self._store, self._key(prefix)))
        except BaseError as error:
            raise failure(error, prefix) from error
        return sorted(self._base + path for path in found["common_prefixes"])

    def directory_exists(self, uri: str) -> bool:
        return True

    def stat(self, uri: str) -> FileStat | None:
        try:
            asked("look")
            found = obstore.head(self._store, self._key(uri))
        except (NotFoundError, FileNotFoundError):
            return None
        except BaseError as error:
            raise failure(error, uri) from error
        return _state(uri, found)

    def read(self, uri: str) -> bytes:
        try:
            asked("read")
            return again(lambda: bytes(obstore.get(self._store, self._key(uri)).bytes()))
        except (BaseError, FileNotFoundError) as error:
            raise unreadable(error, uri) from error

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        try:
            asked("read", len(join_ranges(ranges)))
            parts = again(
                lambda: obstore.get_ranges(
                    self._store,
                    self._key(uri),
                    starts=[start for start, _ in ranges],
                    ends=[end for _, end in ranges],
                )
            )
        except (BaseError, FileNotFoundError) as error:
            raise unreadable(error, uri) from error
        for (start, end), part in zip(ranges, parts, strict=True):
            _check_length(uri, start, end, len(part))
        return [bytes(part) for part in parts]

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        # An answer's headers and body are of one version of the object.
        key, state = self._key(uri), None
        held: list[tuple[int, bytes]] = []
        for start, end in join_ranges(ranges):
            try:
                asked("read")
                part, here = again(partial(self._read, uri, key, start, end))
            except (BaseError, FileNotFoundError) as error:
                raise unreadable(error, uri) from error
            _check_length(uri, start, end, len(part))
            if state is not None and here != state:
                raise FileUnreadable(f"{uri} was rewritten while it was read", "refresh the index")
            state = here
            held.append((start, part))
        if state is None:
            state = self.stat(uri)
        return [cut(held, start, end) or b"" for start, end in ranges], state

    def _read(self, uri: str, key: str, start: int, end: int) -> tuple[bytes, FileStat]:
        answer = obstore.get(self._store, key, options={"range": (start, end)})
        return bytes(answer.bytes()), _state(uri, answer.meta)

    def is_remote(self, uri: str) -> bool:
        return True

    def put(self, uri: str, content: bytes) -> None:
        try:
            asked("write")
            obstore.put(self._store, self._key(uri), content)
        except BaseError as error:
            raise failure(error, uri) from error

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        return self._creation.create(self._key(uri), content)

    def copy(self, source: FileStat, target: str) -> bool:
        key, to = self._key(source.uri), self._key(target)
        try:
            asked("write")
            if source.size <= _COPIED_AT_ONCE:
                obstore.copy(self._store, key, to)
            else:
                parts = obstore.get(self._store, key).stream(min_chunk_size=_PART)
                obstore.put(self._store, to, parts, chunk_size=_PART)
        except (NotFoundError, FileNotFoundError):
            return False
        except BaseError as error:
            raise failure(error, target) from error
        now = self.stat(source.uri)
        if now is None or now.size != source.size or _plain(now.etag) != _plain(source.etag):
            self.delete(target)
            return False
        # S3 begins to answer a copy before it has made it. What happens then is in the body alone.
        made = self.stat(target)
        if made is None or made.size != source.size:
            raise StorageFailure(
                f"{target}: the store says that it has copied {source.uri}, but there is "
                + ("no such file" if made is None else f"a file of {made.size} bytes"),
                "try again",
            )
        return True

    def delete(self, uri: str) -> None:
        try:
            asked("delete")
            obstore.delete(self._store, self._key(uri))
        except (NotFoundError, FileNotFoundError):
            return
        except BaseError as error:
            raise failure(error, uri) from error

    def _key(self, uri: str) -> str:
        if not uri.startswith(self._base):
            place = parse(uri)
            if f"{place.scheme}://{place.authority}/" != self._base:
                raise InvalidUri(
                    f"{uri} is not below {self._base}", "open the storage of its bucket"
                )
            return place.path
        return uri[len(self._base) :]


def _state(uri: str, meta: Any) -> FileStat:
    modified = meta["last_modified"]
    micros = int(modified.timestamp()) * 1_000_000 + modified.microsecond
    return FileStat(uri, meta["size"], micros, meta["e_tag"])


def _quoted(etags: pa.Array) -> pa.Array:
    """As in the headers of answers: Azure's listings have them without quotes."""
    bare = pc.invert(pc.starts_with(etags, '"'))
    if not pc.any(bare).as_py():  # none, or none is known
        return etags
    quote, none = pa.scalar('"', pa.large_string()), pa.scalar("", pa.large_string())
    quoted = pc.binary_join_element_wise(quote, etags, quote, none)
    return pc.if_else(pc.fill_null(bare, False), quoted, etags)


def _plain(etag: str | None) -> str | None:
    return None if etag is None else etag.strip('"')


def _check_length(uri: str, start: int, end: int, length: int) -> None:
    if length != end - start:
        raise FileShort(
            f"{uri} ends before byte {end}", "the file was cut or rewritten: refresh the index"
        )


def _inside(prefix: str) -> str:
    return prefix.removesuffix("/") + "/"


def _directly_in(prefix: str, files: FileTable) -> FileTable:
    depth = _inside(prefix).count("/")
    return files.filter(_mask(pc.equal(pc.count_substring(files.paths, "/"), depth)))


def _after(files: FileTable, name: str | None) -> FileTable:
    return files if name is None else files.filter(_mask(pc.greater(files.paths, name)))


def _some(files: FileTable) -> list[FileTable]:
    return [files] if len(files) else []


def _mask(found: Any) -> Any:
    return found.to_numpy(zero_copy_only=False)
