"""Histories of schemas (``hoodie.schema.on.read.enable``): may columns be found by name?

Such a table gives each column an id, which stays when the column is renamed. Readers here find
columns by name. That is right only if in no version of the schema a name meant another column, and
no column had another name or another type; else the table is refused.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bridge.errors import UnsupportedTable
from bridge.table.hudi.file_system_view import FileSystemView

_LATEST = "latest_schema"
_DIRECTORY, _SUFFIX = ".hoodie/.schema", ".schemacommit"
_MOST = 1000
# What is found is true forever: a version's history does not change.
_stable: OrderedDict[tuple[str, frozenset[str]], None] = OrderedDict()


def refuse_renames(view: FileSystemView) -> None:
    """Refuses a table whose columns cannot be found by name in all files.

    Errors:
        UnsupportedTable: a column was renamed, changed its type, or was dropped and another of its
            name added; or the history is not known whole.
        FileUnreadable, StorageFailure.
    """
    # A compaction or a clustering does not carry the schema on.
    commits = view.commits(view.timeline.completed.values())
    texts = frozenset(c.extra[_LATEST] for c in commits if c.extra.get(_LATEST))
    key = (view.config.base, texts)
    if not texts or key in _stable:
        return
    found = _history(view)
    used = [version for text in texts for version in _versions(text)]
    if not {_id(v) for v in used} <= {_id(v) for v in found} or not stable([*used, *found]):
        raise UnsupportedTable(
            "a Hudi table keeps a history of schemas in which columns were renamed, changed their "
            "types, or were dropped and added again",
            "rewrite the table without hoodie.schema.on.read.enable, or read it with the engine",
        )
    _stable[key] = None
    while len(_stable) > _MOST:
        _stable.popitem(last=False)


def stable(versions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether each name, whatever its case, is one column of one type throughout.

    >>> old = {"fields": [{"id": 0, "name": "a", "type": "int"}]}
    >>> new = {"fields": [*old["fields"], {"id": 1, "name": "b", "type": "int"}]}
    >>> renamed = {"fields": [{"id": 0, "name": "b", "type": "int"}]}
    >>> stable([old, new]), stable([old, renamed]), stable([old, new, renamed])
    (True, False, False)
    """
    by_id: dict[int, tuple[str, str]] = {}
    by_name: dict[str, int] = {}
    for version in versions:
        for field in version["fields"]:
            number, name = field["id"], field["name"]
            # The type of a nested column holds the names and ids of its parts.
            told = (name, json.dumps(field["type"], sort_keys=True))
            if by_id.setdefault(number, told) != told:
                return False
            if by_name.setdefault(name.lower(), number) != number:
                return False
    return True


def _history(view: FileSystemView) -> list[Mapping[str, Any]]:
    """All versions that were ever written. Errors: FileUnreadable, StorageFailure."""
    listed = view.storage.list_all(f"{view.config.base}/{_DIRECTORY}", recursive=False)
    paths = [path for path in listed.paths.to_pylist() if path.endswith(_SUFFIX)]
    found: list[Mapping[str, Any]] = []
    for path in paths:
        found.extend(_versions(view.storage.read(path).decode("utf-8", "replace")))
    return found


def _versions(text: str) -> Iterator[Mapping[str, Any]]:
    """The versions that a text tells: one, or a whole history. Errors: UnsupportedTable."""
    try:
        told = json.loads(text)
        for version in told.get("schemas", [told]):
            for field in version["fields"]:
                int(field["id"]), str(field["name"]), field["type"]
            int(version["version_id"])
            yield version
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnsupportedTable(
            f"a Hudi table's history of schemas, in which columns may be renamed, is damaged: "
            f"{type(error).__name__}",
            f"restore the files in {_DIRECTORY}",
        ) from error


def _id(version: Mapping[str, Any]) -> int:
    return int(version["version_id"])
