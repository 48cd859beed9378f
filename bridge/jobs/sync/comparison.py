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
import pyarrow as pa

from bridge.errors import InvalidRequest, SchemaNotFound, TableExists, TableNotFound
from bridge.file_formats.registry import file_format
from bridge.index.replacements import home
from bridge.jobs.sync.absence import Absence, dropped_lately
from bridge.jobs.sync.file_options import FileFormatOptions, declared
from bridge.jobs.sync.metastore import (
    RegisteredTable,
    amended_table,
    key_of,
    plain_columns,
    read_table,
    registered_partition,
)
from bridge.jobs.sync.published import (
    left_directories,
    lies_published,
    published_below,
    was_published,
)
from bridge.jobs.sync.request import SyncRequest, SyncSettings
from bridge.jobs.sync.storage import Place, SyncStorage, place_of
from bridge.metastore.batches import BatchSettings, fetch_partitions
from bridge.metastore.client import MetastoreClient
from bridge.storage.uri import relative
from bridge.sync.diff import Changes, Kept, Occupied, PartitionDiff, Target
from bridge.sync.discovered_partitions import DiscoveredPartitions, DiscoveryContext, discover
from bridge.sync.extractors import find_extractor
from bridge.sync.places import typed_keys
from bridge.sync.report import SyncReport
from bridge.sync.schema import Evolution, evolve, read_schemas, refuse, thinned
from bridge.sync.state import (
    EXTRACTOR_PROPERTY,
    ROOT_PROPERTY,
    STATE_PROPERTY,
    Parts,
    SyncState,
    parse_state,
    storage_digest,
    text_digest,
)
from bridge.table.discovered import Discovered
from bridge.table.foreign import refuse_foreign_files
from bridge.table.model import Column
from bridge.table.partition import partition_name
from bridge.table.registry import DIRECTORY, recognised

_FETCHED_BYTES = 4 << 20


@dataclass(slots=True)
class Plan:
    """One comparison and the changes that follow from it.

    Attributes:
        table: as read before storage was listed; None if it must be created.
        names: its partition names at that time.
        quick: the metastore still matches the state of the last run.
        state: the state of the last run.
        columns: the table's columns after this run.
        table_changes: changes of the table itself, one line each, as in a diff.
        digest: digest of storage.
        in_step: storage, too, matches the last run's state, so nothing needs comparing.
        dropped: the drops of former runs that the brake still counts.
        files: how the files of a new table are declared.
    """

    table: RegisteredTable | None
    names: list[str]
    place: Place
    extractor: str
    stored: DiscoveredPartitions
    state: SyncState | None
    quick: bool
    listed_at: float
    columns: tuple[Column, ...] = ()
    changes: Changes = field(default_factory=Changes)
    table_changes: list[str] = field(default_factory=list)
    digest: str = ""
    in_step: bool = False
    dropped: list[tuple[int, int]] = field(default_factory=list)
    files: FileFormatOptions = field(default_factory=FileFormatOptions)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(k.name for k in self.stored.keys)

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
        self._begun = int(time.time() * 1000)

    def compare(self) -> Plan:
        """Errors: those of `bridge.jobs.sync.table.TableSync.run`."""
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
            report.unchanged = report.partitions = len(plan.names)
            return plan
        self._refuse_foreign(plan.directories, plan.table)
        if same and plan.table is not None:  # columns do not change where no file did
            evolution = evolve(plan.table.columns, (), plan.stored.keys)
        else:
            evolution = self._evolution(plan)
        plan.columns = evolution.columns
        report.left_out = list(evolution.left_out)
        if plan.table is not None and plan.table.keys:
            plan.changes = self._diff(plan, plan.table)
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

    def _read(self) -> Plan:
        request = self._request
        table: RegisteredTable | None = None
        with contextlib.suppress(TableNotFound, SchemaNotFound):
            table = read_table(self._client, request.name)
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
        if table is not None and request.format not in (None, table.layout.format):
            raise InvalidRequest(
                f"{request.name} is stored as {table.layout.format}, not {request.format}",
                "leave --format out, or register the directory under another name",
            )
        keys = tuple(k.name.lower() for k in request.keys)
        known = tuple(k.name for k in table.keys) if table is not None else keys
        if keys and keys != known:
            raise InvalidRequest(
                f"{request.name} has the partition keys {', '.join(known) or 'none'}, "
                f"not {', '.join(keys)}",
                "a table's keys cannot be changed: leave --partition-keys out, or register another",
            )
        # Hive-style directories name their keys; a mismatch error shows both names.
        reader = find_extractor(extractor, () if extractor == "hive" and not keys else known)
        listed_at = time.monotonic()
        spark = request.spark
        if spark is None:
            spark = len(names) >= self._settings.spark_from > 0
        context = DiscoveryContext(
            partial(
                self._storage.look,
                spark=spark,
                required=bool(request.spark),
                format=recognised(properties),
            ),
            reader,
            table.keys if table is not None else None,
            request.keys,
            self._settings.recursive,
        )
        stored = discover(place.root, context)
        self._report.listed_by = self._storage.listed_by
        if not stored.partitions and (table is None or not stored.collisions):
            self._refuse_foreign(stored.directories, table)
            self._refuse_nothing(place, stored, names, table)
        state = parse_state(properties.get(STATE_PROPERTY))
        plan = Plan(table, names, place, extractor, stored, state, False, listed_at)
        plan.quick = self._trusted(plan)
        return plan

    def _refuse_strangers(self, table: RegisteredTable, place: Place) -> None:
        name = self._request.name
        roots = {place.root, table.location, home(table.location)}
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
        format = recognised(table.properties) if table is not None else DIRECTORY
        if len(found) and format == DIRECTORY:
            paths = found.paths
            some = [found.uri(path) for path in {paths[0], paths[-1]}]
            refuse_foreign_files(self._storage.storage, found.root, some)

    def _refuse_nothing(
        self,
        place: Place,
        stored: DiscoveredPartitions,
        names: Sequence[str],
        table: RegisteredTable | None,
    ) -> None:
        if self._request.drop_all and table is not None:
            return
        if names and was_published(self._storage.storage, place.root):
            return  # all that is left may lie in published directories
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

    def _trusted(self, plan: Plan) -> bool:
        """Whether cheap checks find the metastore as the last run left it.

        Storage must also be read in the same way as in that run.
        """
        state, table, request = plan.state, plan.table, self._request
        if state is None or table is None or request.full or request.relocate:
            return False
        if self._report.rounds > 1:  # another job wrote meanwhile
            return False
        return (
            state.elsewhere is not None
            and time.time() - state.compared < self._settings.compare_all_after
            and table.location == plan.place.root
            and table.properties.get(ROOT_PROPERTY) == plan.place.root
            and state.reading == self.reading(plan.extractor)
            and state.names == text_digest(sorted(plan.names))
            and state.table == text_digest(table.digest_parts())
        )

    def _evolution(self, plan: Plan) -> Evolution:
        """The table's columns after this run.

        Reads files of new partitions and of partitions written since the last run. If these do not
        decide, reads files of all partitions.
        """
        rows = sorted(p.row for p in plan.stored.partitions.values())
        newest = plan.directories.rows["newest"].to_numpy()
        looked_at = rows
        if plan.quick and plan.state is not None:
            known = {key_of(n) for n in plan.names}
            new = {p.row for k, p in plan.stored.partitions.items() if k not in known}
            added = np.zeros(len(newest), np.bool_)
            added[list(new)] = True
            newer = added | (newest >= plan.state.newest)
            # Files that were copied with their times are in one of these, too.
            changed = Parts(plan.directories).find_changed(plan.state.parts, added)
            certain, possible = ([r for r in rows if w[r]] for w in (newer, changed & ~newer))
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

    def _room(self, rows: Sequence[int], used: int) -> Sequence[int]:
        """As many of the rows as footers may still be read."""
        most = self._settings.schema_sample
        if not most:
            return rows
        return thinned(rows, most - used) if used < most else ()

    def _look(self, plan: Plan, rows: Sequence[int]) -> Evolution:
        files = self._files(plan, rows)
        storage = self._storage.storage
        told: tuple[Column, ...] = ()
        if plan.table is not None:
            format = plan.table.layout.format
        else:
            plan.files, told = declared(storage, self._request, plan.place.root, files)
            format = plan.files.format
        if file_format(format).read_schema is None:  # the table's columns are as declared
            self._files_columns = told
            return evolve(plan.table.columns if plan.table else (), told, plan.stored.keys)
        found = read_schemas(storage, files, format, threads=self._settings.threads)
        self._report.unreadable = list(found.unreadable)
        if plan.table is None and not found.columns:
            reason = found.unreadable[0][1] if found.unreadable else "all files are gone"
            raise TableNotFound(
                f"no readable file below {plan.place.root}: {reason}",
                "give the directory that holds the data; name its format: --format",
            )
        self._files_columns = found.columns
        table = plan.table.columns if plan.table is not None else ()
        return evolve(table, found.columns, plan.stored.keys)

    def _files(self, plan: Plan, rows: Sequence[int]) -> list[tuple[str, int]]:
        """The files to inspect: all files in these directories, if they are few enough.

        Otherwise the newest file of each directory, or of an even sample of the directories.
        """
        most = self._settings.schema_sample
        table = plan.directories.rows
        counts = table["files"].to_numpy()
        total = int(counts[np.array(rows, np.int64)].sum())
        if total > len(rows) and (not most or total <= most):
            paths = plan.directories.paths
            return self._storage.files([plan.directories.uri(paths[r]) for r in rows])
        chosen = pa.array(thinned(rows, most), pa.int64())
        samples = table.select(["path", "sample", "sample_bytes"]).take(chosen).to_pylist()
        return [
            (f"{plan.directories.uri(row['path'])}/{row['sample']}", row["sample_bytes"])
            for row in samples
        ]

    def _diff(self, plan: Plan, table: RegisteredTable) -> Changes:
        amended = amended_table(table.record, plan.columns, table.spelled, {})
        columns = plain_columns(amended.sd.cols)
        left = table.location if table.location != plan.place.root else None
        target = Target(
            plan.place.root,
            columns,
            table.layout,
            left,
            self._request.relocate,
            published_below(plan.place.root),
        )
        report, root = self._report, plan.place.root
        plan.dropped = dropped_lately(plan.state.dropped if plan.state else (), time.time())
        absence = Absence(
            self._storage,
            root,
            self._request,
            self._settings,
            self._begun,
            registered=len(plan.names),
            recent=sum(number for _, number in plan.dropped) + len(report.dropped),
            nothing=not len(plan.directories),
        )
        occupied = Occupied(root, plan.directories.paths, self._storage.occupied)
        diff = PartitionDiff(plan.stored, target, occupied, absence)
        wanted = plan.names
        if plan.quick and columns == table.target_columns:
            wanted = self._untrusted(plan)
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
            if not registered.holds(plan.directories.uri(directory), self._settings.recursive)
        ]
        return changes

    def _untrusted(self, plan: Plan) -> list[str]:
        """The partitions that a quick run compares.

        They are those without a directory of their name, those that lie elsewhere, and those that
        have the typed values of a new directory.
        """
        assert plan.state is not None
        stored, elsewhere = plan.stored.partitions, set(plan.state.elsewhere or ())
        keys = {name: key_of(name) for name in plan.names}
        typed = typed_keys(plan.stored.keys)
        known = set(keys.values())
        new = {typed(key) for key in stored if key not in known}
        return [
            name
            for name, key in keys.items()
            if key not in stored or name in elsewhere or (new and typed(key) in new)
        ]

    def _leave_replaced(self, plan: Plan) -> None:
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
                plan.changes.kept.append(Kept(name, directories[name], reason))

    def _table_changes(self, plan: Plan, evolution: Evolution) -> list[str]:
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
