"""A live Hudi writer, and syncs between its writes: records follow what Hudi says itself.

The story is drawn: writes of all kinds, writers that die, rollbacks, restores, cleans, archives and
table services, and a sync after some of them. The oracle is Hudi's own view of the file slices.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.conftest import RunningMetastore
from tests.support.hudi_spark import HudiStory, python_with_spark_35
from tests.support.hudi_sync import sync_hudi
from tests.tiers import seed

pytestmark = [pytest.mark.engine, pytest.mark.full, pytest.mark.rule("43", "44")]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
_VERSIONS = (9,)
# Hudi may fail to roll back one write beside another that died, and refuses all later ones then:
# the story of a merge-on-read table is short.
_STEPS = {COW: 18, MOR: 7}
_numbers = itertools.count()
ARCHIVE = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.commits.archival.batch": "1",
}


@pytest.fixture(scope="module")
def spark() -> Path:
    return python_with_spark_35()


@pytest.fixture(scope="module", params=_VERSIONS)
def story(
    request: pytest.FixtureRequest, spark: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HudiStory]:
    with HudiStory(spark, request.param, tmp_path_factory.mktemp("story")) as made:
        yield made


class Refused(Exception):
    """Hudi refuses a step, in its own words."""


class Writer:
    """A writer of one table, and a metastore that follows.

    Attributes:
        seen: what was drawn.
        marks: properties that others set, by record and partition; ``None``: of the table.
    """

    def __init__(
        self, story: HudiStory, client: MetastoreClient, path: Path, kind: str, number: int
    ) -> None:
        self.story, self.client, self.path, self.kind = story, client, path, kind
        self.draw = random.Random(number)
        self.name = TableName(f"live{next(_numbers)}", "t")
        self.seen: Counter[str] = Counter()
        self.marks: dict[tuple[str, str | None], str] = {}
        self.held: set[str] = set()
        self._rows: dict[str, list[int]] = {}
        self._saved = ""
        self._number = 0

    # the writer

    def write(
        self,
        operation: str,
        days: list[str],
        *,
        known: bool = False,
        by: Callable[..., Any] | None = None,
        **options: object,
    ) -> str:
        """One commit; of new rows, or of some that were written before to these days."""
        rows = []
        for day in days:
            ids = self._rows.setdefault(day, [])
            if not known or not ids:
                ids.append(1000 + next(_numbers))
            rows += [(i, self._number, day) for i in ids[-3:]]
        asked = {"kind": self.kind, "rows": rows, "operation": operation, **options}
        return str(self.ask("commit", by=by, **asked))

    def days(self) -> list[str]:
        """One or two days, some of them new."""
        some = [f"2024-01-{self.draw.randint(1, 6):02}" for _ in range(self.draw.randint(1, 2))]
        return sorted(set(some))

    def call(self, procedure: str, **arguments: object) -> None:
        given = "".join(f", {name} => {value!r}" for name, value in arguments.items())
        self.ask("call", sql=f"CALL {procedure}(table => '{{t}}'{given})")

    def ask(self, do: str, by: Callable[..., Any] | None = None, **more: object) -> Any:
        """Errors: Refused."""
        try:
            return (by or self.story)(do, self.path, **more)
        except AssertionError as error:
            raise Refused(str(error)[:400]) from error

    def step(self) -> None:
        self._number += 1
        acts: list[Callable[[], object]] = [
            *(self.insert, self.insert, self.upsert, self.delete, self.overwrite),
            *(self.drop_partition, self.drop_partition, self.die, self.die, self.roll_back),
            *(self.roll_back, self.clean, self.archive, self.cluster, self.overwrite_table),
            *(self.restore, self.restore, self.compact),
        ]
        act = self.draw.choice(acts)
        try:
            act()
            self.seen[act.__name__] += 1
        except Refused as error:
            self.seen["refused"] += 1
            print(f"{act.__name__}: {error}")

    def insert(self) -> None:
        self.write("insert", self.days())

    def upsert(self) -> None:
        self.write("upsert", self.days(), known=True)

    def delete(self) -> None:
        """Often the last rows of a partition."""
        self.write("delete", self.days(), known=True)

    def overwrite(self) -> None:
        self.write("insert_overwrite", self.days())

    def overwrite_table(self) -> None:
        self.write("insert_overwrite_table", self.days())

    def drop_partition(self) -> None:
        self.write("delete_partition", self.days(), known=True)

    def die(self) -> None:
        """A writer dies, of whose files some are there; the next writer rolls it back."""
        operation = self.draw.choice(["insert", "upsert", "insert_overwrite", "delete_partition"])
        self.write(operation, self.days(), dies=True)

    def be_killed(self, spark: HudiStory, operation: str) -> None:
        """Another process writes and is killed: when its instant has begun, or has its files."""
        timeline = self.path / ".hoodie" / "timeline"
        before = {*timeline.iterdir(), *self.data()}
        only_begun = operation == "delete_partition" or self.draw.randrange(2)

        def begun() -> bool:
            if {*timeline.glob("*.inflight")} - before:
                return bool(only_begun or self.data() - before)
            return False

        known = operation != "insert"
        self.write(operation, self.days(), known=known, by=partial(spark.kill, begun))
        left = {f.name.partition(".")[0] for f in timeline.glob("*.inflight") if f not in before}
        done = {f.name.partition("_")[0] for f in timeline.iterdir() if "_" in f.name}
        self.seen["killed"] += bool(left - done)

    def data(self) -> set[Path]:
        return {f for f in self.path.glob("*/*") if f.parent.name != ".hoodie"}

    def archive(self) -> None:
        self.write("upsert", self.days(), options=ARCHIVE)

    def cluster(self) -> None:
        inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
        self.write("insert", self.days(), options=inline)

    def compact(self) -> None:
        if self.kind == MOR:
            one = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.compact.inline": "true"}
            self.write("upsert", self.days(), known=True, options=one)

    def clean(self) -> None:
        self.call("run_clean", retain_commits=1)

    def roll_back(self) -> None:
        """Undoes the newest commit, which a sync may have seen."""
        instant = self.write(self.draw.choice(["insert", "delete_partition"]), self.days())
        if self.draw.randrange(2):
            self.sync()
        self.call("rollback_to_instant", instant_time=instant)

    def restore(self) -> None:
        """Goes back to a savepoint, over writes that syncs may have seen."""
        instant = self.write("insert", self.days())
        self.call("create_savepoint", commit_time=instant)
        for _ in range(self.draw.randint(1, 2)):
            self.draw.choice([self.insert, self.overwrite, self.drop_partition, self.delete])()
            if self.draw.randrange(2):
                self.sync()
        self.call("rollback_to_savepoint", instant_time=instant)
        self.call("delete_savepoint", instant_time=instant)

    # the metastore

    def sync(self) -> None:
        """Syncs; all records have the partitions that Hudi has, and what others set."""
        files = sorted((f, f.stat().st_size) for f in self.path.rglob("*") if f.is_file())
        report = sync_hudi(self.client, self.path, self.name)
        again = sync_hudi(self.client, self.path, self.name)
        expected = set(self.story("partitions", self.path))
        self.seen["syncs"] += 1
        self.seen[f"compared {report.compared}"] += 1
        self.seen["partitions dropped"] += len(self.held - expected)
        self.seen["partitions added"] += len(expected - self.held)
        wanted = ["t", *(["t_ro", "t_rt"] if self.kind == MOR else [])]
        for table in wanted:
            assert set(self.partitions(table)) == expected, (table, report.to_dict())
        assert sorted(self.client.call("get_tables", self.name.schema, "t*")) == sorted(wanted)
        assert again.outcome == "in step" and not again.problems, again.to_dict()
        now = sorted((f, f.stat().st_size) for f in self.path.rglob("*") if f.is_file())
        assert now == files, "sync writes no file of the table"
        self.look(expected)
        self.held = expected
        self.mark()

    def partitions(self, table: str) -> dict[str, ttypes.Partition]:
        names = self.client.get_partition_names(self.name.schema, table)
        found = self.client.get_partitions_by_names(self.name.schema, table, names)
        return {p.sd.location.partition(f"{self.path}/")[2]: p for p in found.partitions}

    def mark(self) -> None:
        """Others set a property of a record and of one of its partitions."""
        table = self.draw.choice(["t", "t_ro", "t_rt"] if self.kind == MOR else ["t"])
        record = self.client.get_table(self.name.schema, table)
        value = str(next(_numbers))
        record.parameters["rival"] = self.marks[table, None] = value
        self.client.alter_table(self.name.schema, table, record)
        held = self.partitions(table)
        if held:
            path = self.draw.choice(sorted(held))
            held[path].parameters["rival"] = self.marks[table, path] = value
            context = {"DO_NOT_UPDATE_STATS": "true"}
            self.client.alter_partitions(self.name.schema, table, [held[path]], context)

    def look(self, expected: set[str]) -> None:
        """What others set is still there, but for partitions that were dropped."""
        for (table, path), value in list(self.marks.items()):
            if path is not None and path not in self.held & expected:
                del self.marks[table, path]
                continue
            record = self.client.get_table(self.name.schema, table)
            found = record if path is None else self.partitions(table)[path]
            assert found.parameters.get("rival") == value, (table, path)


@pytest.mark.parametrize("kind", [COW, MOR])
def test_records_follow_a_live_writer(
    metastore: RunningMetastore, story: HudiStory, spark: Path, tmp_path: Path, kind: str
) -> None:
    steps = _STEPS[kind]
    kills = {
        steps // 3: "upsert",
        2 * steps // 3: "insert" if kind == MOR else "delete_partition",
    }
    with metastore.client() as client:
        writer = Writer(story, client, tmp_path / "t", kind, seed(1))
        writer.write("insert", ["2024-01-01", "2024-01-02"])
        writer.sync()
        for step in range(steps):
            writer.step()
            if step in kills:
                with HudiStory(spark, _VERSIONS[0], tmp_path / f"killed{step}") as other:
                    writer.be_killed(other, kills[step])
                writer.sync()
            if writer.draw.randrange(3):
                writer.sync()
        writer.sync()
    print(dict(sorted(writer.seen.items())))
    assert writer.seen["refused"] <= steps / 4
    assert writer.seen["partitions dropped"] and writer.seen["partitions added"]
    assert writer.seen["compared changes"] and writer.seen["killed"]
