"""The schema that Spark stores for its own tables, in table properties.

A table created by Spark carries its schema as JSON in ``spark.sql.sources.schema*``, cut into
parts, and Spark uses it instead of the metastore's columns. It must therefore follow them. Without
it Spark reads the metastore's columns, and nothing needs to change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bridge.table.model import Column
from bridge.types import Kind, Type

_PREFIX = "spark.sql.sources.schema"
_PART = 4000
_NAMES = {
    Kind.TINYINT: "byte",
    Kind.SMALLINT: "short",
    Kind.INTEGER: "integer",
    Kind.BIGINT: "long",
    Kind.TIMESTAMP_TZ: "timestamp",
}


def follow(
    properties: Mapping[str, str], columns: Sequence[Column], keys: Sequence[Column]
) -> dict[str, str]:
    """The table's properties, with Spark's schema updated to these columns.

    Spark's spelling of names, nullability and metadata stay. Properties without such a schema, or
    with an unreadable one, are returned unchanged.
    """
    old = _read(properties)
    if old is None:
        return dict(properties)
    known = {str(f["name"]).lower(): f for f in old}
    fields = []
    for column in (*columns, *keys):
        field = known.get(column.name.lower())
        type_ = spark_type(column.type)
        if field is None:
            field = {"name": column.name, "type": type_, "nullable": True, "metadata": {}}
        elif not _same(field["type"], type_):
            field = {**field, "type": type_}
        fields.append(field)
    text = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))
    kept = {k: v for k, v in properties.items() if not _is_schema(k)}
    parts = [text[i : i + _PART] for i in range(0, len(text), _PART)]
    kept[f"{_PREFIX}.numParts"] = str(len(parts))
    return kept | {f"{_PREFIX}.part.{i}": part for i, part in enumerate(parts)}


def _same(field: Any, type_: Any) -> bool:
    """Equal except for what the metastore cannot express: case of member names, nullability."""
    return json.dumps(_plain(field)).lower() == json.dumps(_plain(type_)).lower()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        hidden = ("nullable", "metadata", "containsNull", "valueContainsNull")
        return {k: _plain(v) for k, v in sorted(value.items()) if k not in hidden}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def _is_schema(key: str) -> bool:
    return key == _PREFIX or key == f"{_PREFIX}.numParts" or key.startswith(f"{_PREFIX}.part.")


def _read(properties: Mapping[str, str]) -> list[dict[str, Any]] | None:
    text = properties.get(_PREFIX)
    if text is None:
        try:
            count = int(properties.get(f"{_PREFIX}.numParts", "0"))
            text = "".join(properties[f"{_PREFIX}.part.{i}"] for i in range(count))
        except (ValueError, KeyError):
            return None
    try:
        fields = json.loads(text)["fields"] if text else None
        return [f for f in fields if f["name"] and f["type"]] if fields else None
    except (ValueError, KeyError, TypeError):
        return None


def spark_type(type_: Type) -> Any:
    """A type as JSON of a Spark schema.

    >>> from bridge.types import BIGINT, array
    >>> spark_type(array(BIGINT))
    {'type': 'array', 'elementType': 'long', 'containsNull': True}
    """
    match type_.kind:
        case Kind.ARRAY:
            element = spark_type(type_.fields[0].type)
            return {"type": "array", "elementType": element, "containsNull": True}
        case Kind.MAP:
            key, value = (spark_type(f.type) for f in type_.fields)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        case Kind.STRUCT:
            fields = [
                {"name": f.name, "type": spark_type(f.type), "nullable": True, "metadata": {}}
                for f in type_.fields
            ]
            return {"type": "struct", "fields": fields}
    return _NAMES.get(type_.kind, str(type_))
