"""How files are read: the format, and what the catalog says of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from bridge.kernel.types import Type

COLUMNS = "columns"
COLUMN_TYPES = "columns.types"
COLUMNS_BY_NAME = ("skipbridge.columns-by-name", "true")
"""Property of files whose columns engines must find by name, whatever their settings."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, as the catalog declares it."""

    name: str
    type: Type
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """How the files of a slice are read.

    Attributes:
        format: a name in the registry of file formats.
        properties: of the SerDe, the input format and the table, sorted; see
            `bridge.metastore.reader_properties` for those of tables in a metastore.
        columns: the files' own schema; None: the schema of the snapshot.
        base: the format of the base files, where a slice has logs, or where the table format tells
            how its files are read; empty: ``format``.
        log: where ``format`` merges logs: the format of the logs; empty: they are not indexed.
    """

    format: str
    properties: tuple[tuple[str, str], ...] = ()
    columns: tuple[Column, ...] | None = None
    base: str = ""
    log: str = ""

    @property
    def property_map(self) -> Mapping[str, str]:
        return dict(self.properties)

    @property
    def digest(self) -> str:
        """A digest of how a file's bytes become fields: the format and its properties.

        Two files with one digest are read alike. Names and types of columns are left out, since
        they say which fields are asked for. Empty for a format that needs no properties.
        """
        if not self.properties:
            return ""
        hashed = hashlib.blake2b(digest_size=8)
        for part in (self.format, *(t for p in self.properties if p[0] not in _SCHEMA for t in p)):
            text = part.encode("utf-8", "surrogatepass")
            hashed.update(len(text).to_bytes(4, "big") + text)
        return hashed.hexdigest()


_SCHEMA = (COLUMNS, COLUMN_TYPES)
