"""Server processes: starting, waiting, recording and stopping them.

A server runs in its own session. Stopping it also stops its children, and Ctrl-C in a terminal
reaches only the program that started it, which then stops it in order. A pid file lets a later
command stop it. The file holds the process's start time, because the pid may be reused.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from bridge.kernel.errors import ExternalError, PortInUse

LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.05
_LOG_LINES_SHOWN = 15


class ServerFailed(ExternalError):
    """A server ended or did not answer in time while it was starting."""

    code = "SERVER_FAILED"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What to start.

    Attributes:
        name: the server's name, also of its log and pid file.
        command: program and arguments.
        directory: its working directory, which also holds ``<name>.log`` and ``<name>.pid``.
        port: the port it will listen on; 0 if none.
        ready: returns True once the server answers. Called repeatedly, so it must return quickly.
            ``OSError`` means "not yet". None: ready once the port accepts connections.
        environment: added to this process's environment.
        start_timeout: seconds until it must be ready.
    """

    name: str
    command: tuple[str, ...]
    directory: Path
    port: int = 0
    ready: Callable[[], bool] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    start_timeout: float = 120.0

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def pid_file(self) -> Path:
        return self.directory / f"{self.name}.pid"


class Server:
    """A running server. As a context manager it stops the server.

    Attributes:
        name, port, log: as in its spec.
        pid: the process id, which is also its process group id.
    """

    def __init__(self, spec: ServerSpec, process: subprocess.Popen[bytes]) -> None:
        self.name = spec.name
        self.port = spec.port
        self.log = spec.log
        self.pid = process.pid
        self._pid_file = spec.pid_file
        self._process = process

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self, grace: float = 10.0) -> None:
        """Terminates it, and kills it after ``grace`` seconds. A second call does nothing."""
        _signal_group(self.pid, signal.SIGTERM)
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()
        # Children of the server may outlive it and hold the port.
        _signal_group(self.pid, signal.SIGKILL)
        self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """Kills it, like a crash."""
        _signal_group(self.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def start_server(spec: ServerSpec) -> Server:
    """Starts a server and returns once it answers.

    Errors:
        PortInUse: another process listens on the port.
        ServerFailed: it ended or was not ready in time. The message has the end of its log.
    """
    if spec.port:
        refuse_port_in_use(spec.port, spec.name)
    spec.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with spec.log.open("ab") as log:
        process = subprocess.Popen(
            spec.command,
            cwd=spec.directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **spec.environment},
            start_new_session=True,
        )
    server = Server(spec, process)
    try:
        _write_record(spec, process.pid)
        _wait_until_ready(spec, server)
    except BaseException:  # also Ctrl-C: do not leave a server behind
        server.stop(grace=2.0)
        raise
    return server


def stop_recorded(pid_file: Path, grace: float = 10.0) -> bool:
    """Stops the server recorded by an earlier command; False if it no longer runs."""
    pid = recorded_pid(pid_file)
    if pid is None:
        pid_file.unlink(missing_ok=True)
        return False
    _signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while recorded_pid(pid_file) is not None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    _signal_group(pid, signal.SIGKILL)
    pid_file.unlink(missing_ok=True)
    return True


def recorded_pid(pid_file: Path) -> int | None:
    """The pid in the file, if that process still runs."""
    try:
        record = json.loads(pid_file.read_text("utf-8"))
        pid, started = int(record["pid"]), record["started"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    now = _start_time(pid)
    return pid if now is not None and now == started else None


def recorded_port(pid_file: Path) -> int | None:
    """The port of the recorded server, if it still runs."""
    if recorded_pid(pid_file) is None:
        return None
    return int(json.loads(pid_file.read_text("utf-8"))["port"])


def free_port() -> int:
    """A currently free port of the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def choose_port(port: int, name: str) -> int:
    """``port`` if it is free; any free port for 0.

    Errors:
        PortInUse: another process listens on it.
    """
    if port == 0:
        return free_port()
    refuse_port_in_use(port, name)
    return port


def refuse_port_in_use(port: int, name: str) -> None:
    """Errors: PortInUse if the port cannot be bound on the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port with connections only in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise PortInUse(
                f"port {port}, wanted by {name}, cannot be used: {error.strerror}",
                "choose another with --port (0 takes any free one), or stop what listens there",
            ) from error


def accepts_connections(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0):
            return True
    except OSError:
        return False


def _wait_until_ready(spec: ServerSpec, server: Server) -> None:
    deadline = time.monotonic() + spec.start_timeout
    while True:
        if not server.alive:
            raise ServerFailed(
                f"{spec.name} ended while it was started\n{_tail(spec.log)}", f"see {spec.log}"
            )
        with contextlib.suppress(OSError):
            if (
                spec.ready()
                if spec.ready is not None
                else not spec.port or accepts_connections(spec.port)
            ):
                return
        if time.monotonic() > deadline:
            raise ServerFailed(
                f"{spec.name} did not answer within {spec.start_timeout:.0f} s\n{_tail(spec.log)}",
                f"see {spec.log}",
            )
        time.sleep(_POLL_SECONDS)


def _tail(log: Path) -> str:
    try:
        lines = log.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_LOG_LINES_SHOWN:])


def _write_record(spec: ServerSpec, pid: int) -> None:
    record = {"pid": pid, "port": spec.port, "started": _start_time(pid), "name": spec.name}
    spec.pid_file.write_text(json.dumps(record), "utf-8")


def _start_time(pid: int) -> str | None:
    """The start time, which distinguishes processes with the same pid; None if not running."""
    try:
        # The command in parentheses may contain spaces; later fields do not. Field 3 is the state,
        # field 22 the start time in clock ticks since boot.
        fields = (
            Path(f"/proc/{pid}/stat")
            .read_text("utf-8", errors="replace")
            .rpartition(")")[2]
            .split()
        )
        return None if fields[0] == "Z" else fields[19]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self").exists():
            return None
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() or None


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
