"""Hudi's secondary indexes: no entry loses a row, and right ones skip files.

The law: of tables that each release of Hudi wrote by random inserts, upserts, late and dead ones,
deletes, clusterings and compactions, a scan for values gives the rows that a scan without pruning
gives, also where some files of the index are lost.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.types import Kind, Value
from bridge.table.hudi.files import metadata_entries
from bridge.table.hudi.files.base_files import as_texts
from bridge.table.hudi.files.secondary_index import split_entry
from tests.support.hudi_fixtures import HudiFixture, few, hudi_fixtures
from tests.support.hudi_keys import compare, require_all_rows, without_each
from tests.tiers import examples

pytestmark = pytest.mark.usefixtures("patient")

CONDITIONS = examples(8, 20, 400)
ABSENT = {
    "cow_secondary_index": ("name", "none"),
    "cow_secondary_index_of_duplicates": ("name", "none"),
    "cow_secondary_index_of_numbers": ("n", 99),
    "cow_secondary_index_of_dates": ("n", datetime.date(1970, 1, 2)),
}
"""The column of each table's index, and a value that it does not have."""
TABLES = [fixture for name in ABSENT for fixture in hudi_fixtures(names=[name])]


def values(root: Path) -> dict[str, list[Any]]:
    """The values of all files, also of those that were replaced."""
    found: dict[str, set[Any]] = {"id": set(), "name": {"\0", "", "none"}, "n": set()}
    for path in root.glob("2024*/*.parquet"):
        for name, held in pq.ParquetFile(path).read(list(found)).to_pydict().items():
            found[name].update(each for each in held if each is not None)
    dated = any(isinstance(each, datetime.date) for each in found["n"])
    found["n"].update(
        (datetime.date(1970, 1, 2), datetime.date(1066, 10, 14)) if dated else (0, 99)
    )
    return {name: sorted(each) for name, each in found.items()}


def literal(value: Any) -> str:
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def is_old(value: Any) -> bool:
    """Whether it is a day about which calendars may differ."""
    return isinstance(value, datetime.date) and value.year < 1900


def ask_for(held: dict[str, list[Any]]) -> Callable[[random.Random], str]:
    def one(luck: random.Random) -> str:
        name = luck.choice(("id", "name", "name", "n", "n"))
        some = [literal(luck.choice(held[name])) for _ in range(luck.choice((1, 1, 3)))]
        return compare(luck, name, some)

    def ask(luck: random.Random) -> str:
        first, second = one(luck), one(luck)
        return luck.choice((first, first, f"{first} AND {second}", f"{first} OR {second}"))

    return ask


@pytest.mark.parametrize("fixture", TABLES, ids=lambda f: f.id)
def test_no_entry_loses_a_row(fixture: HudiFixture, session: bridge.Session) -> None:
    luck, root = random.Random(fixture.id), fixture.path()
    table, held = session.table(str(root)), values(root)
    skipped = require_all_rows(table, luck, ask_for(held), CONDITIONS)
    assert skipped or fixture.bundle == "1.0.2" or fixture.name.endswith("duplicates")
    require_all_rows(table, luck, ask_for(held), CONDITIONS, read_optimized=True)
    for each in fixture.answers().as_of[: examples(1, 2, 9)]:
        require_all_rows(table, luck, ask_for(held), CONDITIONS, version=each.instant)


@pytest.mark.parametrize("fixture", few(TABLES), ids=lambda f: f.id)
def test_a_lost_file_of_the_index_loses_no_row(
    fixture: HudiFixture, session: bridge.Session, tmp_path: Path
) -> None:
    luck, root = random.Random(fixture.id), fixture.unpack(tmp_path)
    held = values(root)
    files = sorted(root.glob(".hoodie/metadata/secondary_index_*/*"))
    assert files
    some = luck.sample(files, min(len(files), examples(1, 3, 99)))
    for _, without in without_each(root, some):
        require_all_rows(session.table(str(without)), luck, ask_for(held), CONDITIONS)


@pytest.mark.parametrize(
    "fixture",
    [f for f in TABLES if f.bundle == "1.2.0" and not f.name.endswith("duplicates")],
    ids=lambda f: f.id,
)
def test_values_skip_files_before_an_index_exists(
    fixture: HudiFixture, session: bridge.Session
) -> None:
    root, (column, absent) = fixture.path(), ABSENT[fixture.name]
    table = session.table(str(root))
    held = {
        s.base_file: set(
            pq.ParquetFile(root / s.partition / str(s.base_file)).read()[column].to_pylist()
        )
        for s in fixture.answers().slices
    }
    none = literal(absent)
    unknown = table.scan(f"{column} = {none}").explain().files_kept
    assert unknown <= len(held) - 3
    known = 0
    for value in set().union(*held.values()) - {None}:
        report = table.scan(f"{column} = {literal(value)}").explain()
        holds = sum(value in each for each in held.values())
        assert holds <= report.files_kept <= (len(held) if is_old(value) else holds + unknown)
        known += report.files_kept < len(held)
        if report.files_kept < len(held):
            assert report.stages[-1].index == "secondary_index"
    assert known > 5
    for asked in (f"{column} IS NULL", f"{column} <> {none}", f"{column} = {none} OR ts > 0"):
        assert table.scan(asked).explain().files_kept == len(held), asked
    assert table.scan(f"{column} = {none} AND ts > 0").explain().files_kept == unknown
    several = table.scan(f"{column} = {none} OR id = 'none'").explain()
    assert several.files_kept == len(held), "two indexes answer no OR together"


def test_an_index_of_hudi_1_0_is_named_and_not_used(session: bridge.Session) -> None:
    (fixture,) = hudi_fixtures(bundle="1.0.2", names=["cow_secondary_index"])
    report = session.table(str(fixture.path())).scan("name = 'none'").explain()
    assert report.files_kept == report.files_total
    (problem,) = [r for r in report.not_used if r.index == "secondary_index"]
    assert "has the version None in a table of version 8" in problem.detail


def test_a_key_of_two_partitions_makes_all_unknown(session: bridge.Session) -> None:
    """An update in one partition takes the entry of the value that the other one still holds."""
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_secondary_index_of_duplicates"])
    scan = session.table(str(fixture.path())).scan("name = 'old'")
    assert scan.to_arrow().num_rows == 1
    report = scan.explain()
    assert report.files_kept == report.files_total
    (problem,) = [r for r in report.not_used if r.index == "secondary_index"]
    assert "does not tell the keys of all files" in problem.detail


def test_definitions_that_are_lost_or_of_another_version(
    session: bridge.Session, tmp_path: Path
) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_secondary_index"])
    root = fixture.unpack(tmp_path)
    path = root / ".hoodie/.index_defs/index.json"
    found = json.loads(path.read_text())
    (name,) = (n for n in found["indexDefinitions"] if n.startswith("secondary_index_"))

    def ask(change: str | None) -> Any:
        path.unlink(missing_ok=True)
        if change is not None:
            path.write_text(change)
        moved = root.rename(tmp_path / f"{random.random()}")
        report = session.table(str(moved)).scan("name = 'none'").explain()
        moved.rename(root)
        return report

    assert ask(json.dumps(found)).files_kept < ask(None).files_total
    for change in (None, "{", "[]", json.dumps({"indexDefinitions": {name: 1}})):
        report = ask(change)
        assert report.files_kept == report.files_total
        assert [r for r in report.not_used if r.index == "secondary_index"], change
    found["indexDefinitions"][name]["version"] = "V3"
    report = ask(json.dumps(found))
    assert report.files_kept == report.files_total
    assert "has the version V3" in str(report.not_used)


def test_entries_are_split_as_they_were_joined() -> None:
    luck = random.Random(1)

    def escaped(text: bytes) -> bytes:
        return b"".join(b"\\" * (each in b"\\$\0") + bytes([each]) for each in text)

    for _ in range(2000):
        value, key = (bytes(luck.choices(b"\\$\0ab\n", k=luck.randrange(6))) for _ in "vk")
        assert split_entry(escaped(value) + b"$" + escaped(key)) == (value, key)
    for odd in (b"", b"a", b"a$b$c", b"a\\$b", b"a$b\\"):
        assert split_entry(odd) is None


def test_more_entries_than_are_read(
    session: bridge.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_entries, "MOST", 3)
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_secondary_index"])
    report = session.table(str(fixture.unpack(tmp_path))).scan("name = 'none'").explain()
    assert report.files_kept == report.files_total
    assert "LIMIT_EXCEEDED" in {r.reason for r in report.not_used}


@pytest.mark.parametrize(
    ("kind", "asked", "texts"),
    [
        (Kind.STRING, (b"a$\\\0", b"5"), [b"a$\\\0", b"5"]),
        (Kind.STRING, (b"",), [b""]),
        (Kind.STRING, (b"\xff",), None),
        (Kind.STRING, (b"\xed\xa0\x80",), None),
        (Kind.BIGINT, (-30000, 5), [b"-30000", b"5"]),
        (Kind.DATE, (0, -25567), [b"0", b"-25567"]),
        (Kind.DATE, (0, -25568), None),
    ],
)
def test_what_java_may_have_written_otherwise_is_not_asked_for(
    kind: Kind, asked: tuple[Value, ...], texts: list[bytes] | None
) -> None:
    """Bytes that are no text, and days before 1900."""
    assert as_texts(asked, kind) == texts
