"""Any bytes in one file: the process lives in bounded memory, the other files are read, the bad one
is named or read whole.

Each file states far more than it has. A process of its own declares a table of the format, adds a
sound file and the hostile one, and scans both.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from tests.unit.file_formats.test_avro_container import avro, number, record, text

_SOUND = pa.table({"x": pa.array([7], pa.int64()), "s": ["q"]})
_ROW = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "x", "type": "long"}, {"name": "s", "type": "string"}],
}
_ROWS = 1 << 16
_MEMORY = 900
"""MiB of the process that scans; a sound file takes about 200."""

SCAN = """
import json, resource, sys
import bridge
from bridge import BridgeError
root, format = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
told = []
with bridge.connect() as session:
    table = f"`{root}/t`"
    def sql(statement):
        try:
            session.sql(statement, local=True)
        except BridgeError as error:
            told.append(error.message)
    sql(f"CREATE TABLE {table} (x bigint, s string) STORED BY 'CarbonData' "
        f"TBLPROPERTIES('format'='{format}')")
    sql(f"CREATE INDEX m ON TABLE {table} AS 'minmax'")
    for name in ("sound", "hostile"):
        sql(f"ALTER TABLE {table} ADD SEGMENT LOCATION '{root}/{name}'")
    opened = session.table(f"{root}/t")
    sound = opened.scan("x = 7", segments=["0"]).to_arrow().num_rows
    rows = most = 0
    try:
        for batch in opened.scan().to_reader():
            rows, most = rows + batch.num_rows, max(most, batch.nbytes)
    except BridgeError as error:
        told.append(error.message)
print(json.dumps([sound, rows, most, told,
                  resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10]))
"""


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False)
    return sink.getvalue()


def _orc(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    po.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _once_for_all() -> bytes:
    codes = pa.array(np.zeros(_ROWS, np.int32))
    stored = pa.DictionaryArray.from_arrays(codes, pa.array(["y" * 20_000]))
    return _parquet(pa.table({"x": np.zeros(_ROWS, np.int64), "s": stored}))


def _orc_text() -> bytes:
    return _orc(pa.table({"x": np.zeros(4000, np.int64), "s": ["y" * 20_000] * 4000}))


def _list() -> bytes:
    inner = {"type": "array", "items": record(["null", "long"], name="t")}
    schema = {**_ROW, "fields": [*_ROW["fields"], {"name": "l", "type": inner}]}  # type: ignore[misc]
    count = 4 << 20
    row = number(0) + text(b"q") + number(count) + bytes(count + 1)
    return avro(schema, [(1, zlib.compress(row, wbits=-15))], "deflate")


_SOUND_FILES: dict[str, Callable[[], bytes]] = {
    "parquet": lambda: _parquet(_SOUND),
    "orc": lambda: _orc(_SOUND),
    "avro": lambda: avro(_ROW, [(1, number(7) + text(b"q"))]),
}
_HOSTILE: dict[str, tuple[str, Callable[[], bytes], int | None]] = {
    "parquet: a text once for all rows": ("parquet", _once_for_all, _ROWS),
    "parquet: cut": ("parquet", lambda: _parquet(_SOUND)[:-30], None),
    "orc: texts of many bytes": ("orc", _orc_text, 4000),
    "orc: cut": ("orc", lambda: _orc(_SOUND)[:-9], None),
    "avro: a type in itself": ("avro", lambda: avro(record("r"), [(1, bytes(10))]), None),
    "avro: rows of no bytes": (
        "avro",
        lambda: avro(record("null", "null"), [(1 << 62, b"")]),
        None,
    ),
    "avro: an object for each byte": ("avro", _list, 1),
}


@pytest.mark.rule("27")
@pytest.mark.rule("32")
@pytest.mark.parametrize("name", _HOSTILE)
def test_27_32_a_file_that_states_more_than_it_has(name: str, tmp_path: Path) -> None:
    format, make, rows = _HOSTILE[name]
    for place, content in (("sound", _SOUND_FILES[format]()), ("hostile", make())):
        (tmp_path / place).mkdir()
        path = tmp_path / place / "a"
        path.write_bytes(content)
        os.utime(path, (1e9, 1e9))
    done = subprocess.run(
        [sys.executable, "-c", SCAN, str(tmp_path), format], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    sound, read, most, told, memory = found
    assert sound == 1
    assert most < 64 << 20
    assert memory < _MEMORY
    if rows is None:
        assert any("hostile" in each for each in told)
    else:
        assert (read, told) == (rows + 1, [])


BUILD = """
import json, resource, sys
import bridge
root, format = sys.argv[1:]
with bridge.connect() as session:
    table = f"`{root}/t`"
    for statement in (
        f"CREATE TABLE {table} (x bigint, s string) STORED BY 'CarbonData' "
        f"TBLPROPERTIES('format'='{format}')",
        f"CREATE INDEX m ON TABLE {table} AS 'minmax'",
        f"ALTER TABLE {table} ADD SEGMENT LOCATION '{root}/sound'",
        f"ALTER TABLE {table} ADD SEGMENT LOCATION '{root}/hostile'",
    ):
        session.sql(statement, local=True)
    rows = session.table(f"{root}/t").index.statistics().to_pylist()
known = {each["path"].split("/")[-2]: each["min"] for each in rows if each["column"] == "x"}
print(json.dumps([known, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10]))
"""
_TEXT: dict[str, tuple[str, str, Callable[[], bytes], str | None]] = {
    # by name: the format, the file's name, its bytes, and what its index says is the least x
    "csv: one line of a gzip": ("csv", "a.gz", lambda: _gzip(b"8" * (1 << 20), 256), None),
    "csv: rows of a gzip": ("csv", "a.gz", lambda: _gzip(b"8,q\n" * (1 << 18), 32), "8"),
    "csv: a member for each byte": ("csv", "a.gz", lambda: _gzip(b"8", 1) * 20_000, None),
    "csv: separators": ("csv", "a", lambda: b"," * (1 << 22), None),
    "csv: not decompressed": ("csv", "a.gz", lambda: b"8,q\n", None),
    "json: rows of a gzip": (
        "json",
        "a.gz",
        lambda: _gzip(b'{"x":8,"s":"q"}\n' * (1 << 15), 16),
        "8",
    ),
    "json: cut": ("json", "a", lambda: b'{"x":8,"s":', None),
}


def _gzip(part: bytes, times: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(part) for _ in range(times)) + packer.flush()


@pytest.mark.rule("27")
@pytest.mark.rule("32")
@pytest.mark.parametrize("name", _TEXT)
def test_27_32_any_text_is_indexed_or_unknown(name: str, tmp_path: Path) -> None:
    format, hostile, make, least = _TEXT[name]
    sound = {"csv": b"7,q\n", "json": b'{"x":7}\n'}[format]
    for place, content in (("sound/a", sound), (f"hostile/{hostile}", make())):
        path = tmp_path / place
        path.parent.mkdir()
        path.write_bytes(content)
        os.utime(path, (1e9, 1e9))
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path), format], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    known, memory = json.loads(done.stdout.splitlines()[-1])
    assert known == {"sound": "7", "hostile": least}
    assert memory < _MEMORY
