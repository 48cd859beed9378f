"""The sync of one table in full: partitions, then the index."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidRequest, UnsupportedType
from bridge.kernel.types import UNKNOWN, parse_hive_type
from bridge.metastore.client import MetastoreClient
from bridge.runtime.compose import metastore_of, storage_of
from bridge.runtime.file_systems import require_file_system
from bridge.sync.hudi.job import HudiSync, hudi_place
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.state import parse_state
from bridge.sync.state_file import StateFiles
from bridge.sync.table import TableSync
from bridge.sync.writing.record import Progress
from bridge.table.model import Column

Say = Callable[[str], None]
# Writing many partitions may take minutes, and the metastore goes on after a timeout here.
CALL_SECONDS = 300.0
# Younger files may still change unnoticed, so their index is refreshed once more.
_SETTLED_SECONDS = 60.0
_SPARK = threading.Lock()  # a process has one session


@dataclass(frozen=True, slots=True)
class SyncJob:
    """A table's sync, as given on a command line or in the file of many tables.

    Attributes:
        request: what to sync.
        index: refreshes the index at the end with ``local`` or ``spark``; None leaves it.
        left_lines: says, of a table and its location, what lies in directories that it was
            published from; None: nobody asks.
    """

    request: SyncRequest
    index: str | None = None
    left_lines: Callable[[Config, str, str], list[str]] | None = None


def run_job(config: Config, job: SyncJob, *, progress: Progress, say: Say) -> SyncReport:
    """Syncs one table, then updates the index as the job requests.

    Errors:
        those of `TableSync.run`, and those of the index job.
    """
    started = time.perf_counter()
    with metastore_of(config, timeout=CALL_SECONDS) as client:
        if job.request.location is not None:
            require_file_system(client, job.request.location)

        storage, settings = storage_of(config), SyncSettings.of(config)
        place = hudi_place(client, storage, job.request)
        if place is not None:
            report = HudiSync(
                client, storage, place, job.request, settings, progress=progress
            ).run()
        else:
            report = TableSync(
                client,
                storage,
                job.request,
                settings,
                progress=progress,
            ).run()
        if not job.request.dry_run and job.index is not None:
            report.index = _index(config, client, job, report.location, progress, say)
    if job.left_lines is not None:
        report.left = job.left_lines(config, str(job.request.name), report.location)
    report.seconds = time.perf_counter() - started
    return report


def _index(
    config: Config, client: MetastoreClient, job: SyncJob, root: str, progress: Progress, say: Say
) -> dict[str, object] | None:
    """Refreshes the index; None if it already matches the storage that this sync has seen."""
    from bridge.indexing.table import has_index, index_table

    name = job.request.name
    record = client.get_table(name.schema, name.table)
    states = StateFiles(storage_of(config), root, SyncSettings.of(config).state_root)
    state = parse_state(states.read(record))
    current = state is not None and state.indexed == state.storage
    # It may be outdated: neither `index drop` nor another index root removes it.
    current = current and has_index(config, str(name))
    if current and not job.request.full:
        return None
    local = job.index == "local"
    with contextlib.nullcontext() if local else _SPARK:
        made = index_table(config, str(name), local=local, progress=progress, say=say)
    settled = state is not None and time.time() - state.newest / 1e6 > _SETTLED_SECONDS
    settled = settled and not made["refused"]  # the next run names them again
    if state is not None and settled and not current and parse_state(states.read(record)) == state:
        states.write(record, replace(state, indexed=state.storage).to_text())
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
