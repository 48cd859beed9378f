"""Partition keys of a Hudi table, and their values by partition path.

A path gives the values that Hudi's own sync registers:

=========================  =======================  ===============================
the table has              path                     values
=========================  =======================  ===============================
one field                  ``2024-01-31``           ``2024-01-31``
one field, hive style      ``dt=2024-01-31``        ``2024-01-31``
one field, slashes         ``2024/01/31``           ``2024-01-31``
several fields             ``2024/paris``           ``2024``, ``paris``
url-encoded paths          ``a%2Fb``                ``a/b``
no field                   (the root)               none
=========================  =======================  ===============================

A named extractor (`bridge.sync.extractors`) takes the place of these rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.kernel.errors import InvalidRequest, UnsupportedTable
from bridge.kernel.types import STRING, UNKNOWN, Kind, Type
from bridge.sync.extractors import (
    KeyValues,
    PartitionExtractor,
    UnparsableDirectory,
    find_extractor,
)
from bridge.table.hudi.table_config import HudiTableConfig
from bridge.table.model import Column
from bridge.table.partition import NULL_MARKER, unescape

_TYPES = frozenset(
    {
        Kind.STRING,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.BOOLEAN,
        Kind.DATE,
        Kind.DECIMAL,
    }
)
"""Types whose values key generators write as Hive spells them. Keys of others are texts."""


def key_columns(
    config: HudiTableConfig, columns: Mapping[str, Column], given: Sequence[Column] = ()
) -> tuple[Column, ...]:
    """The partition keys of a table.

    A key has the type of its column where the path holds the column's value. A timestamp key
    generator writes the time in a format of its own, so such a key is a text.

    Args:
        columns: of the newest schema, by name in lower case.
        given: keys that the user named; UNKNOWN if only the name was given.

    Errors:
        InvalidRequest: these are not the table's keys.
        UnsupportedTable: a key lies within a struct.
    """
    fields = config.partition_fields
    kinds = config.partition_types
    names = [f.lower() for f in fields]
    if given and not fields:
        fields = tuple(k.name for k in given)
        names, kinds = list(fields), ("",) * len(fields)
    if given and [k.name for k in given] != names:
        raise InvalidRequest(
            f"the Hudi table {config.base} has the partition keys {', '.join(names) or 'none'}, "
            f"not {', '.join(k.name for k in given)}",
            "leave --partition-keys out",
        )
    nested = next((n for n in names if "." in n), None)
    if nested is not None:
        raise UnsupportedTable(
            f"the Hudi table {config.base} is partitioned by {nested}, a member of a struct",
            "Hive has no such keys; query the table by its location",
        )
    timestamps = "timestamp" in config.key_generator.rpartition(".")[2].lower()
    types = {k.name: k.type for k in given if k.type is not UNKNOWN}
    keys = []
    for name, kind in zip(names, kinds, strict=True):
        formatted = kind == "timestamp" or (timestamps and not kind)
        keys.append(Column(name, types.get(name) or _key_type(columns.get(name), formatted)))
    return tuple(keys)


def _key_type(column: Column | None, formatted: bool) -> Type:
    return column.type if column and column.type.kind in _TYPES and not formatted else STRING


def partition_extractor(
    config: HudiTableConfig, keys: Sequence[Column], extractor: str | None
) -> PartitionExtractor:
    """Reads the values of a partition's path.

    Args:
        extractor: name of an extractor that the user chose; None: as the table's properties say.

    Errors:
        InvalidConfiguration: there is no such extractor, or it needs other keys.
    """
    names = tuple(k.name.lower() for k in keys)
    if extractor is not None:
        return find_extractor(extractor, names)
    return _Paths(config, names)


class _Paths:
    def __init__(self, config: HudiTableConfig, names: tuple[str, ...]) -> None:
        self._config = config
        self._names = names

    def __call__(self, directory: str) -> KeyValues:
        names = self._names
        if not names:
            if directory:
                raise UnparsableDirectory("it is below the root of a table without partitions")
            return {}
        levels = [directory] if len(names) == 1 else directory.split("/")
        if len(levels) != len(names):
            raise UnparsableDirectory(f"it has {len(levels)} levels, not {len(names)}")
        return {n: self._value(n, level) for n, level in zip(names, levels, strict=True)}

    def _value(self, name: str, level: str) -> str | None:
        config = self._config
        if config.hive_style:
            field, equals, level = level.partition("=")
            if not equals or field.lower() != name:
                raise UnparsableDirectory(f"{field!r} is not named {name}=value")
        # One field's value may take several levels, as a time written yyyy/MM/dd does.
        value = level.replace("/", "-") if config.slash_dates or not config.hive_style else level
        if config.url_encoded:
            value = unescape(value)
        if not value:
            raise UnparsableDirectory("a partition value is empty")
        return None if value == NULL_MARKER else value
