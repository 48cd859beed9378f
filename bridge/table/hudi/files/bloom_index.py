"""Base files without a key, as Hudi itself tells: ``bloom_filters`` of a table's metadata table.

An entry is about one file by its whole name, which holds the instant that wrote it. A base file
that is a whole slice does not hold a key if its filter lacks it, and the table's version and the
form of the entry are those that `TESTED` names. Logs may hold new keys. A file without an entry is
unknown, and so is one whose entry is damaged or of another type. Which column is the key,
`record_index` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bridge.expression.statistics import Mask
from bridge.formats.hudi.bloom_filters import BloomFilter
from bridge.formats.hudi.index_keys import bloom_filter_key
from bridge.kernel.errors import LimitExceeded
from bridge.table.hudi.files.base_files import EqualityIndex, Values
from bridge.table.hudi.files.column_bounds import NOT_PARTITIONED
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.files.metadata_entries import read_entries, read_record
from bridge.table.hudi.files.record_index import key_columns

PARTITION = "bloom_filters"
_FIELDS = frozenset({"type", "timestamp", "bloomFilter", "isDeleted"})
TESTED = frozenset({(6, _FIELDS), (8, _FIELDS), (9, _FIELDS)})
"""Table versions and fields of an entry, of which ``tests/fixtures/hudi`` has tables."""
_FILTER = "DYNAMIC_V0"
_TYPE = 4
_MOST_BYTES = 64 << 20
"""Of all filters, which are held. One has 320 KiB where the writer has Hudi's defaults."""


@dataclass(frozen=True, slots=True)
class _Filters:
    """Filters of files, by their place among ``count`` slices."""

    filters: Mapping[int, BloomFilter]
    count: int

    def never(self, values: list[bytes]) -> Mask:
        found = np.zeros(self.count, np.bool_)
        for place, filter in self.filters.items():
            found[place] = all(filter.lacks(value) for value in values)
        return found


class BloomIndex(EqualityIndex):
    """Base files that hold no row of a key; safe for threads.

    Attributes:
        source: for reports.
    """

    source = PARTITION

    def __init__(
        self, view: FileSystemView, schema: str, slices: FileSlices, pool: Executor
    ) -> None:
        super().__init__(view, slices, pool, key_columns(view, schema))

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
