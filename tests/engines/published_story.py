"""The story of a published table on a store: clustered, published, written by path, reverted."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.app.api.session import Session
from bridge.clustering.commands import run as cluster
from bridge.clustering.commands.places import MetastorePlaces
from bridge.clustering.commands.publish import (
    accept,
    clean,
    list_left_files,
    originals,
    publish,
    revert,
)
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, STRING
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.storage.port import Storage
from bridge.table.model import CatalogTable, Column, Partition, TableName

COLUMNS = (Column("x", BIGINT), Column("s", STRING))
Answer = tuple[int, int]


def tell(
    settings: Mapping[str, str], storage: Storage, name: str, root: str, stock: Callable[[], Answer]
) -> None:
    """Asserts that a stock reader and the planner see every row once after each step.

    Args:
        settings: of the store, and the metastore's address.
        root: URI of an empty directory, whose table is made here.
        stock: asks for ``count(*), sum(x)``.
    """
    given = {**settings, "clustering.settled": "0s"}
    config = Config({key: Setting(value, "test") for key, value in given.items()})
    full = TableName(*name.split("."))
    committed: list[int] = []

    def put(directory: str, file: str, first: int) -> None:
        x = list(range(first, first + 100))
        sink = io.BytesIO()
        pq.write_table(pa.table({"x": x, "s": [f"s{v % 7}" for v in x]}), sink)
        storage.put(f"{directory}/{file}.parquet", sink.getvalue())

    def check() -> None:
        expected = (len(committed), sum(committed))
        assert stock() == expected
        with Session(config) as session:
            found = session.table(name).scan(columns=["x"]).to_arrow()["x"].to_pylist()
        assert (len(found), sum(found)) == expected

    def clustered() -> None:
        strategy = Strategy("linear", ("x",), "time", Limits())
        made = cluster.schedule(config, name, strategy, print)
        done = cluster.run(config, name, made["instant"], local=True, progress=_quiet)
        assert done["state"] == "completed" and not done["rejected"], done["rejected"]

    def published() -> dict[str, object]:
        return publish(config, name, local=True, progress=_quiet, say=print)

    def reverted() -> object:
        return revert(config, name, ["day=1"], local=True, progress=_quiet, say=print)["published"]

    def place() -> str:
        uri = config.text("metastore.uri")
        with MetastoreClient(uri) as client, HiveCatalog(client) as catalog:
            return MetastorePlaces(catalog, table, "").all()["day=1"]

    days = [f"{root}/day=1", f"{root}/day=2"]
    for number, day in enumerate(days):
        for i in range(4):
            put(day, f"f{i}", number * 400 + i * 100)
    committed += range(800)
    table = CatalogTable(full, COLUMNS, (Column("day", STRING),), root)
    parts = [Partition(d.rpartition("/")[2], (d[-1],), d) for d in days]
    with MetastoreClient(config.text("metastore.uri")) as client:
        client.create_database(full.schema)
        register_table(client, full, table, parts)
    index_table(config, name, local=True, progress=_quiet, say=print)
    check()
    clustered()
    put(days[0], "unclustered", 1000)
    committed += range(1000, 1100)
    check()
    assert sorted(published()["published"]) == ["day=1", "day=2"]  # type: ignore[call-overload]
    first = place()
    assert "/.skipbridge_clustered/published-" in first
    check()
    put(days[0], "late", 2000)  # by a writer that knows the old directory
    check()
    (late,) = list_left_files(config, name)
    assert late["path"] == f"{days[0]}/late.parquet" and "INSERT INTO" in late["statement"]
    assert published()["left"] == [late]
    put(first, "more", 4000)
    committed += range(4000, 4100)
    clustered()
    assert published()["published"] == ["day=1"] and place() != first
    check()
    assert reverted() == ["day=1"] and place() == first
    check()
    clustered()
    assert published()["published"] == ["day=1"] and place() != first
    check()
    accept(config, name, [late["path"]])
    assert not list_left_files(config, name)
    time.sleep(1.1)  # generations of this second by a store's clock stay, whatever is asked for
    clean(config, name, -5.0, dry_run=False)
    check()
    listed = originals(config, name, -5.0)["files"]
    assert len(listed) >= 10 and late["path"] not in listed
    for uri in listed:
        storage.delete(uri)
    check()
    assert not list_left_files(config, name) and not published()["published"]
    check()


def _quiet(done: int, total: int) -> None:
    """No progress is shown."""
