"""Each check of ``doctor`` with its fault planted, beside a stack in which all is well.

The checks of Hive have their faults in test_hive_hooked.py, lying stores in
storage/test_lying_store.py, records of segment tables in test_sql_story.py, left files in the tests
of publishing.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.kernel.config import load
from bridge.kernel.types import BIGINT
from bridge.planner.splits.coalesce import SplitSettings
from bridge.runtime.compose import planner_of, resolve, storage_of
from bridge.service.handler import PlannerHandler
from bridge.service.server import PlannerServer
from bridge.table.model import Column
from tests.engines.stack import Stack, register

pytestmark = pytest.mark.full

TABLE = "laws.examined"
DEAD = "127.0.0.1:1"
Doctor = Callable[..., list[str]]


@pytest.fixture(scope="module")
def files(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("examined")
    for k in range(3):
        pq.write_table(pa.table({"k": [k, k + 10]}), directory / f"{k}.parquet")
    register(stack, "examined", directory, (Column("k", BIGINT),))
    return directory


@pytest.fixture
def doctor(stack: Stack) -> Doctor:
    """Runs the command as a user does, and returns its lines; checks its status."""

    def run(*words: str, status: int = 0, metastore: str = "", planner: str = "") -> list[str]:
        host, port = (planner or stack.planner_address).split(":")
        address = ["--metastore-uri", metastore or stack.metastore_uri]
        done = CliRunner().invoke(cli, ["doctor", *words, *address, "--host", host, "--port", port])
        assert done.exit_code == status, done.output
        return done.stdout.splitlines()

    return run


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts, and closes each connection without a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    server.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        ended.set()
        thread.join()


def told(lines: list[str], check: str) -> tuple[str, str, str]:
    """Status, words and remedy of the one check that is reported; its name is in the verdict."""
    status, words = lines[0].split(maxsplit=1)
    assert words.startswith(f"{check}: "), lines
    remedy = lines[1].strip().removeprefix("-> ") if len(lines) > 2 else ""
    assert lines[-1] == f"{'broken' if status == 'error' else 'works, but'}: {check}", lines
    return status, words, remedy


def test_all_is_well(stack: Stack, files: Path, doctor: Doctor) -> None:
    """No other line is printed of a healthy stack, whatever is asked for."""
    trino = ("--trino", f"127.0.0.1:{stack.trino_port}")
    for words in ((), (TABLE,), (str(files),), (TABLE, *trino)):
        assert doctor(*words) == ["all is well"]
    every = doctor(TABLE, *trino, "--all")
    assert all(line.startswith("ok ") for line in every[:-1]) and len(every) > 9


@pytest.mark.parametrize("release", [17, 25])
def test_a_missing_jdk(
    doctor: Doctor, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: int
) -> None:
    name = f"SKIPBRIDGE_JDK{release}"
    monkeypatch.setenv(name, str(tmp_path))
    status, words, remedy = told(doctor(TABLE), f"JDK {release}")
    assert status == "warning" and name in words and "unset it" in remedy


def test_no_maven(
    doctor: Doctor, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sh", "env", "java"):  # a path that has all but Maven
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, remedy = told(doctor(TABLE), "Maven")
    assert status == "warning" and "install Maven" in remedy


def test_no_metastore(doctor: Doctor, files: Path, silent: str) -> None:
    for address in (DEAD, silent):
        status, words, remedy = told(
            doctor(str(files), metastore=f"thrift://{address}"), "metastore"
        )
        assert status == "warning" and address in words and "metastore start" in remedy
        status, *_ = told(doctor(TABLE, status=1, metastore=f"thrift://{address}"), "metastore")
        assert status == "error"


def test_no_planner(doctor: Doctor, files: Path, silent: str) -> None:
    for address in (DEAD, silent):
        status, words, remedy = told(doctor(TABLE, planner=address), "planner")
        assert status == "warning" and address in words and "skipbridge serve" in remedy


def test_a_planner_of_another_version(
    doctor: Doctor, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.app.doctor.VERSION", "9.9.9")
    status, words, remedy = told(doctor(TABLE), "planner")
    assert status == "warning" and "9.9.9" in words and "restart it" in remedy


def test_no_trino(doctor: Doctor, files: Path, silent: str) -> None:
    for address in (DEAD, silent):
        status, words, remedy = told(doctor(TABLE, "--trino", address, status=1), "Trino")
        assert status == "error" and address in words and "start it" in remedy


def test_a_trino_that_has_no_connector(
    stack: Stack, doctor: Doctor, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trino = ("--trino", f"127.0.0.1:{stack.trino_port}")
    monkeypatch.setattr("bridge.app.doctor.supported_versions", lambda: ("999",))
    status, words, remedy = told(doctor(TABLE, *trino, status=1), "Trino")
    assert status == "error" and "476" in words and "999" in remedy


def test_an_index_that_is_behind_is_missing_or_is_damaged(
    doctor: Doctor, files: Path, stack: Stack
) -> None:
    check = f"index of {TABLE}"
    late = files / "late.parquet"
    pq.write_table(pa.table({"k": [7]}), late)
    os.utime(late, (time.time() - 60,) * 2)
    try:
        status, words, remedy = told(doctor(TABLE), check)
        assert status == "warning" and "1 file" in words and f"index refresh {TABLE}" in remedy
    finally:
        late.unlink()
    assert doctor(TABLE) == ["all is well"]
    index = files / ".skipbridge"
    index.rename(files / ".hidden")
    try:
        status, words, remedy = told(doctor(TABLE), check)
        assert status == "warning" and f"index build {TABLE}" in remedy
    finally:
        (files / ".hidden").rename(index)
    (manifest,) = (f for f in (index / "generations").iterdir() if f.suffix == ".json")
    sound = manifest.read_bytes()
    manifest.write_bytes(sound[:-20])
    try:
        status, words, remedy = told(doctor(TABLE), check)
        assert status == "warning" and remedy, words
    finally:
        manifest.write_bytes(sound)
    assert doctor(TABLE) == ["all is well"]


def test_no_such_table(doctor: Doctor, files: Path) -> None:
    lines = doctor("laws.exmined", status=1)
    assert lines[0].startswith("error") and "exmined" in lines[0]
    assert lines[-1] == "broken: index of laws.exmined"
    assert sum("no table laws.exmined" in line for line in lines) == 1


def test_a_planner_of_another_metastore(stack: Stack, doctor: Doctor, files: Path) -> None:
    """Its catalog answers, and does not have the table that the command's own metastore has."""
    config = load()
    storage = storage_of(config)
    other, _ = resolve(config, f"{files}/", storage)
    server = PlannerServer(("127.0.0.1", 0), 1 << 20)
    handler = PlannerHandler(planner_of(config, other, storage), server.endpoint, SplitSettings())
    threading.Thread(target=server.serve, args=(handler,), daemon=True).start()
    try:
        status, words, remedy = told(doctor(TABLE, planner=server.endpoint), "planner")
    finally:
        server.stop(5.0)
        handler.close()
    assert status == "warning" and f"another than this command's, and has no table {TABLE}" in words
    assert "metastore.uri" in remedy


def test_files_in_subdirectories(doctor: Doctor, files: Path) -> None:
    nested = files / "union" / "1.parquet"
    nested.parent.mkdir()
    pq.write_table(pa.table({"k": [7]}), nested)
    try:
        status, words, remedy = told(doctor(TABLE), f"subdirectories of {TABLE}")
        assert status == "warning" and str(nested) in words
        assert "SKIPBRIDGE_PLANNER_RECURSIVE" in remedy
    finally:
        nested.unlink()
        nested.parent.rmdir()
    assert doctor(TABLE) == ["all is well"]


def test_output_as_json(doctor: Doctor, files: Path) -> None:
    found = json.loads("\n".join(doctor(TABLE, "--output", "json")))
    assert {f["status"] for f in found} == {"ok"}
