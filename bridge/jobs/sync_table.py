"""``skipbridge sync``: makes the metastore say what lies on storage, for one table.

A run reads names from the metastore first, then lists storage, then compares: a partition that
somebody registers meanwhile is never taken for one whose directory is gone. What it decides on it
writes in steps that can each be carried out twice, and last of all the state that lets the next run
be short; after a kill at any point the next run finds the difference that is left. Two runs at once
both converge: whoever finds, at the end, that the metastore is not as it left it, compares again.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bridge.config import Config
from bridge.errors import (
    InvalidRequest,
    MetastoreFailure,
    SchemaNotFound,
    TableExists,
    TableNotFound,
)
from bridge.jobs.sync_metastore import (
    NewPartition,
    RegisteredTable,
    Writer,
    amended_table,
    key_of,
    new_table,
    plain_columns,
    read_table,
    registered_partition,
)
from bridge.jobs.sync_storage import Lister, Place, SyncStorage, place_of
from bridge.metastore.batches import BatchSettings, fetch_partitions
from bridge.metastore.client import MetastoreClient
from bridge.storage.port import Storage
from bridge.storage.uri import canonical
from bridge.sync.batches import Limits
from bridge.sync.diff import Changes, Drop, Occupied, PartitionDiff, Target, Update
from bridge.sync.extractors import find_extractor
from bridge.sync.listing import Directories
from bridge.sync.report import SyncReport
from bridge.sync.schema import Evolution, evolve, read_schemas, refuse, thinned
from bridge.sync.state import (
    EXTRACTOR_PROPERTY,
    ROOT_PROPERTY,
    STATE_PROPERTY,
    SyncState,
    parse_state,
    storage_digest,
    text_digest,
)
from bridge.sync.stored import Stored, read_directories
from bridge.table.model import Column, TableName
from bridge.table.partition import partition_name

log = logging.getLogger(__name__)
Progress = Callable[[int, int], None]
Say = Callable[[str], None]
_ROUNDS = 5
_FETCHED_BYTES = 4 << 20
OWNER = "skipbridge"


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What to bring in step.

    Attributes:
        location: as the user spells it; None: where the table was synced from before.
        extractor: its name; None: the one used before, at first ``hive``.
        keys: partition keys that the user named; UNKNOWN where no type was given.
        adopt: take over a table that something else has made.
        full: compare every partition, whatever the last run remembers.
        dry_run: only say what would be done.
        move: the table's root has moved to ``location``.
        relocate: partitions registered elsewhere come back below the root.
        hold_wider: files narrower than the table's types are no error; the table keeps its types.
        drop_all: storage may be empty; else that is taken for a mistake.
        spark: list with Spark; None: from a number of partitions on.
    """

    name: TableName
    location: str | None = None
    extractor: str | None = None
    keys: tuple[Column, ...] = ()
    adopt: bool = False
    full: bool = False
    dry_run: bool = False
    move: bool = False
    relocate: bool = False
    hold_wider: bool = False
    drop_all: bool = False
    spark: bool | None = None


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """The ``sync.*`` options."""

    limits: Limits = field(default_factory=Limits)
    parallelism: int = 4
    schema_sample: int = 400
    compare_all_after: float = 86400.0
    spark_from: int = 50_000
    recheck_after: float = 30.0
    recursive: bool = False
    threads: int = 16

    @classmethod
    def of(cls, config: Config) -> SyncSettings:
        return cls(
            Limits(config.size("sync.batch_bytes"), config.integer("sync.batch_partitions")),
            max(1, config.integer("sync.parallelism")),
            config.integer("sync.schema_sample"),
            config.seconds("sync.compare_all_after"),
            config.integer("sync.spark_from"),
            config.seconds("sync.recheck_after"),
            config.flag("planner.recursive"),
            max(1, config.integer("planner.listing_threads")),
        )


@dataclass(slots=True)
class _Plan:
    """One comparison.

    Attributes:
        table: as it was read before storage was listed; None if it is to be made.
        names: of its partitions at that time.
        quick: the last run's state still holds for the metastore's side.
        state: of the last run.
        columns: of the table from now on.
    """

    table: RegisteredTable | None
    names: list[str]
    place: Place
    extractor: str
    directories: Directories
    stored: Stored
    state: SyncState | None
    quick: bool
    listed_at: float
    columns: tuple[Column, ...] = ()
    changes: Changes = field(default_factory=Changes)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(k.name for k in self.stored.keys)


class TableSync:
    """One run over one table.

    Args:
        lister: lists storage with Spark; None: threads do it always.
    """

    def __init__(
        self,
        client: MetastoreClient,
        storage: Storage,
        request: SyncRequest,
        settings: SyncSettings,
        *,
        lister: Lister | None = None,
        progress: Progress = lambda done, total: None,
    ) -> None:
        self._client = client
        self._request = request
        self._settings = settings
        self._storage = SyncStorage(storage, settings.threads, settings.recursive, lister)
        self._progress = progress
        self._report = SyncReport(str(request.name), "")

    def run(self) -> SyncReport:
        """Brings the table in step; the report of what was done.

        Errors:
            TableExists: the table is not ours.
            TableNotFound: nothing lies at the location.
            SchemaConflict: with both schemas.
            InvalidRequest, UnsupportedTable, MetastoreUnavailable, StorageFailure ...: every step
            taken before it stays, and the next run goes on from there.
        """
        started = time.perf_counter()
        report = self._report
        for number in range(1, _ROUNDS + 1):
            report.rounds = number
            if self._round():
                break
            log.info("%s: somebody else wrote meanwhile; comparing again", report.table)
        else:
            raise MetastoreFailure(
                f"{report.table} was changed by somebody else during each of {_ROUNDS} comparisons",
                "run the sync again when the other job has ended",
            )
        report.seconds = time.perf_counter() - started
        return report

    # what is

    def _round(self) -> bool:
        """Compares and writes; False if somebody else wrote meanwhile."""
        plan = self._compare()
        report = self._report
        report.location = plan.place.root
        report.compared = "changes" if plan.quick else "all"
        report.directories = len(plan.directories)
        report.unparsable = list(plan.stored.unparsable)
        report.collisions = [
            (partition_name(plan.keys, key), claimants) for key, claimants in plan.stored.collisions
        ]
        digest = storage_digest(plan.directories)
        if plan.quick and plan.state is not None and plan.state.storage == digest:
            report.unchanged = report.partitions = len(plan.names)
            return True
        evolution = self._evolution(plan)
        plan.columns = evolution.columns
        report.left_out = list(evolution.left_out)
        if plan.table is not None and plan.table.keys:
            plan.changes = self._diff(plan, plan.table)
        else:
            plan.changes.adds = list(plan.stored.partitions) if plan.stored.keys else []
        table_changes = self._table_changes(plan, evolution)
        report.unchanged = plan.changes.unchanged
        report.kept = [(k.name, k.location, k.reason) for k in plan.changes.kept]
        if self._request.dry_run:
            self._tell(plan, table_changes)
            return True
        report.table_changes += table_changes
        return self._write(plan, digest, bool(table_changes))

    def _compare(self) -> _Plan:
        request = self._request
        table: RegisteredTable | None = None
        with contextlib.suppress(TableNotFound, SchemaNotFound):
            table = read_table(self._client, request.name)
        properties = table.properties if table is not None else {}
        place = place_of(
            str(request.name), request.location, table.spelled if table is not None else None
        )
        if table is not None:
            self._refuse_strangers(table, place)
        names: list[str] = []
        if table is not None and table.keys:
            names = self._client.get_partition_names(request.name.schema, request.name.table)
        extractor = request.extractor or properties.get(EXTRACTOR_PROPERTY) or "hive"
        keys = tuple(k.name.lower() for k in request.keys)
        known = tuple(k.name for k in table.keys) if table is not None else keys
        if keys and keys != known:
            raise InvalidRequest(
                f"{request.name} has the partition keys {', '.join(known) or 'none'}, "
                f"not {', '.join(keys)}",
                "a table's keys cannot be changed: leave --partition-keys out, or register another",
            )
        # Hive-style directories name their keys: what differs is told with both.
        reader = find_extractor(extractor, () if extractor == "hive" and not keys else known)
        listed_at = time.monotonic()
        spark = request.spark
        if spark is None:
            spark = len(names) >= self._settings.spark_from > 0
        directories = self._storage.look(place.root, spark=spark)
        self._report.listed_by = self._storage.listed_by
        stored = read_directories(
            directories,
            reader,
            table.keys if table is not None else None,
            request.keys,
            recursive=self._settings.recursive,
        )
        if not stored.partitions and not stored.collisions:
            self._refuse_nothing(place, stored, names, table)
        state = parse_state(properties.get(STATE_PROPERTY))
        plan = _Plan(table, names, place, extractor, directories, stored, state, False, listed_at)
        plan.quick = self._trusted(plan)
        return plan

    def _refuse_strangers(self, table: RegisteredTable, place: Place) -> None:
        name = self._request.name
        ours = ROOT_PROPERTY in table.properties or table.record.owner == OWNER
        if not ours and not self._request.adopt:
            raise TableExists(
                f"{name} exists and is not kept by skipbridge: its owner is "
                f"{table.record.owner or 'nobody'}, its location {table.spelled}",
                "take it over with --adopt, or choose another name",
            )
        if table.location != place.root and not self._request.move:
            raise TableExists(
                f"{name} lies at {table.location}, not at {place.root}",
                "if the table has moved there, add --move; else correct --location",
            )
        self._report.adopted = not ours

    def _refuse_nothing(
        self, place: Place, stored: Stored, names: Sequence[str], table: RegisteredTable | None
    ) -> None:
        if self._request.drop_all and table is not None:
            return
        if stored.unparsable:
            directory, reason = stored.unparsable[0]
            raise InvalidRequest(
                f"none of {len(stored.unparsable)} directories with data below {place.root} is a "
                f"partition; {directory or 'the root'}: {reason}",
                "check --extractor and --partition-keys",
            )
        raise TableNotFound(
            f"no data files below {place.root}"
            + (f", where {len(names)} partitions are registered" if names else ""),
            "check the location; if they are to be dropped, all of them: --drop-all"
            if table is not None
            else "give the directory that holds the data",
        )

    def _reading(self, extractor: str) -> str:
        return f"{extractor}{' recursive' if self._settings.recursive else ''}"

    def _trusted(self, plan: _Plan) -> bool:
        """Whether the metastore is as the last run left it, as far as can be seen at little cost,
        and storage is read as it was then.
        """
        state, table, request = plan.state, plan.table, self._request
        if state is None or table is None or request.full or request.relocate:
            return False
        return (
            time.time() - state.compared < self._settings.compare_all_after
            and table.location == plan.place.root
            and table.properties.get(ROOT_PROPERTY) == plan.place.root
            and state.reading == self._reading(plan.extractor)
            and state.names == text_digest(sorted(plan.names))
            and state.table == text_digest(table.digest_parts())
        )

    # what is to be

    def _evolution(self, plan: _Plan) -> Evolution:
        """The table's columns after this run.

        Files of new partitions, and those written since the last run, are looked at; all of them
        (a sample) where these alone would not do.
        """
        rows = sorted(p.row for p in plan.stored.partitions.values())
        newest = plan.directories.rows["newest"].to_numpy()
        looked_at = rows
        if plan.quick and plan.state is not None:
            known = {key_of(n) for n in plan.names}
            new = {p.row for k, p in plan.stored.partitions.items() if k not in known}
            looked_at = [r for r in rows if r in new or newest[r] >= plan.state.newest]
        found = self._look(plan, looked_at)
        if found.conflicting or found.narrower:
            if len(looked_at) < len(rows):
                found = self._look(plan, rows)
            if self._request.hold_wider and not found.conflicting:
                return found
            table = plan.table.columns if plan.table is not None else ()
            refuse(str(self._request.name), found, table, self._files_columns)
        return found

    _files_columns: tuple[Column, ...] = ()

    def _look(self, plan: _Plan, rows: Sequence[int]) -> Evolution:
        samples = plan.directories.rows.select(["path", "sample", "sample_bytes"])
        chosen = thinned(rows, self._settings.schema_sample)
        files = [
            (f"{plan.directories.uri(row['path'])}/{row['sample']}", row["sample_bytes"])
            for row in samples.take(chosen).to_pylist()
        ]
        found = read_schemas(self._storage.storage, files, threads=self._settings.threads)
        self._report.unreadable = list(found.unreadable)
        if plan.table is None and not found.columns:
            reason = found.unreadable[0][1] if found.unreadable else "all files are gone"
            raise TableNotFound(f"no readable file below {plan.place.root}: {reason}", "")
        self._files_columns = found.columns
        table = plan.table.columns if plan.table is not None else ()
        return evolve(table, found.columns, plan.stored.keys)

    def _diff(self, plan: _Plan, table: RegisteredTable) -> Changes:
        amended = amended_table(table.record, plan.columns, table.spelled, {})
        columns = plain_columns(amended.sd.cols)
        left = table.location if table.location != plan.place.root else None
        target = Target(plan.place.root, columns, table.layout, left, self._request.relocate)
        occupied = Occupied(plan.place.root, plan.directories.paths, self._storage.holds_data)
        diff = PartitionDiff(plan.stored, target, occupied)
        wanted = plan.names
        if plan.quick and columns == table.target_columns:
            by_key = {key_of(n): n for n in plan.names}
            diff.trust(k for k in by_key if k in plan.stored.partitions)
            wanted = [n for k, n in by_key.items() if k not in plan.stored.partitions]
        weight = 600 + sum(len(n) + len(t) + 20 for n, t in columns)
        cap = max(10, min(1000, _FETCHED_BYTES // weight))
        ladder = BatchSettings(start=min(100, cap), cap=cap, parallelism=self._settings.parallelism)
        name = self._request.name
        with fetch_partitions(self._client, name.schema, name.table, wanted, ladder) as stream:
            for batch in stream:
                diff.take(
                    registered_partition(n, record)
                    for n, record in zip(batch.names, batch.partitions, strict=True)
                )
        return diff.changes()

    def _table_changes(self, plan: _Plan, evolution: Evolution) -> list[str]:
        if plan.table is None:
            keys = ", ".join(f"{k.name} {k.type}" for k in plan.stored.keys)
            lines = [f"+ table {self._request.name}" + (f", partitioned by {keys}" if keys else "")]
        else:
            lines = []
            properties = plan.table.properties
            if (
                properties.get(ROOT_PROPERTY) != plan.place.root
                or properties.get(EXTRACTOR_PROPERTY) != plan.extractor
            ):
                lines.append(f"~ table is kept by sync, extractor {plan.extractor}")
            if plan.table.location != plan.place.root:
                lines.append(f"~ location {plan.table.location} -> {plan.place.root}")
        types = {c.name: c.type for c in evolution.columns}
        lines += [f"+ column {n} {types[n]}" for n in evolution.appended]
        lines += [f"~ column {n} {old} -> {new}" for n, old, new in evolution.widened]
        return lines

    def _tell(self, plan: _Plan, table_changes: list[str]) -> None:
        report, changes = self._report, plan.changes
        report.table_changes = table_changes
        report.added = [partition_name(plan.keys, key) for key in changes.adds]
        report.updated = [(u.name, describe(u)) for u in changes.updates]
        report.dropped = [d.name for d in changes.drops]
        report.created = plan.table is None
        report.partitions = len(plan.names)
        if table_changes or len(changes):
            report.outcome = "planned"

    # what is done

    def _write(self, plan: _Plan, digest: str, table_changed: bool) -> bool:
        report, changes = self._report, plan.changes
        if table_changed and not self._write_table(plan):
            return False
        table = read_table(self._client, self._request.name)
        done = 0

        def tick(more: int) -> None:
            nonlocal done
            done += more
            self._progress(done, len(changes))

        writer = Writer(
            self._client, table, self._settings.limits, self._settings.parallelism, tick
        )
        updates = {u.name: u for u in changes.updates}
        altered = writer.alter(
            (u, plan.place.spell(u.location) if u.location is not None else None)
            for u in changes.updates
        )
        added = writer.add(self._new(plan), lambda batch: self._present(plan, batch))
        dropped = writer.drop(changes.drops, self._gone)
        report.updated += [(n, describe(updates[n])) for n in altered]
        report.added += added
        report.dropped += dropped
        report.failed = writer.failed
        if table_changed or altered or added or dropped:
            report.outcome = "synced"
        return self._remember(plan, table, digest, (set(plan.names) | set(added)) - set(dropped))

    def _new(self, plan: _Plan) -> Iterator[NewPartition]:
        for key in plan.changes.adds:
            stored = plan.stored.partitions[key]
            yield NewPartition(
                partition_name(plan.keys, key),
                key,
                plan.place.spell(plan.directories.uri(stored.directory)),
                stored.files,
                stored.bytes,
            )

    def _present(self, plan: _Plan, batch: Sequence[NewPartition]) -> list[NewPartition]:
        """Those whose directory still holds data: a metastore would make one that is gone anew."""
        if time.monotonic() - plan.listed_at < self._settings.recheck_after:
            return list(batch)
        found = self._storage.present([canonical(p.spelled) for p in batch])
        kept = [p for p, there in zip(batch, found, strict=True) if there]
        if len(kept) < len(batch):
            log.warning("%s: %d directories vanished", self._report.table, len(batch) - len(kept))
        return kept

    def _gone(self, batch: Sequence[Drop]) -> list[Drop]:
        """Those that still have no data: somebody may have written since the listing."""
        found = self._storage.occupied([d.location for d in batch])
        return [d for d, there in zip(batch, found, strict=True) if not there]

    def _write_table(self, plan: _Plan) -> bool:
        name = self._request.name
        marks = {ROOT_PROPERTY: plan.place.root, EXTRACTOR_PROPERTY: plan.extractor}
        if plan.table is None:
            made = new_table(
                name, plan.columns, plan.stored.keys, plan.place.spell(plan.place.root), marks
            )
            self._client.create_database(name.schema)
            try:
                self._client.create_table(made)
            except TableExists:
                return False  # somebody else was first
            self._report.created = True
            return True
        fresh = read_table(self._client, name)
        if list(fresh.digest_parts()) != list(plan.table.digest_parts()):
            return False
        moved = fresh.location != plan.place.root
        spelled = plan.place.spell(plan.place.root) if moved else fresh.spelled
        return self._alter(fresh, amended_table(fresh.record, plan.columns, spelled, marks))

    def _alter(self, fresh: RegisteredTable, amended: object) -> bool:
        """Alters the table unless it has been altered since; False if it has.

        Servers that know the condition check it in the same transaction; for others the window is
        that of one call, and what was lost is found by the comparison at the end.
        """
        context = {"DO_NOT_UPDATE_STATS": "true"}
        known = fresh.properties.get(STATE_PROPERTY)
        if known is not None:
            context |= {"expected_parameter_key": STATE_PROPERTY, "expected_parameter_value": known}
        name = self._request.name
        try:
            self._client.alter_table(name.schema, name.table, amended, context)
        except MetastoreFailure:
            now = read_table(self._client, name).properties.get(STATE_PROPERTY)
            if now != known:
                return False
            raise
        return True

    def _remember(
        self, plan: _Plan, table: RegisteredTable, digest: str, expected: set[str]
    ) -> bool:
        """Writes the state, if the metastore is as this run left it; False if it is not."""
        name = self._request.name
        fresh = read_table(self._client, name)
        names: list[str] = []
        if table.keys:
            names = self._client.get_partition_names(name.schema, name.table)
        self._report.partitions = len(names)
        same_table = list(fresh.digest_parts()) == list(table.digest_parts())
        if not same_table or set(names) != expected:
            return False
        if self._report.failed:
            return True  # the next run tries them again
        newest = plan.directories.rows["newest"].to_numpy()
        state = SyncState(
            storage=digest,
            names=text_digest(sorted(names)),
            table=text_digest(fresh.digest_parts()),
            reading=self._reading(plan.extractor),
            newest=int(newest.max()) if len(newest) else 0,
            partitions=len(names),
            compared=plan.state.compared if plan.quick and plan.state else int(time.time()),
        )
        if plan.state is not None and not plan.quick and self._still(plan.state, state):
            return True  # only compared anew, and not for its age: nothing to write
        amended = amended_table(
            fresh.record, fresh.columns, fresh.spelled, {STATE_PROPERTY: state.to_text()}
        )
        return self._alter(fresh, amended)

    def _still(self, old: SyncState, new: SyncState) -> bool:
        recent = time.time() - old.compared < self._settings.compare_all_after
        return recent and old.but_for_time() == new.but_for_time()


def describe(update: Update) -> str:
    """What an update changes, for people."""
    parts = []
    if update.location is not None:
        parts.append(f"location {update.was} -> {update.location}")
    if update.schema:
        parts.append("columns of the table")
    if update.classes:
        parts.append("format classes of the table")
    return "; ".join(parts)
