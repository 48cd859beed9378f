"""What a sync has to know of directories that clustering has published."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.clustering.publication.switches import marker
from bridge.config import Config
from bridge.errors import SchemaNotFound, TableNotFound
from bridge.index.replacements import DIRECTORY, PUBLISHED, home
from bridge.jobs.compose import absolute_location, storage_of
from bridge.storage.ahead import ask_all
from bridge.storage.port import Storage
from bridge.storage.uri import canonical, join


def lies_published(registered: str, given: str) -> bool:
    """Whether a table was published from a location that the user still gives for it.

    Args:
        registered: canonical URI of its location in the metastore.
    """
    return registered != home(registered) == canonical(absolute_location(given))


def published_below(root: str) -> str:
    """How the locations of a table's published partitions begin."""
    return join(home(root), f"{DIRECTORY}/{PUBLISHED}")


def was_published(storage: Storage, root: str) -> bool:
    """Whether partitions of a table have been published, as far as its directory tells."""
    below = storage.list_directories(join(home(root), DIRECTORY))
    return any(uri.rstrip("/").rpartition("/")[2].startswith(PUBLISHED) for uri in below)


def left_directories(storage: Storage, root: str, directories: Mapping[str, str]) -> list[str]:
    """Those partitions whose directories were left: they lack what was written since.

    Args:
        root: of the table.
        directories: canonical URIs by partition; only the root itself is that of ``""``.
    """
    if "" not in directories and not was_published(storage, root):
        return []
    names = list(directories)
    found = ask_all(storage, lambda name: storage.stat(marker(directories[name])), names, root)
    return [name for name, there in zip(names, found, strict=True) if there is not None]


def left_lines(config: Config, table: str, location: str) -> list[str]:
    """What is said of files that no engine reads, in directories that a table was published from.

    Args:
        location: of the table, whether or not it is registered.
    """
    from bridge.jobs.left_text import lines
    from bridge.jobs.publish import left

    if not was_published(storage_of(config), canonical(location)):
        return []
    try:
        return [line for each in left(config, table) for line in lines(each)]
    except (TableNotFound, SchemaNotFound):  # it would be registered
        return []
