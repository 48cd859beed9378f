"""The index of one table in storage: generations, shards, and atomic commits.

::

    <root>/generations/41.json        the manifest of generation 41
    <root>/shards/<id>-files.parquet  immutable; garbage if no manifest names it

A commit creates ``N+1.json`` if it does not exist. Readers see no other change. A builder that dies
before the commit leaves garbage, but never half an index (correctness 21).
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from bridge.errors import (
    BridgeError,
    FileUnreadable,
    GenerationNotFound,
    IndexConflict,
    IndexCorrupt,
    IndexNewer,
    StorageFailure,
)
from bridge.index.manifest import Blob, Manifest, parse_manifest
from bridge.storage.port import Range, Storage
from bridge.storage.store_clock import store_now
from bridge.storage.uri import canonical, join

_GENERATION = re.compile(r"/(\d{1,12})\.json$")
_UNFINISHED = re.compile(r"/\.[^/]+\.tmp$")
"""Temporary files left by a commit that died. The name is hidden, so it is never data."""
_AT_ONCE = 100
"""Files deleted before the generations are listed again."""
CLEANED_AFTER = 3600.0
"""Seconds after which a file that no generation names counts as garbage."""
MAX_BLOB = 4 * 1024**3
_REMEDY = "skipbridge index build rebuilds it"


@dataclasses.dataclass(frozen=True, slots=True)
class ListedManifest:
    """A manifest as a listing tells of it. While this is equal the manifest is, too.

    Attributes:
        modified: microseconds since the epoch.
        etag: None where the store has none.
    """

    generation: int
    size: int
    modified: int
    etag: str | None


class IndexStore:
    """Reads and commits generations.

    Args:
        root: canonical URI of the table's index.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage = storage
        self.root = canonical(root)
        self._seen = 0  # the highest generation that was read or written

    def generations(self) -> list[int]:
        """The numbers of all generations, ascending. Errors: StorageFailure."""
        return sorted(listed.generation for listed in self._listed())

    def newest(self) -> ListedManifest | None:
        """The newest generation's manifest as listed, in one request; None if there is none."""
        return max(self._listed(), key=lambda listed: listed.generation, default=None)

    def _listed(self) -> list[ListedManifest]:
        files = self.storage.list_all(join(self.root, "generations"), recursive=False)
        etags = [None] * len(files) if files.etags is None else files.etags.to_pylist()
        rows = zip(files.paths.to_pylist(), files.sizes, files.modified, etags, strict=True)
        found = [
            ListedManifest(int(match[1]), int(size), int(modified), etag)
            for path, size, modified, etag in rows
            if (match := _GENERATION.search(path))
        ]
        newest = max((listed.generation for listed in found), default=0)
        if newest < self._seen:
            if self.storage.stat(self._name(self._seen)) is not None:
                raise StorageFailure(
                    f"a listing of {self.root}/generations lacks generation {self._seen}, "
                    "which is there",
                    "check the store: it lists less than it holds",
                )
            self._seen = newest  # the index was dropped
        return found

    def latest(self, listed: ListedManifest | None = None) -> Manifest | None:
        """The newest generation; None if there is none.

        Args:
            listed: the result of `newest`, if it is at hand.

        Errors: IndexCorrupt, StorageFailure.
        """
        for _ in range(3):
            newest = listed if listed is not None else self.newest()
            if newest is None:
                return None
            try:
                return self.manifest(newest.generation)
            except GenerationNotFound:  # cleaned up since it was listed: a newer one exists
                listed = None
        return None

    def readable(
        self, generations: Sequence[int] | None = None
    ) -> tuple[Manifest | None, IndexCorrupt | None]:
        """The newest readable manifest.

        Args:
            generations: the result of `generations`, if it is at hand.

        Returns:
            The manifest, None if there is none; and the error of the newest damaged manifest, None
            if no newer one is damaged.

        Errors:
            IndexNewer: a later version of this program wrote a manifest.
            StorageFailure.
        """
        broken: IndexCorrupt | None = None
        for number in reversed(self.generations() if generations is None else generations):
            try:
                return self.manifest(number), broken
            except IndexNewer:
                raise
            except IndexCorrupt as error:
                broken = broken or error
            except GenerationNotFound:  # cleaned up since it was listed
                continue
        return None, broken

    def manifest(self, generation: int) -> Manifest:
        """A generation by number. Errors: GenerationNotFound, IndexCorrupt, StorageFailure."""
        name = self._name(generation)
        try:
            raw = self.storage.read(name)
        except FileUnreadable as error:
            if self.storage.stat(name) is not None:
                raise
            raise GenerationNotFound(
                f"generation {generation} of the index at {self.root} does not exist",
                f"there are {self.generations() or 'none'}",
            ) from error
        found = parse_manifest(raw, name)
        if found.generation != generation:
            raise IndexCorrupt(
                f"{name} says it is generation {found.generation}", "skipbridge index build"
            )
        self._seen = max(self._seen, generation)
        return found

    def put_blob(self, name: str, content: bytes, tail: int = 0) -> Blob:
        """Writes a file of the index.

        Args:
            name: relative to the root and never used before.
            tail: length in bytes of the part at the end that gets its own checksum.
        """
        self.storage.put(join(self.root, name), content)
        whole = hashlib.sha256(content).hexdigest()
        if not tail:
            return Blob(name, len(content), whole)
        return Blob(name, len(content), whole, tail, hashlib.sha256(content[-tail:]).hexdigest())

    def read_blob(self, blob: Blob) -> bytes:
        """A file of the index.

        Errors:
            IndexCorrupt: missing, too large, or damaged.
            FileUnreadable: it is there, and the store fails to give it. No reason to rebuild.
        """
        if ".." in blob.name or blob.name.startswith("/") or blob.size > MAX_BLOB:
            raise IndexCorrupt(
                f"{blob.name} of {blob.size} bytes is not a file of an index", _REMEDY
            )
        uri = join(self.root, blob.name)
        try:
            content = self.storage.read(uri)
        except FileUnreadable as error:
            remote = self.storage.is_remote(uri)
            state = self.storage.stat(uri) if remote else None
            if state is not None and state.size == blob.size:
                raise
            raise IndexCorrupt(f"{uri} is gone: {error.message}", _REMEDY) from error
        if len(content) != blob.size or hashlib.sha256(content).hexdigest() != blob.sha256:
            raise IndexCorrupt(f"{uri} does not match its checksum {blob.sha256[:12]}", _REMEDY)
        return content

    def read_part(self, blob: Blob, start: int, end: int) -> bytes:
        """A byte range of a file of the index. The caller checks the bytes.

        Errors:
            IndexCorrupt: missing or too short.
        """
        uri = join(self.root, blob.name)
        try:
            (part,) = self.storage.read_ranges(uri, [(start, end)])
        except FileUnreadable as error:
            raise IndexCorrupt(f"{uri} is gone or cut: {error.message}", _REMEDY) from error
        return part

    def read_tail(self, blob: Blob) -> bytes:
        """The tail of a file that has one. Errors: IndexCorrupt: missing or damaged."""
        part = self.read_part(blob, blob.size - blob.tail, blob.size)
        if hashlib.sha256(part).hexdigest() != blob.tail_sha256:
            raise IndexCorrupt(
                f"the end of {join(self.root, blob.name)} does not match its checksum "
                f"{blob.tail_sha256[:12]}",
                _REMEDY,
            )
        return part

    def read_slices(self, blob: Blob, ranges: Sequence[Range]) -> list[bytes]:
        """Byte ranges of a file of the index. The caller checks them. Errors: IndexCorrupt."""
        uri = join(self.root, blob.name)
        try:
            return self.storage.read_ranges(uri, ranges)
        except FileUnreadable as error:
            raise IndexCorrupt(f"{uri} is gone or cut: {error.message}", _REMEDY) from error

    def commit(self, manifest: Manifest) -> Manifest:
        """Makes a generation visible if its number is still free.

        Returns:
            The manifest as stored.

        Errors:
            IndexConflict: another builder committed this number. Build on top of its generation.
            StorageFailure, StorageFull: not committed, as far as this process can tell.
        """
        name = self._name(manifest.generation)
        content = manifest.to_bytes()
        try:
            created = self.storage.put_if_absent(name, content)
        except StorageFailure:
            created = False
            # The write may have succeeded although its response was lost: the stored file decides.
            if not self._lies_there(name):
                raise
        try:
            winner = self.manifest(manifest.generation)
        except GenerationNotFound as error:
            raise StorageFailure(
                f"the store says that it has written {name}, and it is not there", "check the store"
            ) from error
        if winner.builder != manifest.builder:
            raise IndexConflict(
                f"generation {manifest.generation} of {self.root} was committed by another "
                f"builder, {winner.builder}",
                "run skipbridge index refresh again",
            )
        newer = self._newer_unfounded(manifest.generation) if created else 0
        if newer:
            with suppress(StorageFailure):  # no reader takes it for the newest
                self.storage.delete(name)
            raise IndexConflict(
                f"generation {manifest.generation} of {self.root} was free, "
                f"but there is generation {newer}",
                "run skipbridge index refresh again",
            )
        self._seen = max(self._seen, manifest.generation)
        return parse_manifest(content, name)

    def _newer_unfounded(self, number: int) -> int:
        """A generation that came before a number that was just created; 0 if there is none.

        The number was chosen by a listing that lacked it, or while this process stood still.
        """
        try:
            numbers = self.generations()
        except BridgeError:
            return 0  # it was created, and nothing speaks against it
        return numbers[-1] if number - 1 not in numbers and numbers[-1:] > [number] else 0

    def _lies_there(self, name: str) -> bool:
        for attempt in range(3):
            try:
                return self.storage.stat(name) is not None
            except BridgeError:
                time.sleep(0.2 * 2**attempt)
        return False

    def clean(self, keep: int = 3, older_than: float = CLEANED_AFTER) -> int:
        """Deletes old generations, shards that no kept generation names, and files of dead writers.

        Args:
            keep: how many of the newest generations to keep.
            older_than: seconds by the store's clock. Younger files are kept: a running build may
                own them, or a planner may read them through an old generation.

        Returns:
            The number of deleted files; 0 while the newest manifest is damaged.

        Errors:
            IndexNewer, StorageFailure.
        """
        numbers = self.generations()
        _, broken = self.readable(numbers)
        if broken is not None:
            # Files that an unreadable manifest names cannot be told from garbage.
            return 0
        now = store_now(self.storage, join(self.root, "generations"))
        limit = now - int(older_than * 1_000_000)
        kept = numbers[-max(keep, 1) :]
        generations = self.storage.list_all(join(self.root, "generations"), recursive=False)
        age = dict(zip(generations.paths.to_pylist(), generations.modified.tolist(), strict=True))
        doomed = [n for n in numbers if n not in kept and age[self._name(n)] < limit]
        unfinished = [p for p, at in age.items() if _UNFINISHED.search(p) and at < limit]
        alive: set[str] = set()
        for number in set(numbers) - set(doomed):
            try:
                alive |= {join(self.root, blob.name) for blob in self.manifest(number).blobs()}
            except (IndexCorrupt, GenerationNotFound):
                continue
        for number in doomed:
            self.storage.delete(self._name(number))
        shards = self.storage.list_all(join(self.root, "shards"), recursive=False)
        old = np.flatnonzero(shards.modified < limit)
        garbage = [path for path in (shards.paths[i].as_py() for i in old) if path not in alive]
        deleted, seen = 0, numbers[-1] if numbers else 0
        for begin in range(0, len(garbage), _AT_ONCE):
            # A build that ran longer than ``older_than`` may have committed in the meantime.
            for number in [n for n in self.generations() if n > seen]:
                try:
                    alive |= {join(self.root, blob.name) for blob in self.manifest(number).blobs()}
                except GenerationNotFound:
                    continue
                except IndexCorrupt:
                    return len(doomed) + deleted
                seen = number
            for path in garbage[begin : begin + _AT_ONCE]:
                if path not in alive:
                    self.storage.delete(path)
                    deleted += 1
        for path in unfinished:
            self.storage.delete(path)
        return len(doomed) + deleted + len(unfinished)

    def lacks(self, blobs: Iterable[Blob]) -> Blob | None:
        """The first missing file; None if all exist. Errors: StorageFailure."""
        for blob in blobs:
            if self.storage.stat(join(self.root, blob.name)) is None:
                return blob
        return None

    def _name(self, generation: int) -> str:
        return join(self.root, f"generations/{generation}.json")


def new_id() -> str:
    """A unique id."""
    return uuid.uuid4().hex


def now_micros() -> int:
    return time.time_ns() // 1000


def next_generation(previous: Manifest | None, number: int, **changes: object) -> Manifest:
    """The manifest that follows ``previous``, with changes."""
    base = previous or Manifest(0, "", 0, "", "", ())
    return dataclasses.replace(base, generation=number, created=now_micros(), **changes)  # type: ignore[arg-type]
