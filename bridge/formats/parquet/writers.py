"""What is believed of what a Parquet file's writer states: one table, and nowhere else.

The law: what a writer is known to get wrong is unknown, in every version that may do so. A reader
cannot see such an error: wrong bounds are mostly in order, and a wrong count is a number. Bounds in
a defined order are believed of every writer but those. NULL counts, row counts, bounds of booleans,
and that a bound is a value of the file, are believed of the writers on the list alone, from the
lowest version that was tested; of any other as far as files that were read have shown them.

An index keeps the writer's name and the facts as stated. The table is applied to them when a
generation is loaded (`bridge.index.reading.trust`), so that a new rule needs no new build.

Decimals in byte arrays are big-endian and signed. Many writers have compared them as plain bytes.
Where all values have the same width, bounds by unsigned bytes contradict each other or are right.
Where widths vary, or bytes were compared as signed, or bounds of pages were merged by another order
than those of values, they may be wrong and in order.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

import pyarrow as pa

from bridge.formats.physical_column import PhysicalType

_ARROW_SCHEMA = b"ARROW:schema"
_NAMED = re.compile(r"(?P<name>.*?) version v?(?P<version>\d{1,9}(\.\d{1,9}){0,2})")
_VERSION = re.compile(r"\d\.\d")
_MOST_CODED = 1 << 20
"""Bytes of an Arrow schema that is read. In files with longer ones any text may be coded."""
_LONGEST = 200
"""Characters of a writer's name that are kept."""
WriterVersion = tuple[int, ...]

LISTED = MappingProxyType(
    {
        "parquet-mr": (1, 8, 1),
        "parquet-mr-trino": (476,),
        "parquet-cpp-arrow": (10, 0, 1),
        "parquet-rs": (46, 0, 0),
        "DuckDB": (1, 2, 0),
        "fastparquet-python": (2023, 10, 1),
    }
)
"""Writers whose counts, exactness and booleans are believed, from the lowest version of which the
files in ``tests/fixtures/writers`` were checked against their rows."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """What of a footer is not believed.

    Attributes:
        bounds: bounds of all columns.
        text: bounds of text and binary.
        booleans: bounds of booleans.
        fixed, varying: bounds of decimals in byte arrays of fixed and of varying length.
        exact: that a bound is a value of the file.
        counts: NULL counts, all of them.
        some: NULL counts above zero.
        rows: the number of rows, where an answer is made of it alone.
        coded: top-level columns with text that was a dictionary in the writer's memory; neither
            bounds nor counts of text in them are believed. None: of any column.
        provable: files that were read may show that more is believed: it is off the list, and its
            name says which version it is. See `bridge.index.building.evidence`.
    """

    bounds: bool = False
    text: bool = False
    booleans: bool = False
    fixed: bool = False
    varying: bool = False
    exact: bool = False
    counts: bool = False
    some: bool = False
    rows: bool = False
    coded: tuple[str, ...] | None = ()
    provable: bool = False

    def doubts_bounds(self, stored: PhysicalType, column: str) -> bool:
        """Whether bounds of a leaf below a top-level column are not believed."""
        if self.bounds or (self.booleans and stored.logical == "bool"):
            return True
        if stored.logical == "decimal":
            return self._of_decimals(stored.physical)
        return stored.holds == "bytes" and (self.text or self._is_coded(column))

    def doubts_counts(self, stored: PhysicalType, column: str) -> bool:
        """Whether no NULL count of a leaf is believed, not even zero."""
        return self.counts or self.is_coded(stored, column)

    def is_coded(self, stored: PhysicalType, column: str) -> bool:
        """Whether a leaf may be text that was a dictionary, below a column in which it may be."""
        return stored.physical == "BYTE_ARRAY" and self._is_coded(column)

    def words(self) -> list[str]:
        """What is not believed of any of its files, in plain words."""
        told = {
            "bounds": self.bounds,
            "bounds of text": self.text and not self.bounds,
            "bounds of booleans": self.booleans and not self.bounds,
            "bounds of decimals in bytes": self.fixed and not self.bounds,
            "text that was a dictionary": self.coded != (),
            "NULL counts": self.counts,
            "NULL counts above zero": self.some and not self.counts,
            "numbers of rows": self.rows,
            "that bounds are values": self.exact,
        }
        return [word for word, doubted in told.items() if doubted]

    def _of_decimals(self, physical: str) -> bool:
        if physical == "FIXED_LEN_BYTE_ARRAY":
            return self.fixed
        return physical == "BYTE_ARRAY" and self.varying

    def _is_coded(self, column: str) -> bool:
        return self.coded is None or column in self.coded


NO_DOUBTS = Doubts()
_UNLISTED = Doubts(booleans=True, varying=True, exact=True, counts=True, rows=True)


def writer_of(created_by: bytes, keys: dict[bytes, bytes]) -> str:
    """What an index keeps of a footer's writer: its name, and what its mistakes depend on.

    Args:
        keys: the footer's key-value metadata.
    """
    found = created_by.decode("utf-8", "replace").replace("\n", " ")[:_LONGEST]
    name, version = _named(found)
    if name == "parquet-cpp" or (name == "parquet-cpp-arrow" and version < (12,)):
        coded = _coded(keys.get(_ARROW_SCHEMA, b""))
        if coded is None or coded:
            found += "\n" + json.dumps(None if coded is None else sorted(coded))
    return found


@lru_cache(1024)
def doubts_about(writer: str | None) -> Doubts:
    """What to doubt in what a writer states.

    Args:
        writer: as `writer_of` spells it; empty: the file names none; None: nothing was taken from
            a footer.
    """
    if writer is None:
        return NO_DOUBTS
    created_by, _, spelled = writer.partition("\n")
    name, version = _named(created_by)
    versioned = _VERSION.search(created_by) is not None
    found = replace(_UNLISTED, coded=_parsed(spelled), provable=versioned)
    if name in LISTED and version >= LISTED[name]:
        found = Doubts(coded=found.coded)
    match name:
        case "parquet-cpp":  # up to Arrow 2
            return replace(found, fixed=True)
        case "parquet-cpp-arrow":
            wrong = version < (4,)
            return replace(found, fixed=wrong, varying=wrong)
        case "parquet-mr":  # of those before 1.10, bounds of bytes are not used at all
            return replace(found, varying=False)
        case "parquet-rs":
            return replace(found, text=version < (5, 2), varying=True)
        case "parquet-mr-trino":
            return found
    if created_by.startswith("Polars"):  # NULL counts are those of pages, added up too often
        return replace(found, fixed=True, counts=False, some=True)
    if created_by.startswith("Arrow2"):
        return replace(found, bounds=True)
    if created_by.startswith("hyparquet"):
        return replace(found, bounds=True)
    return replace(found, varying=True)


def _named(created_by: str) -> tuple[str, WriterVersion]:
    found = _NAMED.match(created_by)
    if found is None:
        return "", ()
    return found["name"], tuple(map(int, found["version"].split(".")))


def _parsed(spelled: str) -> tuple[str, ...] | None:
    coded = json.loads(spelled) if spelled else []
    return None if coded is None else tuple(coded)


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
