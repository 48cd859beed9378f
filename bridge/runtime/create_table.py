"""Registers a directory of Parquet or ORC files in the metastore as an external table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bridge.formats.file_format import HiveClasses
from bridge.formats.registry import file_format
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    InvalidRequest,
    MetastoreUnavailable,
    TableExists,
    TableNotFound,
    UnsupportedTable,
)
from bridge.kernel.types import Kind
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.runtime.compose import (
    absolute_location,
    check_directory,
    hive_catalog_of,
    metastore_of,
    storage_of,
)
from bridge.runtime.file_systems import require_file_system
from bridge.storage.uri import canonical
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.hive_properties import ROOT_PROPERTY
from bridge.table.model import CatalogTable, Column, Partition, TableName
from bridge.table.partition import NULL_MARKER, partition_name

Progress = Callable[[int, int], None]
_BATCH = 200


def create_table(
    config: Config, name: str, location: str, *, dry_run: bool, progress: Progress
) -> dict[str, Any]:
    """Infers the schema from the files and registers the table and its partitions in batches.

    An existing table with this location and these columns gets its missing partitions. The same
    command thus completes an interrupted run and registers new directories.

    Errors:
        TableExists: at another location, with other columns, or with no partition missing.
        SchemaConflict, FileCorrupt, MetastoreUnavailable.
        InvalidRequest: also if the metastore has no file system for the location.
        UnsupportedTable: Hive has no classes for the files' format.
    """
    target = table_name(name)
    location = canonical(absolute_location(location))
    check_directory(location)
    if not location.startswith("file:"):
        # A dry run works without a metastore.
        unneeded = (MetastoreUnavailable,) if dry_run else ()
        with contextlib.suppress(*unneeded), metastore_of(config) as client:
            require_file_system(client, location)
    storage = storage_of(config)
    catalog = DirectoryCatalog(storage, location)
    found = catalog.table(catalog.name)
    _hive_classes(found)
    partitions = list(_all_partitions(catalog, found))
    unreadable = [c.name for c in found.columns if c.type.kind is Kind.UNKNOWN]
    report: dict[str, Any] = {
        "table": str(target),
        "location": found.location,
        "partitions": len(partitions) if found.partition_keys else 0,
        "columns": [
            {"name": c.name, "type": str(c.type), "key": key}
            for columns, key in ((found.columns, False), (found.partition_keys, True))
            for c in columns
            if c.name not in unreadable
        ],
        "left_out": [*unreadable, *catalog.left_out],
        "strays": [{"file": s.uri, "is": s.what, "remedy": s.remedy} for s in catalog.strays],
        "dry_run": dry_run,
    }
    if dry_run:
        return report
    with metastore_of(config) as client:
        client.create_database(target.schema)
        try:
            register_table(client, target, found, partitions, progress)
        except TableExists:
            report["added"] = _add_missing(client, target, found, partitions, progress)
    return report


def _add_missing(
    client: MetastoreClient,
    name: TableName,
    table: CatalogTable,
    partitions: list[Partition],
    progress: Progress,
) -> int:
    """Registers the missing partitions of an existing table; returns their number."""
    existing = client.get_table(name.schema, name.table)
    remedy = "choose another name, or drop it first (its files stay if it is external)"
    location = existing.sd.location if existing.sd is not None else None
    if not location or canonical(location) != table.location:
        raise TableExists(f"table {name} exists already, at {location}", remedy)
    for have, wanted in (
        (existing.sd.cols, table.columns),
        (existing.partitionKeys or [], table.partition_keys),
    ):
        columns = [(c.name.lower(), c.type.lower()) for c in have]
        for column in thrift_columns(wanted):
            if (column.name, column.type) not in columns:
                raise TableExists(
                    f"table {name} exists already, without a column {column.name} {column.type}",
                    remedy,
                )
    missing: list[Partition] = []
    if table.partition_keys:
        known = set(client.get_partition_names(name.schema, name.table))
        missing = [p for p in partitions if _registered_name(table, p) not in known]
    if not missing:
        raise TableExists(
            f"table {name} exists already, at {location}, and lacks no partition",
            f"nothing to do; after new files: skipbridge index refresh {name}",
        )
    _add_partitions(client, name, table, missing, progress)
    return len(missing)


def _registered_name(table: CatalogTable, partition: Partition) -> str:
    """The metastore's spelling; the directory may be escaped differently."""
    return partition_name([k.name for k in table.partition_keys], list(partition.values))


def describe_table(config: Config, name: str) -> dict[str, Any]:
    """A table of the metastore, as values for JSON."""
    with hive_catalog_of(config) as catalog:
        table = catalog.table(table_name(name))
        return {
            "table": str(table.name),
            "location": table.location,
            "format": table.format,
            "table_format": table.table_format,
            "columns": [{"name": c.name, "type": str(c.type)} for c in table.columns],
            "partition_keys": [{"name": c.name, "type": str(c.type)} for c in table.partition_keys],
            "partitions": len(catalog.partition_names(table)) if table.partition_keys else 0,
            "properties": table.properties,
            "reader_properties": dict(table.reader_properties),
        }


def drop_table(config: Config, name: str) -> bool:
    """Removes a table from the metastore and keeps its files. False if there was none."""
    target = table_name(name)
    with metastore_of(config) as client:
        try:
            client.drop_table(target.schema, target.table)
        except TableNotFound:
            return False
        return True


def table_name(name: str) -> TableName:
    schema, dot, table = name.partition(".")
    if not dot or not schema or not table or "." in table:
        raise InvalidRequest(f"not a table's name: {name!r}", "give DB.TABLE")
    return TableName(schema.lower(), table.lower())


def _all_partitions(catalog: DirectoryCatalog, table: CatalogTable) -> Iterator[Partition]:
    for batch in catalog.partitions(table, catalog.partition_names(table)):
        yield from batch.partitions


def register_table(
    client: MetastoreClient,
    name: TableName,
    table: CatalogTable,
    partitions: list[Partition],
    progress: Progress = lambda done, total: None,
) -> None:
    """Registers a table that sync may maintain, then its partitions in batches.

    Errors:
        TableExists, SchemaNotFound.
    """
    record = thrift_table(name, table)
    record.parameters[ROOT_PROPERTY] = canonical(table.location)
    client.create_table(record)
    if table.partition_keys:
        _add_partitions(client, name, table, partitions, progress)


def _add_partitions(
    client: MetastoreClient,
    name: TableName,
    table: CatalogTable,
    partitions: list[Partition],
    progress: Progress,
) -> None:
    for start in range(0, len(partitions), _BATCH):
        batch = partitions[start : start + _BATCH]
        client.add_partitions(
            name.schema, name.table, [_thrift_partition(name, table, p) for p in batch]
        )
        progress(start + len(batch), len(partitions))


def thrift_columns(columns: Sequence[Column]) -> list[records.FieldSchema]:
    """Columns as metastore records, without columns whose type Hive does not have."""
    return [
        records.FieldSchema(name=c.name, type=str(c.type), comment=c.comment)
        for c in columns
        if c.type.kind is not Kind.UNKNOWN
    ]


def _hive_classes(table: CatalogTable) -> HiveClasses:
    format = file_format(table.format)
    if format.hive is None:
        raise UnsupportedTable(
            f"{table.name} is stored as {format.spelled}, for which Hive has no classes",
            "a table of the metastore must be of a format that Hive reads",
        )
    return format.hive


def _storage(table: CatalogTable, location: str) -> records.StorageDescriptor:
    classes = _hive_classes(table)
    return records.StorageDescriptor(
        cols=thrift_columns(table.columns),
        location=location,
        inputFormat=classes.input_formats[0],
        outputFormat=classes.output_format,
        compressed=False,
        numBuckets=-1,
        serdeInfo=records.SerDeInfo(
            name=None,
            serializationLib=classes.serdes[0],
            parameters={"serialization.format": "1"},
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def thrift_table(name: TableName, table: CatalogTable) -> records.Table:
    """An external table as a metastore record."""
    now = int(time.time())
    return records.Table(
        tableName=name.table,
        dbName=name.schema,
        owner="skipbridge",
        createTime=now,
        lastAccessTime=now,
        retention=0,
        sd=_storage(table, table.location),
        partitionKeys=thrift_columns(table.partition_keys),
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
    )


def _thrift_partition(
    name: TableName, table: CatalogTable, partition: Partition
) -> records.Partition:
    now = int(time.time())
    return records.Partition(
        values=[NULL_MARKER if v is None else v for v in partition.values],
        dbName=name.schema,
        tableName=name.table,
        createTime=now,
        lastAccessTime=now,
        sd=_storage(table, partition.location),
        parameters={},
    )
