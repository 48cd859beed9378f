"""Refuses files of typed CSV in which a value would be read as NULL since it cannot be cast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bridge.formats.lines.csv_fields import FieldSyntax, cut_line
from bridge.formats.lines.delimited_columns import csv_columns, csv_syntax
from bridge.formats.lines.lines import line_blocks
from bridge.formats.lines.recipe import CAST, FIELDS, Recipe
from bridge.kernel.errors import FileAmbiguous, InvalidRequest, SegmentBadValue
from bridge.kernel.threads import Threads
from bridge.segments.commands.casts import castable
from bridge.storage.port import FileTable, Storage
from bridge.table.recipes import recipe_of
from bridge.table.segments.manifest import FileReader, SegmentColumn
from bridge.table.segments.properties import columns_of_all, reader_spec

_THREADS = 4
_PATTERNS = ("timestamp.formats", "skipbridge.date_format")
_SHOWN = 60


def require_castable(
    storage: Storage,
    files: FileTable,
    number: npt.NDArray[np.int32],
    readers: Sequence[FileReader],
    columns: Sequence[SegmentColumn],
) -> None:
    """Reads each file, and refuses the first one, by path, with a value that cannot be cast.

    A text that the property ``csv.null`` declares is NULL and no such value; nor is a field that a
    short line lacks. Columns of dates and times with patterns of their own are not checked.

    Args:
        number: of the reader of each file.

    Errors:
        SegmentBadValue: names the file, the line, the column and the value.
        InvalidRequest: a file is not of CSV, or its lines cannot be told for sure.
        FileUnreadable, StorageFailure.
    """
    declared = columns_of_all(columns)
    recipes = [recipe_of(reader_spec(reader, declared), declared) for reader in readers]
    for reader, recipe in zip(readers, recipes, strict=True):
        if recipe is None or recipe.format != "csv":
            raise InvalidRequest(
                f"--strict checks values of CSV files, and these are {reader.format}",
                "leave it out: other formats carry their types, or fail when they are read",
            )
    listed = zip(files.paths.to_pylist(), files.sizes.tolist(), number.tolist(), strict=True)

    def check(file: tuple[str, int, int]) -> SegmentBadValue | None:
        recipe = recipes[file[2]]
        assert recipe is not None
        return _check(storage, file[0], file[1], recipe)

    with Threads(_THREADS, "facts") as pool:
        for bad in pool.map(check, listed):
            if bad is not None:
                raise bad


def _check(storage: Storage, uri: str, size: int, recipe: Recipe) -> SegmentBadValue | None:
    if _is_plain(storage, uri, size, recipe):
        return None
    try:
        return _first_bad(storage, uri, size, recipe)
    except FileAmbiguous as error:
        raise InvalidRequest(
            f"--strict cannot check a file: {error.message}",
            "write it again, or leave --strict out",
        ) from error


def _is_plain(storage: Storage, uri: str, size: int, recipe: Recipe) -> bool:
    """Whether all values are spelled as engines write them: the usual case, and a fast check."""
    given = dict(recipe.properties) | {CAST: "fail"}
    strict = replace(recipe, properties=tuple(sorted(given.items())))
    try:
        for _ in csv_columns(storage, uri, size, strict).batches():
            pass
    except FileAmbiguous:
        return False
    return True


def _first_bad(storage: Storage, uri: str, size: int, recipe: Recipe) -> SegmentBadValue | None:
    properties = recipe.property_map
    header, syntax = csv_syntax(uri, properties)
    fields = properties[FIELDS].split(",")
    numbers = {name: place for place, name in reversed([*enumerate(fields)])}
    places = [(numbers[name], name, type) for name, type in recipe.columns]
    if any(pattern in properties for pattern in _PATTERNS):
        places = [one for one in places if one[2].kind.name not in ("DATE", "TIMESTAMP")]
    at = header
    for block in line_blocks(storage, uri, size, header):
        for line in block[:-1].split(b"\n"):
            at += 1
            cut = _cut(line.decode(), syntax)
            for place, name, type in places:
                if place >= len(cut) or cut[place] == syntax.null or castable(cut[place], type):
                    continue
                text = cut[place][:_SHOWN]
                if at == 1 and text.strip().lower() == name:
                    return SegmentBadValue(
                        f"{uri}, line 1 names the columns: {text!r} is no {type}",
                        "drop the table, which keeps the files, and create it with --property "
                        "csv.header_lines=1",
                    )
                return SegmentBadValue(
                    f"{uri}, line {at}: {text!r} is no {type}, which column {name} is",
                    "mend the file, declare another type, name the text that stands for NULL "
                    "(--property csv.null=TEXT), or leave --strict out: it is then read as NULL",
                )
    return None


def _cut(line: str, syntax: FieldSyntax) -> list[str]:
    return cut_line(line, syntax) if line else []
