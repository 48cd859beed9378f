"""Trino skips files by Hudi's own indexes before an index of ours exists, and loses no row.

Spark's rows are the oracle: those of its answer that satisfy the condition.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import eq, ne
from typing import Any

import pyarrow as pa
import pytest

from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures
from tests.support.hudi_registration import as_text, register, table_name

pytestmark = pytest.mark.full

SCHEMA = "hudi_own_indexes"
KEY = "_hoodie_record_key"
ATTEMPTS = 200
"""Of a query that may come before the index is read, which another thread does."""


@dataclass(frozen=True, slots=True)
class Case:
    """A table, its index, and the column that the index is asked for."""

    fixture: HudiFixture
    source: str
    column: str

    @property
    def id(self) -> str:
        return self.fixture.id

    @property
    def table(self) -> str:
        return f"{SCHEMA}.{table_name(self.fixture)}"


CASES = [
    Case(fixture, source, column)
    for name, source, column, bundle in (
        ("cow_secondary_index", "secondary_index", "name", "1.2.0"),
        ("cow_secondary_index_of_numbers", "secondary_index", "n", "1.2.0"),
        ("cow_secondary_index_of_dates", "secondary_index", "n", "1.2.0"),
        ("cow_bloom_filters", "bloom_filters", KEY, None),
        ("mor_bloom_filters", "bloom_filters", KEY, "1.2.0"),
        ("cow_record_index", "record_index", KEY, "1.2.0"),
        ("cow_statistics", "column_stats", "n", "1.2.0"),
    )
    for fixture in hudi_fixtures(bundle=bundle, names=[name])
]
BY_CASE = pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES])


@pytest.fixture(scope="module", autouse=True)
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every table, registered as by a sync; nothing of it is indexed."""
    root = tmp_path_factory.mktemp("hudi-own-indexes")
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{root}")
        for case in CASES:
            location = case.fixture.unpack(root / case.fixture.bundle)
            name = TableName(SCHEMA, table_name(case.fixture))
            register(client, name, location, case.fixture.answers().snapshot.schema)
    yield


def kept_by(stack: Stack, case: Case, condition: str) -> tuple[int, int] | None:
    """Files that came to the index and that it kept, by Trino's own metrics; None: not asked."""
    text = stack.analyzed(f"SELECT * FROM {case.table} WHERE {condition}")
    found = [
        re.search(rf"skipbridge files {case.source} {what}.*?(?:total=|count=|=\s*)(\d+)", text)
        for what in ("total", "kept")
    ]
    total, kept = (None if each is None else int(each[1]) for each in found)
    return None if total is None or kept is None else (total, kept)


def when_read(stack: Stack, case: Case) -> tuple[int, int]:
    """The counts for a value that no row has, once the index was read."""
    for _ in range(ATTEMPTS):
        found = kept_by(stack, case, f'"{case.column}" = {literal(absent(case))}')
        if found is not None:
            return found
    raise AssertionError(f"{case.source} of {case.table} is not used")


def absent(case: Case) -> Any:
    if case.fixture.name.endswith("_dates"):
        return datetime.date(1970, 1, 2)
    return 999_983 if case.column == "n" else "none"


def literal(value: Any) -> str:
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def conditions(case: Case, values: list[Any]) -> dict[str, Callable[[Any], bool]]:
    """Conditions, and what each says of a value that is not NULL."""
    few = values[:: max(1, len(values) // 5)]
    name, none = f'"{case.column}"', absent(case)
    several = ", ".join(map(literal, [*few[:2], none]))
    found: dict[str, Callable[[Any], bool]] = {
        f"{name} = {literal(each)}": partial(eq, each) for each in few
    }
    found[f"{name} IN ({several})"] = few[:2].__contains__
    found[f"{name} = {literal(few[0])} AND ts > 0"] = partial(eq, few[0])
    found[f"{name} <> {literal(few[0])}"] = partial(ne, few[0])
    found[f"{name} = {literal(none)}"] = partial(eq, none)
    return found


@BY_CASE
def test_no_row_is_lost(stack: Stack, case: Case) -> None:
    answer = case.fixture.answers().snapshot
    every: pa.Table = answer.table(answer.schema.names)
    column = every[case.column].to_pylist()
    names = [field.name.lower() for field in answer.schema]
    selected = ", ".join(f'"{name}"' for name in names)
    when_read(stack, case)
    for condition, holds in conditions(case, sorted({v for v in column if v is not None})).items():
        found = stack.query(f"SELECT {selected} FROM {case.table} WHERE {condition}")
        expected = every.filter(pa.array([v is not None and holds(v) for v in column]))
        assert as_text(found, answer, names) == encode_table(expected), condition


@BY_CASE
def test_files_are_skipped_and_the_index_is_named(stack: Stack, case: Case) -> None:
    slices = case.fixture.answers().slices
    unknown = sum(bool(each.logs) for each in slices)
    if case.source == "secondary_index":
        unknown = 2  # files of the commit in which Hudi 1.2 made the index
    total, kept = when_read(stack, case)
    assert (total, kept) == (len(slices), unknown)
    own = f'SELECT kind FROM {SCHEMA}."{table_name(case.fixture)}$indexes" WHERE generation > 0'
    assert stack.query(own) == [], "an index of ours exists"
    assert kept_by(stack, case, f'"{case.column}" IS NULL') in (None, (total, total))
