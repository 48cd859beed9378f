"""The catalogue of a Hive metastore, without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from bridge.errors import MetastoreFailure, UnsupportedTable
from bridge.file_formats.registry import indexed_formats
from bridge.metastore._gen import ttypes
from bridge.metastore.adaptive_batch_size import AdaptiveBatchSize
from bridge.metastore.batches import BatchSettings, BatchStream
from bridge.metastore.classify import refuse_unsupported, storage_format, trino_view
from bridge.metastore.client import MetastoreClient
from bridge.metastore.connection import Cancellation
from bridge.storage.uri import canonical
from bridge.table.model import (
    Column,
    Partition,
    PartitionBatch,
    PartitionFetch,
    Table,
    TableName,
    View,
)
from bridge.table.partition import NULL_MARKER
from bridge.table.registry import DIRECTORY, recognised
from bridge.types import parse_hive_type

UNPARTITIONED = ""


class HiveCatalog:
    """Implements `bridge.table.model.Catalog` over a metastore; thread-safe.

    Args:
        client: closed with this catalogue.
        batch_settings: sizes of the batches in which partitions are fetched.
    """

    def __init__(
        self,
        client: MetastoreClient,
        batch_settings: BatchSettings | None = None,
    ) -> None:
        self.client = client
        self._settings = batch_settings if batch_settings is not None else BatchSettings()
        self._adaptive = AdaptiveBatchSize(self._settings.target)

    def close(self) -> None:
        self.client.close()

    def __enter__(self) -> HiveCatalog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def schemas(self) -> list[str]:
        return self.client.get_all_databases()

    def tables(self, schema: str) -> list[str]:
        """Errors: SchemaNotFound."""
        return self.client.get_all_tables(schema)

    def views(self, schema: str) -> list[str]:
        """Errors: SchemaNotFound."""
        return self.client.get_views(schema)

    def view(self, name: TableName) -> View | None:
        """Errors: SchemaNotFound, TableNotFound."""
        found = self.client.get_table(name.schema, name.table)
        definition = trino_view(found)
        if definition is None:
            return None
        comment = (found.parameters or {}).get("comment")
        return View(name, definition, found.owner or None, comment)

    def table(self, name: TableName, age: float = 0.0) -> Table:
        """Errors: SchemaNotFound, TableNotFound, UnsupportedTable, UnsupportedType."""
        found = self.client.get_table(name.schema, name.table)
        kind = recognised(found.parameters or {}, found.sd.inputFormat or "")
        if kind == DIRECTORY:
            refuse_unsupported(found, indexed_formats())
        return Table(
            name=TableName(found.dbName.lower(), found.tableName.lower()),
            columns=_columns(found.sd.cols),
            partition_keys=_columns(found.partitionKeys or []),
            location=canonical(found.sd.location),
            format=storage_format(found.sd),
            properties=dict(found.parameters or {}),
            table_format=kind,
        )

    def partition_names(self, table: Table, age: float = 0.0) -> list[str]:
        """Names of all partitions, escaped; ``[""]`` for an unpartitioned table."""
        if not table.partition_keys:
            return [UNPARTITIONED]
        return self.client.get_partition_names(table.name.schema, table.name.table)

    def partitions(self, table: Table, names: list[str], age: float = 0.0) -> PartitionFetch:
        """Fetches partitions lazily, in batches of growing size, in the order of ``names``.

        Errors (while iterating):
            UnsupportedTable: a partition's file format differs from the table's.
        """

        def fetch(batch: Sequence[str], cancellation: Cancellation) -> PartitionBatch:
            if not table.partition_keys:
                return PartitionBatch((Partition(UNPARTITIONED, (), table.location),))
            found = self.client.get_partition_locations(
                table.name.schema, table.name.table, batch, cancellation
            )
            return PartitionBatch(
                tuple(
                    self._partition(table, name, partition)
                    for name, partition in zip(found.names, found.partitions, strict=True)
                ),
                found.missing,
            )

        return BatchStream(fetch, names, self._settings, self._adaptive)

    def forget(self, name: TableName) -> None:
        """Does nothing: there is no cache."""

    def _partition(self, table: Table, name: str, found: ttypes.Partition) -> Partition:
        if found.sd is None or not found.sd.location:
            raise MetastoreFailure(
                f"partition {name} of {table.name} has no location",
                "set one with ALTER TABLE ... PARTITION ... SET LOCATION",
            )
        of_files = storage_format(found.sd)
        if of_files != table.format:
            raise UnsupportedTable(
                f"partition {name} of {table.name} holds {of_files} files, "
                f"the table {table.format} files",
                "rewrite the partition in the table's format, or leave it out by a predicate on "
                "the partition keys",
            )
        return Partition(
            name=name,
            values=tuple(None if v == NULL_MARKER else v for v in found.values),
            location=canonical(found.sd.location),
        )


def _columns(fields: Sequence[ttypes.FieldSchema]) -> tuple[Column, ...]:
    return tuple(Column(f.name, parse_hive_type(f.type), f.comment or None) for f in fields)
