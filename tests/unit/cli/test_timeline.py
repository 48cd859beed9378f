"""``skipbridge timeline`` over a table of the toy format, and over one that keeps no versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app import timeline
from bridge.app.cli.main import cli
from bridge.kernel.types import BIGINT, INTEGER
from bridge.table.model import Column
from bridge.table.registry import table_formats
from tests.support.lake import NAME
from tests.support.toy_tables import PLUGIN, VersionedLake
from tests.support.wheels import install, wheel_of

Run = Callable[..., Result]


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root = tmp_path_factory.mktemp("toys")
    install(wheel_of(PLUGIN, root), root / "site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "site"))
        table_formats.cache_clear()
        yield
    table_formats.cache_clear()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    return lambda *words: CliRunner().invoke(cli, [str(w) for w in words])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VersionedLake:
    """Version 1 has file a, version 2 also b, whose rows a log deletes."""
    found = VersionedLake(tmp_path, (Column("x", BIGINT),), (Column("p", INTEGER),))
    monkeypatch.setattr(timeline, "resolve", lambda *_: (found, NAME))
    held: list[dict[str, Any]] = []
    for number, name in enumerate(("a", "b"), 1):
        found.write(f"{name}.parquet", pa.table({"x": pa.array([number], pa.int64())}), ("1",))
        held.append({"path": f"p=1/{name}.parquet", "format": "parquet", "added": number})
        if number == 2:
            (found.root / "t" / "p=1" / "b.del").write_text("0")
            held[-1]["deletes"] = ["p=1/b.del"]
        found.commit({"p=1": held})
    return found


def answer(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.usefixtures("lake")
def test_the_newest_instants_come_first(run: Run) -> None:
    shown = run("timeline", "show", "db.t")
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines == [["2", "-", "commit", "completed"], ["1", "-", "commit", "completed"]]
    (newest,) = answer(run("timeline", "show", "db.t", "--limit", "1", "--output", "json"))
    assert newest["instant"] == "2" and newest["completion"] is None
    assert newest["size"] > 0 and newest["modified"] > 0


def test_the_slices_of_a_version(run: Run, lake: VersionedLake) -> None:
    first, second = answer(run("timeline", "files", "db.t", "--output", "json"))
    assert first["path"].endswith("p=1/a.parquet") and first["logs"] == first["log_bytes"] == 0
    assert second["size"] == (lake.root / "t" / "p=1" / "b.parquet").stat().st_size
    assert (second["partition"], second["logs"], second["log_bytes"]) == ("p=1", 1, 1)
    assert (first["commit"], second["commit"]) == ("1", "2")
    (old,) = answer(run("timeline", "files", "db.t", "--at", "1", "--output", "json"))
    assert old == first
    shown = run("timeline", "files", "db.t")
    assert "b.parquet" in shown.stdout.splitlines()[1] and "+ 1 logs" in shown.stdout
    assert "2 slices with 1 logs" in shown.stderr
    missing = run("timeline", "files", "db.t", "--at", "17")
    assert missing.exit_code == 2 and "READ_VERSION_NOT_FOUND" in missing.stderr


def test_a_directory_has_no_timeline_and_its_files_no_history(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "plain" / "p=1"
    root.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), root / "a.parquet")
    refused = run("timeline", "show", root.parent)
    assert refused.exit_code == 2, refused.output
    assert "error READ_VERSION_UNSUPPORTED: directory.plain has no timeline" in refused.stderr
    (only,) = answer(run("timeline", "files", root.parent, "--output", "json"))
    assert (only["logs"], only["commit"]) == (0, None)
    assert run("timeline", "files", root.parent, "--at", "1").exit_code == 2
