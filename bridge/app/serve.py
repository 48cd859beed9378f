"""Runs the planner service: one process, or several behind one port."""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector

from bridge.app.iceberg_door import RunningDoor, listen, open_door
from bridge.indexing.table import refresh_written
from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidConfiguration, PlannerUnavailable, PortInUse
from bridge.kernel.threads import Threads
from bridge.runtime.compose import (
    cache_catalog,
    hive_catalog_of,
    metastore_of,
    planner_of,
    split_settings,
    storage_of,
)
from bridge.service.handler import PlannerHandler
from bridge.service.server import PlannerServer, check_loopback

log = logging.getLogger(__name__)
Say = Callable[[str], None]
_GRACE = 10.0
_MOST_PROCESSES = 4
_FILES = 65_536
_LOG_LINE = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


def process_count(config: Config) -> int:
    """Planner processes to start.

    Queries in one process share the metastore's answers and listings; a further process asks and
    lists for itself. It pays once the Python of one process keeps a core busy, on a machine that
    still has cores for the metastore and the engine.
    """
    asked = config.integer("service.processes")
    if asked or config.integer("service.port") == 0:  # several need a port to share
        return asked or 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(_MOST_PROCESSES, (cores or 1) // 4))


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """One of several processes behind one port.

    Attributes:
        listening: the socket of this process alone.
        processes: host:port of the sockets of all processes.
    """

    listening: socket.socket
    processes: tuple[str, ...]


class RunningService:
    """A planner service in this process.

    `start` returns once it accepts calls; `stop` lets calls in flight finish.

    Args:
        config: all settings.
        place: this process among several behind the configured port. Its queries and plans name
            a port of this process alone, so that later calls reach it.
    """

    def __init__(self, config: Config, place: ProcessPlace | None = None) -> None:
        host = config.text("service.host")
        port = config.integer("service.port")
        limit = config.size("service.max_frame_bytes")
        listening = None if place is None else place.listening
        self._servers = [PlannerServer((host, port), limit, listening=listening)]
        if place is not None:
            self._servers.append(PlannerServer((host, port), limit, share=True))
        self.endpoint = self._servers[0].endpoint
        storage = storage_of(config)
        self._catalog = hive_catalog_of(config)
        planner = planner_of(config, cache_catalog(config, self._catalog), storage)
        self.handler = PlannerHandler(
            planner,
            self.endpoint,
            split_settings(config),
            max_plans=config.integer("service.max_plans"),
            processes=() if place is None else place.processes,
            refresh=lambda table, names: refresh_written(config, str(table), names, say=log.info),
        )
        self.door: RunningDoor | None = None
        if config.integer("service.http_port"):
            registry = REGISTRY if place is None else _of_all_processes()
            self.door = open_door(
                config, planner, self.handler.admission, registry, share=place is not None
            )
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        targets: list[tuple[Callable[..., None], tuple[object, ...]]] = [
            (server.serve, (self.handler,)) for server in self._servers
        ]
        targets.append((self._expire, ()))
        for target, arguments in targets:
            thread = threading.Thread(target=target, args=arguments, daemon=True)
            thread.start()
            self._threads.append(thread)
        if self.door is not None:
            self.door.server.start()

    def stop(self) -> None:
        """Lets calls in flight finish within a grace period."""
        self._stopped.set()
        if self.door is not None:
            self.door.stop()
        with Threads(len(self._servers), "stop") as pool:
            list(pool.map(lambda server: server.stop(_GRACE), self._servers))
        self.handler.close()
        self._catalog.close()
        for thread in self._threads:
            thread.join(5.0)

    def _expire(self) -> None:
        while not self._stopped.wait(5.0):
            self.handler.plans.expire()


def serve(
    config: Config, say: Say, place: ProcessPlace | None = None, *, answers: bool = True
) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        answers: whether the metastore does, as `ask_metastore` found.
    """
    logging.getLogger("bridge.plans").setLevel(logging.INFO)  # a line per plan at any log level
    allow_files()
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    service = RunningService(config, place)
    if place is None:
        _serve_metrics(config, REGISTRY)
    service.start()
    say(f"planner ready on {service.endpoint}; {_told_metastore(config, answers)}")
    if service.door is not None:
        say(f"Iceberg REST catalog on http://{service.door.server.endpoint}")
    done.wait()
    say("stopping")
    service.stop()


def _told_metastore(config: Config, answers: bool) -> str:
    told = f"metastore {config.text('metastore.uri')}"
    return told if answers else f"{told} does NOT answer, and queries fail until it does"


def ask_metastore(config: Config, say: Say) -> bool:
    """Whether the metastore answers; warns if not, since it may start later than the planner.

    Errors:
        InvalidConfiguration: metastore.uri is not an address.
    """
    try:
        with metastore_of(config) as client:
            client.get_version()
        return True
    except InvalidConfiguration:
        raise
    except BridgeError as e:
        say(f"warning {e.code}: {e.message}")
        if e.hint:
            say(f"  -> {e.hint}")
        return False


def allow_files() -> None:
    """Raises this process's limit on open files as far as it may be.

    A shell's limit is often 1,024, which connections alone can use up.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _serve_metrics(config: Config, registry: CollectorRegistry) -> None:
    port = config.integer("service.metrics_port")
    if not port:
        return
    try:
        start_http_server(port, "127.0.0.1", registry)
    except OSError as e:
        raise PortInUse(
            f"cannot serve metrics on port {port}: {e.strerror}", "give another port"
        ) from e


def _of_all_processes() -> CollectorRegistry:
    """Adds up what the processes have written to the directory of the environment."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _child(config: Config, level: int, place: ProcessPlace) -> None:
    """Runs one of several processes; it ends when its parent does, for whatever reason."""
    logging.basicConfig(level=level, format=_LOG_LINE)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    try:
        serve(config, lambda text: None, place)
    except BridgeError as e:
        print(f"error {e}", file=sys.stderr, flush=True)
        raise SystemExit(1) from None


def _follow(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def serve_many(config: Config, processes: int, say: Say, *, answers: bool = True) -> None:
    """Serves from several processes behind one port; ends if one of them ends.

    Errors:
        PlannerUnavailable: a process ended unexpectedly.
    """
    host, port = config.text("service.host"), config.integer("service.port")
    check_loopback(host)
    if port == 0:
        raise InvalidConfiguration(
            "service.port is 0 for several processes", "give the port that they share"
        )
    # Checked once here: processes that share the port would not notice a foreign listener.
    PlannerServer((host, port)).server_close()
    if config.integer("service.http_port"):
        listen(config, share=False).close()
    context = multiprocessing.get_context("spawn")
    level = logging.getLogger().getEffectiveLevel()
    stack = ExitStack()
    sockets = [stack.enter_context(_listening(host)) for _ in range(processes)]
    addresses = tuple(f"{host}:{one.getsockname()[1]}" for one in sockets)
    children: list[BaseProcess] = [
        context.Process(
            target=_child, args=(config, level, ProcessPlace(one, addresses)), daemon=True
        )
        for one in sockets
    ]
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    failed: BaseProcess | None = None
    try:
        # The processes write metrics to files in this directory; the endpoint adds them up.
        counts = stack.enter_context(tempfile.TemporaryDirectory(prefix="skipbridge-metrics-"))
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts
        _serve_metrics(config, _of_all_processes())
        for child in children:
            child.start()
        for one in sockets:  # each child has its own copy
            one.close()
        say(f"{processes} planner processes on {host}:{port}; {_told_metastore(config, answers)}")
        while failed is None and not done.wait(0.5):
            failed = next((c for c in children if not c.is_alive()), None)
    finally:
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
        _end(children)
        stack.close()
    if failed is not None:
        raise PlannerUnavailable(
            f"planner process {failed.pid} ended with status {failed.exitcode}",
            "see its messages above",
        )


def _listening(host: str) -> socket.socket:
    """A socket of one process; connections wait until that process accepts them."""
    return socket.create_server((host, 0), backlog=PlannerServer.request_queue_size)


def _end(children: list[BaseProcess]) -> None:
    """Terminates all processes, and kills those that do not end."""
    for child in children:
        if child.is_alive():
            child.terminate()
    until = time.monotonic() + _GRACE + 5.0  # for all processes together
    for child in children:
        if child.pid is not None:
            child.join(max(0.0, until - time.monotonic()))
        if child.is_alive():
            child.kill()
            child.join()
