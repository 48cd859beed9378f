"""The interface of file formats: how files are recognised, described, indexed and read.

A format is one file: an instance of `FileFormat` named ``FORMAT`` in `bridge.formats`, or an
entry point elsewhere, see docs/extending.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from bridge.formats.column_chunks import ChunkReader, ValueReader
from bridge.formats.data_files import DataFiles
from bridge.formats.rows import Rows
from bridge.formats.statistics import FileStatistics
from bridge.storage.port import Storage
from bridge.storage.reading.ahead import Job

if TYPE_CHECKING:
    from bridge.formats.parquet.statistics import Footer

SchemaReader = Callable[[Storage, str, int], pa.Schema]
"""Called with the storage, a file's URI and its size in bytes."""
StatisticsReader = Callable[[Storage, str, int], FileStatistics]
"""Called with the storage, a file's URI and its size in bytes.

The law: the statistics of a column hold for the values that every engine reads from the file. What
is not certain is left unknown, and the file is read. Errors: FileCorrupt for a file that is damaged
or of another format; FileUnreadable, StorageFailure.
"""

RowReader = Callable[[Any, str, Sequence[str], Sequence[str]], Iterator[Rows]]
"""Called with a file object for pyarrow, the file's URI, the requested columns, and all data
columns of the table (for files that identify columns by position). Yields the requested columns
that the file has, under the requested names. Errors: FileCorrupt, and those of Arrow.
"""


class EntryBuilder(Protocol):
    """Makes the index entry of one file, in one pass. `FileFormat.collect` calls one method.

    Errors: those of the reader that is given; FileAmbiguous, FileUnreadable, StorageFailure.
    """

    @property
    def has_kinds(self) -> bool:
        """Whether other indexes than min/max are built."""
        ...

    def from_columns(self, read: ChunkReader) -> Job:
        """From typed columns of a file whose meaning the table declares."""
        ...

    def from_values(self, read: ValueReader) -> Job:
        """From statistics and the values that a reader passes on, for all index kinds.

        The reader is a function of a module. It runs in a child process, because the library that
        reads the files may crash.
        """
        ...

    def from_statistics(self, read: StatisticsReader) -> Job:
        """From statistics alone: only min/max is built."""
        ...

    def from_footer(self, open_reader: Callable[[], Callable[..., Footer]], tail: int) -> Job:
        """From a Parquet footer, and from the data where an index needs it.

        Args:
            open_reader: opens a `StatisticsReader`, which one thread uses for some files.
            tail: bytes at the file's end that the reader reads first. They are fetched ahead.
        """
        ...


@dataclass(frozen=True, slots=True)
class HiveClasses:
    """The Java classes by which the metastore's storage descriptor names a format.

    Attributes:
        input_formats: full names. New tables get the first one; the others are older names.
        output_format: full name, for new tables.
        serdes: full names. New tables get the first one.
        hook: skipbridge's input format, which extends these and reads only files that may match;
            None if Hive cannot be hooked for this format.
    """

    input_formats: tuple[str, ...]
    output_format: str
    serdes: tuple[str, ...]
    hook: str | None = None


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format and its capabilities.

    Attributes:
        name: the name in tables, plans and on the wire, in lower case.
        spelled: the name in messages.
        hive: its classes in Hive; None if no table of the metastore can have this format.
        begins: the first bytes of its files. A file that starts with them but is not recognised is
            reported as damaged.
        recognise: whether a file has this format, from its first 512 and last 64 bytes (fewer if
            the file is shorter); None if the bytes cannot tell.
        read_schema: reads the columns of one file; None if a table's schema cannot be inferred from
            files. Errors: FileCorrupt, and those of Arrow.
        read_rows: reads the rows of one file for the Python API; None if it cannot read them.
        in_child: whether ``read_rows`` runs in a child process, because a damaged file may end the
            library that reads the files, or state any amount of memory.
        collect: makes a file's entry in the index, see `EntryBuilder`; None: it cannot be indexed.
        chunks: reads typed columns in one pass, for files whose meaning the table declares.
        index_kinds: whether indexes other than min/max can be built: ``collect`` makes entries from
            columns, values, or a footer.
        by_position: whether engines may find a column by its position instead of its name. The
            reader then gives each column a position and exactly one leaf; see
            `bridge.index.reading.column_resolution`.
        wide_times: why bounds of its timestamps are wider than its values; empty: they are not.
        no_times: why its timestamps may have none.
        splittable: whether engines may read a byte range of a file. Large files are then split.
        whole: whether a file is never split although the format can be, from the properties of its
            reader and its path; None: all may be split.
        described: whether readers are told what the metastore says of the files: SerDe, input
            format, their parameters, columns; see `bridge.metastore.reader_properties`.
        rewriting: gives what clustering reads and writes files with; None: it refuses the format.
        trino_reader: the name of the connector's reader; None: Trino refuses tables of this format.
        of_slices: a table format names it for its file slices or their logs; no table is stored in
            it.
    """

    name: str
    spelled: str
    hive: HiveClasses | None = None
    begins: tuple[bytes, ...] = ()
    recognise: Callable[[bytes, bytes], bool] | None = None
    read_schema: SchemaReader | None = None
    read_rows: RowReader | None = None
    in_child: bool = False
    collect: Callable[[EntryBuilder], Job] | None = None
    chunks: ChunkReader | None = None
    index_kinds: bool = False
    by_position: bool = False
    wide_times: str = ""
    no_times: str = ""
    splittable: bool = False
    whole: Callable[[Mapping[str, str], str], bool] | None = None
    described: bool = False
    rewriting: Callable[[], DataFiles] | None = None
    trino_reader: str | None = None
    of_slices: bool = False

    @property
    def is_indexed(self) -> bool:
        """Whether min/max can be built for its files."""
        return self.collect is not None
