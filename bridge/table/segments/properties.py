"""Properties of tables of segments, and what readers make of them.

A table has only properties whose prefix is its format's name (``csv.delimiter``). They are given to
readers under Hive's names, where Hive has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from bridge.formats.registry import file_format
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import STRING
from bridge.table.model import Column
from bridge.table.reader_spec import COLUMN_TYPES, COLUMNS, COLUMNS_BY_NAME, ReaderSpec
from bridge.table.segments.manifest import (
    FileReader,
    Properties,
    SegmentColumn,
    TableDefinition,
    sorted_properties,
)

CAST = "skipbridge.cast"
"""Reader property of CSV files whose text is cast to the columns' declared types: ``try`` makes
NULL of a value that cannot be cast, ``fail`` an error."""
FIELDS = "skipbridge.csv.fields"
"""Reader property: the names of the files' fields in their order, separated by commas."""
_OTHERS = re.compile(r"\W+")
HEADER = "csv.header"
HEADER_LINES = "csv.header_lines"


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a format.

    Attributes:
        meaning: one sentence.
        reader: its name for readers; empty: readers are not told.
        default: what readers get if it is not set; None: nothing.
        check: raises ValueError for a wrong value. A text that it returns is the value.
    """

    meaning: str
    reader: str = ""
    default: str | None = None
    check: Callable[[str], object] = str


_SPELLED = {"\\t": "\t", "\\001": "\x01", "\\u0001": "\x01", "\\\\": "\\"}
"""Characters that are hard to type, as Hive spells them."""


_MOST = 2**31 - 1
"""As much as the engines' readers count."""


def _character(text: str) -> str:
    text = _SPELLED.get(text, text)
    if len(text) != 1 or text in "\n\r":
        raise ValueError("one character that ends no line, or \\t or \\001")
    return text


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text[:20]) > _MOST:
        raise ValueError(f"a number from 0 to {_MOST}")
    return int(text)


def _fields(text: str) -> tuple[str, ...]:
    names = split_fields(text)
    if not all(names) or len(set(names)) < len(names):
        raise ValueError("names of fields that differ, separated by commas")
    return names


_LETTERS = frozenset("GCYxweEyDMdaKhHkmsSzZ")
"""What Joda-Time's patterns may hold outside of quotes."""


def _pattern(text: str) -> None:
    bare = "".join(text.split("'")[::2])
    if not bare.strip() or not {c for c in bare if c.isascii() and c.isalpha()} <= _LETTERS:
        raise ValueError("a pattern of Joda-Time, such as dd.MM.yyyy HH:mm; other words in '...'")


def _patterns(text: str) -> None:
    for one in text.split(","):
        _pattern(one)


_CASTS = {"null": "try", "error": "fail"}


def _bad_values(text: str) -> str:
    if text not in ("null", "error"):
        raise ValueError("null or error")
    return text


_BAD = Property(
    "What a value becomes that cannot be read as its column's type: `null` or `error`.",
    CAST,
    "null",
    _bad_values,
)
_NULL = Property("The text that is read as NULL.", "serialization.null.format")

PROPERTIES: dict[str, dict[str, Property]] = {
    "csv": {
        "csv.delimiter": Property("Separates fields.", "separatorChar", ",", _character),
        "csv.quote": Property("Encloses fields.", "quoteChar", '"', _character),
        "csv.escape": Property("Escapes a character.", "escapeChar", "\\", _character),
        HEADER: Property(
            "The names of the files' fields in their order, separated by commas. Without it: the "
            "first line of each file if it has header lines, else the table's columns.",
            check=_fields,
        ),
        HEADER_LINES: Property(
            "Lines at the start of each file that hold no rows.",
            "skip.header.line.count",
            check=_count,
        ),
        "csv.footer_lines": Property(
            "Lines at the end of each file that hold no rows.",
            "skip.footer.line.count",
            check=_count,
        ),
        "csv.null": _NULL,
        "csv.bad_values": _BAD,
        "csv.timestamp_formats": Property(
            "Patterns of timestamps, separated by commas; the first that fits counts.",
            "timestamp.formats",
            check=_patterns,
        ),
        "csv.date_format": Property(
            "The pattern of dates.", "skipbridge.date_format", check=_pattern
        ),
    },
    "json": {
        "json.timestamp_formats": Property(
            "Patterns of timestamps, as Hive's property of this name.", "timestamp.formats"
        )
    },
    "text": {
        "text.delimiter": Property("Separates fields.", "field.delim", "\x01", _character),
        "text.null": _NULL,
    },
    "parquet": {},
    "orc": {},
    "avro": {},
}
"""The properties of each format of which a table of segments can be."""


def field_name(text: str) -> str:
    """The name by which a column finds a field of CSV: in lower case, other characters being ``_``.

    >>> field_name(" Seconds (s)")
    'seconds_s'
    >>> field_name("_id")
    '_id'
    """
    name = text.strip().lower()
    if _OTHERS.search(name) is None:
        return name
    return _OTHERS.sub("_", name).strip("_")


def split_fields(text: str) -> tuple[str, ...]:
    """The names in a header.

    >>> split_fields("Call Id, name")
    ('call_id', 'name')
    """
    return tuple(map(field_name, text.split(",")))


def check_properties(format: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties, with names in lower case.

    Errors:
        InvalidRequest: the format is not supported, a name is not one of its properties, or a value
            is wrong.
    """
    known = PROPERTIES.get(format)
    if known is None:
        raise InvalidRequest(
            f"a table of segments cannot be of the format {format!r}",
            f"formats are {', '.join(sorted(PROPERTIES))}",
        )
    found = {name.strip().lower(): value for name, value in properties.items()}
    for name, value in found.items():
        if name not in known:
            theirs = ", ".join(known) or "none"
            raise InvalidRequest(
                f"{name} is no property of a table of {format} segments",
                f"its properties begin with '{format}.': {theirs}",
            )
        try:
            meant = known[name].check(value)
        except ValueError as error:
            raise InvalidRequest(f"{name} is {value!r}", f"give {error}") from error
        if isinstance(meant, str):
            found[name] = meant
    return found


def require_together(format: str, properties: Mapping[str, str]) -> None:
    """Checks properties that are each possible, as readers will get them.

    Errors:
        InvalidRequest: they cannot hold at once.
    """
    known = PROPERTIES[format]

    def value(name: str) -> str:
        return properties.get(name, known[name].default or "")

    if format == "csv":
        marks = [(name, value(name)) for name in ("csv.delimiter", "csv.quote", "csv.escape")]
        for (one, mark), (other, same) in combinations(marks, 2):
            if mark == same != "\0":
                raise InvalidRequest(
                    f"{one} and {other} are both {mark!r}",
                    f"{one} is {known[one].default!r}, {other} {known[other].default!r} by default",
                )
        if value("csv.escape") in value("csv.null"):
            raise InvalidRequest(
                f"csv.null is {value('csv.null')!r}, which no field is: readers take away the "
                f"csv.escape {value('csv.escape')!r} first",
                "set csv.escape too, to a character that the files do not have, such as \\001",
            )
    if format == "text" and value("text.delimiter") in value("text.null"):
        raise InvalidRequest(
            f"text.null is {value('text.null')!r}, which no field is: it holds the text.delimiter",
            "give another one",
        )


def header_lines(properties: Properties) -> int:
    """How many lines at the start of each file hold no rows."""
    return int(dict(properties).get(HEADER_LINES, "0"))


def reader_spec(reader: FileReader, columns: Sequence[Column]) -> ReaderSpec:
    """How readers read these files now.

    Args:
        columns: the table's columns as of the version that is read.
    """
    given = dict(reader.properties)
    told: dict[str, str] = {}
    for name, known in PROPERTIES.get(reader.format, {}).items():
        value = given.get(name, known.default)
        if known.reader and value is not None:
            told[known.reader] = _CASTS[value] if known.reader == CAST else value
    format = file_format(reader.format)
    if format.by_position:  # an engine's own setting must not find other columns
        told |= (COLUMNS_BY_NAME,)
    if not format.described:
        return ReaderSpec(reader.format, sorted_properties(told))
    own: tuple[Column, ...] | None = None
    if format.hive is not None:
        told["serialization.lib"] = format.hive.serdes[0]
        told["file.inputformat"] = format.hive.input_formats[0]
    if reader.fields is not None:
        types = {c.name: c.type for c in columns}
        # Readers split names at commas, which names of earlier versions of the log may hold.
        fields = [name.replace(",", ";") for name in reader.fields]
        own = tuple(Column(name, types.get(name, STRING)) for name in fields)
        told[FIELDS] = ",".join(fields)
    elif reader.format == "csv":
        told.pop(CAST)
    shown = own if own is not None else columns
    told[COLUMNS] = ",".join(c.name for c in shown)
    told[COLUMN_TYPES] = ":".join(str(c.type) for c in shown)
    return ReaderSpec(reader.format, sorted_properties(told), own)


def columns_of(definition: TableDefinition) -> tuple[Column, ...]:
    """The columns of a version that files hold."""
    return columns_of_all(definition.columns)


def keys_of(definition: TableDefinition) -> tuple[Column, ...]:
    """The partition columns of a version."""
    return columns_of_all(definition.partition_columns)


def columns_of_all(columns: Sequence[SegmentColumn]) -> tuple[Column, ...]:
    return tuple(Column(c.name, c.type, c.comment) for c in columns)
