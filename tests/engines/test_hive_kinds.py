"""HiveServer2 with the hooks over tables with every kind of index: it reads the files that Trino
reads, and its log says what each index excluded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.expression.parsing.text import parse_where
from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, STRING, TRINO
from bridge.planner.request import ScanRequest
from bridge.service._gen import ttypes
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.everything import CASES, write_everything
from tests.engines.hive_stack import (
    TEZ,
    HookedHive,
    PlannerUnderTest,
    Select,
    age,
    hooked_hive,
    register,
)
from tests.engines.test_hive_predicates import in_hive

pytestmark = pytest.mark.full
AUDITED = TableName("kinds", "audited")
EVERYTHING = TableName("kinds", "everything")
FILES = 41
_BY_INDEX = re.compile(r"skipbridge: (\S+): files without a matching row by index: (\S.*)$", re.M)
_UNNAMED = re.compile(r"skipbridge: (\S+): (\d+) of these files are read, because")
_KINDS = (
    *(("values", c) for c in ("name", "code", "flag", "maybe", "day", "st.a", "st.b")),
    *(("bloom", c) for c in ("id", "raw", "num", "name", "dec")),
    *(("expression", text) for text in ("upper(name)", "year(day)")),
)
# Where Hive reads more files than Trino; docs/reference/hive.md has the reasons.
EXEMPT = {
    "r > REAL '180'",  # NaN is greater
    "NOT (d > 10)",  # the same, and the condition has a cast of a double to text
    "is_nan(d)",  # asked as a cast of a double to text
    "d = 0",  # with -0.0, asked as a cast to text
    "(q = 1 OR id > 740) AND small < 500",  # a partition key and a column in one OR
}


@pytest.fixture(scope="module")
def world(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache")) as (hive, planner):
        hive.forget("kinds")
        yield hive, planner
        hive.forget("kinds")


def build(hive: HookedHive, name: TableName, kinds: tuple[tuple[str, str], ...]) -> None:
    config = Config({"metastore.uri": Setting(hive.metastore_uri, "test")})
    report = index_table(
        config,
        str(name),
        nan="scan",
        local=True,
        asked=RequestedIndexes(kinds),
        progress=lambda done, total: None,
        say=lambda text: None,
    )
    assert not report["failed"], report


@pytest.fixture(scope="module")
def audited(
    world: tuple[HookedHive, PlannerUnderTest], tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Bounds of v say nothing: each file has texts before and after all others."""
    root = tmp_path_factory.mktemp("audited") / "table"
    root.mkdir()
    for i in range(FILES):
        rows = {
            "k": pa.array(range(10 * i, 10 * i + 3), pa.int64()),
            "v": ["A", f"a{i % 5 if i < 40 else 3}", "z"],
            "c": ["", f"Alpha{i}", "ZETA"],
        }
        pq.write_table(pa.table(rows), root / f"f{i:02d}.parquet")
    age(root)
    columns = (Column("k", BIGINT), Column("v", STRING), Column("c", STRING))
    hive, _ = world
    table = CatalogTable(AUDITED, columns, (), f"file://{root}")
    register(hive.metastore_uri, AUDITED, table, [Partition("", (), table.location)])
    build(hive, AUDITED, (("bloom", "v"), ("bloom", "lower(c)"), ("values", "c")))
    return str(AUDITED)


@pytest.mark.parametrize(
    ("condition", "files", "index"),
    [
        ("v = 'a3'", 9, "bloom(v)"),
        ("v IN ('a3', 'a4')", 17, "bloom(v)"),
        ("lower(c) = 'alpha7'", 1, "values(c)"),
        ("c LIKE '%pha1_'", 10, "values(c)"),
        ("c NOT LIKE '%a%' AND c > 'a'", 0, "minmax"),
        ("upper(substr(c, 1, 6)) = 'ALPHA3'", 11, "values(c)"),
        ("substr(c, 6) = '12' OR v = 'b'", 1, "bloom(v)"),
        ("k < 205 AND v = 'a3'", 4, "minmax"),
    ],
)
@pytest.mark.parametrize("tez", [False, True], ids=["fetch", "tez"])
def test_every_kind_leaves_out_files_and_the_log_says_which(
    world: tuple[HookedHive, PlannerUnderTest],
    audited: str,
    condition: str,
    files: int,
    index: str,
    tez: bool,
) -> None:
    hive, _ = world
    sql = f"SELECT k, v, c FROM {audited} WHERE {condition}"
    before = hive.server.server.log.stat().st_size
    answer = hive.ask(sql, TEZ) if tez else hive.ask(sql)
    said = _BY_INDEX.findall(_log(hive, before))
    assert sorted(answer.rows) == sorted(hive.unhooked(sql))
    assert not answer.warnings and (answer.read, answer.listed) == (files, FILES)
    ((table, counts),) = said
    assert table == audited and f"{index}=" in counts
    assert sum(map(int, re.findall(r"=(\d+)", counts))) == FILES - files


def test_an_answer_that_is_too_long_names_first_what_bounds_exclude(
    world: tuple[HookedHive, PlannerUnderTest], audited: str
) -> None:
    hive, planner = world

    def short(own: Select, request: ttypes.PlanRequest) -> ttypes.SkippableFiles:
        request.options["max_answer_bytes"] = "1300"
        return own(request)

    sql = f"SELECT k FROM {audited} WHERE k < 205 AND v = 'a3'"
    before = hive.server.server.log.stat().st_size
    planner.answer = short
    try:
        answer = hive.ask(sql, {"skipbridge.hook.refresh.ms": "400"})
    finally:
        planner.answer = None
    ((_, unnamed),) = _UNNAMED.findall(_log(hive, before))
    assert sorted(answer.rows) == sorted(hive.unhooked(sql))
    named = FILES - answer.read
    assert 0 < named < FILES - 4 and int(unnamed) == FILES - 4 - named
    assert {s.listed for s in answer.scans} == {FILES}


def test_hive_reads_the_files_that_trino_reads(
    world: tuple[HookedHive, PlannerUnderTest], tmp_path: Path
) -> None:
    hive, planner = world
    made = write_everything(tmp_path / "table", EVERYTHING)
    for empty in (tmp_path / "table").rglob("empty.parquet"):  # a listing of Hive's counts them
        empty.unlink()
    age(tmp_path / "table")
    register(hive.metastore_uri, EVERYTHING, made.table, made.partitions)
    build(hive, EVERYTHING, _KINDS)
    trinos = planner.service.handler._planner
    more = {}
    for case in CASES:
        expression, _ = parse_where(case.sql)
        plan = trinos.plan(ScanRequest(EVERYTHING, expression, semantics=TRINO))
        list(plan.batches())
        wanted = plan.report().files_kept
        answer = hive.ask(f"SELECT id FROM {EVERYTHING} WHERE {in_hive(case)}")
        expected = sorted(made.rows.filter(case.arrow).column("id").to_pylist())
        assert answer.ids == expected and not answer.warnings, case.sql
        if answer.read > wanted:
            more[case.sql] = (answer.read, wanted)
    assert set(more) == EXEMPT, more
    assert len(EXEMPT) <= 12


def _log(hive: HookedHive, begin: int) -> str:
    with hive.server.server.log.open("rb") as log:
        log.seek(begin)
        return log.read().decode("utf-8", "replace")
