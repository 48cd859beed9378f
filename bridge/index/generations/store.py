"""The index of one table in storage: generations, shards, and atomic commits.

::

    <root>/generations/41.json        the manifest of generation 41
    <root>/shards/<id>-files.shard  immutable; garbage if no manifest names it

A commit creates ``N+1.json`` if it does not exist. Readers see no other change. A builder that dies
before the commit leaves garbage, but never half an index (correctness 21).
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np

from bridge.index.generations.manifest import VERSION, Blob, Manifest, parse_manifest
from bridge.kernel.errors import (
    BridgeError,
    FileUnreadable,
    GenerationNotFound,
    IndexConflict,
    IndexCorrupt,
    IndexNewer,
    StorageFailure,
)
from bridge.storage.commit_log import CommitLog
from bridge.storage.port import Range, Storage
from bridge.storage.store_clock import store_now
from bridge.storage.uri import canonical, join

_UNFINISHED = re.compile(r"/\.[^/]+\.tmp$")
"""Temporary files left by a commit that died. The name is hidden, so it is never data."""
_AT_ONCE = 100
"""Files deleted before the generations are listed again."""
CLEANED_AFTER = 3600.0
"""Seconds after which a file that no generation names counts as garbage."""
_ATTEMPTS = 8
"""Of one change, while other builders commit first."""
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
        self._log = CommitLog(storage, join(self.root, "generations"))
        self._seen = 0  # the highest generation that was read or written

    def generations(self) -> list[int]:
        """The numbers of all generations, ascending. Errors: StorageFailure."""
        return [listed.generation for listed in self._listed()]

    def newest(self) -> ListedManifest | None:
        """The newest generation's manifest as listed, in one request; None if there is none."""
        return next(reversed(self._listed()), None)

    def _listed(self) -> list[ListedManifest]:
        found = [
            ListedManifest(number, file.size, file.modified, file.etag)
            for number, file in self._log.records()
        ]
        newest = found[-1].generation if found else 0
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
            if no newer one is damaged. From a manifest of an earlier layout only the settings are
            read, and it counts as damaged.

        Errors:
            IndexNewer: a later version of this program wrote a manifest.
            StorageFailure.
        """
        broken: IndexCorrupt | None = None
        for number in reversed(self.generations() if generations is None else generations):
            try:
                found = self.manifest(number, outdated=True)
                if found.version == VERSION:
                    return found, broken
                old = IndexCorrupt(
                    f"generation {number} of the index at {self.root} has layout {found.version}, "
                    f"this program reads {VERSION}",
                    "skipbridge index build rebuilds it",
                )
                alone = dataclasses.replace(
                    found, shards=(), tombstones=None, clustering=None, complete=False
                )
                return alone, broken or old
            except IndexNewer:
                raise
            except IndexCorrupt as error:
                broken = broken or error
            except GenerationNotFound:  # cleaned up since it was listed
                continue
        return None, broken

    def manifest(self, generation: int, *, outdated: bool = False) -> Manifest:
        """A generation by number; ``outdated`` as for `parse_manifest`.

        Errors: GenerationNotFound, IndexCorrupt, StorageFailure.
        """
        found = self._log.read(generation, lambda raw: self._parse(raw, generation, outdated))
        if found is None:
            raise GenerationNotFound(
                f"generation {generation} of the index at {self.root} does not exist",
                f"there are {self.generations() or 'none'}",
            )
        return found

    def _parse(self, raw: bytes, generation: int, outdated: bool = False) -> Manifest:
        name = self._name(generation)
        found = parse_manifest(raw, name, outdated=outdated)
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

        Errors: StorageFailure: also if a store says that it has written it, and has not.
        """
        uri = join(self.root, name)
        self.storage.put(uri, content)
        if self.storage.is_remote(uri):
            self._check_written(uri, len(content))
        whole = hashlib.sha256(content).hexdigest()
        if not tail:
            return Blob(name, len(content), whole)
        return Blob(name, len(content), whole, tail, hashlib.sha256(content[-tail:]).hexdigest())

    def _check_written(self, uri: str, size: int) -> None:
        held = self.storage.stat(uri)
        if held is None or held.size != size:
            there = "it is not there" if held is None else f"it has {held.size} bytes"
            raise StorageFailure(
                f"the store says that it has written {uri} of {size} bytes, and {there}",
                "try again; if it stays so, check the store",
            )

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
        for _ in range(2):  # an answer may be another one's
            try:
                content = self.storage.read(uri)
            except FileUnreadable as error:
                remote = self.storage.is_remote(uri)
                state = self.storage.stat(uri) if remote else None
                if state is not None and state.size == blob.size:
                    raise
                raise IndexCorrupt(f"{uri} is gone: {error.message}", _REMEDY) from error
            if len(content) == blob.size and hashlib.sha256(content).hexdigest() == blob.sha256:
                return content
        raise IndexCorrupt(f"{uri} does not match its checksum {blob.sha256[:12]}", _REMEDY)

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
        number, content = manifest.generation, manifest.to_bytes()
        winner = self._parse(self._log.create(number, content), number)
        if winner.builder != manifest.builder:
            raise IndexConflict(
                f"generation {number} of {self.root} was committed by another "
                f"builder, {winner.builder}",
                "run skipbridge index refresh again",
            )
        newer = self._newer_unfounded(number)
        if newer:
            with suppress(StorageFailure):  # no reader takes it for the newest
                self.storage.delete(self._name(number))
            raise IndexConflict(
                f"generation {number} of {self.root} was free, but there is generation {newer}",
                "run skipbridge index refresh again",
            )
        return parse_manifest(content, self._name(number))

    def update(self, change: Callable[[Manifest], Manifest]) -> Manifest | None:
        """Commits what ``change`` makes of the newest generation, and asks it again in a conflict.

        If ``change`` returns the very manifest it got, nothing is committed.

        Returns:
            The newest generation now; None if there is no index.

        Errors:
            IndexConflict: other builders committed first, several times in a row.
            Those of ``change``, `latest` and `commit`.
        """
        for attempt in range(_ATTEMPTS):
            held = self.latest()
            if held is None:
                return None
            wanted = change(held)
            if wanted is held:
                return held
            try:
                return self.commit(wanted)
            except IndexConflict:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _newer_unfounded(self, number: int) -> int:
        """A generation that came before a number that was just created; 0 if there is none.

        The number was chosen by a listing that lacked it, or while this process stood still.
        """
        try:
            numbers = self.generations()
        except BridgeError:
            return 0  # it was created, and nothing speaks against it
        return numbers[-1] if number - 1 not in numbers and numbers[-1:] > [number] else 0

    def clean(self, keep: int = 3, older_than: float = CLEANED_AFTER) -> int:
        """Deletes old generations, shards that no kept generation names, and files of dead writers.

        Args:
            keep: how many of the newest generations to keep.
            older_than: seconds by the store's clock. Younger files are kept: a running build may
                own them, or a planner may read them through an old generation.

        Returns:
            The number of deleted files; 0 while a manifest that stays is damaged or cannot be had:
            files that it names cannot be told from garbage.

        Errors:
            IndexNewer, StorageFailure.
        """
        numbers = self.generations()
        _, broken = self.readable(numbers)
        if broken is not None:
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
                held = self.manifest(number, outdated=True)
                alive |= {join(self.root, blob.name) for blob in held.blobs()}
            except (IndexCorrupt, GenerationNotFound):
                return 0
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
                except (IndexCorrupt, GenerationNotFound):
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
        return self._log.name(generation)


def new_id() -> str:
    """A unique id."""
    return uuid.uuid4().hex


def now_micros() -> int:
    return time.time_ns() // 1000


def next_generation(previous: Manifest | None, number: int, **changes: object) -> Manifest:
    """The manifest that follows ``previous``, with changes."""
    base = previous or Manifest(0, "", 0, "", "", ())
    return dataclasses.replace(base, generation=number, created=now_micros(), **changes)  # type: ignore[arg-type]
