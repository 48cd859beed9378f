"""Fills a new directory with the rows of an old one, and shows that it holds just them.

Clustered files take the place of those that they replace; all other files are copied as they are.
Each copy is read back and has the bytes of its source. The clustered files of each group hold as
many rows as the files that they replace, with the same checksum over all values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from bridge.formats.checksum import checksum
from bridge.formats.data_files import Decoded
from bridge.formats.registry import data_files
from bridge.index.generations.replacements import FileState, Replacement
from bridge.kernel.errors import FileCorrupt, FileUnreadable, StorageFailure
from bridge.kernel.threads import Threads
from bridge.storage.port import FileStat, Range, Storage, same_state
from bridge.storage.uri import join, relative

_PART = 8 << 20
_SMALL = 256 << 10
"""Bytes of a file, at most, that is compared together with others."""
_ENDINGS = (".parquet", ".orc")
_LONGEST = 240
"""Bytes of a name; file systems take 255."""


class Unequal(Exception):
    """The new directory would not hold the rows of the old one; says why."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows, and the sum of their hashes."""

    count: int = 0
    total: int = 0

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.count + other.count, (self.total + other.total) % 2**64)


class Copies:
    """How directories of one table are filled; several at once share the threads.

    Args:
        memory: bytes of rows that are held at once, about.
        verify: whether checksums of rows are compared, and not only their number.
        at_once: files that are compared or copied at once.
        together: small files that are compared as one of these, where no request is waited for.
    """

    def __init__(
        self,
        storage: Storage,
        memory: int = 1 << 30,
        verify: bool = True,
        at_once: int = 8,
        together: int = 1,
    ) -> None:
        self.storage, self.verify = storage, verify
        self._memory, self._together = memory // at_once, together
        self._pool = Threads(at_once, "copy")

    def close(self) -> None:
        """Ends without waiting."""
        self._pool.close()

    def fill(
        self, old: str, new: str, listed: Mapping[str, FileState], groups: Sequence[Replacement]
    ) -> None:
        """Copies into a new directory whatever holds the rows of the listed files.

        Args:
            groups: that hold in the old directory.

        Errors:
            Unequal, StorageFailure, StorageFull.
        """
        wanted = self._wanted(old, new, listed, groups)
        for group in groups:
            if self.rows(group.old) != self.rows(group.new):
                raise Unequal(
                    f"{group.new[0].path} and others do not hold the rows of the "
                    f"{len(group.old)} files that they replace"
                )
        for _ in self._pool.map(self._copy, wanted.values(), wanted):
            pass

    def _wanted(
        self, old: str, new: str, listed: Mapping[str, FileState], groups: Sequence[Replacement]
    ) -> dict[str, FileState]:
        """The files of the new directory, each with the file that it is a copy of."""
        replaced = {state.path for group in groups for state in group.old}
        found: dict[str, FileState] = {}
        for group in groups:
            for state in group.new:
                found[_free(new, state.path.rpartition("/")[2], state, found)] = state
        for path, state in listed.items():
            if path not in replaced:
                found[_free(new, relative(old, path) or "", state, found)] = state
        return found

    def _copy(self, source: FileState, target: str) -> None:
        stat = FileStat(source.path, source.size, source.modified, source.etag)
        try:
            if not self.storage.copy(stat, target):
                raise Unequal(f"{source.path} changed while it was copied")
            made = self.storage.stat(target)
            if made is None or self._digest(source) != self._digest(FileState.of(made)):
                raise Unequal(f"{target} is not what {source.path} is")
        except FileUnreadable as error:
            raise Unequal(error.message) from error

    def _digest(self, file: FileState) -> str:
        digest, held = hashlib.blake2b(), _Unchanged(self.storage, file)
        for start in range(0, file.size, _PART):
            (part,) = held.read_ranges(file.path, [(start, min(file.size, start + _PART))])
            digest.update(part)
        return digest.hexdigest()

    def rows(self, files: Sequence[FileState]) -> Rows:
        """The rows of some files together. Errors: Unequal: one cannot be read, or has changed."""
        limit = min(_SMALL, self._memory // self._together)
        small = [file for file in files if file.size <= limit]
        parts = [small[i : i + self._together] for i in range(0, len(small), self._together)]
        parts += [[file] for file in files if file.size > limit]
        return sum(self._pool.map(self._rows_together, parts), Rows())

    def _rows_together(self, files: Sequence[FileState]) -> Rows:
        """The same; a file that ends the child is found by reading each alone."""
        if len(files) == 1:
            return self._rows_of(files[0])
        contents = [_Unchanged(self.storage, file).read(file.path) for file in files]
        found, decoded = Rows(), Decoded((), {})
        try:
            for item in data_files("parquet").decode(contents, False):
                if isinstance(item, Decoded):
                    decoded = item
                else:
                    found += Rows(len(item), checksum(item) if self.verify else 0)
        except (FileCorrupt, FileUnreadable):
            return sum(map(self._rows_of, files), Rows())
        for place, why in decoded.failed.items():
            raise Unequal(f"{files[place].path} cannot be read: {why}")
        counts = [count for run in decoded.runs for count in run.counts]
        if (len(counts), sum(counts)) != (len(files), found.count):
            raise Unequal(f"of {files[0].path} and others not all rows were read")
        return found

    def _rows_of(self, file: FileState) -> Rows:
        held = _Unchanged(self.storage, file)
        try:
            parts = data_files("parquet").stream(
                cast(Storage, held), file.path, file.size, self._memory
            )
            each = (Rows(len(part), checksum(part) if self.verify else 0) for part in parts)
            return sum(each, Rows())
        except (StorageFailure, Unequal):
            raise
        except Exception as error:  # Arrow has many
            raise Unequal(f"{file.path} cannot be read: {error}".partition("\n")[0]) from error


class _Unchanged:
    """A storage of one file. Errors: Unequal: it is not in its recorded state any more."""

    def __init__(self, storage: Storage, file: FileState) -> None:
        self._storage, self._file = storage, file

    def read(self, uri: str) -> bytes:
        return self.read_ranges(uri, [(0, self._file.size)])[0]

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        parts, now = self._storage.read_state(uri, ranges)
        if now is None or not same_state(self._file, now):
            raise Unequal(f"{uri} changed while it was read")
        return parts


def complete_groups(
    listed: Mapping[str, FileState], groups: Sequence[Replacement]
) -> list[Replacement]:
    """The groups whose old files are all listed as they were rewritten."""
    return [
        group
        for group in groups
        if all(s.path in listed and same_state(s, listed[s.path]) for s in group.old)
    ]


def _free(new: str, inner: str, source: FileState, taken: Mapping[str, FileState]) -> str:
    """A target in a new directory; another name if it is taken.

    No data file in it ends as those do that readers by path ask for: ``**/*.parquet`` would find
    a row in the old directory and here.
    """
    name = f"{inner}-data" if inner.lower().endswith(_ENDINGS) else inner
    target = join(new, name)
    directory, _, last = target.rpartition("/")
    size = len(_bytes(last))
    if target not in taken and size <= _LONGEST:
        return target
    digest = hashlib.sha256(_bytes(source.path)).hexdigest()[:12]
    return f"{directory}/{digest}-{last if size < _LONGEST - len(digest) else 'data'}"


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
