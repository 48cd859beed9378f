"""What a run asks of a remote store: each file's state once before the commit, side by side."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bridge.clustering.execution import DIRECTORY, ThreadRewriter, execute
from bridge.index.building.collect import ThreadCollector
from bridge.kernel.types import BIGINT, STRING
from bridge.storage.port import FileStat, Storage
from bridge.table.model import Column
from tests.support.clustered import executed, scheduled, timeline_of
from tests.support.lake import Lake

pytestmark = pytest.mark.full

FILES = 8


class Remote:
    """A storage that counts, and answers for old files only when all of them are asked for."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._all = threading.Barrier(FILES, timeout=60)
        self._lock = threading.Lock()
        self.asked: Counter[tuple[str, str]] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def is_remote(self, uri: str) -> bool:
        return True

    def stat(self, uri: str) -> FileStat | None:
        if uri.endswith((".parquet", "-data")):
            with self._lock:
                self.asked["stat", uri] += 1
            if DIRECTORY not in uri:
                self._all.wait()
        return self._storage.stat(uri)


@pytest.mark.parametrize("files", [2, 700])
def test_progress_is_told_file_by_file(tmp_path: Path, files: int) -> None:
    """Also within one large group; the last file counts when all groups have ended."""
    days = ("1", "2", "3") if files == 2 else ("1",)
    lake = Lake(tmp_path, (Column("x", BIGINT),), (Column("day", STRING),))
    lake.partition_values = [(day,) for day in days]
    for values in lake.partition_values:
        for i in range(files):
            lake.write(f"f{i}.parquet", {"x": [i]}, values)
    lake.build()
    plan, told = scheduled(lake, layout="binpack", grouping="size"), []
    execute(
        plan, lake.table(), lake.store(), timeline_of(lake), catalog=lake,
        rewriter=ThreadRewriter(lake.storage), collector=ThreadCollector(lake.storage),
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    every = files * len(days)
    assert told == sorted(told) and {total for _, total in told} == {every}
    assert told[0] == (0, every) and [done for done, _ in told].count(every) == 1
    assert len({done for done, _ in told}) >= 4


def test_states_are_asked_for_side_by_side_and_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path, columns=(Column("x", BIGINT), Column("s", STRING)))
    for i in range(FILES):
        lake.write(f"f{i}.parquet", {"x": [i, 100 + i], "s": ["a", None]})
    lake.build()
    plan = scheduled(lake, layout="linear", columns=("x",), grouping="overlap")
    storage = Remote(lake.storage)
    report = executed(lake, plan, storage)  # type: ignore[arg-type]
    assert (report.state, report.old_files) == ("completed", FILES)
    old = {uri: n for (_, uri), n in storage.asked.items() if DIRECTORY not in uri}
    assert len(old) == FILES and set(old.values()) == {1}
