"""Histories of schemas (``hoodie.schema.on.read.enable``): columns are known by their ids.

Such a table gives each column an id, which stays when the column is renamed or changes its type. A
file has the names and types of the version that its commit wrote with. The law: a column of the
table is the file's column of the same id, and NULL where the file's version has no such id, even if
the file holds a column of the same name.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.formats.hudi.by_id import ELEMENT, VALUE, FileColumn, FileColumns, LogColumns
from bridge.kernel.errors import UnsupportedTable
from bridge.table.hudi.files.file_system_view import FileSystemView

DIRECTORY = ".hoodie/.schema"
_LATEST, _SUFFIX = "latest_schema", ".schemacommit"
_TOP = -1
_DECIMAL = re.compile(r"decimal(?:_fixed|_bytes)?\((\d+), ?(\d+)\)(?:\[\d+\])?")
_NONE = '{"schemas": []}'


@dataclass(frozen=True, slots=True)
class Node:
    """A type in a version of the schema.

    Attributes:
        kind: ``record``, ``array``, ``map``, or the name of a simple type.
        parts: fields of a record, the ``element`` of an array, the ``value`` of a map.
    """

    kind: str
    parts: tuple[SchemaPart, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaPart:
    """A column, or a part of one. Names are in lower case."""

    id: int
    name: str
    node: Node


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The columns of a table from an instant on.

    Attributes:
        number: the instant that made the version; 0 of the first one.
    """

    number: int
    columns: Node

    @property
    def names(self) -> frozenset[str]:
        return frozenset(part.name for part in self.columns.parts)


class SchemaHistory:
    """All versions of one table's schema.

    Args:
        versions: of each number one.
        by_instant: the versions that commits on the timeline say they wrote with.
    """

    def __init__(
        self, versions: Iterable[SchemaVersion], by_instant: Mapping[str, SchemaVersion]
    ) -> None:
        self._versions = sorted(versions, key=lambda version: version.number)
        self._numbers = [version.number for version in self._versions]
        self._by_instant = by_instant
        owners: dict[tuple[int, str], set[int]] = {}
        for version in (*self._versions, *by_instant.values()):
            for parent, part in _walk(_TOP, version.columns):
                owners.setdefault((parent, part.name), set()).add(part.id)
        self._reused = frozenset(name for name, ids in owners.items() if len(ids) > 1)

    def at(self, instant: str) -> SchemaVersion:
        """The version with which an instant wrote its files.

        Errors:
            UnsupportedTable: it is not known.
        """
        told = self._by_instant.get(instant)
        if told is not None:
            return told
        place = bisect_right(self._numbers, int(instant)) - 1
        if place < 0:
            raise _incomplete(f"tells no schema of the instant {instant}")
        return self._versions[place]

    @property
    def is_stable(self) -> bool:
        """Whether each name, whatever its case, is one column of one type throughout."""
        types: dict[int, tuple[str, Node]] = {}
        for version in (*self._versions, *self._by_instant.values()):
            for part in version.columns.parts:
                if types.setdefault(part.id, (part.name, part.node)) != (part.name, part.node):
                    return False
        return all(parent != _TOP for parent, _ in self._reused)

    def since(self, instant: str, until: str) -> list[SchemaVersion]:
        """The versions with which instants of a range may have written, both ends included."""
        between = [v for v in self._versions if int(instant) < v.number <= int(until)]
        told = [v for i, v in self._by_instant.items() if instant <= i <= until]
        return [self.at(instant), *between, *told]

    def place(self, version: SchemaVersion) -> int:
        """The place of a version among those of `log_columns`."""
        return max(bisect_right(self._numbers, version.number) - 1, 0)

    def log_columns(self, table: SchemaVersion) -> LogColumns:
        """How logs of all instants have the columns of the table, by ascending versions."""
        place = {number: at for at, number in enumerate(self._numbers)}
        told = {i: place[v.number] for i, v in self._by_instant.items() if v.number in place}
        newest = {i: bisect_right(self._numbers, int(i)) - 1 for i in told}
        return LogColumns(
            tuple(self._numbers),
            tuple((self.columns(v, table), v.names) for v in self._versions),
            {i: at for i, at in told.items() if at != newest[i]},
        )

    def columns(self, file: SchemaVersion, table: SchemaVersion) -> FileColumns:
        """The columns of the table that a file has otherwise than by name and type."""
        if file == table:
            return {}
        return self._differences(_TOP, file.columns, table.columns)

    def _differences(self, parent: int, file: Node, table: Node) -> dict[str, FileColumn | None]:
        own = {part.id: part for part in file.parts}
        found: dict[str, FileColumn | None] = {}
        for part in table.parts:
            old = own.get(part.id)
            if old is None:
                # By name it is NULL as well, unless the file may hold another part of that name.
                if (parent, part.name) in self._reused:
                    found[part.name] = None
                continue
            parts: dict[str, FileColumn | None] = {}
            was = ""
            if part.node.parts and old.node.kind == part.node.kind:
                parts = self._differences(part.id, old.node, part.node)
            elif old.node != part.node:
                was = old.node.kind
            if parts or was or old.name != part.name:
                found[part.name] = FileColumn(old.name, was, parts)
        return found


def list_schemas(view: FileSystemView) -> list[str]:
    """The files with the history of a table's schema; list them after the timeline.

    Errors:
        StorageFailure.
    """
    listed = view.storage.list_all(f"{view.config.base}/{DIRECTORY}", recursive=False)
    return [path for path in listed.paths.to_pylist() if path.endswith(_SUFFIX)]


def load_schema_history(view: FileSystemView, paths: list[str]) -> SchemaHistory | None:
    """The history of a table's schema; None if it keeps none.

    Args:
        paths: as `list_schemas` found them.

    Errors:
        UnsupportedTable: the history is damaged or not known whole.
        FileUnreadable, StorageFailure.
    """
    if not paths:
        told = view.schema_commit()
        if told is not None and view.commit(told).extra.get(_LATEST):
            raise _incomplete("is missing")
        return None
    timeline = view.timeline
    files = [list(_versions(each.decode("utf-8", "replace"))) for each in view.read_all(paths)]
    every = {version.number: version for versions in files for version in versions}
    by_instant: dict[str, SchemaVersion] = {}
    commits = view.commits(timeline.completed.values())
    for instant, commit in zip(timeline.completed, commits, strict=True):
        for version in _versions(commit.extra.get(_LATEST) or _NONE):
            if version.number not in every:
                raise _incomplete(f"lacks the version that {instant} wrote with")
            by_instant[instant] = version
    # A change of the schema that was not committed has a version too.
    known = {0, *(version.number for version in by_instant.values())}
    known |= {number for number in every if str(number) in timeline.completed}
    newest = max(known & every.keys(), default=0)
    # A file holds all that was committed before its newest version.
    numbers = [{version.number for version in versions} for versions in files]
    whole = set[int]().union(*(each for each in numbers if max(each, default=-1) == newest))
    found = [
        version
        for number, version in every.items()
        if number in known
        or number in whole
        or (timeline.is_archived(str(number)) and _may_count(number, newest, whole, by_instant))
    ]
    return SchemaHistory(found, by_instant)


def _may_count(
    number: int, newest: int, whole: Collection[int], by_instant: Mapping[str, SchemaVersion]
) -> bool:
    """Whether an archived change may have been committed, of which no commit tells.

    It was not if a later change does not know it, or if later commits tell an earlier version.
    Commits with a savepoint may be earlier.
    """
    return not whole if number < newest else all(int(instant) < number for instant in by_instant)


def _versions(text: str) -> Iterator[SchemaVersion]:
    """The versions that a text tells: one, or a whole history. Errors: UnsupportedTable."""
    try:
        told = json.loads(text)
        for version in told.get("schemas", [told]):
            yield SchemaVersion(int(version["version_id"]), _record(version))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnsupportedTable(
            f"a Hudi table's history of schemas, in which columns may be renamed, is damaged: "
            f"{type(error).__name__}",
            f"restore the files in {DIRECTORY}",
        ) from error


def _record(told: Mapping[str, Any]) -> Node:
    fields = (SchemaPart(int(f["id"]), f["name"].lower(), _node(f["type"])) for f in told["fields"])
    return Node("record", tuple(fields))


def _node(told: Any) -> Node:
    if isinstance(told, str):
        number = _DECIMAL.fullmatch(told)
        return Node(told if number is None else f"decimal({number[1]},{number[2]})")
    match told["type"]:
        case "record":
            return _record(told)
        case "array":
            return Node(
                "array", (SchemaPart(int(told["element_id"]), ELEMENT, _node(told["element"])),)
            )
        case "map":
            return Node("map", (SchemaPart(int(told["value_id"]), VALUE, _node(told["value"])),))
    raise ValueError("an unknown type")


def _walk(parent: int, node: Node) -> Iterator[tuple[int, SchemaPart]]:
    for part in node.parts:
        yield parent, part
        yield from _walk(part.id, part.node)


def _incomplete(what: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"a Hudi table's history of schemas, in which columns may be renamed, {what}",
        f"restore the files in {DIRECTORY}, or read the table with the engine that wrote it",
    )
