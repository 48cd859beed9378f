"""Assembles the HTTP door of a planner process from the settings."""

from __future__ import annotations

import re
import socket
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from bridge.kernel.config import Config
from bridge.kernel.errors import EnvironmentMissing, InvalidConfiguration
from bridge.planner.planner import Planner
from bridge.service.server import check_loopback, port_in_use

if TYPE_CHECKING:  # starlette and uvicorn are an extra
    from bridge.iceberg_rest.footers import Footers
    from bridge.iceberg_rest.server import DoorServer


@dataclass(frozen=True, slots=True)
class RunningDoor:
    """A door's server, and the footers that its plans read."""

    server: DoorServer
    footers: Footers

    def stop(self) -> None:
        """Lets requests in flight finish."""
        self.server.stop()
        self.footers.close()


def open_door(
    config: Config, planner: Planner, pool: Executor, registry: CollectorRegistry, *, share: bool
) -> RunningDoor:
    """The door, which listens but answers nothing before its server is started.

    Args:
        pool: the threads of plans.
        registry: of the metrics.
        share: other processes listen on the same port.

    Errors:
        EnvironmentMissing: the extra ``rest`` is not installed.
        InvalidConfiguration, PortInUse.
    """
    try:
        from bridge.iceberg_rest.door import Door, DoorLimits
        from bridge.iceberg_rest.server import DoorServer
    except ImportError as error:
        raise EnvironmentMissing(
            f"service.http_port needs {error.name}, which is not installed",
            "pip install 'skipbridge[rest]'",
        ) from error
    from bridge.iceberg_rest.footers import Footers
    from bridge.iceberg_rest.plans import Plans
    from bridge.iceberg_rest.tables import Tables

    limits = DoorLimits(
        _hosts(config),
        _token(config),
        config.size("service.http_max_body"),
        config.integer("service.http_requests"),
        config.seconds("service.http_timeout"),
    )
    footers = Footers(planner.lister.storage)
    tables = Tables(planner, _schemes(config))
    plans = Plans(tables, footers, config.integer("service.http_footers"))
    door = Door(tables, plans, pool, limits, registry)
    return RunningDoor(DoorServer(door, listen(config, share=share)), footers)


def listen(config: Config, *, share: bool) -> socket.socket:
    """The socket of the door. Errors: InvalidConfiguration, PortInUse."""
    host, port = config.text("service.host"), config.integer("service.http_port")
    check_loopback(host)
    try:
        return socket.create_server((host, port), backlog=256, reuse_port=share)
    except OSError as error:
        raise port_in_use(host, port, error, "--http-port") from error


def _hosts(config: Config) -> frozenset[str]:
    names = {name.strip().lower() for name in config.text("service.http_hosts").split(",")}
    return frozenset(names - {""})


def _schemes(config: Config) -> dict[str, str]:
    """Errors: InvalidConfiguration: an entry is no pair of schemes."""
    found: dict[str, str] = {}
    for entry in config.text("service.http_schemes").split(","):
        one, _, other = (part.strip() for part in entry.partition("="))
        if not entry.strip():
            continue
        if not all(re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) for scheme in (one, other)):
            raise InvalidConfiguration(
                f"service.http_schemes has the entry {entry.strip()!r}",
                "write the planner's scheme and the clients', such as s3=s3a",
            )
        found[one] = other
    return found


def _token(config: Config) -> str:
    """Errors: InvalidConfiguration: the file cannot be read, or is empty."""
    path = config.text("service.http_token_file")
    if not path:
        return ""
    try:
        found = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(
            f"service.http_token_file: cannot read {path}: {error}", "check the path"
        ) from error
    if not found or found == "None":
        raise InvalidConfiguration(
            f"service.http_token_file: {path} holds no token", "write one line with the token"
        )
    return found
