"""By which physical types engines look values up in the bloom filters of Parquet files.

A filter holds hashes of the values as they are stored. Trino hashes a value as one of the table's
type: in a filter of 32-bit numbers it finds no ``bigint``, though the rows are there. So a filter
may only be written where a column is stored as the table declares it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bridge.kernel.types import Field, Kind, Type

_BYTES = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_STORED: dict[Kind, tuple[str, ...]] = {
    Kind.TINYINT: ("INT32",),
    Kind.SMALLINT: ("INT32",),
    Kind.INTEGER: ("INT32",),
    Kind.DATE: ("INT32",),
    Kind.BIGINT: ("INT64",),
    Kind.TIMESTAMP: ("INT64",),
    Kind.TIMESTAMP_TZ: ("INT64",),
    Kind.DECIMAL: ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"),  # found by the file's own type
    Kind.STRING: _BYTES,
    Kind.VARCHAR: _BYTES,
    Kind.BINARY: _BYTES,
}
"""Missing are types that have several spellings of one value: 0.0 and -0.0, and padded text."""


def may_have_bloom(type: Type) -> bool:
    """Whether a column of a type may have a bloom filter."""
    return type.kind in _STORED


def stored_types(columns: Iterable[Field]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The columns and members of structs that may have a bloom filter: their paths in lower case,
    with dots, and the physical types of which they may be. Doubtful paths are left out."""
    found: dict[str, tuple[str, ...]] = {}
    doubtful: set[str] = set()
    for path, kind in _leaves(columns, ""):
        if path in found or kind not in _STORED:
            doubtful.add(path)
        found[path] = _STORED.get(kind, ())
    return tuple((path, stored) for path, stored in found.items() if path not in doubtful)


def _leaves(fields: Iterable[Field], above: str) -> Iterator[tuple[str, Kind]]:
    for field in fields:
        path = above + field.name.lower()
        if field.type.kind is Kind.STRUCT:
            yield from _leaves(field.type.fields, f"{path}.")
        else:
            yield path, field.type.kind
