"""Rows of files whose library a damaged file may end, or that may state any amount of memory.

A child process decodes them (`bridge.storage.child`) and sends its batches as Arrow's streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from bridge.formats.registry import file_format
from bridge.formats.rows import Rows
from bridge.kernel.errors import BridgeError, FileChanged, FileCorrupt, FileUnreadable
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage
from bridge.storage.reading.source import WHOLE, is_gap, is_passing, open_source


def rows_of(
    storage: Storage,
    uri: str,
    size: int,
    format: str,
    wanted: Sequence[str],
    table: Sequence[str],
    *,
    nanoseconds: bool = True,
) -> Iterator[Rows]:
    """As `bridge.formats.file_format.RowReader`, from a file of a format.

    Args:
        nanoseconds: False: those of Parquet's INT96 are cut.

    Errors: those of the format's reader; FileUnreadable: it takes more memory than its size allows.
    """
    options = {} if nanoseconds else {"nanoseconds": False}
    asked = format, list(wanted), list(table), options
    for rows, sent in _READER.stream(storage, uri, size, *asked):
        if sent is None:
            yield {}, rows
            continue
        yield unpack_columns(sent), rows


def send_rows(
    storage: Storage,
    uri: str,
    size: int,
    format: str,
    wanted: Sequence[str],
    table: Sequence[str],
    options: Mapping[str, Any],
) -> Iterator[tuple[int, bytes | None]]:
    """Runs in the child: the number of rows of each piece, and the piece."""
    read = file_format(format).read_rows
    assert read is not None, f"{format} has no reader of rows"
    with damage_as_errors(uri):
        for found, rows in read(open_planned(storage, uri, size), uri, wanted, table, **options):
            yield rows, pack_columns(found) if found else None


_READER: ChildReader[Any] = ChildReader(send_rows)


def pack_columns(found: Mapping[str, pa.Array]) -> bytes:
    """Columns as one of Arrow's streams."""
    batch = pa.RecordBatch.from_arrays(list(found.values()), names=list(found))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpack_columns(sent: bytes) -> dict[str, pa.Array]:
    """The columns that `pack_columns` made a stream of."""
    with pa.ipc.open_stream(sent) as stream:
        batch = stream.read_next_batch()
    batch.validate()
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def open_planned(storage: Storage, uri: str, size: int) -> Any:
    """A file object for pyarrow, of a file that was planned with so many bytes.

    Errors:
        FileChanged: it has another size; for a large file its reads fail.
        FileUnreadable, StorageFailure.
    """
    source = open_source(storage, uri, size)
    if size <= WHOLE and source.size() != size:
        raise FileChanged(
            f"{uri} has {source.size()} bytes and not the {size} that were planned",
            "scan again; for a table of segments run skipbridge segment refresh first",
        )
    return source


@contextmanager
def damage_as_errors(uri: str) -> Iterator[None]:
    """Errors: FileCorrupt: a library finds damage; FileUnreadable: it lacks something."""
    try:
        yield
    except (BridgeError, GeneratorExit):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        if is_gap(error):
            raise FileUnreadable(
                f"{uri} cannot be read here: {first}", "read it with the engine"
            ) from error
        raise FileCorrupt(
            f"{uri} cannot be read: {first}", "restore it or write it again"
        ) from error
