"""``skipbridge sync --all FILE``: syncs many tables concurrently; failures stay separate.

The file is TOML. ``[defaults]`` may hold every table setting except name and location::

    [defaults]
    index = "local"

    [[tables]]
    name = "demo.flights"
    location = "s3a://lake/flights"

    [[tables]]
    name = "demo.events"
    location = "s3a://lake/events"
    extractor = "day"
    partition_keys = ["dt:date"]
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidConfiguration
from bridge.kernel.threads import Threads
from bridge.runtime.create_table import table_name
from bridge.sync.job import Say, SyncJob, parse_keys, run_job
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest
from bridge.sync.schemas.file_options import given_columns
from bridge.sync.writing.record import Progress

INDEXES = ("local", "spark")
_TEXTS = ("location", "extractor", "format", "columns", "delimiter")
_FLAGS = ("adopt", "move", "relocate", "hold_wider", "header")
_KNOWN = ("name", *_TEXTS, "partition_keys", "index", *_FLAGS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one table: a report or an error."""

    table: str
    report: SyncReport | None = None
    error: BridgeError | None = None

    @property
    def status(self) -> str:
        if self.report is None:
            return "failed"
        return "problems" if self.report.problems else self.report.outcome

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"table": self.table, "status": self.status}
        if self.report is not None:
            found["report"] = self.report.to_dict()
        if self.error is not None:
            found["error"] = {
                "code": self.error.code,
                "message": self.error.message,
                "hint": self.error.hint,
            }
        return found


def read_jobs(
    file: Path, *, full: bool = False, dry_run: bool = False, drop_now: bool = False
) -> list[SyncJob]:
    """Reads the tables of a file.

    Errors:
        InvalidConfiguration: the file cannot be read, or holds unknown or malformed settings.
        InvalidRequest: a table name or a partition key is malformed.
    """
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfiguration(f"cannot read {file}: {error}", "it must be TOML") from error
    _only(document, ("defaults", "tables"), str(file))
    defaults, tables = document.get("defaults", {}), document.get("tables", [])
    if not isinstance(defaults, dict) or not isinstance(tables, list) or not tables:
        raise InvalidConfiguration(f"{file} names no tables", "write [[tables]], then name = ...")
    _only(defaults, tuple(k for k in _KNOWN if k not in ("name", "location")), f"{file} [defaults]")
    jobs = []
    for number, entry in enumerate(tables, 1):
        if not isinstance(entry, dict):
            raise InvalidConfiguration(f"{file}: {entry!r} is not a table", "write [[tables]]")
        where = f"{file} [[tables]] {entry.get('name', number)}"
        _only(entry, _KNOWN, where)
        job = _job({**defaults, **entry}, where, full, dry_run)
        jobs.append(replace(job, request=replace(job.request, drop_now=drop_now)))
    names = [str(job.request.name) for job in jobs]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InvalidConfiguration(f"{file} names {twice} twice", "remove one of them")
    return jobs


def _job(entry: Mapping[str, Any], where: str, full: bool, dry_run: bool) -> SyncJob:
    kinds = {"name": str, **dict.fromkeys(_TEXTS, str), **dict.fromkeys(_FLAGS, bool)}
    for key, kind in kinds.items():
        if key in entry and not isinstance(entry[key], kind):
            wanted = "true or false" if kind is bool else "a text"
            raise InvalidConfiguration(f"{where}: {key} is {entry[key]!r}", f"give {wanted}")
    if "name" not in entry:
        raise InvalidConfiguration(f"{where}: a table without a name", 'write name = "db.table"')
    keys = entry.get("partition_keys", [])
    keys = [keys] if isinstance(keys, str) else keys
    if not isinstance(keys, list) or not all(isinstance(k, str) for k in keys):
        raise InvalidConfiguration(f"{where}: partition_keys is {keys!r}", 'write ["year:int"]')
    index = entry.get("index")
    if index is not None and index not in INDEXES:
        raise InvalidConfiguration(f"{where}: index is {index!r}", f"one of {', '.join(INDEXES)}")
    request = SyncRequest(
        name=table_name(entry["name"]),
        location=entry.get("location"),
        extractor=entry.get("extractor"),
        keys=parse_keys(keys),
        adopt=entry.get("adopt", False),
        move=entry.get("move", False),
        relocate=entry.get("relocate", False),
        hold_wider=entry.get("hold_wider", False),
        format=entry.get("format"),
        columns=given_columns(entry.get("columns"), entry.get("format")),
        header=entry.get("header", False),
        delimiter=entry.get("delimiter"),
        full=full,
        dry_run=dry_run,
    )
    return SyncJob(request, index)


def _only(found: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in found:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
            raise InvalidConfiguration(f"unknown key {key!r} in {where}", hint)


def sync_all(
    config: Config,
    jobs: Sequence[SyncJob],
    *,
    say: Say,
    progress: Progress,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Outcome]:
    """Yields one outcome per table as it completes, whatever happens to the others.

    Args:
        stopped: once it returns True, no further table is started.
    """

    def run(job: SyncJob) -> Outcome | None:
        if stopped():
            return None
        name = str(job.request.name)
        try:
            report = run_job(
                config, job, progress=lambda done, total: None, say=lambda t: say(f"{name}: {t}")
            )
        except BridgeError as error:
            return Outcome(name, error=error)
        except Exception as error:  # one table's failure must not stop the others
            return Outcome(name, error=BridgeError(f"{type(error).__name__}: {error}", "report it"))
        return Outcome(name, report)

    done = 0
    with Threads(config.integer("sync.tables_at_once"), "tables") as pool:
        for future in as_completed([pool.submit(run, job) for job in jobs]):
            outcome = future.result()
            done += 1
            progress(done, len(jobs))
            if outcome is not None:
                yield outcome
