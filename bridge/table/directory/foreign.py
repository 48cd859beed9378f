"""Directories whose raw files alone would give wrong rows, because a table format keeps them.

A table of Delta Lake, Iceberg or Hudi leaves files of older versions beside those of now. So does
one of skipbridge whose location was switched by publishing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import pyarrow.compute as pc

from bridge.kernel.errors import UnsupportedTable
from bridge.storage.port import FileTable, Storage
from bridge.storage.uri import join

LEFT = ".skipbridge_left"
"""The marker in a directory that a table or partition was published from."""
_WRONG = "its raw files alone would give wrong rows"
_HUDI = ".hoodie"
_METAFILES = (".hoodie_partition_metadata", ".hoodie_partition_metadata.parquet")


def left_marker(directory: str) -> str:
    """The marker of a directory that a table or partition was published from."""
    return join(directory, LEFT)


def refuse_foreign_root(location: str, children: Collection[str]) -> None:
    """Refuses the root of a Delta Lake or Iceberg table, by the names of its directories.

    Errors:
        UnsupportedTable.
    """
    if "_delta_log" in children:
        raise _foreign(location, "_delta_log", "a Delta Lake")
    if "metadata" in children and "data" in children:
        raise _foreign(location, "metadata", "an Iceberg")


def refuse_left(storage: Storage, location: str, listing: FileTable) -> None:
    """Refuses a directory if it, or a partition below it, was published to another one.

    Args:
        listing: of all that is below the location, hidden files too.

    Errors:
        UnsupportedTable, StorageFailure.
    """
    marks = listing.paths.filter(pc.ends_with(listing.paths, f"/{LEFT}"))
    for mark in marks.to_pylist():
        inner = mark[len(location) : -len(LEFT) - 1]
        if "/." in inner:  # below a directory that holds new ones
            continue
        try:
            table = str(json.loads(storage.read(mark))["table"])
        except (ValueError, KeyError, TypeError):
            table = "its table"
        raise UnsupportedTable(
            f"{location}{inner} was left when {table} was published to another directory: it lacks "
            "what was written since",
            f"read {table} by its name",
        )


def refuse_foreign_files(storage: Storage, root: str, directories: Sequence[str]) -> None:
    """The same of a root whose directories were not listed, with a few requests; also Hudi's.

    Args:
        directories: some with data, at or below the root.

    Errors:
        UnsupportedTable, StorageFailure.
    """
    if _holds(storage, f"{root}/_delta_log", ".json"):
        raise _foreign(root, "_delta_log", "a Delta Lake")
    if _holds(storage, f"{root}/metadata", ".metadata.json"):
        raise _foreign(root, "metadata", "an Iceberg")
    for directory in directories:
        for name in _METAFILES:
            if storage.stat(f"{directory}/{name}") is not None:
                raise _hudi_part(storage, root, directory, name)


def refuse_hudi_parts(storage: Storage, root: str, listing: FileTable) -> None:
    """Refuses a partition of a Hudi table, and directories that hold Hudi tables.

    Hudi marks each directory of a partition. A whole Hudi table is recognised before.

    Args:
        listing: of all that is below the root, hidden files too.

    Errors:
        UnsupportedTable, StorageFailure.
    """
    for name in _METAFILES:
        marks = listing.paths.filter(pc.ends_with(listing.paths, f"/{name}"))
        for mark in marks.to_pylist():
            directory = mark.rpartition("/")[0]
            if not any(level[:1] in ("_", ".") for level in directory[len(root) + 1 :].split("/")):
                raise _hudi_part(storage, root, directory, name)


def _hudi_part(storage: Storage, root: str, directory: str, mark: str) -> UnsupportedTable:
    home = directory
    while len(home) > len(root):
        if _holds(storage, f"{home}/{_HUDI}", ""):
            return UnsupportedTable(f"{home} is a Hudi table below {root}", f"give {home}")
        home = home.rpartition("/")[0]
    if _holds(storage, f"{root}/{_HUDI}", ""):
        return UnsupportedTable(
            f"{root} holds {_HUDI}, but no hoodie.properties in it: it is a damaged Hudi table",
            "restore hoodie.properties",
        )
    return UnsupportedTable(
        f"{directory} holds {mark}: it is a partition of a Hudi table, and {_WRONG}",
        f"give the directory of the table, which holds {_HUDI}; "
        "if its files are no longer Hudi's, remove these marks",
    )


def _foreign(location: str, mark: str, kind: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"{location} holds {mark}: it is {kind} table, and {_WRONG}",
        "read it with an engine that knows the format",
    )


def _holds(storage: Storage, directory: str, suffix: str) -> bool:
    """Whether there is such a file in a directory or below it."""
    return any(
        path.endswith(suffix)
        for page in storage.pages(directory)
        for path in page.paths.to_pylist()
    )
