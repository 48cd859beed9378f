"""Records that are created once: generations of an index, versions of a table, plans.

The law: of all that create one name one wins, and each learns whose record lies there. A record
never changes. It carries a checksum, and the version of its kind, which is the kind's own affair.
What cannot be understood is read once more: an answer may be another one's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from bridge.kernel.errors import BridgeError, FileUnreadable, StorageFailure
from bridge.kernel.retry import Backoff
from bridge.storage.port import FileStat, Storage
from bridge.storage.uri import join

T = TypeVar("T")


class CommitLog:
    """The records in one directory.

    Args:
        directory: its URI.
        digits: least digits of a number in a name; zeros fill it up.
    """

    def __init__(self, storage: Storage, directory: str, digits: int = 1) -> None:
        self._storage, self.directory, self._digits = storage, directory, digits
        self._name = re.compile(rf"/(\d{{{digits},{max(digits, 12)}}})\.json$")

    def name(self, number: int) -> str:
        """The URI of a record."""
        return join(self.directory, f"{number:0{self._digits}}.json")

    def records(self) -> list[tuple[int, FileStat]]:
        """The records with their numbers, ascending. Errors: StorageFailure."""
        files = self._storage.list_all(self.directory, recursive=False).stats()
        named = ((self._name.search(file.uri), file) for file in files)
        return sorted(((int(m[1]), file) for m, file in named if m), key=lambda found: found[0])

    def read(self, number: int, parse: Callable[[bytes], T]) -> T | None:
        """As `read_record`."""
        return read_record(self._storage, self.name(number), parse)

    def create(self, number: int, content: bytes) -> bytes:
        """As `create_record`."""
        return create_record(self._storage, self.name(number), content)


def create_record(storage: Storage, name: str, content: bytes) -> bytes:
    """Creates a file unless there is one.

    Returns:
        The content that lies there now: this one, or another that was first.

    Errors:
        StorageFailure, StorageFull: there is none, as far as this process can tell.
    """
    try:
        storage.put_if_absent(name, content)
    except StorageFailure:
        # The write may have succeeded although its response was lost: the stored file decides.
        if not _lies_there(storage, name):
            raise
    found = _read(storage, name)
    if found is None:
        raise StorageFailure(
            f"the store says that it has written {name}, and it is not there", "check the store"
        )
    return found


def read_record(storage: Storage, name: str, parse: Callable[[bytes], T]) -> T | None:
    """A record; None if there is none.

    Errors:
        FileUnreadable: it is there; StorageFailure. Those of ``parse``.
    """
    found = _read(storage, name)
    if found is None:
        return None
    try:
        return parse(found)
    except BridgeError:
        again = _read(storage, name)
        if again is None or again == found:
            raise
        return parse(again)


def _read(storage: Storage, name: str) -> bytes | None:
    try:
        return storage.read(name)
    except FileUnreadable:
        return None if storage.stat(name) is None else storage.read(name)


def _lies_there(storage: Storage, name: str) -> bool:
    for _ in Backoff(0.2, attempts=3):
        try:
            return storage.stat(name) is not None
        except BridgeError:
            continue
    return False


def seal(body: dict[str, Any], *, ascii_only: bool = False) -> bytes:
    """A record as JSON with its checksum; ``ascii_only`` as for `checksum`."""
    return json.dumps({**body, "checksum": checksum(body, ascii_only)}, indent=1).encode()


def checksum(body: dict[str, Any], ascii_only: bool = False) -> str:
    """Of a record without its checksum, in whatever order its keys are.

    Args:
        ascii_only: other characters count as they are escaped. A kind of record keeps to one way.
    """
    text = json.dumps(body, sort_keys=True, ensure_ascii=ascii_only, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
