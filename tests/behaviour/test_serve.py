"""``skipbridge serve`` as a user runs it: one process and several, with and without a metastore."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import UnauthorizedError

from bridge.app.cli.main import cli
from bridge.kernel.errors import MetastoreUnavailable, PlanLost, PlannerUnavailable
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import choose_port
from tests.support.planner_client import PlannerClient

pytestmark = pytest.mark.full

Serve = Callable[..., tuple["subprocess.Popen[str]", str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    running: list[subprocess.Popen[str]] = []

    def start(*words: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
        port = choose_port(0, "planner")
        with open(tmp_path / "serve.log", "w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "bridge", "-v", "serve", "--port", str(port), *words],
                stdout=log,
                stderr=log,
                text=True,
                env=os.environ | {"SKIPBRIDGE_CACHE": str(tmp_path / "cache")} | environment,
            )
        running.append(process)
        endpoint = f"127.0.0.1:{port}"
        until = time.monotonic() + 60
        while True:
            try:
                with PlannerClient(endpoint, timeout=2.0) as client:
                    client.health()
                return process, endpoint
            except PlannerUnavailable:
                assert process.poll() is None, (tmp_path / "serve.log").read_text()
                assert time.monotonic() < until
                time.sleep(0.1)

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()


def endpoints(shared: str, count: int) -> set[str]:
    """Addresses of the processes behind a shared port."""
    found: set[str] = set()
    until = time.monotonic() + 60
    while len(found) < count and time.monotonic() < until:
        try:
            with PlannerClient(shared, timeout=5.0) as client:
                found.add(client.health().endpoint)
        except PlannerUnavailable:
            time.sleep(0.1)
    return found


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> None:
    """Ends it as an operator does; its children must be gone with it."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    assert process.wait(30) == (0 if number != signal.SIGKILL else -9)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


def test_without_a_metastore_every_call_says_so(serve: Serve, tmp_path: Path) -> None:
    secret = "a-secret-of-the-environment"
    process, endpoint = serve(
        "--metastore-uri", "thrift://127.0.0.1:1", AWS_SECRET_ACCESS_KEY=secret
    )
    with PlannerClient(endpoint) as client:
        for call in (
            client.list_schemas,
            lambda: client.list_tables("db"),
            lambda: client.get_table("db", "t"),
            lambda: client.plan("db", "t"),
        ):
            with pytest.raises(MetastoreUnavailable) as error:
                call()
            assert "thrift://127.0.0.1:1" in error.value.message
            # Users of an engine start no metastore.
            assert error.value.hint.startswith("tell who runs the planner")
        assert client.health().open_plans == 0
    stop(process)
    log = (tmp_path / "serve.log").read_text()
    assert "planner ready" in log and "stopping" in log
    assert secret not in log and "Traceback" not in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_several_processes_end_together(serve: Serve, number: int) -> None:
    process, shared = serve("--processes", "2", "--metastore-uri", "thrift://127.0.0.1:1")
    found = endpoints(shared, 2)
    assert len(found) == 2 and shared not in found
    for endpoint in (shared, *found):  # each tells of all, so that a query can keep to one
        with PlannerClient(endpoint) as client:
            assert set(client.health().processes) == found
    stop(process, number)


@pytest.mark.engine
def test_a_plan_finds_its_process(serve: Serve, tmp_path: Path) -> None:
    root = tmp_path / "flights"
    for i in range(4):
        path = root / f"k={i % 2}" / f"{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [i]}), path)
        os.utime(path, (1e9, 1e9))
    spec = MetastoreSpec(tmp_path / "metastore", port=0, in_memory=True)
    with start_embedded_metastore(spec) as server:
        uri = f"thrift://127.0.0.1:{server.port}"
        at = ("--metastore-uri", uri)
        run = CliRunner().invoke
        create = ["table", "create", "demo.flights", "--location", str(root), *at]
        done = run(cli, create)
        assert done.exit_code == 0 and "2 partitions" in done.stdout, done.output
        again = run(cli, create)
        assert again.exit_code == 2 and "TABLE_ALREADY_EXISTS" in again.stderr
        assert "lacks no partition" in again.stderr and "index refresh demo.flights" in again.stderr
        (root / "k=2").mkdir()
        pq.write_table(pa.table({"x": [9]}), root / "k=2" / "9.parquet")
        os.utime(root / "k=2" / "9.parquet", (1e9, 1e9))
        more = run(cli, create)
        assert more.exit_code == 0 and "1 partitions added" in more.stdout, more.output
        other = run(cli, [*create[:4], str(root / "k=0"), *at])
        assert other.exit_code == 2 and "exists already, at" in other.stderr
        missing = run(cli, ["explain", "demo.flihgts", *at])
        assert missing.exit_code == 2 and "flights" in missing.stderr, missing.output
        assert run(cli, ["index", "build", "demo.flights", "--local", *at]).exit_code == 0

        metrics = choose_port(0, "metrics")
        process, shared = serve("--processes", "2", "--metrics-port", str(metrics), *at)
        found = endpoints(shared, 2)
        assert len(found) == 2
        plans = 0
        homes: set[str] = set()
        for _ in range(40):
            with PlannerClient(shared) as client:
                plan = client.plan("demo", "flights")
            plans += 1
            assert plan.generation == 1 and plan.endpoint in found
            homes.add(plan.endpoint)
            with PlannerClient(plan.endpoint) as home:
                total = sum(b.splits.num_files for b in home.splits(plan.handle) if b.splits)
                assert total == 5
            (stranger,) = found - {plan.endpoint}
            with PlannerClient(stranger) as other_home, pytest.raises(PlanLost):
                other_home.next_splits(plan.handle, 0)
            if homes == found:
                break
        assert homes == found
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as page:
            counts = page.read().decode()
        # Both processes' plans, whichever of them made them.
        series = 'skipbridge_plans_total{engine="trino",table="demo.flights"}'
        assert f"{series} {float(plans)}" in counts, counts
        assert 'skipbridge_files_total{outcome="kept",table="demo.flights"}' in counts
        assert "_created" not in counts
        told = (tmp_path / "serve.log").read_text()
        lines = [line for line in told.splitlines() if "by trino: demo.flights @ 1: " in line]
        assert len(lines) == plans, told
        stop(process)


@pytest.mark.engine
def test_the_iceberg_rest_catalog(serve: Serve, tmp_path: Path) -> None:
    """Of two processes behind one port, with a token, over a real metastore."""
    root = tmp_path / "flights"
    for i in range(8):
        path = root / f"k={i % 2}" / f"{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [i, i + 100]}), path)
        os.utime(path, (1e9, 1e9))
    (tmp_path / "token").write_text("secret\n")
    spec = MetastoreSpec(tmp_path / "metastore", port=0, in_memory=True)
    with start_embedded_metastore(spec) as server:
        at = ("--metastore-uri", f"thrift://127.0.0.1:{server.port}")
        run = CliRunner().invoke
        create = ["table", "create", "demo.flights", "--location", str(root), *at]
        for words in (create, ["index", "build", "demo.flights", "--local", *at]):
            done = run(cli, words)
            assert done.exit_code == 0, done.output
        port = choose_port(0, "http")
        process, shared = serve(
            "--processes",
            "2",
            "--http-port",
            str(port),
            "--freshness",
            "snapshot",
            *at,
            SKIPBRIDGE_SERVICE_HTTP_TOKEN_FILE=str(tmp_path / "token"),
        )
        assert len(endpoints(shared, 2)) == 2
        url = f"http://127.0.0.1:{port}"
        with pytest.raises(UnauthorizedError):
            load_catalog("no", type="rest", uri=url)
        for _ in range(6):  # a new connection each: the kernel spreads them
            catalog = load_catalog("sb", type="rest", uri=url, token="secret")
            assert catalog.list_tables("demo") == [("demo", "flights")]
            table = catalog.load_table("demo.flights")
            scan = table.scan(row_filter="x >= 106 and k = 1")
            assert scan.to_arrow().to_pylist() == [{"x": 107, "k": 1}]
            assert len(list(scan.plan_files())) == 1 and table.scan().count() == 16
        assert requests.get(f"{url}/readyz", timeout=60).text == "ok\n"
        held = {"Authorization": "Bearer secret"}
        counts = requests.get(f"{url}/metrics", headers=held, timeout=60).text
        # Both processes' plans, whichever of them answers: two scans and a count in each turn.
        assert 'skipbridge_plans_total{engine="pyiceberg",table="demo.flights"} 18.0' in counts
        told = (tmp_path / "serve.log").read_text()
        assert "by pyiceberg: demo.flights @ 1: " in told and "secret" not in told
        stop(process)


def test_an_empty_token_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    for path in ("token", "absent"):
        done = subprocess.run(
            [sys.executable, "-m", "bridge", "serve", "--port", "0", "--http-port", "1"],
            capture_output=True,
            text=True,
            env=os.environ
            | {"SKIPBRIDGE_SERVICE_HTTP_TOKEN_FILE": str(tmp_path / path)}
            | {"SKIPBRIDGE_METASTORE_URI": "thrift://127.0.0.1:1"},
            timeout=60,
        )
        assert done.returncode == 2 and "service.http_token_file" in done.stderr, done.stderr
