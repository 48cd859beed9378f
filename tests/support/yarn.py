"""A real YARN on loopback: one resource and one node manager of Hadoop's own mini cluster.

Containers are processes of this machine. They end with the cluster.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bridge.servers.java import ADD_OPENS, find_jdk
from bridge.servers.maven import class_path, parse_artifact
from bridge.servers.process import LOOPBACK, Server, ServerSpec, free_port, start_server
from tests.support import hdfs

# The mini cluster's own list lacks one that YARN needs at run time.
ARTIFACTS = (*hdfs.ARTIFACTS, parse_artifact("junit:junit:4.13.2"))
_MAIN = Path(__file__).with_name("java") / "MiniYarn.java"
_MANAGER_PORTS = ("", ".scheduler", ".resource-tracker", ".admin", ".webapp")


@dataclass(frozen=True, slots=True)
class Yarn:
    """A running cluster.

    Attributes:
        properties: by which clients find it.
    """

    server: Server
    properties: dict[str, str]

    def logs(self) -> list[Path]:
        """The logs of all containers so far, application masters and tasks."""
        directory = self.server.log.parent / "target" / "test" / "data" / "yarn"
        return sorted(directory.glob("*/yarn-logDir-*/application_*/container_*/syslog*"))


def start_yarn(directory: Path) -> Yarn:
    """Starts a cluster of 6 GB and returns once it takes applications.

    Errors:
        EnvironmentMissing: no JDK 17 to 24, or no Maven.
        ArtifactUnavailable: Maven could not get it (110 MB the first time).
        ServerFailed.
    """
    jdk = find_jdk(17, 24)
    jars = class_path(*ARTIFACTS)
    addresses = {
        f"yarn.resourcemanager{part}.address": f"{LOOPBACK}:{free_port()}"
        for part in _MANAGER_PORTS
    }
    properties = {
        **addresses,
        "yarn.minicluster.fixed.ports": "true",
        "yarn.resourcemanager.hostname": LOOPBACK,
        "yarn.resourcemanager.bind-host": LOOPBACK,
        "yarn.nodemanager.address": f"{LOOPBACK}:0",
        "yarn.nodemanager.localizer.address": f"{LOOPBACK}:0",
        "yarn.nodemanager.collector-service.address": f"{LOOPBACK}:0",
        "yarn.nodemanager.webapp.address": f"{LOOPBACK}:0",
        "yarn.nodemanager.resource.memory-mb": "6144",
        "yarn.nodemanager.resource.cpu-vcores": "8",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
        # A full disk of this machine is not its business.
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.aux-services.mapreduce_shuffle.class": (
            "org.apache.hadoop.mapred.ShuffleHandler"
        ),
        "mapreduce.shuffle.port": "0",
        "fs.defaultFS": "file:///",
    }
    logging = directory / "logging"
    logging.mkdir(parents=True)
    (logging / "log4j.properties").write_text(hdfs.LOGGING)
    log = directory / "yarn.log"
    server = start_server(
        ServerSpec(
            name="yarn",
            command=(
                jdk.java,
                "-Xmx512m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                *ADD_OPENS,
                "-cp",
                os.pathsep.join(map(str, (logging, *jars))),
                str(_MAIN),
                *(f"{name}={value}" for name, value in properties.items()),
            ),
            directory=directory,
            ready=lambda: "READY" in log.read_text("utf-8", errors="replace"),
            environment={"JAVA_HOME": str(jdk.home)},
        )
    )
    return Yarn(server, addresses)
