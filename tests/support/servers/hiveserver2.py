"""HiveServer2 4.0.1 from Maven artifacts: one process that includes Tez, on loopback.

Queries run in fetch tasks or in Tez's local mode, inside the server's JVM, without YARN and
containers. Jars that queries need must therefore be on the server's class path: local Tez tasks do
not see jars of ``ADD JAR`` or ``hive.aux.jars.path``. With the properties of a YARN, queries run in
containers there, which need `CONTAINER_ARTIFACTS`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bridge.servers.embedded_metastore import LOGGING, MetastoreSpec, ensure_private_directory, site
from bridge.servers.java import ADD_OPENS, find_jdk
from bridge.servers.maven import Artifact, class_path
from bridge.servers.metastore_401 import start_metastore_401
from bridge.servers.process import LOOPBACK, Server, ServerSpec, choose_port, start_server

NAME = "hiveserver2"
VERSION = "4.0.1"
_HADOOP = "3.3.6"
_TEZ = "0.10.4"
# A repository that no longer exists, a tools.jar that JDKs lack since 9, a second Log4j 1 beside
# reload4j, a second SLF4J binding, and a shaded Hadoop of another version that hides the plain one.
_UNWANTED = (
    "org.pac4j:*",
    "jdk.tools:jdk.tools",
    "org.apache.logging.log4j:log4j-1.2-api",
    "org.slf4j:slf4j-log4j12",
    "org.slf4j:slf4j-reload4j",
    "org.apache.hadoop:hadoop-client-api",
)
# Hive's plans are serialised by reflection.
OPENED_FOR_PLANS = (
    "--add-opens=java.base/java.math=ALL-UNNAMED",
    "--add-opens=java.base/java.text=ALL-UNNAMED",
    "--add-opens=java.base/java.util.regex=ALL-UNNAMED",
    "--add-opens=java.sql/java.sql=ALL-UNNAMED",
)


def _artifact(coordinates: str) -> Artifact:
    group, name, version = coordinates.split(":")
    return Artifact(group, name, version, exclusions=_UNWANTED)


ARTIFACTS = (
    _artifact(f"org.apache.hive:hive-service:{VERSION}"),
    _artifact(f"org.apache.hive:hive-exec:{VERSION}"),
    _artifact(f"org.apache.hive:hive-standalone-metastore-server:{VERSION}"),
    _artifact(f"org.apache.hadoop:hadoop-client:{_HADOOP}"),
    _artifact(f"org.apache.hadoop:hadoop-hdfs:{_HADOOP}"),
    _artifact(f"org.apache.hadoop:hadoop-yarn-registry:{_HADOOP}"),
    _artifact(f"org.apache.tez:tez-dag:{_TEZ}"),
    _artifact(f"org.apache.tez:tez-mapreduce:{_TEZ}"),
    _artifact("org.apache.derby:derby:10.14.2.0"),
    _artifact("ch.qos.reload4j:reload4j:1.2.22"),
    # Of the release of Jackson's other jars. By itself Maven takes 2.11, with which they map no
    # objects: Hadoop's S3 client does not start.
    _artifact("com.fasterxml.jackson.core:jackson-annotations:2.16.1"),
)

# What containers of Tez and MapReduce find on their nodes; Hive ships its own jar.
CONTAINER_ARTIFACTS = (
    _artifact(f"org.apache.tez:tez-dag:{_TEZ}"),
    _artifact(f"org.apache.tez:tez-mapreduce:{_TEZ}"),
    _artifact(f"org.apache.hadoop:hadoop-client:{_HADOOP}"),
    _artifact(f"org.apache.hadoop:hadoop-hdfs:{_HADOOP}"),
    _artifact(f"org.apache.hadoop:hadoop-yarn-registry:{_HADOOP}"),
    _artifact(f"org.apache.hadoop:hadoop-mapreduce-client-app:{_HADOOP}"),
    # Tez's own; Hadoop asks for 2.5.
    _artifact("com.google.protobuf:protobuf-java:3.24.4"),
    # Application masters do not start without logging.
    _artifact("ch.qos.reload4j:reload4j:1.2.22"),
    _artifact("org.slf4j:slf4j-reload4j:1.7.36"),
)


@dataclass(frozen=True, slots=True)
class HiveServer2Spec:
    """A HiveServer2 to start.

    Attributes:
        directory: holds its configuration, log, pid file and scratch files.
        metastore_uri: a metastore of version 4.0; see `start_metastore_for_hiveserver2`.
        port: 0 for any free port.
        auxiliary_jars: come first on the class path, such as the hooks' jar.
        library_jars: come last, such as Hudi's, which bring classes of their own that Hive has too.
        heap: the JVM's heap size in Java's syntax; Tez tasks use it, too.
        properties: more entries of its hive-site.xml.
        jvm_options: such as ``-Duser.timezone=...``.
    """

    directory: Path
    metastore_uri: str
    port: int = 10000
    auxiliary_jars: tuple[Path, ...] = ()
    library_jars: tuple[Path, ...] = ()
    heap: str = "1500m"
    properties: Mapping[str, str] = field(default_factory=dict)
    jvm_options: tuple[str, ...] = ()
    log_level: str = "warn"
    start_timeout: float = 180.0


def start_hiveserver2(spec: HiveServer2Spec) -> Server:
    """Starts it and returns once it listens; the first time it downloads about 310 MB.

    Errors:
        EnvironmentMissing: no JDK 17 to 24 (its Hadoop does not run on 25), or no Maven.
        ArtifactUnavailable: Maven could not get the artifacts.
        PortInUse, ServerFailed: as for any server.
    """
    jdk = find_jdk(17, 24)
    jars = class_path(*ARTIFACTS)
    port = choose_port(spec.port, NAME)
    configuration = _write_configuration(spec, port)
    first, last = ([jar.absolute() for jar in j] for j in (spec.auxiliary_jars, spec.library_jars))
    libraries = [configuration, *first, *jars, *last]
    return start_server(
        ServerSpec(
            name=NAME,
            command=(
                jdk.java,
                f"-Xmx{spec.heap}",
                # Short-lived: fast startup matters more than peak speed.
                "-XX:+UseSerialGC",
                f"-Djava.io.tmpdir={ensure_private_directory(spec.directory / 'tmp')}",
                *spec.jvm_options,
                *ADD_OPENS,
                *OPENED_FOR_PLANS,
                "-cp",
                os.pathsep.join(map(str, libraries)),
                "org.apache.hive.service.server.HiveServer2",
            ),
            directory=spec.directory,
            port=port,
            start_timeout=spec.start_timeout,
        )
    )


def start_metastore_for_hiveserver2(spec: MetastoreSpec) -> Server:
    """Starts a metastore 4.0.1 that can evaluate HiveServer2's partition filters.

    The filters are serialised expressions of hive-exec, which the stand-alone metastore lacks.
    """
    proxy = "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore"
    properties = {"metastore.expression.proxy": proxy, **(spec.properties or {})}
    return start_metastore_401(replace(spec, properties=properties), ARTIFACTS)


def _write_configuration(spec: HiveServer2Spec, port: int) -> Path:
    directory = ensure_private_directory(spec.directory / "conf")
    scratch = ensure_private_directory(spec.directory / "scratch")
    properties = {
        "hive.metastore.uris": spec.metastore_uri,
        "hive.server2.thrift.bind.host": LOOPBACK,
        "hive.server2.thrift.port": str(port),
        "hive.server2.enable.doAs": "false",
        "hive.server2.webui.port": "0",
        "hive.server2.tez.initialize.default.sessions": "false",
        # Background services that are not needed here.
        "hive.scheduled.queries.executor.enabled": "false",
        "hive.server2.materializedviews.registry.impl": "DUMMY",
        # A line is in the log when the query that wrote it has ended.
        "hive.async.log.enabled": "false",
        # No compactor and no locks: there are no ACID tables, and a new Derby schema has no locks.
        "hive.support.concurrency": "false",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
        "hive.execution.engine": "tez",
        "tez.local.mode": "true",
        "tez.ignore.lib.uris": "true",
        "tez.runtime.optimize.local.fetch": "true",
        "tez.staging-dir": str(scratch / "tez"),
        "fs.defaultFS": "file:///",
        "hive.exec.scratchdir": str(scratch / "query"),
        "hive.exec.local.scratchdir": str(scratch / "local"),
        "hive.downloaded.resources.dir": str(scratch / "resources"),
        "hive.querylog.location": str(scratch / "log"),
        "hive.server2.logging.operation.log.location": str(scratch / "operations"),
        "hadoop.tmp.dir": str(scratch / "hadoop"),
        **spec.properties,
    }
    (directory / "hive-site.xml").write_text(site(properties), "utf-8")
    # The hooks log there which files each scan reads.
    logging = LOGGING.format(level=spec.log_level) + (
        "logger.skipbridge.name = io.skipbridge\nlogger.skipbridge.level = info\n"
    )
    for name in ("log4j2.properties", "hive-log4j2.properties"):
        (directory / name).write_text(logging, "utf-8")
    return directory
