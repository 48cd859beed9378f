"""The laws' lake of sync over a real metastore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest
from bridge.sync.table import TableSync
from bridge.table.model import TableName
from bridge.table.partition import NULL_MARKER
from tests.engines.conftest import RunningMetastore
from tests.support.patched_command import patched_command
from tests.support.sync_lake import MUTATIONS, SCHEMAS, Meddle, SyncLake


class RealMetastore:
    """A real one in the place of the laws' model: one table of it."""

    def __init__(self, client: MetastoreClient, database: str) -> None:
        self.client = client
        self.database = database
        self.interfere: Callable[[str, str], None] = lambda method, moment: None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        if name not in MUTATIONS:
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self.interfere(name, "before")
            answer = found(*arguments, **options)
            self.interfere(name, "after")
            return answer

        return call

    @property
    def record(self) -> ttypes.Table | None:
        try:
            return self.client.get_table(self.database, "t")
        except Exception:
            return None

    @property
    def partitions(self) -> dict[tuple[str, ...], ttypes.Partition]:
        names = self.client.get_partition_names(self.database, "t")
        found = self.client.get_partitions_by_names(self.database, "t", names)
        return {tuple(p.values): p for p in found.partitions}


class RealLake(SyncLake):
    """The laws' lake over a real metastore."""

    def sync(self, **options: Any) -> SyncReport:
        wanted: dict[str, Any] = {
            "hold_wider": True,
            "drop_now": True,
            "drop_all": True,
            **options,
        }
        request = SyncRequest(TableName(self.metastore.database, "t"), str(self.root), **wanted)
        return TableSync(self.metastore, LocalStorage(), request, self.settings).run()

    def _meddle(self, step: Meddle) -> None:
        client, database = self.metastore.client, self.metastore.database
        values = [NULL_MARKER if v is None else v for v in step.values]
        known = self.metastore.partitions.get(tuple(values))
        if step.what == "columns":
            if known is not None:
                known.sd.cols = known.sd.cols[:1]
                client.alter_partitions(database, "t", [known])
            return
        if known is not None:
            names = client.get_partition_names(database, "t")
            found = client.get_partitions_by_names(database, "t", names)
            mine = [n for n, p in zip(found.names, found.partitions, strict=True) if p == known]
            client.drop_partitions(database, "t", mine)
        if step.what == "forget":
            return
        place = {"elsewhere": self.root / "odd", "outside": self.base / "outside"}[step.what]
        place.mkdir(exist_ok=True)
        (place / "f.parquet").write_bytes(SCHEMAS["first"][0])
        record = self.metastore.record
        assert record is not None
        record.sd.location = f"file:{place}"
        added = ttypes.Partition(
            values=values, dbName=database, tableName="t", sd=record.sd, parameters={}
        )
        client.add_partitions(database, "t", [added])


def command(running: RunningMetastore, *words: object, batch: int = 200) -> list[str]:
    """The words of a sync that writes so many partitions at once."""
    limits = f"bridge.sync.request.BatchLimits(count={batch})"
    return [
        *patched_command(bridge__sync__request__LIMITS=limits),
        "sync",
        *map(str, words),
        *("--metastore-uri", running.uri, "--output", "json"),
    ]


def write(root: Path, *directories: str, schema: str = "first") -> None:
    for directory in directories:
        (root / directory).mkdir(parents=True, exist_ok=True)
        (root / directory / "f.parquet").write_bytes(SCHEMAS[schema][0])
