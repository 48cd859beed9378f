"""A real HiveServer2 reads Hudi tables with Hudi's own input formats and our hook.

It reads every row that it reads without the hook, and no file that cannot match.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.table.model import TableName
from tests.engines.conftest import RunningMetastore, _tour_of_hive
from tests.engines.hive_hudi import (
    ROWS,
    SCHEMA,
    changed,
    hive_with_hudi,
    lay_handler_over,
    literal,
    make_table,
    predicates,
    refused_by_hudi,
    register_table,
    same_as_unhooked,
    views,
)
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, PlannerUnderTest, hooked_hive
from tests.support.hudi_expectations import keeps_schemas
from tests.support.hudi_fixtures import HudiFixture, few, hudi_fixtures

pytestmark = pytest.mark.full

KEY = "_hoodie_record_key"
ATTEMPTS = 200
"""Of a query that may come before what it waits for: the planner's index, or Hive's log."""


@pytest.fixture(scope="module")
def both(
    metastore_401: RunningMetastore, hive_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    directory = tmp_path_factory.mktemp("hive-hudi")
    with (
        hive_with_hudi(metastore_401, hive_jar, directory, _tour_of_hive()) as server,
        hooked_hive(server, tmp_path_factory.mktemp("cache")) as running,
    ):
        yield running
        running[0].forget(SCHEMA)


@pytest.fixture(scope="module")
def hive(both: tuple[HookedHive, PlannerUnderTest]) -> HookedHive:
    return both[0]


@pytest.fixture(scope="module")
def upserts(hive: HookedHive, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableName]:
    """Three versions of rows: those of logs and base files differ."""
    root = tmp_path_factory.mktemp("upserts")
    found = hudi_fixtures(bundle="1.2.0", names=["cow_upserts", "mor_upserts"])
    return {f.name: make_table(hive, f, f.unpack(root)) for f in found}


SKIPPED = (
    ("cow_upserts", "id = 1", 1, 5, FETCH),
    ("cow_upserts", "id = 1", 1, 5, TEZ),
    ("mor_upserts_ro", "id = 1", 1, 3, FETCH),
    ("mor_upserts_rt", "name = 'uno'", 1, 3, FETCH),
    ("mor_upserts_rt", "name = 'uno'", 1, 3, TEZ),
    ("mor_upserts_rt", "id > 1000", 0, 3, FETCH),
)


@pytest.mark.parametrize(("table", "condition", "read", "listed", "settings"), SKIPPED)
def test_files_and_slices_that_cannot_match_are_skipped(
    hive: HookedHive,
    upserts: dict[str, TableName],
    table: str,
    condition: str,
    read: int,
    listed: int,
    settings: dict[str, str],
) -> None:
    base = table.removesuffix("_rt").removesuffix("_ro")
    name = f"{upserts[base]}{table.removeprefix(base)}"
    answer = same_as_unhooked(hive, columns(name, condition), settings)
    assert answer.read == read
    assert answer.listed == listed or settings is FETCH  # which plans partition by partition


def columns(name: object, condition: str) -> str:
    return f"SELECT id, name, price, ts, day FROM {name} WHERE {condition}"


@pytest.mark.parametrize("table", ["cow_upserts", "mor_upserts_rt"])
def test_what_changed_since_an_instant(
    hive: HookedHive, upserts: dict[str, TableName], table: str
) -> None:
    """Hudi's incremental mode lists the files of some commits; the hook leaves out some of them."""
    base = table.removesuffix("_rt")
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=[base])
    instants = sorted(i.requested for i in fixture.answers().timeline)
    mode = f"hoodie.{base}.consume"
    settings = {
        **FETCH,
        f"{mode}.mode": "INCREMENTAL",
        f"{mode}.start.timestamp": instants[0],
        f"{mode}.max.commits": "1",
    }
    name = f"{upserts[base]}{table.removeprefix(base)}"
    since = f"`_hoodie_commit_time` > '{instants[0]}'"
    some = same_as_unhooked(hive, columns(name, since), settings)
    # Of the next commit alone, whose rows later ones changed.
    assert some.rows and some.listed
    newest = hive.unhooked(columns(name, since), {**ROWS, **FETCH})
    assert sorted(map(repr, some.rows)) != sorted(map(repr, newest))
    for condition in ("id = 1", "id > 1000", "name = 'uno'", "price < 0"):
        one = same_as_unhooked(hive, columns(name, f"{since} AND {condition}"), settings)
        assert one.read < one.listed


def test_a_slice_is_read_unless_all_its_files_are_named_as_they_are(
    both: tuple[HookedHive, PlannerUnderTest], upserts: dict[str, TableName]
) -> None:
    hive, planner = both
    sql = columns(f"{upserts['mor_upserts']}_rt", "id > 1000")
    told = same_as_unhooked(hive, sql, FETCH)
    assert told.read == 0 < told.listed
    without_logs = {
        "logs are not named": lambda path, size: None if "/." in path else (path, size),
        "logs are longer": lambda path, size: (path, size - ("/." in path)),
        "bases are others": lambda path, size: (path, size + ("/." not in path)),
        "bases are not named": lambda path, size: (path, size) if "/." in path else None,
    }
    try:
        for reason, change in without_logs.items():
            planner.answer = lambda own, asked, c=change: changed(own(asked), c)
            for _ in range(5):  # Hive's log may come late
                found = hive.ask(f"{sql} AND '{reason}' <> ''", {**ROWS, **FETCH})
                if found.listed == told.listed:
                    break
            assert found.rows == [] and found.listed == told.listed, reason
            assert found.read == (2 if "logs" in reason else 3), reason
    finally:
        planner.answer = None


@pytest.mark.parametrize(
    ("table", "handler"),
    [("cow_upserts", ""), ("mor_upserts_ro", ""), ("mor_upserts_rt", "Realtime")],
)
def test_the_storage_handler(
    hive: HookedHive, upserts: dict[str, TableName], table: str, handler: str
) -> None:
    """Hudi lists and merges, filters arrive whatever the settings."""
    base = table.removesuffix("_rt").removesuffix("_ro")
    synced = f"{upserts[base]}{table.removeprefix(base)}"
    kind = f"io.skipbridge.hive.BridgeHudi{handler}StorageHandler"
    handled = lay_handler_over(hive, synced, kind)
    for condition, read in (("id > 1000", 0), ("id = 1", 1), ("id IS NOT NULL", None)):
        answer = same_as_unhooked(hive, columns(handled, condition), FETCH)
        expected = hive.unhooked(columns(synced, condition), {**ROWS, **FETCH})
        assert sorted(map(repr, answer.rows)) == sorted(map(repr, expected))
        assert answer.read == (answer.listed if read is None else read)


@pytest.mark.parametrize(
    ("name", "column", "source", "unknown"),
    [
        ("cow_secondary_index", "name", "secondary_index", 2),  # of the commit that made the index
        ("cow_secondary_index_of_numbers", "n", "secondary_index", 2),
        ("cow_bloom_filters", KEY, "bloom_filters", 0),
        ("cow_record_index", KEY, "record_index", 0),
        ("cow_statistics", "n", "column_stats", 0),
    ],
)
def test_hudis_own_indexes_skip_files_before_one_of_ours_exists(
    hive: HookedHive, tmp_path: Path, name: str, column: str, source: str, unknown: int
) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=[name])
    table = register_table(hive, fixture, fixture.unpack(tmp_path))
    found = fixture.answers().snapshot.table([column])[column]
    held = [value for value in found.to_pylist() if value is not None]
    none = 999_983 if column == "n" else "none"
    every = len(fixture.answers().slices)

    def sql(*values: Any) -> str:
        texts = ", ".join(str(literal(value, found.type)) for value in values)
        return f"SELECT `{KEY}`, `{column}` FROM {table} WHERE `{column}` IN ({texts})"

    for attempt in range(ATTEMPTS):
        asked = hive.ask(f"{sql(none)} AND {attempt} >= 0", {**ROWS, **FETCH})
        assert asked.rows == []
        if (asked.read, asked.listed) == (unknown, every):
            break
    assert (asked.read, asked.listed) == (unknown, every)
    assert {scan.generation for scan in asked.scans} == {-1}, "an index of ours exists"
    log = hive.server.server.log.read_text("utf-8", errors="replace")
    assert f"skipbridge: {table}: files without a matching row by index: {{{source}=" in log
    some = [value for value in sorted(set(held)) if literal(value, found.type)][:6]
    for values in (*((value,) for value in some), (*some[:2], none)):
        rows = same_as_unhooked(hive, sql(*values), FETCH).rows
        assert len(rows) == sum(value in values for value in held), values


LAW = [f for f in few(hudi_fixtures()) if not keeps_schemas(f) and "first_commit_lost" not in f.id]


@pytest.mark.nightly
@pytest.mark.parametrize("fixture", [pytest.param(f, id=f.id) for f in LAW])
def test_the_hook_changes_no_rows(hive: HookedHive, fixture: HudiFixture, tmp_path: Path) -> None:
    name = make_table(hive, fixture, fixture.unpack(tmp_path))
    for suffix, answer in views(fixture).items():
        if answer.error is not None:
            continue
        for predicate in predicates(answer, fixture.id + suffix, 8):
            sql = f"SELECT * FROM {name}{suffix} WHERE {predicate}"
            if refused_by_hudi(hive, sql):
                break
            same_as_unhooked(hive, sql, FETCH)
