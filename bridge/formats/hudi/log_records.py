"""What the blocks of Hudi's log files hold: rows, and keys of deleted rows.

Nothing of a block is passed over: what cannot be decoded is an error that names file and place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache, partial
from io import BytesIO
from struct import Struct
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from bridge.formats.avro.container import LONGEST_DECIMAL, checked_schema
from bridge.formats.avro.skipping import count_at
from bridge.formats.hudi.avro_rows import DAMAGE, RowDecoder, record_slices, row_decoder
from bridge.formats.hudi.by_id import FileColumns
from bridge.formats.hudi.hfile import HFile
from bridge.formats.hudi.log_format import BlockType, Header, LogBlock, damage
from bridge.formats.hudi.parquet_table import fit_pieces, parquet_table
from bridge.formats.hudi.times import Times
from bridge.formats.rows import Rows
from bridge.formats.rows_in_child import pack_columns, unpack_columns
from bridge.kernel.errors import FileCorrupt, UnsupportedTable
from bridge.storage.child import ChildReader, storage_in_memory
from bridge.storage.port import Storage
from bridge.storage.reading.source import is_passing

_INTS = Struct(">ii")
_HFILE_KEY = "key"
"""A column of this name is not written twice: where it is empty, the HFile's key is the value."""
_WIDE = Context(prec=100)
_DECIMAL_SCALE = 15
_DELETES_VERSION = 3
_PIECE = 256 << 10
"""Bytes of records that are objects at once."""
_WRAPPERS = ("Boolean", "Int", "Long", "Float", "Double", "Bytes", "String", "Date", "Decimal")
_MORE_WRAPPERS = ("TimeMicros", "TimestampMicros")
_TYPES = {"Boolean": "boolean", "Int": "int", "Float": "float", "Double": "double"}
_TYPES |= {"Bytes": "bytes", "String": "string", "Date": "int", "Decimal": "bytes"}


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A value that names its type, as Hudi writes ordering values.

    Attributes:
        kind: the name of Hudi's wrapper without the word itself: Int, Long, Date and others.
        value: dates as days, timestamps as microseconds since the epoch.
    """

    kind: str
    value: Any


OrderingValue = Wrapped | tuple["Wrapped | None", ...] | None
"""A tuple if the table orders by several fields; None if the writer gave none."""


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """The key of a deleted row."""

    key: str
    ordering: OrderingValue


def field_names(block: LogBlock) -> frozenset[str]:
    """The names of a data block's columns in lower case, as its header tells them.

    Errors:
        FileCorrupt: it does not.
    """
    with _damage_is_told(block):
        fields = checked_schema(block.text(Header.SCHEMA)).document["fields"]
        return frozenset(field["name"].lower() for field in fields)


def rows_of(
    block: LogBlock,
    schema: pa.Schema,
    by_id: FileColumns = MappingProxyType({}),
    times: Times = MappingProxyType({}),
) -> pa.Table:
    """The rows of a data block, in the columns and types of a schema; absent columns are NULL.

    Args:
        by_id: columns that the block has under other names or types.
        times: units of the table's times, by which the block's columns of the same names are read.

    Errors:
        FileCorrupt: it cannot be decoded.
        SchemaConflict: a value does not fit.
        UnsupportedTable: it holds changes of some columns only, or types that are not read.
    """
    if block.header.get(Header.IS_PARTIAL) == "true":
        raise UnsupportedTable(
            f"{block.uri}: the log block at byte {block.offset} holds partial updates",
            "compact the table, or read it with the engine",
        )
    with _damage_is_told(block):
        if block.type is BlockType.PARQUET_DATA:
            content = bytes(block.content)
            return parquet_table(
                storage_in_memory(content), block.uri, len(content), schema, by_id, times
            )
        decoder = row_decoder(block.text(Header.SCHEMA), block.uri)
        read = partial(_pieces, block, decoder)
        return fit_pieces(read, block.uri, len(block.content), schema, by_id, times)


def _pieces(block: LogBlock, decoder: RowDecoder, names: Sequence[str]) -> Iterator[Rows]:
    """The columns of some records at a time, for records become objects of many times their bytes.

    A large record with lists is decoded in a child process: each byte may become an object.
    """
    piece: list[dict[str, Any]] = []
    size = 0
    for record, key in _records(block):
        if size + len(record) > _PIECE and piece:
            yield decoder.columns(piece, names), len(piece)
            piece, size = [], 0
        if len(record) > _PIECE and decoder.lists:
            sent = bytes(record)
            packed = _LARGE.read(
                storage_in_memory(sent), block.uri, len(sent), block.text(Header.SCHEMA), key, names
            )
            yield unpack_columns(packed), 1
            continue
        piece.append(_row(decoder, record, key))
        size += len(record) + _INTS.size
    if piece:
        yield decoder.columns(piece, names), len(piece)


def _records(block: LogBlock) -> Iterator[tuple[bytes | memoryview, bytes]]:
    """The records of a block, each with its key in an HFile."""
    match block.type:
        case BlockType.AVRO_DATA:
            yield from ((record, b"") for record in record_slices(block.content))
        case BlockType.HFILE_DATA:
            for key, record in HFile.parse(block.content, block.uri).scan():
                yield record, key
        case _:
            raise UnsupportedTable(
                f"{block.uri}: the log block at byte {block.offset} is of the type "
                f"{block.type.name}, which holds no rows",
                "compact the table, or upgrade",
            )


def _row(decoder: RowDecoder, record: bytes | memoryview, key: bytes) -> dict[str, Any]:
    row = decoder.decode(record)
    if key and row.get(_HFILE_KEY) == "":
        row[_HFILE_KEY] = key.decode()
    return row


def read_large(
    storage: Storage, uri: str, size: int, schema: str, key: bytes, names: Sequence[str]
) -> bytes:
    """Runs in the child: the columns of one record, which is all of the file."""
    decoder = row_decoder(schema, uri)
    try:
        return pack_columns(decoder.columns([_row(decoder, storage.read(uri), key)], names))
    except DAMAGE as error:
        raise FileCorrupt(f"a record is damaged: {error}", "restore it") from error


_LARGE: ChildReader[bytes] = ChildReader(read_large)


def deletes_of(block: LogBlock) -> list[DeleteRecord]:
    """The keys in a delete block, in its order. Errors: FileCorrupt, UnsupportedTable."""
    import fastavro

    with _damage_is_told(block):
        version, length = _INTS.unpack_from(block.content)
        if version != _DELETES_VERSION:
            raise UnsupportedTable(
                f"{block.uri}: a block of deleted keys has version {version}, and "
                f"{_DELETES_VERSION} is read",
                "compact the table",
            )
        data = bytes(block.content[_INTS.size :])
        if length != len(data):
            raise ValueError("its keys are not as long as it says")
        source, schema = BytesIO(data), _deletion_schema()
        found: list[DeleteRecord] = []
        count, at = count_at(data, 0)
        while count:
            source.seek(at)
            for _ in range(count):
                record = fastavro.schemaless_reader(source, schema, None, return_record_name=True)
                found.append(_delete(record))
            count, at = count_at(data, source.tell())
        if at != len(data):
            raise ValueError("it is longer than its keys")
        return found


def _delete(record: Any) -> DeleteRecord:
    key = record["recordKey"]
    if key is None:
        raise ValueError("it has a deletion without a key")
    return DeleteRecord(key, _unwrap(record["orderingVal"]))


def _unwrap(wrapped: Any) -> OrderingValue:
    if wrapped is None:
        return None
    name, record = wrapped
    kind = name.rpartition(".")[2].removesuffix("Wrapper")
    if kind == "Array":
        return tuple(_single(part) for part in record["wrappedValues"] or ())
    return _single(wrapped)


def _single(wrapped: Any) -> Wrapped | None:
    if wrapped is None:
        return None
    name, record = wrapped
    kind = name.rpartition(".")[2].removesuffix("Wrapper")
    value = record["value"]
    if kind == "Decimal":
        if len(value) > LONGEST_DECIMAL:
            raise ValueError(f"a decimal has {len(value)} bytes")
        value = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-_DECIMAL_SCALE, _WIDE)
    return Wrapped(kind, value)


@cache
def _deletion_schema() -> Any:
    """Of one record of the list."""
    import fastavro

    return fastavro.parse_schema(_delete_schema()["fields"][0]["type"]["items"])


@cache
def _delete_schema() -> Any:
    """Hudi's HoodieDeleteRecordList; its union has grown at the end only."""
    import fastavro

    def wrapper(name: str) -> dict[str, Any]:
        field = {"name": "value", "type": _TYPES.get(name, "long")}
        return {"type": "record", "name": f"{name}Wrapper", "fields": [field]}

    known = (*_WRAPPERS, *_MORE_WRAPPERS)
    several = {
        "type": "record",
        "name": "ArrayWrapper",
        "fields": [
            {
                "name": "wrappedValues",
                "type": [
                    "null",
                    {
                        "type": "array",
                        "items": [
                            "null",
                            *(f"{name}Wrapper" for name in known),
                            {
                                "type": "record",
                                "name": "LocalDateWrapper",
                                "fields": [{"name": "value", "type": "int"}],
                            },
                        ],
                    },
                ],
            }
        ],
    }
    fields = [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "orderingVal", "type": ["null", *map(wrapper, known), several]},
    ]
    record = {"type": "record", "name": "HoodieDeleteRecord", "fields": fields}
    items = {"name": "deleteRecordList", "type": {"type": "array", "items": record}}
    return fastavro.parse_schema(
        {"type": "record", "name": "HoodieDeleteRecordList", "fields": [items]}
    )


@contextmanager
def _damage_is_told(block: LogBlock) -> Iterator[None]:
    try:
        yield
    except FileCorrupt as error:
        raise damage(block.uri, block.offset, error.message) from error
    except (*DAMAGE, OSError) as error:
        if is_passing(error):
            raise
        detail = str(error) or type(error).__name__
        raise damage(block.uri, block.offset, detail.partition("\n")[0]) from error
