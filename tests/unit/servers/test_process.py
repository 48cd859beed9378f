from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridge.kernel.errors import PortInUse
from bridge.servers.process import (
    LOOPBACK,
    Server,
    ServerFailed,
    ServerSpec,
    choose_port,
    free_port,
    recorded_pid,
    recorded_port,
    start_server,
    stop_recorded,
)

LISTEN = """
import os, socket, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("child", "w").write(str(child.pid))
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
time.sleep(600)
"""


def listening(directory: Path, code: str = LISTEN) -> ServerSpec:
    port = free_port()
    command = (sys.executable, "-c", code, str(port))
    return ServerSpec("listener", command, directory, port, start_timeout=20.0)


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":  # ended; nobody has asked how
            return True
        time.sleep(0.05)
    return False


def test_a_server_is_started_recorded_and_stopped_with_its_children(tmp_path: Path) -> None:
    spec = listening(tmp_path / "new")
    with start_server(spec) as server:
        assert server.alive
        assert recorded_pid(spec.pid_file) == server.pid
        assert recorded_port(spec.pid_file) == spec.port
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
        child = int((tmp_path / "new" / "child").read_text())
        with pytest.raises(PortInUse, match=str(spec.port)):
            start_server(spec)
    assert not server.alive
    assert gone(child)
    assert not spec.pid_file.exists()
    assert "listening" in spec.log.read_text()
    server.stop()  # again: nothing happens


def test_another_process_can_stop_it(tmp_path: Path) -> None:
    spec = listening(tmp_path)
    server: Server = start_server(spec)
    code = (
        "import sys; from pathlib import Path; from bridge.servers.process import stop_recorded;"
        "print(stop_recorded(Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(spec.pid_file)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"
    assert not server.alive
    assert stop_recorded(spec.pid_file) is False


def test_a_pid_that_now_belongs_to_somebody_else_is_left_alone(tmp_path: Path) -> None:
    pid_file = tmp_path / "x.pid"
    pid_file.write_text(f'{{"pid": {os.getpid()}, "port": 1, "started": "0"}}')
    assert recorded_pid(pid_file) is None
    assert stop_recorded(pid_file) is False


def test_a_server_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + LISTEN
    server = start_server(listening(tmp_path, stubborn))
    server.stop(grace=0.3)
    assert not server.alive


def test_a_server_that_ends_or_never_answers_fails_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="no such database"):
        start_server(listening(tmp_path, "raise SystemExit('no such database')"))
    spec = ServerSpec(
        "sleeper",
        (sys.executable, "-c", "import time; time.sleep(600)"),
        tmp_path,
        free_port(),
        start_timeout=0.3,
    )
    with pytest.raises(ServerFailed, match="did not answer within"):
        start_server(spec)
    assert not spec.pid_file.exists()


def test_ports() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port}, wanted by demo"):
            choose_port(port, "demo")
    assert choose_port(port, "demo") == port
    assert choose_port(0, "demo") > 0
