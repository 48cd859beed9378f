"""The registry of file formats. Adding a format edits nothing here.

Each module of `bridge.formats`, and each module ``format`` of a package in it, that defines
``FORMAT`` adds a format. Other distributions add
formats through the entry point group ``skipbridge.file_formats``, whose value is the `FileFormat`.
See docs/extending.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import bridge.formats as package
from bridge.formats.data_files import DataFiles
from bridge.formats.file_format import FileFormat
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.plugins import installed_plugins
from bridge.storage.port import Storage

GROUP = "skipbridge.file_formats"
_HEAD, _TAIL = 512, 64


@cache
def file_formats() -> dict[str, FileFormat]:
    """All installed formats. If two share a name, the first one counts."""
    found: dict[str, FileFormat] = installed_plugins(package, "FORMAT", GROUP, "file format")
    return found


def file_format(name: str) -> FileFormat:
    """A format by name. Errors: UnsupportedTable: it is not installed."""
    found = file_formats().get(name)
    if found is None:
        raise UnsupportedTable(
            f"there is no file format {name!r}", f"installed: {', '.join(file_formats())}"
        )
    return found


def indexed_formats() -> frozenset[str]:
    """Names of the formats of tables that can be indexed."""
    known = file_formats().values()
    return frozenset(f.name for f in known if f.is_indexed and not f.of_slices)


def inferred_formats() -> frozenset[str]:
    """Names of the formats of which a directory is a table: files tell their columns."""
    known = file_formats().values()
    return frozenset(f.name for f in known if f.read_schema is not None and not f.of_slices)


@cache
def read_formats() -> frozenset[str]:
    """Names of the formats of tables that an engine or the Python API reads."""
    known = file_formats().values()
    return frozenset(
        f.name for f in known if (f.is_indexed or f.read_rows or f.trino_reader) and not f.of_slices
    )


def hive_hooks() -> dict[str, str]:
    """By Hive's input format, the class of the hooks that extends it and leaves out files.

    A hook extends the class that it replaces (the older Parquet class had the same reader). The
    behaviour of other classes is unknown, so they are left alone.
    """
    return {
        input_format: known.hive.hook
        for known in file_formats().values()
        if known.hive is not None and known.hive.hook is not None
        for input_format in known.hive.input_formats
    }


def recognise(storage: Storage, uri: str, size: int) -> FileFormat | None:
    """The format of a file by its bytes; None if no format recognises it.

    Errors:
        FileUnreadable, StorageFailure.
    """
    ends = [(0, min(_HEAD, size)), (max(0, size - _TAIL), size)]
    head, tail = storage.read_ranges(uri, ends)
    for known in file_formats().values():
        if known.recognise is not None and known.recognise(head, tail):
            return known
    return None


def spell_formats(names: Iterable[str]) -> str:
    """The names of several formats in one phrase.

    >>> spell_formats({"orc", "parquet"})
    'Parquet or ORC'
    """
    *others, last = [file_formats()[name].spelled for name in sorted(names, reverse=True)]
    return f"{', '.join(others)} or {last}" if others else last


def can_rewrite(format: str) -> bool:
    """Whether clustering rewrites files of a format. Of ORC Arrow does not write all it reads."""
    found = file_formats().get(format)
    return found is not None and found.rewriting is not None


def check_format(format: str, what: str) -> None:
    """Errors: UnsupportedTable: files of a format cannot be rewritten; with what does instead."""
    if not can_rewrite(format):
        names = " and ".join(n for n in file_formats() if can_rewrite(n))
        raise UnsupportedTable(
            f"{what} is stored as {format}",
            f"skipbridge clusters files of {names}: let an engine rewrite it in order, INSERT INTO "
            f"another_table SELECT * FROM {what} ORDER BY its_columns, or make a view, which "
            "copies other formats to Parquet",
        )


def data_files(format: str) -> DataFiles:
    """What rewrites files of a format. Errors: UnsupportedTable."""
    check_format(format, "a group")
    rewriting = file_format(format).rewriting
    assert rewriting is not None
    return rewriting()
