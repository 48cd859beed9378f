"""The values of partition keys as columns of a scan.

The law: a value is the one that the engine named reads from the partition's name, or the scan
fails. Only a text that no engine reads as a number or a date is NULL to Hive and Spark.
"""

from __future__ import annotations

import re
from typing import Any

from bridge.kernel.arrow_types import arrow_scalar
from bridge.kernel.errors import FileCorrupt, UnsupportedType
from bridge.kernel.types import Kind, Type, Value
from bridge.table.model import Column, Partition
from bridge.table.partition import UnparsableValue, parse_partition_name, typed_values

_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NUMBERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.DATE)
_PLANNED = (*_NUMBERS, Kind.BOOLEAN, Kind.TIMESTAMP, Kind.STRING, Kind.VARCHAR)
"""Types of which planning knows the values."""


def key_values(
    table: str, keys: tuple[Column, ...], partition: Partition, engine: str
) -> dict[str, Any]:
    """A partition's keys as Arrow scalars, by name.

    Errors:
        FileCorrupt: a value is not of its key's type.
        UnsupportedType: engines read it each in their own way, or values of the type are not read.
    """
    if not keys:
        return {}
    texts = [text for _, text in parse_partition_name(partition.name)]
    found: dict[str, Any] = {}
    for i, (key, (value,)) in enumerate(
        zip(keys, typed_values([partition.name], keys), strict=True)
    ):
        if isinstance(value, UnparsableValue):
            text = texts[i] if len(texts) == len(keys) else None
            where = f"partition {partition.name} of {table}"
            value = _other(text, key, where, engine)
        found[key.name] = arrow_scalar(value, key.type)
    return found


def _other(text: str | None, key: Column, where: str, engine: str) -> Value | None:
    """A value that planning leaves unknown."""
    if text is not None and key.type.kind not in _PLANNED:
        value = _unplanned(text, key.type)
        if value is None:
            raise UnsupportedType(
                f"{where}: the value of {key.name}, which is {key.type}, is not read here",
                "read the table with the engine",
            )
        return value
    if engine == "trino":
        raise FileCorrupt(
            f"{where}: {key.name} is no {key.type}",
            "rename the partition, or scan with semantics='hive', where it is NULL",
        )
    if text is not None and key.type.kind in _NUMBERS and not re.search(r"\d", text):
        return None
    raise UnsupportedType(
        f"{where}: engines read {key.name}, which is {key.type}, each in their own way",
        "rename the partition",
    )


def _unplanned(text: str, type: Type) -> Value | None:
    if type.kind is Kind.BINARY:
        return text.encode("utf-8", "surrogateescape")
    if type.kind is Kind.CHAR and len(text) <= type.length:
        return text.encode("utf-8", "surrogateescape")
    if type.kind is Kind.DOUBLE and _DOUBLE.fullmatch(text):
        return float(text)
    return None
