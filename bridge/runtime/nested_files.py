"""Finds data files in subdirectories of a table, which a planner does not read unless set to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np

from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidUri
from bridge.kernel.threads import Threads
from bridge.runtime.compose import is_location, resolve, storage_of
from bridge.storage.port import LinkOutside, Storage, data_files
from bridge.storage.uri import parent
from bridge.table.directory.discovered import is_visible
from bridge.table.model import Catalog, CatalogTable
from bridge.table.registry import DIRECTORY

REMEDY = (
    "if your engines read them, set planner.recursive (SKIPBRIDGE_PLANNER_RECURSIVE=true) for "
    "every command and `serve`"
)
_LOCATIONS = 1_000
"""Locations that are looked at: each costs a request or two."""
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


def find_nested(storage: Storage, catalog: Catalog, table: CatalogTable) -> str | None:
    """A data file below a location of a table, but directly neither in it nor in another one.

    Of many locations some are looked at, evenly spread.

    Errors: those of the catalogue.
    """
    if table.table_format != DIRECTORY:
        return None
    with closing(catalog.partitions(table, catalog.partition_names(table))) as batches:
        locations = list(dict.fromkeys(p.location for b in batches for p in b.partitions))
    known = frozenset(locations)
    some = np.linspace(0, len(locations) - 1, min(len(locations), _LOCATIONS)).astype(int).tolist()
    with Threads(_THREADS, "nested") as pool:
        found = pool.map(lambda i: _first(storage, locations[i], known), some)
        return next(filter(None, found), None)


def _first(storage: Storage, location: str, known: frozenset[str]) -> str | None:
    try:
        return next(_nested(storage, location, known), None)
    except BridgeError:
        return None


def _nested(storage: Storage, location: str, known: frozenset[str]) -> Iterator[str]:
    try:
        inside = storage.list_directories(location)
    except LinkOutside as error:
        inside = error.directories
    for directory in (uri.rstrip("/") for uri in inside):
        if not is_visible(directory):
            continue
        try:
            for page in storage.pages(directory):
                paths = data_files(page, directory).paths.to_pylist()
                yield from (path for path in paths if parent(path) not in known)
        except InvalidUri:
            continue
