"""Every command over tables with a planted fault: it ends with a status and a code, and no trace.

A command that leaves out a part of its work says so by its status.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.cli.cluster_watch import told
from bridge.cli.main import cli
from bridge.cli.output import PROBLEMS

_BEGUN = {"serve", "metastore", "demo", "plugin", "doctor", "hive", "sync"}
"""Commands that start servers or builds, or need a metastore: others ask them."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", "thrift://127.0.0.1:1")
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    return lambda *words: CliRunner().invoke(cli, [str(w) for w in words])


def lake(root: Path) -> Path:
    for i in range(4):
        path = root / f"f{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [9 - i, i], "s": ["a", "b"]}), path)
        os.utime(path, (10**9, 10**9))
    return root


def _cut(root: Path) -> None:
    path = root / "f1.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    os.utime(path, (10**9 + 5, 10**9 + 5))


def _garbled(root: Path) -> None:
    path = root / "f1.parquet"
    raw = bytearray(path.read_bytes())
    raw[4:60] = bytes(56)
    path.write_bytes(raw)
    os.utime(path, (10**9 + 5, 10**9 + 5))


def _index_files(root: Path, change: Callable[[Path], None]) -> None:
    for path in sorted((root / ".skipbridge").rglob("*")):
        if path.is_file():
            change(path)


FAULTS: dict[str, Callable[[Path], None]] = {
    "none": lambda root: None,
    "a file cut short": _cut,
    "a file with garbled pages": _garbled,
    "a file that is empty": lambda root: (root / "f1.parquet").write_bytes(b""),
    "a file of another format": lambda root: (root / "f1.parquet").write_bytes(b"a,b\n1,2\n"),
    "a file of other types": lambda root: pq.write_table(
        pa.table({"id": ["x"], "s": [1]}), root / "g.parquet"
    ),
    "no file": lambda root: [p.unlink() for p in root.glob("*.parquet")] and None,
    "no directory": lambda root: shutil.rmtree(root),
    "a directory in a file's place": lambda root: (
        (root / "f1.parquet").unlink() or (root / "f1.parquet").mkdir()
    ),
    "an index of zeros": lambda root: _index_files(
        root, lambda path: path.write_bytes(bytes(path.stat().st_size)) and None
    ),
    "an index cut short": lambda root: _index_files(
        root, lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]) and None
    ),
    "an index of text": lambda root: _index_files(
        root, lambda path: path.write_text("{}") and None
    ),
}


def commands(table: Path, other: Path) -> list[tuple[str, ...]]:
    t = f"{table}/"
    return [
        ("explain", t, "id = 1"),
        ("explain", t, "id = 1", "--output", "json"),
        ("index", "show", t),
        ("index", "show", t, "--failed"),
        ("index", "report", t),
        ("cluster", "advise", t),
        ("cluster", "show", t),
        ("cluster", "run", t, "--now", "--by", "id", "--local", "--dry-run"),
        ("cluster", "run", t, "--now", "--by", "id", "--local"),
        ("cluster", "clean", t, "--dry-run"),
        ("index", "refresh", t),
        ("index", "build", t, "--local", "--bloom", "id", "--values", "s"),
        ("index", "build", t, "--local", "--full"),
        ("index", "hide", t, "minmax"),
        ("index", "reveal", t, "minmax"),
        ("index", "clean", t),
        ("timeline", "show", t),
        ("timeline", "files", t),
        ("table", "create", "a.b", "--location", t, "--dry-run"),
        ("table", "create", str(other), "--format", "parquet", "--from", t, "--yes"),
        ("segment", "add", str(other), t, "--local"),
        ("segment", "list", str(other)),
        ("segment", "refresh", str(other), "--local"),
        ("segment", "compact", str(other)),
        ("segment", "clean", str(other)),
        ("sql", f"SHOW SEGMENTS FOR TABLE `{other}`"),
        ("index", "drop", t, "--yes"),
        ("config", "show"),
    ]


def test_every_command_is_asked() -> None:
    asked = {words[0] for words in commands(Path("/t"), Path("/o"))}
    assert isinstance(cli, click.Group)
    assert asked | _BEGUN == set(cli.list_commands(click.Context(cli)))


@pytest.mark.parametrize("fault", FAULTS)
def test_no_command_ends_by_a_trace(tmp_path: Path, run: Callable[..., Result], fault: str) -> None:
    root = lake(tmp_path / "t")
    assert run("index", "build", f"{root}/", "--local").exit_code == 0
    FAULTS[fault](root)
    for words in commands(root, tmp_path / "other"):
        done = run(*words)
        assert not done.exception or isinstance(done.exception, SystemExit), (words, done.exception)
        assert done.exit_code in (0, 1, 2, PROBLEMS), words
        assert "Traceback" not in done.output and "this is a bug" not in done.output, (
            words,
            done.output,
        )
        if done.exit_code in (1, 2):
            assert "error " in done.stderr.lower(), (words, done.output)


@pytest.mark.parametrize("fault", ["a file cut short", "a file of another format"])
def test_a_build_without_some_files_says_so_by_its_status(
    tmp_path: Path, run: Callable[..., Result], fault: str
) -> None:
    root = lake(tmp_path / "t")
    assert run("index", "build", f"{root}/", "--local").exit_code == 0
    assert run("index", "refresh", f"{root}/").exit_code == 0
    FAULTS[fault](root)
    done = run("index", "build", f"{root}/", "--local", "--full", "--output", "json")
    assert done.exit_code == PROBLEMS and json.loads(done.stdout)["failed"]


def test_a_clustering_that_leaves_groups_says_so_by_its_status(
    tmp_path: Path, run: Callable[..., Result]
) -> None:
    import duckdb

    root = tmp_path / "t"
    root.mkdir()
    for i in range(3):
        query = f"SELECT range + {i} id, INTERVAL 1 DAY v FROM range(50)"
        duckdb.sql(f"COPY ({query}) TO '{root}/{i}.parquet' (FORMAT parquet)")
        os.utime(root / f"{i}.parquet", (10**9, 10**9))
    assert run("index", "build", f"{root}/", "--local").exit_code == 0
    done = run("cluster", "run", f"{root}/", "--now", "--by", "id", "--local")
    assert done.exit_code == PROBLEMS and "stays as it was" in done.stderr, done.output


def test_what_hudis_clustering_reports_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    report = {
        "table": "a.b", "instant": "1", "state": "completed", "generation": -1, "old_files": 2,
        "new_files": 1, "old_bytes": 10, "new_bytes": 9, "rows": 5, "rejected": [], "seconds": 1.0,
    }  # fmt: skip
    told(report, "text")
    assert "5 rows/s" in capsys.readouterr().out
