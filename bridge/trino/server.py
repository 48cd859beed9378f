"""Real Trino servers from Maven artifacts on loopback: one node, or one with more workers.

Trino 476 is a distribution (``trino-server-core``, without connectors) that is unpacked once. 483
is assembled from ``trino-main`` and its run-time dependencies, because Maven repositories have no
distribution of it. Both start without Trino's launcher, in a directory with ``etc/``,
``plugin/`` and the log, so that several can run from one unpacked copy.
"""

from __future__ import annotations

import os
import tarfile
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bridge.kernel.errors import InvalidConfiguration
from bridge.servers.java import find_jdk
from bridge.servers.maven import (
    Artifact,
    artifact_file,
    build_once,
    bytes_here,
    cache_directory,
    class_path,
)
from bridge.servers.process import LOOPBACK, Server, ServerSpec, choose_port, start_server
from bridge.trino.client import trino_client

NAME = "trino"
_MAIN_SOURCE = Path(__file__).with_name("TrinoMain.java")
_JVM = (
    "-XX:+UseG1GC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+EnableDynamicAgentLoading",
    "-Djdk.attach.allowAttachSelf=true",
    "-Djdk.nio.maxCachedBufferSize=2000000",
    "-Dfile.encoding=UTF-8",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--add-modules=jdk.incubator.vector",
)


_COORDINATOR = {"coordinator": "true", "node-scheduler.include-coordinator": "true"}

# SELECT 1 needs no worker and succeeds before a node is available. This query schedules splits.
_READY_QUERY = "SELECT count(*) FROM TABLE(sequence(start => 1, stop => 3))"


@dataclass(frozen=True, slots=True)
class TrinoSpec:
    """A Trino to start.

    Attributes:
        directory: holds its ``etc/``, ``plugin/``, log and pid file.
        catalogs: properties by catalog name, including ``connector.name``.
        plugins: plugin directories by name; linked, not copied.
        version: ``476`` or ``483``.
        port: 0 for any free port.
        heap: the JVM's heap size in Java's syntax.
        properties: more entries of config.properties.
        jvm_options: more options of the JVM.
        coordinator: the port of the server for which this one is a worker; 0: it is one itself.
    """

    directory: Path
    catalogs: Mapping[str, Mapping[str, str]]
    plugins: Mapping[str, Path] = field(default_factory=dict)
    version: str = "476"
    port: int = 8080
    heap: str = "2G"
    properties: Mapping[str, str] = field(default_factory=dict)
    jvm_options: tuple[str, ...] = ()
    coordinator: int = 0
    start_timeout: float = 180.0


def start_trino(spec: TrinoSpec) -> Server:
    """Starts it and returns once a query succeeds.

    Errors:
        EnvironmentMissing: no JDK 25 or newer, no Maven, or no ``trino`` package.
        InvalidConfiguration: a version other than 476 and 483.
        ArtifactUnavailable, PortInUse, ServerFailed: as for any server.
    """
    distribution = _DISTRIBUTIONS.get(spec.version)
    if distribution is None:
        raise InvalidConfiguration(
            f"no Trino {spec.version} to start", f"one of {', '.join(_DISTRIBUTIONS)}"
        )
    jdk = find_jdk(25)
    ready = _has_started if spec.coordinator else _answers_queries()
    libraries, main, own_plugins = distribution()
    port = choose_port(spec.port, NAME)
    _write_etc(spec, port)
    _link_plugins(spec.directory / "plugin", {**own_plugins, **spec.plugins})
    return start_server(
        ServerSpec(
            name=NAME,
            command=(
                jdk.java,
                f"-Xmx{spec.heap}",
                *_JVM,
                *spec.jvm_options,
                "-Dconfig=etc/config.properties",
                "-Dlog.levels-file=etc/log.properties",
                "-cp",
                libraries,
                *main,
            ),
            directory=spec.directory,
            port=port,
            ready=lambda: ready(port),
            start_timeout=spec.start_timeout,
        )
    )


def fetch_server(version: str) -> None:
    """Gets a server from Maven and unpacks it, the first time.

    Errors: as `start_trino`.
    """
    if version in _DISTRIBUTIONS:
        _DISTRIBUTIONS[version]()


def fetched_megabytes(version: str) -> tuple[int, int]:
    """How much of a server's download is here, and of how much; (0, 0) if it has many parts."""
    if version != "476":
        return 0, 0
    return min(bytes_here(_CORE_476) // 1_000_000, _CORE_MEGABYTES), _CORE_MEGABYTES


_CORE_476 = Artifact("io.trino", "trino-server-core", "476", "tar.gz")
_CORE_MEGABYTES = 194
_Distribution = tuple[str, tuple[str, ...], dict[str, Path]]


def _core_476() -> _Distribution:
    """Class path, main class and plugins of the unpacked distribution."""
    home = unpack_once(_CORE_476)
    plugins = home / "plugin"
    own = {p.name: p for p in plugins.iterdir() if p.is_dir()} if plugins.is_dir() else {}
    return f"{home / 'lib'}/*", ("io.trino.server.TrinoServer",), own


def _assembled(version: str) -> _Distribution:
    """Class path and main class of a server assembled from jars."""
    jars = class_path(Artifact("io.trino", "trino-main", version))
    return os.pathsep.join(map(str, jars)), (str(_MAIN_SOURCE), version), {}


_DISTRIBUTIONS: dict[str, Callable[[], _Distribution]] = {
    "476": _core_476,
    "483": partial(_assembled, "483"),
}


def unpack_once(artifact: Artifact) -> Path:
    """The directory of an unpacked distribution in the cache."""
    name = f"{artifact.name}-{artifact.version}"

    def unpack(target: Path) -> None:
        with tarfile.open(artifact_file(artifact)) as archive:
            archive.extractall(target, filter="data")

    return build_once(cache_directory() / name, unpack) / name


def _write_etc(spec: TrinoSpec, port: int) -> None:
    config = {
        **({"coordinator": "false"} if spec.coordinator else _COORDINATOR),
        "node.environment": "skipbridge",
        "node.id": f"skipbridge-{port}",
        # Without the second property the node announces the address of another interface.
        "node.bind-ip": LOOPBACK,
        "node.internal-address": LOOPBACK,
        "http-server.http.port": str(port),
        "discovery.uri": f"http://{LOOPBACK}:{spec.coordinator or port}",
        # A static catalog works only after the node announces it, seconds after startup; until
        # then queries fail with NO_NODES_AVAILABLE. Dynamic catalogs work on all nodes at once.
        "catalog.management": "dynamic",
        **spec.properties,
    }
    catalogs = spec.directory / "etc" / "catalog"
    catalogs.mkdir(parents=True, exist_ok=True)
    for old in catalogs.glob("*.properties"):
        old.unlink()
    _write_properties(spec.directory / "etc" / "config.properties", config)
    _write_properties(spec.directory / "etc" / "log.properties", {"io.trino": "INFO"})
    for name, properties in spec.catalogs.items():
        _write_properties(catalogs / f"{name}.properties", properties)


def _write_properties(file: Path, properties: Mapping[str, str]) -> None:
    file.write_text("".join(f"{k}={v}\n" for k, v in properties.items()), "utf-8")


def _link_plugins(directory: Path, plugins: Mapping[str, Path]) -> None:
    directory.mkdir(exist_ok=True)
    for old in directory.iterdir():
        if old.is_symlink():
            old.unlink()
    for name, target in plugins.items():
        if not target.is_dir():
            raise InvalidConfiguration(
                f"no plugin directory {target}", "build it with `skipbridge plugin build`"
            )
        (directory / name).symlink_to(target.resolve(), target_is_directory=True)


def _has_started(port: int) -> bool:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/v1/info", timeout=5.0) as answer:
        return b'"starting":false' in answer.read()


def _answers_queries() -> Callable[[int], bool]:
    """A check that a query succeeds, because a started server may have no node yet."""
    trino = trino_client()

    def ready(port: int) -> bool:
        if not _has_started(port):
            return False
        connection = trino.dbapi.connect(host=LOOPBACK, port=port, user=NAME, max_attempts=1)
        try:
            cursor = connection.cursor()
            cursor.execute(_READY_QUERY)
            return bool(cursor.fetchall() == [[3]])
        except trino.exceptions.Error:
            return False
        finally:
            connection.close()

    return ready
