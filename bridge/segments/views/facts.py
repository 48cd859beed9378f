"""Reads the facts of a segment for a view, without changing what an engine would read.

The law: an engine reads from the view's file exactly the values that it reads from the facts. A
Parquet file's columns are therefore copied with their physical and logical types, so that every
conversion to the table's type is left to the engine. An ORC file's column is taken only where its
type is the table's own and readers agree about it. Text files are read by the parsers of indexes,
which leave out what engines might read differently. What is not certain is refused: the segment
then has no view, and its facts are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.column_chunks import OTHER
from bridge.formats.lines.recipe import CAST, Recipe
from bridge.formats.parquet.tables import stored_columns
from bridge.formats.registry import file_format
from bridge.formats.rows import BATCH_ROWS, places_of
from bridge.formats.rows_in_child import rows_of
from bridge.kernel.arrow_types import arrow_type
from bridge.kernel.errors import FileAmbiguous, FileChanged, FileCorrupt
from bridge.kernel.types import Kind, Type
from bridge.storage.port import Storage, same_state
from bridge.storage.reading.one_version import OneVersion
from bridge.storage.reading.source import is_passing, open_source
from bridge.table.model import Column

_DAYS_1900 = -25_567
_SAME = frozenset(
    {
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.DATE,
        Kind.STRING,
        Kind.BINARY,
    }
)
"""Kinds of which an ORC column of the same Arrow type holds the table's own values."""


class NotCertain(Exception):
    """A value of the facts may be read differently by an engine. The message says which and why."""


@dataclass(frozen=True, slots=True)
class FactFile:
    """One file of facts, as it was committed.

    Attributes:
        format: a name in the registry of file formats.
        columns: all data columns of the table.
        recipe: how a text file's lines are read; None for formats that describe themselves.
        partition: its name; a view has files of its own for each.
    """

    uri: str
    size: int
    modified: int
    etag: str | None
    format: str
    columns: tuple[Column, ...]
    recipe: Recipe | None = None
    partition: str = ""


@dataclass(frozen=True, slots=True)
class OpenFacts:
    """An opened file of facts.

    Attributes:
        schema: of the view's file: the view's columns that the file has, as they are written.
        batches: draws the rows; each batch has this schema.
    """

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]


FactReader = Callable[[Storage, FactFile, Sequence[Column]], OpenFacts]
"""Errors: NotCertain; FileCorrupt, FileChanged, FileUnreadable, StorageFailure."""


def open_facts(storage: Storage, fact: FactFile, wanted: Sequence[Column]) -> OpenFacts:
    """Opens a file of facts.

    Args:
        wanted: the view's columns.

    Errors:
        NotCertain: the view must not have this file's rows.
        FileCorrupt, FileChanged, FileUnreadable, StorageFailure.
    """
    reader = _READERS.get(fact.format, _declared)
    try:
        return reader(OneVersion.of(storage, fact), fact, wanted)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(fact, error) from error


def require_same(storage: Storage, fact: FactFile) -> None:
    """Checks, after a file was read, that it is the one that was committed.

    Errors:
        FileChanged: it is another file now, or gone.
    """
    now = storage.stat(fact.uri)
    if now is not None and same_state(fact, now):
        return
    raise FileChanged(
        f"{fact.uri} is another file than was recorded" + (": it is gone" if now is None else ""),
        "skipbridge segment refresh",
    )


def _damaged(fact: FactFile, error: Exception) -> Exception:
    if is_passing(error):
        return error
    first = str(error).partition("\n")[0]
    return FileCorrupt(f"{fact.uri} cannot be read: {first}", "restore it or write it again")


def _source(storage: Storage, fact: FactFile) -> Any:
    return open_source(storage, fact.uri, fact.size)


# Parquet: a copy of the physical columns.


def _parquet(storage: Storage, fact: FactFile, wanted: Sequence[Column]) -> OpenFacts:
    stored, leaves = stored_columns(_source(storage, fact))
    places = places_of(stored.names, [c.name for c in wanted], fact.uri)
    counts = [_leaves(field.type) for field in stored]
    if sum(counts) != len(leaves):
        raise NotCertain(f"{fact.uri} has columns that are not understood")
    first = [sum(counts[:place]) for place in range(len(counts))]
    fields: list[pa.Field] = []
    for column in wanted:
        if column.name not in places:
            continue
        place = places[column.name]
        mine = leaves[first[place] : first[place] + counts[place]]
        copied = _Copy(fact.uri, column.name, mine).of(stored.field(place).type, column.type)
        fields.append(pa.field(column.name, copied))
    schema = pa.schema(fields)
    _some(schema, fact)

    def batches() -> Iterator[pa.RecordBatch]:
        asked = storage, fact.uri, fact.size, "parquet", schema.names, ()
        try:
            for held, _ in rows_of(*asked, nanoseconds=False):
                columns = [_written(held[field.name], field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(fact, error) from error

    return OpenFacts(schema, batches)


def _some(schema: pa.Schema, fact: FactFile) -> None:
    if not len(schema):
        raise NotCertain(f"{fact.uri} has none of the view's columns")


def _leaves(type: pa.DataType) -> int:
    if isinstance(type, pa.BaseExtensionType):
        return _leaves(type.storage_type)
    if not pa.types.is_nested(type):
        return 1
    return sum(_leaves(type.field(i).type) for i in range(type.num_fields))


class _Copy:
    """The Arrow type that writes a column with the physical and logical types that it has."""

    def __init__(self, uri: str, column: str, leaves: Sequence[Any]) -> None:
        self._uri, self._column = uri, column
        self._leaves = iter(leaves)

    def of(self, arrow: pa.DataType, target: Type) -> pa.DataType:
        """Errors: NotCertain."""
        return self._of(arrow, target, (self._column,), 1)

    def _of(
        self, arrow: pa.DataType, target: Type, path: tuple[str, ...], depth: int
    ) -> pa.DataType:
        t = pa.types
        if t.is_struct(arrow) and target.kind is Kind.STRUCT:
            if len({f.name.lower() for f in arrow}) < arrow.num_fields:
                raise self._refused("two of its fields differ only in case")
            known = {f.name.lower(): f.type for f in target.fields}
            fields = []
            for field in arrow:
                # A field that the table lacks is copied as well: it is never read.
                inner = known.get(field.name.lower(), _LIKE_STORED)
                kept = self._of(field.type, inner, (*path, field.name), depth + 1)
                fields.append(pa.field(field.name, kept))
            return pa.struct(fields)
        if (t.is_list(arrow) or t.is_large_list(arrow)) and target.kind is Kind.ARRAY:
            inner = target.fields[0].type
            kept = self._of(arrow.value_type, inner, (*path, "list"), depth + 2)
            return pa.list_(pa.field("element", kept))
        if t.is_map(arrow) and target.kind is Kind.MAP:
            key, value = (f.type for f in target.fields)
            kept_key = self._of(arrow.key_type, key, (*path, "key_value"), depth + 2)
            kept_value = self._of(arrow.item_type, value, (*path, "key_value"), depth + 2)
            return pa.map_(kept_key, kept_value)
        if t.is_nested(arrow):
            raise self._refused(f"it is stored as {arrow}")
        leaf = next(self._leaves)
        names = leaf.path.split(".")
        if len(names) != depth or any(
            asked != name
            for asked, name in zip(path[1:], names[1:], strict=False)
            if asked in ("list", "key_value")
        ):
            # Readers resolve lists of two levels by different rules.
            raise self._refused("its lists are not stored in three levels")
        return self._leaf(arrow, leaf, target)

    def _leaf(self, arrow: pa.DataType, leaf: Any, target: Type) -> pa.DataType:
        t = pa.types
        if t.is_dictionary(arrow):
            arrow = arrow.value_type
        logical = json.loads(leaf.logical_type.to_json())
        name, physical = logical.get("Type", "None"), leaf.physical_type
        match physical, name:
            case "BOOLEAN", "None":
                return pa.bool_()
            case (("INT32" | "INT64"), ("None" | "Int")) if t.is_integer(arrow):
                return arrow
            case "FLOAT", "None":
                return pa.float32()
            case "DOUBLE", "None":
                return pa.float64()
            case "INT32", "Date":
                return pa.date32()
            case "INT64", "Timestamp" if t.is_timestamp(arrow):
                # Without a zone, the old annotation counts as UTC for Java and not for Arrow.
                return pa.timestamp(arrow.unit, "UTC" if logical["isAdjustedToUTC"] else None)
            case _, "Decimal" if t.is_decimal(arrow):
                if (arrow.precision, arrow.scale) == (target.precision, target.scale):
                    return pa.decimal128(arrow.precision, arrow.scale)
                raise self._refused(f"it is stored as {arrow} and is {target} in the table")
            case "BYTE_ARRAY", "None":
                return pa.binary()
            case "BYTE_ARRAY", "String":
                return pa.string()
            case "INT96", _:
                raise self._refused("it is stored as INT96, whose value depends on the reader")
        raise self._refused(f"it is stored as {physical} ({name})")

    def _refused(self, why: str) -> NotCertain:
        return NotCertain(f"column {self._column} of {self._uri} is not copied into a view: {why}")


_LIKE_STORED = Type(Kind.UNKNOWN)


def _written(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values in the type that is written; nothing is converted but representations."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == target else array.cast(target)


# ORC: columns of the table's own type.


def _orc(storage: Storage, fact: FactFile, wanted: Sequence[Column]) -> OpenFacts:
    from bridge.formats.orc.rows import SCHEMA

    stored = SCHEMA.read(storage, fact.uri, fact.size)
    places = places_of(stored.names, [c.name for c in wanted], fact.uri)
    position = {c.name: i for i, c in enumerate(fact.columns)}
    fields: list[pa.Field] = []
    for column in wanted:
        place = places.get(column.name)
        # Engines find a column by its name or by its place: both must give the same.
        if place is None or place != position.get(column.name) or "." in column.name:
            raise NotCertain(f"{fact.uri} does not have column {column.name} in the table's place")
        fields.append(pa.field(column.name, _orc_type(stored.field(place).type, column, fact.uri)))
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for held, _ in rows_of(storage, fact.uri, fact.size, "orc", schema.names, ()):
                columns = [held[field.name] for field in schema]
                for field, column in zip(schema, columns, strict=True):
                    _agreed(column, field, fact)
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(fact, error) from error

    return OpenFacts(schema, batches)


def _orc_type(stored: pa.DataType, column: Column, uri: str) -> pa.DataType:
    kind = column.type.kind
    # Hive 0.11 declared no precision; Arrow reads that as (38, 6).
    decimal = kind is Kind.DECIMAL and (column.type.precision, column.type.scale) != (38, 6)
    same = arrow_type(column.type) if decimal or kind in _SAME else None
    if same is None or same != stored:
        raise NotCertain(
            f"column {column.name} of {uri} is not copied into a view: "
            f"it is stored as {stored} and is {column.type} in the table"
        )
    return same


def _agreed(array: pa.Array, field: pa.Field, fact: FactFile) -> None:
    """Refuses values about which readers may differ.

    Writers disagree about the calendar of old dates. Of a CHAR, which looks like any other text
    here, some readers trim the padding.
    """
    if pa.types.is_date32(field.type):
        least = pc.min(array.cast(pa.int32())).as_py()
        if least is not None and least < _DAYS_1900:
            raise NotCertain(f"column {field.name} of {fact.uri} has dates before 1900")
    elif pa.types.is_string(field.type) and pc.any(pc.ends_with(array, " ")).as_py():
        raise NotCertain(f"column {field.name} of {fact.uri} has text that ends with spaces")


# Text and Avro: the values about which engines agree under the table's declaration.


def _declared(storage: Storage, fact: FactFile, wanted: Sequence[Column]) -> OpenFacts:
    chunks = file_format(fact.format).chunks
    if chunks is None or fact.recipe is None:
        raise NotCertain(f"{fact.uri} has the format {fact.format}, which views are not built from")
    recipe = fact.recipe
    strict = recipe.property_map.get(CAST) == "fail"
    fields = [pa.field(c.name, _declared_type(c, fact)) for c in wanted]
    schema = pa.schema(fields)
    opened = chunks(storage, fact.uri, fact.size, recipe)
    number = {leaf.path: i for i, leaf in enumerate(opened.leaves) if leaf.type != OTHER}
    for column in wanted:
        if (column.name,) not in number:
            raise _doubtful(column, fact)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for rows, values in opened.batches():
                found = []
                for column, field in zip(wanted, schema, strict=True):
                    at = number[(column.name,)]
                    if at not in values:
                        raise _doubtful(column, fact)
                    one = _one_array(values[at], field.type)
                    if len(one) != rows or (strict and one.null_count):
                        raise _doubtful(column, fact)
                    _not_cut(one, column, fact)
                    found.append(one)
                for start in range(0, rows, BATCH_ROWS):
                    part = [one.slice(start, BATCH_ROWS) for one in found]
                    yield pa.RecordBatch.from_arrays(part, schema=schema)
        except FileAmbiguous as error:
            raise NotCertain(error.message) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(fact, error) from error
        loose = opened.loose()
        for column in wanted:
            if number[(column.name,)] in loose:
                raise _doubtful(column, fact)

    return OpenFacts(schema, batches)


def _declared_type(column: Column, fact: FactFile) -> pa.DataType:
    kind = column.type.kind
    parsed = kind in (Kind.DECIMAL, Kind.TIMESTAMP, Kind.VARCHAR)
    found = arrow_type(column.type) if parsed or kind in _SAME - {Kind.BINARY} else None
    if found is None:
        raise NotCertain(
            f"column {column.name} is {column.type}, which is not taken from {fact.format} files"
        )
    return found


def _one_array(values: pa.ChunkedArray, target: pa.DataType) -> pa.Array:
    whole = values.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
    return whole if whole.type == target else whole.cast(target)


def _not_cut(array: pa.Array, column: Column, fact: FactFile) -> None:
    if column.type.kind is Kind.VARCHAR:
        longest = pc.max(pc.utf8_length(array)).as_py()
        if longest is not None and longest > column.type.length:
            raise _doubtful(column, fact)


def _doubtful(column: Column, fact: FactFile) -> NotCertain:
    return NotCertain(
        f"column {column.name} of {fact.uri} has values that engines may read differently"
    )


_READERS: dict[str, FactReader] = {"parquet": _parquet, "orc": _orc}
