"""What the index knows of new files comes from the pass that writes them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.entries import reading_of
from bridge.clustering.execution import DIRECTORY, RunReport, ThreadRewriter, execute
from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.registry import layout
from bridge.clustering.rewriting.rewrite import (
    CountFiles,
    Effort,
    GroupResult,
    GroupTask,
    rewrite_group,
)
from bridge.expression.builders import eq
from bridge.index.building.collect import (
    Collector,
    FileTask,
    Reading,
    ThreadCollector,
    collect_chunk,
)
from bridge.index.generations.replacements import FileState
from bridge.index.generations.shard import Collected
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kind
from bridge.kernel.types import BIGINT, STRING
from bridge.storage.port import FileStat, Range
from bridge.storage.routed import open_storage
from bridge.table.model import Column
from tests.support.clustered import read, scheduled, timeline_of
from tests.support.index_builds import Killed
from tests.support.lake import Lake, age

pytestmark = pytest.mark.full

STORAGE = open_storage()
FILES, ROWS = 6, 300
BLOOM, VALUES = kind("bloom").define("s"), kind("values").define("x")


def table(i: int) -> pa.Table:
    x = [(v * 37 + i) % 1000 for v in range(ROWS)]
    return pa.table({"x": x, "s": [f"{v * 7919 % 1000:04d}" if v % 7 else None for v in x]})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, (Column("x", BIGINT), Column("s", STRING)))
    for i in range(FILES):
        path = made.path(f"f{i}.parquet")
        pq.write_table(table(i), path)
        age(path)
    made.build(settings=lambda held: held.adding([BLOOM, VALUES]))
    return made


class Refusing:
    """A collector that has nothing to do."""

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        raise AssertionError(f"{len(tasks)} files are read again")


class Once:
    """A storage that counts how often bytes of new files are asked for."""

    def __init__(self) -> None:
        self.reads: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(STORAGE, name)

    def read(self, uri: str) -> bytes:
        self._note(uri)
        return STORAGE.read(uri)

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        self._note(uri)
        return STORAGE.read_ranges(uri, ranges)

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        self._note(uri)
        return STORAGE.read_state(uri, ranges)

    def _note(self, uri: str) -> None:
        if f"/{DIRECTORY}/" in uri:
            self.reads.append(uri)


def run(
    lake: Lake, plan: ClusteringPlan, collector: Collector, storage: Any = STORAGE
) -> RunReport:
    return execute(
        plan,
        lake.table(),
        lake.store(storage),
        timeline_of(lake, storage),
        catalog=lake,
        rewriter=ThreadRewriter(storage, Effort(threads=2)),
        collector=collector,
    )


def planned(lake: Lake) -> ClusteringPlan:
    return scheduled(lake, layout="linear", columns=("x",), grouping="time")


def test_each_new_file_is_read_once(lake: Lake) -> None:
    before, _ = read(lake)
    storage = Once()
    report = run(lake, planned(lake), Refusing(), storage)
    assert (report.state, report.old_files) == ("completed", FILES)
    assert len(storage.reads) == len(set(storage.reads)) == report.new_files
    rows, files = read(lake)
    assert rows == before and all(DIRECTORY in name for name in files)
    assert read(lake, eq("s", "0001x"))[1] == set()  # the bloom filter is there
    held = lake.store().latest()
    assert held is not None and held.clustering is not None
    (shard,) = held.clustering.shards
    assert {BLOOM.signature, VALUES.signature} <= {p.signature for p in shard.payloads}
    assert not lake.build().committed


@pytest.mark.parametrize("outputs", [1, 3])
def test_it_is_what_a_build_finds(lake: Lake, outputs: int) -> None:
    paths = sorted(path for path in lake.root.glob("t/f*"))
    stats = [STORAGE.stat(f"file://{path}") for path in paths]
    states = tuple(FileState(s.uri, s.size, s.modified, s.etag) for s in stats if s is not None)
    reading = reading_of(IndexSettings().adding([BLOOM, VALUES]), outputs)
    task = GroupTask(
        0, "", states, outputs, "linear", ("x",), f"file://{lake.root}/new", None, 1 << 20,
        lake.format, reading=reading,
    )  # fmt: skip
    result = rewrite_group(task, STORAGE, layout("linear", 1), Effort(threads=2))
    assert result.rejected == "" and len(result.new) == outputs
    tasks = [
        FileTask(i, file.path, file.size, file.modified, file.etag, lake.format)
        for i, file in enumerate(result.new)
    ]
    assert sorted_tables(Collected.from_bytes(result.gathered)) == sorted_tables(
        collect_chunk(tasks, STORAGE, reading)
    )


def sorted_tables(found: Collected) -> dict[str, list[dict[str, Any]]]:
    """The rows of single files; sketches of several are merged in another order."""
    tables = {"files": found.files, "columns": found.columns, **found.payloads}
    return {
        name: sorted((row for row in each.to_pylist() if row["file"] >= 0), key=repr)
        for name, each in tables.items()
    }


def test_new_files_of_a_run_that_died_are_read_again(lake: Lake) -> None:
    class Dies:
        def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
            raise Killed

    plan = planned(lake)
    lake.build(settings=lambda held: held.without("bloom(s)"))
    before, _ = read(lake)
    done: list[GroupResult] = []
    timeline = timeline_of(lake)

    class Noting(ThreadRewriter):
        def rewrite(
            self, tasks: Sequence[GroupTask], seen: CountFiles
        ) -> Generator[GroupResult, None, None]:
            for result in super().rewrite(tasks, seen):
                done.append(result)
                timeline.record_group(plan.instant, result)
                raise Killed
                yield

    with pytest.raises(Killed):
        execute(
            plan, lake.table(), lake.store(), timeline, catalog=lake,
            rewriter=Noting(STORAGE), collector=Dies(),
        )  # fmt: skip
    assert done and done[0].gathered
    lake.build(settings=lambda held: held.adding([BLOOM]))
    asked: list[int] = []

    class Counting(ThreadCollector):
        def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
            asked.append(len(tasks))
            yield from super().collect(tasks, reading)

    report = run(lake, plan, Counting(STORAGE))
    assert (report.state, report.resumed, asked) == ("completed", 1, [report.new_files])
    assert read(lake)[0] == before and read(lake, eq("s", "0001x"))[1] == set()


def test_settings_that_change_meanwhile_are_met(lake: Lake) -> None:
    """An index is added while groups are rewritten."""
    plan = planned(lake)
    lake.build(settings=lambda held: held.without("bloom(s)"))
    before, _ = read(lake)

    class Adding(ThreadRewriter):
        def rewrite(
            self, tasks: Sequence[GroupTask], seen: CountFiles
        ) -> Generator[GroupResult, None, None]:
            yield from super().rewrite(tasks, seen)
            lake.build(settings=lambda held: held.adding([BLOOM]))

    report = execute(
        plan, lake.table(), lake.store(), timeline_of(lake), catalog=lake,
        rewriter=Adding(STORAGE), collector=ThreadCollector(STORAGE),
    )  # fmt: skip
    assert report.state == "completed"
    assert read(lake)[0] == before and read(lake, eq("s", "0001x"))[1] == set()
