"""What a sync has to know of directories that clustering has published."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.index.generations.replacements import (
    DIRECTORY,
    PUBLISHED,
    location_before_publishing,
    was_published,
)
from bridge.runtime.compose import absolute_location
from bridge.storage.port import Storage
from bridge.storage.reading.ahead import ask_all
from bridge.storage.uri import canonical, join
from bridge.table.directory.foreign import left_marker


def lies_published(registered: str, given: str) -> bool:
    """Whether a table was published from a location that the user still gives for it.

    Args:
        registered: canonical URI of its location in the metastore.
    """
    return (
        registered != location_before_publishing(registered) == canonical(absolute_location(given))
    )


def published_below(root: str) -> str:
    """How the locations of a table's published partitions begin."""
    return join(location_before_publishing(root), f"{DIRECTORY}/{PUBLISHED}")


def left_directories(storage: Storage, root: str, directories: Mapping[str, str]) -> list[str]:
    """Those partitions whose directories were left: they lack what was written since.

    Args:
        root: of the table.
        directories: canonical URIs by partition; only the root itself is that of ``""``.
    """
    if "" not in directories and not was_published(storage, root):
        return []
    names = list(directories)
    found = ask_all(storage, lambda name: storage.stat(left_marker(directories[name])), names, root)
    return [name for name, there in zip(names, found, strict=True) if there is not None]
