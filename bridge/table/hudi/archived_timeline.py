"""Archived instants: from table version 8 on an LSM tree of Parquet files with a manifest.

It is read only when it is asked for. Bodies are read apart from the times of the instants, for they
are most of its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.errors import FileCorrupt, FileUnreadable
from bridge.storage.port import Storage
from bridge.table.hudi.commit_metadata import read_rollback
from bridge.table.hudi.table_config import HudiTableConfig

_WRITES = frozenset({"commit", "deltacommit", "replacecommit", "clustering"})
_UNDO = frozenset({"rollback", "restore"})
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant of the past, with the bytes of its body as the timeline had it."""

    requested: str
    completion: str
    action: str
    body: bytes


class History:
    """The archived timeline of a table as one manifest has it; safe for threads.

    Attributes:
        completions: completion time of each archived write, by requested time.
        cleans: requested times of archived cleans.
    """

    EMPTY: History

    def __init__(self, storage: Storage | None, uris: tuple[str, ...]) -> None:
        self._storage = storage
        self._uris = uris
        self.completions: dict[str, str] = {}
        self.cleans: frozenset[str] = frozenset()
        cleans = []
        for table in self._tables(["instantTime", "completionTime", "action"]):
            for requested, completion, action in zip(*(c.to_pylist() for c in table), strict=True):
                if action in _WRITES:
                    self.completions[requested] = completion or requested
                elif action == "clean":
                    cleans.append(requested)
        self.cleans = frozenset(cleans)

    @cached_property
    def rolled_back(self) -> frozenset[str]:
        """Instants that archived rollbacks and restores undid. Errors: FileCorrupt."""
        undone = (read_rollback(i.body, i.requested).instants for i in self.instants(_UNDO))
        return frozenset(chain.from_iterable(undone))

    def writes(self, after: str, until: str) -> list[ArchivedInstant]:
        """Archived writes in a range of completion times: start exclusive, end inclusive."""
        return [i for i in self.instants(_WRITES) if after < i.completion <= until]

    def instants(self, actions: frozenset[str]) -> Iterator[ArchivedInstant]:
        """All archived instants of some actions, with their bodies."""
        for table in self._tables(["instantTime", "completionTime", "action", "metadata"]):
            for row in zip(*(c.to_pylist() for c in table), strict=True):
                requested, completion, action, body = row
                if action in actions:
                    yield ArchivedInstant(requested, completion or requested, action, body or b"")

    def _tables(self, columns: list[str]) -> Iterator[list[pa.ChunkedArray]]:
        for uri in self._uris:
            assert self._storage is not None
            content = self._storage.read(uri)
            try:
                table = pq.read_table(pa.BufferReader(content), columns=columns)
                yield [table.column(name) for name in columns]
            except (pa.ArrowException, OSError, KeyError) as error:
                raise FileCorrupt(
                    f"the archived timeline {uri} cannot be read ({error})",
                    "restore the file: which files of the table are committed is not known",
                ) from error


History.EMPTY = History(None, ())


def load_history(storage: Storage, config: HudiTableConfig) -> History:
    """The archived timeline of a table of version 8 or 9. Errors: FileCorrupt, StorageFailure.

    Compactions of the archive delete files of older manifests, so a file that is gone means that
    there is a newer manifest.
    """
    for attempt in range(_ATTEMPTS):
        uris = _manifest(storage, config.history_uri)
        try:
            return History(storage, uris)
        except FileUnreadable:
            if attempt == _ATTEMPTS - 1 or _manifest(storage, config.history_uri) == uris:
                raise
    raise AssertionError("unreachable")


def _manifest(storage: Storage, directory: str) -> tuple[str, ...]:
    listing = storage.list_all(directory, recursive=False)
    names = [uri.rpartition("/")[2] for uri in listing.paths.to_pylist()]
    versions = [int(n[9:]) for n in names if n.startswith("manifest_") and n[9:].isdigit()]
    if not versions:
        return ()
    # The version file names the newest whole manifest: a writer writes the manifest before it.
    newest = max(versions)
    if "_version_" in names:
        said = storage.read(f"{directory}/_version_").strip()
        newest = int(said) if said.isdigit() and int(said) in versions else newest
    uri = f"{directory}/manifest_{newest}"
    try:
        found: Any = json.loads(storage.read(uri))
        return tuple(f"{directory}/{each['fileName']}" for each in found["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileCorrupt(
            f"the manifest of the archived timeline {uri} cannot be read ({error})",
            "restore the file: which files of the table are committed is not known",
        ) from error
