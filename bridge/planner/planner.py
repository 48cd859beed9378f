"""The planner: turns a request into a plan, whose stages run as its batches are drawn.

``plan`` binds the predicate and returns at once. A split loader can then draw the plan in the
background, and ``explain`` can draw it to its end.
"""

from __future__ import annotations

import time
from contextlib import suppress

from bridge.expression.bind import Scope
from bridge.formats.registry import file_format
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import BridgeError
from bridge.kernel.types import Field
from bridge.planner.attributes import HIDDEN_COLUMNS
from bridge.planner.index_view import IndexView, IndexViews
from bridge.planner.open_snapshots import (
    OpenSnapshot,
    OpenSnapshots,
    SnapshotKey,
    require_same,
)
from bridge.planner.predicate_log import PredicateLog
from bridge.planner.request import ScanRequest
from bridge.planner.scan_context import ScanContext
from bridge.planner.scan_plan import ScanPlan
from bridge.planner.stages import PlanStage
from bridge.planner.stages.early_survivors import emit_early_survivors
from bridge.planner.stages.enforcement import require_enforced
from bridge.planner.stages.file_pruning import prune_files
from bridge.planner.stages.limit_pruning import prune_by_limit
from bridge.planner.stages.partition_listing import list_partitions
from bridge.planner.stages.top_n_pruning import prune_by_top_n
from bridge.planner.table_cache import TableCache
from bridge.table.directory.freshness import (
    PROPERTY,
    Freshness,
    Live,
    at_most,
    bypasses_caches,
    parse_freshness,
)
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Catalog, CatalogTable, TableName
from bridge.table.read_version import NEWEST, ReadVersion
from bridge.table.registry import DIRECTORY, table_format
from bridge.table.snapshot import ReadByHive, Snapshot, TableContext, WrittenFiles


class Planner:
    """Plans scans over the tables of one catalog; all threads of a process share it.

    Args:
        catalog: describes the tables.
        views: the indexes.
        lister: lists storage.
        freshness: for tables that set none themselves.
        metadata_ttl: time to live of a table definition, in seconds.
        predicate_log: records the predicates of finished scans.
    """

    def __init__(
        self,
        catalog: Catalog,
        views: IndexViews,
        lister: DirectoryLister,
        *,
        freshness: Freshness | None = None,
        metadata_ttl: float = 1.0,
        predicate_log: PredicateLog | None = None,
        snapshots: OpenSnapshots | None = None,
    ) -> None:
        self.catalog = catalog
        self.views = views
        self.lister = lister
        self.snapshots = snapshots or OpenSnapshots()
        self._predicate_log = predicate_log
        self._freshness = freshness or Live()
        self._tables = TableCache(catalog, metadata_ttl)
        self._scopes: BoundedCache[TableName, tuple[CatalogTable, Scope]] = BoundedCache(10_000)

    def table(self, name: TableName, read: ReadVersion = NEWEST) -> CatalogTable:
        """A table of any installed file format, even if no engine can read it.

        `bridge.engines.registry.refuse_unreadable` checks whether an engine can.

        Errors:
            SchemaNotFound, TableNotFound, UnsupportedTable, MetastoreUnavailable.
        """
        found = self._tables.table(name, read.seconds)
        if found.table_format == DIRECTORY:  # else each slice names its own
            file_format(found.format)
        return found

    def newest_table(self, name: TableName) -> CatalogTable:
        """The same, requested after this call. Errors: as `table`."""
        self._tables.forget(name)
        return self.table(name)

    def written_files(self, table: CatalogTable) -> WrittenFiles | None:
        """What index entries say to an engine that lists the table by itself; None: nothing.

        Only for tables of formats other than directories.

        Errors:
            TableNotFound, UnsupportedTable, FileCorrupt, StorageFailure.
        """
        format = table_format(table)
        if not isinstance(format, ReadByHive):
            return None
        freshness = self.freshness_of(table, None)
        return format.written_files(table, self._context(table, IndexView(None), freshness))

    def fetch(self, name: TableName) -> None:
        """Fetches the definition and the newest index of a table that will be asked for.

        A failure is left to the query that meets it.
        """
        with suppress(BridgeError):
            self.views.view(self.table(name))

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Opens a plan: resolves the table and binds the predicate; nothing is listed yet.

        Errors:
            TableNotFound, ColumnNotFound, GenerationNotFound, InvalidConfiguration and others.
        """
        return self.open(request, self.snapshot(request))

    def snapshot(self, request: ScanRequest) -> OpenSnapshot:
        """What a scan sees of its table; calls the metastore and the index store if needed.

        Errors:
            TableNotFound, GenerationNotFound, ReadVersionUnsupported, SnapshotExpired and others.
        """
        arrived = time.monotonic()
        if bypasses_caches(request.freshness):
            self._tables.forget(request.table)
        table = self.table(request.table, request.read)
        key = SnapshotKey(
            request.query_id,
            request.table,
            request.read,
            self.freshness_of(table, request.freshness, request.read),
            request.generation,
            request.absent_is_empty,
        )
        return self._open_snapshot(table, key, request.snapshot_id, arrived)

    def open(self, request: ScanRequest, opened: OpenSnapshot) -> ScanPlan:
        """Opens the plan over a snapshot; does no I/O.

        Errors:
            ColumnNotFound, InvalidConfiguration and others.
        """
        context = ScanContext(request, opened, self._scope(opened.snapshot.table))
        stages: list[PlanStage] = [list_partitions, prune_files]
        if context.stops_early:
            stages.append(prune_by_top_n if request.order else prune_by_limit)
        stages.append(emit_early_survivors)
        if request.enforced:
            stages.append(require_enforced)
        return ScanPlan(context, tuple(stages), self._predicate_log, self.snapshots)

    def describe(self, name: TableName, read: ReadVersion = NEWEST) -> Snapshot:
        """A version of a table, for its schema alone: neither listed nor with its index.

        Errors:
            as `snapshot`.
        """
        arrived = time.monotonic()
        table = self.table(name, read)
        freshness = self.freshness_of(table, read=read)
        context = self._context(table, IndexView(None), freshness, arrived=arrived)
        return table_format(table).snapshot(table, read, context)

    def look_ahead(
        self, query_id: str, name: TableName, read: ReadVersion = NEWEST, id: str = ""
    ) -> OpenSnapshot:
        """Starts the first I/O of the query's scans of this table while the engine still plans.

        For a table without partitions that is the listing, otherwise the partition names. Without a
        query id nothing starts. If that I/O fails, the scan fails or retries, not this call.

        Errors:
            as `snapshot`.
        """
        arrived = time.monotonic()
        table = self.table(name, read)
        freshness = self.freshness_of(table, read=read)
        key = SnapshotKey(query_id, name, read, freshness, None, False)
        opened = self._open_snapshot(table, key, id, arrived)
        if query_id:
            opened.snapshot.begin()
        return opened

    def _open_snapshot(
        self, table: CatalogTable, key: SnapshotKey, id: str, arrived: float
    ) -> OpenSnapshot:
        held = self.snapshots.get(key)
        if held is not None:
            return require_same(held, id)
        view = self.views.view(table, key.generation)
        context = self._context(table, view, key.freshness, key.absent_is_empty, arrived)
        wanted = id or self.snapshots.expired_id(key)
        snapshot = table_format(table).snapshot(table, key.read, context, wanted)
        if isinstance(snapshot.index, IndexSnapshot) and snapshot.index is not view.index:
            view = IndexView.of(snapshot.index, table)
        return require_same(self.snapshots.put(key, OpenSnapshot(snapshot, view)), id)

    def _context(
        self,
        table: CatalogTable,
        view: IndexView,
        freshness: Freshness,
        absent_is_empty: bool = False,
        arrived: float | None = None,
    ) -> TableContext:
        return TableContext(
            self.lister.storage,
            self.catalog,
            self.lister,
            view.index,
            # The generation that is open already has its columns at hand.
            lambda generation: (
                (
                    view if view.generation == generation else self.views.view(table, generation)
                ).index
            ),
            freshness,
            absent_is_empty,
            arrived,
            lambda other: self.views.view(other).index,
        )

    def freshness_of(
        self, table: CatalogTable, asked: str | None = None, read: ReadVersion = NEWEST
    ) -> Freshness:
        """That of a scan: as it asks, as the table says, or the planner's own.

        No cached listing is older than the version allows, which may want none at all.

        Errors:
            InvalidConfiguration.
        """
        if read.fresh:
            return Live()
        text = asked or table.properties.get(PROPERTY)
        return at_most(parse_freshness(text) if text else self._freshness, read.seconds)

    def _scope(self, table: CatalogTable) -> Scope:
        """The names of a table, including its hidden columns."""
        held = self._scopes.get(table.name)
        if held is not None and held[0] is table:
            return held[1]
        columns = [*(Field(c.name, c.type) for c in table.columns), *HIDDEN_COLUMNS]
        keys = [Field(c.name, c.type) for c in table.partition_keys]
        scope = Scope(columns, keys, case_sensitive=False)
        self._scopes.put(table.name, (table, scope))
        return scope
