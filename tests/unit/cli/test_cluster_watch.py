"""Tables that are clustered by themselves: after a refresh, and at an interval."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app.api.session import Session
from bridge.app.cli.main import cli
from bridge.clustering.commands.watch import watched_round
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.planning.triggers import Triggers
from bridge.kernel.config import Config


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    for i in range(3):
        write(tmp_path / "t" / f"{i}.parquet", i)
    return tmp_path / "t"


def write(path: Path, begin: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": list(range(begin, 300, 3))}), path)
    os.utime(path, (path.stat().st_atime - 60, path.stat().st_mtime - 60))


def refresh(table: Path, *words: object, status: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["index", "refresh", str(table), *map(str, words)])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def rows(table: Path) -> list[int]:
    with Session(Config()) as session:
        return sorted(session.table(str(table)).scan().to_arrow().column("x").to_pylist())


def plans(table: Path) -> list[dict[str, Any]]:
    found = CliRunner().invoke(cli, ["cluster", "show", str(table), "--output", "json"])
    return list(json.loads(found.stdout))


def test_a_refresh_clusters_after_so_many_commits(table: Path) -> None:
    expected = rows(table)
    refresh(table, "--cluster-after", 2, "--cluster-by", "x")
    assert plans(table) == []  # one commit
    write(table / "3.parquet", 1)
    expected = sorted([*expected, *range(1, 300, 3)])
    told = refresh(table, "--cluster-after", 2, "--cluster-by", "x")
    assert "completed: 4 files -> 1 file" in told.stdout and "after 2 commits" in told.stderr
    lines = told.stdout.splitlines()  # in the order of the work
    assert "4 files, 1 read" in lines[0] and "completed" in lines[1]
    assert rows(table) == expected
    for _ in range(3):  # nothing is written, nothing is due
        assert "completed" not in refresh(table, "--cluster-after", 1).stdout
    write(table / "4.parquet", 2)
    write(table / "5.parquet", 2)
    # Without columns it is clustered as it was before.
    again = refresh(table, "--cluster-after", 1)
    # The file that the last plan wrote has fewer bytes than the new ones.
    assert "completed: 3 files -> 1 file" in again.stdout
    assert [(p["layout"], p["columns"]) for p in plans(table)] == [("linear", ["x"])] * 2
    assert rows(table) == sorted([*expected, *range(2, 300, 3), *range(2, 300, 3)])


def test_a_refresh_clusters_small_files(table: Path) -> None:
    assert "completed" not in refresh(table, "--cluster-small-files", 4).stdout
    write(table / "3.parquet", 1)
    assert "completed: 4 files" in refresh(table, "--cluster-small-files", 4).stdout
    assert plans(table)[0]["layout"] == "binpack"
    write(table / "lone.parquet", 1)
    for _ in range(3):  # a lone file waits for others
        assert "completed" not in refresh(table, "--cluster-small-files", 1).stdout
    assert len(plans(table)) == 1


def test_a_watch_of_refreshes_tells_in_the_order_of_the_work(table: Path) -> None:
    words = ("-m", "bridge", "index", "refresh", str(table), "--watch", "0.2",
             "--cluster-after", "1", "--cluster-by", "x")  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert "3 files, 3 read" in process.stdout.readline()
        assert "completed: 3 files -> 1 file" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and "1 generations, 0 failures" in errors, errors


def test_a_lone_file_is_not_rewritten_for_ever(table: Path) -> None:
    """Even if groups of one file are asked for, and each round is triggered by a commit."""
    from bridge.clustering.planning.eligibility import Limits

    alone = Strategy(limits=Limits(fewest_files=1))
    old = {path.name for path in table.glob("*.parquet")} - {"0.parquet"}
    for name in old:
        (table / name).unlink()
    done = []
    for number in range(4):
        report = watched_round(
            Config(), str(table), alone, Triggers(commits=1), local=True,
            progress=lambda *_: None, say=lambda _: None,
        )  # fmt: skip
        done.append(report["committed"])
        if number == 1:  # a commit that adds nothing to rewrite
            refresh(table)
            CliRunner().invoke(cli, ["index", "hide", str(table), "minmax"])
    assert done == [True, False, False, False] and len(plans(table)) == 1
    assert rows(table) == list(range(0, 300, 3))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("index", "refresh", "T", "--cluster-by", "x"), "nothing says when"),
        (("cluster", "run", "T", "--watch", "5s", "--again"), "--watch plans anew"),
        (("cluster", "run", "T", "20260101000000000", "--watch", "5s"), "--watch plans anew"),
    ],
)
def test_what_is_refused(table: Path, words: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(cli, [str(table) if w == "T" else w for w in words])
    assert result.exit_code == 2 and told in result.stderr


def test_ctrl_c_leaves_nothing_half(table: Path) -> None:
    """Groups in progress end, the others wait; the same command continues."""
    for month in range(8):
        for i in range(3):
            write(table.parent / f"p/month={month}/{i}.parquet", i)
    whole = table.parent / "p"
    expected = rows(whole)
    words = ("-m", "bridge", "cluster", "run", str(whole), "--now", "--local", "--by", "x")
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        while process.poll() is None and not list(
            whole.glob(".skipbridge/clustering/*.requested.json")
        ):
            pass
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (0, 130) and "Traceback" not in errors
    assert rows(whole) == expected
    if process.returncode == 130:
        assert "the same command continues" in errors
        assert len(list(whole.glob(".skipbridge/clustering/*group-*"))) < 8
        result = CliRunner().invoke(cli, ["cluster", *words[3:]])
        assert "completed: 24 files -> 8 files" in result.stdout, result.output
    assert rows(whole) == expected and len(plans(whole)) == 1


def test_a_watch_clusters_and_stops_cleanly(table: Path) -> None:
    expected = rows(table)
    words = ("-m", "bridge", "cluster", "run", str(table), "--watch", "200ms", "--local",
             "--by", "x", "--after-commits", "1")  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert "completed: 3 files -> 1 file" in process.stdout.readline()
        process.stdout.readline()
        for i in (3, 4):
            write(table / f".{i}.draft", i)  # a hidden name
            (table / f".{i}.draft").rename(table / f"{i}.parquet")
        line = process.stdout.readline()
        assert "completed" in line
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and "stops after this round" in errors
    assert "0 failures" in errors and "Traceback" not in errors
    assert rows(table) == sorted([*expected, *range(3, 300, 3), *range(4, 300, 3)])
    assert {each["state"] for each in plans(table)} == {"completed"}
