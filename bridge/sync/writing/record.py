"""How a run of ``sync`` brings one record of the metastore to a state, whatever the table format.

A run compares and writes until no other job wrote meanwhile. Changes are written in steps that may
be repeated, and the state comes last.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bridge.kernel.errors import MetastoreFailure, TableExists, TableNotFound
from bridge.metastore import records
from bridge.metastore.calls import RolledBack
from bridge.metastore.client import MetastoreClient
from bridge.sync.diff import Changes, Drop, Update
from bridge.sync.discovered_partitions import DiscoveredPartitions
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.storage import SyncStorage, TableRoot
from bridge.sync.writing.metastore import NewPartition, RegisteredTable, Writer, amend_table
from bridge.table.model import TableName
from bridge.table.partition import partition_name

log = logging.getLogger(__name__)
Progress = Callable[[int, int], None]
ROUNDS = 5
_UNQUIET = (
    "! another job writes to {} all the time: what it wrote during one call of this run may be lost"
)


def until_settled(report: SyncReport, compare_and_write: Callable[[], bool]) -> SyncReport:
    """Repeats a round, which is False if another job wrote meanwhile.

    A round in which the metastore's database rolled a change back for another's is one of these.

    Errors:
        MetastoreFailure: another job wrote during each of them.
    """
    started = time.perf_counter()
    for number in range(1, ROUNDS + 1):
        report.rounds = number
        try:
            if compare_and_write():
                break
        except RolledBack:
            if number == ROUNDS:
                raise
        log.info("%s: another job wrote meanwhile; comparing again", report.table)
    else:
        raise MetastoreFailure(
            f"{report.table} was changed by another job during each of {ROUNDS} comparisons",
            "run the sync again when the other job has ended",
        )
    report.seconds = time.perf_counter() - started
    return report


def left_to_next_run(report: SyncReport) -> bool:
    """Whether this is the last round: partitions that others registered during it are left."""
    if report.rounds < ROUNDS:
        return False
    report.table_changes.append(
        f"! another job registered partitions during each of {ROUNDS} comparisons: the next run "
        "compares the last of them"
    )
    return True


def create(
    client: MetastoreClient, record: records.Table, request: SyncRequest, report: SyncReport
) -> bool:
    """Creates the record; False if another job created it first."""
    client.create_database(record.dbName)
    try:
        client.create_table(record)
    except TableExists:
        return False
    request.seen.add(report.table)
    report.created = True
    return True


def refuse_dropped(name: TableName, table: RegisteredTable | None, request: SyncRequest) -> None:
    """Errors: TableNotFound: a run of this request had the table, so another job dropped it."""
    if table is not None:
        request.seen.add(str(name))
    elif str(name) in request.seen:
        raise TableNotFound(
            f"{name} was dropped by another job: it is not created again",
            "to create it, start the sync anew",
        )


def amend_noting(
    client: MetastoreClient,
    seen: RegisteredTable,
    amend: Callable[[RegisteredTable], records.Table],
    settings: SyncSettings,
    report: SyncReport,
) -> bool:
    """`amend_table`; False if another job changed the table. The report says what was unguarded."""
    done = amend_table(client, seen, amend, settings.quiet)
    if done is None:
        report.table_changes.append(_UNQUIET.format("the table's record"))
    return done is not False


def report_dry_run(
    report: SyncReport,
    table: RegisteredTable | None,
    keys: Sequence[str],
    changes: Changes,
    lines: Sequence[str],
) -> None:
    """Reports what a run would change: the partitions, and the lines for the table itself."""
    report.table_changes = list(lines)
    report.created = table is None
    report.added = [partition_name(keys, key) for key in changes.adds]
    report.updated = [(u.name, describe(u)) for u in changes.updates]
    report.dropped = [d.name for d in changes.drops]
    if lines or len(changes):
        report.outcome = "planned"


@dataclass(frozen=True, slots=True)
class Written:
    """The names of the partitions that were added and dropped.

    Attributes:
        changed: another job has changed some of the records meanwhile; they must be compared again.
    """

    added: list[str]
    dropped: list[str]
    changed: bool


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    """Writes the changes of a record's partitions, and reports them.

    Attributes:
        present: of partitions to add, those whose directory still holds data.
        gone: of partitions to drop, those that still hold none.
    """

    client: MetastoreClient
    settings: SyncSettings
    place: TableRoot
    report: SyncReport
    progress: Progress
    present: Callable[[Sequence[NewPartition]], Sequence[NewPartition]] = list
    gone: Callable[[Sequence[Drop]], Sequence[Drop]] = list

    def write(
        self,
        table: RegisteredTable,
        changes: Changes,
        stored: DiscoveredPartitions,
        names: Sequence[str],
    ) -> Written:
        """Alters, adds and drops.

        Args:
            stored: holds all partitions that are added.
            names: of the partitions that the comparison knew.

        Errors:
            RolledBack: some changes, for another's; the others are made and reported.
        """
        done = 0

        def tick(more: int) -> None:
            nonlocal done
            done += more
            self.progress(done, len(changes))

        report, spell = self.report, self.place.spell
        settings, last = self.settings, report.rounds == ROUNDS
        writer = Writer(self.client, table, settings.limits, settings.parallelism, tick, last)
        updates = {u.name: u for u in changes.updates}
        altered = writer.alter(
            (u, spell(u.location) if u.location is not None else None) for u in changes.updates
        )
        added = writer.add(self.new(changes, stored), self.present, names)
        dropped = writer.drop(changes.drops, self.gone)
        report.updated += [(n, describe(updates[n])) for n in altered]
        report.added += added
        report.dropped += dropped
        report.failed = writer.failed
        if writer.unquiet:
            report.table_changes.append(_UNQUIET.format("records of partitions"))
        if altered or added or dropped:
            report.outcome = "synced"
        if writer.met is not None:
            raise writer.met
        return Written(added, dropped, writer.changed)

    def new(self, changes: Changes, stored: DiscoveredPartitions) -> Iterator[NewPartition]:
        """The partitions to add."""
        names = [k.name for k in stored.keys]
        for key in changes.adds:
            found = stored.partitions[key]
            uri = stored.directories.uri(found.directory)
            yield NewPartition(
                partition_name(names, key), key, self.place.spell(uri), found.files, found.bytes
            )


def keep_left(
    storage: SyncStorage, request: SyncRequest, changes: Changes, report: SyncReport
) -> None:
    """Keeps partitions at the root that a table leaves if there is data, but for ``--drop-all``."""
    left = [] if request.drop_all else [d for d in changes.drops if d.left]
    found = storage.find_occupied([d.location for d in left])
    held = {d for d, there in zip(left, found, strict=True) if there}
    changes.drops = [d for d in changes.drops if d not in held]
    reason = "there is data there, and none at the new root: --drop-all drops it"
    report.kept += [(d.name, d.location, reason) for d in held]


def partition_names(
    client: MetastoreClient, name: TableName, table: RegisteredTable | None
) -> list[str]:
    """Of a table that may have none, or not exist."""
    if table is None or not table.keys:
        return []
    return client.get_partition_names(name.schema, name.table)


def describe(update: Update) -> str:
    """An update's changes, for people."""
    parts = []
    if update.location is not None:
        parts.append(f"location {update.was} -> {update.location}")
    if update.schema and not update.types:
        parts.append("columns of the table")
    parts += [f"column {name} {was} -> {type_}" for name, was, type_ in update.types or ()]
    if update.classes:
        parts.append("format classes of the table")
    if update.missing is not None:
        parts.append("no data there" if update.missing else "data there again")
    return "; ".join(parts)
