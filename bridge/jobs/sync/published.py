"""What a sync has to know of directories that clustering has published."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.clustering.publications import Publications, states_of
from bridge.index.replacements import DIRECTORY, PUBLISHED, home
from bridge.jobs.compose import absolute_location
from bridge.storage.port import Storage, same_state
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


def replaced_directories(
    storage: Storage, root: str, directories: Mapping[str, str]
) -> dict[str, str]:
    """Those directories that still hold files that were replaced when they were published.

    Args:
        root: of the table.
        directories: canonical URIs by partition.

    Returns:
        The directory that each was published to, by partition.
    """
    found = {}
    for name, held in Publications(storage, root).load(directories).items():
        for attempt in held.attempts:
            if attempt.state != "switching" or attempt.old != directories[name]:
                continue
            covered = {state.path: state for state in attempt.covered}
            now = states_of(storage.list_all(attempt.old, recursive=True))
            if any(s.path in covered and same_state(covered[s.path], s) for s in now):
                found[name] = attempt.new
    return found
