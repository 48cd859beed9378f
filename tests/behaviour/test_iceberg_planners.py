"""Two planners behind one address: one dies between the pages of a plan, the other answers them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from pyiceberg.catalog import load_catalog

from bridge.iceberg_rest import plans
from bridge.kernel.types import BIGINT
from bridge.table.model import Column
from tests.support.iceberg_door import JAVA, OpenDoor, open_door
from tests.support.lake import Lake

_FILES, _CLIENTS = 20, 16


class _Balancer(ThreadingHTTPServer):
    """Passes requests on to the doors in turn; a door that is gone is asked no more.

    Attributes:
        doors: URLs of those that live.
        seen: how many requests each has answered.
    """

    daemon_threads = True

    def __init__(self, doors: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.doors, self.seen = doors, dict.fromkeys(doors, 0)
        self._turn = 0
        self._lock = threading.Lock()

    def next(self) -> str:
        with self._lock:
            self._turn += 1
            return self.doors[self._turn % len(self.doors)]


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Balancer

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: text for name, text in self.headers.items() if name.lower() != "host"}
        headers["Accept-Encoding"] = "identity"
        door = self.server.next()
        answer = requests.request(self.command, door + self.path, data=body, headers=headers)
        self.server.seen[door] += 1
        self.send_response(answer.status_code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = _pass  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def _balanced(doors: list[str]) -> Iterator[tuple[_Balancer, str]]:
    with _Balancer(doors) as balancer:
        thread = threading.Thread(target=balancer.serve_forever)
        thread.start()
        try:
            yield balancer, f"http://127.0.0.1:{balancer.server_address[1]}"
        finally:
            balancer.shutdown()
            thread.join()


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Twenty files of five rows, in pages of three."""
    monkeypatch.setattr(plans, "_PAGE_FILES", 3)
    found = Lake(tmp_path, (Column("id", BIGINT),))
    for i in range(_FILES):
        found.write(f"f{i:02d}.parquet", {"id": list(range(5 * i, 5 * i + 5))})
    found.build()
    return found


def test_sixteen_clients_while_one_planner_dies(lake: Lake) -> None:
    with ExitStack() as stack:
        dying = stack.enter_context(ExitStack())
        first = dying.enter_context(open_door(lake))
        second = stack.enter_context(open_door(lake))
        balancer, url = stack.enter_context(_balanced([first.url, second.url]))
        planned, gone = threading.Barrier(_CLIENTS + 1), threading.Event()

        def read(number: int) -> list[int]:
            table = load_catalog(f"c{number}", type="rest", uri=url).load_table("db.t")
            client = table.catalog
            whole = client._fetch_scan_tasks  # type: ignore[attr-defined]

            def between(*arguments: object) -> object:
                if not gone.is_set():
                    planned.wait(60)
                    gone.wait(60)
                return whole(*arguments)

            client._fetch_scan_tasks = between  # type: ignore[attr-defined]
            rows: list[int] = table.scan(row_filter="id > 7").to_arrow()["id"].to_pylist()
            return sorted(rows)

        with ThreadPoolExecutor(_CLIENTS) as clients:
            reads = [clients.submit(read, i) for i in range(_CLIENTS)]
            planned.wait(60)  # each has its first page
            assert balancer.seen[first.url] and balancer.seen[second.url]
            balancer.doors = [second.url]
            dying.close()
            gone.set()
            assert all(each.result(120) == list(range(8, 5 * _FILES)) for each in reads)


def test_processes_that_have_met_other_files(tmp_path: Path) -> None:
    """Without an index each learns names from the files that it reads; all agree in the end."""
    lake = Lake(tmp_path, (Column("someid", BIGINT),))

    def held(door: OpenDoor) -> int:
        table = door.get("/v1/namespaces/db/tables/t", JAVA).json()["metadata"]
        return int(table["current-snapshot-id"])

    def read_in_turns() -> None:
        """Clients that load from one process and plan at another are refused some times only."""
        pairs = [(first, second), (second, first)]
        for one, other in pairs * 2:
            other.plan(**{"snapshot-id": held(one)})
        for one, other in pairs:
            answer = other.plan(**{"snapshot-id": held(one)})
            assert answer.status_code == 200, answer.text

    lake.write("a.parquet", {"someId": [1]})
    with open_door(lake, "live") as first, open_door(lake, "live") as second:
        first.plan()  # teaches it alone
        read_in_turns()
        lake.path("a.parquet").unlink()
        lake.write("b.parquet", {"SomeId": [1]})
        second.plan()
        read_in_turns()
