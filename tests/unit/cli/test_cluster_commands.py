"""``skipbridge cluster``: schedule, run, show, cancel; and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app.api.session import Session
from bridge.app.cli.main import cli
from bridge.kernel.config import Config


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    for month in (1, 2):
        for i in range(4):
            path = tmp_path / "t" / f"month={month}" / f"{i}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            x = list(range(i, 4000, 4))
            pq.write_table(pa.table({"x": x, "s": [f"s{v % 97}" for v in x]}), path)
            os.utime(path, (path.stat().st_atime - 60, path.stat().st_mtime - 60))
    return tmp_path / "t"


def run(*words: object, status: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["cluster", *map(str, words)])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def test_a_dry_run_without_an_index_says_what_to_type(table: Path) -> None:
    refused = run("run", table, "--now", "--by", "x", "--dry-run", status=2)
    assert f"skipbridge index build file://{table}" in refused.stderr
    assert not (table / ".skipbridge").exists()


def test_from_a_plan_to_fewer_files(table: Path) -> None:
    with Session(Config()) as session:
        before = sorted(map(repr, session.table(str(table)).scan().to_arrow().to_pylist()))
    made = run("schedule", table, "--by", "x")
    instant = made.stdout.strip()
    assert len(instant) == 17 and instant.isdigit()
    assert "linear by x: 8 files" in made.stderr and "2 groups of 2 partitions" in made.stderr
    waiting = run("show", table).stdout
    assert waiting.startswith("requested") and "written" not in waiting
    groups = run("show", table, instant).stdout
    assert "group 0 month=2 -> 1 files" in groups and "x 3 .. 3999" in groups
    assert run("schedule", table, "--by", "x").stdout == ""  # all files wait
    done = run("run", table, "--local")
    assert f"{instant} completed: 8 files -> 2 files, 8,000 rows" in done.stdout
    (told,) = json.loads(run("show", table, "--output", "json").stdout)
    assert (told["state"], told["new_files"], told["written_files"]) == ("completed", 2, 2)
    assert told["written_rows"] == 8000 and told["rejected_groups"] == 0
    assert "in 2 groups of 2 partitions; written: 2 files, " in run("show", table).stdout
    groups = run("show", table, instant).stdout
    assert "group 0 month=2 -> 1 files, 1 written, 4,000 rows" in groups
    assert "    -> c00000-0-0000-" in groups
    with Session(Config()) as session:
        scan = session.table(str(table)).scan()
        assert sorted(map(repr, scan.to_arrow().to_pylist())) == before
    refused = run("run", table, "--local", status=2)
    assert "no clustering plan of directory.t waits" in refused.stderr


def test_now_and_nothing_left(table: Path) -> None:
    sizes = ("--target", "4KiB", "--small", "1MiB")
    assert run("run", table, "--now", "--local", *sizes, "--by", "x").stdout == ""
    sizes = ("--target", "12KiB", "--small", "1MiB")
    done = run("run", table, "--now", "--local", *sizes, "--by", "x", "--by", "s")
    assert "8 files -> " in done.stdout and "kdtree by x, s" in done.stderr
    again = run("run", table, "--now", "--local", *sizes, "--by", "x")
    assert again.stdout == "" and "nothing is worth a rewrite" in again.stderr
    # Files of one rewrite in this layout are not taken up again, those of another are.
    deep = ("run", table, "--now", "--local", *sizes, "--overlap-depth", "1")
    assert run(*deep, "--by", "x", "--by", "s").stdout == ""
    assert "completed" in run(*deep, "--by", "x").stdout
    assert run(*deep, "--by", "x").stdout == ""
    assert "8 files" in run("run", table, "--now", "--local", "--again").stdout


def test_now_continues_what_a_run_has_begun(table: Path) -> None:
    instant = run("schedule", table, "--by", "x").stdout.strip()
    assert run("run", table, "--now", "--local", "--by", "x").stdout == ""  # it waits for its time
    (plan,) = (table / ".skipbridge" / "clustering").glob("*.requested.json")
    plan.with_name(f"{instant}.inflight.json").write_text("{}")
    foretold = run("run", table, "--now", "--local", "--by", "x", "--dry-run")
    assert "completed" not in foretold.stdout
    done = run("run", table, "--now", "--local", "--by", "x")
    assert f"plan {instant}, which was begun before, is continued" in done.stderr
    assert f"{instant} completed: 8 files" in done.stdout


def test_a_cancelled_plan(table: Path) -> None:
    instant = run("schedule", table, "--partition", "month=1").stdout.strip()
    assert "cancelled" in run("cancel", table, instant).stdout
    assert "was cancelled" in run("run", table, instant, "--local", status=2).stderr
    assert run("show", table).stdout.startswith("cancelled")
    instant = run("schedule", table, "--partition", "month=1").stdout.strip()
    run("run", table, "--local")
    assert "cannot be cancelled" in run("cancel", table, instant, status=2).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("schedule", "--by", "y"), "has no column 'y'"),
        (("schedule", "--by", "month"), "is a partition key"),
        (("schedule", "--by", "x", "--by", "X"), "named twice"),
        (("schedule", "--by", "x", "--layout", "hilbert"), "2 to 6 columns, and 1"),
        (("schedule", "--layout", "spiral"), "there is no layout 'spiral'"),
        (("schedule", "--group", "luck"), "there is no grouping 'luck'"),
        (("schedule", "--target", "big"), "'big'"),
        (("schedule", "--overlap-depth", "3"), "an overlap depth without sort columns"),
        (("schedule", "--by", "x", "--overlap-depth", "3", "--again"), "leave out --again"),
        (("schedule", "--bloom-filter", "y"), "has no column 'y'"),
        (("run", "123"), "there is no clustering plan '123'"),
        (("run", "20260101000000000"), "there is no clustering plan"),
        (("run", "20260101000000000", "--now"), "an instant and --now were given"),
        (("run", "--now", "--local", "--publish"), "is a directory: engines find its files"),
        (("run", "--watch", "1s", "--local", "--publish"), "is a directory: engines find its"),
        (("show", "1"), "there is no clustering plan"),
        (("cancel", "1"), "there is no clustering plan"),
    ],
)
def test_what_is_refused(table: Path, words: tuple[str, ...], told: str) -> None:
    result = run(words[0], table, *words[1:], status=2)
    assert told in result.stderr and "\n  -> " in result.stderr


def test_dropping_the_index_drops_its_plans(table: Path) -> None:
    run("schedule", table)
    result = CliRunner().invoke(cli, ["index", "drop", str(table), "--yes"])
    assert result.exit_code == 0, result.output
    assert run("show", table).stdout == ""


def test_dropping_the_index_names_what_only_it_could_read(table: Path) -> None:
    run("run", table, "--now", "--local", "--by", "x")
    (left,) = (d for d in (table / ".skipbridge_clustered").iterdir() if d.name.isdigit())
    result = CliRunner().invoke(cli, ["index", "drop", str(table), "--yes"])
    assert result.exit_code == 0, result.output
    assert (
        f"left: file://{left}: no query reads its rewritten files now: delete it" in result.stderr
    )
    assert "delete .skipbridge_clustered/" + left.name in run("clean", table).stderr


def test_a_damaged_plan_is_shown_and_cancelled(table: Path) -> None:
    instant = run("schedule", table, "--by", "x").stdout.strip()
    (plan,) = (table / ".skipbridge" / "clustering").glob("*.requested.json")
    plan.write_bytes(plan.read_bytes()[:-40])
    told = run("schedule", table, "--by", "x").stderr
    assert f"-> skipbridge cluster cancel {table} {instant} removes it" in told
    other = run("show", table).stdout.splitlines()[1].split()[1]
    assert "cancelled" in run("cancel", table, other).stdout
    shown = run("show", table).stdout
    assert shown.startswith(f"requested  {instant}") and "is not a clustering plan" in shown
    assert "problem" in json.loads(run("show", table, "--output", "json").stdout)[0]
    assert "cancelled" in run("cancel", table, instant).stdout
    assert (
        "there is no clustering plan" in run("cancel", table, "20200101000000000", status=2).stderr
    )
    assert len(run("schedule", table, "--by", "x").stdout.strip()) == 17
    assert len(run("show", table).stdout.splitlines()) == 3


def test_a_plan_that_cannot_be_executed_does_not_hide_the_others(table: Path) -> None:
    first = run("schedule", table, "--by", "x", "--partition", "month=1").stdout.strip()
    second = run("schedule", table, "--by", "x", "--partition", "month=2").stdout.strip()
    plan = table / ".skipbridge" / "clustering" / f"{first}.requested.json"
    plan.write_bytes(plan.read_bytes()[:-40])
    assert f"{second} completed" in run("run", table, "--local").stdout
    assert "cancel this plan" in run("run", table, "--local", status=1).stderr


def test_names_of_originals_that_no_line_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, odd = "file:///t/a b*.parquet", ["file:///t/x\n/etc/y", "file:///t/\x1b[2J"]
    made = {"table": "db.t", "files": [plain, *odd], "bytes": 3, "in_use": 2, "needed": []}
    monkeypatch.setattr("bridge.clustering.commands.publish.originals", lambda *_: made)
    found = run("originals", "db.t", status=3)
    assert found.stdout == f"{plain}\n"
    assert "x\\n/etc/y" in found.stderr and "\\x1b[2J" in found.stderr
    assert "2 more are named by generations" in found.stderr
    assert run("originals", "db.t", "-0").stdout == "".join(f"{path}\0" for path in (plain, *odd))
    assert json.loads(run("originals", "db.t", "--output", "json").stdout)["files"] == made["files"]
