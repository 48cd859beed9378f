"""The schema that Spark keeps in table properties, made from the Avro schema of a Hudi table.

Spark reads a table with ``spark.sql.sources.provider`` by this schema and not by the metastore's
columns. It keeps the case of names and the fields that may be null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bridge.kernel.types import Kind, Type
from bridge.table.hudi.schema.avro_schema import META_COLUMNS
from bridge.table.model import Column

_PREFIX = "spark.sql.sources.schema"
_PROVIDER = "spark.sql.sources.provider"
_PART_COLUMN = re.compile(re.escape(_PREFIX) + r"\.(numPartCols|partCol\.\d+)")
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
    avro: str,
    keys: Sequence[str],
    left_out: Sequence[str],
    known: Mapping[str, str],
    before: Sequence[Column] = (),
    after: Sequence[Column] = (),
) -> dict[str, str]:
    """A Hudi table's properties, with those by which Spark finds format, columns and keys.

    The law: a field of a schema that Spark knows stays as it is spelled, with its metadata, unless
    its column changes; so does all that is equal within a nested type. A schema in which nothing
    changes stays byte for byte.

    Args:
        avro: the table's schema, valid as `avro_schema.avro_columns` checks it.
        keys: partition keys; their fields come last.
        left_out: columns that the metastore cannot have, in lower case.
        known: properties that the table has.
        before, after: columns of the table, without keys.
    """
    lower = [k.lower() for k in keys]
    schema = _schema(json.loads(avro), lower, left_out)
    names = {f["name"].lower(): f["name"] for f in schema["fields"]}
    found = dict(known)
    if known.get(_PROVIDER, "").lower() != "hudi":
        found[_PROVIDER] = "hudi"
    held = _read(known)
    wanted = _follow(held, schema["fields"], lower, before, after) if held else schema["fields"]
    if wanted != held:
        schema["fields"] = wanted
        text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        parts = [text[i : i + _PART] for i in range(0, len(text), _PART)]
        found = {k: v for k, v in found.items() if not _is_schema(k)}
        found[f"{_PREFIX}.numParts"] = str(len(parts))
        found |= {f"{_PREFIX}.part.{i}": part for i, part in enumerate(parts)}
    columns = {f"{_PREFIX}.partCol.{i}": names.get(k, k) for i, k in enumerate(lower)}
    if keys:
        columns[f"{_PREFIX}.numPartCols"] = str(len(keys))
    named = {k: v.lower() for k, v in found.items() if _PART_COLUMN.fullmatch(k)}
    if named != {k: v.lower() for k, v in columns.items()}:
        found = {k: v for k, v in found.items() if k not in named} | columns
    return found


def _follow(
    held: Sequence[dict[str, Any]],
    made: Sequence[dict[str, Any]],
    keys: Sequence[str],
    before: Sequence[Column],
    after: Sequence[Column],
) -> list[dict[str, Any]]:
    """The fields of a schema after a change of columns; new ones come before the keys."""
    old, new = ({c.name.lower(): c.type for c in columns} for columns in (before, after))
    wanted = {f["name"].lower(): f for f in made}
    fields = []
    for field in held:
        name = str(field["name"]).lower()
        if name in old and name not in new and name not in wanted:
            continue
        if name in wanted and name in old and name in new and old[name] != new[name]:
            type_ = _changed(field["type"], wanted[name]["type"], old[name], new[name])
            field = {**field, "type": type_}
        fields.append(field)
        wanted.pop(name, None)
    end = len(fields)
    while end and str(fields[end - 1]["name"]).lower() in keys:
        end -= 1
    return [*fields[:end], *wanted.values(), *fields[end:]]


def _changed(held: Any, made: Any, old: Type, new: Type) -> Any:
    """A type of the schema after its column's change; what is equal at any depth stays."""
    if old == new or not isinstance(held, dict) or not isinstance(made, dict):
        return held if old == new else made
    if held.get("type") == "udt":
        return held
    if held.get("type") != made["type"] or old.kind is not new.kind:
        return made
    types = {f.name.lower(): f.type for f in old.fields}
    if old.kind is Kind.STRUCT:
        wanted = {f["name"].lower(): f for f in made["fields"]}
        known = {str(f["name"]).lower(): f for f in held["fields"]}
        for f in new.fields:
            name = f.name.lower()
            if name in known and name in types and name in wanted:
                type_ = _changed(known[name]["type"], wanted[name]["type"], types[name], f.type)
                wanted[name] = {**known[name], "type": type_}
        order = [name for name in known if name in wanted]
        order += [name for name in wanted if name not in known]
        return {**held, "fields": [wanted[name] for name in order]}
    inner = ("elementType",) if old.kind is Kind.ARRAY else ("keyType", "valueType")
    pairs = zip(inner, old.fields, new.fields, strict=True)
    return {**held, **{k: _changed(held[k], made[k], a.type, b.type) for k, a, b in pairs}}


def _is_schema(key: str) -> bool:
    return key in (_PREFIX, f"{_PREFIX}.numParts") or key.startswith(f"{_PREFIX}.part.")


def _read(known: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """The fields of a schema that Spark can read; None if there is none."""
    text = known.get(_PREFIX)
    try:
        if text is None:
            count = int(known[f"{_PREFIX}.numParts"])
            text = "".join(known[f"{_PREFIX}.part.{i}"] for i in range(count))
        fields = json.loads(text)["fields"]
        return fields if all(f["name"] and f["type"] for f in fields) else None
    except (ValueError, KeyError, TypeError):
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
