"""``clustering.check_write``: writers ask before they replace files that a plan rewrites."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bridge
from bridge.app.cli.main import cli
from bridge.kernel.errors import ClusteringPending, InvalidRequest


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    for month in (1, 2):
        for i in range(3):
            write(tmp_path / f"t/month={month}/{i}.parquet", list(range(i, 300, 3)))
    return tmp_path / "t"


def write(path: Path, x: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": x}), path)
    os.utime(path, (path.stat().st_atime - 60, path.stat().st_mtime - 60))


def run(*words: object, status: int = 0) -> str:
    result = CliRunner().invoke(cli, ["cluster", *map(str, words)])
    assert result.exit_code == status, result.output
    return result.stdout.strip()


def rows(root: Path) -> list[str]:
    with bridge.connect() as session:
        return sorted(map(repr, session.table(str(root)).scan().to_arrow().to_pylist()))


def test_a_file_of_a_waiting_plan_is_refused(root: Path) -> None:
    file = root / "month=1/0.parquet"
    with bridge.connect() as session:
        table = session.table(str(root))
        assert bridge.clustering.check_write(table, [file]) == []  # there is no plan
        instant = run("schedule", root, "--by", "x")
        with pytest.raises(ClusteringPending, match=f"plan {instant}") as refused:
            bridge.clustering.check_write(table, [file])
        assert "0.parquet is being clustered by group 1" in str(refused.value)
        assert table.clustering.check_write([root / "month=1/new.parquet"]) == []
        assert table.clustering.check_write([]) == []
        run("cancel", root, instant)
        assert table.clustering.check_write([f"file://{file}"]) == []
        for wrong in (lambda: table.clustering.check_write(str(file)),
                      lambda: table.clustering.check_write([file], "ask"),
                      lambda: bridge.clustering.check_write(str(root), [file])):  # fmt: skip
            with pytest.raises(InvalidRequest):
                wrong()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("begun", [False, True])
def test_a_group_is_cancelled_and_the_others_commit(root: Path, begun: bool) -> None:
    file = root / "month=1/0.parquet"
    instant = run("schedule", root, "--by", "x")
    if begun:  # the group was rewritten already, and the run died before its commit
        first_of(root, instant)
    with bridge.connect() as session:
        table = session.table(str(root))
        (group,) = bridge.clustering.check_write(table, [file], strategy="allow")
        assert group == bridge.CancelledGroup(instant, 1, f"file://{file}")
        assert table.clustering.check_write([file]) == []  # cancelled groups wait no more
        with pytest.raises(ClusteringPending):
            table.clustering.check_write([root / "month=2/0.parquet"])
    write(file, [7])
    before = rows(root)
    told = run("run", root, instant, "--local", status=3)
    assert "completed: 3 files -> 1 file" in told
    assert rows(root) == before and len(before) == 501
    # The files of the cancelled group can be planned again.
    assert run("schedule", root, "--by", "x")


def first_of(root: Path, instant: str) -> None:
    from bridge.clustering.execution import ThreadRewriter, execute
    from bridge.clustering.timeline import Timeline
    from bridge.index.building.collect import ThreadCollector
    from bridge.indexing.table import open_indexed_table
    from bridge.kernel.config import Config

    class Died(Exception):
        pass

    def dies(*_: object, **__: object) -> None:
        raise Died

    with open_indexed_table(Config(), str(root)) as (storage, catalog, found, store):
        timeline = Timeline(storage, store.root)
        timeline.end = dies  # type: ignore[method-assign, assignment]
        with pytest.raises(Died):
            execute(
                timeline.plan(instant), found, store, timeline, catalog=catalog,
                rewriter=ThreadRewriter(storage), collector=ThreadCollector(storage),
            )  # fmt: skip


def test_the_listed_file_stands_for_its_clustered_rows(root: Path) -> None:
    """A plan rewrites clustered files; the writer knows only the listed ones."""
    sizes = ("--target", "2KiB", "--small", "1MiB")
    run("run", root, "--now", "--local", "--by", "x", *sizes)
    for i in range(3):
        write(root / f"month=1/n{i}.parquet", list(range(i, 300, 3)))
    run("run", root, "--now", "--local", "--by", "x", *sizes)
    instant = run("schedule", root, "--by", "x", "--overlap-depth", "1", *sizes)
    with bridge.connect() as session:
        table = session.table(str(root))
        with pytest.raises(ClusteringPending):
            table.clustering.check_write([root / "month=1/0.parquet"])
        assert table.clustering.check_write([root / "month=2/0.parquet"]) == []
        cancelled = table.clustering.check_write([root / "month=1/0.parquet"], "allow")
        assert {each.instant for each in cancelled} == {instant}
