"""Finds the files that a user adds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bridge.kernel.errors import FileUnreadable, InvalidRequest, InvalidUri, SegmentOverlap
from bridge.kernel.threads import Threads
from bridge.runtime.compose import absolute_location
from bridge.segments.commands.places import refuse_own, resolve_links
from bridge.storage.port import FileStat, FileTable, Storage, data_files
from bridge.storage.uri import canonical

_THREADS = 16
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FactFiles:
    """Files found below the paths of one command.

    Attributes:
        paths: canonical URIs of what was given.
        files: sorted by path, each once.
        empty: URIs of files without a byte, which hold no rows and are left out.
    """

    paths: tuple[str, ...]
    files: FileTable
    empty: tuple[str, ...]


def split_paths(paths: Sequence[str]) -> list[str]:
    """The single paths of ``'p1,p2'``. Errors: InvalidRequest: there is none."""
    found = [part.strip() for text in paths for part in text.split(",")]
    if not found or not all(found):
        raise InvalidRequest(
            f"{', '.join(repr(p) for p in paths) or 'nothing'} does not name paths",
            "give files and directories, separated by commas",
        )
    return found


def find_fact_files(storage: Storage, paths: Sequence[str]) -> FactFiles:
    """The files below the paths; directories are searched to their full depth.

    Hidden files in directories, whose names begin with ``_`` or ``.``, are left out.

    Errors:
        FileUnreadable: there is nothing at a path.
        SegmentOverlap: two paths lead to the same file.
        InvalidRequest: no data, or a file of skipbridge's own, of whatever table.
    """
    uris = [canonical(absolute_location(path)) for path in split_paths(paths)]
    for uri in uris:
        if _SURROGATE.search(uri):
            raise InvalidUri(f"{uri!r} is not UTF-8", "rename the file")
    owner: dict[str, str] = {}
    found: list[FileStat] = []
    empty: list[str] = []
    for uri in uris:
        refuse_own(uri)
        stats, hollow = _look(storage, uri)
        for stat in stats:
            place = resolve_links(stat.uri)
            refuse_own(stat.uri, place)
            if place in owner:
                raise SegmentOverlap(
                    f"{stat.uri} is below {owner[place]} and below {uri}"
                    if owner[place] != uri
                    else f"{uri} is named twice, or leads to {stat.uri} twice",
                    "name each file once",
                )
            owner[place] = uri
        found += stats
        empty += hollow
    if len(set(uris)) < len(uris):
        raise SegmentOverlap(f"a path is named twice among {', '.join(uris)}", "name each once")
    if not found:
        raise InvalidRequest(
            f"there are no data files at {', '.join(uris)}",
            "files that are empty, or whose names begin with '_' or '.', hold no rows",
        )
    return FactFiles(tuple(uris), file_table(found), tuple(empty))


def restat(storage: Storage, files: FileTable) -> tuple[list[FileStat], list[str]]:
    """The present state of files, and the URIs of those that are gone."""
    uris = files.paths.to_pylist()
    with Threads(_THREADS, "facts") as pool:
        stats = list(pool.map(storage.stat, uris))
    found = [stat for stat in stats if stat is not None]
    return found, [uri for uri, stat in zip(uris, stats, strict=True) if stat is None]


def file_table(stats: Sequence[FileStat]) -> FileTable:
    """The files as columns, sorted by path."""
    stats = sorted(stats, key=lambda stat: stat.uri.encode())
    etags = [stat.etag for stat in stats]
    return FileTable(
        pa.array([stat.uri for stat in stats], pa.large_string()),
        np.array([stat.size for stat in stats], np.int64),
        np.array([stat.modified for stat in stats], np.int64),
        pa.array(etags, pa.large_string()) if any(etags) else None,
    )


def _look(storage: Storage, uri: str) -> tuple[list[FileStat], list[str]]:
    stat = storage.stat(uri)
    if stat is not None:
        return ([stat], []) if stat.size else ([], [uri])
    everything = storage.list_all(uri)
    if not len(everything) and not (storage.has_directories(uri) and storage.directory_exists(uri)):
        raise FileUnreadable(f"there is no file and no directory {uri}", "check the path")
    return data_files(everything, uri).stats(), []
