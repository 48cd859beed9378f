"""What a table format is, and what a snapshot of a table is.

A table format opens snapshots; a snapshot gives file slices. Formats are found by name: a package
in `bridge.table` with a ``TABLE_FORMAT``, or an entry point in the group
``skipbridge.table_formats`` of another distribution (see CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from bridge.expression.nodes import Expression
from bridge.storage.port import Storage
from bridge.table.directory_lister import DirectoryLister
from bridge.table.discovered import Discovered
from bridge.table.freshness import Freshness
from bridge.table.model import Catalog, Partition, PartitionBatch, PartitionFetch, Table
from bridge.table.read_version import ReadVersion
from bridge.table.slices import IndexFiles, Mask, SliceBatch

Columns = frozenset[str] | None
"""Names of the columns that a scan reads, in lower case; None: all."""


@dataclass(frozen=True, slots=True)
class TableContext:
    """What a table format may use.

    Attributes:
        lister: lists directories in parallel, and remembers listings.
        index: of the table, None where there is none.
        index_at: opens a generation of it by number. Errors: GenerationNotFound and its like.
        freshness: how old a directory listing may be; formats that commit file sets ignore it.
        absent_is_empty: a partition whose directory is gone has no files, as in Hive.
    """

    storage: Storage
    catalog: Catalog
    lister: DirectoryLister
    index: IndexFiles | None
    index_at: Callable[[int], IndexFiles | None]
    freshness: Freshness
    absent_is_empty: bool = False


class Snapshot(Protocol):
    """One version of a table, as all scans of one query see it; safe for threads.

    Attributes:
        id: lets any planner open the same snapshot again; empty where none can, as a listing.
        table: with the schema of that version.
        index: that most of its slices are matched with; None: there is none.
        row_filter: rows outside it do not belong to the version; readers enforce it.
        committed: the file set is the truth: damage is an error, never a reason to list.
        freshness: as reports tell it: ``live``, ``cached(60s)``, ``snapshot``, ``committed``.
        plans_without_io: neither the metastore nor storage is asked for slices.
        listed_files: files held in memory, beside what the index maps.

    Errors of every method: MetastoreUnavailable, StorageFailure and their like: nothing is taken as
    empty that could not be read.
    """

    id: str
    table: Table
    index: IndexFiles | None
    row_filter: Expression
    committed: bool
    freshness: str
    plans_without_io: bool

    @property
    def listed_files(self) -> int: ...

    def partition_names(self) -> list[str]:
        """Names of all partitions; ``[""]`` of a table without partitions."""
        ...

    def partitions(self, names: list[str]) -> PartitionFetch:
        """Partitions in growing batches, in the order of ``names``."""
        ...

    def begin(self) -> None:
        """Starts in the background what a scan asks first.

        What fails now fails again when a scan asks.
        """
        ...

    def slices(self, batch: PartitionBatch, columns: Columns) -> Iterator[SliceBatch]:
        """The slices of some partitions, those of a large one in several batches."""
        ...

    def indexed_slices(self, partition: Partition) -> SliceBatch | None:
        """What the index says a partition holds, where that is known earlier than `slices`.

        Each slice must pass `unchanged` before it is used. None: `slices` is as fast, or the index
        cannot tell.
        """
        ...

    def unchanged(self, slices: SliceBatch) -> Mask:
        """Which slices of `indexed_slices` lie in storage exactly as the index knows them."""
        ...


class TableFormat(Protocol):
    """A kind of table.

    Attributes:
        name: in lower case, unique.
        versioned: `snapshot` takes read versions other than the newest.
    """

    name: str
    versioned: bool

    def recognises(self, properties: Mapping[str, str], input_format: str) -> bool:
        """Whether a table of the metastore is of this format.

        Args:
            input_format: the Hive class that its storage descriptor names.
        """
        ...

    def snapshot(
        self, table: Table, read: ReadVersion, context: TableContext, id: str = ""
    ) -> Snapshot:
        """Opens a version of a table.

        Args:
            id: of a snapshot that was opened before; empty: the one that ``read`` names.

        Errors:
            ReadVersionNotFound: there is no such version, or it was cleaned.
            ReadVersionUnsupported: the format has no such read.
            SnapshotExpired: ``id`` cannot be opened again.
        """
        ...

    def discover(self, location: str, storage: Storage, threads: int = 16) -> Discovered:
        """What lies at a location, whatever the metastore knows: what sync asks.

        Args:
            threads: listings in flight at once.

        Errors:
            StorageFailure, InvalidUri.
        """
        ...
