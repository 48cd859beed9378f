"""What all formats besides Parquet have in common in Trino, beside its own hive connector: dynamic
filters, LIMIT, compressed files with headers, files that end early, and queries that are cancelled.
"""

from __future__ import annotations

import bz2
import gzip
import json
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pytest
import trino

from bridge.servers.process import recorded_pid
from tests.engines.stack import Stack, register
from tests.engines.test_trino_orc import columns, metric, theirs
from tests.engines.text_cases import hadoop_blocks
from tests.engines.text_tables import CSV, JSON, TEXT, TextTables

pytestmark = pytest.mark.full

FILES, ROWS = 40, 300
TYPED = "id bigint; name string; price double"
FORMATS = ("orc", "avro", "csv", "json", "text")
WAITING = {"dynamic_filter_wait": "20s"}


def row(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"name {number:09d}", "price": number / 4}


def _avro(path: Path, rows: list[dict[str, Any]]) -> None:
    types = {"id": "long", "name": "string", "price": "double"}
    fields = [{"name": name, "type": ["null", type]} for name, type in types.items()]
    with path.open("wb") as file:
        schema = {"type": "record", "name": "row", "fields": fields}
        fastavro.writer(file, schema, rows, sync_interval=4_000)


def _joined(separator: str) -> Callable[[Path, list[dict[str, Any]]], None]:
    def write(path: Path, rows: list[dict[str, Any]]) -> None:
        path.write_text("".join(separator.join(map(str, r.values())) + "\n" for r in rows))

    return write


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], None]] = {
    "orc": lambda path, rows: po.write_table(pa.Table.from_pylist(rows), path),
    "avro": _avro,
    "csv": _joined(","),
    "json": lambda path, rows: (
        path.write_text("".join(json.dumps(r) + "\n" for r in rows)) and None
    ),
    "text": _joined("\x01"),
}


@dataclass(frozen=True, slots=True)
class Filled:
    """Tables laws.filled_FORMAT with an index: small files in order, and a large one behind."""

    stack: Stack
    root: Path
    rows: int


@pytest.fixture(scope="module")
def filled(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    root = tmp_path_factory.mktemp("filled")
    small, large = FILES * ROWS, 120_000
    for format in FORMATS:
        directory = root / format
        directory.mkdir()
        for number in range(FILES):
            rows = [row(i) for i in range(number * ROWS, (number + 1) * ROWS)]
            WRITERS[format](directory / f"f{number:03d}.{format}", rows)
        rows = [row(i) for i in range(small, small + large)]
        WRITERS[format](directory / f"large.{format}", rows)
        types = re.sub("bigint|double", "string", TYPED) if format == "csv" else TYPED
        register(stack, f"filled_{format}", directory, columns(types), format=format)
    return Filled(stack, root, small + large)


@pytest.mark.parametrize("format", FORMATS)
def test_dynamic_filters_open_fewer_files(filled: Filled, format: str) -> None:
    wanted = ", ".join(f"({n})" for n in (5, ROWS + 5, 10 * ROWS, 10**9))
    key = "'name ' || lpad(CAST(n AS varchar), 9, '0')" if format == "csv" else "CAST(n AS bigint)"
    sql = (
        f"SELECT f.id, f.name, f.price FROM laws.filled_{format} f JOIN"
        f" (SELECT {key} k FROM (VALUES {wanted}) v(n)) v"
        f" ON f.{'name' if format == 'csv' else 'id'} = v.k ORDER BY f.name"
    )
    found = filled.stack.query(sql, WAITING)
    assert found == theirs(filled.stack, sql)
    assert len(found) == 3
    assert metric(filled.stack.analyzed(sql), "files opened") <= 4


@pytest.mark.parametrize("format", FORMATS)
def test_limit_reads_fewer_rows(filled: Filled, format: str) -> None:
    sql = f"SELECT id, name FROM laws.filled_{format} WHERE length(name) > 3 LIMIT 7"
    found = filled.stack.query(sql)
    assert len(found) == len({repr(each) for each in found}) == 7
    for number, name in found:
        assert name == f"name {int(number):09d}"
    text = filled.stack.analyzed(sql)
    scanned = re.findall(r"Input: (\d+) rows", text)
    assert scanned and max(map(int, scanned)) < filled.rows, text


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "txt": lambda data: data,
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bz2": bz2.compress,
    "zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    "snappy": lambda data: hadoop_blocks("snappy", data),
    "lz4": lambda data: hadoop_blocks("lz4_raw", data),
}


@pytest.mark.parametrize("serde", [CSV, JSON, TEXT], ids=["csv", "json", "text"])
def test_headers_of_compressed_files_and_files_that_end_early(
    stack: Stack, tmp_path: Path, serde: str
) -> None:
    """A partition for each: two files, one of them the header alone; and one that is cut."""
    tables = TextTables(stack, tmp_path, "packed")
    line = {
        CSV: lambda i: f'{i},"a ""b"" {i}",{i / 4}\n',
        JSON: lambda i: json.dumps({"a": i, "b": f"b {i}", "c": i / 4}) + "\n",
        TEXT: lambda i: f"{i}\x01b {i}\x01{i / 4}\n",
    }[serde]
    typed = [("a", "string"), ("b", "string"), ("c", "string")]
    if serde != CSV:
        typed = [("a", "int"), ("b", "string"), ("c", "double")]
    kind = serde.rpartition(".")[2].lower()
    headers = {"skip.header.line.count": "2"}
    name = tables.table(
        kind, typed, serde, tables.files(kind, {}), {}, headers, keys=[("p", "string")]
    )
    head = b"a header\nand \xffanother\n"
    body = "".join(line(i) for i in range(3_000)).encode()
    parts: dict[str, dict[str, bytes]] = {}
    for suffix, pack in CODECS.items():
        whole = pack(head + body)
        parts[suffix] = {f"a.{suffix}": whole, f"b.{suffix}": pack(head)}
        parts[f"{suffix}_one"] = {f"a.{suffix}": pack(head[:9])}
        parts[f"{suffix}_cut"] = {f"a.{suffix}": whole[: len(whole) // 2]}
    for part, contents in parts.items():
        directory = tables.files(f"{kind}/p={part}", contents)
        tables.partition(name, [part], typed, serde, directory, partition_parameters=headers)
    read = 0
    for part in parts:
        found = tables.same(f"SELECT a, b, c FROM {{t}}.{name} WHERE p = '{part}'")
        counted = tables.same(f"SELECT count(*) FROM {{t}}.{name} WHERE p = '{part}'")
        if not counted.error:
            assert json.loads(counted.rows[0]) == [len(found.rows)] or found.error
        assert found.error or part.endswith(("_one", "_cut")) or len(found.rows) == 3_000, part
        read += len(found.rows)
    assert read >= len(CODECS) * 3_000


def _jcmd(pid: int, *command: str) -> str:
    tool = Path(f"/proc/{pid}/exe").readlink().with_name("jcmd")
    return subprocess.run([tool, str(pid), *command], capture_output=True, text=True).stdout


def _open_below(pid: int, directory: Path) -> list[str]:
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            name = str(each.readlink())
        except OSError:
            continue
        if name.startswith(str(directory)):
            found.append(name)
    return found


def _held(pid: int) -> list[str]:
    """Page sources and readers of files that are not collected."""
    lines = _jcmd(pid, "GC.class_histogram").splitlines()
    wanted = r"io\.skipbridge\.trino\.read\.(page\.\w+PageSource|(orc|text)\.\w+Reader)\s*$"
    return [line for line in lines if re.search(wanted, line)]


def _eventually(found: Callable[[], list[str]]) -> None:
    """Asserts that nothing is found after a while."""
    deadline = time.monotonic() + 60
    while left := found():
        assert time.monotonic() < deadline, left
        time.sleep(0.5)


def test_cancelled_queries_leave_nothing_behind(filled: Filled) -> None:
    """Neither an open file, nor a reader, nor a thread in one."""
    stack = filled.stack
    server = recorded_pid(stack.directory / "trino" / "trino.pid")
    assert server is not None
    for format in FORMATS:
        connection = trino.dbapi.connect(
            host="127.0.0.1", port=stack.trino_port, user="test", catalog="bridge"
        )
        cursor = connection.cursor()
        table = f"laws.filled_{format}"
        # Rows come at once, and the scan never ends.
        cursor.execute(
            f"SELECT a.id, b.name FROM {table} a CROSS JOIN {table} b CROSS JOIN {table} c"
            " WHERE length(a.name) + length(b.name) > 3"
        )
        assert cursor.fetchone() is not None
        cursor.cancel()
    _eventually(lambda: _open_below(server, filled.root))
    _eventually(
        lambda: re.findall(r"io\.skipbridge\.trino\.read\.\S+", _jcmd(server, "Thread.print"))
    )
    _eventually(lambda: _held(server))
