"""The columns that a query was compiled with, as it says itself.

The law: an answer holds under these names and types. A query is compiled before it lists files, by
hours where it waits in a queue or where its transaction stays open, and its table may change
meanwhile: then values are read, rounded and compared otherwise than the planner's own definition
says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from bridge.kernel.errors import InvalidRequest, TableChanged, UnsupportedType
from bridge.kernel.types import STRING, parse_hive_type
from bridge.planner.reports.report import IndexNotUsed
from bridge.table.hive_properties import OPEN_CSV, SERDE
from bridge.table.model import CatalogTable, Column

NamedTypes = tuple[tuple[str, str], ...]
OTHER_COLUMNS = IndexNotUsed(
    "*",
    "OTHER_COLUMNS",
    "the query was compiled with other columns, types or partition keys than the table has now",
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """Names and types of columns and partition keys, in order and in lower case."""

    columns: NamedTypes
    keys: NamedTypes


def parse_compiled(text: str) -> Compiled | None:
    """What the option ``table_columns`` says; None if the query does not tell its columns.

    Args:
        text: JSON: ``columns`` and ``keys``, pairs of a name and a type in Hive's words. Names
            alone with commas, as older hooks send them, tell no types.

    Errors:
        InvalidRequest.
    """
    if not text.startswith("{"):
        return None
    try:
        body = json.loads(text)
        return Compiled(_columns(body["columns"]), _columns(body["keys"]))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidRequest(
            f"a table's columns cannot be read: {error}",
            "take the jar and the planner from one release",
        ) from error


def _columns(given: Any) -> NamedTypes:
    return tuple((str(name).lower(), _spelled(str(type))) for name, type in given)


@lru_cache(1024)
def _spelled(type: str) -> str:
    try:
        return str(parse_hive_type(type.lower()))
    except UnsupportedType:  # such as a struct's field with a colon in its name
        return type.lower()


def compiled_with(table: CatalogTable, compiled: Compiled | None) -> bool:
    """Whether a query reads the table under exactly these columns, types and keys."""
    if compiled is None:
        return False
    columns = compiled.columns
    if dict(table.reader_properties).get(SERDE) == OPEN_CSV:
        # Whatever the metastore says, its reader gives texts.
        columns = tuple((name, str(STRING)) for name, _ in columns)
    return (columns, compiled.keys) == (_of(table.columns), _of(table.partition_keys))


def require_compiled(table: CatalogTable, text: str) -> None:
    """Refuses a scan that reads the table under other columns, types or keys.

    Args:
        text: the option ``table_columns``; empty: nothing is compared.

    Errors:
        TableChanged, InvalidRequest.
    """
    compiled = parse_compiled(text)
    if not text or compiled_with(table, compiled):
        return
    told = () if compiled is None else (*compiled.columns, *compiled.keys)
    pairs = zip_longest(told, (*_of(table.columns), *_of(table.partition_keys)))
    one, other = next(((a, b) for a, b in pairs if a != b), (None, None))
    raise TableChanged(
        f"the query was analysed with {_shown(one)} in {table.name}, which now has {_shown(other)}",
        "run the query again",
    )


def _shown(column: tuple[str, str] | None) -> str:
    return "no such column or key" if column is None else f"{column[0]} {column[1]}"[:200]


def _of(columns: tuple[Column, ...]) -> NamedTypes:
    return tuple((c.name.lower(), str(c.type).lower()) for c in columns)
