"""What others do to a table between two calls of a sync, and what must be left of it afterwards."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

from bridge.kernel.config import OPTIONS, Config, Setting
from bridge.kernel.errors import BridgeError, Category, StorageFailure
from bridge.kernel.types import parse_hive_type
from bridge.metastore._gen import ttypes
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.job import SyncJob, run_job
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.writing.write_batches import BatchLimits
from bridge.table.model import Column, TableName
from tests.support.metastore_proxy import Call
from tests.support.sync_world import (
    DDL_TIME,
    NULL,
    SPARK_SCHEMA,
    Values,
    World,
    clear,
    data_files,
    fields,
    lacking,
    new_table,
    place_of,
    schema_of_spark,
)

_OURS = "skipbridge."
_KNOWN = {o.key for o in OPTIONS}
_NO_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a sync ended.

    Attributes:
        status: of the command, which it would end with.
    """

    status: int
    report: SyncReport | None
    error: BridgeError | None = None

    @property
    def in_step(self) -> bool:
        return self.report is not None and self.report.outcome == "in step"


def sync(world: World, uri: str, **options: Any) -> Outcome:
    """One run of the command; directories that are gone need no second run to be dropped."""
    settings = {
        "metastore.uri": uri,
        "index.root": str(world.base / "index"),
    }
    wanted = {"adopt": True, "hold_wider": True, "drop_now": True, **options}
    known = {k: v for k, v in wanted.items() if k in SyncRequest.__dataclass_fields__}
    keys = tuple(Column(n, parse_hive_type(t)) for n, t in world.keys)
    name = TableName(world.database, "t")
    request = SyncRequest(name, str(world.root), keys=keys, **known)
    config = Config({k: Setting(v, "test") for k, v in settings.items() if k in _KNOWN})
    try:
        job = SyncJob(request, options.get("index"))
        report = run_job(config, job, progress=lambda a, b: None, say=lambda t: None)
    except BridgeError as error:
        return Outcome(2 if error.category is Category.USER_ERROR else 1, None, error)
    return Outcome(3 if report.problems else 0, report)


@contextlib.contextmanager
def failing_store(at: int) -> Iterator[None]:
    """A store whose listings fail once, at the given one."""
    real = LocalStorage.pages
    left = [at]

    def pages(self: LocalStorage, *arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise StorageFailure("503 Slow Down", "try again")
        return real(self, *arguments, **options)

    LocalStorage.pages = pages  # type: ignore[method-assign]
    try:
        yield
    finally:
        LocalStorage.pages = real  # type: ignore[method-assign]


@contextlib.contextmanager
def small_batches(count: int) -> Iterator[None]:
    """Syncs that write so many partitions at once, one batch after another."""
    real = SyncSettings.of

    def of(config: Config) -> SyncSettings:
        return replace(real(config), limits=BatchLimits(count=count), parallelism=1)

    with mock.patch.object(SyncSettings, "of", of):
        yield


@dataclass(slots=True)
class Rivals:
    """Others, and what they confirmed.

    Attributes:
        uri: of the metastore itself.
        others: values of the partitions that others registered.
        table, partitions: records as others last left them.
        window: what others changed between sync's last look and its write: the table's name, or
            values.
        alone: others changed single partitions, which only a comparison of all of them finds.
        rewritten: directories of which others removed files, when a sync may have read them.
    """

    world: World
    uri: str
    others: set[Values] = field(default_factory=set)
    table: ttypes.Table | None = None
    partitions: dict[Values, ttypes.Partition] = field(default_factory=dict)
    window: set[str | Values] = field(default_factory=set)
    alone: bool = False
    rewritten: set[Path] = field(default_factory=set)
    _number: int = 0

    @property
    def draw(self) -> random.Random:
        return self.world.draw

    def remember(self) -> None:
        """What is there now is there to stay."""
        self.table = self.world.table()
        self.partitions = self.world.partitions() if self.table is not None else {}

    # what others do

    def act(self, call: Call | None) -> str:
        """One change by another; returns what it was."""
        world = self.world
        record = world.table()
        self._number += 1
        if record is None:
            acts: list[Callable[[Call | None], str]] = [self._create, self._write, self._sync]
        else:
            acts = [
                *(self._property, self._property, self._comment, self._column),
                *(self._relocate, self._relocate, self._relocate, self._mark, self._mark),
                *(self._drop, self._drop_and_register, self._register, self._register),
                *(self._sync, self._write, self._write, self._remove, self._rewrite),
            ]
            if self.draw.randrange(100) < 4:
                acts = [self._drop_table]
        return self.draw.choice(acts)(call)

    def _alter_table(self, call: Call | None, change: Callable[[ttypes.Table], None]) -> None:
        record = self.world.table()
        assert record is not None
        change(record)
        timed = self.world.chance(60)  # as Hive and Spark write; Trino sends the old time
        if timed:
            record.parameters.pop(DDL_TIME, None)
        self.world.client.alter_table(record.dbName, "t", record, _NO_STATISTICS)
        self.table = self.world.table()
        if call is not None and call.method.startswith("alter_table"):
            context = call.arguments["environment_context"]
            asked = context.properties if context is not None else {}
            if not (timed and asked.get("expected_parameter_key") == DDL_TIME):
                self.window.add("table")

    def _property(self, call: Call | None) -> str:
        def change(record: ttypes.Table) -> None:
            record.parameters[f"rival{self._number}"] = "set"

        self._alter_table(call, change)
        return "table property"

    def _comment(self, call: Call | None) -> str:
        def change(record: ttypes.Table) -> None:
            record.sd.cols[0].comment = f"comment {self._number}"

        self._alter_table(call, change)
        return "column comment"

    def _column(self, call: Call | None) -> str:
        def change(record: ttypes.Table) -> None:
            record.sd.cols.append(ttypes.FieldSchema(f"rival{self._number}", "date"))

        self._alter_table(call, change)
        return "new column of the table"

    def _alter(self, call: Call | None, what: Callable[[ttypes.Partition], None]) -> Values | None:
        known = self.world.partitions()
        if not known:
            return None
        values = self.draw.choice(sorted(known))
        what(known[values])
        self.world.client.alter_partitions(
            self.world.database, "t", [known[values]], _NO_STATISTICS
        )
        self._took(call, values)
        return values

    def _took(self, call: Call | None, values: Values) -> None:
        """Others own this partition's record now."""
        self.alone = True
        self.partitions[values] = self.world.partitions()[values]
        self.window.discard(values)
        if call is not None and call.writes:
            written = call.partitions()
            name = self._name(values)
            if written is not None and (values in written or (name,) in written):
                self.window.add(values)

    def _name(self, values: Values) -> str:
        client, database = self.world.client, self.world.database
        names = client.get_partition_names(database, "t")
        found = client.get_partitions_by_names(database, "t", names)
        return next(
            n
            for n, p in zip(found.names, found.partitions, strict=True)
            if tuple(p.values) == values
        )

    def _mark(self, call: Call | None) -> str:
        def change(record: ttypes.Partition) -> None:
            record.parameters[f"rival{self._number}"] = "set"

        self._alter(call, change)
        return "partition property"

    def _new_place(self, values: Values) -> Path:
        world = self.world
        place = world.base / f"moved{self._number}"
        if world.chance(40):
            place = world.root / "/".join(
                f"{n}={10_000 + self._number}"
                if t == "int"
                else f"{n}={'x' if v == NULL else v}_v9"
                for (n, t), v in zip(world.keys, [v.replace("/", "_") for v in values], strict=True)
            )
        world.write(place)
        return place

    def _relocate(self, call: Call | None) -> str:
        """ALTER TABLE ... PARTITION ... SET LOCATION, outside or beside, and the old place goes."""

        def change(record: ttypes.Partition) -> None:
            old = place_of(record)
            record.sd.location = f"file:{self._new_place(tuple(record.values))}"
            old_goes = self.world.chance(50) and self._owners(old) == 1
            if old_goes and tuple(record.values) != self.world.steady():
                self.rewritten.add(old)
                clear(old)

        self._alter(call, change)
        return "location of a partition"

    def _owners(self, place: Path) -> int:
        return sum(place_of(p) == place for p in self.world.partitions().values())

    def _drop(self, call: Call | None) -> str:
        known = self.world.partitions()
        for values in known and [self.draw.choice(sorted(known))]:
            self.world.client.drop_partitions(self.world.database, "t", [self._name(values)])
            self.partitions.pop(values, None)
            self.others.discard(values)
            self.alone = True
        return "drop of a partition"

    def _drop_and_register(self, call: Call | None) -> str:
        known = self.world.partitions()
        for values in known and [self.draw.choice(sorted(known))]:
            name = self._name(values)
            self.world.client.drop_partitions(self.world.database, "t", [name])
            self.world.register("spark", values, self._new_place(values), made_by="rival")
            self._took(call, values)
            self.others.add(values)
            if call is not None and (name,) in (call.partitions() or ()):
                self.window.add(values)
        return "partition dropped and registered elsewhere"

    def _register(self, call: Call | None) -> str:
        """ADD PARTITION for a directory that has none yet, or for a place of the rival's."""
        world = self.world
        known = world.partitions()
        keys = {world.key(v) for v in known}
        free = [
            d for d in world.data_directories() if world.values(d) and world.values(d) not in keys
        ]
        if free:
            place = world.root / self.draw.choice(sorted(free))
            values = world.values(str(place.relative_to(world.root)))
        else:
            values = tuple(str(900 + self._number) for _ in world.keys)
            place = self._new_place(values)
        if world.chance(25):
            place = self._new_place(values)
        if self._owners(place) == 0:
            world.register("hive", values, place, made_by="rival")
            self._took(call, values)
            self.others.add(values)
            # It may come between sync's look at names and its addition of this very place.
            if call is not None and call.method == "add_partitions_req":
                self.window.add(values)
        return "partition registered"

    def _create(self, call: Call | None) -> str:
        world = self.world
        world.client.create_database(world.database)
        world.client.create_table(new_table(world.database, world.root, world.keys, "hive"))
        self.table = world.table()
        return "table created"

    def _drop_table(self, call: Call | None) -> str:
        self.world.client.drop_table(self.world.database, "t")
        self.table, self.partitions, self.others = None, {}, set()
        return "table dropped"

    def _sync(self, call: Call | None) -> str:
        sync(self.world, self.uri, full=True)
        return "another sync"

    def _write(self, call: Call | None) -> str:
        world = self.world
        directory = world.directory()
        if world.values(directory) in {world.values(d) for d in world.data_directories()}:
            directory = self.draw.choice(sorted(world.data_directories()))
        world.write(world.root / directory, self.draw.choice(["first", "longer", "wider"]))
        return "file written"

    def _remove(self, call: Call | None) -> str:
        world = self.world
        some = [d for d in world.data_directories() if world.values(d) != world.steady()]
        if some:
            place = world.root / self.draw.choice(sorted(some))
            self.rewritten.add(place)
            clear(place)
        return "directory removed"

    def _rewrite(self, call: Call | None) -> str:
        world = self.world
        place = world.root / self.draw.choice(sorted(world.data_directories()))
        self.rewritten.add(place)
        for file in data_files(place):
            file.unlink()
        world.write(place, self.draw.choice(["first", "longer"]), old=world.chance(50))
        return "directory rewritten"

    # what must hold afterwards

    def faults(self, status: int) -> list[str]:
        """What is wrong with the metastore after a sync that ended so; empty: nothing."""
        record = self.world.table()
        if record is None:
            return ["lost: the table"] if self.table is not None else []
        partitions = self.world.partitions()
        return [
            *self._lost_of_table(record),
            *self._lost_of_partitions(partitions),
            *self._doubled(partitions),
            *(self._unsaid(record, partitions) if status == 0 else ()),
        ]

    def _lost_of_table(self, record: ttypes.Table) -> Iterator[str]:
        if self.table is None or "table" in self.window:
            return
        was, now = self.table, record
        for key, value in was.parameters.items():
            ours = key == DDL_TIME or key.startswith((_OURS, SPARK_SCHEMA))
            if not ours and now.parameters.get(key) != value:
                yield f"lost: table property {key}={value}: {now.parameters.get(key)}"
        yield from _columns_lost(
            "table", was.sd, now.sd, self._wider(self.world.data_directories())
        )
        for what in ("owner", "createTime", "tableType", "retention"):
            if getattr(was, what) != getattr(now, what):
                yield f"lost: the table's {what}"
        if was.sd.serdeInfo != now.sd.serdeInfo or was.sd.location != now.sd.location:
            yield "lost: the table's location or SerDe"
        before, after = schema_of_spark(was), schema_of_spark(now)
        changed = {c for c, t in fields(now.sd).items() if fields(was.sd).get(c) != t}
        for name, known in before.items():
            if name not in changed and after.get(name) != known:
                yield f"lost: Spark's field {known}: {after.get(name)}"

    def _wider(self, directories: list[str]) -> bool:
        return bool(self.rewritten) or any(
            lacking({"id": "int"}, f) and "id bigint" in lacking({"id": "int"}, f)
            for d in directories
            for f in data_files(self.world.root / d)
        )

    def _lost_of_partitions(self, partitions: dict[Values, ttypes.Partition]) -> Iterator[str]:
        world = self.world
        by_key = {world.key(v): v for v in partitions}
        for values, was in self.partitions.items():
            if values in self.window:
                continue
            place = place_of(was)
            below = world.root in place.parents
            holds = bool(data_files(place)) or any(
                data_files(d) for d in (place.rglob("*") if place.is_dir() else ())
            )
            now = partitions.get(values)
            if now is None:
                if holds or not below:
                    instead = by_key.get(world.key(values))
                    yield f"lost: partition {values} at {place}; now {instead}"
                continue
            if place_of(now) != place and (holds or not below):
                yield f"lost: location of {values}: {place} -> {place_of(now)}"
            for key, value in was.parameters.items():
                ours = key == DDL_TIME or key.startswith(_OURS)
                if not ours and now.parameters.get(key) != value:
                    yield f"lost: {values}'s property {key}: {now.parameters.get(key)}"
            wide = place_of(now) in self.rewritten or any(
                "id bigint" in lacking({"id": "int"}, f) for f in data_files(place_of(now))
            )
            yield from _columns_lost(str(values), was.sd, now.sd, wide)
            one, other = copy.deepcopy(was.sd), copy.deepcopy(now.sd)
            for each in (one, other):
                each.cols, each.location = [], ""
            if one != other or was.createTime != now.createTime:
                yield f"lost: of {values}: {one} -> {other}"

    def _doubled(self, partitions: dict[Values, ttypes.Partition]) -> Iterator[str]:
        places = sorted((place_of(p), v) for v, p in partitions.items())
        for k, (place, values) in enumerate(places):
            for inner, other in places[k + 1 :]:
                if place != inner and place not in inner.parents:
                    continue
                if {values, other} <= self.others or {values, other} & self.window:
                    continue
                if place == inner or data_files(inner):
                    yield f"doubled: {values} at {place}, {other} at {inner}"

    def rows(self, report: SyncReport) -> dict[Path, set[int]]:
        """How many rows an engine may read of each file; brute force over storage.

        Of a file below the root, or where others registered a partition, each row once. None, if
        the report says so; as often as others registered its place, if they did so twice.
        """
        world = self.world
        unread = {*report.unregistered, *(d for _, several in report.collisions for d in several)}
        elsewhere = {place_of(p): v in self.window for v, p in self.partitions.items()}
        places = {world.root / d: d in unread for d in world.data_directories()}
        found: dict[Path, set[int]] = {}
        for place, maybe in {**elsewhere, **places}.items():
            theirs = [v for v, p in world.partitions().items() if place_of(p) == place]
            twice = len(theirs) > 1 and set(theirs) <= self.others | self.window
            for file in data_files(place):
                rows = pq.read_metadata(file).num_rows
                found[file] = {rows * (len(theirs) if twice else 1), *([0] if maybe else [])}
        return found

    def _unsaid(
        self, record: ttypes.Table, partitions: dict[Values, ttypes.Partition]
    ) -> Iterator[str]:
        """What a sync that ends with 0 denies by that."""
        root = self.world.root
        places = {place_of(p): p for p in partitions.values()}
        for directory in self.world.data_directories():
            if root / directory not in places:
                yield f"hidden: {directory} is in no partition, status 0"
        for place, partition in places.items():
            for file in data_files(place):
                for held, what in ((record.sd, "table"), (partition.sd, "partition")):
                    lacks = lacking(fields(held), file)
                    if lacks:
                        where = file.relative_to(root.parent)
                        yield f"columns: the {what} of {where} lacks {lacks}"


def _columns_lost(
    what: str, was: ttypes.StorageDescriptor, now: ttypes.StorageDescriptor, wide: bool
) -> Iterator[str]:
    """Columns that are gone, moved, commented otherwise or of another type than files ask for."""
    for k, old in enumerate(was.cols):
        new = now.cols[k] if k < len(now.cols) else None
        if new is None or new.name != old.name:
            yield f"lost: column {old.name} of {what}"
        elif (new.comment or "") != (old.comment or ""):
            yield f"lost: comment of {old.name} of {what}: {old.comment} -> {new.comment}"
        elif new.type != old.type and not (wide and (old.type, new.type) == ("int", "bigint")):
            yield f"lost: type of {old.name} of {what}: {old.type} -> {new.type}"
