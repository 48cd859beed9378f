"""Typed TSV: text whose first line names the columns and their types.

    #tsv	id:bigint	name:string	day:date
    1	ann	2024-01-31
    2	\\N	2024-02-01

NULL is ``\\N``. Values hold no tab and no line break.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import csv

from bridge.formats.file_format import FileFormat
from bridge.formats.leaf_scan import LeafScan
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.formats.rows import places_of
from bridge.formats.statistics import FileStatistics, LeafStatistics
from bridge.kernel.errors import FileCorrupt
from bridge.storage.port import Storage

MARK = b"#tsv\t"
TYPES = {
    "bigint": (pa.int64(), PhysicalType("INT64", "int", 64)),
    "double": (pa.float64(), PhysicalType("DOUBLE", "double")),
    "string": (pa.string(), PhysicalType("BYTE_ARRAY", "string")),
    "date": (pa.date32(), PhysicalType("INT32", "date")),
}


def read_columns(head: bytes, uri: str) -> list[tuple[str, str]]:
    """Names and types of the columns, from the first line."""
    try:
        first = head.removeprefix(MARK).decode().rstrip("\n").split("\t")
        columns = [(name, type) for name, _, type in (c.rpartition(":") for c in first)]
    except UnicodeDecodeError:
        columns = []
    if not head.startswith(MARK) or not columns or any(t not in TYPES for _, t in columns):
        raise FileCorrupt(f"{uri}: its first line is {head[:80]!r}", "rewrite the file")
    return columns


def read_schema(storage: Storage, uri: str, size: int) -> pa.Schema:
    head = storage.read(uri).partition(b"\n")[0]
    return pa.schema([(name, TYPES[type][0]) for name, type in read_columns(head, uri)])


def read_table(raw: bytes, uri: str) -> pa.Table:
    head, _, body = raw.partition(b"\n")
    types = {name: TYPES[type][0] for name, type in read_columns(head, uri)}
    try:
        return csv.read_csv(
            pa.BufferReader(body or b"\n"),
            read_options=csv.ReadOptions(column_names=list(types)),
            parse_options=csv.ParseOptions(
                delimiter="\t", quote_char=False, ignore_empty_lines=not body
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                null_values=["\\N"],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        raise FileCorrupt(f"{uri}: {error}", "rewrite the file") from error


def read_rows(
    source: Any, uri: str, wanted: Sequence[str], table: Sequence[str]
) -> Iterator[tuple[Mapping[str, pa.Array], int]]:
    for batch in read_table(source.read(), uri).to_batches():
        places = places_of(batch.schema.names, wanted, uri)
        yield {name: batch.column(place) for name, place in places.items()}, batch.num_rows


def read_statistics(storage: Storage, uri: str, size: int) -> FileStatistics:
    raw = storage.read(uri)
    columns = read_columns(raw.partition(b"\n")[0], uri)
    rows = read_table(raw, uri)
    leaves = []
    for number, (name, type) in enumerate(columns):
        column = PhysicalColumn((name,), TYPES[type][1])
        nans = None if type == "double" else 0
        leaf = LeafStatistics(column.key(), column, None, None, True, None, nans, 0)
        scan = LeafScan(number, leaf)
        scan.update({number: rows[name]})
        scan.finish()
        leaves.append(leaf)
    return FileStatistics(rows.num_rows, None, leaves)


FORMAT = FileFormat(
    name="typed_tsv",
    spelled="typed TSV",
    begins=(MARK,),
    recognise=lambda head, tail: head.startswith(MARK) and tail.endswith(b"\n"),
    read_schema=read_schema,
    read_rows=read_rows,
    collect=lambda entry: entry.from_statistics(read_statistics),
)
