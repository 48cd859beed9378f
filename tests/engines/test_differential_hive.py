"""Random SQL over random files: a hooked table in HiveServer2 4.0.1 tells the rows that it tells
with pruning off.

``DIFFERENTIAL_SEED`` repeats a run; ``SKIPBRIDGE_LAWS=nightly`` asks 1,100 queries, 220
of each table; ``DIFFERENTIAL_ROUNDS`` is how many tables.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyhive.exc import OperationalError

from bridge.jobs.hive import hook_table
from tests.engines.conftest import RunningHiveServer2
from tests.engines.differential.compare import Difference, Outcome, Reader, bag, difference, shrunk
from tests.engines.differential.hive_words import HiveConditions, HiveQueries
from tests.engines.differential.lakes import build
from tests.engines.differential.queries import Query
from tests.engines.differential.table import RandomTable, Taste
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, hooked_hive
from tests.engines.test_differential_trino import NIGHTLY, SEED, SHOWN, forget

ROUNDS, QUERIES, JOBS = (5, 200, 20) if NIGHTLY else (1, 40, 3)
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
                for lake in lakes:
                    hook_table(lake.config(uri), str(lake.name), dry_run=False, progress=_silent)
                pair = Readers(hive)
                for difference in pair.asked(lakes, random.Random(f"{seed} queries")):
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
    """A hooked table, and the same with pruning off; how many files the first has read."""

    def __init__(self, hive: HookedHive) -> None:
        self._hive = hive
        self.read = self.listed = 0

    def asked(self, lakes: list[RandomTable], rng: random.Random) -> Iterator[Difference]:
        for number in range(QUERIES + JOBS):
            lake = rng.choice(lakes)
            queries = HiveQueries(rng, HiveConditions(rng, lake.partitioned))
            query = queries.fetched() if number < QUERIES else queries.job()
            settings = FETCH if number < QUERIES else TEZ
            told = self._differs(query, lake, settings)
            if told:
                small, again = shrunk(query, lambda q, x=lake, s=settings: self._differs(q, x, s))
                yield Difference(str(lake.name), "pruning off", small, again or f"once: {told}")

    def _differs(self, query: Query, lake: RandomTable, settings: dict[str, str]) -> str:
        def ours(sql: str) -> Outcome:
            try:
                answer = self._hive.ask(quoted(sql), settings)
            except OperationalError as e:
                return _failed(e)
            self.read += answer.read
            self.listed += answer.listed
            return Outcome(bag(answer.rows))

        def off(sql: str) -> Outcome:
            try:
                return Outcome(bag(self._hive.unhooked(quoted(sql), settings)))
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
