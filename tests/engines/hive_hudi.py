"""A HiveServer2 with Hudi's input formats, and queries of Hudi tables there with and without hooks.

Hudi's bundle for Spark stands in for its bundle for Hive: it has the same classes for Hive, under
their own names, and needs of Spark only Kryo.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyhive.exc import OperationalError

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.planner.answers.skippable_files import SkippableFiles
from bridge.servers.maven import artifact_file, parse_artifact
from bridge.service._gen import ttypes
from bridge.service.skippable_files import encode_skippable_files
from bridge.storage.port import UNKNOWN_TIME
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_stack import FETCH, Answer, HookedHive
from tests.support.hudi_fixtures import Answer as Spark
from tests.support.hudi_fixtures import HudiFixture
from tests.support.hudi_registration import table_name
from tests.support.hudi_sync import sync_hudi
from tests.support.servers.hiveserver2 import HiveServer2Spec, start_hiveserver2

HUDI = (
    "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
    "com.esotericsoftware:kryo-shaded:4.0.2",
    "com.esotericsoftware:minlog:1.3.0",
    "org.objenesis:objenesis:2.5.1",
)
# Hive's Jackson needs these annotations, but Maven chooses older ones for it.
_FIRST = "com.fasterxml.jackson.core:jackson-annotations:2.16.1"
# Hudi's readers fail in Hive's vectorised tasks.
ROWS = {"hive.vectorized.execution.enabled": "false"}
SCHEMA = "hudi_in_hive"


@contextmanager
def hive_with_hudi(
    metastore: RunningMetastore, jar: Path, directory: Path, properties: dict[str, str]
) -> Iterator[RunningHiveServer2]:
    """HiveServer2 4.0.1 with the hooks, and Hudi's classes last on its class path."""
    spec = HiveServer2Spec(
        directory,
        metastore.uri,
        port=0,
        auxiliary_jars=(jar, artifact_file(parse_artifact(_FIRST))),
        library_jars=tuple(artifact_file(parse_artifact(text)) for text in HUDI),
        properties=properties,
        jvm_options=("-XX:TieredStopAtLevel=1",),
    )
    with start_hiveserver2(spec) as server:
        running = RunningHiveServer2(server, metastore)
        yield running
        running.close()


def make_table(hive: HookedHive, fixture: HudiFixture, location: Path) -> TableName:
    """Registers a table as a sync does, with ``_ro`` and ``_rt``, and indexes it."""
    name = register_table(hive, fixture, location)
    config = Config({"metastore.uri": Setting(hive.metastore_uri, "test")})
    index_table(
        config,
        str(name),
        local=True,
        progress=lambda done, total: None,
        say=lambda text: None,
    )
    return name


def register_table(hive: HookedHive, fixture: HudiFixture, location: Path) -> TableName:
    """Registers a table as a sync does, without an index."""
    name = TableName(SCHEMA, table_name(fixture))
    with MetastoreClient(hive.metastore_uri) as client:
        sync_hudi(client, location, name)
    return name


def lay_handler_over(hive: HookedHive, synced: str, handler: str) -> str:
    """Another table over the files of a Hudi table, kept by a storage handler."""
    schema, _, table = synced.partition(".")
    with MetastoreClient(hive.metastore_uri) as client:
        record = client.get_table(schema, table)
        names = client.get_partition_names(schema, table)
        partitions = client.get_partitions_by_names(schema, table, names).partitions
    fields, keys = (
        ", ".join(f"`{c.name}` {c.type}" for c in columns)
        for columns in (record.sd.cols, record.partitionKeys)
    )
    name = f"{synced}_handled"
    hive.ask(
        f"CREATE EXTERNAL TABLE {name} ({fields}) PARTITIONED BY ({keys}) "
        f"STORED BY '{handler}' LOCATION '{record.sd.location}'"
    )
    for one in partitions:
        values = ", ".join(
            f"`{key.name}` = '{value}'"
            for key, value in zip(record.partitionKeys, one.values, strict=True)
        )
        hive.ask(f"ALTER TABLE {name} ADD PARTITION ({values}) LOCATION '{one.sd.location}'")
    return name


def views(fixture: HudiFixture) -> dict[str, Spark]:
    """Spark's answers by suffix of the table's name."""
    answers = fixture.answers()
    if answers.table_type == "COPY_ON_WRITE":
        return {"": answers.snapshot}
    return {"_rt": answers.snapshot, "_ro": answers.read_optimized}


def refused_by_hudi(hive: HookedHive, sql: str) -> bool:
    """Whether the query fails without the hook, as with dates of some tables in Hive 4."""
    try:
        hive.unhooked(sql, {**ROWS, **FETCH})
    except OperationalError:
        hive.close()  # Hive ends the session too
        return True
    return False


def same_as_unhooked(hive: HookedHive, sql: str, settings: dict[str, str]) -> Answer:
    """The rows do not depend on the hook, also where some are in no order."""
    settings = {**ROWS, **settings}
    answer = hive.ask(sql, settings)
    assert sorted(map(repr, answer.rows)) == sorted(map(repr, hive.unhooked(sql, settings))), sql
    assert not answer.warnings, answer.warnings
    return answer


def predicates(answer: Spark, seed: str, count: int) -> list[str]:
    """Conditions about values that rows of the answer have, single ones and combined."""
    rng = random.Random(seed)
    table = answer.table(answer.schema.names)
    single = []
    for field in answer.schema:
        name = f"`{field.name.lower()}`"
        values = [v for v in table[field.name].to_pylist() if v is not None]
        texts = [t for t in (literal(v, field.type) for v in values[:50]) if t is not None]
        if not texts:
            continue
        single.append(f"{name} IS NULL")
        for operator in ("=", "=", "<", ">=", "<>"):
            single.append(f"{name} {operator} {rng.choice(texts)}")
        single.append(f"{name} IN ({rng.choice(texts)}, {rng.choice(texts)})")
    rng.shuffle(single)
    chosen = single[:count]
    for joined in ("AND", "OR"):
        if len(single) > 1:
            chosen.append(f"{rng.choice(single)} {joined} {rng.choice(single)}")
    return chosen


def literal(value: Any, kind: pa.DataType) -> str | None:
    """A value in Hive's SQL; None if it has no simple form."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else None
        case decimal.Decimal():
            return f"CAST('{value}' AS DECIMAL({kind.precision}, {kind.scale}))"
        case dt.datetime():
            return f"TIMESTAMP '{value.replace(tzinfo=None)}'"
        case dt.date():
            return f"DATE '{value}'"
        case str() if value.isascii() and "'" not in value and "\\" not in value:
            return f"'{value}'"
    return None


def changed(
    found: ttypes.SkippableFiles, change: Callable[[str, int], tuple[str, int] | None]
) -> ttypes.SkippableFiles:
    """An answer with other files: path and size as the function says; None leaves a file out."""
    n = found.skipped
    sizes = struct.unpack_from(f"<{n}q", found.files, 0)
    offsets = struct.unpack_from(f"<{n + 1}i", found.files, 16 * n)
    text = found.files[20 * n + 4 :]
    paths = [found.root + text[a:b].decode() for a, b in itertools.pairwise(offsets)]
    kept = [c for c in map(change, paths, sizes) if c is not None]
    files = SkippableFiles(
        found.generation,
        paths=pa.array([path for path, _ in kept], pa.large_string()),
        sizes=np.array([size for _, size in kept], np.int64),
        modified=np.full(len(kept), UNKNOWN_TIME, np.int64),
    )
    return encode_skippable_files(files, ())
