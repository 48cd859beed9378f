"""Index kinds built by a real Spark: what threads gather, over files that Spark wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bridge.expression.nodes import BoundPredicate, BoundReference, Op
from bridge.index.kinds import registry
from bridge.index.kinds.registry import kind
from bridge.indexing.spark_build import SparkCollector
from bridge.kernel.types import BIGINT, DATE, INTEGER, STRING, TRINO, Type, Value, decimal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from tests.support.lake import Lake, age

pytestmark = [pytest.mark.full, pytest.mark.engine]
SQL = """
select cast(pmod(hash(id), 100000) as int) as h, id, concat('User ', pmod(hash(id), 1000)) as name,
       cast(pmod(id, 3) * 1.5 as decimal(20, 3)) as m,
       date_add(date '2024-01-01', cast(id as int)) as day
from range({}, {}, 1, 1)
"""
DEFINITIONS = [("bloom", "h"), ("bloom", "name"), ("bloom", "m"), ("bloom", "day"), ("values", "m")]


def never(lake: Lake, name: str, type: Type, *values: Value, op: Op = Op.EQ) -> list[bool]:
    serving = lake.snapshot()
    (column, *_) = name.partition(":")
    found = [k for k in serving.kinds if k.definition.on == column]
    predicate = BoundPredicate(op, BoundReference((column,), type), values)
    result = np.zeros(serving.num_files, np.bool_)
    for opened in found:
        answer = opened.never(predicate, np.arange(serving.num_files), TRINO)
        assert opened.problem is None
        result |= False if answer is None else answer
    return result.tolist()


def test_spark_gathers_what_threads_gather(spark_session: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, recursive=True)
    spark_session.conf.set("parquet.bloom.filter.enabled#h", "false")
    for i in range(6):
        writer = spark_session.sql(SQL.format(i * 50, i * 50 + 50)).write.mode("append")
        if i % 2:  # filters of parquet-mr, to be lifted
            writer = writer.option("parquet.bloom.filter.enabled#name", "true")
            writer = writer.option("parquet.bloom.filter.expected.ndv#name", "50")
        writer.parquet(lake.location)
    for path in lake.path("").glob("*.parquet"):
        age(path)
    definitions = [kind(name).define(column) for name, column in DEFINITIONS]
    report = lake.build(
        collector=SparkCollector(spark_session), settings=lambda held: held.adding(definitions)
    )
    assert (report.files, report.read, report.failed) == (6, 6, ())
    by_spark = {k.name: k.payload() for k in lake.snapshot().kinds}
    lake.build(full=True)
    by_threads = {k.name: k.payload() for k in lake.snapshot().kinds}
    for name, payload in by_spark.items():
        other = by_threads[name]
        assert payload is not None and other is not None
        assert payload.rows.drop_columns(_places(payload.rows)).equals(
            other.rows.drop_columns(_places(other.rows))
        ), name
    written = spark_session.read.parquet(lake.location)
    rows = written.selectExpr("*", "input_file_name() as file").collect()
    files = sorted({row["file"] for row in rows})
    asked: list[tuple[str, Type]] = [("h", INTEGER), ("name", STRING), ("day", DATE)]
    skipped = 0
    for row in rows[::10]:
        holders = {name: {r["file"] for r in rows if r[name] == row[name]} for name, _ in asked}
        for name, type in asked:
            value = row[name]
            if name == "day":
                value = value.toordinal() - 719_163
            answers = never(lake, name, type, value.encode() if name == "name" else value)
            for file, answer in zip(files, answers, strict=True):
                assert not (answer and file in holders[name]), (name, row)
            skipped += sum(answers)
    assert skipped > 200
    # The long decimals are 9 bytes wide in Spark's files, and 1.5, 3.0 and 0.0 in each of them.
    assert never(lake, "m", decimal(20, 3), 1500) == [False] * 6
    assert never(lake, "m", decimal(20, 3), 1600) == [True] * 6
    assert never(lake, "m", decimal(22, 3), 0, 1500, 3000, op=Op.NOT_IN) == [True] * 6
    lifted = by_spark["bloom(name)"]
    assert lifted is not None
    assert sorted(lifted.rows["longest"].to_pylist())[:3] == [-1, -1, -1]
    assert never(lake, "id", BIGINT, 5) == [False] * 6


def _places(rows: object) -> list[str]:
    return [n for n in rows.column_names if n in ("body_offset", "body_row")]  # type: ignore[attr-defined]


FOREIGN = '''
import pyarrow as pa
from bridge.index.kinds.kind import IndexKind


class Heights(IndexKind):
    """The number of distinct values, to see that it came along."""

    name = "heights"
    schema = pa.schema([pa.field("height", pa.int64(), nullable=False)])

    def gather(self, definition, file):
        return Gathering(file.leaf((definition.on,)))


class Gathering:
    def __init__(self, leaf):
        self.leaves, self.height = (leaf,), 0

    def update(self, arrays):
        self.height = max(self.height, len(arrays.distinct(self.leaves[0])))

    def finish(self):
        return [{"height": self.height}]


KIND = Heights()
'''


def test_a_kind_of_another_distribution_goes_to_the_executors(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_heights.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(str(tmp_path))
    import acme_heights  # type: ignore[import-not-found]

    known = {**registry.kinds(), "heights": acme_heights.KIND}
    monkeypatch.setattr(registry, "kinds", lambda: known)
    lake = Lake(tmp_path, recursive=True)
    for i in range(4):
        lake.write(f"f{i}", {"x": list(range(i + 1)) * 2})
    lake.build(
        collector=SparkCollector(spark_session),
        settings=lambda held: held.adding([acme_heights.KIND.define("x")]),
    )
    (opened,) = lake.snapshot().kinds
    rows = opened._load().rows
    assert rows["height"].to_pylist() == [1, 2, 3, 4]
