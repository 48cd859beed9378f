"""Keys that the client refuses: with an empty part, a part ``.`` or ``..``, or control characters.

It refuses a whole page of a listing for one of them, and tells the marker of a directory ``d/`` as
a file ``d``. So we list such a page once more (`ListingEnd.list_pages`), and read an object of an
odd key by a client whose address holds the odd part. No address can hold ``.`` and ``..``. To
engines a file below such a name is hidden.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.compute as pc
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import AzureStore, GCSStore

from bridge.kernel.errors import InvalidUri
from bridge.storage.object_store.object_client import Store, bucket_address, store_at
from bridge.storage.port import FileTable

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_EMPTY = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)")
_DOTS = re.compile(r"(?:\A|/)\.{1,2}(?:/|\Z)")
_CLIENTS = 64
_MARKER = 1024
"""Bytes of a marker at most: what tools write into it is a word, or nothing."""
_MARKERS = 3
"""In a page of a listing: each costs a request."""
REFUSED = "object with invalid path: "
"""Before what the client tells of a listed object whose name it refuses."""


class OddKey(Exception):
    """A listing by the client may hold a key that it refuses, or tells otherwise."""


def is_odd(key: str) -> bool:
    """Whether the client refuses a key that is not empty, or changes it."""
    return bool(key) and (_EMPTY.search(key) or _CONTROL.search(key)) is not None


def is_unnamed(directory: str) -> bool:
    """Whether the last part of a directory's key is no name."""
    return directory.removesuffix("/").rpartition("/")[2] in ("", ".", "..")


def odd_key_in(error: Exception) -> str:
    """What is said of an odd key in the error of a listing; empty if it is another error."""
    return str(error).partition(REFUSED)[2].strip().partition("\n")[0]


def require_nameable(key: str) -> str:
    """A key that the client can name. Errors: InvalidUri."""
    if is_odd(key):
        raise InvalidUri(
            f"the storage library here cannot name the object {key!r}",
            "rename it: without an empty part (//), a part . or .., and control characters",
        )
    return key


class OddKeys:
    """The clients of a bucket for objects that its own client cannot name, the last ones held."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._at = lru_cache(_CLIENTS)(partial(store_at, store))
        self._bucket = lru_cache(1)(partial(bucket_address, store))

    def client_of(self, key: str) -> tuple[Store, str]:
        """A client, and the key by which it reads an object and looks at it.

        Errors: InvalidUri: the object cannot be named.
        """
        if not is_odd(key):
            return self._store, key
        if _DOTS.search(key):
            return self._store, require_nameable(key)
        above, _, name = key.rpartition("/")
        bucket = self._bucket()
        if isinstance(self._store, AzureStore):
            return self._at(f"{bucket}/{quote(key)}"), ""
        # The client adds a slash and a key: the store ignores parameters that begin with x-
        if is_odd(name) or isinstance(self._store, GCSStore):
            return self._at(f"{bucket}/{quote(key)}?x-key="), "x"
        while above and not is_odd(above.rpartition("/")[2]) and not above.endswith("/"):
            above, _, part = above.rpartition("/")
            name = f"{part}/{name}"
        return self._at(f"{bucket}/{quote(above)}"), name


def followed_by_below(paths: pa.Array, before: str | None) -> list[str]:
    """The files that are followed by one below them, and so may be the markers of directories.

    Args:
        paths: of files with content, as the store gave them.
        before: the one that came before them.
    """
    if before is not None:
        paths = pa.concat_arrays([pa.array([before], pa.large_string()), paths])
    lengths = pc.binary_length(paths).to_numpy(zero_copy_only=False)
    longer: Any = np.flatnonzero(lengths[1:] > lengths[:-1] + 1).tolist()
    pairs = [(paths[i].as_py(), paths[i + 1].as_py()) for i in longer]
    return [path for path, following in pairs if following.startswith(f"{path}/")]


async def is_missing(store: Store, key: str) -> bool:
    """Whether there is no object of a name that a listing tells; other errors are the reader's."""
    try:
        await obstore.head_async(store, key)
    except (NotFoundError, FileNotFoundError):
        return True
    except BaseError:
        return False
    return False


def marker_names(page: FileTable) -> list[str]:
    """Files that may be markers of directories with content, and nothing below them.

    They are few, small, and have no extension; what are many files of this kind is data.
    """
    small = (page.sizes > 0) & (page.sizes <= _MARKER)
    if not small.any():
        return []
    paths = page.paths.filter(pa.array(small))
    found: list[str] = paths.filter(pc.match_substring_regex(paths, r"/[^/.]*\z")).to_pylist()
    return found if len(found) <= _MARKERS else []
