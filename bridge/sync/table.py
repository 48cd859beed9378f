"""``skipbridge sync``: makes the metastore match storage, for one table.

A run writes its changes in steps that may be repeated. Last it writes the state, beside the index,
that makes the next run short. After a kill at any point the next run finds the remaining
difference. Two concurrent runs converge: a run that finds at its end that another has changed the
metastore compares again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.storage.port import Storage
from bridge.storage.uri import canonical
from bridge.sync.absence import dropped_lately
from bridge.sync.comparison import Comparison, SyncPlan
from bridge.sync.diff import Drop
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.state import EXTRACTOR_PROPERTY, STATE_PROPERTY, Parts, SyncState, text_digest
from bridge.sync.state_file import new_token
from bridge.sync.storage import SyncStorage
from bridge.sync.writing.metastore import (
    NewPartition,
    RegisteredTable,
    amended_table,
    new_table,
    read_table,
)
from bridge.sync.writing.record import (
    PartitionWriter,
    Progress,
    amend_noting,
    create,
    keep_left,
    left_to_next_run,
    partition_names,
    report_dry_run,
    until_settled,
)
from bridge.table.hive_properties import ROOT_PROPERTY

log = logging.getLogger(__name__)


class TableSync:
    """One run for one table."""

    def __init__(
        self,
        client: MetastoreClient,
        storage: Storage,
        request: SyncRequest,
        settings: SyncSettings,
        *,
        progress: Progress = lambda done, total: None,
    ) -> None:
        self._client = client
        self._request = request
        self._settings = settings
        self._storage = SyncStorage(storage, settings.threads, settings.recursive)
        self._begun = False
        self._progress = progress
        self._report = SyncReport(str(request.name), "")
        self._comparison = Comparison(client, self._storage, request, settings, self._report)

    def run(self) -> SyncReport:
        """Syncs the table; returns the report of what was done.

        Errors:
            TableExists: the table is not kept by skipbridge, or has another location.
            TableNotFound: there is no data at the location.
            SchemaConflict: with both schemas.
            InvalidRequest, UnsupportedTable, MetastoreUnavailable, StorageFailure and others.
                Completed steps stay, and the next run continues from there.
        """
        return until_settled(self._report, self._round)

    def _round(self) -> bool:
        """Compares and writes; False if another job wrote meanwhile."""
        plan = self._comparison.compare()
        if plan.in_step:
            return True
        keep_left(self._storage, self._request, plan.changes, self._report)
        if self._request.dry_run:
            report_dry_run(self._report, plan.table, plan.keys, plan.changes, plan.table_changes)
            self._report.partitions = len(plan.names)
            return True
        self._report.table_changes += plan.table_changes
        return self._write(plan)

    def _write(self, plan: SyncPlan) -> bool:
        report, changes = self._report, plan.changes
        self._begin(plan)
        if plan.table_changes and not self._write_table(plan):
            return False
        table = plan.table if plan.table is not None and not plan.table_changes else None
        if table is None:
            table = read_table(self._client, self._request.name)
            if plan.target and table.target_columns != plan.target:
                return False
        writer = PartitionWriter(
            self._client,
            self._settings,
            plan.place,
            report,
            self._progress,
            lambda batch: self._present(plan, batch),
            self._gone,
        )
        written = writer.write(table, changes, plan.stored, plan.names)
        if plan.table_changes:
            report.outcome = "synced"
        if written.changed:
            return False
        added = set(written.added)
        new = [p for p in writer.new(changes, plan.stored) if p.name in added]
        if not self._settled(plan, new, written.dropped):
            return False
        names = (set(plan.names) | set(written.added)) - set(written.dropped)
        return self._remember(plan, table, names) and (bool(report.failed) or not changes.later)

    def _begin(self, plan: SyncPlan) -> None:
        """A run after a kill compares everything, and knows what may have been dropped."""
        if plan.table is None or not (plan.table_changes or len(plan.changes)):
            return
        if plan.token is None:  # without a state the next run does the same
            return
        dropped = list(plan.dropped)
        if plan.changes.drops or self._report.dropped:
            number = len(plan.changes.drops) + len(self._report.dropped)
            dropped.append((int(time.time()), number))
        state = plan.state or SyncState("", "", "", "", 0, 0, 0)
        self._begun = True
        self._keep(plan, plan.table.record, replace(state, compared=0, dropped=dropped))

    def _settled(self, plan: SyncPlan, added: list[NewPartition], dropped: Sequence[str]) -> bool:
        """Whether added partitions still have data and dropped ones still have none.

        Files may appear and vanish between a check and the write that follows, and another sync may
        see them. The last writer therefore checks once more.
        """
        gone = set(dropped)
        places = [d.location for d in plan.changes.drops if d.name in gone and not d.left]
        if any(self._storage.find_occupied(places)):
            return False
        return len(self._present(plan, added)) == len(added)

    def _present(self, plan: SyncPlan, batch: Sequence[NewPartition]) -> list[NewPartition]:
        """Partitions whose directory still holds data; the metastore would create a missing one."""
        if time.monotonic() - plan.listed_at < self._settings.recheck_after:
            return list(batch)
        found = self._storage.present([canonical(p.spelled) for p in batch])
        kept = [p for p, there in zip(batch, found, strict=True) if there]
        if len(kept) < len(batch):
            log.info("%s: %d directories vanished", self._report.table, len(batch) - len(kept))
        return kept

    def _gone(self, batch: Sequence[Drop]) -> list[Drop]:
        """Partitions that still have no data; there may have been writes since the listing."""
        found = self._storage.find_occupied([d.location for d in batch])
        forced = self._request.drop_all
        pairs = zip(batch, found, strict=True)
        return [d for d, there in pairs if not there or (d.left and forced)]

    def _write_table(self, plan: SyncPlan) -> bool:
        name = self._request.name
        marks = {
            ROOT_PROPERTY: plan.place.root,
            EXTRACTOR_PROPERTY: plan.extractor,
            STATE_PROPERTY: plan.token or new_token(),
        }
        if plan.table is None:
            made = new_table(
                name,
                plan.columns,
                plan.stored.keys,
                plan.place.spell(plan.place.root),
                marks,
                plan.files,
            )
            return create(self._client, made, self._request, self._report)

        def amend(fresh: RegisteredTable) -> records.Table:
            moved = fresh.location != plan.place.root
            spelled = plan.place.spell(plan.place.root) if moved else fresh.spelled
            return amended_table(fresh.record, plan.columns, spelled, marks)

        return amend_noting(self._client, plan.table, amend, self._settings, self._report)

    def _remember(self, plan: SyncPlan, table: RegisteredTable, expected: set[str]) -> bool:
        """Writes the state if the metastore is as this run left it; False otherwise."""
        name = self._request.name
        fresh = read_table(self._client, name)
        names = partition_names(self._client, name, table)
        self._report.partitions = len(names)
        same_table = list(fresh.digest_parts()) == list(table.digest_parts())
        if not same_table or expected - set(names):
            return False
        if len(names) > len(expected):
            return left_to_next_run(self._report)
        dropped = list(plan.dropped)
        if self._report.dropped:
            dropped.append((int(time.time()), len(self._report.dropped)))
        elif self._report.failed:  # the next run retries them
            if plan.state is not None:
                self._keep(plan, fresh.record, plan.state)
            return True
        newest = plan.directories.rows["newest"].to_numpy()
        state = SyncState(
            storage=plan.digest,
            names=text_digest(sorted(names)),
            table=text_digest(fresh.digest_parts()),
            reading=self._comparison.reading(plan.extractor),
            newest=int(newest.max()) if len(newest) else 0,
            partitions=len(names),
            compared=plan.state.compared if plan.quick and plan.state else int(time.time()),
            elsewhere=sorted(plan.changes.elsewhere),
            dropped=dropped,
            left_out=self._report.left_out,
            unreadable=self._report.unreadable,
            parts=Parts(plan.directories).text(),
            indexed=plan.state.indexed if plan.state else "",
        )
        if self._report.failed:
            state = replace(state, compared=0)
        elif not self._begun and plan.state is not None and self._still(plan.state, state):
            return True  # compared again before the state was due for renewal: nothing to write
        self._keep(plan, fresh.record, state)
        return True

    def _keep(self, plan: SyncPlan, record: records.Table, state: SyncState) -> None:
        failure = plan.states.write(record, state.to_text())
        line = f"! {failure}; until then each run compares everything"
        if failure is not None and line not in self._report.table_changes:
            self._report.table_changes.append(line)

    def _still(self, old: SyncState, new: SyncState) -> bool:
        recent = time.time() - old.compared < self._settings.compare_all_after
        dropped = dropped_lately(old.dropped, time.time())
        return recent and replace(old, dropped=dropped).but_for_time() == new.but_for_time()
