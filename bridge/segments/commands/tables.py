"""Creates, alters, describes and drops tables of segments. Fact files are never touched."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bridge.kernel.config import Config
from bridge.kernel.errors import (
    ColumnNotFound,
    InvalidRequest,
    OperationBlocked,
    SegmentLogCorrupt,
    TableNotFound,
)
from bridge.kernel.types import parse_hive_type
from bridge.runtime.compose import absolute_location, is_location, metastore_of, storage_of
from bridge.runtime.create_table import table_name
from bridge.runtime.file_systems import require_file_system
from bridge.segments.commands import registration
from bridge.segments.commands.fact_files import find_fact_files
from bridge.segments.commands.indexes import keep_other_columns
from bridge.segments.commands.manage import HELD
from bridge.segments.commands.opened import OpenSegments, open_segments
from bridge.segments.commands.places import refuse_own
from bridge.segments.sql.blocked import operation_blocked
from bridge.storage.port import Storage
from bridge.storage.uri import canonical, join
from bridge.table.segments.declare import declare_columns, infer_columns
from bridge.table.segments.format import segment_table
from bridge.table.segments.headers import readable_as
from bridge.table.segments.log import SegmentLog
from bridge.table.segments.manifest import SegmentManifest, TableDefinition, sorted_properties
from bridge.table.segments.partition_columns import require_partition_types
from bridge.table.segments.properties import (
    HEADER,
    check_properties,
    header_lines,
    require_together,
)

_SELF_DESCRIBING = ("parquet", "orc", "avro")


def create_table(
    config: Config,
    table: str,
    *,
    format: str,
    columns: Sequence[tuple[str, str]] | None,
    partition_columns: Sequence[tuple[str, str]] = (),
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    sample: str | None = None,
    comment: str | None = None,
    comments: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Creates a table without segments.

    Args:
        table: ``schema.table``; or a directory: the table is then in no metastore.
        columns: names and Hive types; None: inferred from ``sample``.
        partition_columns: those whose values are in names of directories, ``day=2024-05-01``. None:
            the first segment's directories bring them.
        location: the table's own directory, for its log and index; None: below the database's.
        sample: a path of fact files.
        comments: of columns, by their names.

    Returns:
        ``left_out`` names what was not inferred as a column.

    Errors:
        TableExists, InvalidRequest, UnsupportedType, SchemaNotFound, MetastoreUnavailable.
    """
    format = format.strip().lower()
    used = check_properties(format, properties or {})
    require_together(format, used)
    storage = storage_of(config)
    root = _root(config, table, location)
    refuse_own(root)
    notices: list[str] = []
    if location is None and not is_location(table) and _is_taken(storage, root):
        notices.append(
            f"{root} holds another table of segments, which was renamed, or whose record another "
            f"engine dropped; {table} has a directory of its own. If no table needs the other: "
            f"DROP TABLE `{root}`"
        )
        root = f"{root}-{uuid.uuid4().hex[:8]}"
    left_out: list[str] = []
    if columns is None:
        if sample is None:
            raise InvalidRequest(
                "neither columns nor files to infer them from were given",
                "give the columns, or a path of fact files",
            )
        files = find_fact_files(storage, [sample]).files
        columns, left_out = infer_columns(storage, files, format, used)
    said = {name.lower(): text for name, text in (comments or {}).items()}
    every = tuple(
        replace(c, comment=said.get(c.name))
        for c in declare_columns([*columns, *partition_columns])
    )
    made, keys = every[: len(columns)], every[len(columns) :]
    require_partition_types(keys)
    if not made:
        raise InvalidRequest(f"{table} has partition columns alone", "files hold the others")
    if format == "csv" and HEADER not in used and not header_lines(sorted_properties(used)):
        used[HEADER] = ",".join(c.name for c in made)
    _require_header(used, [c.name for c in made])
    definition = TableDefinition(
        uuid.uuid4().hex,
        made,
        format,
        sorted_properties(used),
        next_column=len(every),
        comment=comment,
        partition_columns=keys,
    )
    report: dict[str, Any] = {
        "table": table,
        "location": root,
        "format": format,
        "columns": [{"name": c.name, "type": str(c.type), "key": c in keys} for c in every],
        "left_out": left_out,
        "properties": used,
        "notices": notices,
        "dry_run": dry_run,
    }
    if dry_run:
        return report
    if is_location(table):
        SegmentLog(storage, root).create(definition)
        return report
    name = table_name(table)
    with metastore_of(config) as client:
        require_file_system(client, root)
        client.create_database(name.schema)
    registration.create(config, name, root, definition)
    return report


def _is_taken(storage: Storage, root: str) -> bool:
    """Whether a directory is that of a table. Our own DROP marks it; a metastore's does not."""
    try:
        newest = SegmentLog(storage, root).newest()
    except SegmentLogCorrupt:
        return True
    return newest is not None and not newest.dropped


def what_exists(config: Config, table: str) -> str:
    """What a name stands for, in words; empty: nothing. Errors: as `describe`."""
    try:
        found = describe(config, table)
    except TableNotFound:
        return ""
    except OperationBlocked:
        return "a table that has no segments"
    columns = ", ".join(f"{c['name']} {c['type']}" for c in found["columns"])
    return f"{found['format']} segments, columns {columns}"


def drop_table(config: Config, table: str, *, if_exists: bool = False) -> dict[str, Any]:
    """Drops a table: its record, log, index and views. Its fact files stay.

    Errors:
        TableNotFound, OperationBlocked.
    """
    gone = registration.unregister(config, table, if_exists=if_exists)
    return {"table": table, "dropped": gone}


def rename_table(config: Config, table: str, new: str) -> dict[str, Any]:
    """Gives a table another name. Errors: TableExists, TableNotFound, OperationBlocked."""
    with open_segments(config, table) as opened:
        if is_location(table):
            raise InvalidRequest(f"{table} is in no metastore", "move the directory itself")
        if "." not in new:
            new = f"{opened.table.name.schema}.{new}"
        target = table_name(new)
        registration.rename(config, opened.table.name, target)
    return {"table": str(target), "renamed_from": str(opened.table.name)}


def drop_columns(config: Config, table: str, names: Sequence[str]) -> dict[str, Any]:
    """Drops columns; the values of the others stay as they are.

    Errors:
        ColumnNotFound.
        InvalidRequest: an index or a view holds a column, no column is left, or fields are found
            by their place.
    """
    wanted = {name.strip().lower() for name in names}

    def change(held: SegmentManifest) -> SegmentManifest:
        definition = held.definition
        for name in sorted(wanted):
            _require_of_files(definition, name)
            if definition.column(name) is None:
                raise ColumnNotFound(f"{table} has no column {name}", "see table show")
            _require_unused(definition, name)
        formats = {r.format for s in held.segments if s.status in HELD for r in s.readers}
        if "text" in {definition.format, *formats}:
            raise OperationBlocked(
                f"{table} has files of text: their fields are found by their place",
                "create another table of csv, whose fields have names",
            )
        kept = tuple(c for c in definition.columns if c.name not in wanted)
        if not kept:
            raise InvalidRequest(f"{table} would have no column left", "drop the table instead")
        return replace(held, definition=replace(definition, columns=kept))

    return _alter(config, table, f"DROP COLUMNS {', '.join(sorted(wanted))}", change)


def change_type(config: Config, table: str, column: str, hive_type: str) -> dict[str, Any]:
    """Declares another type for a column. Values are read from the files as before.

    Errors:
        ColumnNotFound.
        InvalidRequest: files that carry their types cannot be read with this one.
    """
    name, type = column.strip().lower(), parse_hive_type(hive_type.strip().lower())

    def change(held: SegmentManifest) -> SegmentManifest:
        definition = held.definition
        _require_of_files(definition, name)
        found = definition.column(name)
        if found is None:
            raise ColumnNotFound(f"{table} has no column {name}", "see table show")
        formats = {r.format for s in held.segments if s.status in HELD for r in s.readers}
        typed = sorted({definition.format, *formats} & set(_SELF_DESCRIBING))
        if typed and not readable_as(type, found.type):
            raise InvalidRequest(
                f"{name} is {found.type} in {', '.join(typed)} files, which cannot be read as "
                f"{type}",
                "only wider types are possible, such as bigint for int",
            )
        columns = tuple(replace(c, type=type) if c.name == name else c for c in definition.columns)
        return replace(held, definition=replace(definition, columns=columns))

    return _alter(config, table, f"CHANGE {name} {type}", change)


def set_properties(config: Config, table: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """Sets properties of the format for segments that will be added; others keep theirs.

    Errors:
        OperationBlocked: a property is not of the table's format.
        InvalidRequest: a value is wrong.
    """

    def change(held: SegmentManifest) -> SegmentManifest:
        definition = held.definition
        _require_own(definition, properties, "SET TBLPROPERTIES", table)
        used = dict(definition.properties) | check_properties(definition.format, properties)
        require_together(definition.format, used)
        _require_header(used, [c.name for c in definition.columns])
        return replace(held, definition=replace(definition, properties=sorted_properties(used)))

    return _alter(config, table, "SET PROPERTIES", change)


def unset_properties(config: Config, table: str, names: Sequence[str]) -> dict[str, Any]:
    """Sets properties back to their defaults, for segments that will be added.

    Errors:
        OperationBlocked: a property is not of the table's format.
        InvalidRequest: a default cannot hold beside the others.
    """

    def change(held: SegmentManifest) -> SegmentManifest:
        definition = held.definition
        _require_own(definition, names, "UNSET TBLPROPERTIES", table)
        gone = {name.strip().lower() for name in names}
        used = tuple((n, v) for n, v in definition.properties if n not in gone)
        require_together(definition.format, dict(used))
        return replace(held, definition=replace(definition, properties=used))

    return _alter(config, table, "UNSET PROPERTIES", change)


def describe(config: Config, table: str) -> dict[str, Any]:
    """A table of segments as values for JSON. Errors: TableNotFound, OperationBlocked."""
    with open_segments(config, table) as opened:
        return _described(opened, opened.manifest)


def _described(opened: OpenSegments, manifest: SegmentManifest) -> dict[str, Any]:
    definition, readable = manifest.definition, manifest.readable
    return {
        "table": str(opened.table.name),
        "location": opened.log.root,
        "format": definition.format,
        "comment": definition.comment,
        "columns": [
            {"name": c.name, "type": str(c.type), "comment": c.comment} for c in definition.columns
        ],
        "partition_columns": [
            {"name": c.name, "type": str(c.type), "comment": c.comment}
            for c in definition.partition_columns
        ],
        "properties": dict(definition.properties),
        "indexes": [
            {
                "name": i.name,
                "kind": i.kind,
                "columns": list(i.columns),
                "options": dict(i.options),
                "visible": i.visible,
                "deferred": i.deferred,
            }
            for i in definition.indexes
        ],
        "views": [
            {"name": v.name, "columns": list(v.columns), "sort_columns": list(v.sort_columns)}
            for v in definition.views
        ],
        "segments": len(readable),
        "files": sum(s.files.count for s in readable),
        "bytes": sum(s.files.bytes for s in readable),
        "version": manifest.version,
    }


def _alter(config: Config, table: str, operation: str, change: Any) -> dict[str, Any]:
    with open_segments(config, table) as opened:
        change(opened.manifest)  # wrong requests fail before anything is done
        committed = opened.log.commit(operation, change)
        behind = ""
        if not is_location(table):
            behind = registration.update_record_after_commit(
                config, segment_table(opened.table, committed)
            )
        keep_other_columns(opened, committed)
        return _described(opened, committed) | {"record_behind": behind}


def _require_unused(definition: TableDefinition, column: str) -> None:
    for index in definition.indexes:
        if column in index.columns:
            raise InvalidRequest(
                f"index {index.name} is on column {column}", f"drop index {index.name} first"
            )
    for view in definition.views:
        if column in view.columns:
            raise InvalidRequest(
                f"view {view.name} holds column {column}", f"drop view {view.name} first"
            )


def _require_of_files(definition: TableDefinition, column: str) -> None:
    if any(c.name == column for c in definition.partition_columns):
        raise InvalidRequest(
            f"{column} is a partition column: directories of all segments are named by it",
            "create another table without it, or with another type, and add the files to that",
        )


def _require_own(
    definition: TableDefinition,
    names: Sequence[str] | Mapping[str, str],
    operation: str,
    table: str,
) -> None:
    for name in names:
        if not name.strip().lower().startswith(f"{definition.format}."):
            raise operation_blocked(operation, table, f"the property {name!r}")


def _require_header(properties: Mapping[str, str], columns: Sequence[str]) -> None:
    """Errors: InvalidRequest: csv.header lacks a column of the table."""
    given = properties.get(HEADER)
    if given is None:
        return
    fields = [name.strip().lower() for name in given.split(",")]
    missing = [c for c in columns if c not in fields]
    if missing:
        raise InvalidRequest(
            f"{HEADER} does not name {', '.join(missing)}",
            "it names all fields of the files in their order; every column is one of them",
        )


def _root(config: Config, table: str, location: str | None) -> str:
    """The table's own directory. Errors: SchemaNotFound, MetastoreUnavailable."""
    if is_location(table):
        if location is not None:
            raise InvalidRequest(f"{table} is a directory already", "leave the location out")
        return canonical(absolute_location(table))
    name = table_name(table)
    if location is not None:
        return canonical(absolute_location(location))
    with metastore_of(config) as client:
        client.create_database(name.schema)
        found = client.get_database(name.schema).locationUri
    return join(canonical(found), name.table)
