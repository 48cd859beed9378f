"""A layout, a grouping and a group filter of another distribution; what is refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.planning.scheduling import check_table
from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import BIGINT
from bridge.table.model import CatalogTable, Column, TableName
from tests.support.lake import age
from tests.support.wheels import install, wheel_of

PROJECT = Path(__file__).parents[2] / "plugins" / "toy_clustering"
ASKED = ("--layout", "falling", "--by", "x", "--group", "pairs", "--keep", "first")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("toy")
    install(wheel_of(PROJECT, root), root / "site")
    return root / "site"


@pytest.fixture
def run(tmp_path: Path, site: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"SKIPBRIDGE_CACHE": str(tmp_path / "c")}

    def run(*words: object, installed: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bridge", "cluster", *map(str, words)]
        environment = {**os.environ, **own, **({"PYTHONPATH": path} if installed else {})}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_they_are_used_by_name(
    tmp_path: Path, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    table = tmp_path / "t"
    table.mkdir()
    for i in range(5):
        pq.write_table(pa.table({"x": [i, 10 - i, i + 3]}), table / f"f{i}.parquet")
        age(table / f"f{i}.parquet")
    refused = run("run", table, "--now", "--local", *ASKED, installed=False)
    assert refused.returncode == 2 and "falling" in refused.stderr
    done = run("run", table, "--now", "--local", *ASKED)
    assert done.returncode == 0, done.stderr
    (new,) = (table / ".skipbridge_clustered").rglob("*-data")
    assert pq.read_table(new)["x"].to_pylist() == [10, 9, 4, 3, 1, 0]
    shown = run("show", table).stdout
    assert "falling by x: 2 files" in shown
    instant = next(word for word in shown.split() if word.isdecimal() and len(word) == 17)
    told = run("show", table, instant).stdout
    assert "    first: f0.parquet\n    pairs of: 5\n" in told


@pytest.mark.parametrize(
    ("format", "table_format", "told"),
    [
        ("csv", "directory", "is stored as csv"),
        ("json", "directory", "is stored as json"),
        ("avro", "directory", "is stored as avro"),
        ("text", "directory", "is stored as text"),
        ("parquet", "toy", "is a toy table"),
    ],
)
def test_other_formats_are_refused_by_name(format: str, table_format: str, told: str) -> None:
    table = CatalogTable(
        TableName("db", "t"),
        (Column("x", BIGINT),),
        (),
        "file:///t",
        format,
        table_format=table_format,
    )
    with pytest.raises(UnsupportedTable, match=told):
        check_table(table)
