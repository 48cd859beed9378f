"""``cluster advise`` and the run that it names: from logged queries to a layout."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app.api.session import Session
from bridge.app.cli.main import cli
from bridge.expression.parsing.text import parse_where
from bridge.kernel.config import Config, Setting
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import planner_of
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from tests.support.lake import age, drained

SIZES = ("--target", "64KiB", "--small", "1MiB", "--group-bytes", "64MiB")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "predicates.jsonl"


@pytest.fixture
def table(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two columns at random: sorting by ``a`` or ``b`` helps only those who ask for it."""
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("SKIPBRIDGE_PLANNER_PREDICATE_LOG", str(log))
    rng = np.random.default_rng(3)
    (tmp_path / "t").mkdir()
    for i in range(12):
        path = tmp_path / "t" / f"{i:02}.parquet"
        rows = {name: rng.integers(0, 10_000, 4000) for name in ("a", "b", "c")}
        pq.write_table(pa.table(rows), path)
        age(path)
    assert invoke("index", "build", tmp_path / "t", "--local").exit_code == 0
    return tmp_path / "t"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, words)])


def run(*words: object, status: int = 0) -> Result:
    result = invoke("cluster", *words)
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def ask(table: Path, log: Path, *texts: str, literals: bool = True) -> None:
    values = {
        "planner.predicate_log": str(log), "planner.predicate_log_literals": str(literals).lower()
    }  # fmt: skip
    storage = open_storage()
    catalog = DirectoryCatalog(storage, f"file://{table}")
    config = Config({key: Setting(text, "test") for key, text in values.items()})
    planner = planner_of(config, catalog, storage)
    for text in texts:
        plan = planner.plan(ScanRequest(catalog.name, parse_where(text)[0]))
        drained(plan)
        plan.close()


def rows(table: Path) -> list[str]:
    with Session(Config()) as session:
        return sorted(map(repr, session.table(str(table)).scan().to_arrow().to_pylist()))


def generation(table: Path) -> int:
    return max(int(p.stem) for p in (table / ".skipbridge/generations").glob("*.json"))


@pytest.mark.parametrize("literals", [True, False])
def test_the_column_that_is_asked_is_advised(table: Path, log: Path, literals: bool) -> None:
    ask(table, log, *(f"b >= {v} AND b < {v + 300}" for v in range(0, 9000, 900)),
        literals=literals)  # fmt: skip
    found = json.loads(run("advise", table, *SIZES, "--output", "json").stdout)
    best = found["candidates"][0]
    assert (best["layout"], best["columns"]) == ("linear", ["b"]) and best["gain"] > 0.6
    assert found["scans"] == 10 and found["with_values"] == (10 if literals else 0)
    assert found["now"]["kept"]["files"] == pytest.approx(12)
    text = run("advise", table, *SIZES).stdout
    assert "as it is" in text and f"-> skipbridge cluster run {table} --now" in text
    assert text.strip().endswith("--layout linear --by b " + " ".join(SIZES))


def test_the_advised_command_does_what_was_simulated(table: Path, log: Path) -> None:
    ask(table, log, *(f"b >= {v} AND b < {v + 300}" for v in range(0, 9000, 900)))
    run("run", table, "--now", "--local", *SIZES)
    options = ("--again", "--keep", "fewer", "--log", log)
    text = run("advise", table, *SIZES, *options).stdout
    command = shlex.split(text.rpartition("-> skipbridge cluster ")[2])
    assert {"--again", "--keep"} <= set(command)
    assert "--log" not in command
    found = json.loads(run("advise", table, *SIZES, *options, "--output", "json").stdout)
    made = json.loads(run(*command, "--dry-run", "--output", "json").stdout)
    assert made["old_files"] == found["candidates"][0]["old_files"] == 12


def test_a_curve_is_advised_for_two_columns(table: Path, log: Path) -> None:
    for v in range(0, 9000, 900):
        ask(table, log, f"a >= {v} AND a < {v + 500}", f"b >= {v} AND b < {v + 500}")
    found = json.loads(run("advise", table, *SIZES, "--output", "json").stdout)
    best = found["candidates"][0]
    assert best["layout"] in ("kdtree", "hilbert", "zorder")
    assert sorted(best["columns"]) == ["a", "b"]
    by = {(c["layout"], tuple(c["columns"])): c["gain"] for c in found["candidates"]}
    assert by["linear", ("a",)] < best["gain"] and by["linear", ("b",)] < best["gain"]


def test_a_column_that_a_bloom_filter_answers_is_not_sorted_by(table: Path, log: Path) -> None:
    rng = np.random.default_rng(5)
    ids = rng.permutation(48_000)
    for i, path in enumerate(sorted(table.glob("*.parquet"))):
        rows = {"id": ids[i * 4000 : i * 4000 + 4000], "a": rng.integers(0, 10_000, 4000)}
        pq.write_table(pa.table(rows), path)
        age(path)
    assert invoke("index", "build", table, "--local").exit_code == 0
    ask(table, log, *(f"id = {v}" for v in range(0, 48_000, 2000)))
    ask(table, log, *(f"a >= {v} AND a < {v + 300}" for v in range(0, 9000, 900)))

    def advised() -> tuple[dict[str, Any], dict[tuple[str, ...], float]]:
        found = json.loads(run("advise", table, *SIZES, "--output", "json").stdout)
        return found, {tuple(c["columns"]): c["gain"] for c in found["candidates"]}

    plain, gains = advised()
    assert "id" in plain["candidates"][0]["columns"] and gains[("id",)] > gains[("a",)]
    assert "sorted by it" in invoke("index", "report", table).output
    assert invoke("index", "build", table, "--local", "--bloom", "id").exit_code == 0
    found, gains = advised()
    assert found["candidates"][0]["columns"] == ["a"] and gains[("id",)] < 0.2
    assert found["now"]["kept"]["files"] < plain["now"]["kept"]["files"] / 2


def test_the_advised_run_saves_what_was_simulated(table: Path, log: Path) -> None:
    before = rows(table)
    ask(table, log, *(f"b >= {v} AND b < {v + 300}" for v in range(0, 9000, 900)))
    held = generation(table)
    advised = json.loads(run("advise", table, *SIZES, "--output", "json").stdout)
    best = advised["candidates"][0]
    text = run("advise", table, *SIZES).stdout
    words = shlex.split(text.rpartition("-> skipbridge cluster ")[2])
    dry = json.loads(run(*words, "--dry-run", "--output", "json").stdout)
    assert dry["layout"] == "linear" and dry["columns"] == ["b"] and dry["old_files"] == 12
    assert generation(table) == held and not list(table.glob(".skipbridge/clustering/*"))
    assert not (table / ".skipbridge_clustered").exists()
    done = json.loads(run(*words, "--local", "--output", "json").stdout)
    measured = json.loads(run("advise", table, *SIZES, "--output", "json").stdout)["now"]
    gain = 1 - measured["kept"]["cost"] / advised["now"]["kept"]["cost"]
    assert gain == pytest.approx(best["gain"], abs=0.1)
    assert gain > 0.6 and done["new_bytes"] > 0
    assert rows(table) == before
    # Nothing is left that a rewrite would help.
    ended = run("run", table, done["instant"], "--local").stdout
    assert f"{done['groups']} of {done['groups']} groups were rewritten before" in ended
    assert "rows/s" not in ended
    again = run(*words, "--local")
    assert again.stdout == "" and "nothing" in again.stderr and rows(table) == before


def test_a_layout_that_saves_nothing_is_not_advised(table: Path, log: Path) -> None:
    ask(table, log, "c >= 0", "b >= 1")  # every file is kept under every layout
    shown = run("advise", table, "--target", "1KiB", "--small", "1MiB", "--group-bytes", "64MiB")
    assert "->" not in shown.stdout and "nothing is worth a rewrite" in shown.stderr
    assert not list(table.glob(".skipbridge/clustering/*"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("advise",), "no predicate on directory.t is logged"),
        (("advise", "--by", "a"), "advise compares layouts"),
        (("run", "20260101000000000", "--now"), "an instant and --now were given"),
        (("run", "--dry-run"), "--dry-run says what --now would do"),
    ],
)
def test_what_is_refused(table: Path, words: tuple[str, ...], told: str) -> None:
    result = run(words[0], table, *words[1:], status=2)
    assert told in result.stderr and "\n  -> " in result.stderr


def test_values_are_logged_only_if_asked(table: Path, log: Path) -> None:
    ask(table, log, "b = 4711", literals=False)
    assert "4711" not in log.read_text() and log.stat().st_mode & 0o777 == 0o600
    line: dict[str, Any] = json.loads(log.read_text())
    assert line["tree"] == ["b", "=", 1]
    many = ", ".join(str(v) for v in range(90))
    ask(table, log, f"b IN ({many}) AND a > 5")
    line = json.loads(log.read_text().splitlines()[-1])
    assert line["tree"][1] == ["a", ">", [5]] or line["tree"][2] == ["a", ">", [5]]
