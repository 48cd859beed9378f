"""The rows of one file slice: its base file merged with its logs.

The law: the rows are those that Spark reads. Blocks apply in their order; a row's key finds its
earlier version; the table's rules say which of the two counts. Among rows of the base file with the
same key only the first meets the logs, as in Hudi; where Hudi would go by position, the slice is
refused. No filter may be applied before: it could remove the version that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.errors import BridgeError, FileCorrupt, UnsupportedTable
from bridge.file_formats.readers.hudi.avro_rows import DAMAGE
from bridge.file_formats.readers.hudi.by_id import FileColumns, LogColumns
from bridge.file_formats.readers.hudi.log_format import (
    BlockType,
    Header,
    LogBlock,
    blocks_in_merge_order,
    read_logs,
)
from bridge.file_formats.readers.hudi.log_records import deletes_of, field_names, rows_of
from bridge.file_formats.readers.hudi.parquet_table import parquet_table
from bridge.file_formats.readers.hudi.times import Times, of_file
from bridge.storage.one_version import OneVersion
from bridge.storage.port import UNKNOWN_TIME, FileStat, Storage
from bridge.storage.source import is_passing
from bridge.table.hudi.avro_schema import META_COLUMNS
from bridge.table.hudi.merge_mode import MergeMode
from bridge.table.hudi.merge_rules import (
    RECORD_KEY,
    MergeRules,
    Ordering,
    find_column,
)

_IS_DELETED = "_hoodie_is_deleted"
_OPERATION = "_hoodie_operation"
_DELETIONS = ("D", "-U")


@dataclass(frozen=True, slots=True)
class _Version:
    """The version of a key that counts so far.

    Attributes:
        row: in the rows of all logs; -1 if it came as a deleted key.
        deleted: the key is deleted, if this version counts in the end.
    """

    row: int
    ordering: Any
    deleted: bool


def read_slice(
    storage: Storage,
    base: tuple[str, int] | None,
    logs: Sequence[tuple[str, int]],
    schema: pa.Schema,
    rules: MergeRules,
    is_valid: Callable[[str], bool],
    columns: Sequence[str] | None = None,
    by_id: FileColumns = MappingProxyType({}),
    log_columns: LogColumns | None = None,
    times: Times = MappingProxyType({}),
) -> pa.Table:
    """All rows of a slice, those of the base file first.

    Args:
        base: a Parquet file, and its length in bytes; None if there is none.
        logs: with their planned lengths, in the order of Hudi's log files.
        schema: the table's; Hudi's five columns are added in front if the table has them. Its names
            may differ in case from those of rules and files.
        is_valid: whether the blocks that an instant wrote count.
        columns: names to return, in this order; None: all.
        by_id: columns that the base file has under other names or types.
        log_columns: those of the logs; None: they have the table's.
        times: units of the table's times, by which files' columns of the same names are read.

    Errors:
        FileChanged: a file is not as long as planned.
        FileCorrupt, FileUnreadable, StorageFailure.
        SchemaConflict: a file's column does not go into the table's type.
        UnsupportedTable: partial updates, unknown blocks, keys of types that are not read.
    """
    whole = _with_meta_columns(schema, rules)
    wanted = list(columns) if columns is not None else whole.names
    needed = _needed(whole, wanted, rules)
    ordering = Ordering(needed, _ordering_fields(rules), rules.millis)
    found = needed.empty_table()
    if base is not None:
        found = read_base(storage, base, needed, by_id, times)
    blocks = blocks_in_merge_order(read_logs(storage, logs), is_valid)
    if not blocks:
        return found.select(wanted)
    versions, rows = _merge_logs(blocks, needed, rules, ordering, log_columns, times)
    if not rules.legacy and any(Header.RECORD_POSITIONS in block.header for block in blocks):
        _refuse_duplicates(found, versions, rules)
    keep, over = _over_base(found, versions, rules, ordering)
    taken = pa.array(np.array(over, np.int64))
    return pa.concat_tables([found.filter(keep), rows.take(taken)]).select(wanted)


def _with_meta_columns(schema: pa.Schema, rules: MergeRules) -> pa.Schema:
    if rules.key_fields != (RECORD_KEY,):
        return schema
    missing = [name for name in META_COLUMNS if name not in schema.names]
    return pa.schema([*(pa.field(name, pa.string()) for name in missing), *schema])


def _ordering_fields(rules: MergeRules) -> tuple[str, ...]:
    if rules.mode is MergeMode.COMMIT_TIME_ORDERING and not rules.legacy:
        return ()
    return rules.ordering_fields


def _needed(schema: pa.Schema, wanted: Sequence[str], rules: MergeRules) -> pa.Schema:
    names = {*wanted, *rules.key_fields, _IS_DELETED, _OPERATION}
    for field in _ordering_fields(rules):
        names |= {field, field.partition(".")[0]}
    if rules.delete_marker is not None:
        names.add(rules.delete_marker[0])
    for name in (*wanted, *rules.key_fields):
        if find_column(schema.names, name) is None or schema.names.count(name) > 1:
            raise UnsupportedTable(
                f"{name!r} is no column of the table, or there are two",
                "skipbridge sync, or Hudi's own sync, brings the catalogue up to date",
            )
    lowered = {name.lower() for name in names}
    return pa.schema([field for field in schema if field.name.lower() in lowered])


def read_base(
    storage: Storage, base: tuple[str, int], schema: pa.Schema, by_id: FileColumns, times: Times
) -> pa.Table:
    """All rows of a base file, in the columns and types of a schema.

    Errors:
        FileChanged, FileCorrupt, FileUnreadable, SchemaConflict, StorageFailure.
    """
    uri, size = base
    with _damage_is_told(uri):
        planned = OneVersion.of(storage, FileStat(uri, size, UNKNOWN_TIME))
        return parquet_table(planned, uri, size, schema, by_id, times)


@contextmanager
def _damage_is_told(uri: str) -> Iterator[None]:
    try:
        yield
    except (BridgeError, MemoryError):
        raise
    except (*DAMAGE, OSError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(
            f"{uri} cannot be read: {first}", "restore it or write it again"
        ) from error


def _merge_logs(
    blocks: Sequence[LogBlock],
    schema: pa.Schema,
    rules: MergeRules,
    ordering: Ordering,
    log_columns: LogColumns | None,
    times: Times,
) -> tuple[dict[str, _Version], pa.Table]:
    """The version of each key that counts among the logs, and the rows of all logs."""
    versions: dict[str, _Version] = {}
    tables = [schema.empty_table()]
    first = 0
    for block in blocks:
        if block.type is BlockType.DELETE:
            for record in deletes_of(block):
                old = versions.get(record.key)
                new = _Version(-1, ordering.of_delete(record.ordering), True)
                if old is None or _delete_counts(new, old, rules, ordering):
                    versions[record.key] = new
            continue
        by_id = _by_id(block, rules, log_columns) if log_columns is not None else {}
        table = rows_of(block, schema, by_id, of_file(times, by_id))
        tables.append(table)
        keys = _keys(table, rules)
        values = ordering.values(table)
        deleted = _deleted(table, rules)
        for i, key in enumerate(keys):
            old = versions.get(key)
            new = _Version(first + i, values[i], deleted[i])
            if old is None or _row_counts(new, old, rules, ordering):
                versions[key] = new
        first += table.num_rows
    return versions, pa.concat_tables(tables)


def _by_id(block: LogBlock, rules: MergeRules, columns: LogColumns) -> FileColumns:
    """How a block has the table's columns, by the schema of its instant.

    Errors:
        UnsupportedTable: the block's own schema tells otherwise, or merging depends on a column of
            another type.
    """
    found = columns.at(block.header.get(Header.INSTANT_TIME, ""))
    if found is not None:
        by_id, names = found
        merges = {
            _IS_DELETED,
            *rules.key_fields,
            *(f.partition(".")[0] for f in _ordering_fields(rules)),
        }
        if rules.delete_marker is not None:
            merges.add(rules.delete_marker[0])
        if names <= field_names(block) and not any(name.lower() in by_id for name in merges):
            return by_id
    raise UnsupportedTable(
        f"{block.uri}: the log block at byte {block.offset} may hold columns under names or types "
        "of an older schema",
        "compact the table, or read it with the engine that wrote it",
    )


def _row_counts(new: _Version, old: _Version, rules: MergeRules, ordering: Ordering) -> bool:
    """Whether a row of a log counts over an earlier version."""
    if rules.legacy:
        return old.row < 0 or ordering.arrived_after(new.ordering, old.ordering)
    if rules.mode is MergeMode.COMMIT_TIME_ORDERING:
        return True
    if (new.deleted and new.ordering is None) or (old.deleted and old.ordering is None):
        return True
    return ordering.not_before(new.ordering, old.ordering)


def _delete_counts(new: _Version, old: _Version, rules: MergeRules, ordering: Ordering) -> bool:
    """Whether a deleted key counts over an earlier version from the logs."""
    if not rules.legacy:
        if rules.mode is MergeMode.COMMIT_TIME_ORDERING:
            return True
        if old.deleted and old.ordering is None:
            return False
    if new.ordering is None or not ordering.same_type(new.ordering, old.ordering):
        return True
    return ordering.not_before(new.ordering, old.ordering)


def _counts_over_base(
    new: _Version, base_ordering: Any, rules: MergeRules, ordering: Ordering
) -> bool:
    if rules.mode is MergeMode.COMMIT_TIME_ORDERING:
        return True
    if rules.legacy:
        if new.row < 0 or (base_ordering is None and not ordering.is_int):
            return True
        return ordering.not_before(new.ordering, base_ordering)
    if new.deleted and new.ordering is None:
        return True
    return ordering.not_before(new.ordering, base_ordering)


def _refuse_duplicates(base: pa.Table, versions: dict[str, _Version], rules: MergeRules) -> None:
    """Errors: UnsupportedTable if keys do not tell which row of the base file a version is of."""
    keys = _keys(base.take(pa.array(_meeting(base, versions, rules))), rules)
    if len(set(keys)) < len(keys):
        raise UnsupportedTable(
            f"{len(keys) - len(set(keys))} rows of a base file have the record key of another row, "
            "and the logs update them by position",
            "remove the duplicates, compact the table, or read it with the engine",
        )


def _over_base(
    base: pa.Table, versions: dict[str, _Version], rules: MergeRules, ordering: Ordering
) -> tuple[pa.Array, list[int]]:
    """A mask of the rows of the base file that stay, and the rows of the logs that come in."""
    keep = np.ones(base.num_rows, np.bool_)
    left = dict(versions)
    added: list[int] = []
    if base.num_rows and versions:
        met = _meeting(base, versions, rules)
        rows = base.take(pa.array(met))
        values = ordering.values(rows)
        for place, key, value in zip(met, _keys(rows, rules), values, strict=True):
            version = left.pop(key, None)
            if version is not None and _counts_over_base(version, value, rules, ordering):
                keep[place] = False
                if not version.deleted:
                    added.append(version.row)
    added += [version.row for version in left.values() if not version.deleted]
    return pa.array(keep), added


def _meeting(base: pa.Table, versions: dict[str, _Version], rules: MergeRules) -> Any:
    """The places in the base file whose keys are in the logs."""
    if rules.key_fields == (RECORD_KEY,):
        known = pa.array(list(versions), pa.string())
        found = pc.index_in(base.column(RECORD_KEY), value_set=known)
        return np.flatnonzero(found.is_valid().to_numpy())
    return np.flatnonzero([key in versions for key in _keys(base, rules)])


def _keys(table: pa.Table, rules: MergeRules) -> list[str]:
    """The record key of each row, as Hudi's key generators spell it."""
    texts = [_key_texts(table, name) for name in rules.key_fields]
    if len(texts) == 1:
        if None in texts[0]:
            raise FileCorrupt("a row has no record key", "write it again")
        return texts[0]
    return [
        ",".join(
            f"{name}:{'__null__' if part is None else part or '__empty__'}"
            for name, part in zip(rules.key_fields, parts, strict=True)
        )
        for parts in zip(*texts, strict=True)
    ]


def _key_texts(table: pa.Table, name: str) -> list[Any]:
    column = table.column(find_column(table.column_names, name))
    if pa.types.is_string(column.type):
        texts: list[Any] = column.to_pylist()
        return texts
    if pa.types.is_integer(column.type):
        return [None if value is None else str(value) for value in column.to_pylist()]
    raise UnsupportedTable(
        f"the record key {name!r} is of type {column.type}, and the table has no meta columns",
        "read it with the engine",
    )


def _deleted(table: pa.Table, rules: MergeRules) -> list[bool]:
    """Whether each row says of itself that it is deleted."""
    deleted = np.zeros(table.num_rows, np.bool_)
    if _IS_DELETED in table.column_names:
        column = table.column(_IS_DELETED)
        if not pa.types.is_boolean(column.type):
            raise UnsupportedTable(
                f"{_IS_DELETED!r} is of type {column.type} and not boolean",
                "compact the table, or read it with the engine",
            )
        deleted |= column.fill_null(False).to_numpy()
    if _OPERATION in table.column_names:
        column = table.column(_OPERATION)
        deleted |= pc.is_in(column, value_set=pa.array(_DELETIONS)).to_numpy()
    name, marker = rules.delete_marker or ("", "")
    if find_column(table.column_names, name) is not None:
        deleted |= np.array([text == marker for text in _key_texts(table, name)], np.bool_)
    flags: list[bool] = deleted.tolist()
    return flags
