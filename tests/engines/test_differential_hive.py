"""Random SQL over random files: tables that HiveServer2 4.0.1 reads through the hooks, by their
records or by its plans, tell the rows that they tell with pruning off.

``DIFFERENTIAL_SEED`` repeats a run; ``--tier=nightly`` asks 1,100 queries, 220
of each table; ``DIFFERENTIAL_ROUNDS`` is how many tables.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyhive.exc import OperationalError

from tests.engines.conftest import RunningHiveServer2
from tests.engines.differential.compare import Difference, Outcome, Reader, bag, difference, shrunk
from tests.engines.differential.hive_words import HiveConditions, HiveQueries
from tests.engines.differential.lakes import build
from tests.engines.differential.queries import Query
from tests.engines.differential.table import RandomTable, Taste
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, hooked_hive
from tests.engines.test_differential_trino import SEED, SHOWN, forget
from tests.tiers import examples

ROUNDS, QUERIES, JOBS = examples((1, 8, 1), (1, 20, 2), (5, 200, 20))
ROUNDS = int(os.environ.get("DIFFERENTIAL_ROUNDS") or ROUNDS)
# Hive's reader converts less, and fails over a field of a struct that the file lacks.
TASTE = Taste(converted=False, bare=False, lacking=False)


def test_hooked_tables_tell_the_rows_of_no_pruning(
    hiveserver2: RunningHiveServer2, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(text: str) -> None:
        """At once: a run of hours may be ended before its end."""
        with capsys.disabled():
            print(text, end=" ", flush=True)

    say(f" seed {SEED}")
    found: list[Difference] = []
    read = listed = 0
    with hooked_hive(hiveserver2, tmp_path / "cache") as (hive, _):
        for number in range(ROUNDS):
            seed = f"{SEED}.{number}"
            uri = hive.metastore_uri
            lakes = [
                build(tmp_path, uri, "live", seed, TASTE, files=16, partitions=5),
                build(tmp_path, uri, "flat", seed, TASTE, files=16),
            ]
            try:
                pair = Readers([(hive, lake) for lake in lakes])
                for difference in pair.asked(random.Random(f"{seed} queries")):
                    found.append(difference)
                    say(f"\n{difference}")
                    if len(found) >= SHOWN:
                        break
                say(f"{(number + 1) * (QUERIES + JOBS)}")
                read, listed = read + pair.read, listed + pair.listed
            finally:
                forget(uri, lakes)
            if len(found) >= SHOWN:
                break
    assert not found, "\n".join([f"DIFFERENTIAL_SEED={SEED}", *map(str, found)])
    # Of what is left after Hive's own pruning of partitions.
    assert read < listed * 0.95, f"{read} of {listed} files were read: seed {SEED}"


class Readers:
    """Tables, each with the sessions that hook it, and the same with pruning off; how many files
    the first have read.
    """

    def __init__(self, tables: list[tuple[HookedHive, RandomTable]]) -> None:
        self._tables = tables
        self.read = self.listed = 0

    def asked(self, rng: random.Random) -> Iterator[Difference]:
        for number in range(QUERIES + JOBS):
            hive, lake = rng.choice(self._tables)
            queries = HiveQueries(rng, HiveConditions(rng, lake.partitioned))
            query = queries.fetched() if number < QUERIES else queries.job()
            settings = FETCH if number < QUERIES else TEZ
            differs = partial(self._differs, hive=hive, lake=lake, settings=settings)
            told = differs(query)
            if told:
                small, again = shrunk(query, differs)
                yield Difference(str(lake.name), "pruning off", small, again or f"once: {told}")

    def _differs(
        self, query: Query, hive: HookedHive, lake: RandomTable, settings: dict[str, str]
    ) -> str:
        def ours(sql: str) -> Outcome:
            try:
                answer = hive.ask(quoted(sql), settings)
            except OperationalError as e:
                return _failed(e)
            self.read += answer.read
            self.listed += answer.listed
            return Outcome(bag(answer.rows))

        def off(sql: str) -> Outcome:
            try:
                return Outcome(bag(hive.unhooked(quoted(sql), settings)))
            except OperationalError as e:
                return _failed(e)

        return difference(
            query,
            str(lake.name),
            Reader("hooked", ours, lambda table: table),
            Reader("pruning off", off, lambda table: table),
        )


def quoted(sql: str) -> str:
    """A column is called as a type is."""
    return re.sub(r"\bdec\b", "`dec`", sql)


def _failed(error: OperationalError) -> Outcome:
    status = error.args[0].status
    text = str(status.errorMessage)
    return Outcome(error=f"error {status.errorCode}", text=text[:400], users=True)


def _silent(done: int, total: int) -> None:
    """Nobody looks."""
