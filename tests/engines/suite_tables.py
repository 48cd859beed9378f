"""Tables for Trino's own suites: TPC-H tiny in two layouts, and tables that a suite asks for.

``one_file``: a table is one file, all of it indexed. ``lake``: partitioned, of many files; when the
index was built there were half of them, and one of those was rewritten since.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    Field,
    Kind,
    Type,
    parse_hive_type,
    varchar,
)
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, Partition, TableName
from bridge.table.partition import partition_name

ONE_FILE, LAKE = "one_file", "lake"
FILES_PER_PARTITION = 4

# Columns as Trino's tpch connector gives them, in the order of the generator's.
TPCH: Mapping[str, tuple[Column, ...]] = {
    name: tuple(Column(column, kind) for column, kind in columns)
    for name, columns in {
        "customer": (
            ("custkey", BIGINT),
            ("name", varchar(25)),
            ("address", varchar(40)),
            ("nationkey", BIGINT),
            ("phone", varchar(15)),
            ("acctbal", DOUBLE),
            ("mktsegment", varchar(10)),
            ("comment", varchar(117)),
        ),
        "lineitem": (
            ("orderkey", BIGINT),
            ("partkey", BIGINT),
            ("suppkey", BIGINT),
            ("linenumber", INTEGER),
            ("quantity", DOUBLE),
            ("extendedprice", DOUBLE),
            ("discount", DOUBLE),
            ("tax", DOUBLE),
            ("returnflag", varchar(1)),
            ("linestatus", varchar(1)),
            ("shipdate", DATE),
            ("commitdate", DATE),
            ("receiptdate", DATE),
            ("shipinstruct", varchar(25)),
            ("shipmode", varchar(10)),
            ("comment", varchar(44)),
        ),
        "nation": (
            ("nationkey", BIGINT),
            ("name", varchar(25)),
            ("regionkey", BIGINT),
            ("comment", varchar(152)),
        ),
        "orders": (
            ("orderkey", BIGINT),
            ("custkey", BIGINT),
            ("orderstatus", varchar(1)),
            ("totalprice", DOUBLE),
            ("orderdate", DATE),
            ("orderpriority", varchar(15)),
            ("clerk", varchar(15)),
            ("shippriority", INTEGER),
            ("comment", varchar(79)),
        ),
        "part": (
            ("partkey", BIGINT),
            ("name", varchar(55)),
            ("mfgr", varchar(25)),
            ("brand", varchar(10)),
            ("type", varchar(25)),
            ("size", INTEGER),
            ("container", varchar(10)),
            ("retailprice", DOUBLE),
            ("comment", varchar(23)),
        ),
        "partsupp": (
            ("partkey", BIGINT),
            ("suppkey", BIGINT),
            ("availqty", INTEGER),
            ("supplycost", DOUBLE),
            ("comment", varchar(199)),
        ),
        "region": (
            ("regionkey", BIGINT),
            ("name", varchar(25)),
            ("comment", varchar(152)),
        ),
        "supplier": (
            ("suppkey", BIGINT),
            ("name", varchar(25)),
            ("address", varchar(40)),
            ("nationkey", BIGINT),
            ("phone", varchar(15)),
            ("acctbal", DOUBLE),
            ("comment", varchar(101)),
        ),
    }.items()
}
# Partition keys in the lake; Hive puts them last, and so does LakeTables.java in what is expected.
LAKE_KEYS = {
    "customer": "nationkey",
    "lineitem": "shipmode",
    "nation": "regionkey",
    "orders": "orderstatus",
    "part": "brand",
}
_SIMPLE = {
    Kind.BIGINT: pa.int64(),
    Kind.INTEGER: pa.int32(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.STRING: pa.string(),
    Kind.VARCHAR: pa.string(),
}


@dataclass(frozen=True, slots=True)
class SuiteTables:
    """Writes tables below a directory, registers them in a metastore and indexes them."""

    root: Path
    metastore_uri: str
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def write_tpch(self) -> None:
        """All tables of TPC-H tiny, in both layouts."""
        with MetastoreClient(self.metastore_uri) as client:
            client.create_database(ONE_FILE)
            client.create_database(LAKE)
        generated = self.root / "generated"
        program = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run(
            [program, "parquet", "-s", "0.01", f"--output-dir={generated}"],
            check=True,
            capture_output=True,
        )
        for name, columns in TPCH.items():
            read = pq.read_table(generated / f"{name}.parquet")
            rows = pa.table(
                {c.name: _cast(cells, c.type) for c, cells in zip(columns, read, strict=True)}
            )
            self.make(TableName(ONE_FILE, name), columns, (), rows)
            keys = (LAKE_KEYS[name],) if name in LAKE_KEYS else ()
            self.make(TableName(LAKE, name), columns, keys, rows)

    def make(
        self, name: TableName, columns: Sequence[Column], keys: Sequence[str], rows: pa.Table
    ) -> None:
        """Makes one table anew, in the layout that its schema's name says."""
        directory = self.root / name.schema / f"{name.table}-{time.time_ns()}"
        table = CatalogTable(
            name,
            tuple(c for c in columns if c.name not in keys),
            tuple(c for key in keys for c in columns if c.name == key),
            f"file://{directory}",
        )
        self.drop(name)
        with self._lock, MetastoreClient(self.metastore_uri) as client:
            pieces = list(_pieces(directory, keys, rows))
            # One partition in three was empty when the index was built.
            late = [p for i, (p, _) in enumerate(pieces) if i % 3 == 0 and len(pieces) > 2]
            half = name.schema == LAKE
            newer: list[tuple[Path, pa.Table]] = []
            for partition, content in pieces:
                for i, (path, part) in enumerate(_files(partition, content, many=half)):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    if half and (i % 2 or partition in late):
                        newer.append((path, part))
                    else:
                        _write(path, part)
            register_table(client, name, table, [p for p, _ in pieces])
            self._index(name)
            if not half:
                return
            for path, part in newer:
                _write(path, part)
            first = next(path for p, _ in pieces if p not in late for path in _parquet(p))
            _write(first, pq.read_table(first, partitioning=None), compression="zstd")

    def _index(self, name: TableName) -> None:
        # Entries of files written within the clock's grain would not be trusted (correctness 19).
        past = time.time() - 60
        for file in (self.root / name.schema).rglob("*.parquet"):
            os.utime(file, (past, past))
        report = index_table(
            Config({"metastore.uri": Setting(self.metastore_uri, "test")}),
            str(name),
            local=True,
            progress=lambda done, total: None,
            say=lambda text: None,
        )
        assert report["files"] and not report["failed"], report

    def drop(self, name: TableName) -> None:
        with self._lock, MetastoreClient(self.metastore_uri) as client:
            if name.table in client.get_all_tables(name.schema):
                client.drop_table(name.schema, name.table)

    def answer(self, method: str, body: Mapping[str, Any]) -> None:
        """Does what the suites' TableMaker.java asks: POST makes a table, DELETE drops one."""
        name = TableName(body["schema"], body["table"])
        if method == "DELETE":
            self.drop(name)
            return
        columns = [Column(c["name"], parse_hive_type(c["type"])) for c in body["columns"]]
        rows = pa.table(
            {
                c.name: pa.array(
                    [_value(row[i], c.type) for row in body["rows"]], arrow_type(c.type)
                )
                for i, c in enumerate(columns)
            }
        )
        self.make(name, columns, body["keys"], rows)


@contextmanager
def served(tables: SuiteTables) -> Iterator[str]:
    """Listens on loopback for what suites ask of ``tables``; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                tables.answer(self.command, json.loads(body))
                status, text = 200, ""
            except Exception as e:
                status, text = 500, f"{type(e).__name__}: {e}"
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_DELETE(self) -> None:
            self.do_POST()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def arrow_type(kind: Type) -> pa.DataType:
    """How a column of this type is written."""
    match kind.kind:
        case Kind.ARRAY:
            return pa.list_(arrow_type(kind.fields[0].type))
        case Kind.MAP:
            return pa.map_(*(arrow_type(f.type) for f in kind.fields))
        case Kind.STRUCT:
            return pa.struct([(f.name, arrow_type(f.type)) for f in kind.fields])
    return _SIMPLE[kind.kind]


def _cast(cells: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray:
    if pa.types.is_decimal(cells.type):  # by text: Arrow's own cast is off in the last digit
        cells = cells.cast(pa.string())
    return cells.cast(arrow_type(kind))


def _value(value: Any, kind: Type) -> Any:
    """A value of JSON as Arrow takes it: rows are lists there."""
    if value is None:
        return None
    fields: tuple[Field, ...] = kind.fields
    match kind.kind:
        case Kind.STRUCT:
            return {f.name: _value(v, f.type) for f, v in zip(fields, value, strict=True)}
        case Kind.ARRAY:
            return [_value(v, fields[0].type) for v in value]
        case Kind.MAP:
            return [(_value(k, fields[0].type), _value(v, fields[1].type)) for k, v in value]
    return value


def _pieces(
    directory: Path, keys: Sequence[str], rows: pa.Table
) -> Iterator[tuple[Partition, pa.Table]]:
    """The table's partitions with their rows; of one without keys, all rows."""
    if not keys:
        yield Partition("", (), f"file://{directory}"), rows
        return
    distinct = rows.select(list(keys)).group_by(list(keys)).aggregate([])
    for values in distinct.sort_by([(key, "ascending") for key in keys]).to_pylist():
        chosen = rows
        for key in keys:
            chosen = chosen.filter(pc.equal(chosen[key], values[key]))
        texts = tuple(str(values[key]) for key in keys)
        name = partition_name(list(keys), list(texts))
        yield Partition(name, texts, f"file://{directory / name}"), chosen.drop_columns(list(keys))


def _files(partition: Partition, rows: pa.Table, *, many: bool) -> Iterator[tuple[Path, pa.Table]]:
    directory = _directory(partition)
    count = FILES_PER_PARTITION if many else 1
    size = max(1, -(-rows.num_rows // count))
    for i, start in enumerate(range(0, rows.num_rows, size)):
        yield directory / f"{i}.parquet", rows.slice(start, size)


def _directory(partition: Partition) -> Path:
    return Path(partition.location.removeprefix("file://"))


def _parquet(partition: Partition) -> list[Path]:
    return sorted(_directory(partition).glob("*.parquet"))


def _write(path: Path, rows: pa.Table, *, compression: str = "snappy") -> None:
    pq.write_table(rows, path, compression=compression, row_group_size=5_000)
