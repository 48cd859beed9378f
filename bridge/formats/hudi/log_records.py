"""What the blocks of Hudi's log files hold: rows, and keys of deleted rows.

Nothing of a block is passed over: what cannot be decoded is an error that names file and place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from io import BytesIO
from struct import Struct
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from bridge.formats.avro.container import LONGEST_DECIMAL
from bridge.formats.hudi.avro_rows import DAMAGE, record_slices, row_decoder
from bridge.formats.hudi.by_id import FileColumns, column_of
from bridge.formats.hudi.fit import fit
from bridge.formats.hudi.hfile import HFile
from bridge.formats.hudi.log_format import BlockType, Header, LogBlock, damage
from bridge.formats.hudi.parquet_table import parquet_table
from bridge.formats.hudi.times import Times, repair_times, times_of_columns
from bridge.kernel.errors import FileCorrupt, UnsupportedTable
from bridge.storage.child import storage_in_memory
from bridge.storage.reading.source import is_passing

_INTS = Struct(">ii")
_HFILE_KEY = "key"
"""A column of this name is not written twice: where it is empty, the HFile's key is the value."""
_WIDE = Context(prec=100)
_DECIMAL_SCALE = 15
_DELETES_VERSION = 3
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
        fields = json.loads(block.text(Header.SCHEMA))["fields"]
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
    keys: list[bytes] = []
    with _damage_is_told(block):
        match block.type:
            case BlockType.PARQUET_DATA:
                content = bytes(block.content)
                return parquet_table(
                    storage_in_memory(content), block.uri, len(content), schema, by_id, times
                )
            case BlockType.AVRO_DATA:
                records: Sequence[bytes | memoryview] = record_slices(block.content)
            case BlockType.HFILE_DATA:
                entries = list(HFile.parse(block.content, block.uri).scan())
                records = [value for _, value in entries]
                keys = [key for key, _ in entries]
            case _:
                raise UnsupportedTable(
                    f"{block.uri}: the log block at byte {block.offset} is of the type "
                    f"{block.type.name}, which holds no rows",
                    "compact the table, or upgrade",
                )
        decoder = row_decoder(block.text(Header.SCHEMA), block.uri)
        decoded = [decoder.decode(record) for record in records]
        for key, row in zip(keys, decoded, strict=False):
            if row.get(_HFILE_KEY) == "":
                row[_HFILE_KEY] = key.decode()
        own = [column_of(by_id, field.name) for field in schema]
        found = decoder.columns(decoded, [column.name for column in own if column is not None])
    if times:
        pairs = zip(own, schema, strict=True)
        times = times_of_columns(
            times, {column.name: field.type for column, field in pairs if column}
        )
    found = {n: repair_times(a, times.get(n.lower()), n, block.uri) for n, a in found.items()}
    columns = [
        fit(found[column.name], field.type, field.name, block.uri, column)
        if column is not None and column.name in found
        else pa.nulls(len(decoded), field.type)
        for field, column in zip(schema, own, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


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
        source = BytesIO(data)
        found: Any = fastavro.schemaless_reader(
            source, _delete_schema(), None, return_record_name=True
        )
        if source.tell() != len(data):
            raise ValueError("it is longer than its keys")
        return [_delete(record) for record in found["deleteRecordList"]]


def _delete(record: dict[str, Any]) -> DeleteRecord:
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
