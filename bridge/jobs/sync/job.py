"""The sync of one table in full: partitions, then Hive's hooks, then the index."""

from __future__ import annotations

import contextlib
import copy
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.config import Config
from bridge.errors import InvalidRequest, UnsupportedType
from bridge.jobs.compose import metastore_of, storage_of, storage_options
from bridge.jobs.file_systems import require_file_system
from bridge.jobs.spark_log_filter import filter_spark_log
from bridge.jobs.sync.hudi import HudiSync, hudi_place
from bridge.jobs.sync.metastore import alter_unless_changed
from bridge.jobs.sync.published import left_lines
from bridge.jobs.sync.record import Progress
from bridge.jobs.sync.request import SyncRequest, SyncSettings
from bridge.jobs.sync.table import TableSync
from bridge.metastore.client import MetastoreClient
from bridge.sync.report import SyncReport
from bridge.sync.state import INDEXED_PROPERTY, STATE_PROPERTY, parse_state
from bridge.table.discovered import Discovered
from bridge.table.model import Column
from bridge.types import UNKNOWN, parse_hive_type

Say = Callable[[str], None]
# Writing many partitions may take minutes, and the metastore goes on after a timeout here.
CALL_SECONDS = 300.0
# Younger files may still change unnoticed, so their index is refreshed once more.
_SETTLED_SECONDS = 60.0
_SPARK = threading.Lock()


@dataclass(frozen=True, slots=True)
class SyncJob:
    """A table's sync, as given on a command line or in the file of many tables.

    Attributes:
        request: what to sync.
        index: refreshes the index at the end with ``local`` or ``spark``; None leaves it.
        hook: True hooks the table for Hive, False unhooks it, None leaves it.
    """

    request: SyncRequest
    index: str | None = None
    hook: bool | None = None


def run_job(config: Config, job: SyncJob, *, progress: Progress, say: Say) -> SyncReport:
    """Syncs one table, then updates hooks and index as the job requests.

    Errors:
        those of `TableSync.run`, and those of the hook and index jobs.
    """
    started = time.perf_counter()
    with metastore_of(config, timeout=CALL_SECONDS) as client:
        if job.request.location is not None:
            require_file_system(client, job.request.location)

        def sync() -> SyncReport:
            storage, settings = storage_of(config), SyncSettings.of(config)
            place = hudi_place(client, storage, job.request)
            if place is not None:
                return HudiSync(
                    client, storage, place, job.request, settings, progress=progress
                ).run()
            return TableSync(
                client,
                storage,
                job.request,
                settings,
                lister=lambda root: _list_with_spark(config, root),
                progress=progress,
            ).run()

        report = sync()
        if not job.request.dry_run:
            if job.hook is not None and _set_hook(config, job, progress):
                sync()  # records the new state of the table
            if job.index is not None:
                report.index = _index(config, client, job, progress, say)
    report.left = left_lines(config, str(job.request.name), report.location)
    report.seconds = time.perf_counter() - started
    return report


def _list_with_spark(config: Config, root: str) -> Discovered:
    # PySpark is an extra, needed only to list with Spark.
    from bridge.spark.list_directories import list_with_spark
    from bridge.spark.session import open_session

    with _SPARK:  # a process has one session, and stopping it would stop it for all
        with filter_spark_log():
            session = open_session(name="skipbridge sync")
        try:
            return list_with_spark(session, root, storage_options(config))
        finally:
            session.stop()


def _set_hook(config: Config, job: SyncJob, progress: Progress) -> bool:
    """Hooks or unhooks the table; False if nothing changed."""
    from bridge.jobs.hive import hook_table, unhook_table

    # Even if the table is marked as done: an earlier run may have died between its partitions.
    change = hook_table if job.hook else unhook_table
    made = change(config, str(job.request.name), dry_run=False, progress=progress)
    return bool(made["table_altered"] or made["altered"])


def _index(
    config: Config, client: MetastoreClient, job: SyncJob, progress: Progress, say: Say
) -> dict[str, object] | None:
    """Refreshes the index; None if it already matches the storage that this sync has seen."""
    from bridge.jobs.index_table import has_index, index_table

    name = job.request.name
    properties = client.get_table(name.schema, name.table).parameters or {}
    state = parse_state(properties.get(STATE_PROPERTY))
    current = state is not None and properties.get(INDEXED_PROPERTY) == state.storage
    # The property may be outdated: neither `index drop` nor another index root removes it.
    current = current and has_index(config, str(name))
    if current and not job.request.full:
        return None
    local = job.index == "local"
    with contextlib.nullcontext() if local else _SPARK:
        made = index_table(config, str(name), local=local, progress=progress, say=say)
    if state is not None and time.time() - state.newest / 1e6 > _SETTLED_SECONDS and not current:
        fresh = client.get_table(name.schema, name.table)
        amended = copy.deepcopy(fresh)
        amended.parameters = {**(fresh.parameters or {}), INDEXED_PROPERTY: state.storage}
        alter_unless_changed(client, fresh, amended)  # else the next run says it
    return made


def parse_keys(texts: Sequence[str]) -> tuple[Column, ...]:
    """Parses partition keys such as ``year:int`` or ``year``; commas separate several.

    Errors:
        InvalidRequest: a name is missing, or a type is not a Hive type.

    >>> [c.name for c in parse_keys(["year:int,city"])]
    ['year', 'city']
    """
    keys = []
    for text in (part.strip() for whole in texts for part in _split(whole)):
        name, colon, type_ = (part.strip() for part in text.partition(":"))
        if not name or (colon and not type_):
            raise InvalidRequest(f"not a partition key: {text!r}", "write name or name:type")
        try:
            parsed = parse_hive_type(type_) if type_ else UNKNOWN
        except UnsupportedType as error:
            raise InvalidRequest(
                f"partition key {name!r}: {error.message}", "int, bigint, date, string ..."
            ) from error
        if type_ and (parsed is UNKNOWN or parsed.is_nested):
            raise InvalidRequest(
                f"partition key {name!r} cannot be {type_!r}", "int, bigint, date, string ..."
            )
        keys.append(Column(name.lower(), parsed))
    return tuple(keys)


def _split(text: str) -> list[str]:
    """Splits at commas outside of types: ``a:decimal(4,2),b``."""
    return re.split(r",(?![^(]*\))", text)
