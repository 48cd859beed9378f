"""The planner: predicate -> partitions -> files, as pure stages over one partition batch.

``plan`` binds and returns at once; the stages run when ``ScanPlan.batches`` is drawn, so that a
split loader can drive them in the background and ``explain`` can drive the same to the end.
``narrow`` adds a conjunct that arrives later (a dynamic filter); it holds for every batch not yet
handed out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.errors import UnsupportedTable
from bridge.expression.bind import bind
from bridge.expression.nodes import (
    AlwaysTrue,
    BoundExpression,
    BoundFalse,
    BoundTrue,
    Expression,
)
from bridge.expression.text import format_bound
from bridge.index.serving import ServingIndex
from bridge.planner.files import (
    HIDDEN_COLUMNS,
    FilePruner,
    keep_by_attributes,
    split_by_source,
    take,
)
from bridge.planner.freshness import LIVE, PROPERTY, SNAPSHOT, Freshness, parse_freshness
from bridge.planner.index_view import IndexView, IndexViews, argument
from bridge.planner.listing import Listings, concat
from bridge.planner.partitions import Typed, partition_residual, select_partitions
from bridge.planner.pins import Pin, Pins
from bridge.planner.report import IndexNotUsed, PruneReport, SplitTotals, StageCounter
from bridge.planner.request import ScanRequest
from bridge.table.model import (
    Catalog,
    FileList,
    Partition,
    PartitionBatch,
    PartitionFetch,
    Table,
    TableName,
)
from bridge.types import Field


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Files that survived, with what is needed to narrow them later.

    Attributes:
        files: survivors; `FileList.partition` indexes `partitions`.
        ordinals: of each file in the index, -1 where the index does not know it.
        partitions: of this batch.
    """

    files: FileList
    ordinals: npt.NDArray[np.int64]
    partitions: tuple[Partition, ...]


class ScanPlan:
    """One scan under way; `batches` is drawn by one thread, `narrow` and `report` come from any."""

    def __init__(self, planner: Planner, request: ScanRequest, pin: Pin, mode: Freshness) -> None:
        self.request = request
        self.table = pin.table
        self.freshness = mode
        self.view = pin.view
        self._planner = planner
        self._pin = pin
        self._lock = threading.Lock()
        self._fetch: PartitionFetch | None = None
        self._closed = False
        self._complete = False
        self._values: dict[str, Typed] = {}
        self.predicate = self._bind(request.predicate if request.pruning else AlwaysTrue())
        self._narrowed: tuple[BoundExpression, ...] = ()
        self._pruner = FilePruner(self.table, self.view, request.semantics)
        self._partition_stage = StageCounter("partitions", "values")
        self._listing_stage = StageCounter("files", "listing")
        self._attribute_stage = StageCounter("files", "attributes")
        self._index_stage = StageCounter("files", "minmax", self._pruner.columns(self.predicate))
        self._narrow_stage = StageCounter("files", "narrowed")
        self._unknown_files = 0
        self._files_kept = 0

    def _bind(self, predicate: Expression) -> BoundExpression:
        if isinstance(predicate, AlwaysTrue):
            return BoundTrue()
        table = self.table
        columns = [Field(c.name, c.type) for c in table.columns]
        keys = [Field(c.name, c.type) for c in table.partition_keys]
        semantics = self.request.semantics
        return bind(
            predicate,
            [*columns, *HIDDEN_COLUMNS],
            keys,
            semantics,
            strict=self.request.strict,
        )

    def narrow(self, predicate: Expression) -> None:
        """Conjoins a predicate for every batch not yet handed out.

        Errors:
            ColumnNotFound: it names a column that the table does not have.
        """
        if not self.request.pruning:
            return
        bound = self._bind(predicate)
        if not isinstance(bound, BoundTrue):
            with self._lock:
                self._narrowed = (*self._narrowed, bound)

    def batches(self) -> Iterator[FileBatch]:
        """The survivors, a partition batch at a time.

        Errors:
            MetastoreUnavailable, StorageFailure and their like: the scan fails; nothing is taken as
                empty.
        """
        started = time.perf_counter()
        table = self.table
        names = self._names()
        selection = select_partitions(
            names, table.partition_keys, self.predicate, self.request.semantics
        )
        self._partition_stage.columns = selection.columns
        self._partition_stage.add(
            selection.total, len(selection.names), 0, time.perf_counter() - started
        )
        if not selection.names or isinstance(self.predicate, BoundFalse):
            if selection.names:
                self._partition_stage.kept = 0
            self._complete = True
            return
        with self._lock:
            if self._closed:
                return
            self._fetch = self._planner.catalog.partitions(table, selection.names)
        for batch in self._fetch:
            if self._closed:
                return
            survivors = self._static(batch, selection.values)
            if len(survivors.files):
                yield survivors
        self._complete = True

    def refine(self, batch: FileBatch) -> FileBatch:
        """Applies what `narrow` has added by now; called as late as the batch is handed out."""
        with self._lock:
            narrowed = self._narrowed
        if not narrowed or not len(batch.files):
            return batch
        started = time.perf_counter()
        left = batch
        for predicate in narrowed:
            left = self._prune(left, predicate, count=False)
        self._narrow_stage.add(
            len(batch.files),
            len(left.files),
            int(left.files.sizes.sum()),
            time.perf_counter() - started,
        )
        return left

    def close(self) -> None:
        """Stops metastore calls under way; `batches` ends at its next step."""
        with self._lock:
            self._closed = True
            fetch = self._fetch
        if fetch is not None:
            fetch.close()

    def report(self, splits: SplitTotals | None = None, paths: object | None = None) -> PruneReport:
        """The funnel as it stands; complete once `batches` was drawn to its end."""
        narrowed = self._narrow_stage
        stages = [self._partition_stage.freeze()] if self.table.partition_keys else []
        stages += [
            c.freeze()
            for c in (
                self._listing_stage,
                self._attribute_stage,
                self._index_stage,
                self._narrow_stage,
            )
            if c.total or c is self._listing_stage
        ]
        return PruneReport(
            table=str(self.table.name),
            engine=self.request.engine,
            generation=self.view.generation,
            freshness=str(self.freshness),
            predicate=format_bound(self.predicate),
            dropped=self.request.dropped,
            stages=tuple(stages),
            files_total=self._listing_stage.total,
            # Each is counted by a thread of its own: what was listed, and what was handed out.
            files_kept=self._files_kept - narrowed.total + narrowed.kept,
            splits=splits or SplitTotals(),
            not_used=self._not_used(),
            complete=self._complete,
            paths=paths,
        )

    def _not_used(self) -> tuple[IndexNotUsed, ...]:
        name = argument(self.table)
        found = list(self.view.not_used)
        if not self.request.pruning:
            found.append(IndexNotUsed("minmax", "DISABLED", "pruning is switched off"))
        problems = self.view.serving.problems if self.view.serving is not None else {}
        for column in self._pruner.unindexed(split_by_source(self.predicate).data):
            error = problems.get(column.lower())
            if error is not None:
                found.append(
                    IndexNotUsed(f"minmax({column})", error.code, error.message, error.hint)
                )
                continue
            found.append(
                IndexNotUsed(
                    f"minmax({column})",
                    "NO_STATISTICS",
                    "the index holds no bounds of this column",
                    f"skipbridge index build {name} --nan scan",
                )
            )
        if self._unknown_files and self.view.serving is not None:
            found.append(
                IndexNotUsed(
                    "minmax",
                    "STALE",
                    f"{self._unknown_files} files are newer than generation "
                    f"{self.view.generation} and are read",
                    f"skipbridge index refresh {name}",
                )
            )
        return tuple(found)

    def _names(self) -> list[str]:
        pin = self._pin
        with pin.lock:
            if pin.names is None:
                pin.names = self._planner.catalog.partition_names(self.table)
            return pin.names

    def _static(self, batch: PartitionBatch, values: dict[str, Typed]) -> FileBatch:
        """Lists one batch of partitions and prunes its files."""
        self._values.update({p.name: values.get(p.name, ()) for p in batch.partitions})
        started = time.perf_counter()
        listed = self._files(batch)
        size = self._bytes(listed)
        n = len(listed.files)
        self._listing_stage.add(n, n, size, time.perf_counter() - started)
        if self.view.serving is not None and listed.ordinals is not self.view.everything:
            self._unknown_files += int(np.count_nonzero(listed.ordinals < 0))
        kept = _materialised(self._prune(listed, self.predicate))
        self._files_kept += len(kept.files)
        return kept

    def _files(self, batch: PartitionBatch) -> FileBatch:
        partitions = batch.partitions
        if self.freshness is SNAPSHOT:
            return self._indexed(partitions)
        serving = self.view.serving
        pinned = self._pin.listings
        missing = [p for p in partitions if p.location not in pinned]
        hints = serving.paths if serving is not None and not self.table.partition_keys else None
        found = self._planner.listings.each(missing, self.freshness, hints)
        for partition, listed in zip(missing, found, strict=True):
            pinned.setdefault(partition.location, listed)
        files = concat([pinned[p.location] for p in partitions])
        if serving is None:
            return FileBatch(files, np.full(len(files), -1, np.int64), partitions)
        ordinals = serving.match(files)
        if len(partitions) == 1 and np.array_equal(ordinals, self.view.everything):
            # Storage is as the index knows it: its mapped columns serve, the listing is let go.
            files = FileList(serving.paths, serving.sizes, serving.modified, self.view.one_owner)
            pinned[partitions[0].location] = files
            ordinals = self.view.everything
        self._planner.pins.trim()
        return FileBatch(files, ordinals, partitions)

    def _indexed(self, partitions: tuple[Partition, ...]) -> FileBatch:
        """The index's own file set; only survivors' paths are ever made."""
        serving = self.view.serving
        assert serving is not None
        groups = [self.view.ordinals_of(p.name) for p in partitions]
        ordinals = groups[0] if len(groups) == 1 else np.concatenate(groups)
        whole = ordinals is self.view.everything
        owner = (
            self.view.one_owner[: len(ordinals)]
            if len(groups) == 1
            else np.repeat(np.arange(len(groups), dtype=np.int32), [len(g) for g in groups])
        )
        files = FileList(
            paths=_LazyPaths(serving, ordinals),
            sizes=serving.sizes if whole else serving.sizes[ordinals],
            modified=serving.modified if whole else serving.modified[ordinals],
            partition=owner,
        )
        if not self.view.all_trusted:
            ordinals = np.where(serving.trusted[ordinals], ordinals, -1)
        return FileBatch(files, ordinals, partitions)

    def _bytes(self, batch: FileBatch) -> int:
        if batch.ordinals is self.view.everything:
            return self.view.total_bytes
        return int(batch.files.sizes.sum())

    def _prune(
        self, batch: FileBatch, predicate: BoundExpression, *, count: bool = True
    ) -> FileBatch:
        if isinstance(predicate, BoundTrue) or not len(batch.files):
            return batch
        parts = split_by_source(predicate)
        if not isinstance(parts.attributes, BoundTrue):
            started = time.perf_counter()
            kept = self._select(
                batch, keep_by_attributes(batch.files, parts.attributes, self.request.semantics)
            )
            if count:
                self._count(self._attribute_stage, batch, kept, started)
            batch = kept
        started = time.perf_counter()
        kept = self._select(batch, self._keep_by_index(batch, parts.data))
        if count and (self.view.serving is not None or len(kept.files) != len(batch.files)):
            self._count(self._index_stage, batch, kept, started)
        return kept

    def _count(
        self, stage: StageCounter, before: FileBatch, after: FileBatch, started: float
    ) -> None:
        seconds = time.perf_counter() - started
        stage.add(len(before.files), len(after.files), int(after.files.sizes.sum()), seconds)

    def _keep_by_index(
        self, batch: FileBatch, predicate: BoundExpression
    ) -> npt.NDArray[np.bool_] | None:
        keys = self.table.partition_keys
        if not keys:
            return self._pruner.keep(batch.ordinals, predicate)
        residuals = [
            partition_residual(predicate, keys, p.name, self._values.get(p.name, ()))
            for p in batch.partitions
        ]
        if all(r == residuals[0] for r in residuals[1:]) and not isinstance(
            residuals[0], BoundFalse
        ):
            return self._pruner.keep(batch.ordinals, residuals[0])
        keep = np.ones(len(batch.files), np.bool_)
        for i, left in enumerate(residuals):
            inside = batch.files.partition == i
            if isinstance(left, BoundFalse):
                keep[inside] = False
                continue
            mask = self._pruner.keep(batch.ordinals[inside], left)
            if mask is not None:
                keep[inside] = mask
        return keep

    def _select(self, batch: FileBatch, keep: npt.NDArray[np.bool_] | None) -> FileBatch:
        if keep is None:
            return batch
        chosen = np.flatnonzero(keep)
        if len(chosen) == len(keep):
            return batch
        return FileBatch(take(batch.files, chosen), batch.ordinals[chosen], batch.partitions)


def slice_batch(batch: FileBatch, begin: int, end: int) -> FileBatch:
    """Files begin to end of a batch, without copying."""
    files = batch.files
    return FileBatch(
        FileList(
            files.paths.slice(begin, end - begin),
            files.sizes[begin:end],
            files.modified[begin:end],
            files.partition[begin:end],
            files.etags.slice(begin, end - begin) if files.etags is not None else None,
        ),
        batch.ordinals[begin:end],
        batch.partitions,
    )


class _LazyPaths:
    """Paths of indexed files, made only for the ones that survive: a million strings cost more than
    pruning.
    """

    def __init__(self, serving: ServingIndex, ordinals: npt.NDArray[np.int64]) -> None:
        self._serving = serving
        self._ordinals = ordinals

    def __len__(self) -> int:
        return len(self._ordinals)

    def take(self, positions: pa.Array) -> pa.Array:
        return self._serving.paths_at(self._ordinals[positions.to_numpy()])

    def cast(self, target: pa.DataType) -> pa.Array:
        return self._serving.paths_at(self._ordinals).cast(target)


def _materialised(batch: FileBatch) -> FileBatch:
    if not isinstance(batch.files.paths, _LazyPaths):
        return batch
    paths = batch.files.paths.cast(pa.large_string())
    return FileBatch(replace(batch.files, paths=paths), batch.ordinals, batch.partitions)


class Planner:
    """Plans scans over the tables of one catalogue; shared by all threads of a process.

    Args:
        catalog: where tables are described.
        views: the indexes.
        listings: lists storage.
        freshness: of tables that say nothing themselves.
        metadata_ttl: seconds for which a table's definition is taken as known.
    """

    def __init__(
        self,
        catalog: Catalog,
        views: IndexViews,
        listings: Listings,
        *,
        freshness: Freshness = LIVE,
        metadata_ttl: float = 1.0,
    ) -> None:
        self.catalog = catalog
        self.views = views
        self.listings = listings
        self._freshness = freshness
        self._metadata_ttl = metadata_ttl
        self._tables: dict[TableName, tuple[float, Table]] = {}
        self.pins = Pins()

    def table(self, name: TableName) -> Table:
        """Errors: SchemaNotFound, TableNotFound, UnsupportedTable, MetastoreUnavailable."""
        held = self._tables.get(name)
        now = time.monotonic()
        if held is not None and now - held[0] <= self._metadata_ttl:
            return held[1]
        if len(self._tables) > 10_000:
            self._tables.clear()
        table = self.catalog.table(name)
        if table.format != "parquet":
            raise UnsupportedTable(
                f"{name} is stored as {table.format}", "skipbridge reads Parquet tables"
            )
        self._tables[name] = (now, table)
        return table

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Opens a plan: resolves the table and binds the predicate; nothing is listed yet.

        Errors:
            TableNotFound, ColumnNotFound, GenerationNotFound, InvalidConfiguration and their like.
        """
        pin = self.pins.get(request.query_id, request.table, request.generation)
        if pin is None:
            table = self.table(request.table)
            view = self.views.view(table, request.generation)
            pin = self.pins.put(request.query_id, request.generation, Pin(table, view))
        mode = self._mode(request, pin.table, pin.view)
        return ScanPlan(self, request, pin, mode)

    def _mode(self, request: ScanRequest, table: Table, view: IndexView) -> Freshness:
        text = request.freshness or table.properties.get(PROPERTY)
        mode = parse_freshness(text) if text else self._freshness
        if mode.mode == "snapshot":
            # Without an index there is no file set to take: storage is the only truth.
            return SNAPSHOT if view.serving is not None else LIVE
        return mode
