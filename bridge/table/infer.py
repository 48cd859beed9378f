"""Infers a table's schema from its files: compares and widens the schemas of a sample.

The law: the inferred type of a column holds every value of every inspected file exactly. If no
common type exists, the conflict is reported with both files.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from bridge.formats.registry import file_format, recognise
from bridge.kernel.errors import (
    AmbiguousColumn,
    FileCorrupt,
    FileShort,
    SchemaConflict,
    UnsupportedTable,
)
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    NOTHING,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    UNKNOWN,
    Field,
    Kind,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from bridge.storage.port import Storage
from bridge.storage.reading.ahead import ask_all
from bridge.table.directory.stray import Stray, describe_stray_file
from bridge.table.model import Column

_INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_SIMPLE: dict[pa.DataType, Type] = {
    pa.null(): NOTHING,
    pa.bool_(): BOOLEAN,
    pa.int8(): TINYINT,
    pa.int16(): SMALLINT,
    pa.int32(): INTEGER,
    pa.int64(): BIGINT,
    pa.uint8(): SMALLINT,
    pa.uint16(): INTEGER,
    pa.uint32(): BIGINT,
    pa.uint64(): decimal(20, 0),
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    # Arrow's own names of what files store as plain numbers.
    **{pa.duration(unit): BIGINT for unit in ("s", "ms", "us", "ns")},
}


class AlikeNames(AmbiguousColumn, FileCorrupt):
    """A whole file whose names no engine can tell apart: for readers it is as good as damaged."""


def read_schema(storage: Storage, uri: str, size: int, format: str = "parquet") -> pa.Schema:
    """The schema of one file.

    Errors:
        FileCorrupt: not of this format, truncated, damaged, or with two columns that differ only
            in case.
        UnsupportedTable: schemas of this format cannot be read.
        FileUnreadable, StorageFailure.
    """
    known = file_format(format)
    if known.read_schema is None:
        raise UnsupportedTable(
            f"{uri} is stored as {known.spelled}", "its columns must be declared in the metastore"
        )
    try:
        return _legible(known.read_schema(storage, uri, size), uri)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise FileCorrupt(
            f"{uri}: cannot be read as {known.spelled}: {e}", "rewrite the file"
        ) from e


def _legible(schema: pa.Schema, uri: str) -> pa.Schema:
    """Returns the schema if Hive and Trino can use its names.

    Errors:
        UnicodeDecodeError: a name is not UTF-8.
        FileCorrupt: two columns, or two fields of a struct, differ only in case.
    """
    pending = [list(schema)]
    while pending:
        names: dict[str, str] = {}
        for field in pending.pop():
            first = names.get(field.name.lower())
            if first is not None:
                raise AlikeNames(
                    f"{uri}: two columns differ only in case: {first!r} and {field.name!r}",
                    "Hive and Trino cannot tell them apart: write the file again with other names",
                )
            names[field.name.lower()] = field.name
            if pa.types.is_nested(field.type):
                fields = [field.type.field(i) for i in range(field.type.num_fields)]
                pending += [fields] if pa.types.is_struct(field.type) else [[f] for f in fields]
    return schema


def infer_readable(
    storage: Storage, files: Sequence[tuple[str, int]], format: str = "parquet"
) -> tuple[tuple[Column, ...], tuple[Stray, ...]]:
    """Infers columns that hold the values of the given files (URI, size), in order of appearance.

    Types are as those of `merge_schemas`. Also returns the files that cannot be read.

    Errors:
        SchemaConflict: two files disagree.
        FileCorrupt: no file can be read; `AlikeNames`: for the names in it.
        FileUnreadable.
    """
    alike: list[AlikeNames] = []

    def read(file: tuple[str, int]) -> pa.Schema | Stray:
        uri, size = file
        try:
            return read_schema(storage, uri, size, format)
        except FileShort:
            return Stray(uri, "being written, or was cut", "wait until it is closed, or restore it")
        except AlikeNames as error:
            alike.append(error)
            what = error.message.removeprefix(uri).lstrip(": ")
            return Stray(uri, f"a file in which {what}", error.hint)
        except FileCorrupt as error:
            found = describe_stray_file(storage, uri, size)
            whole = recognise(storage, uri, size)
            if whole is not None and whole.name == format:  # the reader's message says more
                what = error.message.removeprefix(uri).lstrip(": ")
                found = Stray(uri, f"damaged: {what}", "restore it or write it again")
            return found

    found = ask_all(storage, read, files, files[0][0]) if files else []
    strays = tuple(each for each in found if isinstance(each, Stray))
    if alike and len(alike) == len(found):
        raise min(alike, key=str)  # threads end in any order
    if strays and len(strays) == len(found):
        raise FileCorrupt(f"{strays[0].uri} is {strays[0].what}", strays[0].remedy)
    schemas = (
        (uri, schema)
        for (uri, _), schema in zip(files, found, strict=True)
        if isinstance(schema, pa.Schema)
    )
    return merge_schemas(schemas), strays


def _shown(column: Column) -> str:
    known = column.type is not UNKNOWN
    return str(column.type) if known else "of a type that Hive does not have"


def merge_schemas(schemas: Iterable[tuple[str, pa.Schema]]) -> tuple[Column, ...]:
    """The columns that hold the values of files, of each its URI and its schema.

    In a type, what has no value in any of the files still has no type: see `settle_columns`.

    Errors:
        SchemaConflict.
    """
    merged: dict[str, tuple[Column, str]] = {}
    for uri, schema in schemas:
        for entry in schema:
            key = entry.name.lower()
            found = Column(key, _type_of(entry.type))
            held = merged.get(key)
            if held is None:
                merged[key] = (found, uri)
                continue
            wider = common_type(held[0].type, found.type)
            if wider is None:
                first, second = _shown(held[0]), _shown(found)
                raise SchemaConflict(
                    f"column {key!r} is {first} in {held[1]} and {second} in {uri}",
                    "rewrite the files of one of the two, or register them as two tables",
                )
            merged[key] = (Column(key, wider), held[1])
    return tuple(column for column, _ in merged.values())


def settle_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns as Hive can have them, or UNKNOWN; a member without a type is left out."""
    return tuple(Column(c.name, hive_type_of(c.type), c.comment) for c in columns)


def members_left_out(name: str, found: Type) -> Iterator[str]:
    """The members that `hive_type_of` leaves out of a column's type, such as ``address.zip``."""
    for f in found.fields if hive_type_of(found) is not UNKNOWN else ():
        path = f"{name}.{f.name}"
        if hive_type_of(f.type) is UNKNOWN:
            yield path
        yield from members_left_out(path, f.type)


def type_of(arrow: pa.DataType) -> Type:
    """The table type of a file column, from its Arrow type; UNKNOWN if Hive has none.

    Timestamps with and without a zone both become Hive's zone-free type, as Spark declares them. A
    member of a struct without values has no type, and is left out.
    """
    return hive_type_of(_type_of(arrow))


def hive_type_of(found: Type) -> Type:
    """The type that Hive can have; UNKNOWN if there is none. See `type_of`."""
    if found.kind is Kind.STRUCT:
        fields = [Field(f.name, hive_type_of(f.type)) for f in found.fields]
        known = [f for f in fields if f.type is not UNKNOWN]
        return struct(*known) if known else UNKNOWN
    if found.is_nested:
        fields = [Field(f.name, hive_type_of(f.type)) for f in found.fields]
        missing = any(f.type is UNKNOWN for f in fields)
        return UNKNOWN if missing else Type(found.kind, fields=tuple(fields))
    return UNKNOWN if found.kind is Kind.UNKNOWN else found


def _type_of(arrow: pa.DataType) -> Type:
    if isinstance(arrow, pa.BaseExtensionType):  # Hive, Spark and Trino see what it is stored as
        arrow = arrow.storage_type
    simple = _SIMPLE.get(arrow)
    if simple is not None:
        return simple
    if pa.types.is_timestamp(arrow):
        return TIMESTAMP
    if pa.types.is_decimal(arrow) and 0 <= arrow.scale <= arrow.precision <= 38:
        return decimal(arrow.precision, arrow.scale)
    if pa.types.is_fixed_size_binary(arrow):
        return BINARY
    if pa.types.is_dictionary(arrow):
        return _type_of(arrow.value_type)
    return _nested(arrow)


def _nested(arrow: pa.DataType) -> Type:
    if pa.types.is_map(arrow):
        parts = (_type_of(arrow.key_type), _type_of(arrow.item_type))
        return UNKNOWN if UNKNOWN in parts else map_of(*parts)
    t = pa.types
    if t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow):
        element = _type_of(arrow.value_type)
        return UNKNOWN if element is UNKNOWN else array(element)
    if pa.types.is_struct(arrow):
        fields = [Field(f.name.lower(), _type_of(f.type)) for f in arrow]
        return UNKNOWN if any(f.type is UNKNOWN for f in fields) else struct(*fields)
    return UNKNOWN


def common_type(
    left: Type, right: Type, same: Callable[[Type, Type], bool] = operator.eq
) -> Type | None:
    """The narrowest type that holds the values of both exactly; None if there is none.

    Names of members compare without case, and keep the spelling of ``left``.

    Args:
        same: whether ``left`` holds the values of ``right`` as it is; asked at every depth.
    """
    if same(left, right) or right == NOTHING:
        return left
    if left == NOTHING:
        return right
    if left.kind in _INTEGERS and right.kind in _INTEGERS:
        return max(left, right, key=lambda t: _INTEGERS.index(t.kind))
    if left.is_floating and right.is_floating:
        return DOUBLE
    if left.kind is Kind.DECIMAL and right.kind is Kind.DECIMAL and left.scale == right.scale:
        return max(left, right, key=lambda t: t.precision)
    if left.kind is Kind.STRUCT and right.kind is Kind.STRUCT:
        return _common_struct(left, right, same)
    if left.kind is right.kind and left.kind in (Kind.ARRAY, Kind.MAP):
        pairs = zip(left.fields, right.fields, strict=True)
        parts = [(a.name, common_type(a.type, b.type, same)) for a, b in pairs]
        fields = tuple(Field(name, type) for name, type in parts if type is not None)
        return Type(left.kind, fields=fields) if len(fields) == len(parts) else None
    return None


def _common_struct(left: Type, right: Type, same: Callable[[Type, Type], bool]) -> Type | None:
    fields = {f.name.lower(): f for f in left.fields}
    for f in right.fields:
        held = fields.setdefault(f.name.lower(), f)
        wider = common_type(held.type, f.type, same) if held is not f else f.type
        if wider is None:
            return None
        fields[f.name.lower()] = Field(held.name, wider)
    return struct(*fields.values())
