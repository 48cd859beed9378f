"""The end of a Parquet file with its footer, usually read in one request."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.kernel.errors import FileCorrupt
from bridge.storage.port import Storage
from bridge.storage.reading.source import TAIL, is_passing


def read_tail(storage: Storage, uri: str, size: int) -> bytes:
    """The last bytes of a file of ``size`` bytes, including the whole footer.

    Errors:
        FileCorrupt: not Parquet, cut short, or encrypted.
        FileUnreadable, StorageFailure.
    """
    start = max(0, size - TAIL)
    (tail,) = storage.read_ranges(uri, [(start, size)])
    length = _footer_length(tail, uri)
    if length > size:
        raise FileCorrupt(
            f"{uri} is cut short: its footer alone has {length} bytes", "rewrite the file"
        )
    if length <= len(tail):
        return tail
    (head,) = storage.read_ranges(uri, [(size - length, start)])
    return head + tail


def count_rows(storage: Storage, uri: str, size: int) -> int:
    """The rows that a file's footer states. Errors: as of `read_tail`."""
    return int(open_footer(read_tail(storage, uri, size), uri).num_rows)


def footer_of(content: bytes, uri: str) -> bytes:
    """The footer of a whole file. Errors: FileCorrupt: as of `read_tail`."""
    length = _footer_length(content[-12:], uri)
    if length > len(content):
        raise FileCorrupt(f"{uri} is cut short: its footer alone has {length} bytes", "rewrite it")
    return content[-length:-8]


def _footer_length(tail: bytes, uri: str) -> int:
    if len(tail) < 12 or tail[-4:] != b"PAR1":
        what = "has an encrypted footer" if tail[-4:] == b"PARE" else "does not end as Parquet does"
        raise FileCorrupt(
            f"{uri} {what}", "restore it, write it again, or move it out of the table"
        )
    return int.from_bytes(tail[-8:-4], "little") + 8


def open_footer(tail: bytes, uri: str) -> pq.FileMetaData:
    """Parses the footer in a result of `read_tail`. Errors: FileCorrupt."""
    try:
        reader = pq.core.ParquetReader()  # a third faster than its wrapper read_metadata
        reader.open(pa.BufferReader(tail))
        return reader.metadata
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri}: the Parquet footer is damaged: {first}", "rewrite it") from error
