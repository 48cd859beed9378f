"""The identity of partitions: by the place where they lie, and by the values of their keys.

The law (rule 45): a directory that is a registered partition's location is not registered again,
however the location or the partition's name is spelled. Nor is one above or below such a location.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bridge.kernel.errors import InvalidUri
from bridge.storage.local_disk.local import resolve_links
from bridge.storage.uri import canonical
from bridge.table.model import Column
from bridge.table.partition import UNPARSABLE, parse_value

_PARTS = re.compile(r"([^:/]+)://([^/]*)(.*)", re.DOTALL)
_DEFAULT_PORTS = {"hdfs": ":8020", "abfss": ":443"}


def resolve_location(location: str, root: str) -> str:
    """The canonical URI of a partition's location, in the spelling of its table's root.

    Empty and ``.`` segments vanish and ``..`` is followed, as Hadoop does on every store. A default
    port and the case of a host make no difference. Nothing is unescaped: no engine does it. A link
    of the local disk is looked through where it leads into the root from outside.

    Args:
        root: canonical URI.

    Returns:
        The location as it is, if it has no canonical URI (an unknown scheme).
    """
    try:
        found = canonical(location)
    except InvalidUri:
        try:
            found = canonical(_normal(location))
        except InvalidUri:
            return location
    if root.startswith("file:") and found.startswith("file:"):
        return _within(found, root)
    there, here = _PARTS.fullmatch(found), _PARTS.fullmatch(root)
    if there is None or here is None or there[1] != here[1] or there[2] == here[2]:
        return found
    # hdfs:/x is on the default file system, which may well be that of the root.
    same = not there[2] or _host(there[1], there[2]) == _host(here[1], here[2])
    return f"{here[1]}://{here[2]}{there[3]}" if same else found


def _within(place: str, root: str) -> str:
    if not f"{place}/".startswith(f"{root}/"):
        real, home = resolve_links(place), resolve_links(root)
        if f"{real}/".startswith(f"{home}/"):
            return root + real[len(home) :]
    return place


def _host(scheme: str, authority: str) -> str:
    port = _DEFAULT_PORTS.get(scheme)
    if port is None:
        return authority
    container, at, host = authority.rpartition("@")
    return container + at + host.lower().removesuffix(port)


def _normal(location: str) -> str:
    if location.startswith("/"):
        scheme, colon, rest = "", "", location
    else:
        scheme, colon, rest = location.partition(":")
    authority = ""
    if colon and rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
        authority = f"//{authority}"
    segments: list[str] = []
    for segment in rest.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    return f"{scheme}{colon}{authority}{'/' if rest else ''}{'/'.join(segments)}"


def linked_places(root: str, directories: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Of directories of the local disk those whose path has a link, and where they really are.

    Args:
        root: canonical URI.
        directories: relative to the root; so are the places of those inside it.
    """
    home = resolve_links(root).removeprefix("file://")
    known: dict[str, str] = {"": home}

    def real(path: str) -> str:
        found = known.get(path)
        if found is None:
            above, _, name = path.rpartition("/")
            found = f"{real(above)}/{name}"
            if Path(found).is_symlink():
                found = os.path.realpath(found)
            known[path] = found
        return found

    for directory in directories:
        place = real(directory)
        if place != (f"{home}/{directory}" if directory else home):
            yield directory, place.removeprefix(f"{home}/")


TypedKey = tuple[object, ...]


def typed_keys(keys: Sequence[Column]) -> Callable[[Sequence[str | None]], TypedKey]:
    """A function that types partition values: equal results are the same partition to an engine.

    A value that its type cannot hold equals only itself.

    >>> from bridge.kernel.types import INTEGER
    >>> typed = typed_keys([Column("m", INTEGER)])
    >>> typed(["01"]) == typed(["1"]), typed(["x"]) == typed(["y"])
    (True, False)
    """
    known: list[dict[str | None, object]] = [{} for _ in keys]

    def typed(values: Sequence[str | None]) -> TypedKey:
        made = []
        for held, key, text in zip(known, keys, values, strict=False):
            if text not in held:
                value = parse_value(text, key.type)
                held[text] = ("text", text) if value is UNPARSABLE else value
            made.append(held[text])
        return tuple(made)

    return typed


class RegisteredPlaces:
    """Registered locations, and the partition that is registered at each.

    Args:
        places: canonical URIs, and names.

    Attributes:
        doubled: names of partitions at the place of an earlier one, and its name: engines read
            those rows twice.
    """

    def __init__(self, places: Iterable[tuple[str, str]]) -> None:
        self._names: dict[str, str] = {}
        self.doubled: list[tuple[str, str]] = []
        for place, name in places:
            if self._names.setdefault(place, name) != name:
                self.doubled.append((name, self._names[place]))
        self._sorted = sorted(f"{place}/" for place in self._names)

    def __contains__(self, place: str) -> bool:
        return place in self._names

    def holds(self, place: str, recursive: bool) -> bool:
        """Whether the files directly in a directory are read with a partition."""
        if place in self._names or not recursive:
            return place in self._names
        return "/" in place and self.holds(place.rpartition("/")[0], recursive)

    def claim(self, place: str) -> str | None:
        """Why a directory is not registered: in words, who holds it or a part of it; or None."""
        if place in self._names:
            return f"it is registered as {self._names[place]}"
        above = place
        while above.rpartition("/")[0].count("/") >= 2:
            above = above.rpartition("/")[0]
            if above in self._names:
                return f"it is below {above}, where {self._names[above]} is registered"
        at = bisect_left(self._sorted, f"{place}/")
        if at < len(self._sorted) and self._sorted[at].startswith(f"{place}/"):
            below = self._sorted[at][:-1]
            return f"it is above {below}, where {self._names[below]} is registered"
        return None
