"""Compares a table's storage with its metastore records.

Partition names are read from the metastore before storage is listed. A partition registered in
between is therefore never taken for one whose directory was deleted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.formats.registry import file_format
from bridge.index.generations.replacements import location_before_publishing, was_published
from bridge.kernel.errors import (
    InvalidRequest,
    InvalidUri,
    SchemaNotFound,
    TableExists,
    TableNotFound,
)
from bridge.metastore.batches import BatchSettings, fetch_partitions
from bridge.metastore.client import MetastoreClient
from bridge.storage.uri import relative
from bridge.sync.absence import Absence, dropped_lately
from bridge.sync.diff import (
    Changes,
    KeptPartition,
    Occupied,
    PartitionDiff,
    SpelledColumns,
    TargetProperties,
)
from bridge.sync.discovered_partitions import DiscoveredPartitions, DiscoveryContext, discover
from bridge.sync.extractors import find_extractor
from bridge.sync.places import typed_keys
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.schemas.contradictions import refuse_contradictions, refuse_other_keys
from bridge.sync.schemas.file_options import FileFormatOptions, declare_files
from bridge.sync.schemas.file_types import FileTypes, Schemas
from bridge.sync.schemas.schema import (
    SchemaEvolution,
    appended_lines,
    evolve,
    names_within,
    read_each,
    read_schemas,
    refuse,
    thin_out,
)
from bridge.sync.schemas.type_changes import refuse_type_changes
from bridge.sync.state import (
    EXTRACTOR_PROPERTY,
    Parts,
    SyncState,
    parse_state,
    storage_digest,
    text_digest,
)
from bridge.sync.state_file import StateFiles, token_of
from bridge.sync.storage import SyncStorage, TableRoot, place_of
from bridge.sync.writing.metastore import (
    RegisteredTable,
    amended_table,
    key_of,
    plain_columns,
    read_table,
    registered_partition,
)
from bridge.sync.writing.published import (
    left_directories,
    lies_published,
    published_below,
)
from bridge.sync.writing.record import refuse_dropped
from bridge.table.directory.discovered import Discovered
from bridge.table.directory.foreign import refuse_foreign_files
from bridge.table.hive_properties import ROOT_PROPERTY
from bridge.table.model import Column
from bridge.table.partition import partition_name
from bridge.table.registry import DIRECTORY, recognise_format

_FETCHED_BYTES = 4 << 20
RowMask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class SyncPlan:
    """One comparison and the changes that follow from it.

    Attributes:
        table: as read before storage was listed; None if it must be created.
        names: its partition names at that time.
        quick: the metastore still matches the state of the last run.
        state: the state of the last run; None if there is none, or it is lost.
        states: where it lies.
        columns: the table's columns after this run.
        target: the same, as partitions that exist were compared with them.
        table_changes: changes of the table itself, one line each, as in a diff.
        digest: digest of storage.
        newer, possibly: directories that changed since the last run, and others that may have.
        in_step: storage, too, matches the last run's state, so nothing needs comparing.
        dropped: the drops of former runs that the brake still counts.
        files: how the files of a new table are declared.
    """

    table: RegisteredTable | None
    names: list[str]
    place: TableRoot
    extractor: str
    stored: DiscoveredPartitions
    state: SyncState | None
    states: StateFiles
    quick: bool
    listed_at: float
    columns: tuple[Column, ...] = ()
    target: SpelledColumns = ()
    changes: Changes = field(default_factory=Changes)
    table_changes: list[str] = field(default_factory=list)
    digest: str = ""
    newer: RowMask = field(default_factory=lambda: np.zeros(0, np.bool_))
    possibly: RowMask = field(default_factory=lambda: np.zeros(0, np.bool_))
    in_step: bool = False
    dropped: list[tuple[int, int]] = field(default_factory=list)
    files: FileFormatOptions = field(default_factory=FileFormatOptions)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(k.name for k in self.stored.keys)

    @property
    def token(self) -> str | None:
        """Of the table's record; None if it has none of its own."""
        record = self.table.record if self.table is not None else None
        if record is None or (self.state is None and self.states.is_of_another(record)):
            return None
        return token_of(record)

    @property
    def directories(self) -> Discovered:
        return self.stored.directories


class Comparison:
    """Reads and compares; changes nothing but its report.

    Args:
        storage: the storage side of this run.
        report: receives the findings.
    """

    def __init__(
        self,
        client: MetastoreClient,
        storage: SyncStorage,
        request: SyncRequest,
        settings: SyncSettings,
        report: SyncReport,
    ) -> None:
        self._client = client
        self._storage = storage
        self._request = request
        self._settings = settings
        self._report = report
        self._files_columns: tuple[Column, ...] = ()
        self._schemas: Schemas = ()
        self._dropped: list[tuple[int, int]] | None = None
        self._begun = int(time.time() * 1000)

    def compare(self) -> SyncPlan:
        """Errors: those of `bridge.sync.table.TableSync.run`."""
        plan = self._read()
        report = self._report
        report.location = plan.place.root
        report.compared = "changes" if plan.quick else "all"
        report.directories = len(plan.directories)
        report.unparsable = list(plan.stored.unparsable)
        report.collisions = [
            (partition_name(plan.keys, key), claimants) for key, claimants in plan.stored.collisions
        ]
        plan.digest = storage_digest(plan.directories)
        report.unregistered = [directory for directory, _ in plan.stored.unparsable]
        same = plan.quick and plan.state is not None and plan.state.storage == plan.digest
        whole = not plan.stored.keys or len(plan.names) == len(plan.stored.partitions)
        if same and whole and plan.state is not None and not plan.state.elsewhere:
            plan.in_step = True
            report.left_out, report.unreadable = plan.state.left_out, plan.state.unreadable
            report.unchanged = report.partitions = len(plan.names)
            return plan
        self._refuse_foreign(plan.directories, plan.table)
        plan.newer, plan.possibly = self._changed_rows(plan)
        if same and plan.table is not None:  # columns do not change where no file did
            evolution = evolve(plan.table.columns, (), plan.stored.keys)
            report.unreadable = list(plan.state.unreadable) if plan.state is not None else []
        else:
            evolution = self._evolution(plan)
        plan.columns = evolution.columns
        left_out = {*evolution.left_out}
        if plan.state is not None and (plan.quick or not self._schemas):  # of files not read now
            left_out |= {*plan.state.left_out} - names_within(plan.columns)
        report.left_out = sorted(left_out)
        if plan.table is not None and plan.table.keys:
            plan.changes = self._diff(plan, plan.table, bool(evolution.widened))
        elif plan.stored.keys:
            plan.changes.adds = list(plan.stored.partitions)
        self._leave_replaced(plan)
        plan.table_changes = self._table_changes(plan, evolution)
        changes = plan.changes
        report.unchanged = changes.unchanged
        report.kept = [(k.name, k.location, k.reason) for k in changes.kept]
        report.waiting = [(w.name, w.location, w.reason) for w in changes.waiting]
        root = plan.place.root
        report.unregistered += [relative(root, uri) or "" for uri in changes.unregistered]
        report.doubled = changes.doubled
        return plan

    def _read(self) -> SyncPlan:
        request = self._request
        table: RegisteredTable | None = None
        with contextlib.suppress(TableNotFound, SchemaNotFound):
            table = read_table(self._client, request.name)
        refuse_dropped(request.name, table, request)
        properties = table.properties if table is not None else {}
        given = request.location
        if table is not None and given is not None and lies_published(table.location, given):
            given = None
        place = place_of(str(request.name), given, table.spelled if table is not None else None)
        if table is not None:
            self._refuse_strangers(table, place)
        names: list[str] = []
        if table is not None and table.keys:
            names = self._client.get_partition_names(request.name.schema, request.name.table)
        extractor = request.extractor or properties.get(EXTRACTOR_PROPERTY) or "hive"
        if table is not None:
            refuse_contradictions(request, table)
        keys = tuple(k.name.lower() for k in request.keys)
        known = tuple(k.name for k in table.keys) if table is not None else keys
        refuse_other_keys(request, known)
        # Hive-style directories name their keys; a mismatch error shows both names.
        reader = find_extractor(extractor, () if extractor == "hive" and not keys else known)
        listed_at = time.monotonic()
        context = DiscoveryContext(
            partial(self._storage.look, format=recognise_format(properties)),
            reader,
            table.keys if table is not None else None,
            request.keys,
            self._settings.recursive,
        )
        stored = discover(place.root, context)
        if not stored.partitions and (table is None or not stored.collisions):
            self._refuse_foreign(stored.directories, table)
            self._refuse_nothing(place, stored, names, table)
        states = StateFiles(self._storage.storage, place.root, self._settings.state_root)
        record = table.record if table is not None else None
        state = parse_state(states.read(record))
        if self._dropped is None:  # a later round reads what this run has noted
            lost = state is None and token_of(record) is not None
            self._dropped = [(int(time.time()), -1)] if lost else state.dropped if state else []
        plan = SyncPlan(table, names, place, extractor, stored, state, states, False, listed_at)
        plan.dropped = dropped_lately(self._dropped, time.time())
        plan.quick = self._trusted(plan)
        return plan

    def _refuse_strangers(self, table: RegisteredTable, place: TableRoot) -> None:
        name = self._request.name
        roots = {place.root, table.location, location_before_publishing(table.location)}
        ours = table.properties.get(ROOT_PROPERTY) in roots
        if not ours and not self._request.adopt:
            raise TableExists(
                f"{name} exists and is not maintained by skipbridge: its owner is "
                f"{table.record.owner or 'nobody'}, its location {table.spelled}",
                "take it over with --adopt, or choose another name",
            )
        if table.location != place.root and not self._request.move:
            raise TableExists(
                f"{name} is at {table.location}, not at {place.root}",
                "if the table has moved there, add --move; else correct --location",
            )
        self._report.adopted = not ours

    def _refuse_foreign(self, found: Discovered, table: RegisteredTable | None) -> None:
        """Of a table of directories; other formats tell their own files."""
        format = recognise_format(table.properties) if table is not None else DIRECTORY
        if len(found) and format == DIRECTORY:
            paths = found.paths
            some = [found.uri(path) for path in {paths[0], paths[-1]}]
            refuse_foreign_files(self._storage.storage, found.root, some)

    def _refuse_nothing(
        self,
        place: TableRoot,
        stored: DiscoveredPartitions,
        names: Sequence[str],
        table: RegisteredTable | None,
    ) -> None:
        if self._request.drop_all and table is not None:
            return
        if names and was_published(self._storage.storage, place.root):
            return  # all that is left may lie in published directories
        if stored.directories.refused:
            raise InvalidUri(stored.directories.refused[0][1], "rename or remove it")
        if stored.collisions:
            raise InvalidRequest(
                f"below {place.root}, {' and '.join(stored.collisions[0][1])} claim the same "
                "partition, and there is no other",
                "merge them into one directory",
            )
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

    def reading(self, extractor: str) -> str:
        """How directories are read, as the state records it."""
        return f"{extractor}{' recursive' if self._settings.recursive else ''}"

    def _trusted(self, plan: SyncPlan) -> bool:
        """Whether cheap checks find the metastore as the last run left it.

        Storage must also be read in the same way as in that run.
        """
        state, table, request = plan.state, plan.table, self._request
        if state is None or table is None or request.full or request.relocate:
            return False
        if self._report.rounds > 1:  # another job wrote meanwhile
            return False
        return (
            time.time() - state.compared < self._settings.compare_all_after
            and table.location == plan.place.root
            and table.properties.get(ROOT_PROPERTY) == plan.place.root
            and state.reading == self.reading(plan.extractor)
            and state.names == text_digest(sorted(plan.names))
            and state.table == text_digest(table.digest_parts())
        )

    def _evolution(self, plan: SyncPlan) -> SchemaEvolution:
        """The table's columns after this run.

        Reads files of new partitions and of partitions written since the last run. If these do not
        decide, reads files of all partitions.
        """
        rows = sorted(r for p in plan.stored.partitions.values() for r in p.rows)
        looked_at = rows
        if plan.quick:
            certain, possible = ([r for r in rows if w[r]] for w in (plan.newer, plan.possibly))
            looked_at = sorted([*certain, *self._room(possible, len(certain))])
        found = self._look(plan, looked_at)
        if found.conflicting or found.narrower:
            if len(looked_at) < len(rows):
                found = self._look(plan, rows)
            if self._request.hold_wider and not found.conflicting:
                return found
            table = plan.table.columns if plan.table is not None else ()
            refuse(str(self._request.name), found, table, self._files_columns)
        return found

    def _changed_rows(self, plan: SyncPlan) -> tuple[RowMask, RowMask]:
        newest = plan.directories.rows["newest"].to_numpy()
        state = plan.state
        if state is None or not state.compared or state.reading != self.reading(plan.extractor):
            return np.ones(len(newest), np.bool_), np.zeros(len(newest), np.bool_)
        known = {key_of(n) for n in plan.names}
        new = {r for k, p in plan.stored.partitions.items() if k not in known for r in p.rows}
        added = np.zeros(len(newest), np.bool_)
        added[list(new)] = True
        newer = added | (newest >= state.newest)
        # Files that were copied with their times are in one of these, too.
        return newer, Parts(plan.directories).find_changed(state.parts, added) & ~newer

    def _room(self, rows: Sequence[int], used: int) -> Sequence[int]:
        """As many of the rows as footers may still be read."""
        most = self._settings.schema_sample
        if not most:
            return rows
        return thin_out(rows, most - used) if used < most else ()

    def _look(self, plan: SyncPlan, rows: Sequence[int]) -> SchemaEvolution:
        files = self._files(plan, rows)
        if plan.state is not None:  # what could not be read is read again
            wanted = plan.state.unreadable_in(plan.directories) - {uri for uri, _ in files}
            files += self._storage.sizes(sorted(wanted))
        storage = self._storage.storage
        told: tuple[Column, ...] = ()
        if plan.table is not None:
            format = plan.table.layout.format
        else:
            plan.files, told = declare_files(storage, self._request, plan.directories, files)
            format = plan.files.format
        if file_format(format).read_schema is None:  # the table's columns are as declared
            self._files_columns = told
            return evolve(plan.table.columns if plan.table else (), told, plan.stored.keys)
        found = read_schemas(storage, files, format, threads=self._settings.threads)
        self._report.unreadable = list(found.unreadable)
        if plan.table is None and not found.columns:
            raise found.refusal(plan.place.root)
        self._files_columns, self._schemas = found.columns, found.files
        table = plan.table.columns if plan.table is not None else ()
        return evolve(table, found.columns, plan.stored.keys)

    def _files(
        self, plan: SyncPlan, rows: Sequence[int], *, each: bool = False
    ) -> list[tuple[str, int]]:
        """The files to inspect: all files in these directories, if they are few enough.

        Otherwise the newest file of each directory, or of an even sample of the directories.

        Args:
            each: of each, however many.
        """
        most = self._settings.schema_sample
        table = plan.directories.rows
        counts = table["files"].to_numpy()
        total = int(counts[np.array(rows, np.int64)].sum())
        if total > len(rows) and (not most or total <= most):
            paths = plan.directories.paths
            found = self._storage.files([plan.directories.uri(paths[r]) for r in rows])
            return list(dict.fromkeys(found))  # of a directory within another both times
        chosen = pa.array(rows if each else thin_out(rows, most), pa.int64())
        samples = table.select(["path", "sample", "sample_bytes"]).take(chosen).to_pylist()
        return [
            (f"{plan.directories.uri(row['path'])}/{row['sample']}", row["sample_bytes"])
            for row in samples
        ]

    def _diff(self, plan: SyncPlan, table: RegisteredTable, widened: bool) -> Changes:
        amended = amended_table(table.record, plan.columns, table.spelled, {})
        columns = plan.target = plain_columns(amended.sd.cols)
        left = table.location if table.location != plan.place.root else None
        target = TargetProperties(
            plan.place.root,
            columns,
            table.layout,
            left,
            self._request.relocate,
            published_below(plan.place.root),
        )
        report, root = self._report, plan.place.root
        recent = [number for _, number in plan.dropped]
        absence = Absence(
            self._storage,
            root,
            self._request,
            self._settings,
            self._begun,
            registered=len(plan.names),
            recent=sum(recent) + len(report.dropped) if min(recent, default=0) >= 0 else None,
            nothing=not len(plan.directories),
        )
        refused = [directory for directory, _ in plan.directories.refused]
        occupied = Occupied(root, plan.directories.paths, self._storage.find_occupied, refused)
        changed = plan.newer | plan.possibly
        types = FileTypes(
            plan.directories,
            columns,
            self._schemas,
            # Where the table's types were the narrower ones, none was missed so far.
            np.ones(len(changed), np.bool_) if widened else changed,
            partial(self._read_each, plan, table.layout.format),
            self._settings.recursive,
        )
        diff = PartitionDiff(plan.stored, target, occupied, absence, types)
        wanted = plan.names
        if plan.quick and columns == table.target_columns:
            wanted = self._untrusted(plan, changed)
            some = set(wanted)
            diff.trust((key_of(n), n) for n in plan.names if n not in some)
        weight = 600 + sum(len(n) + len(t) + 20 for n, t in columns)
        cap = max(10, min(1000, _FETCHED_BYTES // weight))
        sizes = BatchSettings(start=min(100, cap), cap=cap, parallelism=self._settings.parallelism)
        name = self._request.name
        with fetch_partitions(self._client, name.schema, name.table, wanted, sizes) as stream:
            for batch in stream:
                diff.take(
                    registered_partition(n, record, root)
                    for n, record in zip(batch.names, batch.partitions, strict=True)
                )
        changes = diff.changes()
        report.held = absence.held
        if self._request.dry_run:
            changes.adds += changes.later
        registered = diff.places()
        report.unregistered = [
            directory
            for directory in report.unregistered
            if directory in refused
            or directory in plan.stored.links
            or not registered.holds(plan.directories.uri(directory), self._settings.recursive)
        ]
        return changes

    def _read_each(self, plan: SyncPlan, format: str, rows: Sequence[int]) -> Schemas:
        """The schemas of files in each of these directories."""
        if file_format(format).read_schema is None:
            return ()
        files = self._files(plan, rows, each=True)
        storage, threads = self._storage.storage, self._settings.threads
        schemas, unreadable = read_each(storage, files, format, threads=threads)
        self._report.unreadable = [*dict.fromkeys([*self._report.unreadable, *unreadable])]
        return schemas

    def _untrusted(self, plan: SyncPlan, changed: RowMask) -> list[str]:
        """The partitions that a quick run compares.

        They are those without a directory of their name, those that lie elsewhere, those that have
        the typed values of a new directory, and those whose files may have changed.
        """
        assert plan.state is not None
        stored, elsewhere = plan.stored.partitions, set(plan.state.elsewhere)
        keys = {name: key_of(name) for name in plan.names}
        typed = typed_keys(plan.stored.keys)
        known = set(keys.values())
        new = {typed(key) for key in stored if key not in known}
        return [
            name
            for name, key in keys.items()
            if key not in stored
            or name in elsewhere
            or any(changed[row] for row in stored[key].rows)
            or (new and typed(key) in new)
        ]

    def _leave_replaced(self, plan: SyncPlan) -> None:
        """Leaves directories unregistered that were left when they were published elsewhere."""
        adds = list(plan.changes.adds)
        if plan.table is None and not plan.stored.keys:
            adds = list(plan.stored.partitions)
        if not adds:
            return
        directories = {
            partition_name(plan.keys, key): plan.directories.uri(
                plan.stored.partitions[key].directory
            )
            for key in adds
        }
        left = left_directories(self._storage.storage, plan.place.root, directories)
        if "" in left:
            raise InvalidRequest(
                f"{plan.place.root} was left when its table was published to another directory: "
                "it lacks what was written since",
                "read the table by its name",
            )
        for key in adds if left else ():
            name = partition_name(plan.keys, key)
            if name in left:
                plan.changes.adds.remove(key)
                reason = "it was left when its partition was published to another directory"
                plan.changes.kept.append(KeptPartition(name, directories[name], reason))

    def _table_changes(self, plan: SyncPlan, evolution: SchemaEvolution) -> list[str]:
        if plan.table is None:
            keys = ", ".join(f"{k.name} {k.type}" for k in plan.stored.keys)
            lines = [f"+ table {self._request.name}" + (f", partitioned by {keys}" if keys else "")]
            lines += [*plan.files.notes, *plan.stored.notes]
            of_files = {c.name.lower() for c in self._files_columns}
            lines += [
                f"~ the files' column {k.name} is hidden: the partition key has its name"
                for k in plan.stored.keys
                if k.name.lower() in of_files
            ]
        else:
            lines, properties = [], plan.table.properties
            if (
                properties.get(ROOT_PROPERTY) != plan.place.root
                or properties.get(EXTRACTOR_PROPERTY) != plan.extractor
                or plan.token is None
            ):
                lines.append(f"~ table is kept by sync, extractor {plan.extractor}")
            if plan.table.location != plan.place.root:
                lines.append(f"~ location {plan.table.location} -> {plan.place.root}")
        format = plan.table.layout.format if plan.table is not None else plan.files.format
        lines += appended_lines(evolution, self._schemas if format == "parquet" else ())
        lines += [f"~ column {n} {old} -> {new}" for n, old, new in evolution.widened]
        if plan.table is not None and evolution.widened:
            record = plan.table.record
            after = amended_table(record, plan.columns, plan.table.spelled, {}).sd.cols
            name = str(self._request.name)
            doubts = refuse_type_changes(self._client, name, record.sd.cols, after)
            lines += doubts if self._request.dry_run else ()
        return lines
