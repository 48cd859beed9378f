"""The rows of one file slice: its base file merged with its logs.

The law: the rows are those that Spark reads. Blocks apply in their order; a row's key finds its
earlier version; the table's rules say which of the two counts. If every block tells the places of
its rows in the base file, rows meet by place, as in Hudi; else by key, and among rows of the base
file with the same key only the first meets the logs. The row at each place must have the block's
key. No filter may be applied before: it could remove the version that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.hudi.avro_rows import DAMAGE
from bridge.formats.hudi.by_id import FileColumns, LogColumns
from bridge.formats.hudi.log_format import (
    BlockType,
    Header,
    LogBlock,
    blocks_in_merge_order,
    damage,
    read_logs,
)
from bridge.formats.hudi.log_records import deletes_of, field_names, rows_of
from bridge.formats.hudi.parquet_table import parquet_table
from bridge.formats.hudi.record_positions import Places, positions_of
from bridge.formats.hudi.times import Times, of_file
from bridge.kernel.errors import BridgeError, FileCorrupt, UnsupportedTable
from bridge.storage.port import UNKNOWN_TIME, FileStat, Storage
from bridge.storage.reading.one_version import OneVersion
from bridge.storage.reading.source import is_passing
from bridge.table.hudi.merging.merge_mode import MergeMode
from bridge.table.hudi.merging.merge_rules import RECORD_KEY, MergeRules, Ordering, find_column
from bridge.table.hudi.schema.avro_schema import META_COLUMNS

_IS_DELETED = "_hoodie_is_deleted"
_OPERATION = "_hoodie_operation"
_DELETIONS = ("D", "-U")
_Versions = dict[Hashable, "_Version"]
"""By key; by place in the base file if all blocks tell places."""


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
    if rules.key_fields == (RECORD_KEY,) and found.column(RECORD_KEY).null_count:
        raise _keyless()
    written = "" if base is None else base[0].rpartition("_")[2].partition(".")[0]
    places = [positions_of(block, written, found.num_rows) for block in blocks]
    told = _Told(rules, _keys(found, rules) if _needs_keys(places, rules) else [])
    by_place = all(each is not None for each in places)
    pairs = zip(blocks, places, strict=True)
    versions, rows = _merge_logs(pairs, needed, rules, ordering, log_columns, times, told, by_place)
    met = np.sort(np.array(list(versions), np.int64)) if by_place else None
    keep, over = _over_base(found, versions, rules, ordering, met)
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
                "skipbridge sync, or Hudi's own sync, brings the catalog up to date",
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


def _needs_keys(places: Sequence[Places | None], rules: MergeRules) -> bool:
    return rules.may_name_key or any(each is not None for each in places)


class _Told:
    """What log blocks say of the keys of rows, against the base file's rows.

    Args:
        base: the keys of the base file's rows, in its order.
    """

    def __init__(self, rules: MergeRules, base: list[str]) -> None:
        self._base = base
        self._name = f"{rules.key_fields[0]}:" if rules.may_name_key else ""
        self._named = self._stripped = False
        self._places: dict[str, int] = {}
        self.by_key = False
        self.see(base)

    def see(self, keys: list[str]) -> None:
        """The keys of more rows. Errors: UnsupportedTable."""
        if self._name:
            self._named |= any(key.startswith(self._name) for key in keys)
            self._refuse_doubt()

    def bare(self, key: str) -> str:
        """The key of a deletion, as rows have it. Errors: UnsupportedTable."""
        if not self._name or not key.startswith(self._name):
            return key
        self._stripped = True
        self._refuse_doubt()
        return key.removeprefix(self._name)

    def _refuse_doubt(self) -> None:
        if self._named and self._stripped:
            raise UnsupportedTable(
                f"keys of rows begin with {self._name!r}, as keys of deleted rows do, so it is not "
                "sure which rows the log deletes",
                "compact the table, or read it with the engine",
            )

    def meet_by_key(self, keys: Sequence[str], places: Places) -> None:
        """Rows that blocks told apart by place, before one without places makes keys decide.

        Errors:
            UnsupportedTable: several of them have one key. Hudi keeps any of them.
        """
        for key, place in zip(keys, places.tolist(), strict=True):
            if not self.by_key and self._places.setdefault(key, place) != place:
                raise UnsupportedTable(
                    f"logs change several rows with the key {key!r} by position, and others by key",
                    "compact the table, or read it with the engine",
                )

    def check(self, block: LogBlock, keys: Sequence[str], places: Places) -> None:
        """Whether the base file has a block's keys where it says.

        Errors:
            FileCorrupt.
        """
        if len(keys) != len(places):
            detail = f"it has {len(keys)} records and positions of {len(places)}"
            raise damage(block.uri, block.offset, detail)
        for key, place in zip(keys, places.tolist(), strict=True):
            have = self._base[place] if place < len(self._base) else None
            if have != key:
                detail = f"it changes the row {key!r} at position {place} of the base file, which "
                detail += "has no such row" if have is None else f"holds {have!r}"
                raise damage(block.uri, block.offset, detail)


def _merge_logs(
    blocks: Iterable[tuple[LogBlock, Places | None]],
    schema: pa.Schema,
    rules: MergeRules,
    ordering: Ordering,
    log_columns: LogColumns | None,
    times: Times,
    told: _Told,
    by_place: bool,
) -> tuple[_Versions, pa.Table]:
    """The version of each row that counts among the logs, and the rows of all logs."""
    versions: _Versions = {}
    tables = [schema.empty_table()]
    first = 0

    def of(block: LogBlock, keys: list[str], places: Places | None) -> Sequence[Hashable]:
        if places is None:
            told.by_key = True
            return keys
        told.check(block, keys, places)
        if not by_place:
            told.meet_by_key(keys, places)
        return places.tolist() if by_place else keys

    for block, places in blocks:
        if block.type is BlockType.DELETE:
            records = deletes_of(block)
            keys = [told.bare(record.key) for record in records]
            for record, row in zip(records, of(block, keys, places), strict=True):
                old = versions.get(row)
                new = _Version(-1, ordering.of_delete(record.ordering), True)
                if old is None or _delete_counts(new, old, rules, ordering):
                    versions[row] = new
            continue
        by_id = _by_id(block, rules, log_columns) if log_columns is not None else {}
        table = rows_of(block, schema, by_id, of_file(times, by_id))
        tables.append(table)
        keys = _keys(table, rules)
        told.see(keys)
        values = ordering.values(table)
        deleted = _deleted(table, rules)
        for i, row in enumerate(of(block, keys, places)):
            old = versions.get(row)
            new = _Version(first + i, values[i], deleted[i])
            if old is None or _row_counts(new, old, rules, ordering):
                versions[row] = new
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


def _over_base(
    base: pa.Table,
    versions: _Versions,
    rules: MergeRules,
    ordering: Ordering,
    places: Places | None,
) -> tuple[pa.Array, list[int]]:
    """A mask of the rows of the base file that stay, and the rows of the logs that come in.

    Args:
        places: of the versions in the base file; None: they go by key.
    """
    keep = np.ones(base.num_rows, np.bool_)
    left = dict(versions)
    added: list[int] = []
    if base.num_rows and versions:
        met = _meeting(base, versions, rules) if places is None else places
        rows = base.take(pa.array(met))
        values = ordering.values(rows)
        names = _keys(rows, rules) if places is None else places.tolist()
        for place, name, value in zip(met, names, values, strict=True):
            version = left.pop(name, None)
            if version is not None and _counts_over_base(version, value, rules, ordering):
                keep[place] = False
                if not version.deleted:
                    added.append(version.row)
    added += [version.row for version in left.values() if not version.deleted]
    return pa.array(keep), added


def _meeting(base: pa.Table, versions: _Versions, rules: MergeRules) -> Any:
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
            raise _keyless()
        return texts[0]
    return [
        ",".join(
            f"{name}:{'__null__' if part is None else part or '__empty__'}"
            for name, part in zip(rules.key_fields, parts, strict=True)
        )
        for parts in zip(*texts, strict=True)
    ]


def _keyless() -> FileCorrupt:
    return FileCorrupt("a row has no record key", "write it again")


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
