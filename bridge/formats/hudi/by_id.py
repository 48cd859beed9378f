"""A file's own names and types of columns, where the table knows its columns by id.

Only what differs is told. Everywhere else a file's column has the table's name.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PROPERTY = "skipbridge.hudi.columns"
"""The reader's property that holds `FileColumns`, as JSON."""
OLDER_LOGS = "skipbridge.hudi.older-logs"
"""A reader's property, where logs of the slice may have other names than the table: `LogColumns`,
as JSON."""
ELEMENT, VALUE = "element", "value"
"""The names of the parts of lists and maps."""


@dataclass(frozen=True, slots=True)
class FileColumn:
    """One column, or one part of a nested column, of a file.

    Attributes:
        name: the file's, in lower case.
        was: the file's type in Hudi's spelling (``decimal(5,2)``) if the table's schema was changed
            to another one; else empty.
        parts: of a struct by the table's names, of a list its ``element``, of a map its ``value``:
            those that differ. None: the file has no such part, whatever names it holds.
    """

    name: str
    was: str = ""
    parts: Mapping[str, FileColumn | None] = field(default_factory=dict)


FileColumns = Mapping[str, FileColumn | None]
"""By the table's name; None: the file does not have the column."""


@dataclass(frozen=True, slots=True)
class LogColumns:
    """How blocks of logs have the table's columns, by the instants that wrote them.

    Attributes:
        since: the first instants of the versions of the schema, ascending.
        versions: of each its columns, and the names of all columns that its files have.
        exceptions: instants that wrote with another version than the newest, and its place; -1: it
            is not known.
    """

    since: tuple[int, ...]
    versions: tuple[tuple[FileColumns, frozenset[str]], ...]
    exceptions: Mapping[str, int]

    def at(self, instant: str) -> tuple[FileColumns, frozenset[str]] | None:
        """The columns of a block, and the names that it has to have; None: not known."""
        if not instant.isascii() or not instant.isdigit():
            return None
        place = self.exceptions.get(instant, bisect_right(self.since, int(instant)) - 1)
        return None if place < 0 else self.versions[place]

    def since_place(self, place: int) -> LogColumns:
        """Only the versions from a place on: blocks of older instants are then not known."""
        held = {i: max(at - place, -1) for i, at in self.exceptions.items()}
        return LogColumns(self.since[place:], self.versions[place:], held)

    def encode(self) -> str:
        """As text. Of each version it holds what differs from the one before."""
        told: list[dict[str, Any]] = []
        before: tuple[FileColumns, frozenset[str]] = ({}, frozenset())
        for since, (columns, names) in zip(self.since, self.versions, strict=True):
            changed = {n: c for n, c in columns.items() if n not in before[0] or c != before[0][n]}
            version = {
                "since": since,
                "columns": _encoded(changed),
                "same": sorted(before[0].keys() - columns.keys()),
                "names": sorted(names ^ before[1]),
            }
            told.append({key: value for key, value in version.items() if value or key == "since"})
            before = columns, names
        whole = {"exceptions": self.exceptions, "changes": told}
        return json.dumps(whole, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def decode(text: str) -> LogColumns:
        """The inverse of `encode`."""
        found = json.loads(text)
        versions: list[tuple[FileColumns, frozenset[str]]] = []
        columns: dict[str, FileColumn | None] = {}
        names: frozenset[str] = frozenset()
        for version in found["changes"]:
            same = version.get("same", ())
            columns = {name: column for name, column in columns.items() if name not in same}
            columns |= _decoded(version.get("columns", {}))
            names ^= frozenset(version.get("names", ()))
            versions.append((columns, names))
        since = tuple(version["since"] for version in found["changes"])
        return LogColumns(since, tuple(versions), found["exceptions"])


def column_of(columns: FileColumns, name: str) -> FileColumn | None:
    """How a file has a column; None: it does not have it."""
    key = name.lower()
    return columns[key] if key in columns else FileColumn(name)


def encode(columns: FileColumns) -> str:
    """As text.

    >>> encode({"title": FileColumn("name"), "new": None})
    '{"new": null, "title": {"name": "name"}}'
    """
    return json.dumps(_encoded(columns), sort_keys=True)


def decode(text: str) -> FileColumns:
    """The inverse of `encode`."""
    return _decoded(json.loads(text))


def _encoded(columns: FileColumns) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, column in columns.items():
        if column is None:
            found[name] = None
            continue
        found[name] = {"name": column.name}
        if column.was:
            found[name]["was"] = column.was
        if column.parts:
            found[name]["parts"] = _encoded(column.parts)
    return found


def _decoded(found: Mapping[str, Any]) -> FileColumns:
    return {
        name: None
        if told is None
        else FileColumn(told["name"], told.get("was", ""), _decoded(told.get("parts", {})))
        for name, told in found.items()
    }
