"""The log of a table of segments: versions committed by atomic creation, and lists of files.

::

    <root>/_segments/versions/00000000000000000041.json   version 41
    <root>/_segments/files/<id>.parquet                   the files of a segment; immutable
    <root>/_segments/views/<view>/<id>.parquet            rows of a view; immutable

A commit creates the next version if it does not exist. Nothing else changes what readers see, so a
command that dies before its commit leaves the table as it was. If the newest version is damaged,
the table is not read: an older version is never taken for the newest (correctness 21).
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.parquet.tables import table_from_bytes, table_to_bytes
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import (
    BridgeError,
    ReadVersionNotFound,
    SegmentConflict,
    SegmentLogCorrupt,
    TableExists,
    TableNotFound,
)
from bridge.kernel.retry import Backoff
from bridge.storage.commit_log import CommitLog, read_record
from bridge.storage.port import EMPTY, FileStat, FileTable, Storage
from bridge.storage.store_clock import store_now
from bridge.storage.uri import canonical, join
from bridge.table.segments.manifest import (
    REMEDY,
    FileSet,
    LogFile,
    SegmentManifest,
    TableDefinition,
    parse_manifest,
)

DIRECTORY = "_segments"
VERSIONS = f"{DIRECTORY}/versions"
FILES = f"{DIRECTORY}/files"
VIEWS = f"{DIRECTORY}/views"
_ATTEMPTS = 50
_CACHED = 256
ManifestChange = Callable[[SegmentManifest], SegmentManifest]
"""Makes the next state from the newest one. It may run several times, and checks what it needs."""


@dataclass(frozen=True, slots=True)
class FactPlaces:
    """Where files lay when they were committed; large_string[n], null: not recorded.

    Attributes:
        places: local paths without links, or URIs.
        nodes: ``device:inode`` of local files.
    """

    places: pa.Array
    nodes: pa.Array

    @staticmethod
    def unknown(count: int) -> FactPlaces:
        nothing = pa.nulls(count, pa.large_string())
        return FactPlaces(nothing, nothing)

    @staticmethod
    def join(parts: Sequence[FactPlaces]) -> FactPlaces:
        return FactPlaces(
            pa.concat_arrays([one.places for one in parts]),
            pa.concat_arrays([one.nodes for one in parts]),
        )


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The files of a segment, sorted by path.

    Attributes:
        reader: of each file, as an index into the segment's readers; int32[n].
        partitions: the name of the partition of each file, such as ``day=2024-05-01``; empty where
            the table had no partition columns.
    """

    files: FileTable
    reader: npt.NDArray[np.int32]
    places: FactPlaces
    partitions: pa.DictionaryArray


_FILE_SETS: BoundedCache[str, SegmentFiles] = BoundedCache(_CACHED)
"""File lists read lately, by checksum."""


class SegmentLog:
    """Reads and commits versions; safe for threads.

    Args:
        root: canonical URI of the table's own directory.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage = storage
        self.root = canonical(root)
        self._log = CommitLog(storage, join(self.root, VERSIONS), digits=20)
        self._last: tuple[FileStat, SegmentManifest] | None = None

    def versions(self) -> list[int]:
        """The numbers of all versions that are kept, ascending."""
        return [number for number, _ in self._log.records()]

    def newest(self) -> SegmentManifest | None:
        """The newest version, also of a dropped table; None if nothing was ever committed.

        Errors:
            SegmentLogCorrupt: it is damaged. StorageFailure.
        """
        for _ in range(3):
            listed = self._log.records()
            if not listed:
                return None
            number, identity = listed[-1]
            if self._last is not None and self._last[0] == identity:
                return self._last[1]
            try:
                found = self.manifest(number)
            except ReadVersionNotFound:  # cleaned since it was listed: a newer one exists
                continue
            self._last = identity, found
            return found
        raise SegmentLogCorrupt(f"the newest version below {self.root} comes and goes", REMEDY)

    def latest(self, *, dropped: bool = False) -> SegmentManifest:
        """The newest version of a table that exists.

        Args:
            dropped: also of a table that was dropped.

        Errors:
            TableNotFound: the table was dropped.
            SegmentLogCorrupt: there is no version, or the newest is damaged.
        """
        found = self.newest()
        if found is None:
            raise SegmentLogCorrupt(
                f"{join(self.root, VERSIONS)} holds no version",
                f"drop the table if CREATE TABLE LIKE made it, which copies no segments; {REMEDY}",
            )
        if found.dropped and not dropped:
            raise TableNotFound(f"the table of segments at {self.root} was dropped", "create it")
        return found

    def manifest(self, version: int) -> SegmentManifest:
        """A version by number. Errors: ReadVersionNotFound, SegmentLogCorrupt, StorageFailure."""
        found = self._log.read(version, lambda raw: self._parse(raw, version))
        if found is None:
            raise ReadVersionNotFound(
                f"there is no version {version} of the table at {self.root}",
                f"kept are {self.versions() or 'none'}",
            )
        return found

    def _parse(self, raw: bytes, version: int) -> SegmentManifest:
        name = self._name(version)
        found = parse_manifest(raw, name)
        if found.version != version:
            raise SegmentLogCorrupt(f"{name} says it is version {found.version}", REMEDY)
        if found.root not in ("", self.root):
            # The table was moved or copied. Its views' files are named by their old places.
            bare = tuple(replace(s, views=()) for s in found.segments)
            return replace(found, segments=bare)
        return found

    def create(self, definition: TableDefinition, *, dropped: bool = False) -> SegmentManifest:
        """Commits the first version of a table.

        Args:
            dropped: there is no table until `revive`: a command that dies before leaves none.

        Errors:
            TableExists: there is a table at this place.
        """
        held = self.newest()
        if held is not None and not held.dropped:
            raise TableExists(
                f"{self.root} holds a table of segments already",
                "choose another --location, or drop that table first (its facts stay)",
            )
        before = 0 if held is None else held.version
        committed = self._commit(
            SegmentManifest(before, "", 0, "CREATE TABLE", definition, dropped=dropped)
        )
        if committed is None:
            raise self._made_by_another()
        return committed

    def drop(self) -> SegmentManifest:
        """Marks the table as dropped, also if it is. Nothing is deleted.

        A command that was about to `revive` an older mark fails then.

        Errors: as `commit`.
        """
        return self.commit("DROP TABLE", lambda now: replace(now, dropped=True), dropped=True)

    def revive(self, mark: SegmentManifest, operation: str) -> SegmentManifest:
        """Makes the table of a dropped version one that exists.

        Errors:
            TableExists: another command has committed since the mark.
        """
        held = self.newest()
        if held is not None and held.committer == mark.committer:
            made = self._commit(replace(held, dropped=False, operation=operation))
            if made is not None:
                return made
        raise self._made_by_another()

    def forget(self, mark: SegmentManifest) -> None:
        """Deletes a mark that `create` made and nobody revived."""
        held = self.newest()
        if held is not None and held.committer == mark.committer:
            self.storage.delete(self._name(mark.version))

    def _made_by_another(self) -> TableExists:
        return TableExists(
            f"another command has just made or dropped a table of segments at {self.root}",
            "look what is there, or choose another --location",
        )

    def commit(
        self, operation: str, change: ManifestChange, *, dropped: bool = False
    ) -> SegmentManifest:
        """Commits what ``change`` makes of the newest version; ``dropped`` as for `latest`.

        If another command commits first, ``change`` is asked again about its version. If ``change``
        returns the very manifest it got, nothing is committed.

        Errors:
            SegmentConflict: others committed first each time.
            SegmentLogCorrupt: the newest version, or a file list of the new one, is damaged.
            StorageFailure, StorageFull: not committed, as far as this process can tell.
        """
        for _ in Backoff(0.01, growth=1.3, longest=0.5, attempts=_ATTEMPTS):
            held = self.latest(dropped=dropped)
            wanted = change(held)
            if wanted is held:
                return held
            self._require(wanted, held)
            committed = self._commit(replace(wanted, version=held.version, operation=operation))
            if committed is not None:
                if not self._came_late(committed.version, held):
                    return committed
                self.storage.delete(self._name(committed.version))
        raise SegmentConflict(
            f"{_ATTEMPTS} other commands changed the table at {self.root} before {operation} could",
            "run the command again",
        )

    def _commit(self, wanted: SegmentManifest) -> SegmentManifest | None:
        """Creates the version after ``wanted.version``; None if another command made it."""
        number = wanted.version + 1
        made = replace(
            wanted,
            version=number,
            committer=uuid.uuid4().hex,
            created=time.time_ns() // 1000,
            root=self.root,
        )
        content = made.to_bytes()
        winner = self._parse(self._log.create(number, content), number)
        if winner.committer != made.committer:
            return None
        return parse_manifest(content, self._name(number))

    def put_files(
        self,
        files: FileTable,
        reader: npt.NDArray[np.int32] | None = None,
        places: FactPlaces | None = None,
        partitions: pa.Array | None = None,
    ) -> FileSet:
        """Writes a list of files. No version names it yet."""
        numbers = np.zeros(len(files), np.int32) if reader is None else reader
        order = pc.sort_indices(files.paths).to_numpy()
        held = FactPlaces.unknown(len(files)) if places is None else places
        files, numbers = files.take(order), numbers[order]
        etags = files.etags if files.etags is not None else pa.nulls(len(files), pa.large_string())
        told = {} if partitions is None else {"partition": partitions.take(pa.array(order))}
        table = pa.table(
            {
                "path": files.paths,
                "size": files.sizes,
                "modified": files.modified,
                "etag": etags,
                "reader": numbers,
                "place": held.places.take(pa.array(order)),
                "node": held.nodes.take(pa.array(order)),
                **told,
            }
        )
        content = table_to_bytes(table)
        name = f"{FILES}/{uuid.uuid4().hex}.parquet"
        self.storage.put(join(self.root, name), content)
        blob = LogFile(name, len(content), hashlib.sha256(content).hexdigest())
        return FileSet(blob, len(files), int(files.sizes.sum()))

    def read_files(self, held: FileSet) -> SegmentFiles:
        """A list of files. Errors: SegmentLogCorrupt: gone or damaged."""
        blob = held.blob
        found = _FILE_SETS.get(blob.sha256)
        if found is not None:
            return found
        if ".." in blob.name or blob.name.startswith("/"):
            raise SegmentLogCorrupt(f"{blob.name} is no file below {self.root}", REMEDY)
        uri = join(self.root, blob.name)

        def parse(content: bytes) -> bytes:
            if hashlib.sha256(content).hexdigest() == blob.sha256:
                return content
            raise SegmentLogCorrupt(f"{uri} does not match its checksum {blob.sha256[:12]}", REMEDY)

        content = read_record(self.storage, uri, parse)
        if content is None:
            raise SegmentLogCorrupt(f"{uri} is gone", REMEDY)
        table = table_from_bytes(content).combine_chunks()
        found = _segment_files(table)
        if len(found.files) != held.count:
            raise SegmentLogCorrupt(f"{uri} does not hold {held.count} files", REMEDY)
        _FILE_SETS.put(blob.sha256, found)
        return found

    def clean(
        self,
        keep: int = 3,
        older_than: float = 3600.0,
        *,
        running: float = 0.0,
        dry_run: SegmentManifest | None = None,
    ) -> int:
        """Deletes old versions, and files of the table's own that no kept version names.

        Fact files are never deleted: nothing outside ``_segments`` is.

        Args:
            keep: how many of the newest versions to keep.
            older_than: seconds. Younger files are kept: a running command may own them. So are
                versions that were the newest at any time since: a running query may read them.
            running: seconds. Younger files that no version ever named are kept in any case.
            dry_run: deletes nothing, and counts as if this version were the newest.

        Returns:
            The number of files that were, or with ``dry_run`` would be, deleted.

        Errors:
            SegmentLogCorrupt: a kept version is damaged; nothing was deleted.
        """
        now = time.time_ns() // 1000
        if dry_run is None:
            now = store_now(self.storage, join(self.root, VERSIONS))
        limit = now - int(older_than * 1_000_000)
        listing = self.storage.list_all(join(self.root, VERSIONS), recursive=False)
        ages = dict(zip(listing.paths.to_pylist(), listing.modified.tolist(), strict=True))
        numbers = self.versions()
        if dry_run is not None and dry_run.version not in numbers:
            ages[self._name(dry_run.version)] = now - 1
            numbers.append(dry_run.version)
        kept = set(numbers[-max(keep, 1) :])
        young = {n for n in numbers if ages.get(self._name(n), limit) >= limit}
        followed = {n for n, after in pairwise(numbers) if after in young}
        kept |= young | followed
        alive: set[str] = set()
        indexed: set[str] = set()

        def keep_all_of(manifest: SegmentManifest) -> None:
            alive.update(self.names(manifest))
            indexed.update(self.view_directories(manifest))

        for number in sorted(kept):
            if dry_run is not None and number == dry_run.version:
                keep_all_of(dry_run)
            else:
                keep_all_of(self.manifest(number))
        doomed = [self._name(n) for n in numbers if n not in kept]
        unnamed = min(limit, now - int(running * 1_000_000))
        dead = self._names_of([n for n in numbers if n not in kept]) if unnamed < limit else set()
        for place in (FILES, VIEWS):
            found = self.storage.list_all(join(self.root, place))
            for i in np.flatnonzero(found.modified < limit).tolist():
                path = found.paths[i].as_py()
                if found.modified[i] < unnamed or path in dead:
                    doomed.append(path)
        last = max(kept, default=0)
        for number in [n for n in self.versions() if n > last]:  # committed in the meantime
            keep_all_of(self.manifest(number))
        # The index of a view lies beside its files, and cleans itself.
        doomed = [
            path
            for path in doomed
            if path not in alive and path.rpartition("/.skipbridge/")[0] not in indexed
        ]
        for path in doomed if dry_run is None else []:
            self.storage.delete(path)
        return len(doomed)

    def _names_of(self, numbers: Sequence[int]) -> set[str]:
        """What some versions name, as far as they can be read."""
        found: set[str] = set()
        for number in numbers:
            with suppress(BridgeError):
                found |= self.names(self.manifest(number))
        return found

    def names(self, manifest: SegmentManifest) -> set[str]:
        """URIs of all files of its own that a version needs."""
        found = {join(self.root, blob.name) for blob in manifest.blobs()}
        for segment in manifest.segments:
            for view in segment.views:
                found |= set(self.read_files(view.files).files.paths.to_pylist())
        return found

    def view_directories(self, manifest: SegmentManifest) -> set[str]:
        """URIs of the directories of all views that a version defines."""
        return {join(self.root, f"{VIEWS}/{view.id}") for view in manifest.definition.views}

    def _require(self, wanted: SegmentManifest, held: SegmentManifest) -> None:
        """Errors: SegmentLogCorrupt: a file that is new was deleted by a cleaner."""
        known = {blob.name for blob in held.blobs()}
        new = {join(self.root, b.name): b.size for b in wanted.blobs() if b.name not in known}
        for segment in wanted.segments:
            for view in segment.views:
                if view.files.blob.name not in known:
                    files = self.read_files(view.files).files
                    new |= dict(zip(files.paths.to_pylist(), files.sizes.tolist(), strict=True))
        for uri, size in new.items():
            state = self.storage.stat(uri)
            if state is None or state.size != size:
                there = "was deleted" if state is None else f"got {state.size} of {size} bytes"
                raise SegmentLogCorrupt(
                    f"{uri} {there} before it was committed",
                    "run the command again; find out who cleans this directory",
                )

    def _came_late(self, number: int, held: SegmentManifest) -> bool:
        """Whether a version that was just created follows none.

        While this process stood still, others may have committed its number and deleted it again:
        a cleanup, or a drop after which another table was made here.
        """
        try:
            numbers = self.versions()
            if held.version in numbers:
                return self.manifest(held.version).committer != held.committer
            if numbers[-1] > number:
                return True
            before = [n for n in numbers if n < number]
            return bool(before) and self.manifest(before[-1]).definition.id != held.definition.id
        except BridgeError:
            return False  # it was created, and nothing speaks against it

    def _name(self, version: int) -> str:
        return self._log.name(version)


def _segment_files(table: pa.Table) -> SegmentFiles:
    if not len(table):
        return SegmentFiles(EMPTY, np.empty(0, np.int32), FactPlaces.unknown(0), _one_partition(0))
    etags = table["etag"].combine_chunks()
    files = FileTable(
        _array(table["path"]).cast(pa.large_string()),
        _array(table["size"]).to_numpy(),
        _array(table["modified"]).to_numpy(),
        None if etags.null_count == len(etags) else _array(table["etag"]).cast(pa.large_string()),
    )
    places = FactPlaces.unknown(len(table))
    if "place" in table.column_names:  # lists of earlier programs have none
        places = FactPlaces(
            *(_array(table[name]).cast(pa.large_string()) for name in ("place", "node"))
        )
    if "partition" in table.column_names:
        partitions = _array(table["partition"]).cast(pa.large_string()).dictionary_encode()
    else:
        partitions = _one_partition(len(table))
    return SegmentFiles(files, _array(table["reader"]).to_numpy(), places, partitions)


def _one_partition(count: int) -> pa.DictionaryArray:
    names = pa.array([""], pa.large_string())
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), names)


def _array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
