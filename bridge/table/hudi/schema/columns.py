"""The columns and partition keys of a Hudi table, and what a partition's path tells of them.

The law: a row shows the value that Spark shows. Where the key generator writes values into the path
unchanged, that is the path's, also of a row that has another one in its file: a global index may
keep it in its old partition. Everywhere else the key is an ordinary column, read from the files
(hudi#4477 lost rows otherwise). No value of one partition changes what others show.

=============  ====================================================================================
keys come      if
=============  ====================================================================================
from paths     every key is a field that the key generator writes unchanged (a path of another
               shape is refused); or the files do not hold the keys, which are the writer's
               partition fields, and every path has their shape
from files     the files hold every key; the table then has no partition keys
from the       else: some key is no column of the files; the metastore knows its values
metastore
=============  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import BIGINT, DATE, INTEGER, STRING, Type
from bridge.table.hudi.table_config import HudiTableConfig
from bridge.table.model import CatalogTable, Column
from bridge.table.partition import (
    NULL_MARKER,
    UNPARSABLE,
    parse_value,
    partition_name,
    unescape,
)

_UNCHANGED: frozenset[Type] = frozenset({STRING, INTEGER, BIGINT, DATE})
"""Types whose values a simple key generator writes so that every engine reads the same back."""
_SIMPLE = frozenset(
    {
        "simple",
        "complex",
        "simple_avro",
        "complex_avro",
        "simplekeygenerator",
        "simpleavrokeygenerator",
        "complexkeygenerator",
        "complexavrokeygenerator",
        "sqlkeygenerator",
    }
)
"""Key generators, by type or class, that write the values of all partition fields unchanged."""
_OLD_NULL = "default"
"""What Hudi before 0.12 wrote for NULL. It is a value like others where the type has it."""


class KeySource(Enum):
    """Where the values of partition keys come from."""

    PATHS = "paths"
    FILES = "files"
    METASTORE = "metastore"


@dataclass(frozen=True, slots=True)
class TableColumns:
    """A table at one version.

    Attributes:
        table: its columns, and the keys that are constant within a partition.
        source: where the keys' values come from.
        values: with `KeySource.PATHS`: for each partition's path the keys' values, as texts.
    """

    table: CatalogTable
    source: KeySource
    values: dict[str, tuple[str | None, ...]]

    def names(self) -> dict[str, list[str]]:
        """The paths of partitions by name (``day=2024-01-01``): one may be spelled in two ways."""
        keys = [k.name for k in self.table.partition_keys]
        found: dict[str, list[str]] = {}
        for path, values in self.values.items():
            found.setdefault(partition_name(keys, values), []).append(path)
        return found


def layout(
    table: CatalogTable,
    config: HudiTableConfig,
    schema: Sequence[Column],
    paths: Sequence[str],
    newest: bool,
) -> TableColumns:
    """The table's columns and keys at one version.

    Args:
        table: as the catalog describes it.
        schema: the version's columns, from its commits; empty if they do not tell.
        paths: of all partitions of the version.
        newest: whether the catalog's columns are those of this version.

    Errors:
        UnsupportedTable: a path does not tell the value of a key.
    """
    held = {c.name.lower(): c for c in schema}
    keys = table.partition_keys
    columns = table.columns if newest or not schema else _columns(table, schema)
    if not keys:
        return TableColumns(replace(table, columns=columns), KeySource.FILES, {})
    in_files = not config.drops_partition_columns and all(k.name.lower() in held for k in keys)
    tells = _unchanged(keys, config, held) if in_files else _are_fields(keys, config)
    if tells:
        values = {path: _values(keys, config, path) for path in paths}
        told = {path: each for path, each in values.items() if each is not None}
        if len(told) == len(values):
            return TableColumns(replace(table, columns=columns), KeySource.PATHS, told)
        if in_files:
            odd = next(path for path, each in values.items() if each is None)
            raise UnsupportedTable(
                f"the partition {odd!r} of the Hudi table {table.location} does not tell the value "
                f"of {', '.join(f'{k.name} {k.type}' for k in keys)}",
                "write its rows to a partition whose path tells it, and delete that one",
            )
    if in_files:
        own = {c.name.lower() for c in columns}
        added = tuple(held[k.name.lower()] for k in keys if k.name.lower() not in own)
        whole = replace(table, columns=(*columns, *added), partition_keys=())
        return TableColumns(whole, KeySource.FILES, {})
    return TableColumns(replace(table, columns=columns), KeySource.METASTORE, {})


def _columns(table: CatalogTable, schema: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of an older version, each with the catalog's type if that only narrows it."""
    declared = {c.name.lower(): c for c in table.columns}
    keys = {k.name.lower() for k in table.partition_keys}
    return tuple(
        declared[c.name] if c.name in declared and _spells(declared[c.name].type, c.type) else c
        for c in schema
        if c.name not in keys
    )


def _spells(declared: Type, held: Type) -> bool:
    """Whether Avro has no closer type than ``held`` for the declared one."""
    if declared == held:
        return True
    return (declared.is_text and held == STRING) or (declared.is_integer and held == INTEGER)


def _unchanged(keys: Sequence[Column], config: HudiTableConfig, held: dict[str, Column]) -> bool:
    """Whether the key generator writes each key's value into the path as it is."""
    if config.slash_dates or len(keys) != len(config.partition_fields):
        return False
    simple = config.key_generator.rpartition(".")[2].lower() in _SIMPLE
    for key, field, kind in zip(keys, config.partition_fields, config.partition_types, strict=True):
        column = held.get(key.name.lower())
        if (
            not (kind == "simple" or (simple and not kind))
            or field.lower() != key.name.lower()
            or column is None
        ):
            return False
        if key.type not in _UNCHANGED or key.type != column.type:
            return False
    return True


def _are_fields(keys: Sequence[Column], config: HudiTableConfig) -> bool:
    """Whether the keys are the writer's. Whoever registered others decided what paths tell of them:
    Hudi's sync may register the path ``2024/01/31`` as ``2024-01-31``.
    """
    return [k.name.lower() for k in keys] == [f.lower() for f in config.partition_fields]


def _values(
    keys: Sequence[Column], config: HudiTableConfig, path: str
) -> tuple[str | None, ...] | None:
    """The keys' values; None if the path has not their shape.

    As in Hudi, a level may name its key or not, whatever the table's properties say now. A value
    may hold slashes if it is the only one, or if levels name their keys. Others are unescaped.
    """
    levels = _levels(keys, path)
    if len(levels) != len(keys):
        return None
    values: list[str | None] = []
    for key, text in zip(keys, levels, strict=True):
        name, equals, rest = text.partition("=")
        if equals and name.lower() == key.name.lower():
            text = rest
        elif equals and config.hive_style:
            return None
        value = text.replace("/", "-") if config.slash_dates else text
        value = value if "/" in value else unescape(value)
        if not value:
            return None
        # Holds NULL and the empty text; Spark shows NULL for both.
        known = None if value == NULL_MARKER else value
        if parse_value(known, key.type) is UNPARSABLE:
            if value != _OLD_NULL:
                return None
            known = None
        values.append(known)
    return tuple(values)


def _levels(keys: Sequence[Column], path: str) -> list[str]:
    """The part of a path that is each key's; of another number if that cannot be told."""
    if len(keys) == 1:
        return [path]
    parts = path.split("/")
    if len(parts) <= len(keys):
        return parts
    levels: list[str] = []
    for part in parts:
        name = part.partition("=")[0].lower() if "=" in part else None
        if len(levels) < len(keys) and name == keys[len(levels)].name.lower():
            levels.append(part)
        elif not levels:
            return parts
        else:
            levels[-1] += f"/{part}"
    return levels
