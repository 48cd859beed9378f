"""The fact files of a table of the metastore: where they lie, and how its record has them read.

The law: what is added is read as the table reads it, or it is refused. A property of its SerDe that
segments do not have refuses the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bridge.formats.registry import file_format
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    InvalidRequest,
    SegmentOverlap,
    SegmentSchemaMismatch,
    UnsupportedTable,
)
from bridge.kernel.types import whole_number
from bridge.runtime.compose import resolve
from bridge.segments.commands.fact_files import FactFiles
from bridge.segments.commands.places import refuse_own, resolve_links
from bridge.storage.port import Storage, join_tables
from bridge.table.directory.freshness import Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.hive_properties import (
    BY_PLACE,
    DELIMITER,
    HEADER_LINES,
    INPUT_FORMAT,
    SERDE,
    is_by_place,
)
from bridge.table.model import CatalogTable, Column, Partition
from bridge.table.partition import (
    NULL_MARKER,
    UNPARSABLE,
    parse_partition_name,
    parse_value,
    typed_values,
)
from bridge.table.read_version import NEWEST
from bridge.table.reader_spec import COLUMN_TYPES, COLUMNS, COLUMNS_BY_NAME, ReaderSpec
from bridge.table.registry import DIRECTORY, table_format
from bridge.table.segments.manifest import (
    Properties,
    SegmentColumn,
    TableDefinition,
    sorted_properties,
)
from bridge.table.segments.partition_columns import name_partition
from bridge.table.segments.properties import HEADER, PROPERTIES, check_properties
from bridge.table.slices import SliceBatch
from bridge.table.snapshot import TableContext

_NOT_OF_FILES = frozenset(
    {SERDE, INPUT_FORMAT, COLUMNS, COLUMN_TYPES, COLUMNS_BY_NAME[0], "serialization.format"}
)
_DEFAULTS = {
    DELIMITER: "\x01",
    "line.delim": "\n",
    HEADER_LINES: "0",
    "skip.footer.line.count": "0",
}
"""Values that say what segments do without being told."""


@dataclass(frozen=True, slots=True)
class HiveFacts:
    """The files of some partitions.

    Attributes:
        table: with its partition keys.
        columns: of the table, with the types that the partitions have at their places.
        files: sorted by path.
        format, properties: of a segment that reads them alike.
        partitions: of each file.
    """

    table: CatalogTable
    columns: tuple[Column, ...]
    files: FactFiles
    format: str
    properties: dict[str, str]
    partitions: tuple[Partition, ...]

    def names(self, columns: Sequence[SegmentColumn]) -> pa.Array:
        """The name of each file's partition, by the columns of the table of segments.

        Errors:
            SegmentSchemaMismatch: the table has no partition key for one of them.
            SegmentBadValue: a value is not of its column's type.
        """
        keys = [key.name.lower() for key in self.table.partition_keys]
        missing = [column.name for column in columns if column.name not in keys]
        if missing:
            raise SegmentSchemaMismatch(
                f"{self.table.name} has no partition key {', '.join(missing)}; it has "
                f"{', '.join(keys) or 'none'}",
                "each partition column must be a partition key of the table",
            )
        known: dict[str, str] = {}
        for one in self.partitions:
            if one.name not in known:
                values = dict(zip(keys, one.values, strict=True))
                known[one.name] = name_partition(columns, values, f"partition {one.name}")
        return pa.array([known[one.name] for one in self.partitions], pa.large_string())


def facts_of_table(
    config: Config, storage: Storage, name: str, partition: Mapping[str, str]
) -> HiveFacts:
    """What a table of the metastore holds now.

    Args:
        partition: values by partition key; only partitions that have all of them are taken.

    Errors:
        UnsupportedTable: it is no table of plain files, or is read in a way that segments have not.
        InvalidRequest: it has no such partition, or no file.
        SegmentOverlap: a file belongs to two of the partitions.
        TableNotFound, MetastoreUnavailable, StorageFailure.
    """
    catalog, full = resolve(config, name, storage)
    table = catalog.table(full)
    if table.table_format != DIRECTORY:
        raise UnsupportedTable(
            f"{table.name} is a table of the format {table.table_format!r}",
            "only the files of plain Hive tables are added so; others have versions of their own",
        )
    _require_names(table)
    with closing(
        DirectoryLister(storage, 16, recursive=config.flag("planner.recursive"))
    ) as lister:
        context = TableContext(storage, catalog, lister, None, lambda _: None, Live(), True)
        snapshot = table_format(table).snapshot(table, NEWEST, context)
        names = _chosen(table, snapshot.partition_names(), partition)
        with closing(snapshot.partitions(names)) as fetch:
            found = [part for batch in fetch for part in snapshot.slices(batch, None)]
    return _facts(table, found)


def _require_names(table: CatalogTable) -> None:
    """Errors: UnsupportedTable: Hive finds the columns by their places in the files."""
    for format, property in BY_PLACE.items():
        if is_by_place(table.properties, format):
            raise UnsupportedTable(
                f"{table.name} has {property}=true: Hive finds its columns by their places in the "
                "files",
                "segments find them by name: if names fit too, add the files with ADD SEGMENT "
                "LOCATION",
            )


def _chosen(table: CatalogTable, names: list[str], wanted: Mapping[str, str]) -> list[str]:
    keys = [key.name.lower() for key in table.partition_keys]
    given = {name.strip().lower(): value for name, value in wanted.items()}
    unknown = sorted(given.keys() - set(keys))
    if unknown:
        raise InvalidRequest(
            f"{table.name} has no partition key {', '.join(unknown)}",
            f"its partition keys are {', '.join(keys) or 'none'}",
        )
    if not names:
        raise InvalidRequest(
            f"the metastore has no partition of {table.name}",
            "MSCK REPAIR TABLE in Hive adds those of its directories",
        )
    kept = names
    for key in table.partition_keys:
        text = given.get(key.name.lower())
        if text is None:
            continue
        place = keys.index(key.name.lower())
        value = parse_value(None if text == NULL_MARKER else text, key.type)
        if value is UNPARSABLE:  # of a char or a double, too
            kept = [name for name in kept if parse_partition_name(name)[place][1] == text]
            continue
        values = typed_values(kept, table.partition_keys)[place]
        kept = [name for name, own in zip(kept, values, strict=True) if own == value]
    if not kept:
        raise InvalidRequest(
            f"{table.name} has no partition {', '.join(f'{k}={v}' for k, v in given.items())}",
            "see SHOW PARTITIONS in Hive",
        )
    return kept


def _facts(table: CatalogTable, slices: Sequence[SliceBatch]) -> HiveFacts:
    whole = join_tables([one.files for one in slices]) if slices else None
    if whole is None or not len(whole):
        raise InvalidRequest(f"{table.name} has no file in these partitions", "name others")
    readers = {
        reader or table.reader: example for one in slices for reader, example in _readers(one)
    }
    format, properties, columns = _one_reader(table, readers)
    partitions = [one.partitions[i] for one in slices for i in one.partition.tolist()]
    order = np.argsort(np.array(whole.paths.to_pylist(), object), kind="stable")
    files = whole.take(order)
    paths = files.paths.to_pylist()
    owner: dict[str, str] = {}
    for path, place in zip(paths, map(resolve_links, paths), strict=True):
        refuse_own(path, place)
        if place in owner:
            raise SegmentOverlap(
                f"{path} belongs to two partitions of {table.name}",
                "add the partitions of one location one after the other, to tables of their own",
            )
        owner[place] = path
    held = files.sizes > 0
    locations = tuple(dict.fromkeys(p.location for p in partitions))
    return HiveFacts(
        table,
        columns,
        FactFiles(
            locations,
            files.filter(held),
            tuple(p for p, h in zip(paths, held, strict=True) if not h),
        ),
        format,
        properties,
        tuple(partitions[i] for i, h in zip(order.tolist(), held.tolist(), strict=True) if h),
    )


def _readers(slices: SliceBatch) -> list[tuple[ReaderSpec, str]]:
    """The readers that files have, each with a partition."""
    numbers = np.zeros(len(slices), np.int32) if slices.reader is None else slices.reader
    used, first = np.unique(numbers, return_index=True)
    return [
        (slices.readers[i], slices.partitions[int(slices.partition[at])].name)
        for i, at in zip(used.tolist(), first.tolist(), strict=True)
    ]


def _one_reader(
    table: CatalogTable, readers: Mapping[ReaderSpec, str]
) -> tuple[str, dict[str, str], tuple[Column, ...]]:
    """The format, the properties and the columns of all files."""
    found: dict[tuple[str, Properties, tuple[Column, ...]], str] = {}
    for reader, partition in readers.items():
        columns = _columns(table, reader)
        format, properties = _as_segment(table, reader, columns)
        found.setdefault((format, sorted_properties(properties), columns), partition)
    if len(found) > 1:
        one, other = list(found.values())[:2]
        raise InvalidRequest(
            f"the partitions {one} and {other} of {table.name} are read in different ways",
            "add them as segments of their own: ... FROM TABLE ... PARTITION (...)",
        )
    ((format, told, columns),) = found
    return format, dict(told), columns


def _columns(table: CatalogTable, reader: ReaderSpec) -> tuple[Column, ...]:
    """Hive gives a column what the partition's column at its place has: of JSON by its own name."""
    if reader.columns is None or reader.format == "avro":
        return table.columns
    return tuple(
        Column(column.name, own.type)
        for column, own in zip(table.columns, reader.columns, strict=False)
        if reader.format != "json" or column.name.lower() == own.name.lower()
    )


def _as_segment(
    table: CatalogTable, reader: ReaderSpec, columns: Sequence[Column]
) -> tuple[str, dict[str, str]]:
    known = PROPERTIES.get(reader.format)
    if known is None:
        raise UnsupportedTable(
            f"{table.name} is of {file_format(reader.format).spelled} files",
            f"segments are of {', '.join(sorted(PROPERTIES))}",
        )
    by_reader = {one.reader: name for name, one in known.items() if one.reader}
    found: dict[str, str] = {}
    told = dict(reader.properties)
    if reader.format == "text":
        told[DELIMITER] = _delimiter(told)
    for name, value in told.items():
        if name in _NOT_OF_FILES or _DEFAULTS.get(name) == value:
            continue
        if name not in by_reader:
            raise UnsupportedTable(
                f"{table.name} is read with {name}={value!r}, which segments do not have",
                "add its files with ADD SEGMENT LOCATION, if they are read alike without it",
            )
        found[by_reader[name]] = value
    if reader.format == "csv":
        found[HEADER] = ",".join(c.name.lower() for c in columns)
    if check_properties(reader.format, found) != found:  # a SerDe does not take \\t for a tab
        raise UnsupportedTable(
            f"{table.name} is read with {found}, of which segments would make other characters",
            "set the characters themselves as its SERDEPROPERTIES",
        )
    return reader.format, found


def _delimiter(told: Mapping[str, str]) -> str:
    """What separates fields, as LazySimpleSerDe takes it: a number is a character's code."""
    text = told.get(DELIMITER) or told.get("serialization.format") or "\x01"
    code = whole_number(text)
    return chr(code) if code is not None and code < 128 else text


def require_columns(definition: TableDefinition, facts: HiveFacts) -> None:
    """Checks the record's columns against those of the table of segments.

    Columns of CSV are texts in Hive, and of any type in segments. Those of text files are found by
    their place.

    Errors:
        SegmentSchemaMismatch: a column is not there, or of another type.
    """
    theirs = {c.name.lower(): c for c in facts.columns}
    for column in definition.columns:
        found = theirs.get(column.name)
        if found is None or (facts.format != "csv" and found.type != column.type):
            held = "no column" if found is None else f"a column of type {found.type}"
            raise SegmentSchemaMismatch(
                f"{facts.table.name} has {held} {column.name}, which is {column.type}",
                "every column of the table must be there with its type",
            )
    names = [c.name.lower() for c in facts.columns]
    wanted = [c.name for c in definition.columns]
    if facts.format == "text" and names[: len(wanted)] != wanted:
        raise SegmentSchemaMismatch(
            f"{facts.table.name} has the columns {', '.join(names)} in this order",
            "fields of text files have no names: declare the columns in the same order",
        )


def keys_of_table(facts: HiveFacts, known: Sequence[str]) -> tuple[Column, ...]:
    """The partition keys that are no columns of the table of segments, with their types."""
    return tuple(k for k in facts.table.partition_keys if k.name.lower() not in known)
