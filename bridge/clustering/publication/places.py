"""Where tables and partitions lie, as publishing asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bridge.storage.uri import relative


@dataclass(frozen=True, slots=True)
class OtherTable:
    """Another table of the metastore.

    Attributes:
        location: canonical URI.
        unreadable: the metastore does not tell all of its places; the location may be a guess.
        partitions: locations of those of its partitions that were asked for.
        unasked: it has more partitions than are looked at.
    """

    name: str
    location: str
    unreadable: bool = False
    partitions: tuple[str, ...] = ()
    unasked: bool = False


class Places(Protocol):
    """The locations that the metastore has of one table; canonical URIs by partition.

    The only partition of an unpartitioned table is ``""``.
    """

    def all(self) -> dict[str, str]: ...

    def others(self, near: Callable[[str], bool]) -> list[OtherTable]:
        """All other tables that have a location.

        Args:
            near: which locations of partitions are wanted.
        """
        ...

    def of(self, partition: str) -> str | None:
        """None: there is no such partition."""
        ...

    def move(self, partition: str, old: str, new: str) -> bool:
        """Switches a location in one update; False if it is not the old one (any more).

        Engines must not believe the metastore's row counts afterwards.
        """
        ...


def lies_in(place: str, directory: str) -> bool:
    """Whether a place is a directory, or below it."""
    return place == directory or relative(directory, place) is not None
