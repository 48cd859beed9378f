"""Hudi tables at earlier instants, and metastores of several tables, for tests of sync."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bridge.kernel.errors import TableNotFound
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.hudi.job import HudiSync, hudi_place
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.writing.write_batches import BatchLimits
from bridge.table.model import TableName
from tests.support.sync_lake import MUTATIONS, ModelMetastore

NAME = TableName("lake", "t")


class ModelTables:
    """A metastore of several tables.

    Attributes:
        writes: number of calls that changed something.
        interfere: called before and after each such call with its name; tests kill there.
    """

    def __init__(self) -> None:
        self.tables: dict[str, ModelMetastore] = {}
        self.writes = 0
        self.interfere: Callable[[str, str], None] = lambda method, moment: None

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            table = NAME.table
            if len(arguments) > 1:
                table = arguments[1]
            elif name == "create_table":
                table = arguments[0].tableName
            held = self.tables.get(table)
            if held is None:
                if name == "get_table":
                    raise TableNotFound(table)
                held = ModelMetastore()
                held.databases.add(NAME.schema)
            if name in MUTATIONS:
                self.interfere(name, "before")
            answer = getattr(held, name)(*arguments, **options)
            if held.record is not None:
                self.tables[table] = held
            if name in MUTATIONS:
                self.writes += name != "create_database"
                self.interfere(name, "after")
            return answer

        return call

    def contents(self) -> dict[str, object]:
        """All that matters of every table, comparable."""
        found = {}
        for name, table in self.tables.items():
            assert table.record is not None
            said = {
                k: v
                for k, v in table.record.parameters.items()
                if k not in ("skipbridge.sync.state", "transient_lastDdlTime")
            }
            found[name] = (table.contents(), said)
        return found

    def paths(self, root: Path, table: str = "t") -> set[str]:
        """Registered partitions by path."""
        inside = f"{root.as_uri()}/"
        places = self.tables[table].partitions.values()
        return {p.sd.location.removeprefix(inside) for p in places}


def sync_hudi(client: Any, root: Path, name: TableName = NAME, **options: Any) -> SyncReport:
    """Syncs a Hudi table in small batches."""
    request = SyncRequest(name, str(root), **options)
    place = hudi_place(client, LocalStorage(), request)
    assert place is not None
    states = Path(_STATES.name).as_uri()  # tables of fixtures are only read
    settings = SyncSettings(BatchLimits(1 << 20, 2), parallelism=2, quiet=0.0, state_root=states)
    return HudiSync(client, LocalStorage(), place, request, settings).run()


_STATES = tempfile.TemporaryDirectory(prefix="hudi-states")


class Hidden:
    """The later instants of a table, taken off its timeline until they are put back.

    Args:
        keep: the number of completed writes that stay.
    """

    def __init__(self, root: Path, keep: int, store: Path) -> None:
        self._timeline = root / ".hoodie" / "timeline"
        if not self._timeline.is_dir():
            self._timeline = root / ".hoodie"
        self._store = store
        store.mkdir()
        files = [f for f in self._timeline.iterdir() if f.is_file() and f.name[0].isdigit()]
        done = r"\d+(_\d+)?\.(commit|deltacommit|replacecommit)"
        writes = sorted(_requested(f) for f in files if re.fullmatch(done, f.name))
        later = writes[keep:]
        assert keep and later, f"{root} has {len(writes)} writes"
        for file in files:
            if _requested(file) >= later[0]:
                shutil.move(file, store / file.name)

    def put_back(self) -> None:
        for file in sorted(self._store.iterdir()):
            shutil.move(file, self._timeline / file.name)


def _requested(file: Path) -> str:
    return re.split(r"[._]", file.name)[0]


def commit_json(
    root: Path,
    instant: str,
    *,
    schema: str,
    written: dict[str, list[str]] | None = None,
    replaced: dict[str, Iterable[str]] | None = None,
    operation: str = "UPSERT",
) -> None:
    """Adds a completed instant to a table of version 6.

    Args:
        written: names of files by partition; each file is made, with a few bytes.
        replaced: file groups by partition.
    """
    stats: dict[str, list[dict[str, object]]] = {}
    for partition, names in (written or {}).items():
        (root / partition).mkdir(exist_ok=True, parents=True)
        (root / partition / ".hoodie_partition_metadata").touch()
        for name in names:
            (root / partition / name).write_bytes(b"PAR1")
            path = f"{partition}/{name}"
            stat = {"path": path, "fileSizeInBytes": 4, "prevCommit": "null"}
            stats.setdefault(partition, []).append(stat)
    body: dict[str, object] = {
        "partitionToWriteStats": stats,
        "extraMetadata": {"schema": schema},
        "operationType": operation,
    }
    action = "commit"
    if replaced is not None:
        action = "replacecommit"
        body["partitionToReplaceFileIds"] = {p: list(ids) for p, ids in replaced.items()}
    for ending in (
        f"{action}.requested",
        "inflight" if action == "commit" else f"{action}.inflight",
    ):
        (root / ".hoodie" / f"{instant}.{ending}").touch()
    (root / ".hoodie" / f"{instant}.{action}").write_text(json.dumps(body))
