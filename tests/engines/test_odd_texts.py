"""Texts that are no plain values of their column's type, in lines of JSON and CSV.

Numbers out of range or spelled oddly, keys that come twice, objects where numbers are: Trino, Hive
and Spark each make something else of them. Whatever it is, no file is left out in which they find
a row. Each text has a file and a partition of its own, so that an engine that refuses one answers
of the others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bridge
from bridge.kernel.errors import BridgeError
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, age
from tests.engines.stack import ask
from tests.engines.stock_readers import RunningSpark
from tests.engines.test_api_conditions import Ask
from tests.engines.text_tables import CSV, HIVE_JSON, JSON, TEXT_FILES

pytestmark = [pytest.mark.full, pytest.mark.rule("16"), pytest.mark.rule("5")]

SCHEMA = "odd_texts"
NUMBERS = ["7", "1e3", " 5", "+5", "5 ", "0x10", "NaN", "", "null", "1.5", "007", "-0", "7.0", "5L"]
WORDS: dict[str, tuple[str, list[str], list[str]]] = {
    "i": (
        "int",
        [*NUMBERS, "2147483648", "4294967301", "-2147483649"],
        ["0", "1", "5", "7", "16", "1000", "2147483647", "-2147483648"],
    ),
    "b": (
        "bigint",
        [*NUMBERS, "9223372036854775808", "18446744073709551621"],
        ["5", "7", "16", "1000", "9223372036854775807"],
    ),
    "t": ("tinyint", ["300", "-129", "1e2", "+5", "128"], ["5", "44", "100", "127", "-128"]),
    "d": (
        "double",
        [*NUMBERS, "Infinity", "-Infinity", "inf", "1e309", "1d", "0x1p3", "-0.0", "nan"],
        ["0e0", "1.5e0", "5e0", "7e0", "8e0", "16e0", "1e3"],
    ),
    "m": (
        "decimal(5,2)",
        [*NUMBERS, "123456.75", "1e2", "1.005", "999.999"],
        ["0.00", "1.00", "1.01", "1.50", "5.00", "7.00", "100.00", "999.99"],
    ),
    "s": (
        "string",
        ["", "null", "NULL", "7", "7.0", "true", " x ", "[1]", '{"a":1}', "1e3"],
        ["''", "'null'", "'7'", "'7.0'", "'true'", "'[1]'", "'{\"a\":1}'", "'1000.0'", "'x'"],
    ),
    "day": (
        "date",
        ["2024-1-2", "2024-02-30", " 2024-01-02", "2024-01-02 10:00:00", "20240102", "", "19724"],
        ["DATE '2024-01-02'", "DATE '2024-03-01'", "DATE '1970-01-01'"],
    ),
    "ts": (
        "timestamp",
        ["2024-01-02", "2024-1-2 1:2:3", "2024-01-02T01:02:03", "1704157323000", "", "x"],
        ["TIMESTAMP '2024-01-02 00:00:00'", "TIMESTAMP '2024-01-02 01:02:03'"],
    ),
    "f": ("boolean", ["TRUE", "t", "1", "yes", "", "0", "null", "False"], ["TRUE", "FALSE"]),
}
"""By column: its type, texts, and literals that some engine may make of them."""
SPARK_JSON = "json_in_spark"
"""Spark has none of Hive's JSON SerDes. Its own reader is asked about the same lines and types."""
PLAIN = {"i": "3", "b": "3", "t": "3", "d": "3.0", "m": "3.00", "s": "plain", "day": "2000-01-01"}
PLAIN |= {"ts": "2000-01-01 00:00:00", "f": "true"}
RAW = ["7", "7.0", "1e3", "-0", "true", "null", "[1]", '{"a":1}', "[]", "2147483648", "1e400"]
"""Values of JSON that stand there without quotes."""
TWICE = [
    '"i": 1, "i": 5',
    '"i": 5, "i": "x"',
    '"I": 5, "i": 7',
    '"i": 7, "I": 5',
    '"i": null, "i": 5',
    '"i": {"i": 5}',
    '"z": {"i": 5}',
    '"s": "x", "s": "7"',
    '"s": "7", "S": "x"',
]


def json_lines() -> dict[str, list[str]]:
    """Lines, by the column that is odd in them."""
    found: dict[str, list[str]] = {}
    for column, (_, words, _) in WORDS.items():
        tokens = [*map(json.dumps, words), *RAW]
        found[column] = [_object({**_plain(), column: token}) for token in tokens]
    found["i"] += ["{" + each + "}" for each in TWICE[:7]]
    found["s"] += ["{" + each + "}" for each in TWICE[7:]]
    return found


def _plain() -> dict[str, str]:
    return {c: text if c in "ibtdm" or c == "f" else json.dumps(text) for c, text in PLAIN.items()}


def _object(members: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {token}' for name, token in members.items()) + "}"


def csv_lines() -> dict[str, list[str]]:
    """All columns are texts, so that one has the texts of all."""
    found = []
    for word in ALL_WORDS:
        quoted = '"' + word.replace('"', '""') + '"'
        for text in dict.fromkeys((quoted, word if '"' not in word else quoted)):
            found.append(",".join({**PLAIN, "s": text}.values()))
    return {"s": found}


ALL_WORDS = list(dict.fromkeys(word for _, words, _ in WORDS.values() for word in words))


def conditions(format: str, column: str) -> list[str]:
    literals = WORDS[column][2]
    if format == "csv":
        literals = ["'" + word.replace("'", "''") + "'" for word in ALL_WORDS]
    found = [f"{column} IS NULL", f"{column} IS NOT NULL"]
    return found + [f"{column} {op} {each}" for each in literals for op in ("=", ">", "<=")]


def register(uri: str, table: str, serde: str, directory: Path, count: int) -> None:
    types = {name: "string" if serde == CSV else type for name, (type, _, _) in WORDS.items()}
    fields = [records.FieldSchema(name, type, "") for name, type in types.items()]

    def descriptor(place: Path) -> records.StorageDescriptor:
        return records.StorageDescriptor(
            cols=fields,
            location=f"file:{place}",
            inputFormat=TEXT_FILES[0],
            outputFormat=TEXT_FILES[1],
            numBuckets=-1,
            serdeInfo=records.SerDeInfo(serializationLib=serde, parameters={}),
            parameters={},
            bucketCols=[],
            sortCols=[],
        )

    record = records.Table(
        tableName=table,
        dbName=SCHEMA,
        owner="test",
        sd=descriptor(directory),
        partitionKeys=[records.FieldSchema("p", "int", "")],
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
    )
    parts = [
        records.Partition(
            values=[str(n)], dbName=SCHEMA, tableName=table, sd=descriptor(directory / f"p={n}")
        )
        for n in range(count)
    ]
    with MetastoreClient(uri) as client:
        if SCHEMA not in client.get_all_databases():
            client.create_database(SCHEMA)
        client.create_table(record)
        client.add_partitions(SCHEMA, table, parts)


@pytest.fixture(scope="module")
def engines(
    hiveserver2: RunningHiveServer2, stock_trino: int, own_spark: RunningSpark
) -> Iterator[dict[str, Ask]]:
    yield {
        "trino": lambda sql: ask(
            stock_trino, sql.replace(f" {SCHEMA}.", f" hive.{SCHEMA}."), "hive"
        ),
        "hive": lambda sql: hiveserver2.query(sql, FETCH),
        "spark": lambda sql: own_spark.ask(f"try {sql}"),
    }


@pytest.mark.parametrize(
    ("format", "serdes"),
    [
        ("json", {"trino": JSON, "hive": HIVE_JSON, "spark": HIVE_JSON}),
        ("csv", {"trino": CSV, "hive": CSV, "spark": CSV}),
    ],
)
def test_no_file_is_left_out_in_which_an_engine_finds_a_row(
    engines: dict[str, Ask],
    hiveserver2: RunningHiveServer2,
    format: str,
    serdes: dict[str, str],
    tmp_path: Path,
) -> None:
    held = json_lines() if format == "json" else csv_lines()
    files = [(column, line) for column, lines in held.items() for line in lines]
    for n, (_, line) in enumerate(files):
        (tmp_path / f"p={n}").mkdir()
        (tmp_path / f"p={n}" / "f").write_text(line + "\n")
        age(tmp_path / f"p={n}")
    if format == "json":
        types = ", ".join(f"{name} {type}" for name, (type, _, _) in WORDS.items())
        engines["spark"](
            f"CREATE OR REPLACE TEMPORARY VIEW {SPARK_JSON} ({types}, p int) USING json "
            f"OPTIONS (path 'file:{tmp_path}')"
        )
    lost, left_out, answered = [], 0, Counter[str]()
    uri = hiveserver2.metastore.uri
    cache = str(tmp_path.parent / f"cache-{format}")
    with bridge.connect(metastore_uri=uri, planner_cache_dir=cache) as session:
        for engine, serde in serdes.items():
            name = f"{SCHEMA}.{format}_of_{engine}"
            register(uri, name.split(".")[1], serde, tmp_path, len(files))
            table = session.table(name)
            table.index.build(nan="scan", values=[*WORDS])
            kept = {
                where: _kept(table, where, engine)
                for column in held
                for where in conditions(format, column)
            }
            for n, (column, line) in enumerate(files):
                asked = [where for where in conditions(format, column) if kept[where] is not None]
                try:
                    of = SPARK_JSON if (format, engine) == ("json", "spark") else name
                    sql = f"SELECT {', '.join(asked)} FROM {of} WHERE p = {n}"
                    (found,) = engines[engine](sql)
                except Exception:  # the engine does not read such a text
                    continue
                answered[engine] += 1
                for where, holds in zip(asked, found, strict=True):
                    left_out += n not in kept[where]
                    if holds is True and n not in kept[where]:
                        lost.append((engine, line, where))
    assert not lost, "\n".join(map(str, lost))
    assert all(answered[engine] > len(files) // 3 for engine in serdes), answered
    assert left_out > 1_000


def _kept(table: bridge.Table, where: str, dialect: str) -> Any:
    """The files that may hold such a row; None if the condition is refused."""
    try:
        paths = table.scan(where, semantics=dialect).files()["path"].to_pylist()
    except BridgeError:
        return None
    return {int(path.split("/p=")[1].split("/")[0]) for path in paths}
