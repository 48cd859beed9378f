"""Building and refreshing an index: list, compare, read what is new, commit one generation.

The law: an entry describes exactly the bytes that its (path, size, mtime, etag) identify. Each file
is checked before and after it is read. A file modified within the clock's grain is read but not
trusted. A file that could not be read gets an entry that holds only the reason, and is retried when
it changes.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from bridge.index.building.collect import Collector, Nan
from bridge.index.building.draft import (
    SHARD_ENTRIES,
    Draft,
    SettingsChange,
    keep_settings,
    known_shards,
)
from bridge.index.building.listed import Listed, ListFiles
from bridge.index.building.work import Progress, Steps, Work
from bridge.index.generations.store import IndexStore
from bridge.kernel.errors import IndexConflict
from bridge.table.model import CatalogTable

_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did.

    Attributes:
        generation: the generation that describes the table now.
        committed: whether this build committed it; False if nothing had changed.
        files: all files of the table.
        read: files read by this build.
        removed: entries removed because their files were deleted or changed.
        untrusted: files read too soon after they were written, or that could not be read.
        failed: URI and reason for each file that could not be read.
        refused: name and reason for each partition that could not be listed.
        bytes_written: bytes written to storage.
    """

    generation: int
    committed: bool
    files: int
    read: int
    removed: int
    untrusted: int
    failed: tuple[tuple[str, str], ...]
    refused: tuple[tuple[str, str], ...]
    bytes_written: int
    seconds: float


def build_index(
    table: CatalogTable,
    list_files: ListFiles,
    store: IndexStore,
    *,
    collector: Collector,
    nan: Nan = "footer",
    progress: Progress | None = None,
    full: bool = False,
    settings: SettingsChange = keep_settings,
    files_per_commit: int = 0,
    shard_entries: int = SHARD_ENTRIES,
) -> BuildReport:
    """Brings the index of a table up to date: a first build, a refresh or a rebuild.

    Args:
        list_files: lists the files of the table; see `bridge.index.building.listed`.
        collector: reads the files.
        nan: ``scan`` reads float columns to count NaN. Files whose entries lack the counts are
            read again.
        progress: called with the number of files read and the number of files to read.
        full: reads every file again.
        settings: maps the current settings of the index to the new ones. Files that a new
            definition does not cover yet are read again. A refresh keeps the settings.
        files_per_commit: commits a generation each time this many files were read. Planners use
            each generation, and a build that dies resumes from the last one. 0 commits once.
        shard_entries: starts a new shard after this many entries, one per file and column.

    Errors:
        IndexConflict: other builders committed first, several times in a row.
        StorageFailure, StorageFull, InvalidUri: earlier commits of this build remain.
    """
    known = known_shards(store)
    listed = list_files()
    work = Work.over(len(listed.files))
    build = Draft(table, store, listed, work, nan, shard_entries, known=known)
    return _bring_up(build, list_files, collector, progress, full, settings, files_per_commit)


def refresh_partitions(
    table: CatalogTable,
    names: Collection[str],
    list_files: ListFiles,
    store: IndexStore,
    *,
    collector: Collector,
) -> BuildReport:
    """Brings the entries of some partitions up to date in the newest generation, as a refresh does.

    Args:
        names: the partitions; one that is not there any more has no files.
        list_files: lists all files of these partitions.

    Errors: those of `add_files`.
    """
    known = known_shards(store)
    listed = list_files()
    work = Work.over(len(listed.files))
    build = Draft(
        table, store, listed, work, "footer", SHARD_ENTRIES, partial=True, whole=names, known=known
    )
    return _bring_up(build, list_files, collector, None, False, keep_settings, 0)


def add_files(
    table: CatalogTable,
    listed: Listed,
    store: IndexStore,
    *,
    collector: Collector,
    nan: Nan = "footer",
    progress: Progress | None = None,
    settings: SettingsChange = keep_settings,
    shard_entries: int = SHARD_ENTRIES,
) -> BuildReport:
    """Adds some files to the newest generation of a table's index.

    The entries of all other files are kept. If there is no index yet, the new generation is marked
    incomplete, because it does not name all files of the table.

    Args:
        listed: the files as they are now, sorted by path, each once.
        settings: used only if there is no index yet; an existing index keeps its settings.
        shard_entries: as for `build_index`.

    Errors:
        IndexCorrupt: the index is damaged or of an older version; a build replaces it.
        IndexConflict, StorageFailure, StorageFull: nothing was committed.
    """
    work = Work.over(len(listed.files))
    build = Draft(table, store, listed, work, nan, shard_entries, partial=True)
    return _bring_up(build, lambda: listed, collector, progress, False, settings, 0)


def _bring_up(
    build: Draft,
    list_files: ListFiles,
    collector: Collector,
    progress: Progress | None,
    full: bool,
    settings: SettingsChange,
    files_per_commit: int,
) -> BuildReport:
    """Reads missing files and commits, until the index covers all listed files."""
    started, work = time.monotonic(), build.work
    steps = Steps(files_per_commit, progress)
    conflicts = gone = 0
    while True:
        base, entries, number = build.base(full, settings)
        build.cover_clustered(collector, full)
        missing = build.missing(entries, base)
        # A full rebuild commits once: its first commit would drop all other entries.
        part = steps.next(missing, build.modified, work, whole=full and number > 1)
        if len(part):
            build.collect(part, entries, collector, steps.tick)
        if build.cleaned_away():
            conflicts += 1
            if conflicts == _ATTEMPTS:
                raise IndexConflict(
                    f"another process deletes files of this build below {build.store.root}",
                    "find the process that cleans this index",
                )
            continue
        try:
            complete = len(part) == len(missing)
            manifest, removed = build.commit(base, entries, number, complete and not build.refused)
        except IndexConflict:
            conflicts += 1
            if conflicts == _ATTEMPTS:
                raise
            # The other builder may have indexed newer files. List again, or their entries would
            # be removed as deleted. Files that either build has read are not read again.
            full = False
            build.relist(list_files)
            continue
        gone += removed
        if complete:
            break
        conflicts, full, settings = 0, False, keep_settings  # the base has them now
        work.begin_anew()
    return BuildReport(
        generation=manifest.generation,
        committed=manifest.builder == work.builder or work.committed > 0,
        files=len(work.ordinal),
        read=work.read,
        removed=gone,
        untrusted=work.doubted,
        failed=tuple(work.failed),
        refused=build.refused,
        bytes_written=work.written,
        seconds=time.monotonic() - started,
    )
