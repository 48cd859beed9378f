"""The schema that Spark stores for its own tables, in table properties.

A table created by Spark carries its schema as JSON in ``spark.sql.sources.schema*``, cut into
parts, and Spark uses it instead of the metastore's columns. It must therefore follow them. Without
it Spark reads the metastore's columns, and nothing needs to change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bridge.kernel.types import Kind, Type
from bridge.table.model import Column

_PREFIX = "spark.sql.sources.schema"
_PART = 4000
_NAMES = {
    Kind.TINYINT: "byte",
    Kind.SMALLINT: "short",
    Kind.INTEGER: "integer",
    Kind.BIGINT: "long",
    Kind.TIMESTAMP_TZ: "timestamp",
}


def updated_properties(
    properties: Mapping[str, str],
    before: Sequence[Column],
    after: Sequence[Column],
    keys: Sequence[Column],
) -> dict[str, str]:
    """The table's properties, where Spark's schema follows a change of the columns.

    Only fields of changed columns are touched, at any depth, and new ones come before the keys.
    Properties without such a schema, or with an unreadable one, are returned unchanged.

    Args:
        before, after: columns of the table, without keys.
    """
    held = {c.name.lower(): c.type for c in before}
    changed = [c for c in after if held.get(c.name.lower()) != c.type]
    fields = _read(properties)
    if fields is None or not changed:
        return dict(properties)
    places = {str(f["name"]).lower(): i for i, f in enumerate(fields)}
    new: list[dict[str, Any]] = []
    for column in changed:
        name = column.name.lower()
        if name in places:
            field = fields[places[name]]
            try:
                field["type"] = _grown(field["type"], held.get(name), column.type)
            except (KeyError, TypeError, AttributeError):  # not as Spark writes it
                return dict(properties)
        else:
            new.append(_field(column.name, column.type))
    last = {k.name.lower() for k in keys}
    end = len(fields)
    while end and str(fields[end - 1]["name"]).lower() in last:
        end -= 1
    fields[end:end] = new
    whole = {"type": "struct", "fields": fields}
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
    kept = {k: v for k, v in properties.items() if not _is_schema(k)}
    parts = [text[i : i + _PART] for i in range(0, len(text), _PART)]
    kept[f"{_PREFIX}.numParts"] = str(len(parts))
    return kept | {f"{_PREFIX}.part.{i}": part for i, part in enumerate(parts)}


def _field(name: str, type_: Type) -> dict[str, Any]:
    return {"name": name, "type": spark_type(type_), "nullable": True, "metadata": {}}


def _grown(spelled: Any, old: Type | None, new: Type) -> Any:
    """A type of Spark's schema after its column's change; what did not change keeps its text.

    A user-defined type stays: its class says how it is stored.
    """
    if old == new:
        return spelled
    if isinstance(spelled, dict):
        inner = {f.name.lower(): f.type for f in old.fields} if old is not None else {}
        match spelled.get("type"), new.kind:
            case "udt", _:
                return spelled
            case "struct", Kind.STRUCT:
                fields = {str(f["name"]).lower(): f for f in spelled["fields"]}
                for f in new.fields:
                    name = f.name.lower()
                    field = fields.setdefault(name, _field(f.name, f.type))
                    type_ = _grown(field["type"], inner.get(name), f.type)
                    fields[name] = {**field, "type": type_}
                return {**spelled, "fields": list(fields.values())}
            case "array", Kind.ARRAY:
                parts = {"elementType": "element"}
            case "map", Kind.MAP:
                parts = {"keyType": "key", "valueType": "value"}
            case _:
                return spark_type(new)
        types = {f.name: f.type for f in new.fields}
        grown = {k: _grown(spelled[k], inner.get(f), types[f]) for k, f in parts.items()}
        return {**spelled, **grown}
    made = spark_type(new)
    return spelled if _same(spelled, made) else made


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
        return fields if fields and all(f["name"] and f["type"] for f in fields) else None
    except (ValueError, KeyError, TypeError):
        return None


def spark_type(type_: Type) -> Any:
    """A type as JSON of a Spark schema.

    >>> from bridge.kernel.types import BIGINT, array
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
            return {"type": "struct", "fields": [_field(f.name, f.type) for f in type_.fields]}
    return _NAMES.get(type_.kind, str(type_))
