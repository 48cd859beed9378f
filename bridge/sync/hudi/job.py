"""``skipbridge sync`` of a Hudi table: makes the metastore match the timeline.

The timeline is read once and gives the state that every record of the table is brought to: ``t``,
and of a merge-on-read table ``t_ro`` and ``t_rt`` too (`bridge.sync.hudi.table`). A partition is
registered if it has a file slice. A record is written in steps that may be repeated, and
``last_commit_time_sync`` comes last: a run after a kill finds the remaining difference.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from bridge.kernel.errors import InvalidRequest, SchemaNotFound, TableExists, TableNotFound
from bridge.kernel.types import UNKNOWN
from bridge.metastore import records
from bridge.metastore.batches import BatchSettings, fetch_partitions
from bridge.metastore.client import MetastoreClient
from bridge.storage.port import Storage
from bridge.storage.uri import relative
from bridge.sync.diff import Changes, PartitionDiff, TargetProperties
from bridge.sync.discovered_partitions import DiscoveredPartitions, read_directories
from bridge.sync.hudi.files import HudiFiles
from bridge.sync.hudi.partitions import key_columns, partition_extractor
from bridge.sync.hudi.plan import HudiPlan, HudiTarget, PlannedRecord, planned_record
from bridge.sync.hudi.table import LAST_COMMIT, LAST_COMPLETION, is_hudi, views
from bridge.sync.hudi.timeline import HudiSyncState, Position, commits_since, parse_hudi_state
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.schemas.type_changes import refuse_type_changes
from bridge.sync.state import EXTRACTOR_PROPERTY, STATE_PROPERTY, text_digest
from bridge.sync.state_file import StateFiles, new_token, token_of
from bridge.sync.storage import SyncStorage, TableRoot, place_of
from bridge.sync.writing.metastore import (
    RegisteredTable,
    amend_table,
    described_table,
    key_of,
    plain_columns,
    registered_partition,
)
from bridge.sync.writing.record import (
    PartitionWriter,
    Progress,
    amend_noting,
    create,
    keep_left,
    left_to_next_run,
    partition_names,
    refuse_dropped,
    report_dry_run,
    until_settled,
)
from bridge.table.directory.discovered import Discovered
from bridge.table.hive_properties import ROOT_PROPERTY
from bridge.table.hudi.schema.avro_schema import META_COLUMNS, avro_columns
from bridge.table.model import TableName
from bridge.table.partition import partition_name

_MARKS = (".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup")
_FETCHED = 100


def hudi_place(client: MetastoreClient, storage: Storage, request: SyncRequest) -> TableRoot | None:
    """Where the Hudi table is that a request means; None if it means a table of another format.

    A location that holds ``.hoodie`` is a Hudi table; without a location the metastore tells.

    Errors:
        TableExists: the name belongs to a table of another kind.
    """
    if request.location is not None:
        place = place_of(str(request.name), request.location, None)
        marked = [f"{place.root}/{name}" for name in _MARKS]
        if all(storage.stat(uri) is None for uri in marked):
            return None
    found = read_record(client, request.name)
    known = found is not None and is_hudi(found.properties, found.layout.input_format)
    if request.location is None:
        return place_of(str(request.name), None, found.spelled) if found and known else None
    if found is not None and not known:
        raise TableExists(
            f"{request.name} exists and is no Hudi table; {place.root} holds one",
            "choose another name, or drop the table from the metastore first (its files stay)",
        )
    spelled = found.spelled if found is not None else None
    return place_of(str(request.name), request.location, spelled)


def read_record(client: MetastoreClient, name: TableName) -> RegisteredTable | None:
    """A table of any format; None if there is none."""
    with contextlib.suppress(TableNotFound, SchemaNotFound):
        return described_table(client.get_table(name.schema, name.table))
    return None


class HudiSync:
    """One run for one Hudi table and all its records.

    Args:
        place: the table's root.
    """

    def __init__(
        self,
        client: MetastoreClient,
        storage: Storage,
        place: TableRoot,
        request: SyncRequest,
        settings: SyncSettings,
        *,
        progress: Progress = lambda done, total: None,
    ) -> None:
        self._client = client
        self._place = place
        self._request = request
        self._settings = settings
        self._progress = progress
        self._files = HudiFiles(storage, place.root)

    def run(self) -> SyncReport:
        """Syncs all records; returns the report of ``t``, which holds those of the others.

        Errors:
            TableExists: a record is at another location, or of another kind.
            TableNotFound: no Hudi table is there, or nothing was ever written to it.
            SchemaConflict: a column's type changed in a way that Hive cannot follow.
            InvalidRequest, UnsupportedTable, FileCorrupt, MetastoreUnavailable, StorageFailure and
            others. Completed steps stay, and the next run continues from there.
        """
        started = time.perf_counter()
        config = self._files.view.config
        schema = self._files.view.schema()
        if schema is None:
            raise TableNotFound(
                f"no commit of the Hudi table {config.base} was completed, so its columns are "
                "not known",
                "write to the table first",
            )
        columns = avro_columns(schema, f"the newest commit of {config.base}")
        absent = () if config.has_meta_fields else META_COLUMNS
        left_out = (*absent, *(c.name for c in columns if c.type is UNKNOWN))
        keys = key_columns(config, {c.name: c for c in columns}, self._request.keys)
        own = {k.name for k in keys}
        rest = tuple(c for c in columns if c.name not in own and c.name not in left_out)
        request = self._request
        main = read_record(self._client, request.name)
        left = main.location if main is not None and request.move else None
        syncs: list[_RecordSync] = []
        for view in views(config):
            target = HudiTarget(self._place, view, rest, keys, schema, left_out)
            name = TableName(self._request.name.schema, self._request.name.table + view.suffix)
            adopt = request.adopt and not view.suffix  # the consent is for the named table
            asked = replace(request, adopt=adopt)
            syncs.append(
                _RecordSync(self._client, self._files, target, name, asked, self._settings, left)
            )
        there = [one for one in syncs if one.check()]  # before any is written
        reports = [one.run(self._progress) for one in there]
        report = reports.pop()
        report.table_changes += [
            f"! {one.name} was dropped by another job: it is not created again"
            for one in syncs
            if one not in there
        ]
        report.views = reports
        report.seconds = time.perf_counter() - started
        return report


class _RecordSync:
    """One record of the table.

    Args:
        left: the root that the named table leaves; no record is moved from another one.
    """

    def __init__(
        self,
        client: MetastoreClient,
        files: HudiFiles,
        target: HudiTarget,
        name: TableName,
        request: SyncRequest,
        settings: SyncSettings,
        left: str | None,
    ) -> None:
        self._left = left
        self._client = client
        self._files = files
        self._target = target
        self.name = name
        self._request = request
        self._settings = settings
        self._storage = SyncStorage(files.storage, settings.threads, recursive=False)
        self._states = StateFiles(files.storage, target.place.root, settings.state_root)
        self._begun = False
        self._position = Position.of(files.view.timeline)
        self._report = SyncReport(str(name), target.place.root)
        self._report.left_out = [n for n in target.left_out if n not in META_COLUMNS]

    def check(self) -> bool:
        """False: another job has dropped it, one of the table's further records.

        Errors:
            TableExists: the record belongs to another table.
            TableNotFound: another job has dropped the table's own record.
        """
        table = read_record(self._client, self.name)
        if table is not None:
            self._refuse_strangers(table)
        elif self._target.view.suffix and str(self.name) in self._request.seen:
            return False
        refuse_dropped(self.name, table, self._request)
        return True

    def run(self, progress: Progress) -> SyncReport:
        return until_settled(self._report, lambda: self._round(progress))

    def _round(self, progress: Progress) -> bool:
        plan = self._compare()
        report = self._report
        report.compared = "changes" if plan.quick else "all"
        report.directories = len(plan.stored.directories)
        report.unparsable = list(plan.stored.unparsable)
        names = [k.name for k in self._target.keys]
        report.collisions = [(partition_name(names, k), c) for k, c in plan.stored.collisions]
        report.kept = [(k.name, k.location, k.reason) for k in plan.changes.kept]
        keep_left(self._storage, self._request, plan.changes, report)
        report.unchanged = plan.changes.unchanged
        report.partitions = len(plan.names)
        if self._request.dry_run:
            report_dry_run(report, plan.table, names, plan.changes, plan.lines)
            return True
        return self._write(plan, progress)

    def _compare(self) -> HudiPlan:
        request, target = self._request, self._target
        table = read_record(self._client, self.name)
        refuse_dropped(self.name, table, request)
        properties = table.properties if table is not None else {}
        extractor = request.extractor or properties.get(EXTRACTOR_PROPERTY)
        if table is not None:
            self._refuse_strangers(table)
        wanted = self._planned(table)
        if table is not None and wanted.lines:
            before, after = table.record.sd.cols, wanted.record.sd.cols
            doubts = refuse_type_changes(self._client, str(self.name), before, after)
            wanted.lines.extend(doubts if request.dry_run else ())
        names = partition_names(self._client, self.name, table)
        state = parse_hudi_state(self._states.read(table.record if table else None))
        plan = HudiPlan(table, wanted.record, wanted.lines, names, state, extractor or "")
        if not target.keys:
            plan.stored = DiscoveredPartitions(())
            plan.quick = self._trusted(plan)
            return plan
        reader = partition_extractor(self._files.view.config, wanted.keys, extractor)

        def read(directories: Discovered) -> DiscoveredPartitions:
            return read_directories(directories, reader, wanted.keys)

        considered = names
        if self._trusted(plan):
            assert state is not None
            considered = self._quick(plan, state, read)
        if not plan.quick:
            plan.stored = read(self._files.partitions())
            self._refuse_unparsable(plan.stored)
        if table is None:
            plan.changes.adds = list(plan.stored.partitions)
        else:
            plan.changes = self._diff(plan, table, considered if plan.quick else names)
            plan.changes.unchanged += len(names) - len(considered) if plan.quick else 0
        return plan

    def _quick(
        self,
        plan: HudiPlan,
        state: HudiSyncState,
        read: Callable[[Discovered], DiscoveredPartitions],
    ) -> list[str]:
        """Reads only partitions of the commits since the last run; returns their known names."""
        config, timeline = self._files.view.config, self._files.view.timeline
        if self._position.is_reached(state, config.completes):
            plan.quick = True
            return []
        commits = commits_since(timeline, state, config.completes)
        if commits is None:
            return []
        living, all_touched = self._files.find_touched(commits)
        plan.quick = True
        plan.stored = read(living)
        plan.dead = set(all_touched.paths) - set(living.paths)
        known = read(all_touched)
        keys = {*known.partitions, *(key for key, _ in known.collisions)}
        return [n for n in plan.names if key_of(n) in keys]

    def _trusted(self, plan: HudiPlan) -> bool:
        """Whether cheap checks find the metastore as the last run left it."""
        state, table, request = plan.state, plan.table, self._request
        if state is None or table is None or request.full or request.relocate or plan.lines:
            return False
        if self._report.rounds > 1:  # another job wrote meanwhile
            return False
        return (
            time.time() - state.compared < self._settings.compare_all_after
            and state.reading == plan.extractor
            and table.properties.get(LAST_COMMIT, "") == state.last
            and state.names == text_digest(sorted(plan.names))
            and state.table == text_digest(table.digest_parts())
        )

    def _refuse_strangers(self, table: RegisteredTable) -> None:
        root = self._target.place.root
        if not is_hudi(table.properties, table.layout.input_format):
            raise TableExists(
                f"{self.name} exists and is no Hudi table",
                "drop it from the metastore first (its files stay), or choose another name",
            )
        if table.location not in (root, self._left):
            raise TableExists(
                f"{self.name} is at {table.location}, not at {root}",
                "if it is another table, give another name"
                if self._request.move
                else "if the table has moved there, add --move; else correct --location",
            )
        self._report.adopted = ROOT_PROPERTY not in table.properties

    def _refuse_unparsable(self, stored: DiscoveredPartitions) -> None:
        if stored.unparsable and not stored.partitions and not stored.collisions:
            directory, reason = stored.unparsable[0]
            raise InvalidRequest(
                f"none of {len(stored.unparsable)} partitions of {self._target.place.root} can be "
                f"registered; {directory or 'the root'}: {reason}",
                "check --extractor and --partition-keys",
            )

    def _diff(self, plan: HudiPlan, table: RegisteredTable, names: Sequence[str]) -> Changes:
        root = self._target.place.root
        columns = plain_columns(plan.record.sd.cols)
        left = table.location if table.location != root else None
        layout = described_table(plan.record).layout
        target = TargetProperties(root, columns, layout, left, self._request.relocate)
        inside = f"{root}/"
        living = set(plan.stored.directories.paths)

        def holds_files(location: str) -> bool:
            if not location.startswith(inside):
                return location == root
            path = location[len(inside) :]
            # A run that looks at some partitions knows nothing of others.
            return path not in plan.dead if plan.quick else path in living

        def look(locations: Sequence[str]) -> list[bool]:
            return [holds_files(location) for location in locations]

        diff = PartitionDiff(plan.stored, target, look)
        sizes = BatchSettings(start=_FETCHED, cap=_FETCHED, parallelism=self._settings.parallelism)
        schema, name = self.name.schema, self.name.table
        with fetch_partitions(self._client, schema, name, list(names), sizes) as stream:
            for batch in stream:
                diff.take(
                    registered_partition(n, record, root)
                    for n, record in zip(batch.names, batch.partitions, strict=True)
                )
        changes = diff.changes()
        if left is not None:  # the SerDe's parameters name the root too
            changes.updates = [replace(u, classes=True) for u in changes.updates]
        if self._request.dry_run:
            changes.adds += changes.later
        self._report.unregistered = [
            directory
            for directory, _ in plan.stored.unparsable
            if not diff.places().holds(plan.stored.directories.uri(directory), recursive=False)
        ]
        self._report.unregistered += [relative(root, uri) or "" for uri in changes.unregistered]
        self._report.doubled = changes.doubled
        return changes

    def _write(self, plan: HudiPlan, progress: Progress) -> bool:
        report, changes = self._report, plan.changes
        if plan.table is not None and (plan.lines or len(changes)):
            self._begun = True  # a run after a kill compares everything
            self._keep(plan.table.record, "")
        if plan.lines and not self._write_table(plan):
            return False
        report.table_changes += [n for n in plan.lines if n not in report.table_changes]
        table = plan.table if not plan.lines else read_record(self._client, self.name)
        if table is None or table.target_columns != plain_columns(plan.record.sd.cols):
            return False
        writer = PartitionWriter(self._client, self._settings, self._target.place, report, progress)
        written = writer.write(table, changes, plan.stored, plan.names)
        if plan.lines:
            report.outcome = "synced"
        if written.changed:
            return False
        names = (set(plan.names) | set(written.added)) - set(written.dropped)
        return self._remember(plan, table, names) and (bool(report.failed) or not changes.later)

    def _write_table(self, plan: HudiPlan) -> bool:
        if plan.table is None:
            return create(self._client, plan.record, self._request, self._report)

        def amend(fresh: RegisteredTable) -> records.Table:
            return self._planned(fresh).record

        return amend_noting(self._client, plan.table, amend, self._settings, self._report)

    def _planned(self, table: RegisteredTable | None) -> PlannedRecord:
        """The record after this run, but for how far the table was synced."""
        request, config = self._request, self._files.view.config
        planned = planned_record(config, self.name, self._target, table, request.adopt)
        held = table.properties if table is not None else {}
        extractor = request.extractor or held.get(EXTRACTOR_PROPERTY)
        if extractor is not None and held.get(EXTRACTOR_PROPERTY) != extractor:
            planned.record.parameters[EXTRACTOR_PROPERTY] = extractor
            if table is not None:
                planned.lines.append(f"~ table is kept by sync, extractor {extractor}")
        if token_of(planned.record) is None:
            planned.record.parameters[STATE_PROPERTY] = new_token()
        return planned

    def _remember(self, plan: HudiPlan, table: RegisteredTable, expected: set[str]) -> bool:
        """Records how far the table was synced, if the metastore is as this run left it.

        False: it is not, so another job wrote meanwhile.
        """
        fresh = read_record(self._client, self.name)
        if fresh is None:
            return False
        names = partition_names(self._client, self.name, table)
        self._report.partitions = len(names)
        same_table = list(fresh.digest_parts()) == list(table.digest_parts())
        if not same_table or expected - set(names):
            return False
        if len(names) > len(expected):
            return left_to_next_run(self._report)
        if self._report.failed:  # the next run retries them
            if plan.state is not None:
                self._keep(fresh.record, plan.state.to_text())
            return True
        position, changes = self._position, plan.changes
        left = changes.kept or changes.elsewhere or plan.stored.collisions or plan.stored.unparsable
        quick = plan.quick and plan.state is not None
        state = HudiSyncState(
            position.last,
            position.completion,
            position.modified,
            position.pending,
            text_digest(sorted(names)),
            text_digest(fresh.digest_parts()),
            # Partitions that were left alone are looked at each time.
            plan.extractor + (" kept" if left else ""),
            len(names),
            plan.state.compared if quick and plan.state is not None else int(time.time()),
        )
        token = token_of(fresh.record) or new_token()
        properties = {STATE_PROPERTY: token, ROOT_PROPERTY: self._target.place.root}
        if position.last:
            properties[LAST_COMMIT] = position.last
        if position.completion:
            properties[LAST_COMPLETION] = position.completion

        def amend(now: RegisteredTable) -> records.Table:
            amended = copy.deepcopy(now.record)
            amended.parameters = {**now.properties, **properties}
            return amended

        if not properties.items() <= fresh.properties.items():
            if not amend_table(self._client, fresh, amend):
                return False
            self._report.outcome = "synced"
            fresh.record.parameters = amend(fresh).parameters
        elif not self._begun and plan.state is not None and self._still(plan.state, state):
            return True
        self._keep(fresh.record, state.to_text())
        return True

    def _keep(self, record: records.Table, state: str) -> None:
        failure = self._states.write(record, state)
        if failure is not None and f"! {failure}" not in self._report.table_changes:
            self._report.table_changes.append(f"! {failure}")

    def _still(self, old: HudiSyncState, new: HudiSyncState) -> bool:
        recent = time.time() - old.compared < self._settings.compare_all_after
        return recent and old.but_for_time() == new.but_for_time()
