"""Spark's statements on published tables: it reads and writes across switches and reverts."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bridge
from bridge.app.cli.main import cli
from bridge.clustering.commands.publish import accept, list_left_files, revert
from tests.engines.conftest import RunningMetastore
from tests.engines.stock_readers import RunningSpark
from tests.engines.test_publishing import put
from tests.engines.test_publishing_others import Published

pytestmark = [pytest.mark.full, pytest.mark.engine]


class Story:
    """A published table, Spark, and the rows that each reader must see.

    Attributes:
        partition: the name of the partition that is written; empty: the table has none.
    """

    def __init__(self, found: Published, spark: RunningSpark, scratch: Path) -> None:
        self.found, self.spark, self._scratch = found, spark, scratch
        self.name = str(found.name)
        self.partition = next(iter(found.homes))
        self._into = "PARTITION (day='1')" if self.partition else ""
        self.rows = Counter(range(400 * len(found.homes)))

    def check(self) -> None:
        """Spark and the Python API read each row as often as it was written."""
        self.spark.ask(f"REFRESH TABLE {self.name}")
        seen = self.spark.ask(f"SELECT x FROM {self.name}")
        assert Counter(x for (x,) in seen) == self.rows
        with bridge.connect(metastore_uri=self.found.metastore.uri) as session:
            of_api = session.table(self.name).scan(columns=["x"]).to_arrow()["x"].to_pylist()
        assert Counter(of_api) == self.rows

    def begin(self, statement: str) -> Path:
        """Begins a statement, and waits until it runs.

        Args:
            statement: with ``{}`` for the second argument of ``pause``.

        Returns:
            What lets it go on as soon as it is there.
        """
        place = self._scratch / f"pause{len(list(self._scratch.glob('pause*')))}"
        place.mkdir()
        self.spark.begin(statement.format(f"'{place}'"))
        while not (place / "begun").exists():
            assert self.spark.is_alive
            time.sleep(0.05)
        return place / "go"

    def begin_append(self, x: int) -> Path:
        return self.begin(f"INSERT INTO {self.name} {self._into} SELECT pause({x}, {{}}), 'late'")

    def append(self, x: int) -> None:
        self.spark.ask(f"INSERT INTO {self.name} {self._into} SELECT {x}, 'in time'")
        self.rows[x] += 1

    def reverted(self) -> list[str]:
        made = revert(
            self.found.config,
            self.name,
            [self.partition] if self.partition else (),
            local=True,
            settled=0.0,
            progress=lambda *_: None,
            say=print,
        )
        return list(made["published"])

    def bring_over(self, go: Path, x: int) -> None:
        """Lets an append end whose directory was left; its row is named, with what brings it over.

        In the order of the listing: the INSERT, then `cluster accept`.
        """
        go.touch()
        self.spark.end()
        self.check()
        shown = CliRunner().invoke(
            cli, ["cluster", "show", self.name], env={"SKIPBRIDGE_METASTORE_URI": self.uri}
        )
        (late,) = list_left_files(self.found.config, self.name)
        assert shown.exit_code == 3, shown.output
        assert late["path"] in shown.output and late["statement"] in shown.output
        self.spark.ask(late["statement"].rstrip(";"))
        self.rows[x] += 1
        self.check()
        accept(self.found.config, self.name, [late["path"]])
        assert not list_left_files(self.found.config, self.name)

    @property
    def uri(self) -> str:
        return self.found.metastore.uri


@pytest.mark.parametrize("partitioned", [False, True])
def test_no_row_is_lost_by_statements_that_begin_before_a_switch_and_end_after_it(
    metastore_401: RunningMetastore, own_spark: RunningSpark, tmp_path: Path, partitioned: bool
) -> None:
    name = "spark_parts" if partitioned else "spark_whole"
    story = Story(Published(metastore_401, name, tmp_path / "t", partitioned), own_spark, tmp_path)
    found = story.found
    story.check()
    found.clustered()
    story.check()

    go = story.begin(f"SELECT pause(x, {{}}) FROM {story.name}")
    assert sorted(found.published()) == sorted(found.homes)
    go.touch()
    assert Counter(x for (x,) in own_spark.end()) == story.rows
    story.check()

    story.append(8000)
    there = Path(found.places()[story.partition].removeprefix("file://"))
    for first in (5000, 6000):
        put(there / f"f{first}.parquet", first, 100)
        story.rows.update(range(first, first + 100))
    found.clustered()
    assert found.published() == [story.partition]
    story.check()

    go = story.begin_append(9000)
    assert story.reverted() == [story.partition]
    story.bring_over(go, 9000)
    found.clustered()
    go = story.begin_append(9001)
    assert found.published() == [story.partition]
    story.bring_over(go, 9001)


@pytest.mark.parametrize("name", ["a[1] {b,c}*?", "back\\slash", "tick`s", "it's % 41 #é"])
def test_a_listed_file_of_any_name_and_of_fewer_columns_is_brought_over(
    metastore_401: RunningMetastore, own_spark: RunningSpark, tmp_path: Path, name: str
) -> None:
    found = Published(metastore_401, f"odd_{name.encode().hex()}", tmp_path / "t", True)
    story = Story(found, own_spark, tmp_path)
    story.found.clustered()
    assert sorted(story.found.published()) == ["day=1", "day=2"]
    home = story.found.root / "day=1"
    pq.write_table(pa.table({"X": [9002]}), home / f"{name}.parquet")
    pq.write_table(pa.table({"x": [9003]}), home / f"{name}.1.parquet")
    for _ in range(2):
        late = list_left_files(story.found.config, story.name)[0]
        own_spark.ask(late["statement"].rstrip(";"))
        accept(story.found.config, story.name, [late["path"]])
    story.rows += Counter([9002, 9003])
    story.check()
    assert not list_left_files(story.found.config, story.name)


def test_a_listed_file_of_the_null_partition_is_brought_over(
    metastore_401: RunningMetastore, own_spark: RunningSpark, tmp_path: Path
) -> None:
    found = Published(metastore_401, "of_null", tmp_path / "t", True, [None, "it's"])
    story = Story(found, own_spark, tmp_path)
    found.clustered()
    assert sorted(found.published()) == sorted(found.homes)
    for number, home in enumerate(found.homes.values()):
        put(home / "late.parquet", 9000 + number, 1)
    for late in list_left_files(found.config, story.name):
        own_spark.ask(late["statement"].rstrip(";"))
        accept(found.config, story.name, [late["path"]])
    story.rows += Counter([9000, 9001])
    assert not list_left_files(found.config, story.name)
    story.check()
