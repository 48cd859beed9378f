"""The place of a fact file, by which a table has each file once, however it is spelled.

The law (correctness 45): two files of a table are never the same file. A local file's place is
where links lead, and hard links and mounts are told by device and inode. The log keeps the place as
it was committed: a link that has moved since still owns the file that it led to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from bridge.kernel.errors import InvalidRequest, SegmentOverlap
from bridge.segments.commands.manage import HELD
from bridge.storage.port import FileTable
from bridge.storage.uri import parse
from bridge.table.segments.log import DIRECTORY, FactPlaces, SegmentFiles, SegmentLog
from bridge.table.segments.manifest import SegmentManifest

_LOCAL, _HDFS = "file://", "hdfs://"
_OWN = frozenset({DIRECTORY, ".skipbridge"})
Key = tuple[object, ...]


def resolve_links(uri: str) -> str:
    """Where local links lead; the name node's usual port; other URIs stay."""
    if uri.startswith(_HDFS):
        place = parse(uri)
        bare = place.authority and ":" not in place.authority
        return f"{_HDFS}{place.authority}:8020/{place.path}" if bare else uri
    path = uri.removeprefix(_LOCAL)
    return uri if path == uri else os.path.realpath(path)


def resolve_all_links(uris: Sequence[str]) -> list[str]:
    """`resolve_links` of each; a local directory is looked at once."""
    directories: dict[str, str] = {}
    found: list[str] = []
    for uri in uris:
        directory, _, name = uri.rpartition("/")
        if not uri.startswith(_LOCAL):
            found.append(resolve_links(uri))
            continue
        if directory not in directories:
            directories[directory] = resolve_links(f"{directory}/").rstrip("/")
        path = f"{directories[directory]}/{name}"
        found.append(os.path.realpath(path) if Path(path).is_symlink() else path)
    return found


def places_of(files: FileTable) -> FactPlaces:
    """The places of files as they are now."""
    uris = files.paths.to_pylist()
    places = resolve_all_links(uris)
    nodes: list[str | None] = [None] * len(uris)
    for i, (uri, place) in enumerate(zip(uris, places, strict=True)):
        if uri.startswith(_LOCAL):
            with suppress(OSError):
                found = Path(place).stat()
                nodes[i] = f"{found.st_dev}:{found.st_ino}"
    return FactPlaces(pa.array(places, pa.large_string()), pa.array(nodes, pa.large_string()))


def refuse_own(uri: str, place: str | None = None) -> None:
    """Errors: InvalidRequest: it is, or leads to, a place among the files of skipbridge's own."""
    for one in (uri, resolve_links(uri) if place is None else place):
        if not _OWN.isdisjoint(one.split("/")):
            raise InvalidRequest(
                f"{uri} is among skipbridge's own files"
                + (f", as {one}" if one != uri else "")
                + ", which its commands delete",
                "give a place without a directory _segments or .skipbridge",
            )


def refuse_overlap(
    log: SegmentLog, manifest: SegmentManifest, wanted: Mapping[str, FileTable]
) -> None:
    """Refuses files that the table would have twice.

    Args:
        wanted: files by the id of the segment that will have them, whatever it has now.

    Errors:
        SegmentOverlap.
    """
    owner: dict[Key, str] = {}
    for files in wanted.values():
        for uri, keys in _keys(files, places_of(files)):
            for key in keys:
                other = owner.setdefault(key, uri)
                if other != uri:
                    raise SegmentOverlap(
                        f"{uri} and {other} are the same file",
                        "name each file once, or delete one of the segments that have it first",
                    )
    for segment in manifest.segments:
        if segment.status not in HELD or segment.id in wanted:
            continue
        held = log.read_files(segment.files)
        both = {owner[key] for key in _held_keys(held) if key in owner}
        if both:
            more = f" and {len(both) - 1} more files" if len(both) > 1 else ""
            raise SegmentOverlap(
                f"{min(both)}{more} of this command belong to segment {segment.id} already",
                f"leave them out, or delete segment {segment.id} first (its facts stay); a file "
                "that was rewritten: skipbridge segment refresh",
            )


def _held_keys(held: SegmentFiles) -> Iterator[Key]:
    """As committed, and as links lead now."""
    for _, keys in _keys(held.files, held.places, committed=True):
        yield from keys
    for _, keys in _keys(held.files, places_of(held.files)):
        yield from keys


def _keys(
    files: FileTable, places: FactPlaces, *, committed: bool = False
) -> Iterator[tuple[str, list[Key]]]:
    """What each file is known by. Inodes are given anew: a committed one counts with its state."""
    rows = zip(
        files.paths.to_pylist(), files.sizes.tolist(), files.modified.tolist(),
        places.places.to_pylist(), places.nodes.to_pylist(), strict=True,
    )  # fmt: skip
    for uri, size, modified, place, node in rows:
        keys: list[Key] = [(uri if place is None else place,)]
        if node is not None:
            keys.append((node, size, modified))
            if not committed:
                keys.append(("node", node))
        if uri.startswith(_HDFS):  # a cluster has several names
            keys.append((parse(uri).path, size, modified))
        yield uri, keys
