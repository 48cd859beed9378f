"""What a file format is: how its files are recognised, described, indexed and read by engines.

A format is one file: an instance of `FileFormat` named ``FORMAT`` in `bridge.file_formats`, or an
entry point elsewhere, see CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bridge.file_formats.rows import Rows
from bridge.file_formats.statistics import FileStatistics
from bridge.storage.port import Storage

SchemaReader = Callable[[Storage, str, int], pa.Schema]
"""Called with the storage, a file's URI and its size in bytes."""
StatisticsReader = Callable[[Storage, str, int], FileStatistics]
"""Called with the storage, a file's URI and its size in bytes.

The law: what it says of a column is true of the values that every engine reads from the file. What
it cannot tell for sure it leaves unknown, and the file is read. Errors: FileCorrupt for a file that
is damaged or of another format; FileUnreadable, StorageFailure.
"""

RowReader = Callable[[Any, str, Sequence[str], Sequence[str]], Iterator[Rows]]
"""Called with a file that pyarrow can read from, its URI, the columns wanted, and all data columns
of the table, for files that name columns by their place. Yields each wanted column that the file
has, by the wanted name. Errors: FileCorrupt, and those of Arrow.
"""


@dataclass(frozen=True, slots=True)
class HiveClasses:
    """The Java classes by which the metastore's storage descriptor names a format.

    Attributes:
        input_formats: full names. The first is what a new table gets; the others are older names.
        output_format: what a new table gets.
        serdes: full names. The first is what a new table gets.
        hook: the input format of ours that extends these and reads only the files that may match;
            None if Hive cannot be hooked for this format.
    """

    input_formats: tuple[str, ...]
    output_format: str
    serdes: tuple[str, ...]
    hook: str | None = None


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format, and what can be done with its files.

    Attributes:
        name: as tables, plans and the wire spell it, in lower case.
        spelled: as messages spell it.
        hive: its classes in Hive; None if no table of the metastore can have this format.
        begins: the first bytes of its files. A file that begins so and is not recognised is
            reported as damaged.
        recognise: whether a whole file is of this format, by its first 512 bytes and its last 64
            (fewer of a shorter file); None if its bytes do not tell.
        read_schema: the columns of one file; None if tables of it cannot be inferred from files.
            Errors: FileCorrupt, and those of Arrow.
        read_rows: the rows of one file, for the Python API; None if it cannot read them.
        statistics: opens a reader of statistics, used by one thread for some files; None if no
            index can be built of it.
        index_kinds: whether indexes beside min/max can be built: its reader then gives a Footer
            of `bridge.file_formats.readers.parquet_statistics`.
        by_position: whether engines may find a column by its place in the file and not by its
            name. Its reader gives every column its position, one leaf for each; see
            `bridge.index.column_resolution`.
        splittable: whether engines may read a byte range of a file, so that large ones are cut.
        trino_reader: the name of the connector's reader; None: Trino refuses its tables.
    """

    name: str
    spelled: str
    hive: HiveClasses | None = None
    begins: tuple[bytes, ...] = ()
    recognise: Callable[[bytes, bytes], bool] | None = None
    read_schema: SchemaReader | None = None
    read_rows: RowReader | None = None
    statistics: Callable[[], StatisticsReader] | None = None
    index_kinds: bool = False
    by_position: bool = False
    splittable: bool = False
    trino_reader: str | None = None
