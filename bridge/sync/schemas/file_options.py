"""How the files of a new table are declared: their format, columns, header and delimiter.

Parquet, ORC and Avro files tell their format and their columns. JSON, CSV and text have to be asked
for by name, because any file may be taken for text. Columns of JSON and headers of CSV are inferred
from the beginnings of some files; columns of CSV are texts, as Hive's OpenCSVSerde gives them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from bridge.formats.registry import file_format, file_formats, read_formats
from bridge.kernel.errors import FileCorrupt, InvalidRequest, SchemaConflict, UnsupportedTable
from bridge.kernel.types import STRING
from bridge.planner.reports.text import count_files
from bridge.storage.port import Storage
from bridge.storage.reading.ahead import ask_all
from bridge.sync.request import SyncRequest
from bridge.sync.schemas.schema import thin_out
from bridge.table.directory.discovered import Discovered
from bridge.table.directory.stray import find_delimiter, format_of, options
from bridge.table.hudi.schema.avro_schema import META_COLUMNS, avro_columns
from bridge.table.infer import common_type
from bridge.table.model import Column
from bridge.table.segments import declare
from bridge.table.segments.headers import read_header, refuse_one_field
from bridge.table.segments.manifest import Properties

_HEAD = 1 << 20
_SAMPLED = 50
_DELIMITER = {"csv": "separatorChar", "text": "field.delim"}


@dataclass(frozen=True, slots=True)
class FileFormatOptions:
    """What the metastore records of a new table's files.

    Attributes:
        properties: of the table. serde: parameters of its SerDe.
        notes: what the columns were inferred from, if not from whole files.
    """

    format: str = "parquet"
    properties: dict[str, str] = field(default_factory=dict)
    serde: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def given_columns(text: str | None, format: str | None) -> tuple[Column, ...]:
    """The columns that a user names. Errors: InvalidRequest, UnsupportedType."""
    if text is None:
        return ()
    if format == "csv":
        parts = declare.split_columns(text)
        text = ", ".join(part if " " in part or ":" in part else f"{part} string" for part in parts)
    found = tuple(
        Column(c.name, c.type) for c in declare.declare_columns(declare.parse_columns(text))
    )
    typed = [c for c in found if c.type != STRING]
    if format == "csv" and typed:
        raise InvalidRequest(
            f"column {typed[0].name} is declared as {typed[0].type}, and Hive reads CSV as text",
            "leave the types out; for typed CSV make a table of segments: skipbridge table create",
        )
    return found


def declare_files(
    storage: Storage,
    request: SyncRequest,
    directories: Discovered,
    files: Sequence[tuple[str, int]],
) -> tuple[FileFormatOptions, tuple[Column, ...]]:
    """The declaration of a new table's files, and its columns if no schema is read from each file.

    Args:
        files: those of the directories that are inspected.

    Errors:
        UnsupportedTable: the files do not tell their format, or the format is not read.
        InvalidRequest: columns are missing, or an option does not fit the format.
        SchemaConflict, FileCorrupt, FileUnreadable, StorageFailure.
    """
    format = request.format or _told(storage, directories.root, files)
    if format not in read_formats() or file_format(format).hive is None:
        known = ", ".join(sorted(f for f in read_formats() if file_formats()[f].hive))
        raise UnsupportedTable(f"tables of the format {format!r} are not synced", known)
    misfit = {"--header": request.header and format != "csv"}
    misfit["--delimiter"] = request.delimiter is not None and format not in _DELIMITER
    described = file_format(format).read_schema is not None
    misfit["--columns"] = bool(request.columns) and described
    for option, wrong in misfit.items():
        if wrong:
            raise InvalidRequest(f"{option} for files of the format {format}", "leave it out")
    made = FileFormatOptions(format)
    if request.header:
        made = dataclasses.replace(made, properties={"skip.header.line.count": "1"})
    if request.delimiter is not None:
        made = dataclasses.replace(made, serde={_DELIMITER[format]: request.delimiter})
    if described or request.columns or not files:
        return made, request.columns
    if format == "avro":
        return made, _of_avro(storage, files)
    some = [files[i] for i in thin_out(range(len(files)), _SAMPLED)]
    every = int(pc.sum(directories.rows["files"]).as_py())
    note = f"~ columns as the first lines of {len(some):,} of {count_files(every)} have them"
    if len(some) < every:
        note += "; for a column of other files alone: --columns"
    return dataclasses.replace(made, notes=(note,)), _inferred(storage, request, format, some)


def _told(storage: Storage, root: str, files: Sequence[tuple[str, int]]) -> str:
    """The format that files tell. Errors: UnsupportedTable: it has to be asked for."""
    names: dict[str, tuple[str, str]] = {}
    for uri, size in files[:_SAMPLED]:
        found, what = format_of(storage, uri, size)
        if found is not None and file_format(found).recognise is not None:
            return found
        mark = find_delimiter(storage, uri, size) if found == "csv" else ","
        names.setdefault(found or "", (f"{uri.rpartition('/')[2]} is {what}", mark))
    for format, (told, mark) in names.items():
        if format:
            raise UnsupportedTable(
                f"{root} holds files that do not tell their format: {told}",
                f"name it:{options(format, mark)}",
            )
    return "parquet"  # whose reader tells what is wrong with each


def _inferred(
    storage: Storage, request: SyncRequest, format: str, files: Sequence[tuple[str, int]]
) -> tuple[Column, ...]:
    if format == "json":
        return declare.columns_of_json(storage, files)
    if format == "csv" and request.header:
        given = () if request.delimiter is None else (("csv.delimiter", request.delimiter),)
        return given_columns(", ".join(_header(storage, files, given)), format)
    raise InvalidRequest(
        f"files of the format {format} do not tell their columns", f"give{options(format)}"
    )


def _header(
    storage: Storage, files: Sequence[tuple[str, int]], given: Properties
) -> tuple[str, ...]:
    """The longest first line; each other one begins it, because fields are found by place.

    Errors: InvalidRequest: the first lines differ, as rows do, or names are missing or there twice.
    """
    found = ask_all(storage, lambda file: read_header(storage, *file, given), files, files[0][0])
    names = max(found, key=len)
    count = Counter(names)
    wrong = next((name for name in names if not name or count[name] > 1), None)
    if wrong is not None:
        raise InvalidRequest(
            f"the first line of {files[found.index(names)][0]} "
            + (f"names {wrong!r} twice" if wrong else "has a field without a name"),
            "name all fields in their order: --header --columns 'a, b'",
        )
    for (uri, size), each in zip(files, found, strict=True):
        if not given:
            refuse_one_field(storage, uri, size, each, "--delimiter ")
        if each != names[: len(each)]:
            raise InvalidRequest(
                f"the first line of {uri} names {', '.join(each[:20])}, and that of "
                f"{files[found.index(names)][0]} {', '.join(names[:20])}",
                "if these are rows: --columns 'a, b' without --header; if fields differ in order: "
                "skipbridge table create --format csv, which finds them by name",
            )
    return names


def _of_avro(storage: Storage, files: Sequence[tuple[str, int]]) -> tuple[Column, ...]:
    """The columns that hold the values of all files. Errors: SchemaConflict, FileCorrupt."""
    merged: dict[str, tuple[Column, str]] = {}
    for uri, size in files:
        (head,) = storage.read_ranges(uri, [(0, min(size, _HEAD))])
        for column in avro_columns(_schema_text(head, uri), uri):
            if column.name in META_COLUMNS:
                continue
            held, first = merged.setdefault(column.name, (column, uri))
            wider = common_type(held.type, column.type)
            if wider is None:
                raise SchemaConflict(
                    f"column {column.name!r} is {held.type} in {first} and {column.type} in {uri}",
                    "declare the columns: --columns",
                )
            merged[column.name] = Column(column.name, wider, held.comment), first
    return tuple(column for column, _ in merged.values())


def _schema_text(head: bytes, uri: str) -> str:
    """The schema in the header of an Avro file: a map of texts, in blocks. Errors: FileCorrupt."""
    at = 4

    def number() -> int:
        nonlocal at
        value = shift = 0
        while shift < 70:
            value |= (head[at] & 127) << shift
            at += 1
            if head[at - 1] < 128:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise ValueError("no number")

    def text() -> bytes:
        nonlocal at
        length = number()
        if not 0 <= length <= len(head) - at:
            raise ValueError("no text")
        at += length
        return head[at - length : at]

    try:
        while count := number():
            if count < 0:
                number()
            for _ in range(abs(count)):
                key, value = text(), text()
                if key == b"avro.schema":
                    return value.decode()
    except (IndexError, ValueError) as error:
        raise FileCorrupt(f"{uri}: its header cannot be read", "rewrite the file") from error
    raise FileCorrupt(f"{uri}: its header has no schema", "rewrite the file")
