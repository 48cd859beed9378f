"""Hooks and unhooks Hive tables through the metastore.

Both operations walk over all partitions and may stop anywhere: whatever was altered so far is
correct, and the same command continues. Both alter the table first, so that partitions that Hive
adds meanwhile are correct from the start. While unhooking, the table keeps its former input format
until the last partition is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bridge.config import Config
from bridge.errors import MetastoreFailure
from bridge.jobs.compose import batch_settings, metastore_of
from bridge.jobs.create_table import table_name
from bridge.metastore import records
from bridge.metastore.batches import BatchSettings, fetch_partitions
from bridge.metastore.client import FoundPartitions, MetastoreClient
from bridge.metastore.hooks import (
    KEEP_STATISTICS,
    ORIGINAL_PROPERTY,
    Survey,
    forget,
    hook,
    is_hooked,
    is_marked,
    obstacle,
    refuse_unhookable,
    unhook,
)
from bridge.table.model import TableName

Progress = Callable[[int, int], None]
Change = Callable[[records.Partition], bool]
_ATTEMPTS = 3
_CHANGED = "transient_lastDdlTime"


def silent(done: int, total: int) -> None:
    """Ignores progress."""


@dataclass(frozen=True, slots=True)
class HookedTable:
    """A table of the metastore, with access to its partitions.

    Attributes:
        table: the table's record, changed in place.
        sizes: of the batches in which partitions are fetched and altered.
        progress: called with (done, total) partitions.
    """

    client: MetastoreClient
    name: TableName
    table: records.Table
    sizes: BatchSettings
    progress: Progress = silent

    def alter(self) -> None:
        """Writes the record back.

        Errors:
            MetastoreFailure: also if the table was altered since it was fetched.
        """
        changed = (self.table.parameters or {}).get(_CHANGED)
        expected = (
            {"expected_parameter_key": _CHANGED, "expected_parameter_value": changed}
            if changed
            else {}
        )
        self.client.alter_table(
            self.name.schema, self.name.table, self.table, {**KEEP_STATISTICS, **expected}
        )

    def alter_partitions(self, change: Change) -> tuple[Survey, int]:
        """Changes all partitions, one call per batch.

        Nothing is fetched meanwhile: on Derby a call that reads partitions and one that alters
        others wait for each other's locks until one fails, after a minute at worst.

        Args:
            change: returns True if it changed the record.

        Returns:
            The state of all partitions before, and the number of altered ones.
        """
        survey, altered = Survey(), 0
        if not self.table.partitionKeys:
            return survey, altered
        schema, table, batch = self.name.schema, self.name.table, self.sizes.cap
        names = self.client.get_partition_names(schema, table)
        for begin in range(0, len(names), batch):
            wanted = names[begin : begin + batch]
            found = self.client.get_partitions_by_names(schema, table, wanted)
            altered += self._alter_batch(found, change, survey)
            self.progress(begin + len(wanted), len(names))
        return survey, altered

    def survey(self) -> Survey:
        """The state of the partitions."""
        survey = Survey()
        for found in self.batches():
            for name, partition in zip(found.names, found.partitions, strict=True):
                survey.count(name, partition, self.table)
        return survey

    def batches(self) -> Iterator[FoundPartitions]:
        """All partitions; none if the table has no partition keys."""
        if not self.table.partitionKeys:
            return
        schema, table, done = self.name.schema, self.name.table, 0
        names = self.client.get_partition_names(schema, table)
        with fetch_partitions(self.client, schema, table, names, self.sizes) as stream:
            for found in stream:
                yield found
                done += len(found.names) + len(found.missing)
                self.progress(done, len(names))

    def _alter_batch(self, found: FoundPartitions, change: Change, survey: Survey) -> int:
        schema, table = self.name.schema, self.name.table
        for attempt in range(1, _ATTEMPTS + 1):
            seen = Survey()
            altered: list[records.Partition] = []
            for name, partition in zip(found.names, found.partitions, strict=True):
                seen.count(name, partition, self.table)
                if change(partition):
                    altered.append(partition)
            try:
                self.client.alter_partitions(schema, table, altered, KEEP_STATISTICS)
            except MetastoreFailure:
                found = self.client.get_partitions_by_names(schema, table, found.names)
                if not found.missing or attempt == _ATTEMPTS:
                    raise
                continue  # one was dropped meanwhile, so the metastore altered none
            survey.add(seen)
            return len(altered)
        return 0


def open_hooked(
    client: MetastoreClient, config: Config, name: str, progress: Progress = silent
) -> HookedTable:
    """Errors: InvalidRequest, SchemaNotFound, TableNotFound, MetastoreUnavailable."""
    target = table_name(name)
    table = client.get_table(target.schema, target.table)
    return HookedTable(client, target, table, batch_settings(config), progress)


def hook_table(
    config: Config,
    name: str,
    *,
    dry_run: bool,
    progress: Progress,
    before_change: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Lets Hive read a table and all its partitions through skipbridge; safe to repeat.

    Args:
        before_change: called if the table is not hooked yet and can be, before it is altered.

    Errors:
        UnsupportedTable: Hive would return wrong rows, or gain nothing.
        SchemaNotFound, TableNotFound, MetastoreUnavailable, MetastoreFailure.
    """
    with metastore_of(config) as client:
        of = open_hooked(client, config, name, progress)
        refuse_unhookable(of.table)
        was = of.table.sd.inputFormat
        touched = hook(of.table)
        report = _report(of, "hook", dry_run, was, touched)
        if dry_run:
            survey = of.survey()
            return {**report, **_counts(survey, survey.plain)}
        if touched:
            before_change()
            of.alter()
        survey, altered = of.alter_partitions(lambda p: not obstacle(p, of.table) and hook(p))
        return {**report, **_counts(survey, altered)}


def unhook_table(config: Config, name: str, *, dry_run: bool, progress: Progress) -> dict[str, Any]:
    """Restores the former input formats of a table and all its partitions.

    Errors:
        SchemaNotFound, TableNotFound, MetastoreUnavailable, MetastoreFailure.
        UnsupportedTable: the table was hooked by a version with other classes.
    """
    with metastore_of(config) as client:
        of = open_hooked(client, config, name, progress)
        was, hooked = of.table.sd.inputFormat, is_hooked(of.table.sd)
        remembered = (of.table.parameters or {}).get(ORIGINAL_PROPERTY)
        touched = unhook(of.table)
        report = _report(of, "unhook", dry_run, was, touched)
        if dry_run:
            survey = of.survey()
            return {**report, **_counts(survey, survey.hooked)}
        original = of.table.sd.inputFormat if hooked else remembered
        if touched and of.table.partitionKeys:
            # Partitions without a record of their own use the table's, even in a second run.
            of.table.parameters[ORIGINAL_PROPERTY] = original
        if touched and (hooked or not of.table.partitionKeys):
            of.alter()
        survey, altered = of.alter_partitions(lambda p: unhook(p, original))
        if touched and of.table.partitionKeys:
            last = open_hooked(client, config, name)
            if not is_hooked(last.table.sd) and is_marked(last.table):
                forget(last.table)
                last.alter()
        return {**report, **_counts(survey, altered)}


def _report(of: HookedTable, action: str, dry_run: bool, was: str, touched: bool) -> dict[str, Any]:
    return {
        "table": str(of.name),
        "action": action,
        "dry_run": dry_run,
        "input_format": {"from": was, "to": of.table.sd.inputFormat},
        "table_altered": touched,
        "partitioned": bool(of.table.partitionKeys),
    }


def _counts(survey: Survey, altered: int) -> dict[str, Any]:
    return {
        "partitions": survey.total,
        "altered": altered,
        "left": [
            {"reason": reason, "partitions": count, "such_as": survey.examples[reason]}
            for reason, count in survey.left.items()
        ],
    }
