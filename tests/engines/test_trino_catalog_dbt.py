"""A dbt project whose catalog is named ``hive`` runs unchanged when that name's connector becomes
skipbridge: dbt tells the same of each node, and the rows are those of the hive connector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.engines.catalogs import Catalogs
from tests.support.dbt import Outcome, Project

pytestmark = pytest.mark.nightly

FIRST = """(1, 1, 10.5, 'paid', TIMESTAMP '2024-01-01 10:00:00.123456', DATE '2024-01-01'),
    (2, 2, 20.0, 'open', TIMESTAMP '2024-01-01 11:00:00', DATE '2024-01-01'),
    (3, 3, 30.0, 'test', TIMESTAMP '2024-01-01 12:00:00', DATE '2024-01-01'),
    (4, 4, 40.0, 'open', TIMESTAMP '2024-01-04 09:00:00', DATE '2024-01-02'),
    (5, 1, 50.0, 'paid', TIMESTAMP '2024-01-02 10:00:00', DATE '2024-01-02')"""
SECOND = """(6, 2, 60.0, 'returned', TIMESTAMP '2024-01-02 18:00:00', DATE '2024-01-02'),
    (7, 5, 70.0, 'open', TIMESTAMP '2024-01-03 08:00:00', DATE '2024-01-03'),
    (8, 3, NULL, 'paid', TIMESTAMP '2024-01-05 08:00:00', DATE '2024-01-03')"""
DAYS = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04")
"""Of the model of batches, each of which is a day."""
REFUSED = {"changed_days", "latest_orders", "order_states"}
"""Nodes whose second run changes rows: the hive connector refuses that."""


@dataclass(slots=True)
class World:
    """The project in a schema of its own, run twice; rows come in between.

    Attributes:
        relations: what ``dbt docs generate`` tells after the second run.
        rows: of each relation after the second run, by the connector that made it.
        scans: the tables of each node's SQL as the plan names them after the second run.
    """

    catalogs: Catalogs
    project: Project
    runs: list[Outcome] = field(default_factory=list)
    relations: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)
    scans: dict[str, set[str]] = field(default_factory=dict)

    @property
    def _raw(self) -> str:
        return f"{self.project.schema}_raw"

    def run_first(self) -> None:
        self.catalogs.hive(f"CREATE SCHEMA {self._raw}")
        self.catalogs.hive(
            f"CREATE TABLE {self._raw}.orders (order_id bigint, customer_id bigint, amount double,"
            " status varchar, updated_at timestamp(6), day date)"
            " WITH (partitioned_by = ARRAY['day'])"
        )
        self.catalogs.hive(f"INSERT INTO {self._raw}.orders VALUES {FIRST}")
        self.runs.append(self.project.build(*DAYS))

    def run_again(self) -> None:
        self.catalogs.hive(f"INSERT INTO {self._raw}.orders VALUES {SECOND}")
        self.runs.append(self.project.build(*DAYS, "--vars", "wide: true"))
        self.relations = self.project.relations()
        self.rows = self.read()
        self.scans = {node: self._scans(sql) for node, sql in self.runs[-1].compiled.items()}

    def read(self) -> dict[str, list[str]]:
        """All rows, by the connector that catalog ``hive`` has now."""
        schema, ask = self.project.schema, self.catalogs.hive
        return {
            table: sorted(map(repr, ask(f"SELECT * FROM {schema}.{table}")))
            for [table] in ask(f"SHOW TABLES FROM {schema}")
        }

    def _scans(self, sql: str) -> set[str]:
        [[text]] = self.catalogs.hive(f"EXPLAIN {sql}")
        found = re.findall(r"table = hive:([^ \]]+)", text)
        return {name.removeprefix(self.project.schema).removeprefix("_") for name in found}


@contextmanager
def _replaced(catalogs: Catalogs) -> Iterator[None]:
    """While it lasts, the connector of catalog ``hive`` is skipbridge."""
    _connect(catalogs, catalogs.properties)
    try:
        yield
    finally:
        _connect(catalogs, catalogs.spec.catalogs["hive"])


def _connect(catalogs: Catalogs, properties: Mapping[str, str]) -> None:
    words = dict(properties)
    connector = words.pop("connector.name")
    text = ", ".join(f"\"{key}\" = '{value}'" for key, value in words.items())
    catalogs.front("DROP CATALOG hive")
    catalogs.front(f"CREATE CATALOG hive USING {connector} WITH ({text})")


@pytest.fixture(scope="module")
def worlds(catalogs: Catalogs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, World]:
    """``stock``: both runs by the hive connector; ``fresh``: by skipbridge; ``moved``: in between
    the operator changes the catalog's line.
    """
    directory = tmp_path_factory.mktemp("dbt")
    made = {
        name: World(catalogs, Project(directory / name, catalogs.port, f"dbt_{name}"))
        for name in ("stock", "moved", "fresh")
    }
    made["stock"].run_first()
    made["moved"].run_first()
    with _replaced(catalogs):
        made["moved"].run_again()
        made["fresh"].run_first()
        made["fresh"].run_again()
    made["stock"].run_again()
    return made


@pytest.mark.parametrize("name", ["moved", "fresh"])
def test_dbt_tells_of_each_node_what_it_tells_over_the_hive_connector(
    worlds: dict[str, World], name: str
) -> None:
    for ours, theirs in zip(worlds[name].runs, worlds["stock"].runs, strict=True):
        assert ours.results == theirs.results
    assert worlds[name].relations == worlds["stock"].relations


@pytest.mark.parametrize("name", ["moved", "fresh"])
def test_the_rows_are_those_of_the_hive_connector(worlds: dict[str, World], name: str) -> None:
    assert worlds[name].rows == worlds["stock"].rows
    # What skipbridge wrote, the hive connector reads.
    assert worlds[name].read() == worlds["stock"].rows


def test_all_kinds_of_models_ran(worlds: dict[str, World]) -> None:
    """All but those whose second run changes rows, which the hive connector refuses."""
    first, again = worlds["moved"].runs
    assert not _failed(first)
    assert set(_failed(again)) == REFUSED
    for message in _failed(again).values():
        assert "Modifying Hive table rows is only supported for transactional tables" in message
    counts = {name: len(rows) for name, rows in worlds["moved"].rows.items()}
    # A day that came again was overwritten, or deleted and written anew.
    assert counts["daily_sales"] == counts["recent_orders"] == counts["orders_by_batch"] == 7
    assert (counts["orders"], counts["late_orders"], counts["open_by_day"]) == (7, 2, 3)


def _failed(run: Outcome) -> dict[str, str]:
    return {
        node.split(".")[2]: message
        for node, (status, message) in run.results.items()
        if status not in ("success", "pass")
    }


def test_each_table_is_read_natively(worlds: dict[str, World]) -> None:
    """A native table has a dot in the plan, one of Hive's reader a colon."""
    for name in ("moved", "fresh"):
        scans = worlds[name].scans
        whole = {table for found in scans.values() for table in found}
        assert not [table for table in whole if ":" in table]
        assert {"raw.orders", ".customers", ".customer_totals", ".daily_sales"} <= whole
        assert {"raw.orders", ".customers"} <= scans["model.shop.daily_sales"]
    assert all(":" in table for found in worlds["stock"].scans.values() for table in found)
