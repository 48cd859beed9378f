"""A table on a real HDFS: indexed by Spark and without it, refreshed, explained, registered."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.storage.routed import open_storage
from tests.support.hdfs import start_hdfs

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    cluster = start_hdfs(tmp_path_factory.mktemp("hdfs"))
    with cluster.server:
        yield cluster.uri


def write(root: str, number: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": range(number * 10, number * 10 + 10)}), sink)
    open_storage().put(f"{root}/day={number % 2}/{number}.parquet", sink.getvalue())


def skipbridge(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bridge", *arguments, "--output", "json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "how", [("--local",), pytest.param(("--spark",), id="spark", marks=pytest.mark.nightly)]
)
def test_a_directory(hdfs: str, how: tuple[str, ...]) -> None:
    root = f"{hdfs}/{'-'.join(('lake', *how))}/t"
    for number in range(4):
        write(root, number)
    built = skipbridge("index", "build", root, "--values", "n", *how)
    assert (built["generation"], built["files"], built["failed"]) == (1, 4, []), built
    write(root, 4)
    refreshed = skipbridge("index", "refresh", root)
    assert (refreshed["generation"], refreshed["read"], refreshed["files"]) == (2, 1, 5), refreshed
    plan = skipbridge("explain", root, "n = 43")
    assert (plan["generation"], plan["files"]) == (2, {"total": 5, "kept": 1}), plan
    assert skipbridge("explain", root, "n < 10 OR n > 39")["files"] == {"total": 5, "kept": 2}


def test_a_table(hdfs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = f"{hdfs}/warehouse/t"
    for number in range(4):
        write(root, number)
    spec = MetastoreSpec(tmp_path, f"{hdfs}/databases", port=0, in_memory=True)
    with start_embedded_metastore(spec) as server:
        monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", f"thrift://127.0.0.1:{server.port}")
        assert skipbridge("table", "create", "demo.t", "--location", root)["partitions"] == 2
        assert open_storage().directory_exists(f"{hdfs}/databases/demo.db")
        assert skipbridge("index", "build", "demo.t", "--local")["files"] == 4
        plan = skipbridge("explain", "demo.t", "n = 23")
        assert plan["files"] == {"total": 4, "kept": 1}, plan
        first = skipbridge("sync", "demo.synced", "--location", root, "--index")
        assert (first["counts"]["added"], first["index"]["files"]) == (2, 4), first
        sink = io.BytesIO()
        pq.write_table(pa.table({"n": [99]}), sink)
        open_storage().put(f"{root}/day=7/new.parquet", sink.getvalue())
        again = skipbridge("sync", "demo.synced", "--index")
        assert (again["added"], again["index"]["files"]) == (["day=7"], 5), again
        assert skipbridge("explain", "demo.synced", "n = 99")["files"] == {"total": 5, "kept": 1}
