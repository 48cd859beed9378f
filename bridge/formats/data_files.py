"""How whole files of a format are read, rewritten and checked; see `FileFormat.rewriting`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from bridge.kernel.errors import BridgeError, FileCorrupt
from bridge.storage.port import Storage
from bridge.storage.reading.source import is_passing


class Rejected(Exception):
    """The old files of a group stay; says why."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How new files are written.

    Attributes:
        compression: None: as the old file.
        group_bytes: size of row groups.
        bloom: columns that get a bloom filter in Parquet files, besides those that have one in the
            old file.
        stored: the columns that may have one, as `bloom_types.stored_types` gives them.
    """

    compression: str | None = None
    group_bytes: int = 128 * 1024**2
    bloom: tuple[str, ...] = ()
    stored: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """Files of one schema whose rows were decoded one after another.

    Attributes:
        fingerprint: of the schema and of how each column is stored. Files of equal fingerprints can
            be written as one.
        files: the places of the files among those that were decoded, ascending.
        counts: the rows of each.
        tables: in how many tables the rows came.
        checksum: of all rows; 0 if it was not asked for.
    """

    fingerprint: Hashable
    files: tuple[int, ...]
    counts: tuple[int, ...]
    tables: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Decoded:
    """What became of files.

    Attributes:
        failed: why the values of a file cannot be decoded, or not be kept exactly, by its place.
    """

    runs: tuple[Run, ...]
    failed: Mapping[int, str]


class DataFile(Protocol):
    """One file that is open."""

    @property
    def num_rows(self) -> int: ...

    def batches(self) -> Iterator[pa.Table]:
        """All rows, part by part, as a writer has grouped them."""
        ...


class DataFiles(Protocol):
    """Reads and writes whole files of one format.

    The law: what is read from a written file is what was written, bit by bit, and engines read it
    as they read the old file.

    Attributes:
        suffix: of the names of new files. No reader by path that asks for ``**/*.parquet``, and
            so descends into hidden directories, finds it.
    """

    suffix: str

    def open(self, content: bytes, *, decoded: bool = False) -> Any:
        """A `DataFile`.

        Args:
            decoded: its values were decoded before, or it was written here: none of them ends this
                process.

        Errors: those of Arrow; Rejected.
        """
        ...

    def decode(self, contents: Sequence[bytes], verify: bool) -> Iterator[pa.Table | Decoded]:
        """The rows of whole files: the tables of each run, and in the end, what they are.

        Args:
            verify: whether checksums are wanted.

        Errors:
            FileCorrupt, FileUnreadable: one of several files is to blame; not known which.
        """
        ...

    def stream(self, storage: Storage, uri: str, size: int, memory: int) -> Iterator[pa.Table]:
        """All rows of a file, part by part, as `DataFile.batches` gives them.

        Args:
            memory: bytes that are held at once, about; more where one row has more.

        Errors: those of Arrow and of the storage; Rejected, FileCorrupt.
        """
        ...

    def cuts(self, rows: int, writing: Writing, row_bytes: float) -> list[int]:
        """Where the parts of a new file begin, in each of which its rows are put together; and the
        number of its rows.

        Args:
            row_bytes: of one row in the old files.
        """
        ...

    def encode(self, groups: Iterable[pa.Table], like: Any, writing: Writing) -> bytes:
        """A new file.

        Args:
            groups: the rows of each part; it may ask for them more than once.
            like: an old file, whose properties it takes over.
        """
        ...

    def check(self, old: Any, new: Any) -> None:
        """Errors: Rejected: the new file stores a column in another way than the old one."""
        ...


def rewrite_problem(error: Exception) -> str:
    """Why a file cannot be rewritten. Errors: that error, if not the file is to blame."""
    if isinstance(error, FileCorrupt):
        return error.message
    if isinstance(error, Rejected):
        return str(error)
    if isinstance(error, BridgeError) or is_passing(error):
        raise error
    return describe(error)


def describe(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "OUT_OF_MEMORY: the group needs more memory; use a smaller --group-bytes"
    return f"{type(error).__name__}: {error}".partition("\n")[0]


@contextmanager
def name_file_in_errors(uri: str) -> Iterator[None]:
    """Errors: FileCorrupt: Arrow cannot decode the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri} cannot be decoded: {first}", "rewrite it") from error
