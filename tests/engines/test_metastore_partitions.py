"""Predicates on partition keys: typed values, over partitions as real metastores hold them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from bridge.expression.bind import bind
from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import TRINO, Field
from bridge.metastore._gen import ttypes
from bridge.metastore.batches import BatchSettings
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.client import MetastoreClient
from bridge.planner.partitions import select_partitions
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import LOOPBACK
from bridge.table.model import TableName
from bridge.table.partition import NULL_MARKER
from tests.engines.test_metastore import Shop, shop

__all__ = ["shop"]

INTS = ["1", "01", "+1", "-7", "10", "2147483648", "x", NULL_MARKER]
DATES = ["2024-02-29", "2024-03-01", "1969-12-31", "2024-3-1", NULL_MARKER]
TEXTS = ["1", "01", "a%b", "a_b", "A", NULL_MARKER]
CASES = [
    # What does not parse as the key's type is unknown, and kept.
    ("i = 1", "i", {"1", "01", "+1", "2147483648", "x"}),
    ("i <> 1", "i", {"-7", "10", "2147483648", "x"}),
    ("i BETWEEN -10 AND 0", "i", {"-7", "2147483648", "x"}),
    ("i IN (10, 11)", "i", {"10", "2147483648", "x"}),
    ("i IS NULL", "i", {NULL_MARKER, "2147483648", "x"}),
    ("i IS NOT NULL", "i", {*INTS} - {NULL_MARKER}),
    ("d = DATE '2024-03-01'", "d", {"2024-03-01", "2024-3-1"}),
    ("d < DATE '1970-01-01'", "d", {"1969-12-31", "2024-3-1"}),
    ("d IS NULL", "d", {NULL_MARKER, "2024-3-1"}),
    ("s = '1'", "s", {"1"}),
    ("s = '01'", "s", {"01"}),
    ("s LIKE 'a%'", "s", {"a%b", "a_b"}),
    ("s = 'a'", "s", set()),
    ("s IS NULL", "s", {NULL_MARKER}),
]


def test_typed_predicates(shop: Shop) -> None:
    keys = [("i", "int"), ("d", "date"), ("s", "string")]
    declared = [ttypes.FieldSchema(name, type_, "") for name, type_ in keys]
    shop.table("typed", partitionKeys=declared)
    combinations = list(itertools.product(INTS, DATES, TEXTS))
    here = (shop.root / "data").as_uri()
    (shop.root / "data").mkdir()
    for begin in range(0, len(combinations), 60):
        parts = [
            shop.partition("typed", list(values), here)
            for values in combinations[begin : begin + 60]
        ]
        shop.client.add_partitions(shop.name, "typed", parts)
    catalog = HiveCatalog(shop.client, BatchSettings(start=50))
    table = catalog.table(TableName(shop.name, "typed"))
    names = catalog.partition_names(table)
    assert len(names) == len(combinations)
    position = {name: i for i, (name, _) in enumerate(keys)}
    for where, key, wanted in CASES:
        predicate = bind(
            parse_where(where)[0],
            [Field(c.name, c.type) for c in table.columns],
            [Field(c.name, c.type) for c in table.partition_keys],
            TRINO,
        )
        kept = select_partitions(names, table.partition_keys, predicate, TRINO).names
        found = [p for b in catalog.partitions(table, kept) for p in b.partitions]
        assert [p.name for p in found] == kept, where
        expected = {c for c in combinations if c[position[key]] in wanted}
        assert {tuple(v or NULL_MARKER for v in p.values) for p in found} == expected, where


@pytest.mark.full
@pytest.mark.parametrize("dead", [0, 1])
def test_a_second_metastore_takes_over(tmp_path: Path, dead: int) -> None:
    """Two metastores over one Derby server are not to be had here: two that hold the same names."""
    specs = [MetastoreSpec(tmp_path / str(i), port=0, in_memory=True) for i in (0, 1)]
    with start_embedded_metastore(specs[0]) as first, start_embedded_metastore(specs[1]) as second:
        servers = [first, second]
        for server in servers:
            with MetastoreClient(f"{LOOPBACK}:{server.port}") as client:
                here = Shop(client, tmp_path, "both")
                here.table("t", "p")
                parts = [here.partition("t", [str(i)]) for i in range(50)]
                client.add_partitions("both", "t", parts)
        uris = ",".join(f"thrift://{LOOPBACK}:{s.port}" for s in servers)
        with MetastoreClient(uris) as client:
            catalog = HiveCatalog(client, BatchSettings(start=5, cap=5, adapt=False))
            table = catalog.table(TableName("both", "t"))
            names = catalog.partition_names(table)
            stream = catalog.partitions(table, names)
            fetched = [p.name for p in next(stream).partitions]
            servers[dead].kill()
            fetched += [p.name for batch in stream for p in batch.partitions]
            assert fetched == names and len(names) == 50
