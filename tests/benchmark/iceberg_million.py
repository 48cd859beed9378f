"""A million files through the Iceberg REST door: a plan of one, of all, and what they hold."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil
import requests

from bridge.iceberg_rest.door import Door, DoorLimits
from bridge.iceberg_rest.footers import Footers
from bridge.iceberg_rest.plans import Plans
from bridge.iceberg_rest.server import DoorServer
from bridge.iceberg_rest.tables import Tables
from bridge.service.admission import Admission
from bridge.storage.routed import open_storage
from tests.benchmark.figures import Figure, median, timed
from tests.benchmark.million import COUNT, make_planner
from tests.support.iceberg_door import JAVA

_PLANS = 4
"""Of all files, each with a filter of its own."""


def run() -> list[Figure]:
    return _measured(COUNT)


def quick() -> list[Figure]:
    return _measured(20_000)


def _measured(count: int) -> list[Figure]:
    make_planner(count)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_ask, count).result()  # where nothing else holds memory


@contextmanager
def _opened(count: int) -> Iterator[str]:
    footers, pool = Footers(open_storage()), Admission(8)
    tables = Tables(make_planner(count))
    door = Door(tables, Plans(tables, footers, 0), pool, DoorLimits(frozenset({"127.0.0.1"})))
    server = DoorServer(door, socket.create_server(("127.0.0.1", 0)))
    server.start()
    try:
        yield f"http://{server.endpoint}/v1/namespaces/bench/tables/million"
    finally:
        server.stop()
        pool.shutdown()
        footers.close()


def _ask(count: int) -> list[Figure]:
    with _opened(count) as url, requests.Session() as session:
        held = psutil.Process(os.getpid())

        def post(path: str, body: Any) -> tuple[float, requests.Response]:
            started = time.perf_counter()
            answer = session.post(f"{url}/{path}", json=body, headers=JAVA, timeout=600)
            took = time.perf_counter() - started
            answer.raise_for_status()
            return took, answer

        numbers = iter(range(count * 5, count * 10, 7))

        def plan_one() -> None:
            body = {"filter": {"type": "eq", "term": "id", "value": next(numbers)}}
            assert 0 < len(post("plan", body)[1].json()["file-scan-tasks"]) < 3

        loaded = timed(lambda: session.get(url, headers=JAVA, timeout=600).raise_for_status())
        one = median(plan_one, 20, 3)
        before = held.memory_info().rss
        firsts, pages, rss = [], [], []
        for number in range(_PLANS):
            filter = {"type": "gt-eq", "term": "id", "value": -number}
            took, answer = post("plan", {"filter": filter})
            firsts.append(took)
            files, tokens = len(answer.json()["file-scan-tasks"]), answer.json()["plan-tasks"]
            for token in tokens:
                took, answer = post("tasks", {"plan-task": token})
                pages.append(took)
                files += answer.content.count(b'"data-file"')
            assert files == count
            rss.append((held.memory_info().rss - before) / 2**20)
    title = f"{count:,} files, snapshot: "
    note = f"{len(pages) // _PLANS} further pages"
    return [
        Figure(f"{title}loadTable, cold", loaded),
        Figure(f"{title}plan of one file", one * 1e3, "ms"),
        Figure(f"{title}plan of all, first page", max(firsts), note=f"slowest of {_PLANS}"),
        Figure(f"{title}a further page, slowest", max(pages) * 1e3, "ms", note=note),
        Figure(f"{title}memory more after a plan of all", rss[0], "MiB"),
        Figure(f"{title}after {_PLANS} plans of all", rss[-1], "MiB", note="other filters"),
    ]
