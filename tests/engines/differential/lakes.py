"""The tables that are asked: one that changes after its index is built, one that does not, and one
without partitions.
"""

from __future__ import annotations

import random
from pathlib import Path

from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import index_table
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import _add_partitions, thrift_table
from bridge.table.model import Partition, TableName
from tests.engines.differential.table import SPECS, RandomTable, Taste, Writer
from tests.engines.hive_stack import age

SCHEMA = "differential"


def build(
    root: Path, uri: str, name: str, seed: str, taste: Taste, files: int, partitions: int = 0
) -> RandomTable:
    """Writes, registers, indexes and, unless it is called ``still``, changes a table."""
    rng = random.Random(f"{seed} {name}")
    lake = RandomTable(
        root / name, TableName(SCHEMA, name), rng, partitions > 0, Writer(rng, taste)
    )
    if name.startswith("still"):
        lake.properties["skipbridge.freshness"] = "snapshot"
    lake.add_partitions(partitions)
    lake.add_files(files, "old")
    age(lake.root)
    with MetastoreClient(uri) as client:
        if SCHEMA not in client.get_all_databases():
            client.create_database(SCHEMA)
        told = thrift_table(lake.name, lake.table)
        told.parameters |= lake.properties
        client.create_table(told)
        _register(client, lake, lake.partitions)
        report = index_table(
            lake.config(uri),
            str(lake.name),
            nan=rng.choice(["scan", "scan", "footer"]),
            local=True,
            asked=_indexes(rng),
            progress=lambda done, total: None,
            say=lambda text: None,
        )
        assert report["files"], report
        if "skipbridge.freshness" not in lake.properties:
            if partitions:
                _register(client, lake, lake.add_partitions(2))
            lake.change()
    return lake


def _register(client: MetastoreClient, lake: RandomTable, partitions: list[Partition]) -> None:
    if lake.partitioned:
        _add_partitions(client, lake.name, lake.table, partitions, lambda done, total: None)


def _indexes(rng: random.Random) -> RequestedIndexes:
    """Indexes of all kinds, on most of the columns each."""

    def some(*columns: str) -> list[str]:
        return [c for c in columns if rng.random() < 0.75]

    plain = [s.name for s in SPECS if s.name not in ("flag", "raw", "fixed", "lat", "lon")]
    kinds = [("values", c) for c in some(*plain, "st.a", "st.b", "home.city")]
    kinds += [("bloom", c) for c in some(*plain, "st.b", "work.city")]
    functions = ("lower(name)", "upper(note)", "substring(name, 1, 2)", "year(ts)", "month(day)")
    kinds += [("expression", f) for f in some(*functions, "num % 7", "date_trunc('day', ts)")]
    kinds += [("bloom", f) for f in some("lower(name)", "upper(code)")]
    kinds += [("geo", "lat,lon"), ("ndv", "*")]
    modes = some("note=truncate(4)", "raw=none", "code=counts")
    return RequestedIndexes(tuple(kinds), tuple(modes))
