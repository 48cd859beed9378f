"""Finds the files that a user adds, and refuses those that would be added twice."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bridge.errors import FileUnreadable, InvalidRequest, InvalidUri, SegmentOverlap
from bridge.jobs.compose import absolute_location
from bridge.storage.port import FileStat, FileTable, Storage, data_files
from bridge.storage.uri import canonical, relative
from bridge.table.segments.log import DIRECTORY, SegmentLog
from bridge.table.segments.manifest import Manifest, Status

_THREADS = 16
_SURROGATE = re.compile("[\ud800-\udfff]")
_HELD = (Status.SUCCESS, Status.DISABLED)
"""States of segments whose files belong to the table."""


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


def find_fact_files(storage: Storage, root: str, paths: Sequence[str]) -> FactFiles:
    """The files below the paths; directories are searched to their full depth.

    Hidden files in directories, whose names begin with ``_`` or ``.``, are left out.

    Args:
        root: the table's own directory.

    Errors:
        FileUnreadable: there is nothing at a path.
        SegmentOverlap: two paths lead to the same file.
        InvalidRequest: no data, or a file of the table's own.
    """
    uris = [canonical(absolute_location(path)) for path in split_paths(paths)]
    for uri in uris:
        if _SURROGATE.search(uri):
            raise InvalidUri(f"{uri!r} is not UTF-8", "rename the file")
    owner: dict[str, str] = {}
    found: list[FileStat] = []
    empty: list[str] = []
    for uri in uris:
        below = relative(f"{root}/{DIRECTORY}", uri)
        if uri == f"{root}/{DIRECTORY}" or below is not None:
            raise InvalidRequest(f"{uri} is the table's own directory", "give fact files")
        stats, hollow = _look(storage, uri)
        for stat in stats:
            real = _real(stat.uri)
            if real in owner:
                raise SegmentOverlap(
                    f"{stat.uri} is below {owner[real]} and below {uri}"
                    if owner[real] != uri
                    else f"{uri} is named twice, or leads to {stat.uri} twice",
                    "name each file once",
                )
            owner[real] = uri
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


def refuse_overlap(log: SegmentLog, manifest: Manifest, files: FileTable) -> None:
    """Errors: SegmentOverlap: a segment of the table has one of the files."""
    given = files.paths.to_pylist()
    wanted = dict(zip(_all_real(given), given, strict=True))
    for segment in manifest.segments:
        if segment.status not in _HELD:
            continue
        held = _all_real(log.read_files(segment.files).files.paths.to_pylist())
        both = sorted(wanted[real] for real in wanted.keys() & held)
        if both:
            more = f" and {len(both) - 1} more files" if len(both) > 1 else ""
            raise SegmentOverlap(
                f"{both[0]}{more} of this command belong to segment {segment.id} already",
                f"leave them out, or delete segment {segment.id} first (its facts stay); a file "
                "that was rewritten: skipbridge segment refresh",
            )


def restat(storage: Storage, files: FileTable) -> tuple[list[FileStat], list[str]]:
    """The present state of files, and the URIs of those that are gone."""
    uris = files.paths.to_pylist()
    with ThreadPoolExecutor(_THREADS) as pool:
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
    files = data_files(everything, uri)
    etags = [None] * len(files) if files.etags is None else files.etags.to_pylist()
    rows = zip(
        files.paths.to_pylist(), files.sizes.tolist(), files.modified.tolist(), etags, strict=True
    )
    return [FileStat(*row) for row in rows], []


def _real(uri: str) -> str:
    """The file that a local link leads to; other URIs stay."""
    path = uri.removeprefix("file://")
    return uri if path == uri else os.path.realpath(path)


def _all_real(uris: Sequence[str]) -> list[str]:
    """`_real` of each; a directory is looked at once."""
    directories: dict[str, str] = {}
    found: list[str] = []
    for uri in uris:
        directory, _, name = uri.rpartition("/")
        if not uri.startswith("file://"):
            found.append(uri)
            continue
        if directory not in directories:
            directories[directory] = _real(f"{directory}/").rstrip("/")
        path = f"{directories[directory]}/{name}"
        found.append(os.path.realpath(path) if Path(path).is_symlink() else path)
    return found
