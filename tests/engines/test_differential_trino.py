"""Random SQL over random files: our connector in Trino 476 tells the rows of the stock Hive
connector, and those of its own with pruning off.

``DIFFERENTIAL_SEED`` repeats a run; ``--tier=nightly`` asks 6,000 queries of tables that
are new each time, 500 of each; ``DIFFERENTIAL_ROUNDS=40`` asks 20,000.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from trino.exceptions import TrinoUserError

from bridge.metastore.client import MetastoreClient
from tests.engines.differential.compare import Difference, Reader, compared
from tests.engines.differential.lakes import build
from tests.engines.differential.predicates import Conditions
from tests.engines.differential.queries import Queries, Query
from tests.engines.differential.table import RandomTable, Taste
from tests.engines.differential.trino_readers import OFF, STOCK, reader
from tests.engines.stack import Stack
from tests.tiers import examples, nightly

SEED = os.environ.get("DIFFERENTIAL_SEED") or (str(time.time_ns()) if nightly() else "2")
ROUNDS, QUERIES = examples((1, 30), (1, 60), (12, 500))
ROUNDS = int(os.environ.get("DIFFERENTIAL_ROUNDS") or ROUNDS)
THREADS = 4
SHOWN = 5
SAMPLE = 16


def tables(root: Path, uri: str, seed: str) -> Iterator[RandomTable]:
    taste = Taste()
    yield build(root, uri, "live", seed, taste, files=20, partitions=7)
    yield build(root, uri, "still", seed, taste, files=24, partitions=7)
    yield build(root, uri, "flat", seed, taste, files=20)


def drawn(lakes: list[RandomTable], seed: str) -> Iterator[tuple[RandomTable, Query]]:
    rng = random.Random(f"{seed} queries")
    while True:
        lake = rng.choice(lakes)
        yield lake, Queries(rng, Conditions(rng, lake.partitioned)).query()


def test_trino_tells_the_rows_of_the_stock_connector_and_of_no_pruning(
    stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(text: str) -> None:
        """At once: a run of hours may be ended before its end."""
        with capsys.disabled():
            print(text, end=" ", flush=True)

    say(f" seed {SEED}")
    ours = reader("skipbridge", stack.trino_port, "bridge")
    off = reader("pruning off", stack.trino_port, "bridge", OFF)
    stock = reader("stock", stack.trino_port, "hive", STOCK)
    found: list[Difference] = []
    pruned = asked = 0
    for number in range(ROUNDS):
        seed = f"{SEED}.{number}"
        lakes = list(tables(tmp_path, stack.metastore_uri, seed))
        try:
            queries = list(islice(drawn(lakes, seed), QUERIES))
            named = [(str(lake.name), query) for lake, query in queries]

            # The stock connector is asked everything, the same without pruning every third.
            def oracles(n: int) -> tuple[Reader, ...]:
                return (stock, off) if n % 3 == 0 else (stock,)

            differing = (d for d in compared(named, ours, oracles, THREADS) if d is not None)
            for difference in islice(differing, SHOWN - len(found)):
                found.append(difference)
                say(f"\n{difference}")
            if len(found) >= SHOWN:
                break
            sample = [(lake, q) for lake, q in queries if q.where is not None][:SAMPLE]
            pruned += sum(prunes(stack, lake, query) for lake, query in sample)
            asked += len(sample)
            say(f"{(number + 1) * QUERIES}")
        finally:
            forget(stack.metastore_uri, lakes)
    assert not found, "\n".join([f"DIFFERENTIAL_SEED={SEED}", *map(str, found)])
    assert pruned >= asked * 0.3, f"{pruned} of {asked} queries skipped files: seed {SEED}"


def prunes(stack: Stack, lake: RandomTable, query: Query) -> bool:
    """Whether a query's rows are found without reading every file."""
    where = query.where.sql if query.where is not None else "true"
    files = sum(1 for file in lake.files() if file.stat().st_size)
    try:
        return stack.kept_files(f"SELECT count(id) FROM {lake.name} WHERE {where}") < files
    except TrinoUserError:  # a value overflows or is no number: such queries fail for all
        return False


def forget(uri: str, lakes: list[RandomTable]) -> None:
    with MetastoreClient(uri) as client:
        for lake in lakes:
            client.drop_table(lake.name.schema, lake.name.table)
            shutil.rmtree(lake.root)
