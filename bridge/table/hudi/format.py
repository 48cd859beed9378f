"""Hudi tables as a table format: versions are instants of the timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from zlib import crc32

import numpy as np
import pyarrow as pa

from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    Expression,
    Literal,
    Op,
    Predicate,
    Reference,
)
from bridge.kernel.errors import (
    FileUnreadable,
    ReadVersionNotFound,
    ReadVersionUnsupported,
    SchemaConflict,
    SnapshotExpired,
    UnsupportedTable,
)
from bridge.kernel.types import STRING
from bridge.storage.port import FileTable, Storage
from bridge.table.directory.discovered import Discovered, combine, summarise
from bridge.table.directory.freshness import max_age
from bridge.table.hudi.files.evolved_slices import Evolution, evolve
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.incremental import changes_between
from bridge.table.hudi.merging.reader_properties import (
    field_names,
    has_defaults,
    merges_whole_records,
    read_merged,
    repairs_times,
)
from bridge.table.hudi.open_tables import NEWEST, OpenTable, OpenTables, Version, keeps_indexes
from bridge.table.hudi.schema.avro_schema import META_COLUMNS, avro_columns
from bridge.table.hudi.schema.columns import KeySource, layout
from bridge.table.hudi.snapshot import HudiSnapshot
from bridge.table.hudi.table_config import TableType
from bridge.table.hudi.timeline.instants import instant_at
from bridge.table.hudi.timeline.timeline import HudiTimeline
from bridge.table.model import CatalogTable, Column, TableName
from bridge.table.read_version import AsOfTime, AsOfVersion, ChangesBetween, Newest, ReadVersion
from bridge.table.snapshot import MergedSlice, OwnIndex, TableContext, WrittenFiles

_PACKAGES = ("org.apache.hudi.", "com.uber.hoodie.")
_READ_OPTIMIZED = "hoodie.query.as.ro.table"
_BASE_ONLY = "HoodieParquetInputFormat"
"""A merge-on-read table that is registered with this class is its read-optimised form."""
_COMMIT_TIME = "_hoodie_commit_time"
_HIVE_HOOKS = {
    f"org.apache.hudi.hadoop.{_BASE_ONLY}": "io.skipbridge.hive.BridgeHudiInputFormat",
    "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat": (
        "io.skipbridge.hive.BridgeHudiRealtimeInputFormat"
    ),
}
_HANDLER, _STORAGE_HANDLER = "storage_handler", "io.skipbridge.hive.BridgeHudiStorageHandler"
_HANDLERS = (_STORAGE_HANDLER, "io.skipbridge.hive.BridgeHudiRealtimeStorageHandler")
_ATTEMPTS = 3
_COMPLETED, _REQUESTED = "completed:", "requested:"


class HudiFormat:
    """Implements `TableFormat`, `DefinesTables`, `MergesSlices` and `ReadByHive`.

    A query reads ``hoodie.properties`` and one listing of the timeline; commits that are new since
    the last query are read besides. No directory of data is listed where commits or the metadata
    table tell the files, but once: to be sure that they do, if nothing is archived.
    """

    name = "hudi"
    versioned = True
    marker = ".hoodie"
    hive_hooks = _HIVE_HOOKS

    def __init__(self) -> None:
        self._tables = OpenTables()

    def recognises(self, properties: Mapping[str, str], input_format: str) -> bool:
        if input_format.startswith(_PACKAGES) or properties.get(_HANDLER) in _HANDLERS:
            return True
        lowered = {key.lower(): value.lower() for key, value in properties.items()}
        return lowered.get("spark.sql.sources.provider") == "hudi"

    def snapshot(
        self, table: CatalogTable, read: ReadVersion, context: TableContext, id: str = ""
    ) -> HudiSnapshot:
        if read.segments:
            raise ReadVersionUnsupported(
                f"{table.name} is a Hudi table: it has no segments", "leave the segments out"
            )
        opened = self._tables.get(context.storage, table.location)
        age, arrived = 0.0, context.arrived
        if isinstance(read.point, Newest):  # else an older timeline does not tell what is closed
            age = max_age(context.freshness)
        for _ in range(_ATTEMPTS - 1):
            # A commit may also be archived between the listing of the timeline and its reading.
            with suppress(SnapshotExpired, FileUnreadable):
                view = opened.view(age, arrived)
                return self._snapshot(table, read, context, id, opened, view)
            if id:
                break
            age, arrived = 0.0, None  # writers overtook the listing of the files
        return self._snapshot(table, read, context, id, opened, opened.view(age, arrived))

    def _snapshot(
        self,
        table: CatalogTable,
        read: ReadVersion,
        context: TableContext,
        id: str,
        opened: OpenTable,
        view: FileSystemView,
    ) -> HudiSnapshot:
        version = self._version(table, read, view)
        state = _state(view)
        if id and id != state:
            # Another planner opened it before something was written.
            version = _reopened(table, view, version, id)
            state = id
        filter: Expression = AlwaysTrue()
        until: str | None = None
        if isinstance(read.point, ChangesBetween):
            if read.read_optimized:
                raise ReadVersionUnsupported(
                    f"changes of {table.name} are those of merged rows",
                    "switch read_optimized off for this query",
                )
            slices, filter, until = self._changes(opened, view, read.point, version)
        else:
            base_only = read.read_optimized or is_read_optimized(table, view)
            slices = opened.slices(view, version, base_only)
        newest = version.as_of is None
        schema = _schema(view, version.as_of)
        planned = layout(table, view.config, schema, slices.partitions, newest)
        last = view.timeline.last
        instant = version.as_of or (last.requested if last is not None else "")
        evolution = self._evolution(planned.table, opened, view, slices, instant)
        snapshot = HudiSnapshot(planned, view, slices, context, state, instant, evolution, until)
        snapshot.row_filter = filter
        if evolution is None and view.config.base_format == "parquet":
            schema_text = view.schema(version.as_of) or ""
            whole = version == NEWEST and isinstance(read.point, Newest)
            snapshot.own_indexes = opened.own_indexes(view, schema_text, slices, whole)
            if snapshot.own_indexes:
                snapshot.plans_without_io = False
        return snapshot

    def _evolution(
        self,
        table: CatalogTable,
        opened: OpenTable,
        view: FileSystemView,
        slices: FileSlices,
        instant: str,
    ) -> Evolution | None:
        """How the files have the table's columns; None: by name.

        Errors:
            SchemaConflict: the catalog knows columns that the table does not have any more.
        """
        history = opened.schema_history(view)
        told = view.schema_commit(instant or None)
        if history is None or history.is_stable or told is None:
            return None
        version = history.at(told.requested)
        strange = [c.name for c in table.columns if c.name.lower() not in version.names]
        strange = [name for name in strange if name.lower() not in META_COLUMNS]
        if strange:
            raise SchemaConflict(
                f"{table.name} has no column {strange[0]} any more: it was renamed or dropped",
                "skipbridge sync, or Hudi's own sync, brings the catalog up to date",
            )
        if view.config.base_format != "parquet":
            raise UnsupportedTable(
                f"{table.name} has files of {view.config.base_format} whose columns were renamed "
                "or changed their types",
                "rewrite the table, or read it with the engine that wrote it",
            )
        return evolve(slices, history, version, instant, view.config.completes)

    def _changes(
        self, opened: OpenTable, view: FileSystemView, asked: ChangesBetween, version: Version
    ) -> tuple[FileSlices, Expression, str | None]:
        """The slices that changed in a range, which of their rows count, and the range's end.

        Such slices hold older rows too: those that an update copied, and those beside it.
        """
        after, until = _bound(asked.after, view), _bound(asked.until, view)
        # A range that ends later than a snapshot that is opened again ends with the snapshot.
        bounds = (until, version.completed_by, version.as_of)
        end = min((bound for bound in bounds if bound), default=None)
        found = changes_between(view, after, end, files=opened.files(view))
        instants = sorted(found.instants)
        if not instants:
            return found.slices, AlwaysFalse(), end
        literals = tuple(Literal(i.encode(), STRING) for i in instants)
        return found.slices, Predicate(Op.IN, Reference((_COMMIT_TIME,)), literals), end

    def _version(self, table: CatalogTable, read: ReadVersion, view: FileSystemView) -> Version:
        match read.point:
            case Newest() | ChangesBetween():
                return NEWEST
            case AsOfTime(millis):
                moment = datetime.fromtimestamp(millis / 1000, UTC)
                return Version(as_of=instant_at(table.name, view, moment))
            case AsOfVersion(version):
                return Version(as_of=instant_at(table.name, view, version))

    def read_slice(self, storage: Storage, slice: MergedSlice, schema: pa.Schema) -> pa.Table:
        return read_merged(storage, slice, schema)

    def written_files(self, table: CatalogTable, context: TableContext) -> WrittenFiles:
        opened = self._tables.get(context.storage, table.location)
        view = opened.view(max_age(context.freshness))
        history = opened.schema_history(view)
        if history is not None and not history.is_stable:
            raise UnsupportedTable(
                f"columns of {table.name} were renamed, changed their types, or were dropped and "
                "added again: index entries do not tell what Hive reads",
                "query it with Trino",
            )
        schema = view.schema(None) or ""
        if has_defaults(schema):
            raise UnsupportedTable(
                f"columns of {table.name} have defaults other than NULL: a reader may show values "
                "that no file holds",
                "query it with Trino, which reads the files alone",
            )
        logs = merges_whole_records(view.config) and not repairs_times(schema)
        names = frozenset(META_COLUMNS) | field_names(schema)
        own: Sequence[OwnIndex] = ()
        if keeps_indexes(view) and view.config.base_format == "parquet":
            slices = opened.slices(view, base_only=is_read_optimized(table, view))
            own = opened.own_indexes(view, schema, slices, True)
        return WrittenFiles(logs, names, own)

    def discover(self, location: str, storage: Storage, threads: int = 16) -> Discovered:
        opened = self._tables.get(storage, location)
        slices = opened.slices(opened.view())
        based = slices.has_base
        prefix = pa.scalar(f"{location}/", pa.large_string())
        paths = pa.compute.binary_join_element_wise(prefix, slices.base_paths, "")
        files = FileTable(paths, slices.base_sizes, np.zeros(len(based), np.int64)).filter(based)
        return Discovered(location, combine([summarise(files, location)]))

    def define(self, name: TableName, location: str, storage: Storage) -> CatalogTable:
        opened = self._tables.get(storage, location)
        view = opened.view()
        config = view.config
        held = _schema(view, None)
        if not held:
            raise UnsupportedTable(
                f"Hudi table {location} tells its columns nowhere", "write to it once, or sync it"
            )
        fields = [f.lower() for f in config.partition_fields]
        keys = tuple(c for f in fields for c in held if c.name == f)
        if config.drops_partition_columns:  # only paths know them, as texts
            keys = tuple(Column(f, STRING) for f in fields)
        elif len(keys) < len(fields):
            keys = ()
        own = tuple(c for c in held if c not in keys)
        table = CatalogTable(
            name, own, keys, location, config.base_format, dict(config.properties), self.name
        )
        slices = opened.slices(view)
        found = layout(table, config, held, slices.partitions, True)
        return found.table if found.source is not KeySource.METASTORE else table


def _bound(text: str, view: FileSystemView) -> str:
    """One end of a range: digits of an instant; ``earliest`` or empty: it is open.

    Errors:
        ReadVersionNotFound: it is no instant.
    """
    if not text or text.lower() == "earliest":
        return ""
    if not text.isdigit() or not text.isascii():
        raise ReadVersionNotFound(
            f"{text[:50]!r} is no instant of {view.config.name}", "an instant is yyyyMMddHHmmssSSS"
        )
    return text


def _state(view: FileSystemView) -> str:
    """Names what is on the timeline, so that another planner can open the same snapshot."""
    timeline = view.timeline
    if view.config.completes:
        return f"{_COMPLETED}{view.last_completion}"
    last = timeline.last.requested if timeline.last is not None else ""
    return f"{_REQUESTED}{last}:{_set_until(timeline, last)}"


def _set_until(timeline: HudiTimeline, last: str) -> str:
    """Tells sets of completed instants apart: their number alone may stay the same."""
    known = sorted(i for i in timeline.completed if i <= last)
    return f"{len(known)}-{crc32(','.join(known).encode()):08x}"


def _reopened(table: CatalogTable, view: FileSystemView, version: Version, id: str) -> Version:
    """The version that a snapshot had when it was opened. Errors: SnapshotExpired."""
    completed = view.timeline.completed
    if id.startswith(_COMPLETED) and view.config.completes:
        at = id.removeprefix(_COMPLETED)
        # What was restored since would be missing, so the last instant has to be there.
        if at and view.ended_at(at):
            if version.as_of is None:
                return Version(completed_by=at)
            # An older instant may have been completed since.
            done = [i.requested for i in completed.values() if (i.completion or "") <= at]
            as_of = max((i for i in done if i <= version.as_of), default=None)
            if as_of is not None:
                return Version(as_of, at)
    elif id.startswith(_REQUESTED) and not view.config.completes:
        last, _, known = id.removeprefix(_REQUESTED).partition(":")
        # Writers may complete an older instant later; then it is another set of instants.
        if last in completed and known == _set_until(view.timeline, last):
            return Version(as_of=min(version.as_of or last, last))
    raise SnapshotExpired(
        f"the timeline of {table.name} has moved on since {id}", "run the query again"
    )


def is_read_optimized(table: CatalogTable, view: FileSystemView) -> bool:
    """Whether a name in the metastore stands for base files alone (``t_ro``)."""
    if view.config.table_type is not TableType.MERGE_ON_READ:
        return False
    said = table.properties.get(_READ_OPTIMIZED)
    if said is not None:
        return said.strip().lower() == "true"
    if table.properties.get(_HANDLER) == _STORAGE_HANDLER:
        return True
    return table.input_format.rpartition(".")[2] == _BASE_ONLY


def _schema(view: FileSystemView, as_of: str | None) -> tuple[Column, ...]:
    text = view.schema(as_of)
    if not text:
        return ()
    columns = avro_columns(text, f"{view.config.base}/.hoodie")
    if view.config.has_meta_fields:
        return columns
    return tuple(c for c in columns if c.name not in META_COLUMNS)


TABLE_FORMAT = HudiFormat()
