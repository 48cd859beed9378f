"""Many small tables with many columns, each with an index of its own."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.index.building.build import build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.store import IndexStore
from bridge.kernel.types import BIGINT
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.storage.routed import open_storage
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.support.directories import in_directories

SCHEMA = "many"
_MADE = 40
"""Tables whose index is built; the others are copies, each with its own checksum."""


def many_tables(root: Path, count: int, columns: int) -> list[CatalogTable]:
    """Makes the tables' files and indexes. Each file has the rows 0 to 9 in each column."""
    made = [_made(root, n, columns) for n in range(min(_MADE, count))]
    with ThreadPoolExecutor(8) as pool:
        made += pool.map(lambda n: _copy(root, n, made[n % _MADE]), range(len(made), count))
    return made


def register_all(uri: str, tables: list[CatalogTable]) -> None:
    with MetastoreClient(uri) as client, ThreadPoolExecutor(4) as pool:
        client.create_database(SCHEMA)
        list(pool.map(lambda table: register_table(client, table.name, table, []), tables))


def _table(root: Path, number: int, columns: tuple[Column, ...]) -> CatalogTable:
    directory = root / f"t{number:04}"
    return CatalogTable(
        TableName(SCHEMA, directory.name), columns, (), f"file://{directory}", "parquet"
    )


def _made(root: Path, number: int, columns: int) -> CatalogTable:
    names = [f"c{number}_{i}" for i in range(columns)]
    table = _table(root, number, tuple(Column(name, BIGINT) for name in names))
    directory = Path(table.location.removeprefix("file://"))
    directory.mkdir(parents=True)
    pq.write_table(pa.table({name: pa.array(range(10)) for name in names}), directory / "f.parquet")
    os.utime(directory / "f.parquet", (1_700_000_000, 1_700_000_000))
    storage = open_storage()
    build_index(
        table,
        in_directories([Partition("", (), table.location)], storage),
        IndexStore(storage, f"{table.location}/.skipbridge"),
        collector=ThreadCollector(storage),
    )
    return table


def _copy(root: Path, number: int, source: CatalogTable) -> CatalogTable:
    table = _table(root, number, source.columns)
    directory = Path(table.location.removeprefix("file://"))
    origin = Path(source.location.removeprefix("file://"))
    shutil.copytree(origin, directory)
    store = IndexStore(open_storage(), f"{table.location}/.skipbridge")
    manifest = store.latest()
    assert manifest is not None
    own = replace(manifest, builder=table.name.table, location=table.location)
    (directory / f".skipbridge/generations/{manifest.generation}.json").write_bytes(own.to_bytes())
    return table
