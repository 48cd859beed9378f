"""Hive skips files of CSV, JSON, text and Avro where the index read them as the query does.

The oracle is the same Hive that skips nothing.
"""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyhive.exc import OperationalError

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import INTEGER, STRING, Kind, Type
from bridge.metastore.client import MetastoreClient
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, PlannerUnderTest, age, hooked_hive
from tests.engines.test_text_values import (
    AVRO,
    LINES,
    SCHEMA,
    Columns,
    columns_of,
    csv_file,
    json_file,
    register,
    text_file,
)
from tests.support.text_files import TYPES
from tests.tiers import examples

pytestmark = pytest.mark.full

FILES, QUERIES = examples((24, 8), (24, 8), (400, 200))
_SERDE = "org.apache.hadoop.hive.serde2."
OPEN_CSV, LAZY = f"{_SERDE}OpenCSVSerde", f"{_SERDE}lazy.LazySimpleSerDe"


@pytest.fixture(scope="module")
def both(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    cache = tmp_path_factory.mktemp("cache")
    with hooked_hive(hiveserver2, cache) as running:
        yield running


@pytest.fixture
def hive(both: tuple[HookedHive, PlannerUnderTest]) -> HookedHive:
    return both[0]


def avro_file(path: Path, first: int) -> None:
    fields = [{"name": "k", "type": ["null", "int"]}, {"name": "s", "type": ["null", "string"]}]
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
    rows = [{"k": first + i, "s": f"v{first + i:04}"} for i in range(10)]
    with path.open("wb") as sink:
        fastavro.writer(sink, schema, rows)


def line_file(format: str, path: Path, first: int) -> None:
    rows = range(first, first + 10)
    match format:
        case "csv" | "headed":
            head = "9999,v0042\n" if format == "headed" else ""
            if first == 10 and head:
                head = f"\ufeff{head}"
            path.write_text(head + "".join(f'{i:04},"v{i:04}"\n' for i in rows))
        case "packed":
            packed = path.with_suffix(".gz") if first % 20 else path
            line_file("headed", packed, first)
            if first % 20:
                packed.write_bytes(gzip.compress(packed.read_bytes()))
        case "text":
            path.write_text("".join(f"{i}|v{i:04}\n" for i in rows))
        case "json":
            path.write_text("".join(f'{{"k":{i},"s":"v{i:04}"}}\n' for i in rows))
        case "avro":
            avro_file(path, first)


CASES: dict[str, tuple[str, tuple[str, str], dict[str, str], dict[str, str]]] = {
    "csv": (OPEN_CSV, LINES, {}, {}),
    "text": (LAZY, LINES, {"field.delim": "|"}, {}),
    "json": (f"{_SERDE}JsonSerDe", LINES, {}, {}),
    # In Tez Hive replaces the input format of tables with header lines, unless a file is packed.
    "headed": (OPEN_CSV, LINES, {}, {"skip.header.line.count": "1"}),
    "packed": (OPEN_CSV, LINES, {}, {"skip.header.line.count": "1"}),
    "avro": (f"{_SERDE}avro.AvroSerDe", AVRO, {}, {}),
}


def made(hive: HookedHive, format: str, name: str, columns: Columns, directory: Path) -> str:
    serde, classes, parameters, of_table = CASES[format]
    age(directory)
    with MetastoreClient(hive.metastore_uri) as client:
        if SCHEMA in client.get_all_databases() and name in client.get_all_tables(SCHEMA):
            client.drop_table(SCHEMA, name)
    register(hive.metastore_uri, name, columns, directory, serde, classes, parameters, of_table)
    full = f"{SCHEMA}.{name}"
    index(hive, full)
    return full


def index(hive: HookedHive, table: str) -> None:
    """Indexes what can be indexed, and asks until the hook knows the table."""
    config = Config({"metastore.uri": Setting(hive.metastore_uri, "test")})
    index_table(config, table, local=True, progress=lambda done, total: None, say=lambda text: None)
    for _ in range(100):
        if hive.ask(f"SELECT * FROM {table} WHERE k IS NOT NULL LIMIT 1").scans:
            return
        time.sleep(0.1)
    raise AssertionError(f"the hook never learned of {table}")


@pytest.mark.parametrize("format", CASES)
def test_files_are_skipped(hive: HookedHive, tmp_path: Path, format: str) -> None:
    for part in range(8):
        line_file(format, tmp_path / f"f{part}", part * 10)
    table = made(hive, format, f"skips_{format}", (("k", INTEGER), ("s", STRING)), tmp_path)
    number = "'0042'" if CASES[format][0] == OPEN_CSV else "42"
    parallel = {**TEZ, "mapreduce.input.fileinputformat.list-status.num-threads": "4"}
    for settings in (FETCH, TEZ, *((parallel,) if format == "headed" else ())):
        for where in (f"k = {number}", "s = 'v0042'"):
            answer = hive.ask(f"SELECT s FROM {table} WHERE {where}", settings)
            assert answer.rows == [("v0042",)], (where, answer)
            assert (answer.read, answer.listed) == (1, 8), (where, settings)
            assert not answer.warnings
    for where, rows in (("k = 'x'", 0), ("s > 'v0054'", 25), ("s IS NOT NULL", 80)):
        for settings in (TEZ, {**TEZ, "hive.execution.engine": "mr"}):
            sql = f"SELECT count(*) FROM {table} WHERE {where}"
            answer = hive.ask(sql, settings)
            if "hive.execution.engine" in settings and format in ("headed", "packed"):
                # Hive's combined reader counts header lines; the hook leaves such tables to it.
                assert answer.rows == hive.unhooked(sql, settings), where
            else:
                assert answer.rows == [(rows,)], (where, settings)


CHANGES = {
    "separator": ("text", "SET SERDEPROPERTIES ('field.delim'='v')"),
    "null": ("text", "SET SERDEPROPERTIES ('serialization.null.format'='v0042')"),
    "escape": ("text", "SET SERDEPROPERTIES ('escape.delim'='2')"),
    "header": ("text", "SET TBLPROPERTIES ('skip.header.line.count'='2')"),
    "quote": ("csv", "SET SERDEPROPERTIES ('quoteChar'='v')"),
    "headers": ("csv", "SET TBLPROPERTIES ('skip.header.line.count'='3')"),
    "serde": ("text", f"SET SERDE '{OPEN_CSV}'"),
    "type": ("text", "CHANGE k k string"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_declaration_skips_nothing(hive: HookedHive, tmp_path: Path, change: str) -> None:
    format, statement = CHANGES[change]
    for part in range(4):
        line_file(format, tmp_path / f"f{part}", 30 + part * 10)
    table = made(hive, format, f"other_{change}", (("k", INTEGER), ("s", STRING)), tmp_path)
    key = "'0042'" if format == "csv" else "42"  # Hive's columns of CSV are text
    sql = f"SELECT k, s FROM {table} WHERE s = 'v0042' OR s IS NULL OR k = {key}"
    assert hive.ask(sql, TEZ).read == 1
    hive.ask(f"ALTER TABLE {table} {statement}")
    for settings in (FETCH, TEZ):
        answer = hive.ask(sql, settings)
        assert sorted(answer.rows, key=repr) == sorted(hive.unhooked(sql, settings), key=repr)
        assert answer.read == answer.listed, change


def test_a_partition_that_is_read_otherwise_is_not_skipped(
    hive: HookedHive, tmp_path: Path
) -> None:
    for p in range(3):
        directory = tmp_path / f"p={p}"
        directory.mkdir()
        for part in range(4):
            line_file("text", directory / f"f{part}", part * 10)
    age(tmp_path)
    table = f"{SCHEMA}.parted"
    hive.ask(f"DROP TABLE IF EXISTS {table}")
    hive.ask(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}")
    hive.ask(
        f"CREATE EXTERNAL TABLE {table} (k int, s string) PARTITIONED BY (p int) ROW FORMAT "
        f"DELIMITED FIELDS TERMINATED BY '|' STORED AS TEXTFILE LOCATION 'file://{tmp_path}'"
    )
    hive.ask(f"MSCK REPAIR TABLE {table}")
    index(hive, table)
    sql = f"SELECT k, s, p FROM {table} WHERE k = 25 OR s = '25|v0025'"
    for settings in (FETCH, TEZ):
        answer = hive.ask(sql, settings)
        assert (len(answer.rows), answer.read, answer.listed) == (3, 3, 12)
    hive.ask(f"ALTER TABLE {table} PARTITION (p=1) SET SERDEPROPERTIES ('field.delim'='v')")
    for settings in (FETCH, TEZ):
        answer = hive.ask(sql, settings)
        assert sorted(answer.rows) == sorted(hive.unhooked(sql, settings))
        for p in range(3):
            one = f"{sql.replace('WHERE', f'WHERE p = {p} AND (')})"
            found = hive.ask(one, settings)
            assert sorted(found.rows) == sorted(hive.unhooked(one, settings))
            assert found.read == (4 if p == 1 else 1), p


WRITERS = {"csv": csv_file, "text": text_file, "json": json_file}


@pytest.mark.parametrize("format", WRITERS)
def test_no_row_is_lost(hive: HookedHive, tmp_path: Path, format: str) -> None:
    """Random files, odd spellings among them, and random predicates."""
    rng = random.Random(f"{format} in Hive")
    types: Sequence[Type] = (STRING,) * 4 if format == "csv" else TYPES
    columns = columns_of(types)
    odd_files = []
    for number in range(FILES):
        odd = rng.choice((0, 0, 0.02, 0.1))
        file = tmp_path / f"f{number}"
        file.write_bytes(WRITERS[format](rng, columns, odd))
        if odd:
            odd_files.append(file)
    table = f"{SCHEMA}.law_{format}"
    names = ", ".join(name for name, _ in columns)
    held = None
    while held is None:
        made(hive, "headed" if format == "csv" else format, f"law_{format}", columns, tmp_path)
        try:
            held = hive.unhooked(f"SELECT {names} FROM {table}")
        except OperationalError:
            if not odd_files:
                raise
            # Hive itself may refuse a value in one of them.
            half = len(odd_files) // 2
            for file in odd_files[half:]:
                file.unlink()
            odd_files = odd_files[:half]
    skipped = 0
    places = rng.sample(range(1, len(columns)), len(columns) - 1)
    for number in range(max(QUERIES, len(places))):  # each column at least once
        place = places[number % len(places)]
        literal = _literal(rng, columns[place][1], [row[place] for row in held])
        op = rng.choice(("=", "<", ">", "<=", ">=", "<>", "<=>"))
        where = f"{columns[place][0]} {op} {literal}"
        if rng.random() < 0.3:
            where = rng.choice((f"NOT ({where})", f"{where} AND k <> '1'", f"{where} OR k = '2'"))
        sql = f"SELECT {names} FROM {table} WHERE {where}"
        settings = rng.choice((FETCH, TEZ))
        answer = hive.ask(sql, settings)
        assert sorted(map(repr, answer.rows)) == sorted(map(repr, hive.unhooked(sql, settings)))
        skipped += answer.listed - answer.read
    assert skipped, "no file was skipped"


def _literal(rng: random.Random, type: Type, held: list[Any]) -> str:
    value = rng.choice([v for v in held if v is not None] or [0])
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    match type.kind:
        case Kind.STRING | Kind.VARCHAR:
            return f"'{text}'"
        case Kind.TIMESTAMP:
            whole = len(text) >= 19 and text[:4].isdigit()
            return f"TIMESTAMP '{text if whole else '2024-02-29 12:30:00'}'"
        case Kind.DATE:
            return f"DATE '{text}'" if len(text) == 10 else "DATE '2024-02-29'"
        case Kind.BOOLEAN:
            return text.lower() if text in ("True", "False") else "true"
    return text if text not in ("nan", "inf", "-inf") else "0"
