"""Records of tables of segments in the metastore.

The record names a storage handler, so that an engine without skipbridge refuses the table: its
directory holds no rows. The log is the truth; the record's columns follow each commit.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from bridge.config import Config
from bridge.errors import (
    BridgeError,
    MetastoreFailure,
    SegmentLogCorrupt,
    TableExists,
    TableNotFound,
)
from bridge.index.alter_index import drop_index
from bridge.jobs.compose import index_store, is_location, metastore_of, resolve, storage_of
from bridge.jobs.create_table import thrift_columns
from bridge.jobs.segments.opened import require_segments
from bridge.metastore import records
from bridge.metastore.classify import FILE_FORMAT
from bridge.metastore.client import MetastoreClient
from bridge.storage.uri import join
from bridge.table.model import Table, TableName
from bridge.table.registry import PROPERTY
from bridge.table.segments.format import INPUT_FORMAT, NAME
from bridge.table.segments.log import DIRECTORY, VERSIONS, SegmentLog

HANDLER = "io.skipbridge.hive.SegmentStorageHandler"
SERDE = "io.skipbridge.hive.SegmentSerDe"
OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"


def register(client: MetastoreClient, table: Table) -> None:
    """Records a table. Errors: TableExists, SchemaNotFound."""
    client.create_table(_record(table))


def is_recorded(config: Config, table: Table) -> bool:
    """Whether Hive can open the table by its record: classes, properties and columns are right.

    Errors:
        TableNotFound, MetastoreUnavailable.
    """
    with metastore_of(config) as client:
        held = client.get_table(table.name.schema, table.name.table)
    return _opened_by(held) == _opened_by(_record(table))


def update_record(config: Config, table: Table) -> bool:
    """Makes the record's columns those of the table, and the classes by which Hive reads it ours.

    A metastore refuses columns whose types differ from those at the same places before, so that it
    takes two steps to drop a column in the middle.

    Returns:
        False if the metastore does not let columns change at all. The log tells the columns
        nevertheless, to all that skipbridge serves.
    """
    record = _record(table)
    wanted = record.sd.cols
    with metastore_of(config) as client:
        held = client.get_table(table.name.schema, table.name.table)
        held.sd.inputFormat, held.sd.outputFormat = record.sd.inputFormat, record.sd.outputFormat
        held.sd.serdeInfo = record.sd.serdeInfo
        held.parameters = {**(held.parameters or {}), **record.parameters}
        same = 0
        for old, new in zip(held.sd.cols, wanted, strict=False):
            if (old.name, old.type) != (new.name, new.type):
                break
            same += 1
        for columns in ([wanted], [wanted[:same], wanted]):
            try:
                for step in columns:
                    held.sd.cols = step
                    client.alter_table(table.name.schema, table.name.table, held)
            except MetastoreFailure:
                continue
            return True
        return False


def rename(config: Config, name: TableName, new: TableName) -> None:
    """Renames the record; the table's directory stays. Errors: TableExists, TableNotFound."""
    with metastore_of(config) as client:
        if new.table in client.get_all_tables(new.schema):
            raise TableExists(f"table {new} exists already", "choose another name")
        held = client.get_table(name.schema, name.table)
        held.dbName, held.tableName = new.schema, new.table
        client.alter_table(name.schema, name.table, held)


def unregister(config: Config, table: str, *, if_exists: bool) -> bool:
    """Drops a table of segments; False if there is none. Its fact files stay.

    Errors:
        TableNotFound, OperationBlocked.
    """
    storage = storage_of(config)
    try:
        catalog, name = resolve(config, table, storage)
        found = catalog.table(name)
    except TableNotFound:
        if if_exists:
            return False
        raise
    require_segments(found)
    log = SegmentLog(storage, found.location)
    dropped_log(log)
    if not is_location(table):
        with metastore_of(config) as client:
            client.drop_table(name.schema, name.table)
    with suppress(BridgeError):
        drop_index(index_store(config, storage, found))
    return True


def dropped_log(log: SegmentLog) -> None:
    """Marks a table as dropped, and deletes the files of its own that only its log names."""
    try:
        held = log.newest()
        if held is not None and not held.dropped:
            log.commit("DROP TABLE", lambda now: replace(now, dropped=True))
    except SegmentLogCorrupt:
        held = None  # it is dropped nevertheless; what it named cannot be told
    numbers = log.versions()
    named: set[str] = set()
    for number in numbers:
        with suppress(BridgeError):
            manifest = log.manifest(number)
            for directory in log.view_directories(manifest):  # their indexes as well
                named.update(log.storage.list_all(directory).paths.to_pylist())
            named |= log.names(manifest)
    own = join(log.root, DIRECTORY) + "/"
    for uri in sorted(named):
        if uri.startswith(own):  # the log of a copied table names the views of the other
            log.storage.delete(uri)
    for number in numbers:
        log.storage.delete(join(log.root, f"{VERSIONS}/{number:020}.json"))


def _opened_by(record: records.Table) -> tuple[object, ...]:
    """What Hive opens a table by."""
    sd, told = record.sd, record.parameters or {}
    return (
        sd.inputFormat,
        sd.outputFormat,
        sd.serdeInfo.serializationLib,
        (sd.serdeInfo.parameters or {}).get(FILE_FORMAT),
        [told.get(name) for name in (PROPERTY, "storage_handler")],
        [(column.name, column.type) for column in sd.cols],
    )


def _record(table: Table) -> records.Table:
    now = int(time.time())
    return records.Table(
        tableName=table.name.table,
        dbName=table.name.schema,
        owner="skipbridge",
        createTime=now,
        lastAccessTime=now,
        retention=0,
        sd=records.StorageDescriptor(
            cols=thrift_columns(table.columns),
            location=table.location,
            inputFormat=INPUT_FORMAT,
            outputFormat=OUTPUT_FORMAT,
            compressed=False,
            numBuckets=-1,
            serdeInfo=records.SerDeInfo(
                name=None,
                serializationLib=SERDE,
                parameters={"serialization.format": "1", FILE_FORMAT: table.format},
            ),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE", PROPERTY: NAME, "storage_handler": HANDLER},
        tableType="EXTERNAL_TABLE",
    )
