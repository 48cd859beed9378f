"""A table whose columns change between every two steps of a query of Trino, against brute force.

The law: a plan keeps each file with a row that matches as the query reads it, under the columns
that it was analysed with, whatever definition the planner holds, the newest is, or the index was
built under; aggregates count exactly these rows; or the answer is TABLE_CHANGED. While the table
stays as it is, files are skipped and nothing fails.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.types import INTEGER
from bridge.planner.open_snapshots import OpenSnapshots
from bridge.planner.splits.coalesce import SplitSettings
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.service.handler import PlannerHandler
from bridge.table.model import Column
from tests.laws.test_compiled_columns_law import OTHERS, Made, columns, drawn_lake
from tests.support.lake import Lake
from tests.support.planner_client import decode_batch
from tests.tiers import examples

TABLES = examples(10, 25, 400)
ASKED = 12


class Query:
    """A query of Trino, step by step, as the connector asks.

    Attributes:
        lake, handler: the table and the planner.
        steady: nothing changes between its steps.
    """

    def __init__(
        self, lake: Lake, planner: Callable[[], PlannerHandler], made: Made, rng: random.Random
    ) -> None:
        self.lake, self.planner, self.made, self.rng = lake, planner, made, rng
        self.id = f"q{rng.random()}"
        self.steady = rng.random() < 0.3
        self.handler = planner()
        self.low, self.high = sorted(rng.choices(made[2], k=2))

    def matches(self, value: Any) -> bool:
        return bool(self.low <= value <= self.high)

    def change(self) -> None:
        if self.steady:
            return
        rng, type = self.rng, self.made[0]
        if rng.random() < 0.6:
            self.lake.columns = rng.choice(
                (
                    columns(rng.choice((type, *OTHERS))),
                    columns(type)[::-1],
                    (*columns(type), Column("new", INTEGER)),
                )
            )
        if rng.random() < 0.3:  # the planner was restarted, or another process answers
            self.handler.close()
            self.handler = self.planner()

    def request(self, described: ttypes.Table, enforced: bool = False) -> ttypes.PlanRequest:
        (column,) = (c for c in described.columns if c.name == "c")
        values = [_sent(v) for v in (self.low, self.high)]
        span = {"low": values[0], "high": values[1], "low_inclusive": True, "high_inclusive": True}
        domain = {"column": "c", "path": [], "type": column.engine_type, "null_allowed": False}
        pairs = [[c.name, c.hive_type] for c in described.columns]
        return ttypes.PlanRequest(
            schema_name="db",
            table_name="t",
            query_id=self.id,
            engine="trino",
            predicate=json.dumps(
                {"version": 1, "none": False, "domains": [domain | {"ranges": [span]}]}
            ),
            options={"table_columns": json.dumps({"columns": pairs, "keys": []})},
            enforced=enforced,
            snapshot_id=described.snapshot_id,
            protocol=PROTOCOL,
            first_splits=1000,
        )

    def run(self) -> tuple[int | None, set[str]]:
        """The count that statistics tell, if they do, and the files that are read."""
        asked = self.rng.choice((self.id, self.id, "", "another query of the transaction"))
        described = self.handler.get_table("db", "t", "trino", asked, "", PROTOCOL)
        assert [c.name for c in described.columns] == ["k", "c"]
        self.change()
        if self.rng.random() < 0.4:
            self.handler.get_statistics(self.request(described))
            self.change()
        counted, enforced = None, False
        if self.rng.random() < 0.4:
            rows = ttypes.AggregateRequest([ttypes.Aggregate("count", "")], [], 10_000)
            found = self.handler.aggregate(self.request(described), rows)
            enforced = found.enforced
            counted = json.loads(found.rows)[0][0] if found.answered else None
            self.change()
        plan = self.handler.plan(self.request(described, enforced))
        batch, paths = plan.first, []
        while True:
            splits = decode_batch(0, batch).splits
            paths += [] if splits is None else splits.paths.to_pylist()
            if batch.finished:
                return counted, {path[-1] for path in paths}
            self.lake.columns = columns(self.made[0])
            batch = self.handler.next_splits(plan.handle, batch.next_token, 1000, 1000)


def _sent(value: Any) -> Any:
    """On the wire a decimal is unscaled; all here have two digits behind the point."""
    if isinstance(value, Decimal):
        return str(int(value.scaleb(2)))
    return str(value) if isinstance(value, float) else value


@pytest.mark.rule("41")
def test_no_row_is_lost_whatever_the_table_becomes(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for number in range(TABLES):
        rng, made, lake, held = drawn_lake(tmp_path, number)
        type = made[0]

        def planner(lake: Lake = lake, rng: random.Random = rng) -> PlannerHandler:
            made = lake.planner(metadata_ttl=rng.choice((0.0, 60.0)))
            made.snapshots = OpenSnapshots(most=rng.choice((1, 4096)))
            return PlannerHandler(made, "127.0.0.1:1", SplitSettings())

        for _ in range(ASKED):
            lake.columns = columns(type)
            query = Query(lake, planner, made, rng)
            wanted = {name for name, value in held.items() if query.matches(value)}
            told = (number, type, query.low, query.high, held, query.steady)
            try:
                counted, read = query.run()
            except ttypes.BridgeFailure as failure:
                assert failure.code == "TABLE_CHANGED" and not query.steady, (told, failure)
                counts["refused"] += 1
                continue
            finally:
                query.handler.close()
            assert wanted <= read, (told, lake.columns, wanted - read)
            assert counted in (None, len(wanted)), (told, lake.columns, counted)
            counts["counted"] += counted is not None
            counts["skipped" if query.steady else "skipped though it changed"] += 6 - len(read)
    assert counts["refused"] > TABLES * ASKED / 10, counts
    assert counts["skipped"] > TABLES and counts["skipped though it changed"] > TABLES, counts
    assert counts["counted"] > TABLES / 2, counts
