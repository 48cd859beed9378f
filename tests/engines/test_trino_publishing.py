"""Published tables in Trino: the connector and Trino's hive connector read the same files."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.commands import run as cluster
from bridge.clustering.commands.publish import clean, originals, publish
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, STRING
from bridge.table.model import Column
from tests.engines.published_story import tell
from tests.engines.stack import Stack, register
from tests.engines.store_stack import PUBLISHED, Stores
from tests.support.versitygw import BUCKET

pytestmark = [pytest.mark.full, pytest.mark.engine]
QUERY = "SELECT count(*), sum(x), min(s), max(s) FROM laws.published WHERE {}"
PREDICATES = ("true", "x BETWEEN 100 AND 200", "s = 's7'", "x > 3990 OR s IS NULL")


def test_both_connectors_read_the_published_files(stack: Stack, tmp_path: Path) -> None:
    root = tmp_path / "published"
    root.mkdir()
    for i in range(8):
        x = list(range(i, 4000, 8))
        s = [None if v % 500 == 3 else f"s{v % 97}" for v in x]
        pq.write_table(pa.table({"x": x, "s": s}), root / f"{i}.parquet", row_group_size=100)
    register(stack, "published", root, (Column("x", BIGINT), Column("s", STRING)))
    before = {p: stack.query(QUERY.format(p)) for p in PREDICATES}
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    size = sum(file.stat().st_size for file in root.glob("*.parquet"))
    strategy = Strategy("linear", ("x",), "overlap", Limits(target=size // 4))
    made = cluster.schedule(config, "laws.published", strategy, print)
    cluster.run(config, "laws.published", made["instant"], local=True, progress=lambda *_: None)
    done = publish(
        config,
        "laws.published",
        local=True,
        settled=0.0,
        progress=lambda *_: None,
        say=lambda text: None,
    )
    assert done["published"] == [""] and not done["kept"]
    time.sleep(1.1)
    clean(config, "laws.published", -5.0, dry_run=False)
    listed = originals(config, "laws.published", -5.0)["files"]
    assert len(listed) == 8
    for uri in listed:
        Path(uri.removeprefix("file://")).unlink()
    time.sleep(2.5)  # planners look for generations every second
    for catalog in ("bridge", "hive"):
        paths = stack.query('SELECT DISTINCT "$path" FROM laws.published', catalog=catalog)
        assert paths and all("/published-" in path for (path,) in paths)
        assert before == {p: stack.query(QUERY.format(p), catalog=catalog) for p in PREDICATES}
    assert stack.kept_files(f"{QUERY.format('x BETWEEN 100 AND 200')} AND s <> ''") == 1


def test_the_story_on_s3(stores: Stores) -> None:
    """Trino's hive connector reads the store through a proxy that delays its answers."""

    def stock() -> tuple[int, int]:
        ((count, total),) = stores.query(f"SELECT count(*), sum(x) FROM lake.{PUBLISHED}", "hive")
        assert isinstance(count, int) and isinstance(total, int)
        return count, total

    name, root = f"lake.{PUBLISHED}", f"s3://{BUCKET}/{PUBLISHED}"
    tell(stores.settings, stores.storage, name, root, stock)
