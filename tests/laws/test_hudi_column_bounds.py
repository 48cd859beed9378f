"""Hudi's own bounds of columns: no entry, right or wrong, loses a row, and right ones skip files.

The law: of random tables with random entries in ``column_stats``, a scan gives the rows that a scan
without pruning gives. A wrong entry is one that the conditions of
`bridge.table.hudi.files.column_bounds` refuse; its bounds exclude the file's rows.
"""

from __future__ import annotations

import concurrent.futures.thread
import datetime
import json
import random
import threading
from concurrent.futures import Future
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.errors import StorageFailure
from bridge.kernel.types import Kind
from bridge.table.hudi.files import column_bounds
from bridge.table.hudi.files.column_bounds import TESTED
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_column_stats import ColumnStats, Entry
from tests.support.hudi_fixtures import BUNDLES, HudiFixture, hudi_fixtures
from tests.support.hudi_tables import HudiTable
from tests.tiers import examples, seed

ROUNDS = examples(5, 40, 2000)
CONDITIONS = examples(9, 9, 40)
EPOCH = datetime.date(1970, 1, 1)
FIELDS = {
    "k": ["null", "int"],
    "l": ["null", "long"],
    "s": ["null", "string"],
    "d": ["null", {"type": "int", "logicalType": "date"}],
    "x": ["null", "double"],
}
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "t",
        "fields": [{"name": n, "type": t, "default": None} for n, t in FIELDS.items()],
    }
)
ARROW = pa.schema(
    [
        ("k", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("x", pa.float64()),
    ]
)
WRAPPERS = {"k": "IntWrapper", "l": "LongWrapper", "s": "StringWrapper", "d": "DateWrapper"}
KINDS = {"k": Kind.INTEGER, "l": Kind.BIGINT, "s": Kind.STRING, "d": Kind.DATE}
WITH_BOUNDS = [
    f for f in hudi_fixtures() if (f.path() / ".hoodie" / "metadata" / "column_stats").exists()
]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, these queries wait for the bounds."""
    monkeypatch.setattr(column_bounds, "PATIENCE", 300.0)


def time(n: int) -> str:
    return f"20260101000000{n:03}"


def values(luck: random.Random, column: str, count: int) -> list[Any]:
    base = luck.randrange(-40, 40)
    made: list[Any] = []
    for _ in range(count):
        value: Any = base + luck.randrange(4)
        if luck.random() < 0.1:
            value = None
        elif column == "s":
            value = f"{value:+04}" + luck.choice(("", "a", "é", "\ufb01", "\U0001f600"))
        elif column == "d":
            value = EPOCH + datetime.timedelta(days=400 * value)
        elif column == "x":
            value = luck.choice((float(value), float("nan"), -0.0))
        made.append(value)
    return made


def as_java_compares(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def stored(column: str, held: list[Any]) -> tuple[str, Any, Any] | None:
    """The bounds that a writer notes; of texts as if each were a row group of its own."""
    real = [v for v in held if v is not None]
    if not real:
        return None
    ordered = sorted(real, key=as_java_compares) if column == "s" else sorted(real)
    if column == "d":
        ordered = [(v - EPOCH).days for v in ordered]
    return WRAPPERS[column], ordered[0], ordered[-1]


def entries(luck: random.Random, file: str, held: pa.Table, known: frozenset[Kind]) -> list[Entry]:
    """Right entries of a file, and wrong ones of each kind that is to be refused.

    Args:
        known: the types of which the writer is believed.
    """
    made = []
    for column in WRAPPERS:
        right = stored(column, held[column].to_pylist())
        nulls = held[column].null_count
        far: Any = "~" if column == "s" else 20_000
        wrong = (WRAPPERS[column], far, far)
        if KINDS[column] not in known:
            made.append(Entry("", file, column, wrong, nulls=nulls))
            continue
        match luck.randrange(14):
            case 0:  # none
                continue
            case 1:  # of another file
                made.append(Entry("", f"of-{file}", column, wrong, key_file=file))
            case 2:  # of another column
                made.append(Entry("", file, column, wrong, said_column="other"))
            case 3:  # of another type
                wrapper = "IntWrapper" if column == "s" else "StringWrapper"
                odd: Any = 20_000 if column == "s" else "~"
                made.append(Entry("", file, column, (wrapper, odd, odd)))
            case 4:  # deleted
                made.append(Entry("", file, column, wrong, deleted=True))
            case 5 if column == "s":  # a row group lacks bounds, and counts as NULLs
                made.append(Entry("", file, column, wrong, nulls=nulls + 1))
            case 6:  # the column has a double's bounds
                made.append(Entry("", file, column, ("DoubleWrapper", 2e4, 2e4)))
            case _:
                made.append(Entry("", file, column, right, nulls=nulls))
    made.append(Entry("", file, "x", ("DoubleWrapper", 2e4, 2e4)))
    return made


def make_table(luck: random.Random, root: Path) -> None:
    """A table of a few files, each of its own commit, and entries about them."""
    (version, fields), known = luck.choice(sorted(TESTED.items(), key=lambda each: each[0][0]))
    added = sorted(fields - min((fields for _, fields in TESTED), key=len))
    if luck.random() < 0.3:
        added, known = luck.choice([[*added, "isNew"], added[1:] or ["valueType"]]), frozenset()
    table = HudiTable(
        root,
        version,
        "COPY_ON_WRITE",
        hoodie__table__recordkey__fields="k",
        hoodie__table__metadata__partitions="column_stats",
        hoodie__populate__meta__fields="false",
    )
    made: list[list[Entry]] = []
    for at in range(luck.randrange(2, 7)):
        file = table.base("", f"file{at}-0", time(at))
        rows = luck.randrange(1, 6)
        held = pa.table(
            {name: pa.array(values(luck, name, rows), ARROW.field(name).type) for name in FIELDS}
        )
        pq.write_table(held, root / file.name)
        written = replace(file, size=(root / file.name).stat().st_size)
        table.commit(time(at), [written], action="commit", schema=SCHEMA)
        made.append(entries(luck, file.name, held, known))
    stats = ColumnStats(root, version, added)
    first = luck.randrange(len(made))
    stats.base(time(first), [e for each in made[: first + 1] for e in each])
    for at in range(first + 1, len(made)):
        stats.log(time(at), made[at], base=time(first), done=True)
    if luck.random() < 0.5:  # a second word about a file, which contradicts or repeats the first
        again = luck.choice(made)
        stats.log(time(len(made)), again, luck.randrange(2), base="", done=luck.random() < 0.5)


def conditions(luck: random.Random, whole: pa.Table, count: int) -> list[str]:
    made = []
    while len(made) < count:
        column = luck.choice([f.name for f in whole.schema if not f.name.startswith("_")])
        held = [v for v in whole[column].to_pylist() if v is not None and v == v]
        if not held or isinstance(held[0], bytes | list | dict | datetime.datetime):
            continue
        value = luck.choice(held)
        if isinstance(value, bool):
            text = str(value)
        elif isinstance(value, str):
            cut = value[: luck.randrange(1, 6)] if luck.random() < 0.3 else value
            text = "'" + cut.replace("'", "''") + "'"
        elif isinstance(value, datetime.date):
            text = f"DATE '{value + datetime.timedelta(days=luck.choice((-1, 0, 0, 1)))}'"
        elif isinstance(value, int):
            text = str(value + luck.choice((-1, 0, 0, 1)))
        elif isinstance(value, float):
            text = f"{value!r}e0" if "e" not in repr(value) and "inf" not in repr(value) else "1e0"
        else:
            continue
        op = luck.choice(("=", "=", "<", ">", "<=", ">=", "<>", "IS NULL", "IN", "NOT"))
        made.append(
            {
                "IS NULL": f'"{column}" IS NULL',
                "IN": f'"{column}" IN ({text})',
                "NOT": f'NOT ("{column}" < {text})',
            }.get(op, f'"{column}" {op} {text}')
        )
    return [luck.choice((a, f"{a} OR {b}", f"{a} AND {b}")) for a, b in pairwise(made)]


def test_no_entry_loses_a_row(session: bridge.Session, tmp_path: Path) -> None:
    luck = random.Random(seed(40))
    skipped = 0
    for at in range(ROUNDS):
        root = tmp_path / str(at)
        make_table(luck, root)
        table = session.table(str(root))
        whole = table.scan().to_arrow()
        for condition in conditions(luck, whole, CONDITIONS):
            scan = table.scan(condition)
            every = table.scan(condition, pruning=False).to_arrow()
            assert encode_table(scan.to_arrow()) == encode_table(every), (at, condition)
            report = scan.explain()
            skipped += report.files_total - report.files_kept
    assert skipped > ROUNDS


@pytest.mark.parametrize("fixture", WITH_BOUNDS[:: examples(5, 1, 1)], ids=lambda f: f.id)
def test_no_entry_of_hudis_loses_a_row(fixture: HudiFixture, session: bridge.Session) -> None:
    luck = random.Random(fixture.id)
    table = session.table(str(fixture.path()))
    reads: list[dict[str, Any]] = [{}, {"read_optimized": True}]
    reads += [{"version": each.instant} for each in fixture.answers().as_of[: examples(1, 9, 9)]]
    for read in reads:
        try:
            whole = table.scan(**read).to_arrow()
        except bridge.BridgeError:
            continue  # cleaned, or refused as a whole
        for condition in conditions(luck, whole, CONDITIONS) if whole.num_rows else []:
            kept = table.scan(condition, **read).to_arrow()
            every = table.scan(condition, pruning=False, **read).to_arrow()
            assert encode_table(kept) == encode_table(every), (read, condition)


@pytest.mark.parametrize("bundle", BUNDLES)
def test_they_skip_files_before_an_index_exists(
    bundle: str, session: bridge.Session, tmp_path: Path
) -> None:
    (fixture,) = hudi_fixtures(bundle=bundle, names=["cow_metadata"])
    table = session.table(str(fixture.unpack(tmp_path)))
    for condition, kept in {
        "id = 1": 1,
        "id > 100": 0,
        "name = 'n4'": 1,
        "id = 3 OR name = 'zz'": 1,
        "ts >= 2": 2,
        "id IS NULL": 2,
        "id IS NOT NULL": 2,
        "price > 100": 2,
    }.items():
        report = table.scan(condition).explain()
        assert (report.files_total, report.files_kept) == (2, kept), condition
        if kept < 2:
            assert report.stages[-1].index == "column_stats"
    table.index.build()
    report = table.scan("id = 1").explain()
    assert report.files_kept == 1
    assert "column_stats" not in [stage.index for stage in report.stages]


def test_what_a_writer_gets_wrong_of_row_groups_is_not_believed(session: bridge.Session) -> None:
    """Hudi's bounds of ``t`` lack a row group, and those of ``s`` end in Java's greatest text."""
    (fixture,) = hudi_fixtures(names=["cow_statistics_of_row_groups"], bundle="1.0.2")
    table = session.table(str(fixture.path()))
    for condition, kept in {
        f"t = '{'z' * 5000}'": 2,
        "t = 'a'": 2,
        "s = 'm\U0001f600'": 2,
        "s > 'm\ufb01'": 2,
        "s = 'a'": 0,
        "s >= 'n'": 2,
        "s > 'n'": 0,
        "d = DATE '1970-08-18'": 2,
        "d > DATE '1970-08-18'": 0,
    }.items():
        scan = table.scan(condition)
        assert scan.explain().files_kept == kept, condition
        every = table.scan(condition, pruning=False).to_arrow()
        assert encode_table(scan.to_arrow()) == encode_table(every), condition


def test_slices_with_logs_are_read(session: bridge.Session, tmp_path: Path) -> None:
    for fixture in hudi_fixtures(names=["mor_metadata"]):
        table = session.table(str(fixture.unpack(tmp_path / fixture.bundle)))
        report = table.scan("id = 12345").explain()
        assert report.files_kept == report.files_total > 0
        assert table.scan("id = 12345", read_optimized=True).explain().files_kept == 0


def test_damage_is_named_and_ignored(session: bridge.Session, tmp_path: Path) -> None:
    (fixture,) = hudi_fixtures(bundle="1.2.0", names=["cow_metadata"])
    root = fixture.unpack(tmp_path)
    for log in (root / ".hoodie/metadata/column_stats").glob(".col-stats*"):
        content = log.read_bytes()
        log.write_bytes(content[: len(content) // 2] + b"\0" * 9 + content[len(content) // 2 + 9 :])
    report = session.table(str(root)).scan("id = 1").explain()
    assert report.files_kept == report.files_total == 2
    (problem,) = [reason for reason in report.not_used if reason.index == "column_stats"]
    assert problem.reason == "FILE_CORRUPT"


def test_a_large_table_is_read_beside_its_queries(
    session: bridge.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No query waits for entries of many files; the first that finds them uses them."""
    beside(session, tmp_path, monkeypatch, "_AT_ONCE", 1)


def test_a_slow_store_is_read_beside_its_queries(
    session: bridge.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(session, tmp_path, monkeypatch, "PATIENCE", 0.01)


def test_a_scan_of_many_batches_waits_once(
    session: bridge.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch asks for the column again; together they wait no longer than one does."""
    monkeypatch.setattr(column_bounds, "PATIENCE", 0.05)
    (fixture,) = hudi_fixtures(bundle="1.0.2", names=["cow_metadata"])
    table = session.table(str(fixture.unpack(tmp_path)))
    reading, waits = threading.Event(), []

    class Waited(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.append(timeout)
            return super().result(timeout)

    monkeypatch.setattr(concurrent.futures.thread._base, "Future", Waited)
    whole = column_bounds.metadata_timeline

    def late(*asked: Any) -> Any:
        reading.wait(60)
        return whole(*asked)

    monkeypatch.setattr(column_bounds, "metadata_timeline", late)
    for _ in range(3):
        assert table.scan("id = 1").explain().files_kept == 2
    reading.set()
    asked = [wait for wait in waits if wait is not None]
    assert len(asked) >= 3 and sum(asked) <= 0.05


def beside(
    session: bridge.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: float
) -> None:
    """A bound is so low that the first query goes on without, and a later one has them."""
    monkeypatch.setattr(column_bounds, name, most)
    (fixture,) = hudi_fixtures(bundle="1.0.2", names=["cow_metadata"])
    table = session.table(str(fixture.unpack(tmp_path)))
    reading = threading.Event()
    whole = column_bounds.metadata_timeline

    def late(*asked: Any) -> Any:
        reading.wait(60)
        return whole(*asked)

    monkeypatch.setattr(column_bounds, "metadata_timeline", late)
    assert table.scan("id = 1").explain().files_kept == 2
    reading.set()
    while table.scan("id = 1").explain().files_kept == 2:
        assert reading.wait(0.01)
    assert table.scan("id = 1").explain().files_kept == 1


def test_a_failure_of_storage_is_named_and_asked_again(
    session: bridge.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fixture,) = hudi_fixtures(bundle="0.15.0", names=["cow_metadata"])
    table = session.table(str(fixture.unpack(tmp_path)))

    def fails(*asked: Any) -> Any:
        raise StorageFailure("no answer", "try again")

    with monkeypatch.context() as patch:
        patch.setattr(column_bounds, "metadata_timeline", fails)
        report = table.scan("id = 1").explain()
    assert report.files_kept == report.files_total == 2
    assert "column_stats" in [reason.index for reason in report.not_used]
    report = table.scan("id = 1").explain()
    assert report.files_kept == 1
    assert "column_stats" not in [reason.index for reason in report.not_used]
