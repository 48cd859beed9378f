"""Parquet footers taken apart and put together again, as other writers would have spelt them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Struct = list[list[Any]]
"""Fields: number, type and value of each; a list is (type, values), a struct is one of these."""
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def take_apart(file: bytes) -> tuple[bytes, Struct]:
    """What stands before the footer, and the footer."""
    begin = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
    return file[:begin], _struct(file, begin)[0]


def put_together(data: bytes, footer: Struct, behind: bytes = b"") -> bytes:
    """A file; ``behind`` stands behind the footer's last field and counts as the footer's."""
    raw = _spelled(STRUCT, footer) + behind
    return data + raw + len(raw).to_bytes(4, "little") + b"PAR1"


def get(fields: Struct, number: int) -> Any:
    return next(value for n, _, value in fields if n == number)


def set_to(fields: Struct, number: int, kind: int, value: Any) -> None:
    fields[:] = [field for field in fields if field[0] != number] + [[number, kind, value]]
    fields.sort(key=lambda field: field[0])


def renamed(path: Path, created_by: bytes | None) -> None:
    """Makes a file that of another writer."""
    data, footer = take_apart(path.read_bytes())
    footer[:] = [field for field in footer if field[0] != 6]
    if created_by is not None:
        set_to(footer, 6, BINARY, created_by)
    path.write_bytes(put_together(data, footer))


def elements(footer: Struct) -> list[Struct]:
    """Of the schema, the root first."""
    found: list[Struct] = get(footer, 2)[1]
    return found


def groups(footer: Struct) -> list[Struct]:
    found: list[Struct] = get(footer, 4)[1]
    return found


def chunks(footer: Struct) -> list[Struct]:
    return [chunk for group in groups(footer) for chunk in get(group, 1)[1]]


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = raw[at]
        at += 1
        found |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return found, at


def _value(raw: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind in (4, I32, I64):
        found, at = _varint(raw, at)
        return (found >> 1) ^ -(found & 1), at
    if kind == BINARY:
        length, at = _varint(raw, at)
        return raw[at : at + length], at + length
    if kind == STRUCT:
        return _struct(raw, at)
    assert kind == LIST
    head, count, at = raw[at] & 15, raw[at] >> 4, at + 1
    if count == 15:
        count, at = _varint(raw, at)
    values = []
    for _ in range(count):
        value, at = _value(raw, at, head)
        values.append(value)
    return (head, values), at


def _struct(raw: bytes, at: int) -> tuple[Struct, int]:
    fields: Struct = []
    number = 0
    while raw[at]:
        kind, delta = raw[at] & 15, raw[at] >> 4
        assert delta
        number += delta
        value, at = _value(raw, at + 1, kind)
        fields.append([number, kind, value])
    return fields, at + 1


def _number(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _spelled(kind: int, value: Any) -> bytes:
    if kind in (4, I32, I64):
        return _number(value << 1 if value >= 0 else (-value << 1) - 1)
    if kind == BINARY:
        return _number(len(value)) + value
    if kind == LIST:
        inner, values = value
        few = len(values) < 15
        head = bytes([min(len(values), 15) << 4 | inner]) + (b"" if few else _number(len(values)))
        return head + b"".join(_spelled(inner, each) for each in values)
    assert kind == STRUCT
    parts, last = [], 0
    for number, each, held in value:
        head = (1 if held else 2) if each in (1, 2) else each
        parts.append(bytes([(number - last) << 4 | head]))
        if each not in (1, 2):
            parts.append(_spelled(each, held))
        last = number
    return b"".join(parts) + b"\0"
