"""Each old file is read and decoded once, many together, in a child that a file may end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.execution import ThreadRewriter
from bridge.clustering.registry import layout
from bridge.clustering.rewriting.rewrite import Effort, GroupResult, GroupTask, rewrite_group
from bridge.formats.data_files import Decoded
from bridge.formats.parquet import rewriting
from bridge.storage.child import ChildReader
from bridge.storage.port import FileStat, Range
from tests.support import dying_decoder
from tests.unit.clustering.test_rewrite import STORAGE, opened, rewritten, rows_of, state_of


class Noting:
    """A storage that notes reads; each takes a moment, as in a remote store."""

    def __init__(self, seconds: float = 0.0, remote: bool = False) -> None:
        self.reads: list[str] = []
        self.now = self.most = 0
        self._seconds, self._remote, self._lock = seconds, remote, threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(STORAGE, name)

    def is_remote(self, uri: str) -> bool:
        return self._remote

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        with self._lock:
            self.reads.append(uri)
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self._seconds)
        with self._lock:
            self.now -= 1
        return STORAGE.read_state(uri, ranges)


def small(tmp_path: Path, count: int, begin: int = 0) -> list[Path]:
    tmp_path.mkdir(exist_ok=True)
    for i in range(begin, begin + count):
        keys = [(i * 31 + k * 17) % 97 for k in range(5)]
        table = pa.table({"k": keys, "s": [f"{i} {k}" for k in keys]})
        pq.write_table(table, tmp_path / f"f{i:04}.parquet")
    return sorted(tmp_path.glob("f*.parquet"))


def task_of(tmp_path: Path, files: Sequence[Path], number: int = 0) -> GroupTask:
    states = tuple(state_of(path) for path in files)
    target = f"file://{tmp_path}/.new"
    return GroupTask(number, "", states, 1, "linear", ("k",), target, None, 1 << 27)


def decoded(*paths: Path) -> list[str]:
    return rows_of([pq.read_table(path) for path in paths])


def new_rows(result: GroupResult) -> list[str]:
    return rows_of([opened(state).read() for state in result.new])


@pytest.mark.parametrize("memory", [1 << 30, 0])
def test_each_file_is_read_once(tmp_path: Path, memory: int) -> None:
    files = small(tmp_path, 300)  # more than one request
    storage = Noting()
    task = task_of(tmp_path, files)
    result = rewrite_group(task, storage, layout("linear", 1), Effort(2, memory))  # type: ignore[arg-type]
    assert (result.rejected, result.rows) == ("", 1500)
    old = [uri for uri in storage.reads if "/.new/" not in uri]
    assert sorted(old) == [f"file://{path}" for path in files]
    assert new_rows(result) == decoded(*files)


def test_many_reads_are_in_flight_within_a_group(tmp_path: Path) -> None:
    storage = Noting(0.01, remote=True)
    task = task_of(tmp_path, small(tmp_path, 120))
    result = rewrite_group(task, storage, layout("linear", 1), Effort(1))  # type: ignore[arg-type]
    assert result.rejected == "" and storage.most >= 16


def test_many_reads_are_in_flight_across_groups(tmp_path: Path) -> None:
    storage = Noting(0.05, remote=True)
    tasks = [task_of(tmp_path / f"{i}", small(tmp_path / f"{i}", 2, i), i) for i in range(12)]
    found = list(ThreadRewriter(storage, Effort(2)).rewrite(tasks))  # type: ignore[arg-type]
    assert sorted(each.id for each in found) == list(range(12))
    assert not any(each.rejected for each in found) and storage.most >= 8


@pytest.mark.rule("32")
@pytest.mark.parametrize("bad", [pytest.param((0, 40), marks=pytest.mark.full), (63,)])
def test_files_that_end_the_child_are_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: tuple[int, ...]
) -> None:
    files = small(tmp_path, 64)
    for number in bad:
        table = pa.table({"k": [1], "s": [dying_decoder.POISON.decode()]})
        pq.write_table(table, files[number], compression="none", use_dictionary=False)
    monkeypatch.setattr(rewriting, "_DECODED", ChildReader(dying_decoder.decode))
    result = rewritten(tmp_path, *files)
    assert [path for path, _ in result.aside] == [f"file://{files[number]}" for number in bad]
    assert all("SIGSEGV" in why for _, why in result.aside)
    assert new_rows(result) == decoded(*(f for i, f in enumerate(files) if i not in bad))
    rewriting._DECODED.close()


def test_a_large_file_that_is_damaged_further_on_leaves_no_rows(tmp_path: Path) -> None:
    files = small(tmp_path, 3)
    keys = np.random.default_rng(1).integers(0, 2**62, 800_000)
    table = pa.table({"k": keys, "s": pa.array(["x"] * len(keys))})
    large = tmp_path / "f1000.parquet"
    pq.write_table(table, large, compression="none", use_dictionary=False, row_group_size=200_000,
                   write_page_checksum=True)  # fmt: skip
    whole = large.read_bytes()
    for at, rows in ((None, 800_000), (len(whole) - 5_000_000, 0), (len(whole) // 20 * 19, 0)):
        raw = bytearray(whole)
        if at is not None:
            raw[at : at + 8] = bytes(b ^ 255 for b in raw[at : at + 8])
        large.write_bytes(raw)
        result = rewritten(tmp_path, *files, large, effort=Effort(2, 1 << 22))
        assert result.rejected == "" and result.rows == 15 + rows
        assert [path for path, _ in result.aside] == ([] if rows else [f"file://{large}"])
        assert len(opened(result.new[0]).read(["k"])) == 15 + rows


def test_files_of_several_schemas_in_one_request(tmp_path: Path) -> None:
    files = small(tmp_path, 9)
    for i in (1, 4, 5):
        pq.write_table(pa.table({"k": [i, None], "other": [1.5, None]}), files[i])
    pq.write_table(
        pa.table({"k": pa.array([], pa.int64()), "s": pa.array([], pa.string())}), files[0]
    )
    result = rewritten(tmp_path, *files)
    assert (result.rejected, result.rows, len(result.new)) == ("", 25 + 6, 2)
    assert new_rows(result) == decoded(*files)


def test_a_reply_that_does_not_count_all_rows_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = small(tmp_path, 4)
    decode = rewriting.ParquetFiles.decode

    def forgetful(self: Any, contents: Sequence[bytes], verify: bool) -> Iterator[Any]:
        for item in decode(self, contents, verify):
            if isinstance(item, Decoded):
                counts = [(run.counts[0] + 1, *run.counts[1:]) for run in item.runs]
                runs = [replace(r, counts=c) for r, c in zip(item.runs, counts, strict=True)]
                item = replace(item, runs=tuple(runs))
            yield item

    monkeypatch.setattr(rewriting.ParquetFiles, "decode", forgetful)
    result = rewritten(tmp_path, *files)
    assert result.new == () and "rows can be read of" in result.rejected
