"""Base files without a key, as Hudi itself tells: ``bloom_filters`` of a table's metadata table.

An entry is about one file by its whole name, which holds the instant that wrote it. A base file
that is a whole slice does not hold a key if its filter lacks it, and the table's version and the
form of the entry are those that `TESTED` names. Logs may hold new keys. A file without an entry is
unknown, and so is one whose entry is damaged or of another type. Which column is the key,
`record_index.key_columns` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bridge.expression.statistics import Mask
from bridge.formats.hudi.bloom_filters import BloomFilter, bits_of
from bridge.formats.hudi.index_keys import bloom_filter_key
from bridge.kernel.errors import LimitExceeded
from bridge.table.hudi.files.base_files import EqualityIndex, Values
from bridge.table.hudi.files.column_bounds import NOT_PARTITIONED
from bridge.table.hudi.files.metadata_entries import read_entries, read_record
from bridge.table.slices import Int64Array

PARTITION = "bloom_filters"
_FIELDS = frozenset({"type", "timestamp", "bloomFilter", "isDeleted"})
TESTED = frozenset({(6, _FIELDS), (8, _FIELDS), (9, _FIELDS)})
"""Table versions and fields of an entry, of which ``tests/fixtures/hudi`` has tables."""
_FILTER = "DYNAMIC_V0"
_TYPE = 4
_MOST_BYTES = 64 << 20
"""Of all filters, which are held. One has 320 KiB where the writer has Hudi's defaults."""


_MOST_VALUES = 200
"""Of one IN, some 0.4 ms each where there are 8,000 files."""
_FIRST = 3
"""Bits of a value that are looked up in all rows; few have them, and are asked for the others."""
Rows = np.ndarray[Any, np.dtype[np.uint8]]


class _Filters:
    """Filters of files, by their place among ``count`` slices."""

    def __init__(self, filters: Mapping[int, BloomFilter], count: int) -> None:
        self._count = count
        forms: dict[tuple[int, int], list[int]] = {}
        for place, filter in filters.items():
            forms.setdefault((filter.hashes, filter.size), []).append(place)
        self._forms = {
            form: (
                np.repeat(places, [len(filters[place].rows) for place in places]),
                np.stack([np.frombuffer(r, np.uint8) for p in places for r in filters[p].rows]),
            )
            for form, places in forms.items()
        }

    def never(self, values: list[bytes]) -> Mask:
        found = np.zeros(self._count, np.bool_)
        if len(values) > _MOST_VALUES:
            return found
        for (hashes, size), (places, rows) in self._forms.items():
            found[places] = True
            for value in values:
                bits = np.array(bits_of(value, hashes, size), np.int64)
                held = np.flatnonzero(_have(rows, bits[:_FIRST]))
                held = held[_have(rows[held], bits[_FIRST:])]
                found[places[held]] = False
        return found


def _have(rows: Rows, bits: Int64Array) -> Mask:
    """The rows that have all of the bits."""
    found: Any = (rows[:, bits >> 3] >> (bits & 7).astype(np.uint8) & 1).all(axis=1)
    return np.asarray(found, np.bool_)


class BloomIndex(EqualityIndex):
    """Base files that hold no row of a key; safe for threads.

    Attributes:
        source: for reports.
    """

    source = PARTITION

    def _read(self, column: str) -> Values | None:
        slices = self._slices
        places = np.flatnonzero(slices.has_base & (slices.log_counts == 0))
        files = slices.base_paths.take(pa.array(places)).to_pylist()
        keys = {
            bloom_filter_key(
                slices.partitions[slices.partition[place]] or NOT_PARTITIONED,
                path.rpartition("/")[2],
            ): place
            for place, path in zip(places.tolist(), files, strict=True)
        }
        found: dict[int, BloomFilter] = {}
        size = 0
        for entries in read_entries(self._view, PARTITION):
            for key, value, schema in entries:
                if key not in keys:
                    continue
                found.pop(keys[key], None)
                filter = None if value is None else self._filter(value, schema)
                if filter is None:
                    continue
                found[keys[key]] = filter
                size += sum(map(len, filter.rows))
                if size > _MOST_BYTES:
                    raise LimitExceeded(
                        f"{PARTITION} of {self._view.config.base} has filters of more than "
                        f"{_MOST_BYTES:,} bytes",
                        "build an index: skipbridge index build --bloom for the key's column",
                    )
        return _Filters(found, len(slices)) if found else None

    def _filter(self, value: bytes, schema: str) -> BloomFilter | None:
        entry = read_record(schema, value, _TYPE)["BloomFilterMetadata"]
        if entry is None or (self._view.config.version, frozenset(entry)) not in TESTED:
            return None
        if entry["isDeleted"] or entry["type"] != _FILTER:
            return None
        try:
            return BloomFilter.parse(entry["bloomFilter"])
        except ValueError:
            return None
