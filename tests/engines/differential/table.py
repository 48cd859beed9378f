"""A table of files that are hard to read and to skip rightly, drawn from a seed.

Each file draws, for each column, how it is stored (narrower or wider than declared, under a name in
another case, or not at all) and from which run of the sorted values it is filled, so that bounds
of files differ and lie where literals do.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.kernel.config import Config, Setting
from bridge.kernel.types import parse_hive_type
from bridge.table.model import CatalogTable, Column, Partition, TableName
from bridge.table.partition import partition_name
from tests.engines.differential import values as v
from tests.engines.differential.values import Sort


@dataclass(frozen=True, slots=True)
class Spec:
    """A column: its declared type, its values, and the Arrow types that files may hold it in."""

    name: str
    type: str
    sort: Sort
    stored: tuple[pa.DataType, ...]


def _dec(*pairs: tuple[int, int]) -> tuple[pa.DataType, ...]:
    return tuple(pa.decimal128(p, s) for p, s in pairs)


_TIMES = (pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("us", "UTC"))
_TEXTS = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.binary())
_INT64, _INT32, _INT16, _INT8 = pa.int64(), pa.int32(), pa.int16(), pa.int8()
SPECS = (
    Spec("big", "bigint", v.ints(64), (_INT64, _INT64, _INT32, _INT16)),
    Spec("num", "int", v.ints(32), (_INT32, _INT32, _INT16, _INT8)),
    Spec("small", "smallint", v.ints(16), (_INT16, _INT8, _INT32)),
    Spec("tiny", "tinyint", v.ints(8), (_INT8, _INT32)),
    Spec("flag", "boolean", v.BOOL, (pa.bool_(),)),
    Spec("r", "float", v.FLOAT, (pa.float32(),)),
    Spec("d", "double", v.DOUBLE, (pa.float64(), pa.float64(), pa.float32())),
    Spec("dec", "decimal(12,2)", v.decimals(12, 2), _dec((12, 2), (5, 2), (9, 2), (18, 2))),
    Spec("wide", "decimal(38,10)", v.decimals(38, 10), _dec((38, 10), (20, 10), (38, 2))),
    Spec("huge", "decimal(38,0)", v.decimals(38, 0), _dec((38, 0), (38, 0), (18, 0))),
    Spec("day", "date", v.DATE, (pa.date32(),)),
    Spec("ts", "timestamp", v.TIME, _TIMES),
    Spec("name", "string", v.TEXT, _TEXTS),
    Spec("note", "string", v.OTHER_TEXT, _TEXTS),
    Spec("code", "varchar(5)", v.OTHER_TEXT, (pa.string(),)),
    Spec("fixed", "char(6)", v.TEXT, (pa.string(),)),
    Spec("raw", "binary", v.BINARY, (pa.binary(),)),
    Spec("lat", "double", v.DEGREES, (pa.float64(),)),
    Spec("lon", "double", v.DEGREES, (pa.float64(),)),
    Spec("mixedcase", "int", v.ints(16), (_INT32,)),
    Spec("rare", "bigint", v.ints(32), (_INT64,)),
)
# Structs with fields of equal names and types: their order tells nothing of whose they are.
STRUCTS: dict[str, tuple[Spec, ...]] = {
    "st": (
        Spec("a", "int", v.ints(32), (_INT32, _INT16)),
        Spec("b", "string", v.TEXT, (pa.string(),)),
        Spec("f", "double", v.DOUBLE, (pa.float64(), pa.float32())),
    ),
    "home": (
        Spec("city", "string", v.TEXT, (pa.string(),)),
        Spec("zip", "int", v.ints(16), (_INT32,)),
    ),
    "work": (
        Spec("city", "string", v.TEXT, (pa.string(),)),
        Spec("zip", "int", v.ints(16), (_INT32,)),
    ),
    "pickup": (
        Spec("lat", "double", v.DEGREES, (pa.float64(),)),
        Spec("lon", "double", v.DEGREES, (pa.float64(),)),
    ),
    "dropoff": (
        Spec("lat", "double", v.DEGREES, (pa.float64(),)),
        Spec("lon", "double", v.DEGREES, (pa.float64(),)),
    ),
}
KEY_TEXTS = ("a b", "x=y/z", "100%", "été", "😀", "a", "\\", "it's", "%", "a:b", "1")
KEYS = (
    Spec("p", "string", Sort("text", tuple(sorted(KEY_TEXTS))), ()),
    Spec("q", "int", Sort("int", (-1, 0, 1, 2, 2147483647), 32), ()),
    Spec("k", "decimal(38,0)", Sort("decimal", v.decimals(38, 0).pool[::3], 38), ()),
    Spec("dd", "date", Sort("date", v.DATES[5:12]), ()),
)


def columns() -> tuple[Column, ...]:
    """What the metastore is told."""
    told = [Column("id", parse_hive_type("bigint"))]
    told += [Column(s.name, parse_hive_type(s.type)) for s in SPECS]
    for name, fields in STRUCTS.items():
        inner = ",".join(f"{f.name}:{f.type}" for f in fields)
        told.append(Column(name, parse_hive_type(f"struct<{inner}>")))
    return tuple(told)


def keys() -> tuple[Column, ...]:
    return tuple(Column(s.name, parse_hive_type(s.type)) for s in KEYS)


@dataclass(frozen=True, slots=True)
class Taste:
    """What the readers of a table agree upon.

    Attributes:
        converted: whether files may hold a column in another type than declared.
        int96: whether files may hold timestamps in INT96.
        earliest: dates and timestamps start here.
        finite: no NaN.
        bare: whether files may have no bytes at all.
        lacking: whether files may lack structs, or fields of structs.
        shared: how often a partition has the location of another.
    """

    converted: bool = True
    int96: bool = True
    earliest: dt.date = dt.date.min
    finite: bool = False
    shared: float = 0.2
    bare: bool = True
    lacking: bool = True
    codecs: tuple[str, ...] = ("none", "snappy", "gzip", "zstd", "zstd")


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a file as they are spelled and stored; files in a row share one."""

    columns: tuple[tuple[str, Spec, pa.DataType], ...]
    structs: tuple[tuple[str, tuple[tuple[Spec, pa.DataType], ...]], ...]
    int96: bool


@dataclass(slots=True)
class Writer:
    """Writes files of one table, each as the random numbers have it."""

    rng: random.Random
    taste: Taste = field(default_factory=Taste)
    next_id: int = 0
    _layout: Layout | None = None

    def file(self, path: Path) -> None:
        """One file of a few rows, seldom of none, of no bytes, or of many."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.03 and self.taste.bare:
            path.write_bytes(b"")
        elif kind < 0.06:
            self.write(path, 0)
        elif kind < 0.13:
            self.write(path, rng.choice([1_500, 6_000, 40_000]))
        else:
            self.write(path, rng.randint(1, 60))

    def write(self, path: Path, rows: int) -> None:
        rng = self.rng
        if self._layout is None or rng.random() < 0.3:
            self._layout = self._new_layout()
        layout = self._layout
        columns, structs = list(layout.columns), list(layout.structs)
        if rows > 100:
            columns = rng.sample(columns, min(len(columns), 4))
            structs = [] if self.taste.lacking else structs
        cells: list[tuple[str, pa.Array]] = [("id", self._ids(rows))]
        cells += [(n, self._array(s, t, rows, layout.int96)) for n, s, t in columns]
        # Of two structs with equal fields either comes first, or one alone.
        for one, other in (("home", "work"), ("pickup", "dropoff")):
            if rng.random() < 0.4:
                structs = _exchanged(structs, one, other)
        gone = rng.choice(["", "", "home", "work", "pickup", "dropoff"])
        gone = gone if self.taste.lacking else ""
        cells += [(name, self._struct(fields, rows)) for name, fields in structs if name != gone]
        if rng.random() < 0.2:
            rng.shuffle(cells)
        if rows and random.Random(f"{path.name} {self.next_id}").random() < 0.08:
            # Beyond what the connector reads in one piece, beside small files of the same split.
            cells.append(("of_no_table", pa.array([os.urandom(5 << 20)] + [None] * (rows - 1))))
        table = pa.table([c for _, c in cells], names=[n for n, _ in cells])
        pq.write_table(table, path, **self._options(rows, layout.int96, table.column_names))

    def _new_layout(self) -> Layout:
        rng = self.rng
        named = [s for s in SPECS if rng.random() > (0.9 if s.name == "rare" else 0.08)]
        structs = []
        for name, fields in STRUCTS.items():
            kept = [f for f in fields if rng.random() > 0.03 * self.taste.lacking] or list(fields)
            if rng.random() < 0.2:
                rng.shuffle(kept)
            if rng.random() < 0.95 or not self.taste.lacking:
                structs.append((name, tuple((f, self._stored(f)) for f in kept)))
        columns = [(self._cased(s.name), s, self._stored(s)) for s in named]
        if rng.random() < 0.4:
            rng.shuffle(columns)
        int96 = self.taste.int96 and rng.random() < 0.15
        return Layout(tuple(columns), tuple(structs), int96)

    def _stored(self, spec: Spec) -> pa.DataType:
        return self.rng.choice(spec.stored) if self.taste.converted else spec.stored[0]

    def _options(self, rows: int, int96: bool, names: list[str]) -> dict[str, Any]:
        rng = self.rng
        statistics = rng.choice([True, True, True, True, False, rng.sample(names, len(names) // 2)])
        options: dict[str, Any] = {
            "compression": rng.choice(self.taste.codecs),
            "write_statistics": statistics,
            "row_group_size": rng.choice([rows or 1, max(rows // 3, 1), max(rows // 2, 1)]),
            "use_dictionary": rng.random() < 0.7,
            "data_page_version": rng.choice(["1.0", "1.0", "2.0"]),
            "store_decimal_as_integer": rng.random() < 0.4,
        }
        if rows > 100:
            options |= {"write_page_index": True, "data_page_size": rng.choice([1024, 4096])}
            options["compression"] = rng.choice(self.taste.codecs[-3:])
            options["write_batch_size"] = 256
        elif rng.random() < 0.5:
            options |= {"write_page_index": True, "data_page_size": 64, "write_batch_size": 8}
        if int96:
            options["use_deprecated_int96_timestamps"] = True
        else:
            options |= {"version": "2.6"}
        return options

    def _cased(self, name: str) -> str:
        if name == "mixedcase":
            return self.rng.choice(["MixedCase", "mixedcase", "MIXEDCASE"])
        return name.upper() if self.rng.random() < 0.08 else name

    def _ids(self, rows: int) -> pa.Array:
        ids = np.arange(self.next_id, self.next_id + rows)
        self.next_id += rows
        narrow = self.taste.converted and self.rng.random() < 0.3
        return pa.array(ids, pa.int32() if narrow else pa.int64())

    def _array(self, spec: Spec, stored: pa.DataType, rows: int, int96: bool = False) -> pa.Array:
        rng = self.rng
        pool = [x for x in spec.sort.pool if self._fits(x, stored, int96)]
        if rng.random() < 0.8:
            width = rng.choice([1, 2, 3, 5, 9])
            start = rng.randrange(max(len(pool) - width + 1, 1))
            pool = pool[start : start + width]
        if spec.sort.name in ("float", "double") and rng.random() < 0.1:
            pool = rng.choice([[0.0], [-0.0], [0.0, 5.0], [-0.0, 0.0]])
        value_type = stored.value_type if pa.types.is_dictionary(stored) else stored
        exact = [_exactly(x, value_type) for x in pool]
        values = pa.array(exact, value_type)
        nulls = rng.choice([0, 0, 0, 0, 0.1, 0.5, 1])
        state = np.random.default_rng(rng.getrandbits(32))
        taken = pa.array(
            state.integers(0, len(pool), rows), pa.int64(), mask=state.random(rows) < nulls
        )
        found = values.take(taken)
        return found.dictionary_encode() if pa.types.is_dictionary(stored) else found

    def _fits(self, value: Any, stored: pa.DataType, int96: bool) -> bool:
        if isinstance(value, bool | str | bytes):
            return True
        if isinstance(value, int) and pa.types.is_integer(stored):
            half = 1 << (stored.bit_width - 1)
            return -half <= value < half
        if isinstance(value, float):
            if self.taste.finite and value != value:
                return False
            return not pa.types.is_float32(stored) or value != value or _single(value) == value
        if isinstance(value, Decimal):
            return v.fitted(value, stored.precision, stored.scale) is not None
        first = value.date() if isinstance(value, dt.datetime) else value
        if first < self.taste.earliest:
            return False
        if isinstance(value, dt.datetime):
            if stored.unit == "ms" and value.microsecond % 1000:
                return False
            return not (int96 or stored.unit == "ns") or 1700 < value.year < 2200
        return True

    def _struct(self, fields: tuple[tuple[Spec, pa.DataType], ...], rows: int) -> pa.Array:
        state = np.random.default_rng(self.rng.getrandbits(32))
        nulls = pa.array(state.random(rows) < self.rng.choice([0, 0, 0.2]))
        arrays = [self._array(f, stored, rows) for f, stored in fields]
        return pa.StructArray.from_arrays(arrays, [f.name for f, _ in fields], mask=nulls)


def _exchanged(structs: list[Any], one: str, other: str) -> list[Any]:
    """The same list with two structs in each other's place."""
    places = {name: (name, fields) for name, fields in structs}
    if one not in places or other not in places:
        return structs
    turned = {one: places[other], other: places[one]}
    return [turned.get(name, (name, fields)) for name, fields in structs]


def _single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _exactly(value: Any, stored: pa.DataType) -> Any:
    if isinstance(value, Decimal):
        return v.fitted(value, stored.precision, stored.scale)
    if isinstance(value, str) and pa.types.is_binary(stored):
        return value.encode()
    return value


@dataclass(slots=True)
class RandomTable:
    """The files of a table, and what changes them after its index was built."""

    root: Path
    name: TableName
    rng: random.Random
    partitioned: bool
    writer: Writer
    partitions: list[Partition] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> CatalogTable:
        partition_keys = keys() if self.partitioned else ()
        location = f"file://{self.root}"
        return CatalogTable(
            self.name, columns(), partition_keys, location, properties=dict(self.properties)
        )

    def config(self, uri: str) -> Config:
        return Config({"metastore.uri": Setting(uri, "test")})

    def directories(self) -> list[Path]:
        if not self.partitioned:
            return [self.root]
        return sorted({Path(p.location.removeprefix("file://")) for p in self.partitions})

    def add_partitions(self, number: int) -> list[Partition]:
        """New partitions; some share the location of another."""
        added: list[Partition] = []
        known = {p.name for p in self.partitions}
        while len(added) < number:
            texts = tuple(self._key(s) for s in KEYS)
            name = partition_name([s.name for s in KEYS], list(texts))
            if name in known:
                continue
            known.add(name)
            directory = self.root / name
            if self.partitions and self.rng.random() < self.writer.taste.shared:
                directory = self.rng.choice(self.directories())
            directory.mkdir(parents=True, exist_ok=True)
            partition = Partition(name, texts, f"file://{directory}")
            self.partitions.append(partition)
            added.append(partition)
        return added

    def _key(self, spec: Spec) -> str | None:
        return None if self.rng.random() < 0.12 else str(self.rng.choice(spec.sort.pool))

    def add_files(self, number: int, prefix: str) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        for i in range(number):
            self.writer.file(self.rng.choice(self.directories()) / f"{prefix}{i:03d}.parquet")

    def files(self) -> list[Path]:
        return sorted(f for d in self.directories() for f in d.glob("*.parquet"))

    def change(self) -> None:
        """After the build: some files are rewritten, some deleted, as many added as there were."""
        files = self.files()
        for file in self.rng.sample(files, len(files) // 6):
            self.writer.file(file)
        for file in self.rng.sample(files, len(files) // 8):
            file.unlink(missing_ok=True)
        self.add_files(len(files), "new")
