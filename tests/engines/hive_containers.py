"""HiveServer2 whose tasks run in containers: of Tez or MapReduce, on a YARN, over an HDFS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.servers.java import ADD_OPENS
from bridge.servers.maven import class_path
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_stack import PRUNING, TEZ, HookedHive, Scan, scans_in
from tests.support.hdfs import start_hdfs
from tests.support.servers.hiveserver2 import (
    CONTAINER_ARTIFACTS,
    OPENED_FOR_PLANS,
    HiveServer2Spec,
    start_hiveserver2,
)
from tests.support.yarn import Yarn, start_yarn

# No answer of the planner is late, however busy the machine is.
PATIENT = {"skipbridge.planner.timeout.ms": "60000"}
TASKS = {**TEZ, **PATIENT}
_JVM = " ".join(
    ("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *ADD_OPENS, *OPENED_FOR_PLANS)
)


@dataclass(frozen=True, slots=True)
class HiveInContainers:
    """A HiveServer2 over the two clusters.

    Attributes:
        server: HiveServer2, the hooks' jar on its class path and nowhere else.
        jar: that jar.
        properties: of its hive-site.xml, for another HiveServer2.
    """

    server: RunningHiveServer2
    yarn: Yarn
    jar: Path
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """Rows of a query, and what the logs of HiveServer2 and of the containers said meanwhile."""

    rows: list[tuple[Any, ...]]
    scans_of_server: list[Scan]
    scans: list[Scan]
    warnings: list[str]

    @property
    def read(self) -> int:
        return sum(s.read for s in self.scans)

    @property
    def listed(self) -> int:
        return sum(s.listed for s in self.scans)


def ask(
    hive: HookedHive,
    yarn: Yarn,
    sql: str,
    session: Mapping[str, str] = TASKS,
    changes: Mapping[str, str] | None = None,
) -> Told:
    """Runs one statement in the session of these settings, with changes for this statement.

    A session keeps its application master, so few sessions are better than many.
    """
    for key, value in {PRUNING: "true", **(changes or {})}.items():
        hive.ask(f"SET {key}={value}", session)
    before = {log: log.stat().st_size for log in yarn.logs()}
    answer = hive.ask(sql, session)
    text = []
    for path in yarn.logs():
        with path.open("rb") as log:
            log.seek(before.get(path, 0))
            text.append(log.read().decode("utf-8", "replace"))
    return Told(answer.rows, answer.scans, scans_in("\n".join(text)), answer.warnings)


@contextmanager
def hive_in_containers(
    directory: Path, metastore: RunningMetastore, jar: Path
) -> Iterator[HiveInContainers]:
    """Starts an HDFS, a YARN and a HiveServer2; tables may lie in files of this machine."""
    libraries = directory / "libraries"
    libraries.mkdir(parents=True)
    for library in class_path(*CONTAINER_ARTIFACTS):
        (libraries / library.name).symlink_to(library)
    with ExitStack() as running:
        hdfs = start_hdfs(directory / "hdfs")
        running.enter_context(hdfs.server)
        yarn = start_yarn(directory / "yarn")
        running.enter_context(yarn.server)
        properties = {**yarn.properties, **_properties(hdfs.uri, f"{libraries}/*")}
        hive = running.enter_context(
            another_hive(directory / "hiveserver2", metastore, jar, properties)
        )
        yield HiveInContainers(hive, yarn, jar, properties)


@contextmanager
def another_hive(
    directory: Path, metastore: RunningMetastore, jar: Path, properties: Mapping[str, str]
) -> Iterator[RunningHiveServer2]:
    """A HiveServer2 with the jar on its class path."""
    spec = HiveServer2Spec(
        directory,
        metastore.uri,
        port=0,
        auxiliary_jars=(jar,),
        heap="900m",
        properties={"skipbridge.planner.by_session": "true", **properties},
        jvm_options=("-XX:TieredStopAtLevel=1",),
    )
    with start_hiveserver2(spec) as server:
        running = RunningHiveServer2(server, metastore)
        yield running
        running.close()


def _properties(file_system: str, libraries: str) -> dict[str, str]:
    tez = {
        "tez.local.mode": "false",
        # The nodes have Tez and Hadoop installed, but neither Hive nor the hooks.
        "tez.ignore.lib.uris": "true",
        "tez.cluster.additional.classpath.prefix": libraries,
        "tez.am.resource.memory.mb": "512",
        "tez.am.launch.cmd-opts": _JVM,
        "tez.runtime.io.sort.mb": "32",
        "hive.tez.container.size": "512",
        "hive.tez.java.opts": _JVM,
    }
    mapreduce = {
        "mapreduce.framework.name": "yarn",
        "yarn.application.classpath": libraries,
        "mapreduce.application.classpath": libraries,
        "yarn.app.mapreduce.am.staging-dir": "/staging",
        "yarn.app.mapreduce.am.resource.mb": "512",
        "yarn.app.mapreduce.am.command-opts": _JVM,
        "mapreduce.task.io.sort.mb": "32",
        **{f"mapreduce.{kind}.memory.mb": "512" for kind in ("map", "reduce")},
        **{f"mapreduce.{kind}.java.opts": _JVM for kind in ("map", "reduce")},
    }
    return {
        "fs.defaultFS": file_system,
        "dfs.replication": "1",
        "hive.user.install.directory": "/install",
        "hive.jar.directory": f"{file_system}/install",
        **tez,
        **mapreduce,
    }
