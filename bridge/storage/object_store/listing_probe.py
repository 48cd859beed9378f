"""Whether a store lists what it holds, tried with two objects of our own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress

from bridge.kernel.errors import StorageFailure
from bridge.storage.object_store.key_ranges import lists_from_anywhere
from bridge.storage.object_store.objectstore import ObjectStorage
from bridge.storage.uri import join, parse


def require_listings(directory: str, options: Mapping[str, str]) -> None:
    """Writes two hidden objects below a directory of an object store, lists, and deletes them.

    Errors:
        StorageFailure: the store does not list what was just written, or does not begin after a
            key; its address leads elsewhere, or to no object store; it refuses a request.
    """
    store = ObjectStorage(parse(directory), options)
    place = join(directory, f".probe.{uuid.uuid4().hex}.tmp")
    first, second = join(place, "a"), join(place, "b")
    try:
        for probe in (first, second):
            store.put(probe, b"probe")
        whole, rest = store.first_page(place), store.first_page(place, first)
        if sorted(whole) != [first, second]:
            raise StorageFailure(
                f"{directory}: the store lists {len(whole)} of 2 files that were just written",
                "use a store with strongly consistent listings",
            )
        if lists_from_anywhere(directory) and rest != [second]:
            raise StorageFailure(
                f"{directory}: the store lists {', '.join(rest) or 'nothing'} where what follows "
                f"{first} was asked for: it answers in the first version of S3's listings, or "
                "ignores start-after",
                "tables of more than a page (1,000 files) are listed wholly each time: use a newer "
                "version of the store, or another one",
            )
    finally:
        for probe in (first, second):
            with suppress(StorageFailure):
                store.delete(probe)
