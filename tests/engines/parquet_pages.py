"""Parquet files of one schema in every codec, page version, encoding and size, for the readers.

What a reader does with small files in memory (several behind one another, chunks rewritten) must
not show in its rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.kernel.types import BIGINT, INTEGER, STRING, parse_hive_type
from bridge.table.model import Column

COLUMNS = (
    Column("id", BIGINT),
    Column("f", INTEGER),
    Column("c", STRING),
    Column("p", STRING),
    Column("n", BIGINT),
    Column("l", parse_hive_type("array<bigint>")),
)
CODECS = ("none", "snappy", "gzip", "zstd")
REFUSED = ("lz4", "brotli")
"""Codecs that Trino's reader does not know; pyarrow's lz4 is LZ4_RAW."""
SIZES = {"tiny": 40, "small": 3_000, "medium": 12_000}
ENCODINGS: dict[str, dict[str, Any]] = {
    "dictionary": {"use_dictionary": True},
    "plain": {"use_dictionary": False},
    "delta": {
        "use_dictionary": False,
        "column_encoding": {
            "id": "DELTA_BINARY_PACKED",
            "n": "DELTA_BINARY_PACKED",
            "c": "DELTA_LENGTH_BYTE_ARRAY",
            "p": "DELTA_BYTE_ARRAY",
        },
    },
}


def rows(number: int, count: int) -> pa.Table:
    """Rows of file ``number``: ids of all files overlap, so that none is skipped as a whole."""
    ids = range(count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "f": pa.array([number] * count, pa.int32()),
            "c": pa.array([f"text-{i * 3 // count}" for i in ids]),
            "p": pa.array([f"{(i * 2_654_435_761 + number) % 2**32:032x}" for i in ids]),
            "n": pa.array([None if i % 7 == 0 else i * 3 for i in ids], pa.int64()),
            "l": pa.array([[i] * (i % 3) for i in ids], pa.list_(pa.int64())),
        }
    )


def variants() -> Iterator[tuple[str, dict[str, Any], int]]:
    """Name, options of pyarrow's writer and number of rows of each file."""
    some = itertools.product(CODECS, ("1.0", "2.0"), (True, False), ENCODINGS, SIZES)
    for codec, page, index, encoding, size in some:
        count = SIZES[size]
        yield (
            f"{codec}-v{page[0]}-{'indexed' if index else 'bare'}-{encoding}-{size}",
            {
                "compression": codec,
                "data_page_version": page,
                "write_page_index": index,
                "write_page_checksum": index,
                "data_page_size": 2048,
                "write_batch_size": 64,
                "row_group_size": count if encoding == "plain" else count // 2 + 1,
                **ENCODINGS[encoding],
            },
            count,
        )


def write_all(directory: Path) -> pa.Table:
    """Writes every variant; returns all rows."""
    written = []
    for number, (name, options, count) in enumerate(variants()):
        written.append(rows(number, count))
        pq.write_table(written[-1], directory / f"{name}.parquet", **options)
    return pa.concat_tables(written)
