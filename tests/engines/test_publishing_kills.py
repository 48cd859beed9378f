"""kill -9 of `skipbridge cluster publish` and `revert` at every write: real processes and files."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import bridge
from bridge.clustering.commands.publish import list_left_files
from tests.engines.conftest import RunningMetastore
from tests.engines.test_publishing_others import Published
from tests.support.forked_commands import forked_commands

pytestmark = [pytest.mark.full, pytest.mark.engine]
KILLED = -signal.SIGKILL
ROWS = Counter(range(800))


def check(found: Published) -> None:
    """Whoever lists the locations in force, and the Python API, read each row once."""
    listed: Counter[int] = Counter()
    for place in found.places().values():
        for path in Path(place.removeprefix("file://")).glob("[!._]*"):
            listed.update(pq.ParquetFile(path).read()["x"].to_pylist())
    assert listed == ROWS
    with bridge.connect(metastore_uri=found.metastore.uri) as session:
        of_api = session.table(str(found.name)).scan(columns=["x"]).to_arrow()["x"].to_pylist()
    assert Counter(of_api) == ROWS
    assert not list_left_files(found.config, str(found.name))


def test_killed_at_every_write(metastore_401: RunningMetastore, tmp_path: Path) -> None:
    found = Published(metastore_401, "killed", tmp_path / "t", True)
    found.clustered()
    words = ("--local", "--settled", "0", "--metastore-uri", metastore_401.uri)
    kills = 0
    with forked_commands(tmp_path) as commands:
        for round in range(3):
            for verb in ("publish", "revert"):
                number, status = round, KILLED
                while status == KILLED:  # the same command goes on, until it dies no more
                    number += 1
                    moment = ("before", "after", "aside")[(number + round) % 3]
                    run = ("cluster", verb, found.name, *words)
                    status = commands.run(*run, die=("any", moment, number))
                    kills += status == KILLED
                    check(found)
                assert status == 0, commands.said()[-3000:]
                inside = [".skipbridge_clustered" in each for each in found.places().values()]
                assert inside == [verb == "publish"] * 2
    assert kills > 20
