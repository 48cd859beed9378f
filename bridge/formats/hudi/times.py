"""Units of times that the table's schema tells and a file may tell otherwise.

Releases from 0.14.1 to 1.0 wrote milliseconds as ``timestamp-micros``, and local times as numbers
of no unit. Later releases go by the table's schema, and so does this: of a file's column that the
table has under the same name, micros are taken for the table's millis, and plain numbers for the
table's local times. Files that truly hold what they say are read as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from bridge.formats.hudi.by_id import FileColumns
from bridge.kernel.errors import SchemaConflict

PROPERTY = "skipbridge.hudi.times"
"""The reader's property that holds `Times`, as JSON."""
Times = Mapping[str, Any]
"""Units by lower-case name: ``ms``, ``local-ms`` or ``local-us``; `Times` of a struct's fields, of
a list's ``element``, of a map's ``value``. ``?``: microseconds of the file are in doubt."""
_UNITS = {
    "timestamp-millis": "ms",
    "local-timestamp-millis": "local-ms",
    "local-timestamp-micros": "local-us",
}
_LOCAL, _DOUBT = "local-", "?"


@lru_cache(64)
def times_of(schema: str) -> Times:
    """The times of a table's Avro schema that files may tell otherwise; empty: there are none."""
    if not any(name in schema for name in _UNITS):
        return {}
    try:
        found = _node(json.loads(schema), {})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def millis_of(times: Times, fields: Iterable[str]) -> frozenset[str]:
    """Those of some fields that are milliseconds in the table. A dot leads into a struct."""
    found = set()
    for field in fields:
        told: Any = times
        for part in field.lower().split("."):
            told = told.get(part) if isinstance(told, Mapping) else None
        if told in ("ms", "local-ms"):
            found.add(field)
    return frozenset(found)


@lru_cache(64)
def decode(text: str) -> Times:
    """The inverse of ``json.dumps``."""
    found: Times = json.loads(text)
    return found


def of_file(times: Times, columns: FileColumns) -> Times:
    """The same for a file that has some columns, or parts of them, under other names: their micros
    are in doubt."""
    found = dict(times)
    for name, column in columns.items():
        if column is None:
            continue
        told = times.get(name)
        if column.name != name:
            if told or column.name in times:
                found[column.name] = _DOUBT
        elif column.parts and isinstance(told, Mapping):
            found[name] = of_file(told, column.parts)
    return found


def times_of_columns(times: Times, wanted: Mapping[str, Any]) -> Times:
    """What is told of columns that are read as times: catalogs may have numbers in their place.

    Args:
        wanted: the types of the table's columns, by the names that the file has for them.
    """
    types = {name.lower(): type for name, type in wanted.items()}
    return {
        name: kept
        for name, told in times.items()
        if name in types and (kept := _shown(told, types[name]))
    }


def repair_times(array: Any, told: Any, column: str, uri: str) -> Any:
    """A file's column in the units of the table.

    Args:
        told: of the column, from `Times`; None: nothing.

    Errors:
        SchemaConflict: it is not sure what the file's times mean.
    """
    if not told:
        return array
    try:
        wanted = _type(array.type, told)
    except ValueError as error:
        raise SchemaConflict(
            f"column {column!r} has milliseconds in the table and {array.type} in {uri}: {error}",
            "rewrite the file, or read it with the engine that wrote it",
        ) from error
    return array if wanted == array.type else array.view(wanted)


def _shown(told: Any, wanted: Any) -> Any:
    t = pa.types
    if told == _DOUBT:
        return told  # below a column the table has another name for it
    if isinstance(told, str):
        return told if _has_times(wanted) else None
    parts: dict[str, Any] = {}
    if t.is_struct(wanted):
        parts = {field.name.lower(): field.type for field in wanted}
    elif t.is_list(wanted) or t.is_large_list(wanted):
        parts = {"element": wanted.value_type}
    elif t.is_map(wanted):
        parts = {"value": wanted.item_type}
    found = {
        name: kept
        for name, part in told.items()
        if (part == _DOUBT or name in parts) and (kept := _shown(part, parts.get(name)))
    }
    return found or None


def _node(schema: Any, named: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        members = [part for part in schema if part != "null"]
        return _node(members[0], named) if len(members) == 1 else None
    if isinstance(schema, str):
        return _node(named[schema], named) if schema in named else None
    kind = schema["type"]
    if "name" in schema:
        named[schema["name"]] = schema
        named[f"{schema.get('namespace')}.{schema['name']}"] = schema
    match kind:
        case "record":
            parts = {f["name"].lower(): _node(f["type"], named) for f in schema["fields"]}
        case "array":
            parts = {"element": _node(schema["items"], named)}
        case "map":
            parts = {"value": _node(schema["values"], named)}
        case "long":
            return _UNITS.get(schema.get("logicalType", ""))
        case str():
            return None
        case _:
            return _node(kind, named)
    return {name: told for name, told in parts.items() if told} or None


def _type(have: Any, told: Any) -> Any:
    """The type that a file's values are of. Errors: ValueError: it is not sure."""
    t = pa.types
    if not told:
        return have
    if told == _DOUBT:
        if _has_micros(have):
            raise ValueError("it was renamed, so they may be milliseconds")
        return have
    if isinstance(told, str):
        unit = told.removeprefix(_LOCAL)
        if t.is_timestamp(have) and have.unit == "us" and unit == "ms":
            if have.tz is None and unit == told:
                raise ValueError("INT96 is what it says, others may be milliseconds")
            return pa.timestamp(unit, have.tz)
        return pa.timestamp(unit) if t.is_int64(have) and unit != told else have
    if t.is_struct(have):
        return pa.struct([f.with_type(_type(f.type, told.get(f.name.lower()))) for f in have])
    if t.is_list(have):
        return pa.list_(have.value_field.with_type(_type(have.value_type, told.get("element"))))
    if t.is_map(have):
        item = have.item_field.with_type(_type(have.item_type, told.get("value")))
        return pa.map_(have.key_field, item)
    return have


def _has_times(type: Any) -> bool:
    if not pa.types.is_nested(type):
        return bool(pa.types.is_timestamp(type))
    return any(_has_times(type.field(i).type) for i in range(type.num_fields))


def _has_micros(type: Any) -> bool:
    if not pa.types.is_nested(type):
        return bool(pa.types.is_timestamp(type) and type.unit == "us")
    return any(_has_micros(type.field(i).type) for i in range(type.num_fields))
