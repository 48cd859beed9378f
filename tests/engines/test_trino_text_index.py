"""Indexed tables of text, CSV and JSON in Trino: the rows of its own connector, from fewer files.

Random predicates are asked of tables with odd spellings, quotes and damage. A property that changes
after the build must cost no row.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Type,
    decimal,
)
from bridge.metastore.client import MetastoreClient
from tests.engines.stack import Stack
from tests.engines.text_tables import CSV, JSON, SCHEMA, TEXT, TextTables
from tests.support.text_files import json_value, value

pytestmark = pytest.mark.full

TYPES = (STRING, BIGINT, INTEGER, DOUBLE, BOOLEAN, DATE, TIMESTAMP, decimal(6, 2))
TEXTS = (STRING,) * 3
FILES, ROWS, QUERIES = 24, 4, 40
Line = Callable[[random.Random, tuple[Type, ...], float], str]


@pytest.fixture(scope="module")
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TextTables]:
    yield TextTables(stack, tmp_path_factory.mktemp("indexed"), "x")


def csv_line(rng: random.Random, types: tuple[Type, ...], odd: float) -> str:
    texts = [value(rng, type, odd).replace(",", "") for type in types]
    return ",".join(f'"{text}"' if rng.random() < 0.5 else text for text in texts)


def text_line(rng: random.Random, types: tuple[Type, ...], odd: float) -> str:
    texts = [value(rng, type, odd).replace("|", "/") for type in types]
    return "|".join("\\N" if rng.random() < 0.1 else text for text in texts)


def json_line(rng: random.Random, types: tuple[Type, ...], odd: float) -> str:
    members = [f'"c{i}": {json_value(rng, type, 0)}' for i, type in enumerate(types)]
    if rng.random() < odd:
        members.append(rng.choice(('"X": {"c0": 7}', '"y": "C1: x"', '"z": "\\u00e9"')))
    return "{" + ", ".join(members) + "}"


@pytest.mark.parametrize(
    ("name", "serde", "line", "types", "parameters"),
    [
        ("csv", CSV, csv_line, TEXTS, {}),
        ("text", TEXT, text_line, TYPES, {"field.delim": "|"}),
        ("json", JSON, json_line, TYPES, {}),
    ],
)
def test_the_same_rows_from_fewer_files(
    tables: TextTables,
    name: str,
    serde: str,
    line: Line,
    types: tuple[Type, ...],
    parameters: dict[str, str],
) -> None:
    rng = random.Random(name)
    files = {}
    for number in range(FILES):
        odd = 0.1 if number % 6 == 0 else 0.0
        few = random.Random(rng.random())  # the values of a file are few, and repeat
        kept = [line(few, types, odd) for _ in range(ROWS)]
        end = rng.choice(("\n", "\n", "\n", "\r\n"))
        files[f"f{number:02}"] = "".join(text + end for text in kept)
    columns = [(f"c{i}", str(type)) for i, type in enumerate(types)]
    table = tables.table(name, columns, serde, tables.files(name, files), parameters)
    build(tables, table, columns)
    pruned = 0
    for _ in range(QUERIES):
        where = " AND ".join(predicate(rng, types) for _ in range(rng.choice((1, 1, 2))))
        tables.same(f"SELECT * FROM {{t}}.{table} WHERE {where}")
        if pruned < 3:
            sql = f"SELECT * FROM bridge.{SCHEMA}.{table} WHERE {where}"
            pruned += tables.stack.kept_files(sql) < FILES
    assert pruned >= 3
    for aggregate in ("count(*)", "count(c1)", "min(c0)", "max(c1)"):
        assert not tables.same(f"SELECT {aggregate} FROM {{t}}.{table}").error


def predicate(rng: random.Random, types: tuple[Type, ...]) -> str:
    number = rng.randrange(len(types))
    type, name = types[number], f"c{number}"
    if rng.random() < 0.15:
        return f"{name} IS {rng.choice(('', 'NOT '))}NULL"
    texts = [value(rng, type, 0) for _ in range(2)]
    literals = [f"CAST('{text}' AS {sql_type(type)})" for text in texts]
    if rng.random() < 0.3:
        return f"{name} IN ({', '.join(literals)})"
    return f"{name} {rng.choice(('=', '=', '<', '>', '<=', '>=', '<>'))} {literals[0]}"


def sql_type(type: Type) -> str:
    return {STRING: "varchar", TIMESTAMP: "timestamp(3)"}.get(type, str(type))


def build(tables: TextTables, table: str, columns: list[tuple[str, str]]) -> None:
    config = Config({"metastore.uri": Setting(tables.stack.metastore_uri, "test")})
    kinds = [("bloom", columns[0][0]), *(("values", name) for name, _ in columns)]
    index_table(
        config,
        f"{SCHEMA}.{table}",
        local=True,
        asked=RequestedIndexes(kinds=tuple(kinds)),
        progress=lambda done, total: None,
        say=lambda text: None,
    )
    tables.stack.restart_planner()


def test_a_property_that_changes_after_the_build_costs_no_row(tables: TextTables) -> None:
    files = {f"f{i}": f"a;{i},x\nb;{i},y\n" for i in range(4)}
    columns = [("a", "string"), ("b", "string")]
    table = tables.table("changed", columns, CSV, tables.files("changed", files))
    build(tables, table, columns)
    asked = f"SELECT * FROM bridge.{SCHEMA}.{table} WHERE b = 'y'"
    assert tables.stack.kept_files(asked) == 4
    assert tables.stack.kept_files(asked.replace("'y'", "'1,x'")) == 0
    with MetastoreClient(tables.stack.metastore_uri) as client:
        record = client.get_table(SCHEMA, table)
        record.sd.serdeInfo.parameters = {"separatorChar": ";"}
        client.alter_table(SCHEMA, table, record)
    tables.stack.restart_planner()
    assert tables.stack.kept_files(asked.replace("'y'", "'1,x'")) == 4
    assert len(tables.same(f"SELECT * FROM {{t}}.{table} WHERE b = '1,x'").rows) == 1
    build(tables, table, columns)
    assert tables.stack.kept_files(asked.replace("'y'", "'1,x'")) == 1
