"""Checks the columns of files that are added, and tells how each file is read."""

from __future__ import annotations

import bz2
import csv
import io
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.formats.lines.hadoop_blocks import CODECS, hadoop_blocks
from bridge.formats.registry import file_format
from bridge.kernel.errors import InvalidRequest, SegmentSchemaMismatch
from bridge.kernel.types import UNKNOWN, Kind, Type
from bridge.storage.port import FileStat, FileTable, Storage
from bridge.storage.reading.ahead import ask_all
from bridge.storage.reading.one_version import OneVersion
from bridge.table.directory.stray import OTHER_DELIMITERS
from bridge.table.infer import common_type, read_schema, type_of
from bridge.table.segments.manifest import FileReader, Properties, SegmentColumn
from bridge.table.segments.properties import HEADER, field_name, header_lines, split_fields

HEAD = 1 << 20
"""Bytes of a file in which its first line must end."""
_UNREADABLE = "\ufffd"
_TEXT = frozenset({Kind.STRING, Kind.VARCHAR, Kind.CHAR, Kind.BINARY})
_TIMES = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMP_TZ})


def readers_of(
    storage: Storage,
    files: FileTable,
    format: str,
    properties: Properties,
    columns: Sequence[SegmentColumn],
) -> tuple[tuple[FileReader, ...], npt.NDArray[np.int32]]:
    """How the files are read, and the number of the reader of each.

    Each file is read in the state in which it was found, or not at all.

    Errors:
        FileChanged: a file was rewritten meanwhile, or the store tells another state of it here
            than it told before: no query could read it.
        SegmentSchemaMismatch: names the first file, by path, that cannot be read as the table.
        FileCorrupt, FileUnreadable, StorageFailure.
    """
    listed = files.stats()
    now = storage.stat(listed[0].uri)
    if now is not None:
        OneVersion(storage, listed[0]).require(now)
    if format == "csv":
        return _of_csv(storage, listed, properties, columns)
    if file_format(format).read_schema is not None:
        schemas = ask_all(
            storage,
            lambda file: read_schema(OneVersion.of(storage, file), file.uri, file.size, format),
            listed,
            listed[0].uri,
        )
        for file, schema in zip(listed, schemas, strict=True):
            _require(file.uri, schema, columns)
    return (FileReader(format, properties),), np.zeros(len(listed), np.int32)


def _of_csv(
    storage: Storage,
    listed: Sequence[FileStat],
    properties: Properties,
    columns: Sequence[SegmentColumn],
) -> tuple[tuple[FileReader, ...], npt.NDArray[np.int32]]:
    given = dict(properties).get(HEADER)
    declared = None if given is None else split_fields(given)
    if not header_lines(properties):
        fields = declared if declared is not None else tuple(c.name for c in columns)
        _lacks(HEADER, fields, columns)
        return (FileReader("csv", properties, fields),), np.zeros(len(listed), np.int32)
    headers = ask_all(
        storage,
        lambda file: read_header(OneVersion.of(storage, file), file.uri, file.size, properties),
        listed,
        listed[0].uri,
    )
    numbers: dict[FileReader, int] = {}
    number = np.zeros(len(listed), np.int32)
    for i, (file, fields) in enumerate(zip(listed, headers, strict=True)):
        uri = file.uri
        if declared is not None and _agree(fields, declared):
            fields = declared
        elif declared is not None:
            raise SegmentSchemaMismatch(
                f"the first line of {uri} names {', '.join(fields)}, and {HEADER} names "
                f"{', '.join(declared)}",
                f"leave {HEADER} out for these files: their first lines then count",
            )
        elif any(_UNREADABLE in name for name in fields):
            raise _illegible(uri, "it is not UTF-8")
        _lacks(uri, fields, columns)
        reader = FileReader("csv", properties, _distinct(fields))
        number[i] = numbers.setdefault(reader, len(numbers))
    return tuple(numbers), number


def _lacks(where: str, fields: Sequence[str], columns: Sequence[SegmentColumn]) -> None:
    missing = [c.name for c in columns if c.name not in fields]
    if missing:
        raise SegmentSchemaMismatch(
            f"{where} names no field {', '.join(missing)}; it names {', '.join(fields[:50])}",
            "every column of the table must be among the files' fields"
            + ("; if another character separates them: csv.delimiter" if len(fields) == 1 else ""),
        )
    count = Counter(fields)
    twice = [c.name for c in columns if count[c.name] > 1]
    if twice:
        raise SegmentSchemaMismatch(
            f"{where} names {', '.join(repr(f) for f in twice)} twice",
            "fields are found by name: each that is a column must be there once",
        )


def _agree(fields: Sequence[str], declared: Sequence[str]) -> bool:
    """Whether the fields are those declared, as far as their names can be read."""
    return len(fields) == len(declared) and all(
        _UNREADABLE in name or name == other for name, other in zip(fields, declared, strict=True)
    )


def _distinct(fields: Sequence[str]) -> tuple[str, ...]:
    """Names that differ. Those that are there twice are no columns, so others do as well."""
    found: dict[str, None] = {}
    for place, name in enumerate(fields):
        while not name or name in found or (name != fields[place] and name in fields):
            name = f"{name}_{place}"
        found[name] = None
    return tuple(found)


def _require(uri: str, schema: pa.Schema, columns: Sequence[SegmentColumn]) -> None:
    held = {field.name.lower(): type_of(field.type) for field in schema}
    missing = [c.name for c in columns if c.name not in held]
    if missing:
        raise SegmentSchemaMismatch(
            f"{uri} has no column {', '.join(missing)}; it has {', '.join(list(held)[:50])}",
            "every column of the table must be in each of its files",
        )
    for column in columns:
        if not readable_as(column.type, held[column.name]):
            raise SegmentSchemaMismatch(
                f"{uri} holds {column.name} as {held[column.name]}, the table declares "
                f"{column.type}",
                "declare a type that holds every value of the files, or rewrite the file",
            )


def readable_as(declared: Type, found: Type) -> bool:
    """Whether every value of a file's column is one of the declared type."""
    if found is UNKNOWN:
        return False
    if declared == found or common_type(declared, found) == declared:
        return True
    if declared.kind in _TEXT and found.kind in _TEXT:
        return True
    return declared.kind in _TIMES and found.kind in _TIMES


def read_header(storage: Storage, uri: str, size: int, properties: Properties) -> tuple[str, ...]:
    """The fields that the first line of a CSV file names, by `field_name`.

    A name that is not UTF-8 holds U+FFFD.

    Errors:
        SegmentSchemaMismatch: the line cannot be read.
        FileUnreadable, StorageFailure.
    """
    line = first_line(storage, uri, size)
    given = dict(properties)
    escape = given.get("csv.escape", "\\")
    quote = given.get("csv.quote", '"')
    try:
        rows = csv.reader(
            [line],
            delimiter=given.get("csv.delimiter", ","),
            quotechar=quote,
            escapechar=escape if escape != quote else None,
        )
        return tuple(name if _UNREADABLE in name else field_name(name) for name in next(rows, []))
    except csv.Error as error:
        raise _illegible(uri, str(error)) from error


def refuse_one_field(
    storage: Storage, uri: str, size: int, names: Sequence[str], option: str
) -> None:
    """Refuses a header of one field that another delimiter would part.

    Args:
        option: which gives the delimiter. Who has given one is not asked.

    Errors: InvalidRequest; of `first_line`.
    """
    line = first_line(storage, uri, size) if len(names) == 1 else ""
    other = next((mark for mark in OTHER_DELIMITERS if mark in line), None)
    if other is not None:
        raise InvalidRequest(
            f"the first line of {uri} names one field: {line[:200]!r}",
            f"name what separates the fields: {option}{other!r}; or ',' if it is one field",
        )


def first_line(storage: Storage, uri: str, size: int) -> str:
    """The first line of a text file, compressed or not. Errors: SegmentSchemaMismatch."""
    text = head_text(storage, uri, size)
    if text.startswith("\ufffd\ufffd") and "\0" in text:
        raise _illegible(uri, "it is not UTF-8, but UTF-16 perhaps: write the file again as UTF-8")
    ends = [at for at in (text.find("\n"), text.find("\r")) if at >= 0]
    if not ends and len(text) >= HEAD // 4 and size > HEAD:
        raise _illegible(uri, f"it does not end within {HEAD} bytes")
    return text[: min(ends)] if ends else text


def head_text(storage: Storage, uri: str, size: int) -> str:
    """The beginning of a text file; bytes that are not UTF-8 are U+FFFD.

    Errors:
        SegmentSchemaMismatch: it cannot be decompressed.
    """
    raw = storage.read_ranges(uri, [(0, min(size, HEAD))])[0]
    try:
        plain = _decompressed(uri, raw)
    except (OSError, ValueError, EOFError, zlib.error, pa.ArrowException) as error:
        raise _illegible(uri, str(error)) from error
    if len(raw) == size and plain is raw:
        cut = plain
    else:
        end = max(plain.rfind(b"\n"), plain.rfind(b"\r")) + 1  # a character may be cut
        cut = plain[:end] if end else plain
    return cut.decode("utf-8-sig", errors="replace")


def _decompressed(uri: str, raw: bytes) -> bytes:
    suffix = uri.rpartition("/")[2].rpartition(".")[2].lower()
    if suffix in ("gz", "gzip", "deflate"):
        return _members(raw, lambda: zlib.decompressobj(47))
    if suffix == "bz2":
        return _members(raw, bz2.BZ2Decompressor)
    if suffix in ("zst", "zstd"):
        stream = pa.CompressedInputStream(pa.BufferReader(raw), "zstd")
        found = io.BytesIO()
        while found.tell() < HEAD:
            try:
                part = stream.read(1 << 16)
            except (OSError, pa.ArrowException):
                if not found.tell():
                    raise
                break  # the part that was read ends here
            if not part:
                break
            found.write(part)
        return found.getvalue()
    if f".{suffix}" in CODECS:
        return _blocks(raw, f".{suffix}")
    if suffix in ("lzo", "lzo_deflate"):
        raise ValueError(f"headers of .{suffix} files are not read here")
    return raw


def _blocks(raw: bytes, suffix: str) -> bytes:
    """The beginning of what blocks hold, of which the last may be cut. Errors: ValueError."""
    found = b""
    try:
        for chunk in hadoop_blocks(iter([raw]), suffix):
            found += chunk
            if len(found) >= HEAD:
                break
    except ValueError:
        if not found:
            raise
    return found


def _members(raw: bytes, fresh: Callable[[], Any]) -> bytes:
    """The beginning of what the compressed streams hold, of which the last may be cut."""
    found = b""
    while raw and len(found) < HEAD:
        member = fresh()
        try:
            found += member.decompress(raw, HEAD - len(found))
        except (OSError, zlib.error):
            if not found:
                raise
            break  # what stands behind the end is the reader's concern
        raw = member.unused_data
    return found


def _illegible(uri: str, why: str) -> SegmentSchemaMismatch:
    return SegmentSchemaMismatch(
        f"the first line of {uri} cannot be read: {why}",
        f"give the files' fields in their order: --property {HEADER}=a,b,c, with "
        "csv.header_lines=0 if there is no such line",
    )
