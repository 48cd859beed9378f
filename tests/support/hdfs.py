"""A real HDFS on loopback: a name node and a data node, of Hadoop's own mini cluster.

With a second name node it is highly available, and with a keytab it asks for Kerberos.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.servers.embedded_metastore import site
from bridge.servers.java import ADD_OPENS, find_jdk
from bridge.servers.maven import class_path, parse_artifact
from bridge.servers.process import LOOPBACK, Server, ServerSpec, free_port, start_server

_HADOOP = "3.4.1"
# The mini cluster's own list lacks two that it needs at run time.
ARTIFACTS = tuple(
    map(
        parse_artifact,
        (
            f"org.apache.hadoop:hadoop-minicluster:{_HADOOP}",
            "com.fasterxml.jackson.core:jackson-core:2.12.7",
            "org.mockito:mockito-core:4.11.0",
        ),
    )
)
_MAIN = Path(__file__).with_name("java") / "MiniHdfs.java"
LOGGING = """\
log4j.rootLogger=ERROR,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d %p %c: %m%n
"""


@dataclass(frozen=True, slots=True)
class Hdfs:
    """A running cluster.

    Attributes:
        uri: of its name node, ``hdfs://127.0.0.1:port``.
        name_nodes: addresses of all of them; the first is the active one.
    """

    server: Server
    uri: str
    name_nodes: tuple[str, ...]
    _directory: Path

    def fail_over(self, patience: float = 60.0) -> None:
        """The second name node becomes the active one."""
        (self._directory / "data" / "failover").touch()
        deadline = time.monotonic() + patience
        while "FAILED OVER" not in self.server.log.read_text("utf-8", errors="replace"):
            assert time.monotonic() < deadline, self.server.log
            time.sleep(0.1)


def start_hdfs(
    directory: Path,
    *,
    name_nodes: int = 1,
    properties: Mapping[str, str] | None = None,
    host: str = LOOPBACK,
    jvm_options: tuple[str, ...] = (),
) -> Hdfs:
    """Starts an empty cluster and returns once it takes files; the caller stops its server.

    Args:
        name_nodes: two make up the name service ``lab``.
        properties: of its hdfs-site.xml.
        host: by which clients name the name node; Kerberos wants a name.

    Errors:
        EnvironmentMissing: no JDK 17 to 24, or no Maven.
        ArtifactUnavailable: Maven could not get it (110 MB the first time).
        ServerFailed.
    """
    jdk = find_jdk(17, 24)
    jars = class_path(*ARTIFACTS)
    ports = [free_port() for _ in range(2 * name_nodes)]
    logging = directory / "logging"
    logging.mkdir(parents=True)
    (logging / "log4j.properties").write_text(LOGGING)
    log = directory / "hdfs.log"
    configuration = directory / "hdfs-site.xml"
    configuration.write_text(site(dict(properties or {})))
    server = start_server(
        ServerSpec(
            name="hdfs",
            command=(
                jdk.java,
                "-Xmx512m",
                *jvm_options,
                *ADD_OPENS,
                "-cp",
                os.pathsep.join(map(str, (logging, *jars))),
                str(_MAIN),
                str(directory / "data"),
                str(configuration) if properties else "",
                *map(str, ports),
            ),
            directory=directory,
            port=ports[0],
            ready=lambda: "READY" in log.read_text("utf-8", errors="replace"),
        )
    )
    addresses = tuple(f"{host}:{port}" for port in ports[::2])
    return Hdfs(server, f"hdfs://{addresses[0]}", addresses, directory)
