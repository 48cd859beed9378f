"""Hive's partitions that describe columns otherwise than their table, in the plainest way.

Hive reads a partition of Parquet by the partition's own columns. It pairs them with the table's by
their place, and converts the values. Partitions of ORC are read by the table's columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.kernel.types import Kind, Type
from tests.support.hive_casts import cast_value

Columns = Sequence[tuple[str, Type]]
Stored = Mapping[str, tuple[Type, Any]]
"""A row of a file: type and value by name."""
_DAY = 86_400_000_000


def otherwise(table: Columns, own: Columns) -> set[str]:
    """The columns that Hive's hooks do not skip by; `DescribedColumns` is the same in Java.

    tests/vectors/hive_described.json is read by both.
    """
    found = set()
    for place, (name, type) in enumerate(table):
        same = place < len(own) and own[place][0].lower() == name.lower() and own[place][1] == type
        if not same:
            found.add(name.lower())
    return found


def read_parquet(table: Columns, own: Columns, row: Stored) -> list[Any]:
    """The table's columns of a row, as Hive reads a partition of Parquet files."""
    return [
        None if place >= len(own) else converted(_named(row, *own[place]), own[place][1], type)
        for place, (_, type) in enumerate(table)
    ]


def read_orc(table: Columns, row: Stored) -> list[Any]:
    """The same of a partition of ORC files, whatever it says of itself."""
    return [_named(row, name, type) for name, type in table]


def _named(row: Stored, name: str, type: Type) -> Any:
    held = {each.lower(): value for each, value in row.items()}.get(name.lower())
    return None if held is None else converted(held[1], held[0], type)


def converted(value: Any, source: Type, target: Type) -> Any:
    """A value of one type as one of the other; None is NULL."""
    if value is not None and (source.kind, target.kind) == (Kind.TIMESTAMP, Kind.DATE):
        return value // _DAY
    return cast_value(value, source, target)
