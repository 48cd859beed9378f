"""Writers of Parquet whose footers are known to state wrong bounds or counts.

The law: what a writer is known to get wrong counts as unknown, in every version that may do so. A
reader cannot see such an error: wrong bounds are mostly in order, and a wrong count is a number.

Decimals in byte arrays are big-endian and signed. Many writers have compared them as plain bytes.
Where all values have the same width, bounds by unsigned bytes contradict each other or are right.
Where widths vary, or bytes were compared as signed, or bounds of pages were merged by another order
than those of values, they may be wrong and in order.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from bridge.file_formats.physical_column import PhysicalType

_ARROW_SCHEMA = b"ARROW:schema"
_NAMED = re.compile(rb"(?P<name>.*?) version (?P<major>\d{1,9})\.(?P<minor>\d{1,9})")
_MOST_CODED = 1 << 20
"""Bytes of an Arrow schema that is read. In files with longer ones any text may be coded."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """What of a footer is not believed.

    Attributes:
        bounds: bounds of all columns.
        text: bounds of text and binary.
        fixed, varying: bounds of decimals in byte arrays of fixed and of varying length.
        counts: NULL counts, all of them.
        some: NULL counts above zero.
        coded: top-level columns with text that was a dictionary in the writer's memory; neither
            bounds nor counts of text in them are believed. None: of any column.
    """

    bounds: bool = False
    text: bool = False
    fixed: bool = False
    varying: bool = True
    counts: bool = False
    some: bool = False
    coded: frozenset[str] | None = frozenset()

    def doubts_bounds(self, stored: PhysicalType, column: str) -> bool:
        """Whether bounds of a leaf below a top-level column are not believed."""
        if self.bounds:
            return True
        if stored.logical == "decimal":
            return self._of_decimals(stored.physical)
        return stored.holds == "bytes" and (self.text or self._is_coded(column))

    def doubts_count(self, stored: PhysicalType, column: str, nulls: int) -> bool:
        """Whether a NULL count is not believed."""
        if self.counts or (self.some and nulls):
            return True
        return stored.physical == "BYTE_ARRAY" and self._is_coded(column)

    def _of_decimals(self, physical: str) -> bool:
        if physical == "FIXED_LEN_BYTE_ARRAY":
            return self.fixed
        return physical == "BYTE_ARRAY" and self.varying

    def _is_coded(self, column: str) -> bool:
        return self.coded is None or column in self.coded


def doubts_about(created_by: bytes, keys: dict[bytes, bytes]) -> Doubts | None:
    """What to doubt in a footer; None: nothing.

    Args:
        created_by: the writer's name.
        keys: the footer's key-value metadata.
    """
    name, version = _writer(created_by)
    match name:
        case "parquet-mr":
            return None  # of those before 1.10, bounds of bytes are not used at all
        case "parquet-cpp":  # up to Arrow 2
            return Doubts(fixed=True, coded=_coded(keys.get(_ARROW_SCHEMA, b"")))
        case "parquet-cpp-arrow":
            if version >= (12, 0):
                return None
            wrong = version < (4, 0)
            coded = _coded(keys.get(_ARROW_SCHEMA, b""))
            return Doubts(fixed=wrong, varying=wrong, coded=coded)
        case "parquet-rs":
            return Doubts(text=version < (5, 2))
    if created_by.startswith(b"Polars"):
        return Doubts(fixed=True, some=True)
    if created_by.startswith(b"Arrow2"):
        return Doubts(bounds=True, counts=True)
    if created_by.startswith(b"hyparquet"):
        return Doubts(bounds=True)
    return Doubts()


@lru_cache(64)
def _writer(created_by: bytes) -> tuple[str, tuple[int, int]]:
    found = _NAMED.match(created_by)
    if found is None:
        return "", (0, 0)
    name = found["name"].decode("utf-8", "replace")
    return name, (int(found["major"]), int(found["minor"]))


@lru_cache(64)
def _coded(spelled: bytes) -> frozenset[str] | None:
    """The top-level columns with dictionaries, by the Arrow schema that the writer left.

    Without a schema it may be any: Arrow for Python leaves one, but Arrow for C++ only if asked.
    """
    if not spelled or len(spelled) > _MOST_CODED:
        return None
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(spelled)))
        return frozenset(field.name for field in schema if _has_dictionary(field.type))
    except (pa.ArrowException, OSError, ValueError, TypeError, AttributeError):
        return None


def _has_dictionary(held: pa.DataType) -> bool:
    if pa.types.is_dictionary(held):
        return True
    if isinstance(held, pa.BaseExtensionType):
        return _has_dictionary(held.storage_type)
    return any(_has_dictionary(held.field(i).type) for i in range(held.num_fields))
