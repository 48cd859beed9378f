"""The schema that Spark keeps in table properties, made from the Avro schema of a Hudi table.

Spark reads a table with ``spark.sql.sources.provider`` by this schema and not by the metastore's
columns. It keeps the case of names and the fields that may be null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bridge.table.hudi.avro_schema import META_COLUMNS

_PREFIX = "spark.sql.sources.schema"
_PART = 4000
_SIMPLE = {
    "null": "null",
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
_LOGICAL = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}


def spark_properties(
    avro: str, keys: Sequence[str], left_out: Sequence[str], known: Mapping[str, str]
) -> dict[str, str]:
    """The properties by which Spark finds the format, the columns and the keys of a Hudi table.

    Args:
        avro: the table's schema, valid as `bridge.table.hudi.avro_schema.avro_columns` checks it.
        keys: partition keys; their fields come last.
        left_out: columns that the metastore cannot have, in lower case.
        known: properties that the table has. An equal schema keeps its spelling.
    """
    schema = _schema(json.loads(avro), [k.lower() for k in keys], left_out)
    fields = {f["name"].lower(): f["name"] for f in schema["fields"]}
    found = {"spark.sql.sources.provider": "hudi"}
    if _read(known) == schema:
        found |= {
            k: v for k, v in known.items() if k == f"{_PREFIX}.numParts" or k == _PREFIX or _part(k)
        }
    else:
        text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        parts = [text[i : i + _PART] for i in range(0, len(text), _PART)]
        found[f"{_PREFIX}.numParts"] = str(len(parts))
        found |= {f"{_PREFIX}.part.{i}": part for i, part in enumerate(parts)}
    if keys:
        found[f"{_PREFIX}.numPartCols"] = str(len(keys))
        found |= {f"{_PREFIX}.partCol.{i}": fields.get(k, k) for i, k in enumerate(keys)}
    return found


def is_spark_schema(key: str) -> bool:
    """Whether a property is part of a schema; those that a new schema lacks must go."""
    return key == _PREFIX or key.startswith(f"{_PREFIX}.")


def _part(key: str) -> bool:
    return key.startswith(f"{_PREFIX}.part.")


def _read(properties: Mapping[str, str]) -> Any:
    text = properties.get(_PREFIX)
    try:
        if text is None:
            count = int(properties[f"{_PREFIX}.numParts"])
            text = "".join(properties[f"{_PREFIX}.part.{i}"] for i in range(count))
        return json.loads(text)
    except (ValueError, KeyError):
        return None


def _schema(avro: Any, keys: Sequence[str], left_out: Sequence[str]) -> dict[str, Any]:
    own = {f["name"].lower() for f in avro["fields"]}
    absent = own.union(left_out)
    fields = [_field(name, "string", True, "") for name in META_COLUMNS if name not in absent]
    named: dict[str, Any] = {}
    for entry in avro["fields"]:
        made = _avro_field(entry, named)
        if entry["name"].lower() not in left_out:
            fields.append(made)
    last = {key: i for i, key in enumerate(keys)}
    fields.sort(key=lambda f: last.get(f["name"].lower(), -1))
    return {"type": "struct", "fields": fields}


def _field(name: str, type_: Any, nullable: bool, comment: str) -> dict[str, Any]:
    metadata = {"comment": comment} if comment.strip() else {}
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def _avro_field(entry: Any, named: dict[str, Any]) -> dict[str, Any]:
    type_ = entry["type"]
    return _field(entry["name"], _type(type_, named), _nullable(type_), entry.get("doc") or "")


def _nullable(schema: Any) -> bool:
    return "null" in schema if isinstance(schema, list) else schema == "null"


def _type(schema: Any, named: dict[str, Any]) -> Any:
    """A type as JSON of a Spark schema. A named type is defined once, then used by its name."""
    if isinstance(schema, list):
        present = [branch for branch in schema if branch != "null"]
        return _type(present[0], named) if len(present) == 1 else "string"
    if isinstance(schema, str):
        return _SIMPLE[schema] if schema in _SIMPLE else _type(named[schema], named)
    kind, logical = schema["type"], schema.get("logicalType")
    if isinstance(kind, dict | list):
        return _type(kind, named)
    if "name" in schema:
        named[schema["name"]] = schema
        if schema.get("namespace"):
            named[f"{schema['namespace']}.{schema['name']}"] = schema
    if kind in ("bytes", "fixed") and logical == "decimal":
        return f"decimal({schema['precision']},{schema.get('scale', 0)})"
    match kind:
        case "record":
            fields = [_avro_field(f, named) for f in schema["fields"]]
            return {"type": "struct", "fields": fields}
        case "array":
            items = schema["items"]
            element = _type(items, named)
            return {"type": "array", "elementType": element, "containsNull": _nullable(items)}
        case "map":
            values = schema["values"]
            return {
                "type": "map",
                "keyType": "string",
                "valueType": _type(values, named),
                "valueContainsNull": _nullable(values),
            }
    if kind not in _SIMPLE:
        return _type(named[kind], named)
    return _LOGICAL.get((kind, logical), _SIMPLE[kind]) if logical else _SIMPLE[kind]
