"""The columns of a Hudi table, from the Avro schema that its commits carry.

A column's type is the one that Spark's catalog, and so the metastore, gives the column. An Avro
type without such a type is UNKNOWN, as in `bridge.table.infer`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from bridge.kernel.errors import FileCorrupt
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Field,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from bridge.table.model import Column

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""Columns that Hudi adds in front of a table's own; all are texts."""

_DEEPEST = 128
_FEW_PARTS = 1 << 16
_SIMPLE: Mapping[str, Type] = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "enum": STRING,
    "bytes": BINARY,
    "fixed": BINARY,
}
_LOGICAL: Mapping[tuple[str, str], Type] = {
    ("int", "date"): DATE,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): TIMESTAMP,
    ("long", "local-timestamp-micros"): TIMESTAMP,
}


def avro_columns(text: str, source: str) -> tuple[Column, ...]:
    """The columns of a table's Avro schema, names in lower case, Hudi's own ones first.

    Args:
        text: a record schema as JSON, with or without Hudi's own columns.
        source: what carries the schema; errors name it.

    Errors:
        FileCorrupt: this is no record schema.
    """
    try:
        fields = _record(json.loads(text))["fields"]
        types = _Types(_FEW_PARTS + len(text))
        found = tuple(
            Column(f["name"].lower(), types.of(f["type"]), f.get("doc") or None) for f in fields
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileCorrupt(
            f"{source} holds a table schema that is not a record in Avro ({error}): {text[:100]!r}",
            "write to the table once more, so that a new commit carries its schema",
        ) from error
    own = {c.name for c in found}
    return (*(Column(name, STRING) for name in META_COLUMNS if name not in own), *found)


def avro_names(text: str) -> dict[str, str]:
    """The names of a schema's fields as writers spell them, by lower case; no name that is twice.

    Errors:
        ValueError, KeyError, TypeError: this is no record schema.
    """
    names = [*META_COLUMNS, *(f["name"] for f in _record(json.loads(text))["fields"])]
    lowered = Counter(name.lower() for name in set(names))
    return {name.lower(): name for name in names if lowered[name.lower()] == 1}


def _record(schema: Any) -> Any:
    if schema["type"] != "record":
        raise ValueError("not a record")
    return schema


class _Types:
    """Makes types of schemas. A named type is defined once and used by its name after that."""

    def __init__(self, most: int) -> None:
        self._named: dict[str, Any] = {}
        self._left, self._depth = most, 0

    def of(self, schema: Any) -> Type:
        """The type of a field. Errors: ValueError: it is nested deeply, or has too many parts."""
        if self._depth == _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
        if not self._left:
            raise ValueError("its named types stand for too many others")
        self._left -= 1
        self._depth += 1
        try:
            return self._plain(schema)
        finally:
            self._depth -= 1

    def _plain(self, schema: Any) -> Type:
        if isinstance(schema, list):
            present = [b for b in schema if b != "null"]
            return self.of(present[0]) if len(present) == 1 else UNKNOWN
        if isinstance(schema, str):
            return _SIMPLE[schema] if schema in _SIMPLE else self._by_name(schema)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.of(kind)
        if "name" in schema:
            space = schema.get("namespace")
            self._named[schema["name"]] = schema
            if space:
                self._named[f"{space}.{schema['name']}"] = schema
        logical = schema.get("logicalType")
        if kind in ("bytes", "fixed") and logical == "decimal":
            return _decimal(int(schema["precision"]), int(schema.get("scale", 0)))
        known = _LOGICAL.get((kind, logical)) if logical else None
        if known is not None:
            return known
        match kind:
            case "record":
                fields = [Field(f["name"].lower(), self.of(f["type"])) for f in schema["fields"]]
                return UNKNOWN if any(f.type is UNKNOWN for f in fields) else struct(*fields)
            case "array":
                element = self.of(schema["items"])
                return UNKNOWN if element is UNKNOWN else array(element)
            case "map":
                value = self.of(schema["values"])
                return UNKNOWN if value is UNKNOWN else map_of(STRING, value)
        return _SIMPLE[kind] if kind in _SIMPLE else self._by_name(kind)

    def _by_name(self, name: str) -> Type:
        return UNKNOWN if name == "null" else self.of(self._named[name])


def _decimal(precision: int, scale: int) -> Type:
    return decimal(precision, scale) if 0 <= scale <= precision <= 38 else UNKNOWN
