"""A file system that is really full, with more or less room: nothing is lost, the next run ends."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bridge.app.cli.main import cli
from bridge.kernel.errors import StorageFull
from tests.support.clustered import clustered
from tests.support.lake import Lake, age
from tests.support.published import (
    COLUMNS,
    SORTED,
    cleaned,
    left,
    numbers,
    place,
    published,
    reverted,
    stock,
)
from tests.tiers import examples

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system"),
]
STEP = examples(16_384, 16_384, 4096)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    mounted = tmp_path / "small"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(mounted)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no mounts here")
    yield mounted
    subprocess.run(["umount", "-l", str(mounted)], check=True)


def fill(small: Path, room: int) -> Path:
    """A file that leaves so many bytes."""
    filler = small / "filler"
    with filler.open("wb", buffering=0) as file:
        for _ in range(max(0, shutil.disk_usage(small).free - room) // 4096):
            file.write(bytes(4096))
    return filler


def test_publications_and_reverts(small: Path) -> None:
    full = done = 0
    runs: list[Callable[..., object]] = [published, reverted]
    for room in range(0, 100_000, STEP):
        lake = Lake(small / f"{room}", columns=COLUMNS)
        for i in range(4):
            age(lake.write(f"f{i}.parquet", {"x": range(i * 900, i * 900 + 900)}), 50)
        lake.build()
        clustered(lake, **SORTED)
        age(lake.write("f9.parquet", {"x": range(9000, 9900)}), 50)
        rows = Counter([*range(3600), *range(9000, 9900)])
        for run in runs:
            filler = fill(small, room)
            try:
                run(lake, refresh=False)
                done += 1
            except StorageFull:
                full += 1
            assert stock(lake) == numbers(lake) == rows and not left(lake)
            filler.unlink()
            run(lake, refresh=False)
            lake.build()
            assert stock(lake) == numbers(lake) == rows and not left(lake)
            assert (".skipbridge_clustered" in lake.location) is (run is published)
            cleaned(lake)
        shutil.rmtree(place(lake))
    assert full and done


def test_a_run_commits_nothing_and_takes_away_what_it_wrote(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    noise = random.Random(1)
    rows = [noise.randrange(2**40) for _ in range(6 * 900)]
    statuses: list[int] = []
    states: set[str] = set()

    def new_files(table: Path) -> list[Path]:
        return list(table.glob(".skipbridge_clustered/[0-9]*/**/*-data"))

    def cluster(table: Path) -> Result:
        words = ["cluster", "run", str(table), "--now", "--local", "--by", "x"]
        return CliRunner().invoke(cli, words)

    for room in range(0, 260_000, STEP):
        table = small / "t"
        for i in range(6):
            (table / f"day={i // 2}").mkdir(parents=True, exist_ok=True)
            path = table / f"day={i // 2}" / f"f{i}.parquet"
            pq.write_table(pa.table({"x": rows[i * 900 : i * 900 + 900]}), path)
            age(path, 50)
        built = CliRunner().invoke(cli, ["index", "build", str(table), "--local"])
        assert built.exit_code == 0, built.output
        filler = fill(small, room)
        done = cluster(table)
        statuses.append(done.exit_code)
        if done.exit_code:
            assert "STORAGE_FULL" in done.stderr
            shown = CliRunner().invoke(cli, ["cluster", "show", str(table)]).stdout
            states.update(line.split()[0] for line in shown.splitlines())
            # A plan of which all is written waits for room for its commit, and one for whose end
            # there is no room for the next run.
            waits = "committing" in shown or shutil.disk_usage(small).free < 2 * 4096
            assert waits or not new_files(table), (room, shown, done.output)
        filler.unlink()
        assert not cluster(table).exit_code
        assert len(new_files(table)) == 3
        shutil.rmtree(table)
    assert set(statuses) == {0, 1} and states - {"inflight"} == {"cancelled", "committing"}
