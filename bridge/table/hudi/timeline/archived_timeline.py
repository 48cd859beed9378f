"""Archived instants: an LSM tree of Parquet files from table version 8 on, log files before.

They are read only when they are asked for. In the LSM tree, bodies are read apart from the times of
the instants, for they are most of its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from bridge.formats.avro.container import checked_schema
from bridge.formats.avro.skipping import Few
from bridge.formats.hudi.avro_rows import DAMAGE, record_slices, row_decoder
from bridge.formats.hudi.log_format import BlockType, Header, read_logs
from bridge.formats.rows_in_child import rows_of
from bridge.kernel.errors import FileCorrupt, FileUnreadable
from bridge.kernel.types import whole_number
from bridge.storage.child import storage_in_memory
from bridge.storage.port import Storage
from bridge.table.hudi.table_config import HudiTableConfig
from bridge.table.hudi.timeline.commit_metadata import (
    CommitMetadata,
    commit_of,
    read_avro,
    read_commit,
    read_rollback,
    rollback_of,
)

_WRITES = frozenset({"commit", "deltacommit", "replacecommit", "clustering"})
_UNDO = frozenset({"rollback", "restore"})
_ATTEMPTS = 3
_BODIES = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "hoodieReplaceCommitMetadata",
    "rollback": "hoodieRollbackMetadata",
}


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant of the past.

    Attributes:
        completion: before table version 8 the requested time, as nothing else is recorded.
        body: the bytes that the timeline had, or the record that they held; None: not kept.
    """

    requested: str
    completion: str
    action: str
    body: bytes | dict[str, Any] | None = None

    def commit(self) -> CommitMetadata:
        """What a write wrote. Errors: FileCorrupt."""
        name = f"{self.requested}.{self.action} (archived)"
        if isinstance(self.body, dict):
            return commit_of(self.body, name)
        return read_commit(self.body or b"", name)

    def undone_instants(self) -> frozenset[str]:
        """What a rollback or restore undid. Errors: FileCorrupt."""
        name = f"{self.requested}.{self.action} (archived)"
        if isinstance(self.body, dict):
            return rollback_of(self.body, name).instants
        return read_rollback(self.body or b"", name).instants


class _Archive(Protocol):
    def times(self) -> Iterable[ArchivedInstant]: ...

    def instants(self, actions: frozenset[str]) -> Iterable[ArchivedInstant]: ...


class History:
    """The archived timeline of a table at one time.

    Attributes:
        completions: completion time of each archived write, by requested time.
        ends: these times.
        cleans: requested times of archived cleans.
    """

    EMPTY: History

    def __init__(self, archive: _Archive | None) -> None:
        self._archive = archive
        times = [] if archive is None else list(archive.times())
        self.completions = {i.requested: i.completion for i in times if i.action in _WRITES}
        self.ends = frozenset(self.completions.values())
        self.cleans = frozenset(i.requested for i in times if i.action == "clean")

    @cached_property
    def rolled_back(self) -> frozenset[str]:
        """Instants that archived rollbacks and restores undid. Errors: FileCorrupt."""
        return frozenset(chain.from_iterable(i.undone_instants() for i in self._instants(_UNDO)))

    def writes(self, after: str, until: str | None) -> list[ArchivedInstant]:
        """Archived writes in a range of completion times: start exclusive, end inclusive."""
        chosen = {
            requested
            for requested, end in self.completions.items()
            if after < end and (until is None or end <= until)
        }
        if not chosen:
            return []
        return [i for i in self._instants(_WRITES) if i.requested in chosen]

    def _instants(self, actions: frozenset[str]) -> Iterable[ArchivedInstant]:
        return () if self._archive is None else self._archive.instants(actions)


History.EMPTY = History(None)


def load_history(storage: Storage, config: HudiTableConfig) -> History:
    """The archived timeline of a table. Errors: FileCorrupt, StorageFailure.

    Compactions of the archive delete files, so a file that is gone means that there is a newer
    state of it.
    """
    for attempt in range(_ATTEMPTS):
        try:
            if config.completes:
                return History(_Lsm(storage, _manifest(storage, config.history_uri)))
            return History(_Logs(_log_entries(storage, config.history_uri)))
        except FileUnreadable:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


class _Lsm:
    """Parquet files of one manifest."""

    def __init__(self, storage: Storage, uris: tuple[str, ...]) -> None:
        self._storage, self._uris = storage, uris

    def times(self) -> Iterator[ArchivedInstant]:
        for row in self._rows(["instantTime", "completionTime", "action"]):
            requested, completion, action = row
            yield ArchivedInstant(requested, completion or requested, action)

    def instants(self, actions: frozenset[str]) -> Iterator[ArchivedInstant]:
        for row in self._rows(["instantTime", "completionTime", "action", "metadata"]):
            requested, completion, action, body = row
            if action in actions:
                yield ArchivedInstant(requested, completion or requested, action, body)

    def _rows(self, columns: list[str]) -> Iterator[tuple[Any, ...]]:
        for uri in self._uris:
            content = self._storage.read(uri)
            types = [pa.binary() if name == "metadata" else pa.string() for name in columns]
            try:
                for found, _ in rows_of(
                    storage_in_memory(content), uri, len(content), "parquet", columns, columns
                ):
                    typed = [found[n].cast(t) for n, t in zip(columns, types, strict=True)]
                    yield from zip(*(values.to_pylist() for values in typed), strict=True)
            except (pa.ArrowException, FileCorrupt, KeyError) as error:
                raise _corrupt(uri, error) from error


class _Logs:
    """Entries of log files: all states of each instant, with their bodies."""

    def __init__(self, entries: Iterable[dict[str, Any]]) -> None:
        done = (e for e in entries if (e.get("actionState") or "COMPLETED") == "COMPLETED")
        self._found = {(e["commitTime"], e["actionType"]): e.get(_body_of(e)) for e in done}

    def times(self) -> Iterator[ArchivedInstant]:
        return (ArchivedInstant(at, at, action) for at, action in self._found)

    def instants(self, actions: frozenset[str]) -> Iterator[ArchivedInstant]:
        for (at, action), body in self._found.items():
            if action in actions:
                yield ArchivedInstant(at, at, action, body)


def _body_of(entry: dict[str, Any]) -> str:
    return _BODIES.get(entry["actionType"], "")


def _log_entries(storage: Storage, directory: str) -> Iterator[dict[str, Any]]:
    listing = storage.list_all(directory, recursive=False)
    files = [
        (uri, size)
        for uri, size in zip(listing.paths.to_pylist(), listing.sizes.tolist(), strict=True)
        if uri.rpartition("/")[2].startswith(".commits_.archive")
    ]
    for uri, size in files:
        try:
            yield from _entries_of(storage, uri, size)
        except FileCorrupt:
            # A merge of archive files writes one before it deletes those that it replaces.
            if uri.rpartition("/")[2] != _being_merged(storage, directory):
                raise


def _entries_of(storage: Storage, uri: str, size: int) -> list[dict[str, Any]]:
    found = []
    few = Few()
    for block in read_logs(storage, [(uri, size)]):
        if block.type is not BlockType.AVRO_DATA:
            continue
        schema = block.text(Header.SCHEMA)
        decoder = row_decoder(schema, uri)
        try:
            for each in record_slices(block.content):
                few.add(checked_schema(schema).parsed, bytes(each))
                found.append(decoder.decode(each))
        except DAMAGE as error:
            raise _corrupt(uri, error) from error
    for entry in found:
        for name in ("commitTime", "actionType"):
            if not isinstance(entry.get(name), str):
                raise _corrupt(uri, TypeError(f"an entry has no {name}"))
    return found


def _being_merged(storage: Storage, directory: str) -> str:
    try:
        (plan,) = read_avro(storage.read(f"{directory}/mergeArchivePlan"))
        return str(plan["mergedArchiveFileName"])
    except (FileUnreadable, *DAMAGE):
        return ""


def _manifest(storage: Storage, directory: str) -> tuple[str, ...]:
    listing = storage.list_all(directory, recursive=False)
    names = [uri.rpartition("/")[2] for uri in listing.paths.to_pylist()]
    told = [whole_number(n[9:]) for n in names if n.startswith("manifest_")]
    versions = [number for number in told if number is not None]
    if not versions:
        return ()
    # The version file names the newest whole manifest: a writer writes the manifest before it.
    newest = max(versions)
    if "_version_" in names:
        named = whole_number(storage.read(f"{directory}/_version_").strip().decode("latin-1"))
        newest = newest if named is None or named not in versions else named
    uri = f"{directory}/manifest_{newest}"
    try:
        found: Any = json.loads(storage.read(uri))
        files = [each["fileName"] for each in found["files"]]
        if outside := [name for name in files if "/" in name]:
            raise ValueError(f"{outside[0]!r} is outside of its directory")
        return tuple(f"{directory}/{name}" for name in files)
    except (ValueError, KeyError, TypeError) as error:
        raise _corrupt(uri, error) from error


def _corrupt(uri: str, error: BaseException) -> FileCorrupt:
    return FileCorrupt(
        f"{uri} of the archived timeline cannot be read ({error})",
        "restore the file: which files of the table are committed is not known",
    )
