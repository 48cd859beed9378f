"""A random table of a real metastore and its storage, as other engines leave them.

The oracle is brute force over directories, files and records; it shares nothing with the product.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.kernel.errors import SchemaNotFound, TableNotFound
from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient

Values = tuple[str, ...]
NULL = "__HIVE_DEFAULT_PARTITION__"
DDL_TIME = "transient_lastDdlTime"
SPARK_SCHEMA = "spark.sql.sources.schema"
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet."


def parquet(**columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


FILES: dict[str, tuple[bytes, dict[str, str]]] = {
    "first": (
        parquet(id=pa.array([1, 2], pa.int32()), Name=pa.array(["a", "b"])),
        {"id": "int", "name": "string"},
    ),
    "wider": (
        parquet(ID=pa.array([1], pa.int64()), name=pa.array(["a"])),
        {"id": "bigint", "name": "string"},
    ),
    "longer": (
        parquet(id=pa.array([1], pa.int32()), extra=pa.array([1.5])),
        {"id": "int", "extra": "double"},
    ),
}
_BY_CONTENT = dict(FILES.values())
_HOLDS = {"bigint": ("bigint", "int")}
_TEXTS = ("1", "a b", "x%2Fy", "é", "50%25", "2024-01-01", "A", NULL, "1_v2")
_NUMBERS = ("1", "02", "10", "007", "4", "-3", NULL)
_STAGING = (
    "_temporary/0/p=1",
    ".hive-staging_hive_2026-11-27_05-00-00_001_1-1/-ext-10000/p=1",
    ".spark-staging-4f1c/p=1",
)
KEYS = {
    "text": (("p", "string"),),
    "number": (("m", "int"),),
    "two": (("p", "string"), ("q", "int")),
}


@dataclass(slots=True)
class World:
    """One table's directory, its record, and what others did to both.

    Attributes:
        seen: what was drawn, counted by the law.
    """

    base: Path
    client: MetastoreClient
    database: str
    draw: random.Random
    seen: list[str] = field(default_factory=list)
    keys: tuple[tuple[str, str], ...] = KEYS["text"]
    _files: int = 0

    @property
    def root(self) -> Path:
        return self.base / "table"

    @property
    def name(self) -> str:
        return f"{self.database}.t"

    def chance(self, of_hundred: int) -> bool:
        return self.draw.randrange(100) < of_hundred

    # storage

    def write(self, place: Path, kind: str = "first", *, old: bool = False) -> Path:
        place.mkdir(parents=True, exist_ok=True)
        self._files += 1
        file = place / f"part-{self._files:05}.parquet"
        file.write_bytes(FILES[kind][0])
        if old:  # copied with its time
            os.utime(file, (1_600_000_000, 1_600_000_000))
        return file

    def directory(self) -> str:
        """A directory of a partition, in some writer's spelling."""
        levels = []
        for name, type_ in self.keys:
            value = self.draw.choice(_NUMBERS if type_ == "int" else _TEXTS)
            if " " in value and self.chance(50):
                value = value.replace(" ", "%20")
            levels.append(f"{name.upper() if self.chance(3) else name}={value}")
        return "/".join(levels)

    def fill(self) -> None:
        """Directories of the table, and what else may lie there."""
        self.write(self.root / self._steady())
        taken = {self.values(self._steady())}
        for _ in range(self.draw.randint(1, 5)):
            directory = self.directory()
            values = self.values(directory)
            if values in taken and not self.chance(5):
                continue
            if values in taken and directory not in self.data_directories():
                self.seen.append("storage: two directories of the same values")
            taken.add(values)
            self.write(self.root / directory, self.draw.choice(["first", "first", *FILES]))
        for staging in _STAGING:
            if self.chance(5):
                self.write(self.root / staging)
                self.seen.append("storage: staging")
        if self.chance(10):
            (self.root / self.directory()).mkdir(parents=True, exist_ok=True)
            self.seen.append("storage: maybe empty directory")
        if self.chance(10):
            (self.root / self._steady() / "_SUCCESS").touch()
            (self.root / self._steady() / "empty.parquet").touch()
            self.seen.append("storage: empty and hidden files")
        if self.chance(4):
            self.write(self.root / "odd")
            self.seen.append("storage: directory of no partition")

    def _steady(self) -> str:
        """A directory that no one removes, so that the table is never empty."""
        return "/".join(f"{n}={'77' if t == 'int' else 'steady'}" for n, t in self.keys)

    def steady(self) -> Values:
        return self.values(self._steady())

    def values(self, directory: str) -> Values:
        """The typed values of a directory; () if it is no partition's."""
        levels = [level.partition("=") for level in directory.split("/")]
        if [name.lower() for name, _, _ in levels] != [name for name, _ in self.keys]:
            return ()
        return tuple(
            self.typed(unquote(value), type_)
            for (_, _, value), (_, type_) in zip(levels, self.keys, strict=True)
        )

    def typed(self, value: str, type_: str) -> str:
        return str(int(value)) if type_ == "int" and value != NULL else value

    def key(self, values: Values) -> Values:
        """Values as a query compares them."""
        return tuple(self.typed(v, t) for v, (_, t) in zip(values, self.keys, strict=True))

    def data_directories(self) -> list[str]:
        """Directories below the root with a file that an engine sees."""
        found = []
        for directory, names, _ in os.walk(self.root):
            names[:] = [n for n in names if "=" in n or n[0] not in "._"]
            if data_files(Path(directory)):
                found.append(os.path.relpath(directory, self.root))
        return found

    # the metastore

    def table(self) -> ttypes.Table | None:
        with contextlib.suppress(SchemaNotFound, TableNotFound):
            return self.client.get_table(self.database, "t")
        return None

    def partitions(self) -> dict[Values, ttypes.Partition]:
        names = self.client.get_partition_names(self.database, "t")
        found = self.client.get_partitions_by_names(self.database, "t", names)
        return {tuple(p.values): p for p in found.partitions}

    def create(self, origin: str) -> None:
        """The table, as an engine creates it."""
        record = new_table(self.database, self.root, self.keys, origin)
        self.client.create_database(self.database)
        self.client.create_table(record)

    def register(self, engine: str, values: Values, place: Path, **parameters: str) -> None:
        """A partition, in the form that an engine gives its record."""
        record = self.table()
        assert record is not None
        made = new_partition(record, engine, values, place, parameters)
        self.client.add_partitions(self.database, "t", [made])

    def repair(self, engine: str) -> None:
        """Registers most directories, as an engine's procedure does that looks for partitions."""
        taken: set[Values] = set()
        for directory in self.data_directories():
            raw = tuple(unquote(level.partition("=")[2]) for level in directory.split("/"))
            key = self.values(directory)
            if not key or key in taken or not self.chance(75):
                continue
            taken.add(key)
            values = key if engine == "hive" else raw
            self.seen += ["record: zero-padded place"] if values != raw else []
            self.register(engine, values, self.root / directory, made_by=engine)

    def register_by_hand(self) -> None:
        """Partitions at places that their values do not name."""
        if self.chance(20):
            values = tuple("88" if t == "int" else "by hand" for _, t in self.keys)
            place = self.base / "elsewhere" / "x"
            self.write(place)
            self.register("hive", values, place, made_by="hand")
            self.seen.append("record: outside of the root")
        if self.chance(10):
            values = tuple("89" if t == "int" else "within" for _, t in self.keys)
            place = self.root / "rewritten" / "x"
            self.write(place)
            self.register("hive", values, place, made_by="hand")
            self.seen.append("record: below the root, not named by values")
        if self.chance(10):
            values = tuple("90" if t == "int" else "nowhere" for _, t in self.keys)
            self.register("hive", values, self.base / "nowhere", made_by="hand")
            self.seen.append("record: at a missing place outside")


def data_files(place: Path) -> list[Path]:
    """The files that an engine reads of a partition there."""
    if not place.is_dir():
        return []
    files = (f for f in place.iterdir() if f.is_file() and f.name[0] not in "._")
    return [f for f in files if f.stat().st_size]


def place_of(partition: ttypes.Partition) -> Path:
    location: str = partition.sd.location
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def columns_of(file: Path) -> dict[str, str]:
    return _BY_CONTENT[file.read_bytes()]


def fields(descriptor: ttypes.StorageDescriptor) -> dict[str, str]:
    return {c.name.lower(): c.type for c in descriptor.cols}


def lacking(held: dict[str, str], file: Path) -> list[str]:
    """Columns of a file whose values a record's columns do not hold."""
    return [
        f"{name} {type_}"
        for name, type_ in columns_of(file).items()
        if type_ not in _HOLDS.get(held.get(name, ""), (held.get(name),))
    ]


def new_table(
    database: str, root: Path, keys: tuple[tuple[str, str], ...], origin: str
) -> ttypes.Table:
    """A table's record as Hive, Trino or Spark creates it."""
    columns = [ttypes.FieldSchema("id", "int", "the number"), ttypes.FieldSchema("name", "string")]
    parameters = {"EXTERNAL": "TRUE", "note": "of others"}
    serde = {"serialization.format": "1"}
    key_columns = [ttypes.FieldSchema(n, t) for n, t in keys]
    if origin == "spark":
        types = {"int": "integer"}
        spark = [("Id", "integer"), ("Name", "string"), *((n, types.get(t, t)) for n, t in keys)]
        described = [
            {"name": n, "type": t, "nullable": True, "metadata": {"comment": n}} for n, t in spark
        ]
        parameters |= {
            "spark.sql.create.version": "3.5.1",
            "spark.sql.partitionProvider": "catalog",
            "spark.sql.sources.provider": "parquet",
            SPARK_SCHEMA: json.dumps({"type": "struct", "fields": described}),
            "spark.sql.sources.schema.numPartCols": str(len(keys)),
            **{f"spark.sql.sources.schema.partCol.{i}": n for i, (n, _) in enumerate(keys)},
        }
        serde["path"] = f"file:{root}"
    if origin == "trino":
        parameters |= {"trino_version": "476", "trino_query_id": "20261127_050000_00001_abcde"}
    return ttypes.Table(
        tableName="t",
        dbName=database,
        owner="etl",
        createTime=1_700_000_000,
        sd=ttypes.StorageDescriptor(
            cols=columns,
            location=f"file:{root}" if origin != "hive" else f"file://{root}",
            inputFormat=_PARQUET + "MapredParquetInputFormat",
            outputFormat=_PARQUET + "MapredParquetOutputFormat",
            numBuckets=-1,
            compressed=False,
            serdeInfo=ttypes.SerDeInfo(
                name="t" if origin == "trino" else None,
                serializationLib=_PARQUET + "serde.ParquetHiveSerDe",
                parameters=serde,
            ),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=key_columns,
        parameters=parameters,
        tableType="EXTERNAL_TABLE",
    )


def new_partition(
    table: ttypes.Table, engine: str, values: Values, place: Path, parameters: dict[str, str]
) -> ttypes.Partition:
    """A partition's record as Hive's, Trino's or Spark's procedures write it."""
    descriptor = copy.deepcopy(table.sd)
    descriptor.location = f"file:{place}"
    own = {
        "hive": {"numRows": "2", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'},
        "trino": {"trino_query_id": "20261127_050000_00002_abcde"},
        "spark": {},
    }[engine]
    if engine == "spark":
        descriptor.serdeInfo.parameters = {"serialization.format": "1", "path": f"file:{place}"}
    # With all of these the metastore lists no directory to count files.
    counted = {"numFiles": "1", "totalSize": "1", "numFilesErasureCoded": "0"}
    return ttypes.Partition(
        values=list(values),
        dbName=table.dbName,
        tableName=table.tableName,
        createTime=1_700_000_000,
        lastAccessTime=0,
        sd=descriptor,
        parameters={**own, **counted, **parameters},
    )


def schema_of_spark(record: ttypes.Table) -> dict[str, Any]:
    """The fields that Spark keeps of a table, by their names in lower case."""
    text = record.parameters.get(SPARK_SCHEMA)
    if text is None:
        count = int(record.parameters.get(f"{SPARK_SCHEMA}.numParts", "0"))
        text = "".join(record.parameters[f"{SPARK_SCHEMA}.part.{i}"] for i in range(count))
    found = json.loads(text)["fields"] if text else []
    return {f["name"].lower(): f for f in found}


def clear(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
