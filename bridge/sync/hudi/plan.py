"""What one record of a Hudi table becomes in the metastore."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bridge.kernel.errors import InvalidUri, SchemaConflict, TableExists
from bridge.kernel.types import parse_hive_type
from bridge.metastore import records
from bridge.runtime.create_table import thrift_columns
from bridge.storage.uri import canonical
from bridge.sync.diff import Changes
from bridge.sync.discovered_partitions import DiscoveredPartitions
from bridge.sync.hudi.avro_spark_schema import spark_properties
from bridge.sync.hudi.table import HudiView, follow_schema, is_read_optimized
from bridge.sync.hudi.timeline import HudiSyncState
from bridge.sync.storage import TableRoot
from bridge.sync.writing.metastore import RegisteredTable
from bridge.table.hive_properties import ROOT_PROPERTY
from bridge.table.hudi.table_config import HudiTableConfig, TableType
from bridge.table.model import Column, TableName

OWNER = "skipbridge"


@dataclass(frozen=True, slots=True)
class HudiTarget:
    """What a record shall say.

    Attributes:
        columns: without keys, and without columns that Hive cannot have.
        schema: Avro schema of the newest commit.
        left_out: names of the columns that Hive cannot have.
    """

    place: TableRoot
    view: HudiView
    columns: tuple[Column, ...]
    keys: tuple[Column, ...]
    schema: str
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class HudiPlan:
    """One comparison and the changes that follow from it.

    Attributes:
        table: as it is registered; None if it must be created.
        record: the table's record after this run, but for what the end of the run adds.
        lines: changes of the table itself, one line each, as in a diff.
        names: of the registered partitions.
        state: of the last run.
        extractor: the chosen one; empty: as the table's properties say.
        quick: only partitions of commits since the last run are compared.
        stored: the compared partitions that hold files.
        dead: with ``quick``: paths of compared partitions that hold none.
    """

    table: RegisteredTable | None
    record: records.Table
    lines: list[str]
    names: list[str]
    state: HudiSyncState | None
    extractor: str
    quick: bool = False
    stored: DiscoveredPartitions = field(default_factory=lambda: DiscoveredPartitions(()))
    dead: set[str] = field(default_factory=set)
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """A record after the change, and the changes as lines of a diff.

    Attributes:
        keys: the partition keys; an existing table keeps their types.
    """

    record: records.Table
    keys: tuple[Column, ...]
    lines: list[str]


def planned_record(
    config: HudiTableConfig,
    name: TableName,
    target: HudiTarget,
    table: RegisteredTable | None,
    adopt: bool,
) -> PlannedRecord:
    """The table's record after this run.

    What others have added to an existing record stays: properties, parameters of the SerDe,
    comments.

    Errors:
        TableExists: the name belongs to the read-optimised form of the table, or the reverse.
        SchemaConflict: other keys, or a type that does not hold the former one.
    """
    if table is None:
        shown = ", ".join(f"{k.name} {k.type}" for k in target.keys)
        line = f"+ table {name}" + (f", partitioned by {shown}" if shown else "")
        return PlannedRecord(_new_record(name, target), target.keys, [line])
    record = copy.deepcopy(table.record)
    if [k.name for k in table.keys] != [k.name for k in target.keys]:
        raise SchemaConflict(
            f"{name} has the partition keys {_names(table.keys)}, and the Hudi table "
            f"{config.base} has {_names(target.keys)}",
            "drop it from the metastore (its files stay) and sync again",
        )
    _refuse_other_form(config, name, target.view, record, adopt)
    evolution = follow_schema(str(name), table.columns, target.columns)
    lines = list(evolution.lines)
    before = record.sd.cols
    record.sd.cols = _fields(before, evolution.columns)
    if not lines and record.sd.cols != before:
        lines.append("~ order of columns")
    lines += _classes(record.sd, target)
    if table.location != target.place.root:
        lines.append(f"~ location {table.location} -> {target.place.root}")
        record.sd.location = target.place.spell(target.place.root)
    parameters = record.sd.serdeInfo.parameters
    wanted = target.view.serde_parameters(record.sd.location)
    if _is_at(parameters.get("path"), target.place.root):
        wanted["path"] = parameters["path"]  # metastores spell file:/// their own way
    if not wanted.items() <= parameters.items():
        record.sd.serdeInfo.parameters = {**parameters, **wanted}
        lines.append("~ parameters of the SerDe")
    known = dict(record.parameters or {})
    keys = [k.name for k in target.keys]
    columns = (table.columns, evolution.columns)
    record.parameters = spark_properties(target.schema, keys, target.left_out, known, *columns)
    if record.parameters != known:
        lines.append("~ Spark's schema")
    if known.get(ROOT_PROPERTY) not in (None, target.place.root):
        record.parameters[ROOT_PROPERTY] = target.place.root
    return PlannedRecord(record, table.keys, lines)


def _new_record(name: TableName, target: HudiTarget) -> records.Table:
    now = int(time.time())
    spelled = target.place.spell(target.place.root)
    view = target.view
    keys = [k.name for k in target.keys]
    return records.Table(
        tableName=name.table,
        dbName=name.schema,
        owner=OWNER,
        createTime=now,
        lastAccessTime=now,
        retention=0,
        sd=records.StorageDescriptor(
            cols=thrift_columns(target.columns),
            location=spelled,
            inputFormat=view.input_format,
            outputFormat=view.output_format,
            compressed=False,
            numBuckets=-1,
            serdeInfo=records.SerDeInfo(
                name=None,
                serializationLib=view.serde,
                parameters=view.serde_parameters(spelled),
            ),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=thrift_columns(target.keys),
        parameters={
            "EXTERNAL": "TRUE",
            ROOT_PROPERTY: target.place.root,
            **spark_properties(target.schema, keys, target.left_out, {}),
        },
        tableType="EXTERNAL_TABLE",
    )


def _refuse_other_form(
    config: HudiTableConfig, name: TableName, view: HudiView, record: records.Table, adopt: bool
) -> None:
    parameters = record.sd.serdeInfo.parameters if record.sd.serdeInfo is not None else None
    held = is_read_optimized(config, parameters or {}, record.sd.inputFormat or "")
    if config.table_type is TableType.COPY_ON_WRITE or held == view.read_optimized or adopt:
        return
    forms = {True: "read-optimised", False: "real-time"}
    raise TableExists(
        f"{name} is registered as the {forms[held]} form of the Hudi table",
        f"--adopt makes it the {forms[not held]} one; or give another name",
    )


def _classes(descriptor: records.StorageDescriptor, target: HudiTarget) -> list[str]:
    view = target.view
    if descriptor.serdeInfo is None:
        descriptor.serdeInfo = records.SerDeInfo(name=None, parameters={})
    serde = descriptor.serdeInfo
    serde.parameters = dict(serde.parameters or {})
    held = (descriptor.inputFormat, descriptor.outputFormat, serde.serializationLib)
    if held == (view.input_format, view.output_format, view.serde):
        return []
    descriptor.inputFormat, descriptor.outputFormat = view.input_format, view.output_format
    serde.serializationLib = view.serde
    return [f"~ format classes {held[0]} -> {view.input_format}"]


def _is_at(path: str | None, root: str) -> bool:
    try:
        return path is not None and canonical(path) == root
    except InvalidUri:
        return False


def _fields(
    held: Sequence[records.FieldSchema], columns: Sequence[Column]
) -> list[records.FieldSchema]:
    """The columns as fields; equal types keep their spelling."""
    known = {f.name.lower(): f for f in held}
    fields = thrift_columns(columns)
    for i, column in enumerate(fields):
        old = known.get(column.name)
        if old is not None and parse_hive_type(old.type) == parse_hive_type(column.type):
            fields[i] = copy.copy(old)
            fields[i].comment = old.comment or column.comment
    return fields


def _names(keys: Sequence[Column]) -> str:
    return ", ".join(k.name for k in keys) or "none"
