"""What Trino and Hive read from lines of text: plain and slow, for laws of the fast readers.

Each function gives a value, None for NULL, or `DIFFER` where the two engines may not agree or one
of them fails. They are written from the engines' rules, one character at a time, and know nothing
of the readers that they judge.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from bridge.kernel.types import INTEGER_RANGE, Kind, Type


class _Differ:
    def __repr__(self) -> str:
        return "DIFFER"


DIFFER = _Differ()
Value = Any
Row = list[Value]


def lines_of(raw: bytes, header: int) -> list[bytes] | _Differ:
    """The lines after the header, or `DIFFER` where readers may find others."""
    if (raw[:3] == b"\xef\xbb\xbf" and not header) or raw[:2] in (b"\xfe\xff", b"\xff\xfe"):
        return DIFFER
    return split_lines(raw)[header:]


def split_lines(raw: bytes) -> list[bytes]:
    """Lines that end with LF, CR LF, a lone CR or the file."""
    lines, at = [], bytearray()
    i = 0
    while i < len(raw):
        byte = raw[i]
        if byte in (10, 13):
            if byte == 13 and raw[i + 1 : i + 2] == b"\n":
                i += 1
            lines.append(bytes(at))
            at.clear()
        else:
            at.append(byte)
        i += 1
    if at:
        lines.append(bytes(at))
    return lines


def csv_row(line: bytes, width: int, separator: str, quote: str, escape: str) -> Row:
    """OpenCSVSerde: opencsv 2.3 over one line, as Trino repeats it."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return [DIFFER] * width
    if "\0" in text:
        return [DIFFER] * width
    if not text:
        return [None] * width
    fields: list[str] = []
    held: list[str] = []
    in_quotes = in_field = False
    i = 0
    while i < len(text):
        c = text[i]
        after = text[i + 1] if i + 1 < len(text) else ""
        if c == escape:
            if (in_quotes or in_field) and after in (quote, escape) and after:
                held.append(after)
                i += 1
        elif c == quote:
            if (in_quotes or in_field) and after == quote:
                held.append(quote)
                i += 1
            else:
                if i > 2 and text[i - 1] != separator and after and after != separator:
                    if held and all(c.isspace() and c not in "\x85\xa0\u2007\u202f" for c in held):
                        held.clear()
                    else:
                        held.append(c)
                in_quotes = not in_quotes
            in_field = not in_field
        elif c == separator and not in_quotes:
            fields.append("".join(held))
            held.clear()
            in_field = False
        else:
            held.append(c)
            in_field = True
        i += 1
    row: Row = list(fields)
    if not in_quotes:  # both drop the field of a quote that stays open
        row.append("".join(held))
    return (row + [None] * width)[:width]


def text_row(
    line: bytes, types: Sequence[Type], separator: str, null: str, escape: str | None
) -> Row:
    """LazySimpleSerDe without nested types."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return [DIFFER] * len(types)
    if (escape is not None and escape in text) or "\0" in text:
        return [DIFFER] * len(types)
    fields: list[str | None] = list(text.split(separator))
    fields = (fields + [None] * len(types))[: len(types)]
    return [
        None if field is None or field == null else spelled(field, type)
        for field, type in zip(fields, types, strict=True)
    ]


def spelled(text: str, type: Type) -> Value:
    """A field's text as a value; `DIFFER` for each spelling that is not an engine's own."""
    kind = type.kind
    if kind is Kind.STRING:
        return text
    if kind is Kind.VARCHAR:
        return text if len(text) <= type.length else DIFFER
    if kind in (Kind.DATE, Kind.DECIMAL, Kind.BOOLEAN) and not text:
        return DIFFER
    if not text:
        return None
    if kind is Kind.BOOLEAN:
        return {"true": True, "false": False}.get(text, DIFFER)
    if type.is_integer:
        low, high = INTEGER_RANGE[kind]
        canonical = text.lstrip("-").isascii() and text.lstrip("-").isdigit()
        if not canonical or str(int(text) if text.count("-") < 2 else "") != text:
            return DIFFER
        return int(text) if low <= int(text) <= high else DIFFER
    if type.is_floating:
        digits = text.removeprefix("-").replace(".", "", 1)
        if not (digits.isascii() and digits.isdigit()) or text.endswith("."):
            return DIFFER
        return float(text) if not text.removeprefix("-").startswith(".") else DIFFER
    if kind is Kind.DECIMAL:
        return _decimal(text, type)
    if kind is Kind.DATE:
        return _date(text)
    return _timestamp(text) if kind is Kind.TIMESTAMP else DIFFER


def _decimal(text: str, type: Type) -> Value:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return DIFFER
    if not value.is_finite() or text != text.strip() or "_" in text:
        return DIFFER
    scaled = value.scaleb(type.scale)
    exact = scaled == scaled.to_integral_value()
    return value if exact and abs(scaled) < 10**type.precision else DIFFER


def _date(text: str) -> Value:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) or text < "1900":
        return DIFFER
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return DIFFER


def _timestamp(text: str) -> Value:
    form = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,3})?"
    if not re.fullmatch(form, text, re.ASCII) or text < "1900":
        return DIFFER
    whole, _, part = text.partition(".")
    try:
        return datetime.datetime.fromisoformat(whole + "." + (part or "0").ljust(6, "0"))
    except ValueError:
        return DIFFER


class _Token(str):
    """A JSON number as it is spelled."""


def json_row(line: bytes, columns: Sequence[tuple[str, Type]]) -> Row | _Differ:
    """Hive's JSON SerDes; `DIFFER` for a line that an engine refuses, or takes for another one.

    Where a column, or a part of it, is neither an object nor a list and its value is, Hive 2 and 3
    go on inside of it: what is in it are then members of the line, and its end is the line's.
    """
    try:
        text = line.decode()
        row = json.loads(
            text,
            object_pairs_hook=lambda pairs: pairs if pairs else [("", None)],
            parse_int=_Token,
            parse_float=_Token,
            parse_constant=lambda t: {}[t],
        )
    except (ValueError, KeyError, RecursionError):
        return DIFFER
    if not text.lstrip().startswith("{"):
        return DIFFER
    found: dict[str, Value] = {}
    names = dict(columns)
    for key, value in row:
        name = key.lower()
        if re.fullmatch("_col[0-9]+", name):
            return DIFFER
        if name in names:
            if _leads_astray(value, names[name]):
                return DIFFER
            found[name] = DIFFER if name in found else _of_json(value, names[name])
    return [found.get(name) for name, _ in columns]


def _leads_astray(value: Any, type: Type) -> bool:
    """Whether Hive meets the beginning of an object or a list where it takes one token."""
    if not isinstance(value, list):
        return False
    pairs = bool(value) and all(isinstance(each, tuple) for each in value)
    match type.kind:
        case Kind.ARRAY:
            inner = [] if pairs else [(each, type.fields[0].type) for each in value]
        case Kind.MAP:
            inner = [(v, type.fields[1].type) for _, v in value] if pairs else []
        case Kind.STRUCT:
            known = {f.name: f.type for f in type.fields}
            inner = [(v, known[k.lower()]) for k, v in value if k.lower() in known] if pairs else []
        case _:
            return True
    return any(_leads_astray(v, t) for v, t in inner)


def _of_json(value: Any, type: Type) -> Value:
    kind = type.kind
    if value is None:
        return None
    if type.is_nested:
        return DIFFER
    if kind is Kind.BOOLEAN:
        return value if isinstance(value, bool) else DIFFER
    if type.is_integer:
        exact = isinstance(value, _Token) and re.fullmatch(r"-?\d+", value)
        low, high = INTEGER_RANGE[kind]
        return int(value) if exact and low <= int(value) <= high else DIFFER
    if type.is_floating:
        good = isinstance(value, _Token) and math.isfinite(float(value))
        return float(value) if good else DIFFER
    if kind is Kind.DECIMAL:  # Hive may read the number as a double first
        if isinstance(value, bool) or not isinstance(value, str):
            return DIFFER
        found = _decimal(value, type)
        long = found is not DIFFER and len(found.as_tuple().digits) > 17
        return DIFFER if long else found
    if isinstance(value, _Token) or not isinstance(value, str):
        return DIFFER
    if any(0xD800 <= ord(c) < 0xE000 for c in value):
        return DIFFER
    known = value or kind in (Kind.STRING, Kind.VARCHAR)
    return spelled(value, type) if known else DIFFER
