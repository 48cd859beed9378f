"""Tables of segments that a real Hive and a real Trino read, each with a planner of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.runtime.compose import storage_of
from bridge.segments.commands import add, tables
from bridge.segments.commands.registration import register
from bridge.storage.uri import canonical
from bridge.table.model import CatalogTable, TableName
from bridge.table.segments.format import NAME, segment_table
from bridge.table.segments.log import SegmentLog
from tests.engines.hive_stack import FETCH, HookedHive
from tests.engines.stack import Stack

COLUMNS = [("id", "int"), ("name", "string"), ("price", "decimal(10,2)")]


class SegmentWorld:
    """A Hive, a Trino and a planner for each over the same logs; their metastores differ."""

    def __init__(self, hive: HookedHive, stack: Stack, root: Path, schema: str) -> None:
        self.hive, self.stack, self.root, self.schema = hive, stack, root, schema
        self.config = Config({"metastore.uri": Setting(hive.metastore_uri, "test")})

    def table(
        self,
        name: str,
        format: str = "parquet",
        columns: list[tuple[str, str]] | None = None,
        partition_columns: Sequence[tuple[str, str]] = (),
        **properties: str,
    ) -> str:
        """A new table, in both metastores."""
        full = f"{self.schema}.{name}"
        given = {f"{format}.{key}": value for key, value in properties.items()}
        tables.create_table(
            self.config,
            full,
            format=format,
            columns=columns or COLUMNS,
            partition_columns=partition_columns,
            properties=given,
        )
        self.show_to_trino(name)
        return full

    def show_to_trino(self, name: str) -> None:
        root = canonical(f"file://{self.root}/warehouse/{name}")
        found = CatalogTable(TableName(self.schema, name), (), (), root, table_format=NAME)
        log = SegmentLog(storage_of(self.config), root)
        with MetastoreClient(self.stack.metastore_uri) as client:
            if self.schema not in client.get_all_databases():
                client.create_database(self.schema)
            register(client, segment_table(found, log.latest()))

    def add(self, table: str, *paths: Path, **given: Any) -> None:
        for path in paths:
            for file in (p for p in (path, *path.rglob("*")) if p.is_file()):
                os.utime(file, (1.7e9, 1.7e9))
        add.add_segment(self.config, table, paths=[str(p) for p in paths], local=True, **given)

    def same(self, sql: str, settings: dict[str, str] = FETCH) -> list[tuple[Any, ...]]:
        """The rows of a query, which are those of Trino."""
        mine = self.hive.ask(sql, settings).rows
        theirs = [tuple(row) for row in self.stack.query(sql)]
        assert sorted(map(repr, map(_plain, mine))) == sorted(map(repr, map(_plain, theirs)))
        return mine


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values as both drivers can tell them."""
    return tuple(
        float(v) if isinstance(v, Decimal | float) else str(v) if v is not None else v for v in row
    )


def segment_world(hive: HookedHive, stack: Stack, root: Path, schema: str) -> SegmentWorld:
    """A world whose tables are of a new schema."""
    with MetastoreClient(hive.metastore_uri) as client:
        client.create_database(schema, f"file://{root}/warehouse")
    return SegmentWorld(hive, stack, root, schema)


def files_read(world: SegmentWorld, sql: str, settings: dict[str, str]) -> int:
    """How many fact files a query in Hive read, by the hooks' log."""
    return rows_and_files(world, sql, settings)[1]


def rows_and_files(
    world: SegmentWorld, sql: str, settings: dict[str, str]
) -> tuple[list[tuple[Any, ...]], int]:
    """A query's rows in Hive, and how many fact files it read."""
    log = world.hive.server.server.log
    before = log.stat().st_size
    rows = world.hive.ask(sql, settings).rows
    with log.open("rb") as lines:
        lines.seek(before)
        found = re.findall(r"reads (\d+) files of its segments", lines.read().decode())
    assert len(found) == 1, found
    return rows, int(found[0])
