"""The page indexes of a Parquet file, read by a parser that is not Arrow's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bridge.formats.parquet.tail import footer_of
from bridge.formats.parquet.thrift_compact import read_fields


@dataclass(frozen=True)
class PageBounds:
    """What a page index says of a page.

    Attributes:
        group, leaf: of which row group and leaf column.
        rows: its first row in the row group, and the first one after it.
        bounds: the bytes of the least and the greatest value; None: the column has no such index.
    """

    group: int
    leaf: int
    rows: tuple[int, int]
    all_null: bool
    nulls: int | None
    bounds: tuple[bytes, bytes] | None


def page_bounds(content: bytes) -> Iterator[PageBounds]:
    """All pages of all columns, in their order."""
    footer, _ = read_fields(footer_of(content, "a file"), 0)
    for number, group in enumerate(_list(footer, 4)):
        for leaf, chunk in enumerate(_list(group, 1)):
            locations = _list(read_fields(content, chunk[4][1])[0], 1)
            firsts = [each[3][1] for each in locations] + [group[3][1]]
            index = read_fields(content, chunk[6][1])[0] if 6 in chunk else None
            for i in range(len(locations)):
                rows = firsts[i], firsts[i + 1]
                if index is None:
                    yield PageBounds(number, leaf, rows, False, None, None)
                    continue
                bounds = _list(index, 2)[i], _list(index, 3)[i]
                nulls = _list(index, 5)[i] if 5 in index else None
                yield PageBounds(number, leaf, rows, _list(index, 1)[i], nulls, bounds)


def _list(fields: Any, number: int) -> list[Any]:
    found: list[Any] = fields[number][1][1]
    return found
