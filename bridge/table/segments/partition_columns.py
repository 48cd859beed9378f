"""Columns of a table of segments whose values only names of directories hold: ``day=2024-05-01``.

The law: every file of a segment has one value, or NULL, for each of these columns, and it is
recorded in the log when the file is added. A text that is no value of its column's type is refused
then, and values are recorded in one spelling, so that all engines read the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal

import pyarrow as pa

from bridge.kernel.errors import SegmentBadValue, SegmentSchemaMismatch, UnsupportedType
from bridge.kernel.types import Kind, Type
from bridge.storage.port import FileTable
from bridge.table.directory.catalog import key_column
from bridge.table.model import Column
from bridge.table.partition import (
    NULL_MARKER,
    UNPARSABLE,
    parse_value,
    partition_name,
    unescape,
)
from bridge.table.segments.manifest import SegmentColumn

_KINDS = frozenset(
    {
        *(Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL),
        *(Kind.DATE, Kind.TIMESTAMP, Kind.STRING, Kind.VARCHAR),
    }
)
_DIGITS = Context(prec=38)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Level = tuple[str, str | None]
"""A key in lower case, and its unescaped text; None: NULL."""


def require_partition_types(columns: Sequence[SegmentColumn]) -> None:
    """Errors: UnsupportedType: names of directories hold no values of a column's type."""
    for column in columns:
        if column.type.kind not in _KINDS:
            raise UnsupportedType(
                f"the partition column {column.name} is {column.type}",
                "a directory's name holds a boolean, an integer, a decimal, a date, a timestamp, "
                "a string or a varchar",
            )


def find_keys(files: FileTable, known: Sequence[str]) -> tuple[Column, ...]:
    """The columns that the directories of files name, with the types of their values.

    Only the directories nearest to the files count, as far as all of them are ``key=value``.

    Args:
        known: names of columns that the files hold; directories that name these tell nothing.

    Errors:
        SegmentSchemaMismatch: two directories name different keys.
    """
    found: dict[str, tuple[str, list[Level]]] = {}
    for directory, uri in _directories(files).items():
        levels = [level for level in _nearest(directory) if level[0] not in known]
        found[directory] = uri, levels
    example, own = next(iter(found.values()))
    names = [key for key, _ in own]
    if len(set(names)) < len(names):
        raise _twice(example, names)
    for uri, levels in found.values():
        if [key for key, _ in levels] != names:
            raise _disagreement(example, names, uri, [key for key, _ in levels])
    return tuple(
        key_column(names, place, [levels[place][1] for _, levels in found.values()])
        for place in range(len(names))
    )


def partitions_of(files: FileTable, columns: Sequence[SegmentColumn]) -> pa.Array:
    """The name of each file's partition, by the directories that it lies in; large_string[n].

    Errors:
        SegmentSchemaMismatch: a file has no directory for a column, or two.
        SegmentBadValue: a directory's value is not of the column's type.
    """
    names: dict[str, str] = {}
    wanted = {column.name for column in columns}
    whole = ""
    for directory, uri in _directories(files).items():
        levels = [level for level in _all(directory) if level[0] in wanted]
        keys = [key for key, _ in levels]
        if len(set(keys)) < len(keys):
            raise _twice(uri, keys)
        held = dict(levels)
        missing = [column.name for column in columns if column.name not in held]
        if missing:
            other = whole or next(
                (u for d, u in _directories(files).items() if _names(d, missing[0])), ""
            )
            raise SegmentSchemaMismatch(
                f"{uri} lies in no directory {missing[0]}=..."
                + (f", and {other} in one" if other else ""),
                f"{', '.join(sorted(wanted))} are read from the names of directories: each file "
                "lies below one of each",
            )
        whole = whole or uri
        names[directory] = name_partition(columns, held, uri)
    return pa.array([names[_parent(uri)] for uri in files.paths.to_pylist()], pa.large_string())


def name_partition(
    columns: Sequence[SegmentColumn], values: Mapping[str, str | None], where: str
) -> str:
    """The name of a partition, its values spelled in one way.

    Args:
        values: texts by column; None is NULL.
        where: for messages.

    Errors:
        SegmentBadValue: a value is not of its column's type.
    """
    texts = [_spelled(column, values[column.name], where) for column in columns]
    return partition_name([column.name for column in columns], texts)


def _spelled(column: SegmentColumn, text: str | None, where: str) -> str | None:
    value = parse_value(text, column.type)
    if value is None or text is None:
        return None
    if value is UNPARSABLE or not text:
        raise SegmentBadValue(
            f"{where}: {text[:60]!r} is no {column.type}, which the partition column {column.name} "
            "is",
            f"declare another type, rename the directory, or name it {NULL_MARKER} for NULL",
        )
    return _text(value, column.type) if not column.type.is_bytes else text


def _text(value: object, type: Type) -> str:
    assert isinstance(value, int)
    match type.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DECIMAL:
            return f"{Decimal(value).scaleb(-type.scale, _DIGITS):f}"
        case Kind.DATE:
            return date.fromordinal(date(1970, 1, 1).toordinal() + value).isoformat()
        case Kind.TIMESTAMP:
            moment = _EPOCH + timedelta(microseconds=value)
            return moment.replace(tzinfo=None).isoformat(" ")
        case _:
            return str(value)


def _directories(files: FileTable) -> dict[str, str]:
    """Directories that hold files, each with its first."""
    found: dict[str, str] = {}
    for uri in files.paths.to_pylist():
        found.setdefault(_parent(uri), uri)
    return found


def _parent(uri: str) -> str:
    return uri.rpartition("/")[0]


def _level(name: str) -> Level | None:
    key, equals, raw = name.partition("=")
    key = unescape(key).lower()
    if not equals or not key.replace("_", "a").isalnum():
        return None
    text = unescape(raw)
    return key, None if text == NULL_MARKER else text


def _all(directory: str) -> list[Level]:
    return [level for name in directory.split("/") if (level := _level(name)) is not None]


def _nearest(directory: str) -> list[Level]:
    found: list[Level] = []
    for name in reversed(directory.split("/")):
        level = _level(name)
        if level is None:
            break
        found.insert(0, level)
    return found


def _names(directory: str, key: str) -> bool:
    return any(level[0] == key for level in _all(directory))


def _twice(uri: str, keys: Sequence[str]) -> SegmentSchemaMismatch:
    twice = next(key for key in keys if keys.count(key) > 1)
    return SegmentSchemaMismatch(f"{uri} lies in two directories {twice}=...", "rename one of them")


def _disagreement(
    one: str, keys: Sequence[str], other: str, others: Sequence[str]
) -> SegmentSchemaMismatch:
    def below(names: Sequence[str]) -> str:
        return "/".join(f"{name}=..." for name in names) or "no directory key=value"

    return SegmentSchemaMismatch(
        f"{one} lies in {below(keys)}, and {other} in {below(others)}",
        "add directories of one kind together; or name the partition columns when the table is "
        "created: PARTITION COLUMNS (...)",
    )
