"""A real Trino reads Hudi tables of random histories of schemas: logs older than a change too.

The rows are a model's, with every predicate: a column of the table is the file's, or the log's,
column of the same id.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.support.hudi_evolving import Column, EvolvingTable, condition
from tests.support.hudi_registration import register
from tests.tiers import examples

pytestmark = pytest.mark.full

SCHEMA = "hudi_evolving"
TABLES = examples(6, 6, 60)


def shown(column: Column, value: Any) -> Any:
    """A value as Trino's protocol has it."""
    if value is None:
        return None
    match column.type:
        case "record":
            return [shown(part, value[part.name]) for part in column.parts]
        case "array":
            return [shown(column.parts[0], each) for each in value]
        case "map":
            return {key: shown(column.parts[0], each) for key, each in value}
    return str(value) if isinstance(value, Decimal | date) else value


def plain(value: Any) -> Any:
    """What Trino's client returns in the same form: in rows it makes Python's own types."""
    match value:
        case list() | tuple():
            return [plain(each) for each in value]
        case dict():
            return {key: plain(each) for key, each in value.items()}
    return str(value) if isinstance(value, Decimal | date) else value


@pytest.mark.parametrize("seed", range(TABLES))
def test_rows_are_those_of_the_ids(stack: Stack, seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    made = EvolvingTable(tmp_path / "t", random, (6, 8)[seed % 2], logs=True)
    made.run(random.randint(6, 14))
    names = [column.name for column in made.columns]
    name = TableName(SCHEMA, f"t{seed}")
    with MetastoreClient(stack.metastore_uri) as client:
        if SCHEMA not in client.get_all_databases():
            client.create_database(SCHEMA, f"file://{tmp_path}")
        schema = pa.schema([(c.name, c.arrow) for c in made.columns])
        register(client, name, made.hudi.root, schema)

    def rows(where: str) -> list[list[object]]:
        columns = ", ".join(f'"{n}"' for n in names)
        found = stack.query(f"SELECT {columns} FROM {name}{where}")
        return sorted(map(plain, found), key=repr)

    def told(some: list[dict[str, Any]]) -> list[list[object]]:
        return sorted(([shown(c, row[c.name]) for c in made.columns] for row in some), key=repr)

    expected = made.expected()
    assert rows("") == told(expected)
    for _ in range(4):
        column = random.choice(made.columns)
        text, holds = condition(column, random)
        kept = [row for row in expected if holds(row[column.name])]
        assert rows(f" WHERE {text}") == told(kept), text
    count = stack.query(f"SELECT count(*), count({names[-1]}) FROM {name}")
    assert count == [[len(expected), sum(row[names[-1]] is not None for row in expected)]]
