"""Object stores (S3, GCS, Azure) through obstore."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, suppress
from functools import partial
from typing import Any, TypeVar

import obstore
import pyarrow as pa
import pyarrow.compute as pc
from obstore.exceptions import BaseError, GenericError, NotFoundError

from bridge.kernel.errors import BridgeError, FileUnreadable, InvalidUri, StorageFailure
from bridge.storage.listed_files import (
    directly_in,
    distinct,
    files_after,
    inside,
    listed_files,
    mask,
    require_inside,
)
from bridge.storage.native import NoAnswer, wait_for, wait_for_all
from bridge.storage.object_store.atomic_create import AtomicCreate
from bridge.storage.object_store.key_ranges import (
    Order,
    OutOfOrder,
    list_ranges,
    lists_from_anywhere,
)
from bridge.storage.object_store.listing_end import LAST, AreListed, ListingEnd, micros
from bridge.storage.object_store.object_client import Store, open_store
from bridge.storage.object_store.odd_keys import (
    OddKey,
    OddKeys,
    followed_by_below,
    is_missing,
    is_odd,
    is_unnamed,
    marker_names,
    odd_key_in,
    require_nameable,
)
from bridge.storage.port import (
    EMPTY,
    DirectoryListings,
    FileStat,
    FileTable,
    Range,
    concatenate,
    join_listings,
    join_tables,
    one_spelling,
    sort,
)
from bridge.storage.reading.ranges import cut, join_ranges, require_length
from bridge.storage.reading.requests import carry_count, count_requests
from bridge.storage.retry import RetryBudget, mark_repeated, repeat
from bridge.storage.store_errors import NO_BUCKET, STORE_ERRORS, failure, unreadable
from bridge.storage.uri import Location, parse

T = TypeVar("T")
_log = logging.getLogger(__name__)
_PAGE = 1_000  # files that a store lists in one answer
_PARALLEL = 8
_RANGE_FROM = 2_000
"""Least number of files per parallel range. A page of a listing has 1,000."""
_HELD = 1_000_000
"""Paths that a listing remembers, so that it can begin anew without giving a file twice."""
_ENDS = 3
"""How often a listing may end at a file that others follow, until it is an error."""
_COPIED_AT_ONCE = 5 * 1024**3
"""S3 copies larger files only part by part."""
_PART = 64 * 1024**2


class ObjectStorage:
    """`Storage` on one bucket, with the store's conditional writes (`AtomicCreate`)."""

    def __init__(self, place: Location, options: Mapping[str, str]) -> None:
        self._base = f"{place.scheme}://{place.authority}/"
        self._store = open_store(place, options)
        self._odd = OddKeys(self._store)
        self._creation = AtomicCreate(self._store, self._base)
        self._ordered = lists_from_anywhere(self._base)
        timeout = float(options.get("timeout", "60"))
        self._end = ListingEnd.of(self._store, self._base, self._ordered, timeout)
        self._there = False
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
            yield from _some(files_after(self._flat(prefix)[0], start_after))
            return
        given, count = [EMPTY.paths], 0
        if self._ordered:
            try:
                with closing(
                    list_ranges(partial(self._between, prefix), bounds)
                    if bounds
                    else self._in_order(prefix, start_after)
                ) as pages:
                    for page in pages:
                        files = page if recursive else directly_in(prefix, page)
                        count += len(files)
                        if count <= _HELD:
                            given.append(files.paths)
                        yield from _some(files)
                return
            except OutOfOrder as error:
                self._require_held(prefix, count, error)
        whole = files_after(self._whole(prefix), start_after)
        if not recursive:
            whole = directly_in(prefix, whole)
        known = pc.is_in(whole.paths, value_set=pa.concat_arrays(given))
        yield from _some(whole.filter(mask(pc.invert(known))))

    def list_all(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> FileTable:
        return concatenate(self.pages(prefix, recursive=recursive, hints=hints))

    def list_many(
        self, directories: Sequence[str], pool: Executor, *, recursive: bool = True
    ) -> DirectoryListings:
        one = partial(self.list_all, recursive=recursive)
        return join_listings(list(pool.map(carry_count(one), directories)))

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
        return sorted({uri for uri in chosen if uri.startswith(inside(prefix))})

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
        budget, last, order, ends = RetryBudget(), start_after, Order(start_after), 0
        own = self._is_odd(prefix, start_after)
        count_requests("list")
        while True:
            after, count = last, 0
            try:
                for given, files in self._answered(prefix, after, own):
                    page, count = given, count + len(given)
                    order.follow(files)
                    if order.broken:
                        if order.marker and self._end.lists and not own:
                            raise OddKey(order.broken)
                        raise OutOfOrder(order.broken)
                    # The client tells a directory's marker `d/` as `d`, which comes before `d-1/f`.
                    held = page.filter(page.sizes > 0)
                    if after is not None:
                        page = page.filter(mask(pc.greater(page.paths, after)))
                    if len(page):
                        end = (held if len(held) else page).paths[-1].as_py()
                        last, ends = end if last is None else max(last, end), 0
                        yield page
                    budget.reset()
                if own or self._ended(prefix, last, count, ends):
                    return
                ends += 1
            except OddKey:
                own, order = True, Order(last)
            except OutOfOrder as error:
                self._note(str(error))
                raise
            except STORE_ERRORS as error:
                try:
                    budget.wait_or_raise(error)
                except STORE_ERRORS:
                    raise failure(error, prefix) from error

    def _ended(
        self, prefix: str, last: str | None, count: int, times: int, known: AreListed | None = None
    ) -> bool:
        """Whether a listing's end is one; ``times`` it was none. Errors: StorageFailure."""
        if self._end.is_reached(self._key(prefix), self._begin(last), count, known):
            return True
        if times == _ENDS:
            raise StorageFailure(
                f"{prefix}: the store lists nothing after {last or 'the beginning'}, "
                "and told on another question that more follows",
                "check the store: it lists less than it holds",
            )
        return False

    def first_page(self, prefix: str, after: str | None = None) -> list[str]:
        """The files below a directory as the store lists them, up to a page of them, unproven.

        Errors: StorageFailure: also what is no listing, and an address that leads elsewhere.
        """
        stream: Any = obstore.list(self._store, self._key(prefix), offset=self._begin(after))
        count_requests("list")
        try:
            self._end.require_listing(self._key(prefix))
            found = repeat(lambda: wait_for(lambda: _next(stream)))
        except STORE_ERRORS as error:
            raise failure(error, prefix) from error
        return [self._base + each["path"] for each in found or ()]

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

        def ask(own: bool) -> FileTable:
            count_requests("list")
            order, pages, names, count = Order(), [], set[str](), 0
            for page, files in self._answered(prefix, None, own):
                order.follow(files)
                pages.append(page)
                names.update(page.paths.to_pylist())
                count += len(page)
                if count > 2 * len(names) + 100:  # more than a page that was given twice
                    raise StorageFailure(
                        f"{prefix}: the store lists {page.paths[0].as_py()} again and again",
                        "check the store: a page of its listing names itself as the next one",
                    )
            if order.broken:
                self._note(order.broken)
            return distinct(prefix, join_tables(pages))

        return self._proven(prefix, lambda own: (ask(own), []))[0]

    def _proven(
        self, prefix: str, ask: Callable[[bool], tuple[FileTable, list[str]]]
    ) -> tuple[FileTable, list[str]]:
        """A whole listing, asked for until its end is one. Errors: StorageFailure.

        Args:
            ask: lists by our own requests (True) or by the client's.
        """

        def known(keys: list[str]) -> bool:
            uris = [self._base + key.removesuffix("/") for key in keys]
            held = pc.is_in(pa.array(uris, pa.large_string()), value_set=files.paths).to_pylist()
            below = tuple(f"{directory}/" for directory in directories)
            return all(h or f"{uri}/".startswith(below) for uri, h in zip(uris, held, strict=True))

        ends, own = 0, self._is_odd(prefix)
        try:
            while True:
                try:
                    files, directories = repeat(partial(ask, own))
                except OddKey:
                    return ask(True)
                lasts = [*files.paths[-1:].to_pylist(), *(f"{d}/{LAST}" for d in directories[-1:])]
                count = len(files) + len(directories)
                if own or self._ended(prefix, max(lasts, default=None), count, ends, known):
                    return files, directories
                ends += 1
        except STORE_ERRORS as error:
            raise failure(error, prefix) from error

    def _answered(
        self, prefix: str, after: str | None, own: bool
    ) -> Iterator[tuple[FileTable, pa.Array]]:
        """The pages of one listing, each sorted, and its files with content as the store gave them.

        Args:
            own: by our own requests, whatever the keys are.

        Errors: BaseError; OddKey; StorageFailure: it lists what is elsewhere.
        """
        key, begin = self._key(prefix), self._begin(after)
        if own:
            for page, _ in self._end.list_pages(key, begin, ""):
                require_inside(prefix, ordered := sort(page))
                yield ordered, page.filter(page.sizes > 0).paths
            return
        whole, before = 0, None
        stream: Any = obstore.list(
            self._store, key, offset=begin, chunk_size=_PAGE, return_arrow=True
        )
        while (batch := self._accepted(lambda: _next(stream), prefix, before or after)) is not None:
            page = listed_files(self._base, prefix, pa.record_batch(batch))
            if len(page):
                count_requests("list", whole // _PAGE)  # a full page before had a successor
                whole = len(page)
                require_inside(prefix, ordered := sort(page))
                files = page.filter(page.sizes > 0).paths
                markers = pa.array(self._markers(page, files, before), pa.large_string())
                before = files[-1].as_py() if len(files) else before
                yield ordered.filter(~mask(pc.is_in(ordered.paths, value_set=markers))), files

    def _markers(self, page: FileTable, files: pa.Array, before: str | None) -> list[str]:
        """What a page tells as files, but are markers of directories. Errors: OddKey: perhaps."""
        followed = followed_by_below(files, before)
        names = [*followed, *marker_names(page)]
        if not names:
            return []
        certain: list[bool] = []
        if not (followed and self._end.lists):
            count_requests("look", len(names))
            looks = [partial(is_missing, self._store, self._key(name)) for name in names]
            certain = wait_for_all(looks)
        if self._end.lists and (followed or any(certain)):
            raise OddKey(f"{names[0]} is perhaps a directory's marker with content")
        return [name for name, gone in zip(names, certain, strict=True) if gone]

    def _accepted(
        self, call: Callable[[], Awaitable[T]], prefix: str, last: str | None, flat: bool = False
    ) -> T:
        """Part of a listing by the client. Errors: BaseError; OddKey: it has odd keys."""
        place = self._key(prefix), self._begin(last)
        looked_at = ("/", 10 * _PAGE) if flat else ("", _PAGE)
        try:
            return wait_for(call, stalled=partial(self._end.require_progress, *place, *looked_at))
        except STORE_ERRORS as error:
            odd = odd_key_in(error)
            if odd and self._end.lists:
                raise OddKey(odd) from error
            raise

    def _is_odd(self, prefix: str, after: str | None = None) -> bool:
        """Whether the client cannot be asked for what is below a directory, or tells it wrongly."""
        keys = [self._key(uri) for uri in (prefix, after) if uri is not None]
        return any(map(is_odd, keys)) or (not keys[0] and self._end.has_nameless())

    def _flat(self, prefix: str) -> tuple[FileTable, list[str]]:
        """The files and the directories that are directly in a directory."""

        def ask(own: bool) -> tuple[FileTable, list[str]]:
            key = self._key(prefix)
            if own:
                pages = list(self._end.list_pages(key, None, "/"))
                below = {d for _, names in pages for d in names if not is_unnamed(d)}
                return distinct(prefix, join_tables([files for files, _ in pages])), sorted(
                    self._base + directory.removesuffix("/") for directory in below
                )
            count_requests("list")
            try:
                found = self._accepted(
                    lambda: obstore.list_with_delimiter_async(self._store, key, return_arrow=True),
                    *(prefix, None, True),
                )
            except NoAnswer as error:
                if not self._end.lists:
                    return self._spread(prefix)
                with suppress(StorageFailure):  # page by page, so that progress is seen
                    return ask(True)
                raise error
            files = [
                listed_files(self._base, prefix, batch)
                for batch in pa.table(found["objects"]).to_batches()
            ]
            directories = sorted({self._base + path for path in found["common_prefixes"] if path})
            count_requests("list", max(sum(map(len, files)) + len(directories) - 1, 0) // _PAGE)
            return distinct(prefix, join_tables(files)), directories

        return self._proven(prefix, ask)

    def _spread(self, prefix: str) -> tuple[FileTable, list[str]]:
        """As `_flat`, from all that is below: the client gives such a listing page by page."""
        files, start = self._whole(prefix), len(inside(prefix))
        paths = files.paths.to_pylist()
        below = sorted({p[: p.index("/", start)] for p in paths if "/" in p[start:]})
        named = pc.is_in(files.paths, value_set=pa.array(below, pa.large_string()))
        return directly_in(prefix, files.filter(~mask(named) | (files.sizes > 0))), below

    def list_directories(self, prefix: str) -> list[str]:
        return self._flat(prefix)[1]

    def directory_exists(self, uri: str) -> bool:
        return True

    def stat(self, uri: str) -> FileStat | None:
        try:
            count_requests("look")
            store, key = self._place(uri)
            found = self._call(lambda: obstore.head_async(store, key))
        except (NotFoundError, FileNotFoundError):
            self._require_bucket(uri)
            return None
        except STORE_ERRORS as error:
            raise failure(error, uri) from error
        return _state(uri, found)

    def _require_bucket(self, uri: str) -> None:
        """Errors: StorageFailure: it is missing. An answer without a body cannot say what is."""
        if self._there:
            return
        try:
            count_requests("list")
            stream: Any = obstore.list(self._store, self._key(uri).encode().hex(), chunk_size=1)
            wait_for(lambda: _next(stream))
        except STORE_ERRORS as error:
            found = failure(error, uri)
            if found.message.startswith(NO_BUCKET):
                raise found from error
        self._there = True

    def read(self, uri: str) -> bytes:
        try:
            count_requests("read")
            return repeat(lambda: self._got(uri, [None]))[0][0]
        except STORE_ERRORS as error:
            raise unreadable(error, uri) from error

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        return self._parts(uri, ranges)[0]

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        parts, states = self._parts(uri, ranges)
        if any(here != states[0] for here in states):
            raise FileUnreadable(f"{uri} was rewritten while it was read", "refresh the index")
        return parts, states[0] if states else self.stat(uri)

    def _parts(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], list[FileStat]]:
        """Bytes of ranges, and the state of the object in each answer."""
        joined = join_ranges(ranges)
        if not joined:
            return [b"" for _ in ranges], []
        count_requests("read", len(joined))
        try:
            found = repeat(lambda: self._got(uri, joined))
        except STORE_ERRORS as error:
            raise unreadable(error, uri) from error
        held = []
        for (start, end), (part, _) in zip(joined, found, strict=True):
            require_length(uri, start, end, len(part))
            held.append((start, part))
        return [cut(held, start, end) or b"" for start, end in ranges], [here for _, here in found]

    def _got(self, uri: str, ranges: Sequence[Range | None]) -> list[tuple[bytes, FileStat]]:
        """Parts of an object, or all of it, each with the state that its answer told.

        Headers and body of an answer are of one version of the object.
        """
        store, key = self._place(uri)

        async def get(part: Range | None) -> tuple[Any, Any]:
            options: Any = None if part is None else {"range": part}
            answer = await obstore.get_async(store, key, options=options)
            meta, (start, end) = answer.meta, answer.range
            try:
                content = await answer.bytes_async()
            except BaseError as error:
                raise (mark_repeated(error) if meta["e_tag"] else error) from None
            if len(content) != end - start:
                raise GenericError(f"response body error: {len(content)} of {end - start} bytes")
            return content, meta

        found = wait_for_all([partial(get, part) for part in ranges], late=False)
        return [(bytes(content), _state(uri, meta)) for content, meta in found]

    def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        """A call that may be made more than once, and has the client's time-out."""
        return repeat(lambda: wait_for(call, late=False))

    def is_remote(self, uri: str) -> bool:
        return True

    def put(self, uri: str, content: bytes) -> None:
        try:
            count_requests("write")
            self._call(lambda: obstore.put_async(self._store, self._own(uri), content))
        except STORE_ERRORS as error:
            if not (isinstance(error, GenericError) and self._holds(uri, content)):
                raise failure(error, uri) from error

    def _holds(self, uri: str, content: bytes) -> bool:
        """Whether an object has this content, so that a write whose answer was lost was made."""
        try:
            held = self.stat(uri)
            if held is None or held.size != len(content):
                return False
            md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
            return held.etag == f'"{md5}"' or self.read(uri) == content
        except BridgeError:
            return False

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        return self._creation.create(self._own(uri), content)

    def copy(self, source: FileStat, target: str) -> bool:
        key, to = self._own(source.uri), self._own(target)
        try:
            count_requests("write")
            if source.size <= _COPIED_AT_ONCE:
                self._call(lambda: obstore.copy_async(self._store, key, to))
            else:
                wait_for(lambda: self._passed_on(key, to), late=False)
        except (NotFoundError, FileNotFoundError):
            self._require_bucket(source.uri)
            return False
        except STORE_ERRORS as error:
            raise failure(error, target) from error
        now, state = self.stat(source.uri), (source.size, one_spelling(source.etag))
        if now is None or (now.size, now.etag) != state:
            self.delete(target)
            return False
        # S3 begins to answer a copy before it has made it. What happens then is in the body alone.
        made = self.stat(target)
        if made is None or made.size != source.size:
            size = "no such file" if made is None else f"a file of {made.size} bytes"
            told = f"{target}: the store says that it has copied {source.uri}, but there is {size}"
            raise StorageFailure(told, "try again")
        return True

    async def _passed_on(self, key: str, to: str) -> None:
        parts = (await obstore.get_async(self._store, key)).stream(min_chunk_size=_PART)
        await obstore.put_async(self._store, to, parts, chunk_size=_PART)

    def delete(self, uri: str) -> None:
        try:
            count_requests("delete")
            self._call(lambda: obstore.delete_async(self._store, self._own(uri)))
        except (NotFoundError, FileNotFoundError):
            self._require_bucket(uri)
        except STORE_ERRORS as error:
            raise failure(error, uri) from error

    def _place(self, uri: str) -> tuple[Store, str]:
        return self._odd.client_of(self._key(uri))

    def _own(self, uri: str) -> str:
        """The key of what is written here. Errors: InvalidUri: the client cannot name it."""
        return require_nameable(self._key(uri))

    def _begin(self, after: str | None) -> str | None:
        return None if after is None else self._key(after)

    def _key(self, uri: str) -> str:
        if uri.startswith(self._base):
            return uri[len(self._base) :]
        place = parse(uri)
        if f"{place.scheme}://{place.authority}/" != self._base:
            raise InvalidUri(f"{uri} is not below {self._base}", "open the storage of its bucket")
        return place.path


async def _next(stream: Any) -> Any:
    return await anext(stream, None)


def _state(uri: str, meta: Any) -> FileStat:
    return FileStat(uri, meta["size"], micros(meta["last_modified"]), one_spelling(meta["e_tag"]))


def _some(files: FileTable) -> list[FileTable]:
    return [files] if len(files) else []
