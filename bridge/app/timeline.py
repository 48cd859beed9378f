"""The history of a table of a versioned format, and the files of one version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bridge.kernel.config import Config
from bridge.planner.answers.system_tables import COLUMNS, system_table_rows
from bridge.planner.request import ScanRequest
from bridge.planner.scan_plan import ScanPlan
from bridge.runtime.compose import planner_of, resolve, storage_of
from bridge.table.read_version import NEWEST, AsOfVersion, ReadVersion

_FILES = ("partition", "path", "size", "commit", "logs", "log_bytes", "rows")


def timeline(config: Config, table: str, limit: int | None = None) -> list[dict[str, Any]]:
    """The actions that the table's format records, the newest request first.

    Args:
        limit: at most so many; None: all. Times are milliseconds since the epoch.

    Errors:
        ReadVersionUnsupported: the table's format keeps no history.
        TableNotFound, StorageFailure and others.
    """
    with _plan(config, table, NEWEST) as plan:
        rows = list(_rows(plan, "timeline"))
    return rows[::-1][:limit]


def timeline_files(config: Config, table: str, at: str | None = None) -> list[dict[str, Any]]:
    """The file slices of a version: a base file with its logs, or logs alone.

    Args:
        at: a version, by the name of its instant; None: the newest.

    Errors:
        ReadVersionNotFound, ReadVersionUnsupported, TableNotFound, StorageFailure and others.
    """
    read = NEWEST if at is None else ReadVersion(AsOfVersion(at))
    with _plan(config, table, read) as plan:
        return [{name: row[name] for name in _FILES} for row in _rows(plan, "files")]


@contextmanager
def _plan(config: Config, table: str, read: ReadVersion) -> Iterator[ScanPlan]:
    storage = storage_of(config)
    catalog, name = resolve(config, table, storage)
    planner = planner_of(config, catalog, storage)
    try:
        plan = planner.plan(ScanRequest(name, read=read, pruning=False))
        yield plan
        plan.close()
    finally:
        planner.lister.close()


def _rows(plan: ScanPlan, kind: str) -> Iterator[dict[str, Any]]:
    names = COLUMNS[kind]
    for page in system_table_rows(plan, kind, [n for n in names if n != "bounds"]):
        for row in zip(*page, strict=True):
            yield dict(zip(names, row, strict=True))
