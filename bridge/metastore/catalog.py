"""The catalog of a Hive metastore, without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from bridge.formats.registry import read_formats
from bridge.kernel.errors import BridgeError, MetastoreFailure, UnsupportedTable
from bridge.kernel.types import parse_hive_type
from bridge.metastore._gen import ttypes
from bridge.metastore.batches import BatchSettings
from bridge.metastore.classify import (
    refuse_unsupported,
    serde_format,
    storage_format,
    trino_view,
)
from bridge.metastore.client import MetastoreClient
from bridge.metastore.connection import Cancellation
from bridge.metastore.reader_properties import (
    PartitionReaders,
    declared_columns,
    is_described,
    table_properties,
)
from bridge.metastore.shared_partitions import PartitionAnswers, PartitionCalls
from bridge.metastore.statistics import table_statistics
from bridge.storage.uri import canonical
from bridge.table.catalog_statistics import CatalogStatistics
from bridge.table.hive_properties import BY_PLACE
from bridge.table.model import (
    CatalogTable,
    Column,
    OneBatch,
    Partition,
    PartitionBatch,
    PartitionFetch,
    TableName,
    View,
)
from bridge.table.partition import NULL_MARKER
from bridge.table.registry import DIRECTORY, recognise_format

UNPARTITIONED = ""


class HiveCatalog:
    """Implements `bridge.table.model.Catalog` over a metastore; thread-safe.

    Args:
        client: closed with this catalog.
        batch_settings: sizes of the batches in which partitions are fetched.
    """

    def __init__(
        self,
        client: MetastoreClient,
        batch_settings: BatchSettings | None = None,
    ) -> None:
        self.client = client
        self._calls = PartitionCalls(batch_settings or BatchSettings())

    def close(self) -> None:
        self._calls.close()
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

    def table(self, name: TableName, age: float = 0.0) -> CatalogTable:
        """Errors: SchemaNotFound, TableNotFound, UnsupportedTable, UnsupportedType."""
        found = self.client.get_table(name.schema, name.table)
        if found.sd is None:
            raise UnsupportedTable(
                f"{name} has no storage descriptor in the metastore", "drop it and create it again"
            )
        properties = dict(found.parameters or {})
        kind = recognise_format(properties, found.sd.inputFormat or "")
        serde = (found.sd.serdeInfo and found.sd.serdeInfo.parameters) or {}
        if kind == DIRECTORY:
            refuse_unsupported(found, read_formats())
            serde = {name: serde[name] for name in BY_PLACE.values() if name in serde}
        properties = {**serde, **properties}
        format = storage_format(found.sd) if kind == DIRECTORY else serde_format(found.sd)
        return CatalogTable(
            name=TableName(found.dbName.lower(), found.tableName.lower()),
            columns=_columns(declared_columns(found.sd)),
            partition_keys=_columns(found.partitionKeys or []),
            location=canonical(found.sd.location),
            format=format,
            properties=properties,
            table_format=kind,
            input_format=found.sd.inputFormat or "",
            reader_properties=table_properties(found) if is_described(format) else (),
            created=found.createTime or 0,
        )

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        """Names of all partitions, escaped; ``[""]`` for an unpartitioned table."""
        if not table.partition_keys:
            return [UNPARTITIONED]
        return self.client.get_partition_names(table.name.schema, table.name.table)

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> PartitionFetch:
        """Fetches partitions lazily, in batches of growing size, in the order of ``names``.

        Scans of one table share the calls that they wait for at the same time.

        A partition may have another file format than the table.

        Errors (while iterating):
            UnsupportedTable: a partition has an unknown file format.
        """
        if not table.partition_keys:
            whole = Partition(UNPARTITIONED, (), table.location)
            return OneBatch(PartitionBatch((whole,) if names else ()))

        readers = PartitionReaders(table)

        def ask(batch: Sequence[str], cancellation: Cancellation) -> PartitionAnswers:
            asked = (table.name.schema, table.name.table, batch, cancellation)
            if is_described(table.format):
                found = self.client.get_partitions_by_names(*asked)
            else:
                found = self.client.get_partition_locations(*asked)
                if any(is_described(storage_format(p.sd)) for p in found.partitions):
                    found = self.client.get_partitions_by_names(*asked)
            return {
                name: _partition(table, name, partition, readers)
                for name, partition in zip(found.names, found.partitions, strict=True)
            }

        key = (table.name, table.format, table.reader_properties)
        return self._calls.fetch(key, names, ask)

    def statistics(self, table: CatalogTable, partitions: Sequence[str]) -> CatalogStatistics:
        return table_statistics(self.client, table, partitions)

    def forget(self, name: TableName) -> None:
        """Does nothing: there is no cache."""


def _partition(
    table: CatalogTable, name: str, found: ttypes.Partition, readers: PartitionReaders
) -> Partition | BridgeError:
    """The partition, or why it cannot be read."""
    if found.sd is None or not found.sd.location:
        return MetastoreFailure(
            f"partition {name} of {table.name} has no location",
            "set one with ALTER TABLE ... PARTITION ... SET LOCATION",
        )
    try:
        # Other formats of tables say themselves how each of their files is read.
        is_directory = table.table_format == DIRECTORY
        of_files = storage_format(found.sd) if is_directory else table.format
        if of_files not in read_formats() and of_files != table.format:
            return UnsupportedTable(
                f"partition {name} of {table.name} holds {of_files} files, "
                f"the table {table.format} files",
                "rewrite the partition in the table's format, or leave it out by a predicate on "
                "the partition keys",
            )
        reader = readers.reader(found, of_files) if is_directory else None
        location = canonical(found.sd.location)
    except BridgeError as error:
        return error
    values = tuple(None if v == NULL_MARKER else v for v in found.values)
    return Partition(name, values, location, reader)


def _columns(fields: Sequence[ttypes.FieldSchema]) -> tuple[Column, ...]:
    return tuple(Column(f.name, parse_hive_type(f.type or ""), f.comment or None) for f in fields)
