"""Finds data files in subdirectories of a table, which a planner does not read unless set to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np

from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidUri
from bridge.kernel.threads import Threads
from bridge.runtime.compose import is_location, resolve, storage_of
from bridge.storage.port import LinkOutside, Storage, data_files
from bridge.table.directory.discovered import is_visible
from bridge.table.model import Catalog, CatalogTable
from bridge.table.registry import DIRECTORY

REMEDY = (
    "if your engines read them, set planner.recursive (SKIPBRIDGE_PLANNER_RECURSIVE=true) for "
    "every command and `serve`"
)
_LOCATIONS = 1_000
"""Locations that are looked at: each costs a request or two."""
_KEYS = 100_000
"""Keys of an object store that are looked at, in all locations together."""
_THREADS = 16


def describe_nested(config: Config, table: str) -> str:
    """What is told of a registered table with such files; empty if nothing is to be told.

    A directory without a metastore is refused where it has such files. Of a table that cannot be
    opened or listed, those tell who read it.
    """
    if is_location(table) or config.flag("planner.recursive"):
        return ""
    storage = storage_of(config)
    try:
        catalog, name = resolve(config, table, storage)
        path = find_nested(storage, catalog, catalog.table(name))
    except BridgeError:
        return ""
    if path is None:
        return ""
    return f"files in subdirectories of {name}, as {path}, are neither indexed nor read"


def warn_of_nested(config: Config, table: str, say: Callable[[str], object]) -> None:
    """Says what `describe_nested` tells, and the remedy."""
    if nested := describe_nested(config, table):
        say(f"{nested}: {REMEDY}")


def find_nested(storage: Storage, catalog: Catalog, table: CatalogTable) -> str | None:
    """A data file below a location of a table, but directly neither in it nor in another one.

    Of many locations some are looked at, evenly spread; on object stores, the first keys of each.

    Errors: those of the catalog.
    """
    if table.table_format != DIRECTORY:
        return None
    names = catalog.partition_names(table)
    places = np.linspace(0, len(names) - 1, min(len(names), _LOCATIONS)).astype(int).tolist()
    some = _locations(catalog, table, [names[i] for i in places])
    found = _search(storage, some, some)
    if found is not None and len(places) < len(names):  # it may be of a partition not looked at
        found = _search(storage, some, _locations(catalog, table, names))
    return found


def _locations(catalog: Catalog, table: CatalogTable, names: list[str]) -> list[str]:
    with closing(catalog.partitions(table, names)) as batches:
        return list(dict.fromkeys(p.location for batch in batches for p in batch.partitions))


def _search(storage: Storage, locations: list[str], all_known: list[str]) -> str | None:
    known = frozenset(location.rstrip("/") for location in all_known)
    most = _KEYS // max(1, len(locations))
    with Threads(_THREADS, "nested") as pool:
        found = pool.map(lambda location: _first(storage, location, known, most), locations)
        return next(filter(None, found), None)


def _first(storage: Storage, location: str, known: frozenset[str], most: int) -> str | None:
    try:
        if storage.has_directories(location):
            found = _below_directories(storage, location)
        else:
            found = _below_prefix(storage, location, most)
        return next((path for path in found if path.rpartition("/")[0] not in known), None)
    except BridgeError:
        return None


def _below_prefix(storage: Storage, location: str, most: int) -> Iterator[str]:
    for page in storage.pages(location):
        yield from data_files(page, location).paths.to_pylist()
        most -= len(page)
        if most <= 0:
            return


def _below_directories(storage: Storage, location: str) -> Iterator[str]:
    try:
        inside = storage.list_directories(location)
    except LinkOutside as error:
        inside = error.directories
    for directory in filter(is_visible, (uri.rstrip("/") for uri in inside)):
        try:
            for page in storage.pages(directory):
                yield from data_files(page, directory).paths.to_pylist()
        except InvalidUri:
            continue
