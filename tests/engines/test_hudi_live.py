"""A live Hudi writer, and Trino at every moment: each answer is that of one completed instant.

Spark writes, deletes, compacts, clusters, cleans, archives, rolls back, restores and dies. What it
reads after a step is what Trino shows from then on; while the step runs, that or what was before.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from trino.exceptions import TrinoQueryError

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.engines.test_spark_hudi_sync import ARCHIVE
from tests.support.hudi_registration import register
from tests.support.hudi_spark import HudiStory, python_with_spark_35
from tests.tiers import seed

pytestmark = [pytest.mark.nightly, pytest.mark.rule("50", "51")]

SCHEMA = "hudi_live"
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
READERS = 2
RANDOM_STEPS = 6
_COLUMNS = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("ts", pa.int64()),
        ("day", pa.string()),
    ]
)
_DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
# A file that a clean, a rollback or a restore removes under a running query.
_GONE = "FILE_CHANGED"
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Read:
    """An answer, and how many steps had ended before it was asked for and after it came."""

    column: str
    value: Any
    before: int
    after: int
    rows: Rows

    @property
    def condition(self) -> str:
        said = f"'{self.value}'" if isinstance(self.value, str) else self.value
        return f"WHERE {self.column} = {said}" if self.column else ""

    def of(self, state: Rows) -> Rows:
        at = _COLUMNS.names.index(self.column) if self.column else -1
        return [row for row in state if at < 0 or row[at] == self.value]


class Writer:
    """Spark, and what it reads after each of its steps.

    Attributes:
        states: rows by step; the first is that of no step.
        between: by step, the earlier states that readers may see again while it runs.
    """

    def __init__(self, story: HudiStory, spark: Path, path: Path, kind: str, number: int) -> None:
        self.story, self.spark, self.path, self.kind = story, spark, path, kind
        self.draw = random.Random(number)
        self.states: list[Rows] = [[]]
        self.between: dict[int, list[Rows]] = {}
        self.seen: Counter[str] = Counter()
        self._options = {"hoodie.metadata.enable": self.draw.choice(["true", "false"])}
        self._ts = self._next = 0

    def step(self, act: Callable[[], object]) -> None:
        try:
            act()
            self.seen[act.__name__] += 1
        except AssertionError as error:
            self.seen["refused"] += 1
            print(f"Hudi refuses {act.__name__}: {str(error)[:300]}")
        self.end_step()

    def end_step(self) -> None:
        self.states.append(sorted(tuple(row[:5]) for row in self.story("read", self.path)))

    def write(
        self,
        operation: str,
        rows: list[tuple[int, str]],
        by: Callable[..., Any] | None = None,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        self._ts += 1
        asked = {"kind": self.kind, "operation": operation, "options": self._options | options}
        asked["rows"] = [(i, self._ts, day) for i, day in rows]
        return str((by or self.story)("commit", self.path, **asked))

    def new(self) -> list[tuple[int, str]]:
        first, self._next = self._next, self._next + 30
        return [(i, _DAYS[i % 3]) for i in range(first, self._next)]

    def some(self) -> list[tuple[int, str]]:
        held = [(row[0], row[4]) for row in self.states[-1]]
        return self.draw.sample(held, min(len(held), self.draw.randint(3, 10)))

    def call(self, procedure: str, **arguments: object) -> None:
        given = "".join(f", {name} => {value!r}" for name, value in arguments.items())
        self.story("call", self.path, sql=f"CALL {procedure}(table => '{{t}}'{given})")

    def insert(self) -> None:
        self.write("insert", self.new())

    def upsert(self) -> None:
        self.write("upsert", [*self.some(), *self.new()[:2]])

    def archive(self) -> None:
        self.write("upsert", self.some(), options=ARCHIVE)

    def delete(self) -> None:
        self.write("delete", self.some())

    def overwrite(self) -> None:
        self.write("insert_overwrite", [row for row in self.new() if row[1] == _DAYS[0]])

    def compact(self) -> None:
        self.call("run_compaction", op="scheduleAndExecute")

    def schedule_compaction(self) -> None:
        self.call("run_compaction", op="schedule")

    def cluster(self) -> None:
        self.call("run_clustering", order="price")

    def clean(self) -> None:
        self.call("run_clean", retain_commits=1)

    def roll_back(self) -> None:
        instant = self.write("upsert", self.some())
        self.end_step()
        self.call("rollback_to_instant", instant_time=instant)

    def restore(self) -> None:
        instant = self.write("insert", self.new())
        self.end_step()
        first = len(self.states) - 1
        self.call("create_savepoint", commit_time=instant)
        for act in (self.upsert, self.delete):
            act()
            self.end_step()
        self.between[len(self.states)] = self.states[first:]
        self.call("rollback_to_savepoint", instant_time=instant)
        self.call("delete_savepoint", instant_time=instant)

    def be_killed(self) -> None:
        """Another process writes and is killed: when its instant has begun, or has its files."""
        before, only_begun = self.files(), self.draw.randrange(2)

        def begun() -> bool:
            new = self.files() - before
            is_there = any(file.suffix == ".inflight" for file in new)
            return is_there and bool(only_begun or any(".hoodie" not in f.parts for f in new))

        with HudiStory(self.spark, 9, self.path.parent / f"k{len(self.states)}") as other:
            self.write("upsert", self.some(), lambda *a, **more: other.kill(begun, *a, **more))

    def files(self) -> set[Path]:
        return {file for file in self.path.rglob("*") if file.suffix != ".crc"}

    def acts(self) -> list[Callable[[], object]]:
        """Each kind of step at least once, in a drawn order, with others between."""
        always = [self.upsert, self.delete, self.cluster, self.clean, self.roll_back, self.restore]
        always += [self.archive, self.archive, self.be_killed, self.be_killed]
        more = [self.insert, self.upsert, self.upsert, self.delete, self.overwrite]
        if self.kind == MOR:
            always.append(self.compact)
            more += [self.schedule_compaction, self.compact]
        steps = [*always, *(self.draw.choice(more) for _ in range(RANDOM_STEPS))]
        self.draw.shuffle(steps)
        return steps


class Readers:
    """Threads that ask Trino for drawn rows until the block ends."""

    def __init__(self, stack: Stack, name: TableName, writer: Writer) -> None:
        self._stack, self._name, self._writer = stack, name, writer
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(random.Random(writer.draw.random()),))
            for _ in range(READERS)
        ]
        self.reads: list[Read] = []
        self.errors: list[str] = []

    def __enter__(self) -> Readers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, draw: random.Random) -> None:
        states, columns = self._writer.states, ", ".join(_COLUMNS.names)
        while not self._ended.wait(draw.random() / 5):
            column = draw.choice(["", "", "id", "ts", "name", "day"])
            row = draw.choice(states[-1] or states[1])
            value = row[_COLUMNS.names.index(column)] if column else None
            before = len(states) - 1
            asked = Read(column, value, before, before, [])
            try:
                rows = self._stack.query(f"SELECT {columns} FROM {self._name} {asked.condition}")
            except TrinoQueryError as error:
                self.errors.append(str(error.message))
                continue
            found = sorted(tuple(row) for row in rows)
            self.reads.append(Read(column, value, before, len(states) - 1, found))


@pytest.fixture(scope="module")
def spark() -> Path:
    return python_with_spark_35()


@pytest.fixture(scope="module")
def story(spark: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiStory]:
    with HudiStory(spark, 9, tmp_path_factory.mktemp("story")) as made:
        yield made


@pytest.mark.parametrize("kind", [COW, MOR])
def test_each_answer_is_that_of_one_instant(
    stack: Stack, story: HudiStory, spark: Path, tmp_path: Path, kind: str
) -> None:
    writer = Writer(story, spark, tmp_path / "t", kind, seed(34))
    writer.step(writer.insert)
    name = TableName(SCHEMA, kind.lower())
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    with MetastoreClient(stack.metastore_uri) as client:
        if SCHEMA not in client.get_all_databases():
            client.create_database(SCHEMA, f"file://{tmp_path}/db")
        register(client, name, writer.path, _COLUMNS)
    with Readers(stack, name, writer) as readers:
        for act in writer.acts():
            writer.step(act)
            if not writer.draw.randrange(4):
                quiet = {"progress": lambda done, total: None, "say": lambda text: None}
                index_table(config, str(name), local=True, **quiet)  # type: ignore[arg-type]
    print(dict(writer.seen), len(readers.reads), "answers", Counter(e[:60] for e in readers.errors))
    assert len(readers.reads) > len(writer.states)
    assert all(_GONE in error for error in readers.errors), readers.errors[:5]
    assert len(readers.errors) <= len(readers.reads) / 10
    assert writer.seen["refused"] <= len(writer.states) / 4
    for read in readers.reads:
        shown = [*writer.states[read.before : read.after + 2]]
        for step in range(read.before + 1, read.after + 2):
            shown += writer.between.get(step, [])
        assert any(read.rows == read.of(state) for state in shown), (read, len(shown))
