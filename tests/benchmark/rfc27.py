"""RFC-27's shape: 1,288 files x 2,078 columns, one record a pair; our form beside other stores.

The RFC measured a full scan, 10 rows, a range of 5,000 rows and the size (HFile 15 s / 51 ms /
17 s / 100 MB; Parquet 6.1 s / 1.9 s / 2.1 s / 43 MB). Here every store holds the same records:
column, file, lower and upper bound in the column's own type, exactness, NULLs, NaNs, bytes.

The mix of types is that of wide event tables: 40 % bigint, 10 % int, 5 % date, 20 % double, 25 %
text of 5 to 24 bytes; half of the columns are without NULL. Keys are in random order of time.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.formats.physical_column import PhysicalColumn, PhysicalType, encode
from bridge.index.building.build import build_index
from bridge.index.building.collect import FileTask, Reading
from bridge.index.generations.shard import COLUMNS, OUTCOME, Collected
from bridge.index.generations.store import IndexStore
from bridge.index.reading.pack import Loaded
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.storage.routed import open_storage
from bridge.table.model import CatalogTable, Partition, TableName
from tests.benchmark.cold import drop, median_cold
from tests.benchmark.data import is_kept, root
from tests.benchmark.figures import Figure, median
from tests.benchmark.synthetic import Listed
from tests.support.directories import in_directories

FILES, WIDTH, SEED = 1288, 2078, 27
_BIGINT, _INT = PhysicalType("INT64", "int", 64), PhysicalType("INT32", "int", 32)
_DATE, _DOUBLE = PhysicalType("INT32", "date"), PhysicalType("DOUBLE", "double")
_TEXT = PhysicalType("BYTE_ARRAY", "string")
_MIX = [_BIGINT] * 40 + [_INT] * 10 + [_DATE] * 5 + [_DOUBLE] * 20 + [_TEXT] * 25
_RANGE = 5000


@dataclass(frozen=True, slots=True)
class Records:
    """One column's records, by file."""

    name: str
    type: PhysicalType
    lower: Sequence[Any]
    upper: Sequence[Any]
    nulls: np.ndarray[Any, np.dtype[np.int64]]
    size: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def key(self) -> str:
        return PhysicalColumn((self.name,), self.type).key()


def records(files: int = FILES, width: int = WIDTH) -> Iterator[Records]:
    """The data set; the same for the same numbers."""
    rng = np.random.default_rng(SEED)
    for number in range(width):
        stored = _MIX[int(rng.integers(len(_MIX)))]
        lower: Any
        upper: Any
        if stored in (_BIGINT, _INT):
            span = 10 ** int(rng.integers(1, 9 if stored is _INT else 15))
            dtype = np.int32 if stored is _INT else np.int64
            lower = rng.integers(0, span, files)
            upper = (lower + rng.integers(0, span, files) // 4).astype(dtype)
            lower = lower.astype(dtype)
        elif stored is _DOUBLE:
            lower = np.round(rng.normal(0, 1000, files), 2)
            upper = lower + np.round(rng.exponential(100, files), 2)
        elif stored is _DATE:
            lower = (18_000 + rng.integers(0, 1500, files)).astype(np.int32)
            upper = lower + rng.integers(0, 30, files).astype(np.int32)
        else:
            letters = rng.integers(97, 123, (files, int(rng.integers(4, 24))), dtype=np.uint8)
            lower = [b"a" + row.tobytes() for row in letters]
            upper = [b"z" + row.tobytes() for row in letters[:, ::-1]]
        nulls = rng.integers(0, 100_000, files) if rng.random() < 0.5 else np.zeros(files, np.int64)
        size = rng.integers(10**5, 10**6, files)
        yield Records(f"column_{number:04d}", stored, lower, upper, nulls, size)


class _Builder:
    """A `Collector` that says of each file what `records` tells."""

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        count = len(tasks)
        made = list(records(count))
        words = pa.array([r.key for r in made], pa.large_string())
        parts = []
        for number, found in enumerate(made):
            floating = found.type.is_floating
            arrays = [
                pa.DictionaryArray.from_arrays(pa.array(np.full(count, number, np.int32)), words),
                pa.array(np.arange(count)),
                encode(found.type.physical, list(found.lower)),
                encode(found.type.physical, list(found.upper)),
                pa.array(np.full(count, found.type is not _TEXT)),
                pa.array(found.nulls),
                pa.nulls(count, pa.int64()) if floating else pa.array(np.zeros(count, np.int64)),
                pa.array(np.zeros(count, np.int8)),
                pa.array(found.size),
            ]
            parts.append(pa.table(arrays, schema=COLUMNS))
        known = {
            "file": pa.array(np.arange(count)),
            "rows": pa.array(np.full(count, 1_000_000, np.int64)),
        }
        columns = [known.get(each.name, pa.nulls(count, each.type)) for each in OUTCOME]
        files = pa.table(columns, schema=OUTCOME)
        yield Collected(files, pa.concat_tables(parts), {})


# the stores: each is made once below a directory, and answers four questions


class Ours:
    """The index: durable in the store, served from the local form."""

    name = "skipbridge, local form"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        storage = open_storage()
        self._store = IndexStore(storage, f"file://{directory}/index")
        if not is_kept(self._store):
            location = "file:///synthetic/rfc27"
            build_index(
                CatalogTable(TableName("bench", "rfc27"), (), (), location),
                in_directories([Partition("", (), location)], Listed(location, FILES)),  # type: ignore[arg-type]
                self._store,
                collector=_Builder(),
            )
        self.paths = [(f"column_{n:04d}",) for n in range(WIDTH)]
        self.open().prefetch(self.paths)

    @property
    def cold(self) -> Path:
        return self._directory / "cache"

    def open(self) -> IndexSnapshot:
        manifest = self._store.latest()
        assert manifest is not None
        return IndexSnapshot.open(manifest, self._store, self._directory / "cache")

    def size(self) -> int:
        manifest = self._store.latest()
        assert manifest is not None
        return sum(blob.size for blob in manifest.blobs())

    def one_column(self) -> Callable[[], object]:
        held = self.open().local
        column = held.columns[777]
        return lambda: _touch(held.load(column))

    def ten_records(self, rng: random.Random) -> Callable[[], object]:
        held = self.open().local
        wanted = [(rng.choice(held.columns), rng.randrange(FILES)) for _ in range(10)]

        def work() -> list[Any]:
            found = held.load_all([column for column, _ in wanted])
            return [
                (lower[file].as_py(), upper[file].as_py(), int(one.nulls[file]))
                for one, (_, file) in zip(found, wanted, strict=True)
                if (lower := one.lower) is not None and (upper := one.upper) is not None
            ]

        return work

    def rows(self) -> Callable[[], object]:
        held = self.open().local
        columns = held.columns[1000 : 1000 + -(-_RANGE // FILES)]

        def work() -> int:
            total = 0
            for found in held.load_all(columns):
                total += found.count
                _touch(found)
            assert total >= _RANGE
            return total

        return work

    def scan(self) -> Callable[[], object]:
        held = self.open().local

        def work() -> int:
            total = 0
            for found in held.scan():
                total += found.count
                _touch(found)
            assert total == FILES * WIDTH
            return total

        return work


def _touch(found: Loaded) -> None:
    """Looks at every byte of what is stored of a column."""
    for array in found.batch.columns:
        for buffer in array.buffers()[1:]:
            np.add.reduce(np.frombuffer(buffer, np.int64, buffer.size // 8))


class Wide:
    """A plain wide Parquet file: a row a file, six columns a column; zstd, by pyarrow."""

    name = "wide Parquet, zstd"

    def __init__(self, directory: Path) -> None:
        self.cold = directory / "wide.parquet"
        self._names = [found.name for found in records(1)]
        if self.cold.exists():
            return
        arrays: dict[str, Any] = {}
        for found in records():
            floating = found.type.is_floating
            arrays[f"{found.name}_lower"] = pa.array(found.lower)
            arrays[f"{found.name}_upper"] = pa.array(found.upper)
            arrays[f"{found.name}_exact"] = pa.array(np.full(FILES, found.type is not _TEXT))
            arrays[f"{found.name}_nulls"] = pa.array(found.nulls)
            zeros = np.zeros(FILES, np.int64)
            arrays[f"{found.name}_nans"] = pa.nulls(FILES, pa.int64()) if floating else zeros
            arrays[f"{found.name}_size"] = pa.array(found.size)
        pq.write_table(pa.table(arrays), self.cold, compression="zstd")

    def size(self) -> int:
        return self.cold.stat().st_size

    def _read(self, names: Sequence[str]) -> pa.Table:
        parts = ("lower", "upper", "exact", "nulls", "nans", "size")
        return pq.read_table(self.cold, columns=[f"{n}_{part}" for n in names for part in parts])

    def one_column(self) -> Callable[[], object]:
        return lambda: self._read(self._names[777:778])

    def ten_records(self, rng: random.Random) -> Callable[[], object]:
        wanted = [(rng.choice(self._names), rng.randrange(FILES)) for _ in range(10)]

        def work() -> list[Any]:
            table = self._read(sorted({name for name, _ in wanted}))
            return [table[f"{name}_lower"][file].as_py() for name, file in wanted]

        return work

    def rows(self) -> Callable[[], object]:
        return lambda: self._read(self._names[1000 : 1000 + -(-_RANGE // FILES)])

    def scan(self) -> Callable[[], object]:
        return lambda: pq.read_table(self.cold)


class Sqlite:
    """SQLite, clustered by (column, file)."""

    name = "SQLite"

    def __init__(self, directory: Path) -> None:
        self.cold = directory / "records.sqlite"
        if self.cold.exists():
            return
        aside = directory / "records.sqlite.building"
        aside.unlink(missing_ok=True)
        database = sqlite3.connect(aside)
        database.execute(
            "CREATE TABLE r (c INTEGER, f INTEGER, lower, upper, exact INTEGER, nulls INTEGER, "
            "nans INTEGER, size INTEGER, PRIMARY KEY (c, f)) WITHOUT ROWID"
        )
        for number, found in enumerate(records()):
            database.executemany(
                "INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                zip(
                    [number] * FILES,
                    range(FILES),
                    _plain(found.lower),
                    _plain(found.upper),
                    [int(found.type is not _TEXT)] * FILES,
                    found.nulls.tolist(),
                    [None if found.type.is_floating else 0] * FILES,
                    found.size.tolist(),
                    strict=True,
                ),
            )
        database.commit()
        database.close()
        aside.rename(self.cold)

    def size(self) -> int:
        return self.cold.stat().st_size

    def _ask(self, query: str, *values: int) -> Callable[[], object]:
        database = sqlite3.connect(self.cold)
        return lambda: database.execute(query, values).fetchall()

    def one_column(self) -> Callable[[], object]:
        return self._ask("SELECT * FROM r WHERE c = ?", 777)

    def ten_records(self, rng: random.Random) -> Callable[[], object]:
        wanted = [(rng.randrange(WIDTH), rng.randrange(FILES)) for _ in range(10)]
        database = sqlite3.connect(self.cold)
        query = "SELECT * FROM r WHERE c = ? AND f = ?"
        return lambda: [database.execute(query, pair).fetchall() for pair in wanted]

    def rows(self) -> Callable[[], object]:
        return self._ask("SELECT * FROM r WHERE c >= ? ORDER BY c, f LIMIT ?", 1000, _RANGE)

    def scan(self) -> Callable[[], object]:
        return self._ask(
            "SELECT count(lower), count(upper), sum(exact), sum(nulls), sum(nans), sum(size) FROM r"
        )


def _plain(values: Sequence[Any]) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


class Lmdb:
    """LMDB, a record a key: what HFile is, sorted keys in blocks."""

    name = "LMDB"

    def __init__(self, directory: Path) -> None:
        self.cold = directory / "lmdb"
        if self.cold.exists():
            return
        aside = directory / "lmdb.building"
        shutil.rmtree(aside, ignore_errors=True)
        with lmdb.open(str(aside), map_size=1 << 30) as environment:
            for number, found in enumerate(records()):
                with environment.begin(write=True) as transaction, transaction.cursor() as cursor:
                    pairs = zip(_plain(found.lower), _plain(found.upper), strict=True)
                    cursor.putmulti(
                        [
                            (
                                struct.pack(">HI", number, file),
                                _packed(found, file, lower, upper),
                            )
                            for file, (lower, upper) in enumerate(pairs)
                        ],
                        append=True,
                    )
        aside.rename(self.cold)

    def size(self) -> int:
        return sum(p.stat().st_blocks * 512 for p in self.cold.iterdir())

    def _begin(self) -> Any:
        environment = lmdb.open(str(self.cold), readonly=True, lock=False, readahead=False)
        return environment.begin(buffers=True)

    def _walk(self, first: int, count: int) -> Callable[[], object]:
        transaction = self._begin()

        def work() -> int:
            total = seen = 0
            with transaction.cursor() as cursor:
                cursor.set_range(struct.pack(">HI", first, 0))
                for value in cursor.iternext(keys=False, values=True):
                    total += len(bytes(value))
                    seen += 1
                    if seen == count:
                        break
            assert seen == count
            return total

        return work

    def one_column(self) -> Callable[[], object]:
        return self._walk(777, FILES)

    def ten_records(self, rng: random.Random) -> Callable[[], object]:
        wanted = [struct.pack(">HI", rng.randrange(WIDTH), rng.randrange(FILES)) for _ in range(10)]
        transaction = self._begin()
        return lambda: [bytes(transaction.get(key)) for key in wanted]

    def rows(self) -> Callable[[], object]:
        return self._walk(1000, _RANGE)

    def scan(self) -> Callable[[], object]:
        return self._walk(0, FILES * WIDTH)


def _packed(found: Records, file: int, lower: Any, upper: Any) -> bytes:
    if isinstance(lower, bytes):
        body = struct.pack("<BB", len(lower), len(upper)) + lower + upper
    else:
        body = struct.pack("<dd" if isinstance(lower, float) else "<qq", lower, upper)
    return body + struct.pack("<bIBI", 1, int(found.nulls[file]), 0, int(found.size[file]))


def run() -> list[Figure]:
    directory = root() / "rfc27"
    directory.mkdir(exist_ok=True)
    stores: list[Any] = [Ours(directory), Wide(directory), Sqlite(directory), Lmdb(directory)]
    durable = {store.name: store.size() for store in stores}
    aims = {
        "1 column": "≤ 1",
        "10 records": "≤ 1.5",
        "5,000-row range": "≤ 5",
        "full scan": "≤ 120",
    }
    figures: list[Figure] = []
    for store in stores:
        mine = isinstance(store, Ours)
        rng = random.Random(SEED)
        works: dict[str, Callable[[], Callable[[], object]]] = {
            "1 column": store.one_column,
            "10 records": lambda s=store, r=rng: s.ten_records(r),  # type: ignore[misc]
            "5,000-row range": store.rows,
            "full scan": store.scan,
        }
        for work, prepare in works.items():
            cold = median_cold(store.cold, prepare, 5 if work == "full scan" else 15)
            opened = prepare()
            warm = median(opened, 3 if work == "full scan" else 15)
            del opened
            aim = aims[work] if mine else ""
            figures.append(
                Figure(
                    f"{store.name}: {work}, cold",
                    cold * 1e3,
                    "ms",
                    aim,
                    f"warm {warm * 1e3:.2f} ms",
                )
            )
        aim = f"≤ {durable[Wide.name] / 1e6:.1f} (wide Parquet)" if mine else ""
        figures.append(Figure(f"{store.name}: durable size", durable[store.name] / 1e6, "MB", aim))
    figures += _opening(stores[0])
    return figures


def _opening(ours: Ours) -> list[Figure]:
    """What a process pays that has opened nothing yet, and one that has no local form."""

    def fresh() -> Callable[[], object]:
        def work() -> None:
            held = ours.open().local
            held.load(held.columns[777])

        return work

    opened = median_cold(ours.cold, fresh, 7)
    away = root() / "rfc27" / "elsewhere"

    def nothing() -> Callable[[], object]:
        shutil.rmtree(away, ignore_errors=True)
        drop(root() / "rfc27" / "index")

        def work() -> None:
            manifest = ours._store.latest()
            assert manifest is not None
            serving = IndexSnapshot.open(manifest, ours._store, away)
            serving.local.load(serving.local.columns[777])

        return work

    (root() / "rfc27" / "nothing").touch()
    durable = median_cold(root() / "rfc27" / "nothing", nothing, 5)
    shutil.rmtree(away, ignore_errors=True)
    return [
        Figure("the same, index opened anew, 1 column", opened * 1e3, "ms"),
        Figure(
            "the same, no local form: footer and one row group from storage", durable * 1e3, "ms"
        ),
    ]
