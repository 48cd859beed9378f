"""The metastore side of a sync: reads records for comparison, and writes changes.

Every change may be repeated: existing partitions are not added, missing ones are not dropped, and
an alteration applies to the record as it is at that moment. The next run thus completes an
interrupted one, and two concurrent runs converge.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from bridge.errors import MetastoreFailure, UnsupportedTable
from bridge.file_formats.registry import read_formats
from bridge.jobs.create_table import thrift_columns, thrift_table
from bridge.jobs.sync.file_options import FileFormatOptions
from bridge.jobs.sync.write_batches import BatchLimits, batches
from bridge.metastore import records
from bridge.metastore.calls import RolledBack
from bridge.metastore.classify import (
    refuse_other_table_formats,
    refuse_unsupported,
    storage_format,
)
from bridge.metastore.client import MetastoreClient
from bridge.storage.uri import canonical
from bridge.sync.diff import Columns, Drop, Layout, RegisteredPartition, Update
from bridge.sync.discovered_partitions import Key
from bridge.sync.spark_schema import follow
from bridge.sync.state import STATE_PROPERTY
from bridge.table.model import Column, Table, TableName
from bridge.table.partition import NULL_MARKER, parse_partition_name
from bridge.types import parse_hive_type

# Keep the metastore from listing directories for statistics: alterations request none, and
# additions send all that it looks for. From version 4.0 on that includes a third one, which can
# be other than 0 only on HDFS.
_CODED_FILES = "numFilesErasureCoded"
_NO_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
_MOST_FAILURES = 50
_CHANGED = "transient_lastDdlTime"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegisteredTable:
    """A table as the metastore records it.

    Attributes:
        location: canonical URI.
        spelled: the location as the metastore spells it.
    """

    record: records.Table
    columns: tuple[Column, ...]
    keys: tuple[Column, ...]
    location: str
    spelled: str
    layout: Layout

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.record.parameters or {})

    @property
    def target_columns(self) -> Columns:
        return plain_columns(self.record.sd.cols)

    def digest_parts(self) -> Iterator[str]:
        """Everything in the record that a sync depends on."""
        for name, type_ in (*self.target_columns, *plain_columns(self.record.partitionKeys or [])):
            yield f"{name} {type_}"
        yield from (self.location, self.layout.input_format, self.layout.output_format)
        yield self.layout.serde


def read_table(client: MetastoreClient, name: TableName) -> RegisteredTable:
    """Errors: SchemaNotFound, TableNotFound, UnsupportedTable."""
    return registered_table(client.get_table(name.schema, name.table))


def registered_table(record: records.Table) -> RegisteredTable:
    """Errors: UnsupportedTable: the table's files cannot be read directly."""
    refuse_unsupported(record, read_formats())
    refuse_other_table_formats(record)
    return described_table(record)


def described_table(record: records.Table) -> RegisteredTable:
    """What the record says, for a table of any format."""
    return RegisteredTable(
        record,
        _columns(record.sd.cols),
        _columns(record.partitionKeys or []),
        canonical(record.sd.location),
        record.sd.location,
        _layout(record.sd),
    )


def alter_unless_changed(
    client: MetastoreClient, fresh: records.Table, amended: records.Table
) -> bool:
    """Alters a table unless it was altered since ``fresh`` was read; False if it was.

    Servers that support the condition check it in the same transaction. For others the window is
    one call long, and the comparison at the end of a sync finds a lost change.
    """
    context = dict(_NO_STATISTICS)
    properties = fresh.parameters or {}
    condition = STATE_PROPERTY if STATE_PROPERTY in properties else _CHANGED
    known = properties.get(condition)
    if known is not None:
        context |= {"expected_parameter_key": condition, "expected_parameter_value": known}
    try:
        client.alter_table(fresh.dbName, fresh.tableName, amended, context)
    except MetastoreFailure:
        now = client.get_table(fresh.dbName, fresh.tableName).parameters or {}
        if now.get(condition) != known:
            return False
        raise
    return True


def _columns(fields: Sequence[records.FieldSchema]) -> tuple[Column, ...]:
    return tuple(Column(f.name.lower(), parse_hive_type(f.type), f.comment or None) for f in fields)


def plain_columns(fields: Sequence[records.FieldSchema]) -> Columns:
    """Names and types in a uniform spelling."""
    return tuple((f.name.lower(), "".join(f.type.lower().split())) for f in fields)


def _layout(descriptor: records.StorageDescriptor) -> Layout:
    serde = descriptor.serdeInfo.serializationLib if descriptor.serdeInfo is not None else None
    return Layout(
        descriptor.inputFormat or "",
        descriptor.outputFormat or "",
        serde or "",
        storage_format(descriptor),
    )


def registered_partition(name: str, record: records.Partition) -> RegisteredPartition:
    if record.sd is None or not record.sd.location:
        raise MetastoreFailure(
            f"partition {name} of {record.dbName}.{record.tableName} has no location",
            "set one with ALTER TABLE ... PARTITION ... SET LOCATION, or drop it",
        )
    return RegisteredPartition(
        name,
        key_of(name),
        canonical(record.sd.location),
        plain_columns(record.sd.cols or []),
        _layout(record.sd),
    )


def key_of(name: str) -> Key:
    """The values in a partition's name."""
    return tuple(value for _, value in parse_partition_name(name))


def new_table(
    name: TableName,
    columns: Sequence[Column],
    keys: Sequence[Column],
    spelled: str,
    properties: dict[str, str],
    files: FileFormatOptions,
) -> records.Table:
    """An external table of files of a format."""
    made = thrift_table(name, Table(name, tuple(columns), tuple(keys), spelled, files.format))
    made.parameters = {**made.parameters, **properties, **files.properties}
    serde = made.sd.serdeInfo
    serde.parameters = {**serde.parameters, **files.serde}
    return made


def amended_table(
    record: records.Table,
    columns: Sequence[Column],
    spelled: str,
    properties: dict[str, str],
) -> records.Table:
    """The table's record with new columns and location and additional properties.

    What does not change stays as it is spelled.
    """
    amended = copy.deepcopy(record)
    rest = {c.name.lower(): c for c in columns}
    for held in amended.sd.cols:
        column = rest.pop(held.name.lower(), None)
        if column is not None and parse_hive_type(held.type) != column.type:
            held.type = str(column.type)
    amended.sd.cols += thrift_columns(list(rest.values()))
    amended.sd.location = spelled
    keys = _columns(amended.partitionKeys or [])
    said = {**(amended.parameters or {}), **properties}
    amended.parameters = follow(said, _columns(record.sd.cols), columns, keys)
    return amended


@dataclass(frozen=True, slots=True)
class NewPartition:
    """A partition to register.

    Attributes:
        spelled: its location, as the metastore should record it.
        files, bytes: of its data, so that the metastore need not count them.
    """

    name: str
    key: Key
    spelled: str
    files: int
    bytes: int


@dataclass(slots=True)
class Writer:
    """Writes changes of one table's partitions in batches; several additions run concurrently.

    Alterations and drops run one after another: they share rows of the metastore's database (that
    of the former columns, for one), and on Derby they wait for each other's locks until one fails.

    If the metastore refuses a batch, the batch is halved until the failing partitions are alone: an
    event of 200 partitions is too long for the metastore of Hive 2.3 on Derby, one of 20 is not.
    Partitions that it still refuses are in ``failed``; not those of which it rolled a change back
    for another's, the last of which is in ``met``.
    """

    client: MetastoreClient
    table: RegisteredTable
    limits: BatchLimits
    parallelism: int = 4
    progress: Callable[[int], None] = lambda done: None
    failed: list[tuple[str, str]] = field(default_factory=list)
    met: RolledBack | None = None
    _count: int = 0
    _third: dict[str, str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._count = self.limits.count

    @property
    def name(self) -> tuple[str, str]:
        return self.table.record.dbName, self.table.record.tableName

    def add(
        self,
        partitions: Iterable[NewPartition],
        present: Callable[[Sequence[NewPartition]], Sequence[NewPartition]],
    ) -> list[str]:
        """Registers partitions; existing ones stay as they are.

        Args:
            present: filters out partitions whose directory no longer exists.
        """
        columns = sum(len(f.name) + len(f.type) + 20 for f in self.table.record.sd.cols)

        def send(batch: Sequence[NewPartition]) -> list[str]:
            found = present(batch)
            self.client.add_partitions(*self.name, [self._record(p) for p in found])
            return [p.name for p in found]

        def size(p: NewPartition) -> int:
            return columns + 500 + len(p.spelled.encode()) + 2 * len(p.name.encode())

        return self._carry_out(partitions, size, lambda p: p.name, send, self.parallelism)

    def alter(self, updates: Iterable[tuple[Update, str | None]]) -> list[str]:
        """Updates partitions to the table's columns and classes, and to a new location if given.

        Partitions that no longer exist are skipped.
        """
        columns = sum(len(f.name) + len(f.type) + 20 for f in self.table.record.sd.cols)

        def send(batch: Sequence[tuple[Update, str | None]]) -> list[str]:
            wanted = {update.name: (update, spelled) for update, spelled in batch}
            found = self.client.get_partitions_by_names(*self.name, list(wanted))
            for name, record in zip(found.names, found.partitions, strict=True):
                self._align(record, *wanted[name])
            try:
                self.client.alter_partitions(*self.name, found.partitions, _NO_STATISTICS)
            except MetastoreFailure:
                if (
                    len(wanted) == 1
                    and self.client.get_partitions_by_names(*self.name, list(wanted)).missing
                ):
                    return []
                raise
            return list(found.names)

        def size(item: tuple[Update, str | None]) -> int:
            return columns + 800 + len(item[0].was.encode()) + 2 * len(item[0].name.encode())

        return self._carry_out(updates, size, lambda item: item[0].name, send, 1)

    def drop(
        self, drops: Iterable[Drop], gone: Callable[[Sequence[Drop]], Sequence[Drop]]
    ) -> list[str]:
        """Drops partitions from the metastore; never deletes files.

        Args:
            gone: filters out partitions that hold data again.
        """

        def send(batch: Sequence[Drop]) -> list[str]:
            names = [d.name for d in gone(batch)]
            self.client.drop_partitions(*self.name, names)
            return names

        return self._carry_out(
            drops, lambda d: len(d.name.encode()) + 20, lambda d: d.name, send, 1
        )

    def _third_statistic(self) -> dict[str, str]:
        with self._lock:
            if self._third is None:
                wanted = not self.table.location.startswith("hdfs:")
                wanted = wanted and self.client.get_version().startswith("4.")
                self._third = {_CODED_FILES: "0"} if wanted else {}
            return self._third

    def _record(self, new: NewPartition) -> records.Partition:
        now = int(time.time())
        descriptor = copy.copy(self.table.record.sd)
        descriptor.location = new.spelled
        return records.Partition(
            values=[NULL_MARKER if v is None else v for v in new.key],
            dbName=self.table.record.dbName,
            tableName=self.table.record.tableName,
            createTime=now,
            lastAccessTime=0,
            sd=descriptor,
            parameters={
                "numFiles": str(new.files),
                "totalSize": str(new.bytes),
                **self._third_statistic(),
            },
        )

    def _align(self, record: records.Partition, update: Update, spelled: str | None) -> None:
        own = self.table.record.sd
        if update.schema:
            record.sd.cols = own.cols
        if update.classes:
            record.sd.inputFormat, record.sd.outputFormat = own.inputFormat, own.outputFormat
            record.sd.serdeInfo = own.serdeInfo
        if spelled is not None:
            record.sd.location = spelled

    def _carry_out(
        self,
        items: Iterable[T],
        size: Callable[[T], int],
        name: Callable[[T], str],
        send: Callable[[Sequence[T]], list[str]],
        parallelism: int,
    ) -> list[str]:
        """Sends all items in batches, a few concurrently; returns the completed names in order."""
        done: list[str] = []
        ahead: deque[Future[list[str]]] = deque()
        with ThreadPoolExecutor(parallelism, "skipbridge-sync") as pool:
            try:
                for batch in batches(items, size, self.limits):
                    while len(ahead) >= parallelism:
                        done += self._finished(ahead.popleft())
                    ahead.append(pool.submit(self._attempt, batch, name, send))
                while ahead:
                    done += self._finished(ahead.popleft())
            except BaseException:
                for future in ahead:
                    future.cancel()
                raise
        return done

    def _finished(self, future: Future[list[str]]) -> list[str]:
        names = future.result()
        self.progress(len(names))
        return names

    def _attempt(
        self, batch: Sequence[T], name: Callable[[T], str], send: Callable[[Sequence[T]], list[str]]
    ) -> list[str]:
        if len(batch) > self._count:  # the metastore refused this many before
            step = self._count
            parts = [batch[i : i + step] for i in range(0, len(batch), step)]
            return [n for part in parts for n in self._attempt(part, name, send)]
        try:
            return send(batch)
        except (MetastoreFailure, UnsupportedTable) as error:
            if len(batch) == 1 and isinstance(error, RolledBack):
                self.met = error
                return []
            if len(batch) == 1:
                with self._lock:
                    self.failed.append((name(batch[0]), error.message))
                    if len(self.failed) >= _MOST_FAILURES:
                        raise  # the cause is not a single partition
                return []
            half = len(batch) // 2
            with self._lock:
                self._count = max(1, min(self._count, half))
            parts = [batch[:half], batch[half:]]
            return [n for part in parts for n in self._attempt(part, name, send)]
