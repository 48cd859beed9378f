"""The index of one table in storage: generations, shards, and the one switch between them.

::

    <root>/generations/41.json        the manifest of generation 41
    <root>/shards/<id>-files.parquet  immutable; named by a manifest or garbage

A commit creates ``N+1.json`` if it is absent, and does nothing else that a reader can see. A
builder that dies before the commit leaves garbage, never half an index (correctness 21).
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
import uuid
from collections.abc import Iterable, Sequence

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
from bridge.storage.uri import canonical, join

_GENERATION = re.compile(r"/(\d{1,12})\.json$")
_UNFINISHED = re.compile(r"/\.[^/]+\.tmp$")
"""What a commit that died left behind; its name is hidden, so it is nobody's data."""
_AT_ONCE = 100
"""Files deleted between two looks at the generations."""
CLEANED_AFTER = 3600.0
"""Seconds after which a file that no generation names is taken for garbage."""
MAX_BLOB = 4 * 1024**3
_REMEDY = "skipbridge index build builds it anew"


class IndexStore:
    """Reads and commits generations.

    Args:
        root: canonical URI of the table's index.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage = storage
        self.root = canonical(root)

    def generations(self) -> list[int]:
        """Numbers of the generations there are, ascending."""
        listing = self.storage.list_all(join(self.root, "generations"), recursive=False)
        found = (_GENERATION.search(path) for path in listing.paths.to_pylist())
        return sorted(int(match[1]) for match in found if match)

    def latest(self) -> Manifest | None:
        """The newest generation, None if there is none. Errors: IndexCorrupt, StorageFailure."""
        for _ in range(3):
            numbers = self.generations()
            if not numbers:
                return None
            try:
                return self.manifest(numbers[-1])
            except GenerationNotFound:  # cleaned since it was listed: there is a newer one
                continue
        return None

    def readable(
        self, generations: Sequence[int] | None = None
    ) -> tuple[Manifest | None, IndexCorrupt | None]:
        """The newest manifest that can be read, None if there is none; what is wrong with the
        newest of all, None if that is it.

        Args:
            generations: as `generations` told them.

        Errors:
            IndexNewer: a later version of this program wrote one; its settings are not known here.
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
            except GenerationNotFound:  # cleaned since it was listed
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
        return found

    def put_blob(self, name: str, content: bytes, tail: int = 0) -> Blob:
        """Writes a file of the index.

        Args:
            name: relative to the root and never used before.
            tail: bytes at its end that are vouched for on their own.
        """
        self.storage.put(join(self.root, name), content)
        whole = hashlib.sha256(content).hexdigest()
        if not tail:
            return Blob(name, len(content), whole)
        return Blob(name, len(content), whole, tail, hashlib.sha256(content[-tail:]).hexdigest())

    def read_blob(self, blob: Blob) -> bytes:
        """A file of the index. Errors: IndexCorrupt: gone, too large, or not what was written."""
        if ".." in blob.name or blob.name.startswith("/") or blob.size > MAX_BLOB:
            raise IndexCorrupt(
                f"{blob.name} of {blob.size} bytes is not a file of an index", _REMEDY
            )
        uri = join(self.root, blob.name)
        try:
            content = self.storage.read(uri)
        except FileUnreadable as error:
            raise IndexCorrupt(f"{uri} is gone: {error.message}", _REMEDY) from error
        if len(content) != blob.size or hashlib.sha256(content).hexdigest() != blob.sha256:
            raise IndexCorrupt(f"{uri} does not match its checksum {blob.sha256[:12]}", _REMEDY)
        return content

    def read_part(self, blob: Blob, start: int, end: int) -> bytes:
        """Bytes of a file of the index; whoever asks checks them.

        Errors:
            IndexCorrupt: gone or shorter.
        """
        uri = join(self.root, blob.name)
        try:
            (part,) = self.storage.read_ranges(uri, [(start, end)])
        except FileUnreadable as error:
            raise IndexCorrupt(f"{uri} is gone or cut: {error.message}", _REMEDY) from error
        return part

    def read_tail(self, blob: Blob) -> bytes:
        """The end of a file that has one. Errors: IndexCorrupt: it is not what was written."""
        part = self.read_part(blob, blob.size - blob.tail, blob.size)
        if hashlib.sha256(part).hexdigest() != blob.tail_sha256:
            raise IndexCorrupt(
                f"the end of {join(self.root, blob.name)} does not match its checksum "
                f"{blob.tail_sha256[:12]}",
                _REMEDY,
            )
        return part

    def read_slices(self, blob: Blob, ranges: Sequence[Range]) -> list[bytes]:
        """Byte ranges of a file of the index; who asks checks them. Errors: IndexCorrupt."""
        uri = join(self.root, blob.name)
        try:
            return self.storage.read_ranges(uri, ranges)
        except FileUnreadable as error:
            raise IndexCorrupt(f"{uri} is gone or cut: {error.message}", _REMEDY) from error

    def commit(self, manifest: Manifest) -> Manifest:
        """Makes a generation visible, if its number is still free.

        Returns:
            It, as stored.

        Errors:
            IndexConflict: another builder took the number; build on top of its generation.
            StorageFailure, StorageFull: not committed, as far as can be told.
        """
        name = self._name(manifest.generation)
        content = manifest.to_bytes()
        try:
            created = self.storage.put_if_absent(name, content)
        except StorageFailure:
            created = False
            # The answer was lost, perhaps not the write: what lies there tells who won.
            if not self._lies_there(name):
                raise
        if not created:
            winner = self.manifest(manifest.generation)
            if winner.builder != manifest.builder:
                raise IndexConflict(
                    f"generation {manifest.generation} of {self.root} was committed by another "
                    f"builder, {winner.builder}",
                    "run skipbridge index refresh again",
                )
        return parse_manifest(content, name)

    def _lies_there(self, name: str) -> bool:
        for attempt in range(3):
            try:
                return self.storage.stat(name) is not None
            except BridgeError:
                time.sleep(0.2 * 2**attempt)
        return False

    def clean(self, keep: int = 3, older_than: float = CLEANED_AFTER) -> int:
        """Deletes generations but the newest, shards that no kept generation names, and the
        unfinished files of writers that died.

        Args:
            keep: generations kept.
            older_than: seconds; younger files may belong to a build under way, or be read by a
                planner that holds an old generation.

        Returns:
            Number of files deleted; 0 while the newest manifest is damaged.

        Errors:
            IndexNewer, StorageFailure.
        """
        numbers = self.generations()
        _, broken = self.readable(numbers)
        if broken is not None:
            # What an unreadable manifest names cannot be told from garbage.
            return 0
        limit = int((time.time() - older_than) * 1_000_000)
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
            # A build that took longer than that has committed meanwhile, perhaps.
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
        """The first of some files that is not there; None if all are. Errors: StorageFailure."""
        for blob in blobs:
            if self.storage.stat(join(self.root, blob.name)) is None:
                return blob
        return None

    def _name(self, generation: int) -> str:
        return join(self.root, f"generations/{generation}.json")


def new_id() -> str:
    """An id that no other build has."""
    return uuid.uuid4().hex


def now_micros() -> int:
    return time.time_ns() // 1000


def next_generation(previous: Manifest | None, number: int, **changes: object) -> Manifest:
    """A manifest on top of another, with changes."""
    base = previous or Manifest(0, "", 0, "", "", ())
    return dataclasses.replace(base, generation=number, created=now_micros(), **changes)  # type: ignore[arg-type]
