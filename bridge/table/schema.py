"""A table's schema from its Parquet files, and where they disagree."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.errors import FileCorrupt, UnsupportedType
from bridge.storage.port import FileListing, Storage
from bridge.table.model import Column
from bridge.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGER_RANGE,
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

_TAIL = 64 * 1024


def infer_schema(
    storage: Storage, files: FileListing, *, sample: int = 16
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Columns of the files, in lower case as Hive keeps names, and what they disagree about.

    A column is the widest of its types (int and bigint, float and double, decimals that only grow);
    columns that some files lack are kept.

    Args:
        sample: files read, evenly chosen with the first and the last; 0 reads all.

    Errors:
        FileCorrupt, FileUnreadable.
    """
    count = len(files)
    if not count:
        return (), ()
    chosen = range(count)
    if sample and count > sample:
        steps = max(sample - 1, 1)
        chosen = sorted({i * (count - 1) // steps for i in range(sample)})  # type: ignore[assignment]
    uris = [files.paths[i].as_py() for i in chosen]
    with ThreadPoolExecutor(8) as pool:
        schemas = list(
            pool.map(lambda i, uri: _schema(storage, uri, int(files.sizes[i])), chosen, uris)
        )
    types: dict[str, Type] = {}
    first: dict[str, str] = {}
    conflicts: list[str] = []
    for uri, schema in zip(uris, schemas, strict=True):
        seen: set[str] = set()
        for name, found in schema:
            if name in seen:
                conflicts.append(f"column {name} twice in {uri}, in different case")
            seen.add(name)
            known = types.setdefault(name, found)
            first.setdefault(name, uri)
            wider = widest(known, found)
            if wider is None:
                conflicts.append(f"column {name} is {known} in {first[name]}, {found} in {uri}")
            else:
                types[name] = wider
    return tuple(Column(name, kind) for name, kind in types.items()), tuple(conflicts)


def widest(left: Type, right: Type) -> Type | None:
    """The type that both read as exactly, None if there is none.

    >>> str(widest(INTEGER, BIGINT)), widest(INTEGER, STRING)
    ('bigint', None)
    """
    if left == right:
        return left
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda t: INTEGER_RANGE[t.kind][1])
    if left.is_floating and right.is_floating:
        return DOUBLE
    if left.kind is right.kind is Kind.DECIMAL:
        for wide, narrow in ((left, right), (right, left)):
            digits = (wide.precision - wide.scale) - (narrow.precision - narrow.scale)
            if wide.scale >= narrow.scale and digits >= 0:
                return wide
    return None


def _schema(storage: Storage, uri: str, size: int) -> list[tuple[str, Type]]:
    """Names in lower case and types of a file's columns."""
    (tail,) = storage.read_ranges(uri, [(max(0, size - _TAIL), size)])
    if len(tail) < 12 or tail[-4:] != b"PAR1":
        raise FileCorrupt(
            f"{uri} is not a Parquet file: it ends in {tail[-4:]!r}", "remove it from the table"
        )
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > size:
        raise FileCorrupt(f"{uri} is cut short", "rewrite it")
    if length > len(tail):
        (tail,) = storage.read_ranges(uri, [(size - length, size)])
    try:
        schema = pq.read_metadata(pa.BufferReader(tail)).schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri}: the Parquet footer is damaged: {first}", "rewrite it") from error
    return [(field.name.lower(), from_arrow(field.type)) for field in schema]


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], Type], ...] = (
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_int8, TINYINT),
    (pa.types.is_int16, SMALLINT),
    (pa.types.is_int32, INTEGER),
    (pa.types.is_int64, BIGINT),
    (pa.types.is_uint8, SMALLINT),  # the next wider signed type holds every value
    (pa.types.is_uint16, INTEGER),
    (pa.types.is_uint32, BIGINT),
    (pa.types.is_uint64, decimal(20, 0)),
    (pa.types.is_float16, FLOAT),
    (pa.types.is_float32, FLOAT),
    (pa.types.is_float64, DOUBLE),
    (pa.types.is_date32, DATE),
    # Hive declares both kinds of timestamp so; what an engine makes of a UTC-adjusted one is
    # part of its semantics (`bridge.types.Semantics`).
    (pa.types.is_timestamp, TIMESTAMP),
    (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING),
    (pa.types.is_binary, BINARY),
    (pa.types.is_large_binary, BINARY),
    (pa.types.is_fixed_size_binary, BINARY),
    (pa.types.is_null, STRING),
)


def from_arrow(kind: pa.DataType) -> Type:
    """The table's type for what a file stores; UNKNOWN where Hive has none."""
    if pa.types.is_decimal(kind):
        try:
            return decimal(kind.precision, kind.scale)
        except UnsupportedType:
            return UNKNOWN
    if pa.types.is_struct(kind):
        members = [kind.field(i) for i in range(kind.num_fields)]
        return struct(*(Field(member.name.lower(), from_arrow(member.type)) for member in members))
    if pa.types.is_map(kind):
        return map_of(from_arrow(kind.key_type), from_arrow(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return array(from_arrow(kind.value_type))
    for test, target in _SIMPLE:
        if test(kind):
            return target
    return UNKNOWN
