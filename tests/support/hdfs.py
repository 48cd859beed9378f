"""A real HDFS on loopback: one name node and one data node, of Hadoop's own mini cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

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
    """

    server: Server
    uri: str


def start_hdfs(directory: Path) -> Hdfs:
    """Starts an empty cluster and returns once it takes files; the caller stops its server.

    Errors:
        EnvironmentMissing: no JDK 17 to 24, or no Maven.
        ArtifactUnavailable: Maven could not get it (110 MB the first time).
        ServerFailed.
    """
    jdk = find_jdk(17, 24)
    jars = class_path(*ARTIFACTS)
    rpc, http = free_port(), free_port()
    logging = directory / "logging"
    logging.mkdir(parents=True)
    (logging / "log4j.properties").write_text(LOGGING)
    log = directory / "hdfs.log"
    server = start_server(
        ServerSpec(
            name="hdfs",
            command=(
                jdk.java,
                "-Xmx512m",
                *ADD_OPENS,
                "-cp",
                os.pathsep.join(map(str, (logging, *jars))),
                str(_MAIN),
                str(directory / "data"),
                str(rpc),
                str(http),
            ),
            directory=directory,
            port=rpc,
            ready=lambda: "READY" in log.read_text("utf-8", errors="replace"),
        )
    )
    return Hdfs(server, f"hdfs://{LOOPBACK}:{rpc}")
