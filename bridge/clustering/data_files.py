"""File formats that clustering rewrites. Adding one takes a module and a line here."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from bridge.errors import FileCorrupt, UnsupportedTable
from bridge.storage.port import Storage
from bridge.storage.source import is_passing

_MODULES = {
    "parquet": "bridge.clustering.parquet_files",
    "orc": "bridge.clustering.orc_files",
}
"""The modules of the formats, imported when a file is rewritten."""


class Rejected(Exception):
    """The old files of a group stay; says why."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How new files are written.

    Attributes:
        compression: None: as the old file.
        group_bytes: size of row groups or stripes.
        page_index: whether Parquet files get the bounds of their pages; they do if the old one has.
        bloom: columns that get a bloom filter in Parquet files, besides those that have one in the
            old file.
        stored: the columns that may have one, as `bloom_types.stored_types` gives them.
    """

    compression: str | None = None
    group_bytes: int = 128 * 1024**2
    page_index: bool = False
    bloom: tuple[str, ...] = ()
    stored: tuple[tuple[str, tuple[str, ...]], ...] = ()


class DataFile(Protocol):
    """One file that is open.

    Attributes:
        fingerprint: of the schema and of how each column is stored. Files of equal fingerprints can
            be written as one.
    """

    @property
    def fingerprint(self) -> Hashable: ...

    @property
    def num_rows(self) -> int: ...

    @property
    def names(self) -> list[str]:
        """Of the top-level columns."""
        ...

    def read(self, places: Sequence[int] | None = None) -> pa.Table:
        """All rows.

        Args:
            places: of the columns that are wanted; None: all, and every value is checked.

        Errors:
            Rejected: a value cannot be kept exactly.
        """
        ...

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

    def open(self, content: bytes) -> Any:
        """A `DataFile`. Errors: those of Arrow; Rejected."""
        ...

    def stream(self, storage: Storage, uri: str, size: int, memory: int) -> Iterator[pa.Table]:
        """All rows of a file, part by part, as `DataFile.batches` gives them.

        Args:
            memory: bytes that are held at once, about; more where one row or one stripe has more.

        Errors: those of Arrow and of the storage; Rejected, FileCorrupt.
        """
        ...

    def encode(self, table: pa.Table, like: Any, writing: Writing, row_bytes: float) -> bytes:
        """A new file.

        Args:
            like: an old file, whose properties it takes over.
            row_bytes: of one row in the old files.
        """
        ...

    def check(self, old: Any, new: Any) -> None:
        """Errors: Rejected: the new file stores a column in another way than the old one."""
        ...


def can_rewrite(format: str) -> bool:
    """Whether files of a format can be rewritten."""
    return format in _MODULES


def check_format(format: str, what: str) -> None:
    """Errors: UnsupportedTable: files of a format cannot be rewritten."""
    if not can_rewrite(format):
        raise UnsupportedTable(
            f"{what} is stored as {format}",
            f"skipbridge clusters files of {' and '.join(_MODULES)}; views copy other formats to "
            "Parquet",
        )


def data_files(format: str) -> DataFiles:
    """The reader and writer of a format. Errors: UnsupportedTable."""
    check_format(format, "a group")
    found: DataFiles = importlib.import_module(_MODULES[format]).FILES
    return found


@contextmanager
def blaming(uri: str) -> Iterator[None]:
    """Errors: FileCorrupt: Arrow cannot decode the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri} cannot be decoded: {first}", "rewrite it") from error
