"""The metastore side of a sync: reads records for comparison, and writes changes.

Every change may be repeated: existing partitions are not added, missing ones are not dropped. A
decision holds only for the record on which it was made (rule 44): each write is preceded by a read,
and what changed meanwhile is compared again. The window that remains is one call long.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bridge.formats.registry import read_formats
from bridge.kernel.errors import MetastoreFailure
from bridge.kernel.types import parse_hive_type, whole_number
from bridge.metastore import records
from bridge.metastore.calls import RolledBack
from bridge.metastore.classify import (
    refuse_other_table_formats,
    refuse_unsupported,
    storage_format,
)
from bridge.metastore.client import MetastoreClient
from bridge.metastore.conditional_alter import NO_STATISTICS, alter_unless_changed
from bridge.runtime.create_table import thrift_columns, thrift_table
from bridge.storage.uri import canonical
from bridge.sync.diff import (
    Drop,
    PartitionClasses,
    RegisteredPartition,
    SpelledColumns,
    Update,
    WiderTypes,
)
from bridge.sync.discovered_partitions import KeyTexts
from bridge.sync.places import RegisteredPlaces, resolve_location, typed_keys
from bridge.sync.schemas.file_options import FileFormatOptions
from bridge.sync.schemas.schema import grown_type
from bridge.sync.schemas.spark_schema import updated_properties
from bridge.sync.state import MISSING_PROPERTY, text_digest
from bridge.sync.writing.write_batches import Batches, BatchLimits
from bridge.table.model import CatalogTable, Column, TableName
from bridge.table.partition import NULL_MARKER, parse_partition_name

# Additions send all that the metastore looks for, so that it lists no directories. From version 4.0
# on that includes this one, which can be other than 0 only on HDFS.
_CODED_FILES = "numFilesErasureCoded"
# The metastore writes them by itself, or each query, INSERT and ANALYZE does. No decision depends
# on them: sync looks at the files, and leaves them as they are in the record.
_COUNTED = frozenset(
    {
        *("transient_lastDdlTime", "lastAccessTime", "numFiles", "totalSize", "rawDataSize"),
        *("numRows", "COLUMN_STATS_ACCURATE", "STATS_GENERATED", "STATS_GENERATED_VIA_STATS_TASK"),
        _CODED_FILES,
    }
)
_QUIET_TRIES, _TRIES = 2, 5
_NAMES_PER_ADDITION = 12
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
    layout: PartitionClasses

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.record.parameters or {})

    @property
    def target_columns(self) -> SpelledColumns:
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


def amend_table(
    client: MetastoreClient,
    seen: RegisteredTable,
    amend: Callable[[RegisteredTable], records.Table],
    pause: float = 0.0,
) -> bool | None:
    """Alters a table of which another job may be setting properties all the time.

    Args:
        seen: the decision was made on it; columns, keys, location and classes must be the same.
        amend: makes the new record from the one that was read last: decides anew.
        pause: see `alter_unless_changed`; a few tries follow that write at once what they decide.

    Returns:
        False if the table was changed; None if no pause was left in which it was not written to.
    """
    for each in (*[pause] * _QUIET_TRIES, *[None] * _TRIES):
        fresh = described_table(client.get_table(seen.record.dbName, seen.record.tableName))
        if list(fresh.digest_parts()) != list(seen.digest_parts()):
            return False
        if alter_unless_changed(client, fresh.record, amend(fresh), each):
            return None if pause and each is None else True
    return False


def _columns(fields: Sequence[records.FieldSchema]) -> tuple[Column, ...]:
    return tuple(Column(f.name.lower(), parse_hive_type(f.type), f.comment or None) for f in fields)


def plain_columns(fields: Sequence[records.FieldSchema]) -> SpelledColumns:
    """Names and types in a uniform spelling."""
    return tuple((f.name.lower(), "".join(f.type.lower().split())) for f in fields)


def _layout(descriptor: records.StorageDescriptor) -> PartitionClasses:
    serde = descriptor.serdeInfo.serializationLib if descriptor.serdeInfo is not None else None
    return PartitionClasses(
        descriptor.inputFormat or "",
        descriptor.outputFormat or "",
        serde or "",
        storage_format(descriptor),
    )


def registered_partition(name: str, record: records.Partition, root: str) -> RegisteredPartition:
    """A partition of a table at ``root``, a canonical URI."""
    missing = (record.parameters or {}).get(MISSING_PROPERTY, "")
    return RegisteredPartition(
        name,
        key_of(name),
        resolve_location(record.sd.location, root) if record.sd.location else "",
        plain_columns(record.sd.cols or []),
        _layout(record.sd),
        whole_number(missing),
        text_digest([repr(_said(record))]),
    )


def _said(value: object) -> object:
    """All that a record says, in one order, but for what changes with each use (`_COUNTED`)."""
    if isinstance(value, dict):
        return sorted((k, _said(v)) for k, v in value.items() if k not in _COUNTED)
    if isinstance(value, list):
        return [_said(v) for v in value]
    fields = [f[2] for f in getattr(value, "thrift_spec", None) or () if f]
    return {f: _said(getattr(value, f)) for f in fields if f not in _COUNTED} if fields else value


def _decisive(record: records.Table) -> object:
    """All that a table's record says, but for properties that are not sync's own."""
    own = {k: v for k, v in (record.parameters or {}).items() if k.startswith("skipbridge.sync.")}
    said = copy.copy(record)
    said.parameters = own
    return _said(said)


def key_of(name: str) -> KeyTexts:
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
    made = thrift_table(
        name, CatalogTable(name, tuple(columns), tuple(keys), spelled, files.format)
    )
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
    amended.parameters = updated_properties(said, _columns(record.sd.cols), columns, keys)
    return amended


def _followed(
    held: Sequence[records.FieldSchema], table: Sequence[records.FieldSchema], types: WiderTypes
) -> list[records.FieldSchema]:
    """A partition's columns with those of the table that it lacks, and some wider types.

    A column of another type than the decision was made on stays.
    """
    fields = [copy.copy(f) for f in held]
    wide = {name: (was, grown) for name, was, grown in types}
    for one, (name, type_) in zip(fields, plain_columns(fields), strict=True):
        if name in wide and wide[name][0] == type_:
            grown = grown_type(parse_hive_type(one.type), wide[name][1])
            one.type = str(grown) if grown is not None else one.type
    names = {f.name.lower() for f in fields}
    return fields + [f for f in table if f.name.lower() not in names]


def _values(key: KeyTexts) -> list[str]:
    return [NULL_MARKER if v is None else v for v in key]


@dataclass(frozen=True, slots=True)
class NewPartition:
    """A partition to register.

    Attributes:
        spelled: its location, as the metastore should record it.
        files, bytes: of its data, so that the metastore need not count them.
    """

    name: str
    key: KeyTexts
    spelled: str
    files: int
    bytes: int


@dataclass(slots=True)
class Writer:
    """Writes changes of one table's partitions in batches; several additions run concurrently.

    Alterations and drops run one after another: they share rows of the metastore's database (that
    of the former columns, for one), and on Derby they wait for each other's locks until one fails.

    Partitions that the metastore refuses are in ``failed``, with its reason; not those of which it
    rolled a change back for another's, the last of which is in ``met``.

    Before each write the records are read again, and compared in all fields but those that change
    with each use (`_COUNTED`). What another job has added, changed or dropped since the comparison,
    or a batch of a table that was changed, is left alone, and ``changed`` is set.

    Attributes:
        last: nobody compares again after it: see `_unchanged`.
        unquiet: another job changed partitions between all comparisons and writes of the run.
    """

    client: MetastoreClient
    table: RegisteredTable
    limits: BatchLimits
    parallelism: int = 4
    progress: Callable[[int], None] = lambda done: None
    last: bool = False
    failed: list[tuple[str, str]] = field(default_factory=list)
    met: RolledBack | None = None
    changed: bool = False
    unquiet: bool = False
    _third: dict[str, str] | None = None
    _others: list[tuple[str, str]] = field(default_factory=list)
    _due: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> tuple[str, str]:
        return self.table.record.dbName, self.table.record.tableName

    def add(
        self,
        partitions: Iterable[NewPartition],
        present: Callable[[Sequence[NewPartition]], Sequence[NewPartition]],
        names: Iterable[str] = (),
    ) -> list[str]:
        """Registers partitions; existing ones stay as they are.

        Args:
            present: filters out partitions whose directory no longer exists.
            names: of the partitions that the comparison knew.
        """
        columns = sum(len(f.name) + len(f.type) + 20 for f in self.table.record.sd.cols)
        fitting = [p for p in partitions if not self._too_long(p)]
        planned, known = {p.name: p for p in fitting}, set(names)

        def send(batch: Sequence[NewPartition]) -> list[str]:
            found = present(batch)
            free = self._untaken(found, planned, known) if found and self._as_decided() else []
            made = self.client.add_partitions(*self.name, [self._record(p) for p in free])
            added = {tuple(p.values) for p in made}
            done = [p.name for p in free if tuple(_values(p.key)) in added]
            with self._lock:
                known.update(done)
            self.changed |= len(done) < len(found)  # others' are compared
            return done

        def size(p: NewPartition) -> int:
            return columns + 500 + len(p.spelled.encode()) + 2 * len(p.name.encode())

        return self._carry_out(fitting, size, lambda p: p.name, send, self.parallelism)

    def alter(self, updates: Iterable[tuple[Update, str | None]]) -> list[str]:
        """Updates partitions to the table's columns and classes, and to a new location if given.

        Partitions that no longer exist, or lie elsewhere by now, are skipped.
        """
        columns = sum(len(f.name) + len(f.type) + 20 for f in self.table.record.sd.cols)

        def send(batch: Sequence[tuple[Update, str | None]]) -> list[str]:
            wanted = {update.name: (update, spelled) for update, spelled in batch}
            found = self._unchanged([update for update, _ in batch])
            for name, record in found.items():
                self._align(record, *wanted[name])
            try:
                self.client.alter_partitions(*self.name, list(found.values()), NO_STATISTICS)
            except MetastoreFailure:
                if (
                    len(wanted) == 1
                    and self.client.get_partitions_by_names(*self.name, list(wanted)).missing
                ):
                    return []
                raise
            return list(found)

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
            names = list(self._unchanged(gone(batch)))
            self.client.drop_partitions(*self.name, names)
            return names

        return self._carry_out(
            drops, lambda d: len(d.name.encode()) + 20, lambda d: d.name, send, 1
        )

    def _as_decided(self) -> bool:
        """Whether the table is still as it was when the changes of its partitions were decided.

        Others may have set properties: decisions depend on sync's own alone.
        """
        now = self.client.get_table(*self.name)
        same = _decisive(now) == _decisive(self.table.record)
        self.changed |= not same
        return same

    def _untaken(
        self, new: Sequence[NewPartition], planned: Mapping[str, NewPartition], known: set[str]
    ) -> Sequence[NewPartition]:
        """Those of the new partitions whose place and values no other has registered meanwhile.

        Names are read before each batch, and of a large table after a number of additions: the
        metastore needs 20 µs for a name and 1 ms for an addition, on Derby.

        Args:
            planned: all new partitions of the run. One that is registered where it should be is
                no other's: another batch may have added it.
            known: names that are no other's; grows.
        """
        with self._lock:
            self._due -= len(new)
            read = self._due <= 0
            if read:
                self._due = len(known) // _NAMES_PER_ADDITION
        if read:
            self._read_others(planned, known)
        with self._lock:
            others = list(self._others)
        if not others:
            return new
        places, typed = RegisteredPlaces(others), typed_keys(self.table.keys)
        values = {typed(key_of(name)) for _, name in others}
        return [
            p
            for p in new
            if places.claim(canonical(p.spelled)) is None and typed(p.key) not in values
        ]

    def _read_others(self, planned: Mapping[str, NewPartition], known: set[str]) -> None:
        """Finds the partitions that others have registered since the comparison."""
        names = self.client.get_partition_names(*self.name)
        with self._lock:
            fresh = [n for n in names if n not in known]
            for place, name in self._placed(fresh):
                if name not in planned or canonical(planned[name].spelled) != place:
                    self._others.append((place, name))
            known.update(fresh)

    def _placed(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Locations and names of partitions."""
        placed = []
        for at in range(0, len(names), self.limits.count):
            some = names[at : at + self.limits.count]
            found = self.client.get_partitions_by_names(*self.name, some)
            for name, record in zip(found.names, found.partitions, strict=True):
                one = registered_partition(name, record, self.table.location)
                placed.append((one.location, name))
        return placed

    def _unchanged(self, decided: Sequence[Update | Drop]) -> dict[str, records.Partition]:
        """The records of those partitions that are as the comparison found them, read again.

        In the last round, whose changes nobody decides anew, only what decides must be the same.
        """
        if not decided or not self._as_decided():
            return {}
        bases = {one.name: one.basis for one in decided}
        found = self.client.get_partitions_by_names(*self.name, list(bases))
        same = {}
        for name, record in zip(found.names, found.partitions, strict=True):
            now, then = registered_partition(name, record, self.table.location).basis, bases[name]
            if now == then or (self.last and then is not None and now.decides == then.decides):
                same[name] = record
                self.unquiet |= now != then
        self.changed |= len(same) < len(bases)
        return same

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
            values=_values(new.key),
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
        if update.schema and update.types is None:
            record.sd.cols = own.cols
        elif update.schema:
            record.sd.cols = _followed(record.sd.cols or [], own.cols, update.types or ())
        if update.classes:
            record.sd.inputFormat, record.sd.outputFormat = own.inputFormat, own.outputFormat
            record.sd.serdeInfo = own.serdeInfo
        if spelled is not None:
            record.sd.location = spelled
        if update.missing is not None:
            record.parameters = {**(record.parameters or {}), MISSING_PROPERTY: str(update.missing)}
            if not update.missing:
                del record.parameters[MISSING_PROPERTY]

    def _carry_out(
        self,
        items: Iterable[T],
        size: Callable[[T], int],
        name: Callable[[T], str],
        send: Callable[[Sequence[T]], list[str]],
        parallelism: int,
    ) -> list[str]:
        """Sends all items in batches, a few concurrently; returns the completed names in order."""
        job = Batches(name, send, self.limits, parallelism, self.progress)
        try:
            return job.run(list(items), size)
        finally:
            self.failed += job.failed
            self.met = job.met or self.met

    def _too_long(self, new: NewPartition) -> bool:
        """Whether a column of the metastore's database cannot hold it, which is then in `failed`.

        A metastore of Hive 2.3 tries a refused call for 20 seconds, and refuses the whole batch.
        """
        for what, text, most in (("name", new.name, 767), ("location", new.spelled, 4000)):
            length = len(text.encode("utf-16-le", "surrogatepass")) // 2
            if length > most:
                reason = f"its {what} has {length} characters; a metastore holds {most}"
                self.failed.append((new.name, reason))
                return True
        return False
