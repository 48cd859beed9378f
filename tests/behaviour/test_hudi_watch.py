"""``index refresh --watch`` follows a Hudi table's timeline, and reads only the slices of new
instants."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from tests.support.hudi_tables import HudiTable

pytestmark = pytest.mark.full

SCHEMA = json.dumps(
    {"type": "record", "name": "t", "fields": [{"name": "k", "type": ["null", "long"]}]}
)


def written(table: HudiTable, group: str, instant: str, first: int) -> Any:
    """A base file that holds ten keys."""
    file = table.base("", f"{group}-0", instant)
    path = table.root / file.name
    pq.write_table(pa.table({"k": range(first, first + 10)}), path)
    return replace(file, size=path.stat().st_size)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def test_a_watch_indexes_the_slices_of_each_new_instant(tmp_path: Path) -> None:
    table = HudiTable(tmp_path / "t", 8, "COPY_ON_WRITE", hoodie__table__recordkey__fields="k")
    first = [written(table, f"f{n}", "20260101000000001", n * 100) for n in range(4)]
    table.commit("20260101000000001", first, action="commit", schema=SCHEMA)
    words = ("index", "refresh", str(table.root), "--watch", "0.2", "--output", "json")
    watcher = subprocess.Popen([sys.executable, "-m", "bridge", *words], stdout=subprocess.PIPE)
    try:
        with bridge.connect() as session:

            def kept(condition: str) -> int:
                return session.table(str(table.root)).scan(condition).files().num_rows

            until(lambda: kept("k = 105") == 1 and kept("k = 777") == 0)
            file = written(table, "f1", "20260101000000002", 1_000)
            table.commit("20260101000000002", [file], action="commit", schema=SCHEMA)
            assert kept("k = 1005") == 1
            until(lambda: kept("k = 105") == 0)
            # A file of an instant that has not ended is no part of the table.
            file = written(table, "f4", "20260101000000003", 2_000)
            assert kept("k = 2005") == 0
            table.commit("20260101000000003", [file], action="commit", schema=SCHEMA)
            assert kept("k = 2005") == 1
            until(lambda: kept("k = 777") == 0)
            assert kept("k = 1005") == kept("k = 2005") == kept("k = 5") == 1
    finally:
        watcher.send_signal(signal.SIGINT)
        told = watcher.communicate(timeout=60)[0]
    assert watcher.returncode == 0
    read = re.findall(rb'"committed": true.*?"read": (\d+)', told, re.DOTALL)
    assert read == [b"4", b"1", b"1"], told
