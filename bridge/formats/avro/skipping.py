"""Passes over values in Avro's binary form, by their schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Skip = Callable[[bytes, int], int]
"""Passes over a value: from its position in the data to the position after it."""
Count = Callable[[int], None]
"""Called with what a part of a value becomes in memory: see `require_few`."""
_FIXED = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_FEW, _BYTES_OF_ONE = 1 << 20, 24
_FIELDS_OF_ONE = 8


def require_few(schema: Any, data: bytes, at: int = 0) -> None:
    """Walks a record whose text is most of it, before a library makes objects of its values.

    Zeros become an item each, of hundreds of bytes. Items count one, and eight fields of a record.

    Args:
        schema: as fastavro has parsed it.
        at: where the record begins.

    Errors:
        ValueError: beyond a million there are more of them than one in 24 bytes, or the data is
            damaged. IndexError: it is cut.
    """
    Few().add(schema, data, at)


class Few:
    """`require_few` for records that are held together: it counts them all as one."""

    def __init__(self) -> None:
        self._bytes = self._values = 0
        self._schema: Any = None
        self._skip: Skip = lambda data, at: at

    def add(self, schema: Any, data: bytes, at: int = 0) -> None:
        """One more record. Errors: as `require_few`."""
        self._bytes += len(data)
        if self._bytes > _FEW:
            if schema is not self._schema:
                self._schema, self._skip = schema, skipper(schema, {}, self._count)
            self._skip(data, at)

    def _count(self, more: int) -> None:
        self._values += more
        if self._values > _FEW + self._bytes // _BYTES_OF_ONE:
            raise ValueError(f"{self._bytes} bytes state {self._values} values")


def number_at(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def length_at(data: bytes, at: int) -> tuple[int, int]:
    length, at = number_at(data, at)
    if not 0 <= length <= len(data) - at:
        raise ValueError(f"a value has the length {length}")
    return length, at


def text_at(data: bytes, at: int) -> tuple[str, int]:
    length, at = length_at(data, at)
    return data[at : at + length].decode(), at + length


def count_at(data: bytes, at: int) -> tuple[int, int]:
    """The number of items in the next block of an array or map."""
    count, at = number_at(data, at)
    if count < 0:  # the block's size in bytes follows
        count = -count
        _, at = number_at(data, at)
    if count > len(data):
        raise ValueError(f"a block has {count} items")
    return count, at


def skipper(type: Any, names: dict[str, Skip], count: Count = lambda more: None) -> Skip:
    """What passes over values of a type.

    Errors:
        ValueError, KeyError: it is no type.
    """
    if isinstance(type, list):
        return _skip_union([skipper(each, names, count) for each in type])
    if isinstance(type, str):
        return names[type] if type in names else _skip_plain(type)
    kind = type["type"]
    if kind in ("array", "map"):
        item = skipper(type["items" if kind == "array" else "values"], names, count)
        return _skip_blocks(item, kind, count)
    if kind in ("record", "error"):
        parts = [skipper(field["type"], names, count) for field in type["fields"]]
        cost = len(parts) // _FIELDS_OF_ONE

        def record(data: bytes, at: int) -> int:
            count(cost)
            for part in parts:
                at = part(data, at)
            return at

        names[type["name"]] = record
        return record
    if kind in ("fixed", "enum"):
        skip = _skip_fixed(type["size"]) if kind == "fixed" else _skip_plain("int")
        names[type["name"]] = skip
        return skip
    return skipper(kind, names, count)


def _skip_union(branches: list[Skip]) -> Skip:
    def union(data: bytes, at: int) -> int:
        branch, at = length_at(data, at)
        return branches[branch](data, at)

    return union


def _skip_blocks(item: Skip, kind: str, count: Count) -> Skip:
    def blocks(data: bytes, at: int) -> int:
        while True:
            items, at = count_at(data, at)
            if not items:
                return at
            count(items)
            for _ in range(items):
                if kind == "map":
                    length, at = length_at(data, at)
                    at += length
                at = item(data, at)

    return blocks


def _skip_fixed(size: int) -> Skip:
    def fixed(data: bytes, at: int) -> int:
        if at + size > len(data):
            raise ValueError("a value is cut")
        return at + size

    return fixed


def _skip_plain(type: str) -> Skip:
    if type in _FIXED:
        return _skip_fixed(_FIXED[type])
    if type in ("int", "long"):
        return lambda data, at: number_at(data, at)[1]
    if type in ("string", "bytes"):

        def text(data: bytes, at: int) -> int:
            length, at = length_at(data, at)
            return at + length

        return text
    raise ValueError(f"{type} is no type of Avro")
