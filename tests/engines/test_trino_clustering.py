"""A clustered table in Trino: the new files through the connector, the old ones beside it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.commands import run as cluster
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, STRING
from bridge.table.model import Column
from tests.engines.stack import Stack, register

pytestmark = [pytest.mark.full, pytest.mark.engine]
QUERY = "SELECT count(*), sum(x), min(s), max(s), count(DISTINCT s) FROM laws.clustered WHERE {}"
PREDICATES = ("true", "x BETWEEN 100 AND 200", "s = 's7'", "x > 3990 OR s IS NULL")


def test_the_same_rows_from_fewer_files(stack: Stack, tmp_path: Path) -> None:
    root = tmp_path / "clustered"
    root.mkdir()
    for i in range(8):
        x = list(range(i, 4000, 8))
        s = [None if v % 500 == 3 else f"s{v % 97}" for v in x]
        pq.write_table(pa.table({"x": x, "s": s}), root / f"{i}.parquet", row_group_size=100)
    register(stack, "clustered", root, (Column("x", BIGINT), Column("s", STRING)))
    before = {p: stack.query(QUERY.format(p)) for p in PREDICATES}
    assert before == {p: stack.query(QUERY.format(p), catalog="hive") for p in PREDICATES}
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    size = sum(file.stat().st_size for file in root.glob("*.parquet"))
    strategy = Strategy("linear", ("x",), "overlap", Limits(target=size // 4))
    made = cluster.schedule(config, "laws.clustered", strategy, print)
    done = cluster.run(
        config, "laws.clustered", made["instant"], local=True, progress=lambda *_: None
    )
    assert (done["state"], done["old_files"], done["rejected"]) == ("completed", 8, [])
    time.sleep(2.5)  # planners look for generations every second
    paths = stack.query('SELECT DISTINCT "$path" FROM laws.clustered')
    assert paths and all(".skipbridge_clustered" in path for (path,) in paths)
    assert before == {p: stack.query(QUERY.format(p)) for p in PREDICATES}
    assert stack.kept_files(f"{QUERY.format('x BETWEEN 100 AND 200')} AND s <> ''") == 1
    assert before == {p: stack.query(QUERY.format(p), catalog="hive") for p in PREDICATES}
    first = stack.query("SELECT x FROM laws.clustered ORDER BY x DESC LIMIT 3")
    assert first == [[3999], [3998], [3997]]
    # A writer replaces one old file: its group falls back to what is listed.
    pq.write_table(pa.table({"x": [-1], "s": ["new"]}), root / "3.parquet")
    os.utime(root / "3.parquet", (time.time() - 30, time.time() - 30))
    assert stack.query("SELECT count(*), min(x) FROM laws.clustered") == [[3501, -1]]
