"""Views built by a real Spark: over files that Spark wrote, the rows that threads write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import bridge
from bridge.kernel.config import Config
from bridge.segments.commands import add, indexes, tables, views
from tests.support.exact_rows import exact_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.full, pytest.mark.engine]
SQL = """
select id, concat('n', pmod(hash(id), 9)) as name, cast(pmod(id, 5) * 1.5 as decimal(10, 2)) as m,
       date_add(date '2024-01-01', cast(pmod(hash(id), 90) as int)) as day,
       cast(timestamp_seconds(id) as timestamp_ntz) as at,
       if(id % 3 = 0, double('NaN'), -0.0D) as rate, array(id, null) as l,
       named_struct('x', id, 'y', map('k', 'v')) as s
from range(0, 400, 1, 4)
"""
COLUMNS = [
    ("id", "bigint"),
    ("name", "string"),
    ("m", "decimal(10,2)"),
    ("day", "date"),
    ("at", "timestamp"),
    ("rate", "double"),
    ("l", "array<bigint>"),
    ("s", "struct<x:bigint,y:map<string,string>>"),
]


def test_spark_builds_what_threads_build(spark_session: SparkSession, tmp_path: Path) -> None:
    spark_session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spark_session.sql(SQL).write.parquet(str(tmp_path / "facts"))
    for path in (tmp_path / "facts").glob("*.parquet"):
        os.utime(path, (1.7e9, 1.7e9))
    config, table = Config(), str(tmp_path / "t")
    tables.create_table(config, table, format="parquet", columns=COLUMNS)
    for name, local in (("spark", False), ("threads", True)):
        views.create_view(
            config,
            table,
            name=name,
            columns=["*"],
            sort_by=["day", "id"],
            properties={"SORT_SCOPE": "GLOBAL_SORT"},
            deferred=True,
            local=local,
        )
    paths = [str(tmp_path / "facts")]
    add.add_segment(config, table, paths=paths, spark=spark_session)
    views.rebuild_view(config, table, name="spark", spark=spark_session)
    facts = bridge.connect().table(table).scan(pruning=False).to_arrow()
    assert len(facts) == 400
    for name in ("spark", "threads"):
        views.rebuild_view(config, table, name=name, local=True)
        for other in ("spark", "threads"):
            views.enable_view(config, table, name=other, enabled=other == name)
        scan = bridge.connect().table(table).scan()
        stages = {stage["index"] for stage in scan.explain().to_dict()["stages"]}
        assert f"view({name})" in stages
        assert exact_rows(scan.to_arrow()) == exact_rows(facts)
        days = scan.to_arrow()["day"].to_pylist()
        assert days == sorted(days)


def test_directories_that_spark_wrote_are_columns(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    """With indexes and a view that Spark builds: NULL, escapes and types as Spark reads them."""
    odd = "select id, if(id % 7 = 0, null, concat('a/b=%', id % 3)) as k, m, day from (" + SQL + ")"
    rows = spark_session.sql(odd).where("id % 5 = 0")
    where = str(tmp_path / "facts")
    rows.write.partitionBy("day", "k").parquet(where)
    for path in (tmp_path / "facts").rglob("*.parquet"):
        os.utime(path, (1.7e9, 1.7e9))
    config, table = Config(), str(tmp_path / "t")
    columns = [("id", "bigint"), ("m", "decimal(10,2)")]
    tables.create_table(config, table, format="parquet", columns=columns)
    indexes.create_index(config, table, name="m", kind="minmax", spark=spark_session)
    views.create_view(config, table, name="v", columns=["id"], sort_by=["id"], spark=spark_session)
    add.add_segment(config, table, paths=[where], spark=spark_session)
    found = tables.describe(config, table)["partition_columns"]
    assert [(c["name"], c["type"]) for c in found] == [("day", "date"), ("k", "string")]
    told = spark_session.read.schema("id bigint, m decimal(10,2), day date, k string").parquet(
        where
    )
    for condition in ("id < 90", "k IS NULL", "k = 'a/b=%1'", "day > date '2024-02-01'"):
        wanted = sorted(tuple(r) for r in told.where(condition).select("id", "day").collect())
        for names in (["id", "day"], ["id", "day", "m"]):  # of the view, and of the facts
            scan = bridge.connect().table(table).scan(condition, columns=names)
            mine = [(r["id"], r["day"]) for r in scan.to_arrow().to_pylist()]
            assert sorted(mine) == wanted and wanted
            report = scan.explain()
            assert report.files_kept < len(list((tmp_path / "facts").rglob("*.parquet")))
