"""How a query of Hive will read files whose meaning the table declares, as the query says itself.

The query may know newer properties than the planner, or older ones. So what it says is compared
with what an index entry was made under, and the planner's own knowledge does not count.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bridge.formats.lines.recipe import Recipe
from bridge.formats.registry import file_formats
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import STRING, Kind, Type, parse_hive_type
from bridge.table.hive_properties import INPUT_FORMAT, OPEN_CSV, SERDE, relevant, without_hook

_AVRO = "avro.schema.literal"
_AVRO_TYPES: dict[Kind, object] = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "int",
    Kind.BIGINT: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.STRING: "string",
    Kind.DATE: {"type": "int", "logicalType": "date"},
}


def parse_declaration(text: str) -> Recipe | None:
    """The recipe by which Hive reads all files of a scan; None if entries cannot tell of them.

    Args:
        text: JSON: the properties that Hive gives to the SerDe, and the columns with their types.

    Errors:
        InvalidRequest.
    """
    if not text:
        return None
    try:
        body = json.loads(text)
        given: dict[str, str] = {str(k): str(v) for k, v in body["properties"].items()}
        columns = [_column(one) for one in body["columns"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRequest(
            f"a declaration of files cannot be read: {error}",
            "take the jar and the planner from one release",
        ) from error
    serde, input_format = given.get(SERDE, ""), without_hook(given.get(INPUT_FORMAT, ""))
    for known in file_formats().values():
        classes = known.hive
        if known.chunks is None or classes is None:
            continue
        if serde in classes.serdes and input_format in classes.input_formats:
            properties = relevant(given) | {SERDE: serde, INPUT_FORMAT: input_format}
            if _is_of_columns(properties.get(_AVRO, ""), columns):
                del properties[_AVRO]
            if serde == OPEN_CSV:
                columns = [(name, STRING) for name, _ in columns]
            return Recipe(known.name, tuple(sorted(properties.items())), tuple(columns))
    return None


def _is_of_columns(schema: str, columns: Sequence[tuple[str, Type]]) -> bool:
    """Whether an Avro schema is the one that Hive makes of the columns, and adds by itself."""
    if not schema:
        return False
    try:
        fields = json.loads(schema)["fields"]
        found = [(f["name"], f["type"], f.get("default"), f.get("aliases")) for f in fields]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False
    wanted = [(name, ["null", _AVRO_TYPES.get(type.kind)], None, None) for name, type in columns]
    return found == wanted


def _column(given: Any) -> tuple[str, Type]:
    name, type = given
    return str(name).lower(), parse_hive_type(str(type))
