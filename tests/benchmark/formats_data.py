"""lineitem as ORC, Avro, CSV and JSON files, made once and kept in the user's cache directory."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc

from tests.benchmark.data import lineitem, root

FORMATS = ("orc", "avro", "csv", "json")
_COPIES = {"json": 1, "orc": 12}
_AVRO = {pa.int64(): "long", pa.int32(): "int", pa.float64(): "double", pa.string(): "string"}
_AVRO_DATE = {"type": "int", "logicalType": "date"}


def small(format: str, count: int) -> Path:
    """3 million rows, sorted by ship date, in ``count`` files."""
    return _made(format, f"small-{count}", lambda: _plain(lineitem(0.5)), count)


def large(format: str) -> Path:
    """8 files of at least 1 GB in all: 9 million rows, of JSON a third of it, of ORC four times."""
    copies = _COPIES.get(format, 3)
    return _made(format, "large", lambda: _plain(lineitem(0.5)), 8, copies)


def size(directory: Path) -> int:
    """Bytes of the data files."""
    return sum(file.stat().st_size for file in directory.glob("part-*"))


def columns(format: str) -> list[tuple[str, str]]:
    """Names and Hive types of a table of this format; Hive's CSV knows only text."""
    types = {pa.int64(): "bigint", pa.int32(): "int", pa.float64(): "double", pa.date32(): "date"}
    return [
        (field.name, "string" if format == "csv" else types.get(field.type, "string"))
        for field in _plain(lineitem(0.5).slice(0, 1)).schema
    ]


def _plain(table: pa.Table) -> pa.Table:
    """Decimals as doubles, so that each format has a type for them."""
    fields = [
        field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _made(
    format: str, name: str, rows: Callable[[], pa.Table], count: int, copies: int = 1
) -> Path:
    directory = root() / f"lineitem-{format}-{name}"
    if (directory / "_DONE").exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    table = pa.concat_tables([rows().combine_chunks()] * copies)
    edges = np.linspace(0, table.num_rows, count + 1).astype(int).tolist()
    past = time.time() - 3600
    for i in range(count):
        file = directory / f"part-{i:06d}.{format}"
        _WRITERS[format](table.slice(edges[i], edges[i + 1] - edges[i]), file)
        os.utime(file, (past, past))
    (directory / "_DONE").touch()
    return directory


def _orc(rows: pa.Table, file: Path) -> None:
    pyarrow.orc.write_table(rows, file, compression="zlib")


def _csv(rows: pa.Table, file: Path) -> None:
    pyarrow.csv.write_csv(rows, file, pyarrow.csv.WriteOptions(include_header=False))


def _json(rows: pa.Table, file: Path) -> None:
    duckdb.connect().from_arrow(rows).query("rows", f"COPY rows TO '{file}' (FORMAT json)")


def _avro(rows: pa.Table, file: Path) -> None:
    fields = [{"name": f.name, "type": _AVRO.get(f.type, _AVRO_DATE)} for f in rows.schema]
    schema = {"type": "record", "name": "lineitem", "fields": fields}
    with file.open("wb") as out:
        records = (row for batch in rows.to_batches(8_192) for row in batch.to_pylist())
        fastavro.writer(out, schema, records, codec="deflate", sync_interval=64 * 1024)


_WRITERS = {"orc": _orc, "avro": _avro, "csv": _csv, "json": _json}
