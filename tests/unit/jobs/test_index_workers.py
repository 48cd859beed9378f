"""Who reads the files of a build: threads of this process, or Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.formats.lines.recipe import Recipe
from bridge.index.building.collect import FileTask, Reading
from bridge.indexing import table as module
from bridge.indexing.table import bytes_beyond_footers, index_table
from bridge.kernel.config import load


def build(table: Path, *, local: bool | None = None) -> tuple[int, list[str]]:
    """Files read, and what was said."""
    told: list[str] = []
    made = index_table(load(), str(table), local=local, progress=lambda *_: None, say=told.append)
    return int(made["read"]), told


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(sys.modules, "pyspark", None)  # not installed
    for number in range(3):
        pq.write_table(pa.table({"n": [number]}), tmp_path / f"{number}.parquet")
    return tmp_path


def test_few_files_are_read_in_this_process(table: Path) -> None:
    assert build(table) == (3, [])


def test_many_files_are_read_with_threads_where_spark_is_missing(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPARK_FILES", 3)
    read, told = build(table)
    assert read == 3
    assert told == [
        "reading 3 files with threads; Spark would be faster, but pyspark is not installed"
    ]
    assert build(table) == (0, [])  # nothing is left to read


def test_only_bytes_beyond_footers_count() -> None:
    csv = Recipe("csv", (), ())
    tasks = [FileTask(0, "file:///a", 7, 0), FileTask(1, "file:///b", 5, 0, recipe=csv)]
    assert bytes_beyond_footers(tasks, Reading()) == 5
    assert bytes_beyond_footers(tasks, Reading("scan")) == 12


def test_spark_that_was_asked_for_is_not_replaced(table: Path) -> None:
    with pytest.raises(module.EnvironmentMissing, match="pyspark is not installed"):
        build(table, local=False)


_ON_SPARK = """
import sys
from bridge.kernel.config import load
from bridge.indexing import table as module
module.SPARK_FILES = 3
made = module.index_table(load(), sys.argv[1], local=None, progress=lambda *_: None, say=print)
print(made["read"], made["generation"])
"""


@pytest.mark.full
@pytest.mark.engine
def test_many_files_are_read_with_spark(tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(pa.table({"n": [number]}), tmp_path / f"{number}.parquet")
    done = subprocess.run(
        [sys.executable, "-c", _ON_SPARK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "reading 3 files with Spark; --local uses threads of this process",
        "3 1",
    ]
