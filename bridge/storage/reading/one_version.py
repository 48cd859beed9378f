"""Reads of a planned file that are all of the version that was planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from bridge.kernel.errors import FileChanged, FileUnreadable
from bridge.storage.port import UNKNOWN_TIME, FileStat, Range, Seen, Storage, one_spelling


class _Planned(Seen, Protocol):
    """A file as it was planned: as in `FileStat`."""

    @property
    def uri(self) -> str: ...


class OneVersion:
    """A storage, which reads one file in no other version than the planned one.

    The law: the bytes of all reads are of one version. Each answer's ETag is the planned one; where
    one of them is unknown, its size and time are, in whole seconds from a remote store. A file of
    which no time was planned has that of the first answer. No more bytes are asked for than were
    planned, and none of an empty file.

    Args:
        may_grow: lines may be added to the file meanwhile; it is read up to the planned size.

    Errors:
        FileChanged: of reads.
    """

    def __init__(self, storage: Storage, planned: _Planned, may_grow: bool = False) -> None:
        self._storage, self._may_grow = storage, may_grow
        self._planned: _Planned = planned

    @staticmethod
    def of(storage: Storage, planned: _Planned, may_grow: bool = False) -> Storage:
        """The storage with this law for a file."""
        return cast(Storage, OneVersion(storage, planned, may_grow))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def read(self, uri: str) -> bytes:
        if uri != self._planned.uri:
            return self._storage.read(uri)
        return self.read_ranges(uri, [(0, self._planned.size)])[0]

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        return self.read_state(uri, ranges)[0]

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        planned = self._planned
        if uri != planned.uri:
            return self._storage.read_state(uri, ranges)
        if all(start == end for start, end in ranges):
            return [b"" for _ in ranges], None
        try:
            parts, now = self._storage.read_state(uri, ranges)
        except FileUnreadable as error:
            now = self._storage.stat(uri)
            if now is not None:
                self.require(now, error)
            raise
        if now is None:
            raise FileChanged(f"{uri} is gone since it was planned", _AGAIN)
        self.require(now)
        if planned.modified == UNKNOWN_TIME:
            self._planned = now
        return parts, now

    def require(self, now: FileStat, cause: Exception | None = None) -> None:
        """Errors: FileChanged: a state is not the planned one."""
        planned = self._planned
        if self._may_grow and now.size > planned.size and not now.etag:
            return
        if now.size != planned.size:
            raise FileChanged(
                f"{now.uri} has {now.size} bytes and not the {planned.size} that were planned",
                _AGAIN,
            ) from cause
        both = bool(planned.etag and now.etag)
        if both:
            same = one_spelling(planned.etag) == one_spelling(now.etag)
        else:
            grain = 1_000_000 if self._storage.is_remote(now.uri) else 1
            unknown = UNKNOWN_TIME in (planned.modified, now.modified)
            same = unknown or planned.modified // grain == now.modified // grain
        if not same:
            raise FileChanged(
                f"{now.uri} was written again, with the same size, since it was planned"
                + (f": it had the ETag {planned.etag}, and has {now.etag}" if both else ""),
                _AGAIN + ("; if it fails again, the store tells several ETags of a file" * both),
            ) from cause


_AGAIN = "run the query again; for a table of segments run skipbridge segment refresh first"
