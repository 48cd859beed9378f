"""A lake for the laws of sync: directories that come and go, and a metastore that is a dictionary.

The model does what Hive's metastore does with the calls that a sync makes; the same histories run
against real metastores in `tests/engines/test_sync.py`.
"""

from __future__ import annotations

import copy
import io
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.kernel.errors import MetastoreFailure, SchemaNotFound, TableExists, TableNotFound
from bridge.kernel.types import STRING
from bridge.metastore._gen import ttypes
from bridge.metastore.client import FoundPartitions
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.uri import canonical
from bridge.sync.report import SyncReport
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.table import TableSync
from bridge.sync.writing.write_batches import BatchLimits
from bridge.table.model import Column, TableName
from bridge.table.partition import NULL_MARKER, partition_name

NAME = TableName("lake", "t")
KEYS = ("p", "q")
KEY_COLUMNS = tuple(Column(k, STRING) for k in KEYS)
VALUES = ("1", "2", "01", "a b", "x/y", "50%", "é", None)
# Directories beside the table's partitions: (path, whether an engine would see the files in it).
JUNK = ("odd", "p=1", "p=1/q=1/deeper", "_tmp/p=1/q=1", ".staging/p=1/q=1", "p=1/r=1", "p=/q=1")
MUTATIONS = frozenset(
    {
        "create_database",
        "create_table",
        "alter_table",
        "add_partitions",
        "alter_partitions",
        "drop_partitions",
    }
)


def _parquet(**columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _ints(kind: pa.DataType) -> pa.Array:
    return pa.array([1, 2], kind)


SCHEMAS: dict[str, tuple[bytes, dict[str, str]]] = {
    "first": (
        _parquet(id=_ints(pa.int32()), Name=pa.array(["a", "b"])),
        {"id": "int", "name": "string"},
    ),
    "wider": (
        _parquet(ID=_ints(pa.int64()), name=pa.array(["a", "b"])),
        {"id": "bigint", "name": "string"},
    ),
    "longer": (
        _parquet(id=_ints(pa.int32()), extra=pa.array([1.5, None])),
        {"id": "int", "extra": "double"},
    ),
}
HOLDS = {("int", "int"), ("bigint", "int"), ("bigint", "bigint"), ("string", "string")}
HOLDS |= {("double", "double")}


class ModelMetastore:
    """What a metastore holds of one table, and the calls that a sync makes.

    Attributes:
        interfere: called before each call with its name; tests kill and interleave there.
    """

    def __init__(self) -> None:
        self.databases: set[str] = set()
        self.record: ttypes.Table | None = None
        self.partitions: dict[tuple[str, ...], ttypes.Partition] = {}
        self.interfere: Callable[[str, str], None] = lambda method, moment: None

    def copy(self) -> ModelMetastore:
        made = ModelMetastore()
        made.databases = set(self.databases)
        made.record = copy.deepcopy(self.record)
        made.partitions = copy.deepcopy(self.partitions)
        return made

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in MUTATIONS and not name.startswith("get_"):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self.interfere(name, "before")
            if name in MUTATIONS:
                arguments, options = copy.deepcopy((arguments, options))
            answer = found(*arguments, **options)
            self.interfere(name, "after")
            return copy.deepcopy(answer)

        return call

    def get_version(self) -> str:
        return "4.0.1"

    def get_config_value(self, name: str, default: str) -> str:
        return "true" if name.endswith("disallow.incompatible.col.type.changes") else default

    def create_database(self, name: str) -> bool:
        new = name not in self.databases
        self.databases.add(name)
        return new

    def get_table(self, database: str, table: str) -> ttypes.Table:
        if database not in self.databases:
            raise SchemaNotFound(database)
        if self.record is None:
            raise TableNotFound(table)
        return self.record

    def create_table(self, table: ttypes.Table) -> None:
        if self.record is not None:
            raise TableExists(table.tableName)
        table.parameters = {**table.parameters, "transient_lastDdlTime": "1000"}
        self.record = table

    def alter_table(
        self, database: str, table: str, altered: ttypes.Table, context: Mapping[str, str]
    ) -> None:
        assert self.record is not None
        expected = context.get("expected_parameter_key")
        if expected is not None:
            value = self.record.parameters.get(expected)
            if value != context["expected_parameter_value"]:
                raise MetastoreFailure(f"The table has been modified. {expected} is {value}")
        altered.parameters = {"transient_lastDdlTime": "1000", **altered.parameters}
        self.record = altered

    def get_partition_names(self, database: str, table: str) -> list[str]:
        assert self.record is not None
        return [self._name(values) for values in list(self.partitions)]

    def get_partitions_by_names(
        self, database: str, table: str, names: Sequence[str], cancellation: object = None
    ) -> FoundPartitions:
        by_name = {self._name(v): p for v, p in list(self.partitions.items())}
        known = tuple(n for n in names if n in by_name)
        missing = tuple(n for n in names if n not in by_name)
        return FoundPartitions(known, tuple(by_name[n] for n in known), missing)

    def add_partitions(
        self, database: str, table: str, partitions: Iterable[ttypes.Partition]
    ) -> list[ttypes.Partition]:
        new = [p for p in partitions if tuple(p.values) not in self.partitions]
        self.partitions |= {tuple(p.values): p for p in new}
        return new

    def alter_partitions(
        self,
        database: str,
        table: str,
        partitions: Iterable[ttypes.Partition],
        context: Mapping[str, str],
    ) -> None:
        altered = {tuple(p.values): p for p in partitions}
        if not set(altered) <= set(self.partitions):
            raise MetastoreFailure("one of them does not exist")
        self.partitions |= altered

    def drop_partitions(self, database: str, table: str, names: Iterable[str]) -> None:
        gone = set(names)
        for values in [v for v in self.partitions if self._name(v) in gone]:
            del self.partitions[values]

    def _name(self, values: Sequence[str]) -> str:
        assert self.record is not None
        keys = [k.name for k in self.record.partitionKeys]
        return partition_name(keys, [None if v == NULL_MARKER else v for v in values])

    def contents(self) -> object:
        """All that matters, comparable: nothing of when it was written."""
        if self.record is None:
            return None
        columns = [(c.name, c.type) for c in self.record.sd.cols]
        partitions = {
            values: (canonical(p.sd.location), [(c.name, c.type) for c in p.sd.cols])
            for values, p in self.partitions.items()
        }
        return columns, canonical(self.record.sd.location), partitions


@dataclass(frozen=True, slots=True)
class Write:
    """A file appears in a directory."""

    directory: str
    schema: str
    file: str = "f.parquet"


@dataclass(frozen=True, slots=True)
class Remove:
    """All below a directory is gone; sometimes the empty directory stays."""

    directory: str
    keep_empty: bool = False


@dataclass(frozen=True, slots=True)
class Meddle:
    """Somebody else alters the metastore: registers a place, forgets a partition, or changes it."""

    what: str
    values: tuple[str | None, str | None]


Step = Write | Remove | Meddle


@dataclass(slots=True)
class SyncLake:
    """A directory and a metastore."""

    base: Path
    metastore: Any = field(default_factory=ModelMetastore)
    settings: SyncSettings = field(
        default_factory=lambda: SyncSettings(
            BatchLimits(3000, 2), parallelism=2, recheck_after=0.0, quiet=0.0
        )
    )

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)

    @property
    def root(self) -> Path:
        return self.base / "table"

    def sync(self, **options: Any) -> SyncReport:
        wanted: dict[str, Any] = {
            "hold_wider": True,
            "drop_now": True,
            "drop_all": True,
            "keys": KEY_COLUMNS,
            **options,
        }
        request = SyncRequest(NAME, str(self.root), **wanted)
        return TableSync(self.metastore, LocalStorage(), request, self.settings).run()

    def take(self, step: Step) -> None:
        match step:
            case Write():
                target = self.root / step.directory / step.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(SCHEMAS[step.schema][0])
            case Remove():
                shutil.rmtree(self.root / step.directory, ignore_errors=True)
                if step.keep_empty:
                    (self.root / step.directory).mkdir(parents=True, exist_ok=True)
            case Meddle():
                self._meddle(step)

    def _meddle(self, step: Meddle) -> None:
        if self.metastore.record is None:
            return
        values = tuple(NULL_MARKER if v is None else v for v in step.values)
        known = self.metastore.partitions.get(values)
        match step.what:
            case "forget":
                self.metastore.partitions.pop(values, None)
            case "columns" if known is not None:
                known.sd = copy.deepcopy(known.sd)
                known.sd.cols = known.sd.cols[:1]
            case "elsewhere" | "nowhere" | "outside" | "void" | "beside":
                place = {
                    "elsewhere": self.root / "odd",
                    "nowhere": self.root / "p=1" / "never",
                    "outside": self.base / "outside",
                    "void": self.base / "void",
                    "beside": self.root / "p=1" / "q=1",  # by another name, as a rule
                }[step.what]
                if step.what == "outside":
                    place.mkdir(exist_ok=True)
                    (place / "f.parquet").write_bytes(SCHEMAS["first"][0])
                descriptor = copy.deepcopy(self.metastore.record.sd)
                descriptor.location = f"file:{place}"
                self.metastore.partitions[values] = ttypes.Partition(
                    values=list(values), dbName="lake", tableName="t", sd=descriptor, parameters={}
                )

    # the oracle: brute force, sharing nothing with what it judges

    def data_directories(self) -> list[str]:
        """Directories with a file that an engine sees."""
        found = []
        for directory, names, files in os.walk(self.root):
            names[:] = [n for n in names if not n.startswith(".") and not n.startswith("_")]
            if any(not f.startswith((".", "_")) for f in files):
                found.append(os.path.relpath(directory, self.root))
        return found

    def expected(self) -> tuple[dict[tuple[str, ...], str], set[tuple[str, ...]]]:
        """Directory by values, and the values that several directories claim."""
        claims: dict[tuple[str, ...], list[str]] = {}
        for directory in self.data_directories():
            levels = [level.split("=", 1) for level in directory.split("/")]
            if [level[0] for level in levels] != list(KEYS) or any(not v for _, v in levels):
                continue
            claims.setdefault(tuple(_decoded(v) for _, v in levels), []).append(directory)
        single = {v: d[0] for v, d in claims.items() if len(d) == 1}
        return single, {v for v, d in claims.items() if len(d) > 1}

    def places(self) -> dict[tuple[str, ...], Path]:
        """Where each partition is registered."""
        partitions = self.metastore.partitions.items()
        return {
            v: Path(p.sd.location.removeprefix("file://").removeprefix("file:"))
            for v, p in partitions
        }

    def check(self, before: Mapping[tuple[str, ...], Path] | None = None) -> None:
        """The law: the metastore says what lies on storage.

        Args:
            before: `places` before the sync.
        """
        wanted, colliding = self.expected()
        places = self.places()
        for values, place in (before or {}).items():
            if values in colliding or (self.root not in place.parents and values not in wanted):
                assert places.get(values) == place, f"{values} was left to somebody else"
        if before is not None:
            assert not (colliding & set(places)) - set(before), "one of several was chosen"
        record = self.metastore.record
        if record is None:
            assert not wanted
            return
        columns = [(c.name, c.type) for c in record.sd.cols]
        types = dict(columns)
        occupied = [self.root / d for d in self.data_directories()]
        for values, partition in self.metastore.partitions.items():
            place = places[values]
            own_types = {c.name: c.type for c in partition.sd.cols}
            assert list(own_types) == list(types)
            assert all((types[name], type_) in HOLDS for name, type_ in own_types.items())
            read = place in {self.root / directory for directory in wanted.values()}
            for file in place.glob("*.parquet") if read else ():
                for name, type_ in _schema_of(file).items():
                    assert (own_types[name], type_) in HOLDS, f"{name} {type_} in {file}"
            own = wanted.get(values)
            if own is not None and place == self.root / own:
                continue
            lives = any(d == place or place in d.parents for d in occupied)
            outside = self.root not in place.parents
            left = outside or values in colliding or values in wanted  # moves only if told
            assert lives or left, f"{values} at {place} has no data"
        held = Counter(places.values())
        for place, number in (held - Counter((before or {}).values())).items():
            assert before is None or held[place] == number == 1, f"{place} is registered again"
        for values, directory in wanted.items():
            known = values in self.metastore.partitions or self.root / directory in held
            assert known, f"{directory} is not registered"
            for file in (self.root / directory).glob("*.parquet"):
                for name, type_ in _schema_of(file).items():
                    assert (types[name], type_) in HOLDS, f"{name} {type_} in {file}"


def _decoded(text: str) -> str:
    out, i = bytearray(), 0
    characters = []
    while i < len(text):
        if text[i] == "%" and len(text) >= i + 3:
            characters.append(chr(int(text[i + 1 : i + 3], 16)))
            i += 3
        else:
            characters.append(text[i])
            i += 1
    assert not out
    return "".join(characters)


def _schema_of(file: Path) -> dict[str, str]:
    content = file.read_bytes()
    return next(schema for data, schema in SCHEMAS.values() if data == content)
