"""Texts about files in directories that publishing left: what to run for each of them."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from typing import Any

from bridge.clustering.publication.left import AGAIN, Left
from bridge.kernel.errors import BridgeError
from bridge.storage.port import Storage
from bridge.table.infer import read_schema
from bridge.table.model import CatalogTable
from bridge.table.partition import parse_partition_name

_PATTERN, _ESCAPED = re.compile(r"[][*?{}\\]"), r"\\\g<0>"
"""Spark takes the name of a file as a pattern."""


def describe(each: Left, table: CatalogTable, storage: Storage) -> dict[str, Any]:
    """One listed file or directory as plain values.

    ``statement`` is for Spark SQL, in which a file is a table of its own; that of a directory is
    for Hive and Spark. A column that a file lacks is NULL.
    """
    return {
        "partition": each.partition,
        "path": each.state.path,
        "why": each.why,
        "statement": _insert(each, table, storage) if each.is_file else _relocate(each, table),
        "accept": f"skipbridge cluster accept {table.name} {shlex.quote(each.state.path)}",
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The same as text, in the order in which it is done."""
    return [
        f"{found['path']}: {found['why']}; no engine reads it",
        f"  {found['statement']}",
        f"  {found['accept']}",
    ]


def _insert(each: Left, table: CatalogTable, storage: Storage) -> str:
    names = [column.name for column in table.columns]
    held = {name.lower() for name in names}
    with suppress(BridgeError):  # nobody can read it: Spark will say so
        schema = read_schema(storage, each.state.path, each.state.size, table.format)
        held = {name.lower() for name in schema.names}
    columns = ", ".join(map(_quoted, names))
    values = ", ".join(_quoted(n) if n.lower() in held else f"NULL AS {_quoted(n)}" for n in names)
    into = f"{_name(table)}{_spec(each.partition, ' ')}"
    source = f"{table.format}.{_quoted(_PATTERN.sub(_ESCAPED, _spelled(each.state.path)))}"
    return f"INSERT INTO {into} ({columns}) SELECT {values} FROM {source};"


def _relocate(each: Left, table: CatalogTable) -> str:
    spec, tip = _spec(each.partition, " "), _text(_spelled(each.tip))
    if each.why == AGAIN:
        return f"ALTER TABLE {_name(table)}{spec} SET LOCATION {tip};"
    return f"ALTER TABLE {_name(table)} ADD{spec} LOCATION {tip};"


def _spec(partition: str, before: str) -> str:
    if not partition:
        return ""
    keys = [
        f"{_quoted(key)}=" + ("NULL" if value is None else _text(value))
        for key, value in parse_partition_name(partition)
    ]
    return f"{before}PARTITION ({', '.join(keys)})"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _name(table: CatalogTable) -> str:
    return f"{_quoted(table.name.schema)}.{_quoted(table.name.table)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _spelled(uri: str) -> str:
    """As Hadoop's file systems are named."""
    return f"s3a:{uri.removeprefix('s3:')}" if uri.startswith("s3:") else uri
