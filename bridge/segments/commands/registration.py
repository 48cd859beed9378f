"""Records of tables of segments in the metastore, and what log and record share.

The record names a storage handler, so that an engine without skipbridge refuses the table: its
directory holds no rows. The log is the truth; the record's columns follow each commit.

The law: whatever fails or dies in between, a table is there with all its segments, or it is not.
A drop is first a mark in the log, then the record goes, and files are deleted last. A creation is
first a mark of a dropped table, then the record, and the mark is taken back last. A mark is undone
only if the metastore has answered that the other half failed. After a lost answer the record
decides; what it cannot decide is finished by the next CREATE or DROP of the name.
"""

from __future__ import annotations

import time
from contextlib import suppress

from bridge.index.building.alter_index import drop_index
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    BridgeError,
    MetastoreFailure,
    MetastoreUnavailable,
    SchemaNotFound,
    SegmentLogCorrupt,
    TableExists,
    TableNotFound,
)
from bridge.metastore import records
from bridge.metastore.classify import FILE_FORMAT
from bridge.metastore.client import MetastoreClient
from bridge.runtime.compose import index_store, is_location, metastore_of, resolve, storage_of
from bridge.runtime.create_table import thrift_columns
from bridge.segments.commands.opened import require_segments
from bridge.storage.port import Storage
from bridge.storage.uri import canonical, join
from bridge.table.model import CatalogTable, TableName
from bridge.table.registry import PROPERTY
from bridge.table.segments.format import INPUT_FORMAT, NAME, segment_table
from bridge.table.segments.log import DIRECTORY, VERSIONS, SegmentLog
from bridge.table.segments.manifest import SegmentManifest, TableDefinition

HANDLER = "io.skipbridge.hive.SegmentStorageHandler"
SERDE = "io.skipbridge.hive.SegmentSerDe"
OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
ID = "skipbridge.table_id"
"""Property of the record: the id of the definition for which it was made."""


def create(config: Config, name: TableName, root: str, definition: TableDefinition) -> None:
    """Makes a table and its record. Errors: TableExists, SchemaNotFound, MetastoreUnavailable."""
    storage = storage_of(config)
    with metastore_of(config) as client:
        held = _recorded(client, name)
        if held is not None:
            if not _is_rest(storage, held):
                raise TableExists(f"table {name} exists already", "choose another name, or drop it")
            unregister(config, str(name), if_exists=True)
        log = SegmentLog(storage, root)
        mark = log.create(definition, dropped=True)
        table = CatalogTable(name, (), (), root, properties={ID: definition.id}, table_format=NAME)
        try:
            register(client, segment_table(table, mark))
        except MetastoreUnavailable:
            raise  # the record may appear yet
        except BridgeError:
            log.forget(mark)
            raise
        log.revive(mark, "CREATE TABLE")


def register(client: MetastoreClient, table: CatalogTable) -> None:
    """Records a table. Errors: TableExists, SchemaNotFound, MetastoreUnavailable."""
    try:
        client.create_table(_record(table))
    except BridgeError as error:
        try:
            held = _recorded(client, table.name)
        except BridgeError:
            raise error from None
        own = table.properties.get(ID)
        if held is None or own is None or (held.parameters or {}).get(ID) != own:
            raise


def _recorded(client: MetastoreClient, name: TableName) -> records.Table | None:
    """The record of a name; None: there is none."""
    try:
        return client.get_table(name.schema, name.table)
    except (TableNotFound, SchemaNotFound):
        return None


def _is_rest(storage: Storage, held: records.Table) -> bool:
    """Whether a record is what a CREATE or a DROP that died has left."""
    if held.sd is None or held.sd.inputFormat != INPUT_FORMAT:
        return False
    with suppress(SegmentLogCorrupt):
        newest = SegmentLog(storage, canonical(held.sd.location)).newest()
        return newest is not None and newest.dropped
    return False


def is_recorded(config: Config, table: CatalogTable) -> bool:
    """Whether Hive can open the table by its record: classes, properties and columns are right.

    Errors:
        TableNotFound, MetastoreUnavailable.
    """
    with metastore_of(config) as client:
        held = client.get_table(table.name.schema, table.name.table)
    return _opened_by(held) == _opened_by(_record(table))


def update_record(config: Config, table: CatalogTable) -> bool:
    """Writes the table's columns, and our Hive classes, into the metastore's record.

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


def update_record_after_commit(config: Config, table: CatalogTable) -> str:
    """Makes the record that of the table after a commit; what to say if it does not follow."""
    try:
        if is_recorded(config, table) or update_record(config, table):
            return ""
        why = "the metastore does not let its columns change"
    except BridgeError as error:
        why = error.message
    return (
        f"the table has changed, and the metastore's record of it has not: {why}; "
        f"ALTER TABLE {table.name} REFRESH SEGMENTS, or the next change, writes it anew"
    )


def rename(config: Config, name: TableName, new: TableName) -> None:
    """Renames the record; the table's directory stays. Errors: TableExists, TableNotFound."""
    with metastore_of(config) as client:
        if new.table in client.get_all_tables(new.schema):
            raise TableExists(f"table {new} exists already", "choose another name")
        held = client.get_table(name.schema, name.table)
        held.dbName, held.tableName = new.schema, new.table
        try:
            client.alter_table(name.schema, name.table, held)
        except BridgeError as error:
            try:
                now = _recorded(client, new)
            except BridgeError:
                raise error from None
            if now is None or now.sd.location != held.sd.location:
                raise


def unregister(config: Config, table: str, *, if_exists: bool) -> bool:
    """Drops a table of segments; False if there is none. Its fact files stay.

    Errors:
        TableNotFound, OperationBlocked.
    """
    storage = storage_of(config)
    try:
        catalog, name = resolve(config, table, storage)
        found = catalog.table(name)
    except (TableNotFound, SchemaNotFound):
        if if_exists:
            return False
        raise
    require_segments(found)
    log = SegmentLog(storage, found.location)
    mark: SegmentManifest | None = None  # a damaged log is dropped nevertheless
    with suppress(SegmentLogCorrupt):
        mark = log.drop()
    if not is_location(table):
        _drop_record(config, name, log, mark)
    with suppress(BridgeError):
        newest = log.newest()
        if newest is None or mark is None or newest.committer == mark.committer:
            drop_index(index_store(config, storage, found))
    _delete_log(log, mark)
    return True


def _drop_record(
    config: Config, name: TableName, log: SegmentLog, mark: SegmentManifest | None
) -> None:
    """Errors: whatever the metastore refuses; the log is then as it was before the mark."""
    with metastore_of(config) as client:
        try:
            client.drop_table(name.schema, name.table)
        except TableNotFound:
            return  # an answer was lost, and the call made again
        except BridgeError as error:
            try:
                if _recorded(client, name) is None:
                    return
            except BridgeError:
                pass
            else:
                if not isinstance(error, MetastoreUnavailable):
                    with suppress(TableExists):
                        if mark is not None:
                            log.revive(mark, "UNDO DROP TABLE")
                    raise
            error.hint = (
                f"the table is dropped, and its files and perhaps its record are not deleted: run "
                f"DROP TABLE {name} again; {error.hint}"
            )
            raise


def _delete_log(log: SegmentLog, mark: SegmentManifest | None) -> None:
    """Deletes the versions up to the mark, or all, and the files that only these name."""
    numbers = [n for n in log.versions() if mark is None or n <= mark.version]
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


def _record(table: CatalogTable) -> records.Table:
    now = int(time.time())
    own = {ID: table.properties[ID]} if ID in table.properties else {}
    return records.Table(
        tableName=table.name.table,
        dbName=table.name.schema,
        owner="skipbridge",
        createTime=now,
        lastAccessTime=now,
        retention=0,
        sd=records.StorageDescriptor(
            cols=thrift_columns((*table.columns, *table.partition_keys)),
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
        parameters={"EXTERNAL": "TRUE", PROPERTY: NAME, "storage_handler": HANDLER, **own},
        tableType="EXTERNAL_TABLE",
    )
