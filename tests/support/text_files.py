"""Files of lines for laws: values, spellings that parsers differ in, and a reader of columns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from bridge.formats.lines.recipe import Recipe
from bridge.formats.registry import file_format
from bridge.kernel.errors import FileAmbiguous
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Kind,
    Type,
    decimal,
)

TYPES = (
    STRING, STRING, BIGINT, INTEGER, SMALLINT, TINYINT, DOUBLE, FLOAT, BOOLEAN, DATE, TIMESTAMP,
    decimal(6, 2), decimal(30, 5), Type(Kind.VARCHAR, length=5),
)  # fmt: skip


class _Memory:
    """A storage of one file."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def read(self, uri: str) -> bytes:
        return self._raw

    def read_ranges(self, uri: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self._raw[start:end] for start, end in ranges]


def read(
    recipe: Recipe, raw: bytes, uri: str = "file:///t/f"
) -> tuple[int, list[Any], dict[int, float]] | None:
    """Rows, values by column (None: doubtful), and loose columns; None for an ambiguous file."""
    reader = file_format(recipe.format).chunks
    assert reader is not None
    try:
        chunks = reader(_Memory(raw), uri, len(raw), recipe)  # type: ignore[arg-type]
        found: list[Any] = [[] for _ in recipe.columns]
        count = 0
        for rows, batch in chunks.batches():
            count += rows
            for number in range(len(found)):
                if number not in batch:
                    found[number] = None
                elif found[number] is not None:
                    assert len(batch[number]) == rows
                    found[number] += batch[number].to_pylist()
    except FileAmbiguous:
        return None
    for number, leaf in enumerate(chunks.leaves):
        if leaf.type.logical == "other":
            found[number] = None
    return count, found, dict(chunks.loose())


GOOD = {
    Kind.STRING: ("a", "b", "zz", "", "é", "名", " x ", "NULL", "1", "\U0001f600", "a b", "k"),
    Kind.VARCHAR: ("a", "bcd", "", "é"),
    Kind.BOOLEAN: ("true", "false"),
    Kind.DATE: ("2024-02-29", "1999-12-31", "2000-01-01", "1900-01-01"),
    Kind.TIMESTAMP: ("2024-02-29 12:30:00", "1999-12-31 23:59:59.125", "2000-01-01 00:00:00.5"),
    Kind.DECIMAL: ("1.5", "0", "-12.25", "100", "0.01"),
}
NUMBERS = ("0", "1", "-1", "7", "42", "100", "-100", "127")
FLOATS = ("0", "1.5", "-2.25", "0.1", "123456.789", "-0.0", "3")
ODD = (
    "1e3", " 1", "1 ", "+1", "0x10", "1_000", "NaN", "Infinity", "-0", "007", "1.0", ".5", "5.", "",
    "99999999999999999999", "128", "-129", "40000", "3000000000", "0.30000000000000004", "1e400",
    "2024-2-3", "2023-02-29", "1899-12-31", "2024-02-30 00:00:00", "2024-02-29T12:30:00",
    "2024-02-29 12:30:00.123456", "24:00", "TRUE", "t", "0", "yes", "abcdef", "1,5", "\\N", "null",
    "1.555", "123456.1", "1d", "1f", "--1", "-", "٣", "1\t", "1.7976931348623159e308", "1e-400",
    "123456789012345678901234567890.12345", "0.1234567890123456789", "12345678.9",
)  # fmt: skip


def value(rng: random.Random, type: Type, odd: float) -> str:
    if rng.random() < odd:
        return rng.choice(ODD)
    if type.is_integer:
        return rng.choice(NUMBERS)
    return rng.choice(FLOATS if type.is_floating else GOOD[type.kind])


def json_value(rng: random.Random, type: Type, odd: float) -> str:
    if rng.random() < 0.1:
        return "null"
    text = value(rng, type, odd)
    number = type.is_integer or type.is_floating or type.kind in (Kind.DECIMAL, Kind.BOOLEAN)
    if number != (rng.random() < odd):
        return text
    return '"' + text.replace("\\", "\\\\").replace("\t", "\\t") + '"'
