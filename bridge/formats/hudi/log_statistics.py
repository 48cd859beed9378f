"""Bounds of the rows in a log of Hudi, from all of its blocks.

The law: every row that a reader takes whole from this log lies within the bounds. All data blocks
count, also those of failed writers: that only widens bounds. Keys of deleted rows are no rows. A
column that the log lacks is NULL, so whoever uses the bounds must make sure that the table's schema
has no other defaults.

Unknown: columns of nested and other types, and columns whose type differs between blocks. A log
with partial updates has no statistics at all, for a reader makes rows that it does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from bridge.formats.hudi.avro_columns import columns_of
from bridge.formats.hudi.avro_rows import DAMAGE, record_bounds, record_slices, row_decoder
from bridge.formats.hudi.log_format import BlockType, Header, LogBlock, parse_blocks
from bridge.formats.leaf_scan import LeafScan, unscaled_digits
from bridge.formats.parquet.tables import table_file
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.formats.rows import expect_rows
from bridge.formats.statistics import FileStatistics, LeafStatistics
from bridge.kernel.errors import FileCorrupt
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage

_SIMPLE = {
    pa.bool_(): PhysicalType("BOOLEAN", "bool", 1),
    pa.int32(): PhysicalType("INT32", "int", 32),
    pa.int64(): PhysicalType("INT64", "int", 64),
    pa.float32(): PhysicalType("FLOAT", "float"),
    pa.float64(): PhysicalType("DOUBLE", "double"),
    pa.date32(): PhysicalType("INT32", "date"),
    pa.string(): PhysicalType("BYTE_ARRAY", "string"),
    pa.binary(): PhysicalType("BYTE_ARRAY", "binary"),
}
_OTHER = PhysicalType("BYTE_ARRAY", "other")
_HINT = "compact the table; until then its slice is read by every query"
_MOST = 64 * 1024 * 1024
"""Records become objects on their way to Arrow, many times their bytes in the log. Bytes."""


def read(storage: Storage, uri: str, size: int) -> FileStatistics:
    """Statistics of one log of ``size`` bytes.

    Errors:
        FileCorrupt: it is damaged, too large, or holds partial updates or data that is not read
            here.
        FileUnreadable, StorageFailure.
    """
    if size > _MOST:
        raise FileCorrupt(f"{uri} has {size} bytes, and statistics are of at most {_MOST}", _HINT)
    (data,) = storage.read_ranges(uri, [(0, size)])
    blocks = parse_blocks(data, uri)
    kinds = {block.type for block in blocks}
    if BlockType.HFILE_DATA in kinds:
        raise FileCorrupt(f"{uri} holds HFile blocks, which have no statistics here", _HINT)
    tables = [_columns(block) for block in blocks if block.type in _DATA]
    if not tables:
        return FileStatistics(0, None, [])
    names = dict.fromkeys(name for table in tables for name in table)
    rows = sum(len(next(iter(table.values()))) for table in tables)
    leaves = [_leaf(number, name, tables) for number, name in enumerate(names)]
    return FileStatistics(rows, None, leaves)


_DATA = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA)


def _columns(block: LogBlock) -> Mapping[str, pa.Array]:
    """The columns of a data block in its own types. Errors: FileCorrupt."""
    if block.header.get(Header.IS_PARTIAL) == "true":
        raise FileCorrupt(f"{block.uri} holds partial updates, which have no statistics", _HINT)
    try:
        if block.type is BlockType.PARQUET_DATA:
            file = table_file(pa.BufferReader(block.content))
            table = file.read()
            expect_rows(table.num_rows, file.metadata.num_rows, block.uri)
            return {name: table[name].combine_chunks() for name in table.column_names}
        schema = block.text(Header.SCHEMA)
        decoder = row_decoder(schema, block.uri)
        starts, ends = (np.array(b, np.int64) for b in record_bounds(block.content))
        found = columns_of(schema, decoder, block.content, starts, ends)
        if found is not None:
            return found
        rows = [decoder.decode(record) for record in record_slices(block.content)]
        return decoder.columns(rows, [name for name, _, _ in decoder.fields])
    except (*DAMAGE, pa.ArrowException) as error:
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{block.uri}: a block is damaged: {first}", "restore it") from error


def _leaf(number: int, name: str, tables: Sequence[Mapping[str, pa.Array]]) -> LeafStatistics:
    """One column over all blocks."""
    arrays = [table[name] for table in tables if name in table]
    alike = all(array.type == arrays[0].type for array in arrays)
    stored = _stored(arrays[0].type) if alike else _OTHER
    column = PhysicalColumn((name,), stored)
    leaf = LeafStatistics(column.key(), column, None, None, True, None, None, 0)
    if stored is _OTHER:
        return leaf
    scan = LeafScan(number, leaf)
    for array in arrays:
        values = array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array
        scan.update({number: pa.chunked_array([values])})
    scan.finish()
    if len(arrays) < len(tables):
        leaf.nulls = None
    if leaf.nans is None and not stored.is_floating:
        leaf.nans = 0
    if stored.logical == "float" and leaf.lower is not None:
        # If the table has a double, Hudi's reader may take the float's shortest text (0.1) for it,
        # which lies between the float's neighbours.
        leaf.lower, leaf.upper = _neighbour(leaf.lower, -np.inf), _neighbour(leaf.upper, np.inf)
        leaf.exact = False
    if stored.logical == "decimal" and leaf.lower is not None:
        leaf.lower, leaf.upper = (
            unscaled_digits(v, stored.scale).to_bytes(16, "big", signed=True)
            for v in (leaf.lower, leaf.upper)
        )
    return leaf


def _stored(arrow: pa.DataType) -> PhysicalType:
    if pa.types.is_timestamp(arrow) and arrow.unit in ("ms", "us"):
        return PhysicalType("INT64", "timestamp", 64, unit=arrow.unit, utc=arrow.tz is not None)
    if pa.types.is_decimal128(arrow) and arrow.scale >= 0:
        return PhysicalType("FIXED_LEN_BYTE_ARRAY", "decimal", 16, arrow.precision, arrow.scale)
    return _SIMPLE.get(arrow, _OTHER)


def _neighbour(value: float, towards: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(towards)))


READER: ChildReader[FileStatistics] = ChildReader(read)
"""Reads in a child process: a damaged block may end the library that reads it."""
