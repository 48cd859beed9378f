"""`index report` over tables whose right advice is known, and the log it takes advice from."""

from __future__ import annotations

import datetime as dt
import json
import os
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.clustering.commands import run as cluster
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.expression.parsing.text import parse_where
from bridge.index.kinds.registry import kind
from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.report import _indexes, report_index
from bridge.indexing.table import describe_index, index_table, show_index_to_planners
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, STRING
from bridge.planner.answers.system_tables import COLUMNS, system_table_rows
from bridge.planner.predicate_log import PredicateLog, read_log
from bridge.planner.reports.effectiveness import ColumnEffect, Effectiveness
from bridge.planner.reports.effectiveness_text import effectiveness_text
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import planner_of
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import Column
from tests.support.lake import NAME, Lake, age, drained

FILES, ROWS = 40, 50


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """day: sorted; id: random; kind: one value; word: sorted text; half: half NULL."""
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "t"
    made.mkdir()
    rng = np.random.default_rng(1)
    for n in range(FILES):
        table = pa.table(
            {
                "day": np.arange(n * ROWS, (n + 1) * ROWS),
                "id": rng.integers(0, 10**12, ROWS),
                "kind": pa.array([7] * ROWS, pa.int32()),
                "word": [f"w{n:03d}{i:02d}" for i in range(ROWS)],
                "half": pa.array([n if n % 2 else None] * ROWS, pa.int64()),
            }
        )
        pq.write_table(table, made / f"f{n:03d}.parquet")
        age(made / f"f{n:03d}.parquet")
    return made


def config(log: Path | None = None, **settings: str) -> Config:
    values = {key.replace("__", "."): Setting(text, "test") for key, text in settings.items()}
    if log is not None:
        values["planner.predicate_log"] = Setting(str(log), "test")
    return Config(values)


def build(directory: Path, *kinds: tuple[str, str]) -> None:
    index_table(
        config(), str(directory), local=True, asked=RequestedIndexes(kinds=kinds),
        progress=lambda done, total: None, say=lambda text: None,
    )  # fmt: skip


def ask(directory: Path, settings: Config, *texts: str) -> None:
    storage = open_storage()
    catalog = DirectoryCatalog(storage, f"file://{directory}")
    planner = planner_of(settings, catalog, storage)
    for text in texts:
        plan = planner.plan(ScanRequest(catalog.name, parse_where(text)[0]))
        drained(plan)
        plan.close()
        plan.close()


def columns(found: Effectiveness) -> dict[str, ColumnEffect]:
    return {column.name: column for column in found.columns}


def advice(found: Effectiveness) -> dict[str, str]:
    return {a.kind: a.on for a in found.advice}


def test_members_of_a_struct_are_told_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "t"
    made.mkdir()
    for n in range(4):
        who = [{"name": "a", "Age": n, "deep": {"er": n}}]
        rows = pa.table({"who": who, "list": [[n]]})
        pq.write_table(rows, made / f"{n}.parquet")
        age(made / f"{n}.parquet")
    build(made)
    by = columns(report_index(config(), str(made)))
    assert sorted(by) == ["list", "who.age", "who.deep.er", "who.name"]
    assert by["who.age"].keeps[0] == by["who.deep.er"].keeps[0] == 0.25
    assert by["who.name"].coverage == 1 and by["list"].coverage == 0
    assert all(column.size > 0 for column in by.values())


def test_a_column_without_bounds_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "t"
    made.mkdir()
    moments = pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns"))
    rows = pa.table({"x": [1], "at": moments, "list": [[1]]})
    pq.write_table(rows, made / "0.parquet", use_deprecated_int96_timestamps=True)
    age(made / "0.parquet")
    build(made)
    (told,) = [a for a in report_index(config(), str(made)).advice if a.kind == "unknown"]
    assert told.on == "at, list" and "no bounds" in told.why


def test_what_is_sorted_and_what_is_not(directory: Path) -> None:
    build(directory)
    found = report_index(config(), str(directory))
    by = columns(found)
    assert (found.files, found.unknown_files, found.scans) == (FILES, 0, 0)
    assert by["day"].overlap == 0 and by["day"].depth == 1 and by["day"].deepest == 1
    assert by["day"].keeps[0] == pytest.approx(1 / FILES)
    assert by["day"].keeps[2] == pytest.approx(0.1, abs=0.06)
    assert by["word"].overlap == 0
    assert by["id"].overlap > 0.8 and by["id"].keeps[0] > 0.8
    assert by["kind"].constant and by["kind"].overlap == 1
    assert by["half"].coverage == 1 and by["half"].depth == 1
    assert by["id"].size > 0 and found.size > sum(c.size for c in by.values())
    assert advice(found)["log"] == found.table
    assert "cluster" not in advice(found)


def test_a_random_column_that_queries_ask_for(directory: Path, tmp_path: Path) -> None:
    build(directory)
    log = tmp_path / "log" / "predicates"
    ask(directory, config(log), *["id = 5 AND day > 3"] * 3, "day = 70", "id > 5 AND id < 99")
    found = report_index(config(log), str(directory))
    assert found.scans == 5
    assert columns(found)["id"].asked == {"<": 1, "=": 3, ">": 1}
    assert advice(found)["cluster"] == "id"
    assert advice(found)["bloom"] == "id"
    how = next(a.how for a in found.advice if a.kind == "bloom")
    assert how == f"skipbridge index build {directory} --bloom id"


def test_a_column_that_a_filter_answers_is_not_to_be_sorted_by(
    directory: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log" / "predicates"
    build(directory)
    ask(directory, config(log), *[f"id = {v}" for v in range(5)])
    assert advice(report_index(config(log), str(directory)))["cluster"] == "id"
    build(directory, ("bloom", "id"))
    found = advice(report_index(config(log), str(directory)))
    assert "cluster" not in found and "bloom" not in found
    ask(directory, config(log), *["id > 5 AND id < 99"] * 20)
    assert advice(report_index(config(log), str(directory)))["cluster"] == "id"


def test_a_sorted_column_needs_no_advice(directory: Path, tmp_path: Path) -> None:
    build(directory)
    log = tmp_path / "log"
    ask(directory, config(log), *["day BETWEEN 100 AND 120"] * 5, "word = 'w00301'")
    found = report_index(config(log), str(directory))
    assert not {"cluster", "bloom", "log", "refresh"} & set(advice(found))


def test_dead_weight_and_what_earns_its_place(directory: Path, tmp_path: Path) -> None:
    build(directory, ("values", "day"), ("values", "id"))
    log = tmp_path / "log"
    ask(directory, config(log), *[f"id = {5 * 10**11 + n}" for n in range(25)])
    found = report_index(config(log), str(directory))
    by = {index.name: index for index in found.indexes}
    assert by["values(id)"].scans > 0 and by["values(id)"].skipped > 0
    assert by["values(id)"].coverage == by["minmax"].coverage == 1
    assert by["values(day)"].scans == 0
    dead = [a.on for a in found.advice if a.kind == "dead"]
    assert dead == ["values(day)"]
    assert "bloom" not in advice(found)  # values(id) serves already
    show_index_to_planners(config(), str(directory), "values(id)", visible=False)
    hidden = report_index(config(log), str(directory))
    assert advice(hidden)["reveal"] == "values(id)"


def test_files_that_the_index_does_not_know(directory: Path) -> None:
    build(directory)
    pq.write_table(pa.table({"day": [1]}), directory / "new.parquet")
    found = report_index(config(), str(directory))
    assert found.unknown_files == 1
    assert found.advice[0].kind == "refresh"


def test_clustered_files_are_reported_as_they_are_read(directory: Path) -> None:
    build(directory, ("bloom", "id"))
    before = columns(report_index(config(), str(directory)))
    strategy = Strategy("linear", ("id",), "range", Limits(target=1 << 14))
    made = cluster.schedule(config(), str(directory), strategy, lambda text: None)
    assert made["old_files"] == FILES
    done = cluster.run(
        config(), str(directory), made["instant"], local=True, progress=lambda *_: None
    )
    found = report_index(config(), str(directory))
    assert (found.clustered_files, found.replaced_files) == (done["new_files"], FILES)
    assert found.files == done["new_files"] > 5 and found.unknown_files == 0
    by = columns(found)
    assert before["id"].overlap > 0.8 and by["id"].overlap < 0.1
    assert before["day"].overlap == 0 and by["day"].overlap > 0.5
    assert {index.name: index.coverage for index in found.indexes} == {"minmax": 1, "bloom(id)": 1}
    shown = describe_index(config(), str(directory))
    assert (shown["clustered_files"], shown["replaced_files"]) == (done["new_files"], FILES)
    assert f"({found.clustered_files} clustered, for {FILES})" in effectiveness_text(found)


def test_the_log_is_private_bounded_and_without_values(directory: Path, tmp_path: Path) -> None:
    build(directory)
    log = tmp_path / "private" / "log"
    settings = config(log, planner__predicate_log_bytes="4KiB")
    ask(directory, settings, *["word = 'secretvalue' AND day < 123454321"] * 60)
    ask(directory, settings, "true")  # asks about nothing
    files = sorted(log.parent.iterdir())
    assert [f.name for f in files] == ["log", "log.1"]
    assert sum(f.stat().st_size for f in files) <= 4096
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert b"secretvalue" not in file.read_bytes()
        assert b"123454321" not in file.read_bytes()
    name = str(DirectoryCatalog(open_storage(), f"file://{directory}").name)
    scans = read_log(log, name)
    assert 10 < len(scans) < 60
    assert scans[0].asked == (("day", "<"), ("word", "="))
    assert read_log(log, "other.table") == []
    with log.open("ab") as file:
        file.write(b'{"table": "half a li')
    assert len(read_log(log, name)) == len(scans)
    literal = config(tmp_path / "open", planner__predicate_log_literals="true")
    ask(directory, literal, "word = 'secretvalue'")
    assert "secretvalue" in read_log(tmp_path / "open", name)[0].text


def test_a_log_that_cannot_be_written_fails_no_query(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", BIGINT),))
    lake.write("a", pa.table({"x": [1]}))
    planner = lake.planner()
    (tmp_path / "file").write_text("")
    planner.predicate_log = PredicateLog(tmp_path / "file" / "log", 1000)
    plan = planner.plan(ScanRequest(NAME, parse_where("x = 1")[0]))
    assert len(drained(plan)) == 1
    plan.close()


def test_the_command(directory: Path, tmp_path: Path) -> None:
    build(directory, ("values", "day"))
    log = tmp_path / "log"
    ask(directory, config(log), "id = 5")

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli, ["index", "report", str(directory), *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    text = run("--log", str(log))
    assert "cluster: id:" in text and "values(day)" in text and "files a value" in text
    assert "(sample)" in text
    body = json.loads(run("--log", str(log), "--output", "json"))
    assert body["scans"] == 1 and {c["name"] for c in body["columns"]} >= {"day", "id", "half"}
    missing = CliRunner().invoke(cli, ["index", "report", str(tmp_path)])
    assert missing.exit_code != 0


def test_what_was_read_again_counts_once(tmp_path: Path) -> None:
    """A file that could not be trusted stays in the first build's shard, the others move."""
    lake = Lake(tmp_path, (Column("x", BIGINT),))
    for n in range(4):
        path = lake.write(f"f{n}", pa.table({"x": [n]}))
    age(path, -3600)
    lake.build()
    lake.build(settings=lambda held: held.adding([kind("bloom").define("x")]))
    manifest = lake.store().latest()
    assert manifest is not None and len(manifest.shards) == 2
    assert [each.coverage for each in _indexes(manifest, [])] == [1.0, 0.75]


def test_bytes_of_columns_are_those_of_the_footers(tmp_path: Path) -> None:
    """Also after files were read again and replaced, in the report, statistics and ``$files``."""
    lake = Lake(tmp_path, (Column("x", BIGINT), Column("s", STRING)))

    def write(n: int, rows: int) -> None:
        texts = [f"{n} {i} " * 9 for i in range(rows)]
        age(lake.write(f"f{n}", pa.table({"x": range(rows), "s": texts})))

    for n in range(5):
        write(n, 10 + n)
    lake.build()
    write(2, 400)
    (lake.path("f0").parent / "f4").unlink()
    lake.build()
    wanted: dict[str, dict[str, int]] = {}
    for path in sorted(lake.path("f0").parent.glob("f*")):
        group = pq.read_metadata(path).row_group(0)
        wanted[path.name] = {
            group.column(i).path_in_schema: group.column(i).total_compressed_size
            for i in range(group.num_columns)
        }
    assert len(wanted) == 4
    plan = lake.planner().plan(ScanRequest(NAME))
    (page,) = system_table_rows(plan, "files", COLUMNS["files"])
    row = dict(zip(COLUMNS["files"], page, strict=True))
    told = {
        uri.rpartition("/")[2]: {name: one["bytes"] for name, one in json.loads(bounds).items()}
        for uri, bounds in zip(row["path"], row["bounds"], strict=True)
    }
    assert told == wanted
    index = plan.view.index
    assert index is not None
    sizes = index.column_bytes()
    names = [uri.rpartition("/")[2] for uri in index.paths.to_pylist()]
    assert {n: {c: int(sizes[c][i]) for c in sizes} for i, n in enumerate(names)} == wanted


def test_the_report_tells_bytes_of_columns_and_times_of_files(directory: Path) -> None:
    os.utime(directory / "f000.parquet", (1.6e9, 1.6e9))
    os.utime(directory / "f001.parquet", (1.5e9, 1.5e9))
    build(directory)
    found = report_index(config(), str(directory))
    footers = [pq.read_metadata(path).row_group(0) for path in directory.glob("*.parquet")]
    for i, name in enumerate(("day", "id", "kind", "word", "half")):
        wanted = sum(footer.column(i).total_compressed_size for footer in footers)
        assert columns(found)[name].data == wanted
    assert found.written is not None and found.written[0] == 1_500_000_000_000_000
    text = effectiveness_text(found)
    assert "written from 2017-07-14 02:40:00 to " in text and " data " in text
