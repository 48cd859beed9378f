"""The parts of Thrift's compact protocol that Parquet footers use. Every byte is checked.

Each function takes the bytes and a start position, and returns the position after what it read.
Bytes that end inside a field raise IndexError. Other invalid bytes raise Damaged.
"""

from __future__ import annotations

from typing import Any

# Types of fields.
BOOLEANS, INTEGERS = (1, 2), (4, 5, 6)
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
DEEPEST = 64
"""Greatest nesting depth of structs."""


class Damaged(Exception):
    """The bytes are invalid. The message says how."""


def expect(right: bool, what: str) -> None:
    if not right:
        raise Damaged(what)


def read_varint(raw: bytes, at: int) -> tuple[int, int]:
    byte = raw[at]
    if byte < 128:
        return byte, at + 1
    result, shift = byte & 127, 7
    while True:
        at += 1
        byte = raw[at]
        result |= (byte & 127) << shift
        if byte < 128:
            expect(result < 2**64, "a number has more than 64 bits")
            return result, at + 1
        shift += 7
        expect(shift < 70, "a number has more than 64 bits")


def read_count(raw: bytes, at: int) -> tuple[int, int]:
    """Reads a number that must not be negative."""
    found, at = read_varint(raw, at)
    expect(not found & 1, "a count or an offset is negative")
    return found >> 1, at


def read_binary(raw: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_varint(raw, at)
    end = at + length
    expect(end <= len(raw), "a text is longer than the footer")
    return raw[at:end], end


def read_list_head(raw: bytes, at: int) -> tuple[int, int, int]:
    head = raw[at]
    count, at = head >> 4, at + 1
    if count == 15:
        count, at = read_varint(raw, at)
    expect(count <= len(raw) - at, "a list is longer than the footer")
    return head & 15, count, at


def read_value(raw: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in INTEGERS:
        found, at = read_varint(raw, at)
        return (found >> 1) ^ -(found & 1), at
    if kind == BINARY:
        return read_binary(raw, at)
    if kind == STRUCT:
        return read_fields(raw, at, depth + 1)
    if kind in (LIST, 10):
        inner, count, at = read_list_head(raw, at)
        values = []
        for _ in range(count):
            if inner in BOOLEANS:
                value, at = raw[at] == 1, at + 1
            else:
                value, at = read_value(raw, at, inner, depth + 1)
            values.append(value)
        return (inner, values), at
    if kind == 3:
        return raw[at], at + 1
    if kind == 7:
        expect(at + 8 <= len(raw), "a number is longer than the footer")
        return raw[at : at + 8], at + 8
    raise Damaged(f"a field has the type {kind}")


Fields = dict[int, tuple[int, Any]]


def read_fields(raw: bytes, at: int, depth: int = 0) -> tuple[Fields, int]:
    """Reads a struct: the type and value of each field, by number."""
    expect(depth < DEEPEST, "its structs are nested too deeply")
    found: Fields = {}
    last = 0
    while True:
        head = raw[at]
        at += 1
        if not head:
            return found, at
        kind, delta = head & 15, head >> 4
        if delta:
            number = last + delta
        else:
            packed, at = read_varint(raw, at)
            number = (packed >> 1) ^ -(packed & 1)
        expect(number > last, "a field stands twice or out of order")
        last = number
        if kind in BOOLEANS:
            found[number] = kind, kind == 1
        else:
            value, at = read_value(raw, at, kind, depth)
            found[number] = kind, value


def optional_field(fields: Fields, number: int, kind: int, what: str) -> Any:
    """A field that may be missing."""
    held = fields.get(number)
    if held is None:
        return None
    expect(held[0] == kind, f"{what} has the type {held[0]}, not {kind}")
    return held[1]


def needed_field(fields: Fields, number: int, kind: int, what: str) -> Any:
    found = optional_field(fields, number, kind, what)
    expect(found is not None, f"{what} is missing")
    return found


def count_field(fields: Fields, number: int, kind: int, what: str) -> int:
    found: int = needed_field(fields, number, kind, what)
    expect(found >= 0, f"{what} is {found}")
    return found


def spell_long_list(count: int) -> bytes:
    return bytes([0xF0 | BINARY]) + spell_number(count)


def spell_binary(name: bytes) -> bytes:
    return spell_number(len(name)) + name


def spell_number(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
