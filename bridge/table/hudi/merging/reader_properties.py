"""What the reader of slices with logs has to know, and what may be concluded about its rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from bridge.formats.hudi import times
from bridge.formats.hudi.by_id import OLDER_LOGS, PROPERTY, LogColumns, decode
from bridge.storage.port import Storage
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.merging.merge import read_base, read_slice
from bridge.table.hudi.merging.merge_mode import MergeMode, fields_of
from bridge.table.hudi.merging.merge_rules import find_column, merge_rules
from bridge.table.hudi.table_config import HudiTableConfig
from bridge.table.snapshot import MergedSlice

MERGED = "hudi"
"""The name of the reader that merges logs (see `bridge.formats.hudi.format`)."""
BY_ID = "hudi_by_id"
"""The same, for base files of an older schema (see `bridge.formats.hudi_by_id`)."""
LOG = "hudi_log"
"""The format of a log in an index (see `bridge.formats.hudi_log`)."""
_OWN = "skipbridge.hudi."
_MARKS = (pa.field("_hoodie_is_deleted", pa.bool_()), pa.field("_hoodie_operation", pa.string()))
_MARKERS = {"int": pa.int32(), "long": pa.int64()}
"""Types of a column with a marker; of others it is taken for text."""
_DELETE_FIELD = "hoodie.payload.delete.field"
_FIELDS = (
    "hoodie.table.ordering.fields",
    "hoodie.table.precombine.field",
    _DELETE_FIELD,
    f"hoodie.record.merge.property.{_DELETE_FIELD}",
)
"""Properties that name columns by which rows are merged."""
_LARGE = ("hoodie.table.checksum", "hoodie.table.create.schema")


def merges_whole_records(config: HudiTableConfig) -> bool:
    """Whether every row after merging is a row of the base file or of one log.

    Only then may statistics of the files exclude a slice: a merger of the table's own, or a partial
    update, makes rows that no file holds.
    """
    return config.merge_mode is not MergeMode.CUSTOM and not config.partial_update


def has_defaults(schema: str) -> bool:
    """Whether a reader may fill a column that a log lacks with something else than NULL."""
    try:
        fields = json.loads(schema)["fields"]
    except (ValueError, KeyError, TypeError):
        return True
    return any(field.get("default") is not None for field in fields)


def field_names(schema: str) -> frozenset[str]:
    """The names of a table's columns as its Avro schema spells them."""
    return frozenset(_avro_types(schema))


def repairs_times(schema: str) -> bool:
    """Whether a reader may take a log's times in another unit than the log says.

    Some releases wrote milliseconds as ``timestamp-micros``; later ones go by the table's schema.
    """
    return "timestamp-millis" in schema


def log_properties(
    view: FileSystemView, instant: str, until: str | None = None
) -> tuple[tuple[str, str], ...]:
    """The properties by which a connector's reader merges the slices of one version.

    These are the table's own properties, without large ones that no merge needs; the table's
    schema, whose case the fields get that merging goes by; the newest instant that counts; and
    before version 8, where one log holds blocks of several instants, which of them are completed.

    Args:
        instant: whose schema the rows have.
        until: the end of a range of changes; blocks of later instants do not count.
    """
    config = view.config
    found = {
        key: value
        for key, value in config.properties.items()
        if key not in _LARGE and ".metadata." not in key and "index" not in key
    }
    found[f"{_OWN}base_path"] = config.base
    schema = view.schema(instant or None) or config.create_schema or ""
    found[f"{_OWN}schema"] = schema
    found |= {key: _spelled(found[key], schema) for key in _FIELDS if key in found}
    found[f"{_OWN}instant"] = instant
    if not config.completes:
        found[f"{_OWN}instant"] = min(instant, until or instant)
        # Not the commits that a savepoint left behind: a merge takes what is older than all of
        # these as archived, and so it does with them.
        first = view.timeline.first_active
        writes = [i for i in view.timeline.instants if i.is_write and i.requested >= first]
        found[f"{_OWN}completed"] = ",".join(i.requested for i in writes if i.completed)
        pending = ",".join(i.requested for i in writes if not i.completed)
        if pending:
            found[f"{_OWN}inflight"] = pending
    return tuple(sorted(found.items()))


def _spelled(fields: str, schema: str) -> str:
    """Names of fields, as the schema spells their columns."""
    held = list(_avro_types(schema))
    parts = (field.partition(".") for field in fields_of(fields))
    return ",".join(f"{find_column(held, name) or name}{dot}{rest}" for name, dot, rest in parts)


def read_merged(storage: Storage, slice: MergedSlice, schema: pa.Schema) -> pa.Table:
    """All rows of a slice that `HudiSnapshot` describes; see `bridge.table.hudi.merging.merge`.

    Errors:
        UnsupportedTable: the table has a merger of its own, or partial updates, or it is not sure
            how a log of an older schema has the columns.
        FileChanged, FileCorrupt, SchemaConflict, StorageFailure.
    """
    properties = dict(slice.reader.properties)
    by_id = decode(properties.get(PROPERTY, "{}"))
    units = times.decode(properties.get(times.PROPERTY, "{}"))
    if not slice.logs and slice.base is not None:
        return read_base(storage, slice.base, schema, by_id, units)
    older = properties.get(OLDER_LOGS)
    told = properties.get(f"{_OWN}schema", "")
    rules = merge_rules(properties)
    millis = times.millis_of(times.times_of(told), rules.ordering_fields)
    rules = replace(rules, millis=millis)
    marker, _ = rules.delete_marker or ("", "")
    whole = _with_marks(schema, told, marker)
    return read_slice(
        storage,
        slice.base,
        slice.logs,
        whole,
        rules,
        _valid(properties),
        schema.names,
        by_id,
        LogColumns.decode(older) if older is not None else None,
        units,
    )


def _with_marks(schema: pa.Schema, told: str, marker: str) -> pa.Schema:
    """Adds the columns by which rows say that they are deleted, which a catalog may not know.

    Args:
        told: the table's schema as Avro.
        marker: the column that the table's own marker is in; empty: it has none.
    """
    held = _avro_types(told)
    marks = list(_MARKS)
    name = find_column(list(held), marker)
    if name is not None and find_column(schema.names, name) is None:
        marks.append(pa.field(name, _MARKERS.get(held[name], pa.string())))
    missing = [f for f in marks if f.name in held and f.name not in schema.names]
    return pa.schema([*schema, *missing])


@lru_cache(64)
def _avro_types(schema: str) -> Mapping[str, str]:
    """The type of each field, as far as it is a name."""
    try:
        return {field["name"]: _named(field["type"]) for field in json.loads(schema)["fields"]}
    except (ValueError, KeyError, TypeError):
        return {}


def _named(type: object) -> str:
    parts = [part for part in type if part != "null"] if isinstance(type, list) else [type]
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else ""


def _valid(properties: Mapping[str, str]) -> Callable[[str], bool]:
    """Whether the blocks that an instant wrote count."""
    newest = properties[f"{_OWN}instant"]
    if int(properties["hoodie.table.version"]) >= 8:
        return lambda instant: instant <= newest  # each log belongs to one instant
    completed = frozenset(_texts(properties.get(f"{_OWN}completed")))
    pending = frozenset(_texts(properties.get(f"{_OWN}inflight")))
    first = min(completed | pending, default="")

    def is_valid(instant: str) -> bool:
        archived = instant < first and instant not in pending
        return instant <= newest and (instant in completed or archived)

    return is_valid


def _texts(joined: str | None) -> list[str]:
    return joined.split(",") if joined else []
