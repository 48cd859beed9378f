"""Hive's metastore 4.0.1, from Maven artifacts, on Derby and the loopback address."""

from __future__ import annotations

import os

from bridge.servers.embedded_metastore import (
    NAME,
    MetastoreSpec,
    derby_url,
    jvm_options,
    write_configuration,
)
from bridge.servers.java import ADD_OPENS, find_jdk
from bridge.servers.maven import Artifact, class_path
from bridge.servers.process import LOOPBACK, Server, ServerSpec, choose_port, start_server

VERSION = "4.0.1"
_HADOOP = "3.3.6"
# A tools.jar that JDKs lack since 9, more SLF4J bindings, and an incomplete shaded Hadoop that
# hides the plain one.
_UNWANTED = (
    "jdk.tools:jdk.tools",
    "org.slf4j:slf4j-log4j12",
    "org.slf4j:slf4j-reload4j",
    "ch.qos.reload4j:reload4j",
    "org.apache.hadoop:hadoop-client-api",
)
ARTIFACTS = (
    Artifact("org.apache.hive", "hive-standalone-metastore-server", VERSION, exclusions=_UNWANTED),
    Artifact("org.apache.hadoop", "hadoop-common", _HADOOP, exclusions=_UNWANTED),
    Artifact("org.apache.hadoop", "hadoop-mapreduce-client-core", _HADOOP, exclusions=_UNWANTED),
    Artifact("org.apache.hadoop", "hadoop-hdfs", _HADOOP, exclusions=_UNWANTED),
)


def start_metastore_401(spec: MetastoreSpec, artifacts: tuple[Artifact, ...] = ARTIFACTS) -> Server:
    """Starts it and returns once it listens; the first time it downloads about 120 MB.

    Args:
        artifacts: its Maven artifacts; by default the metastore alone.

    Errors:
        EnvironmentMissing: no JDK 17 to 24 (its Hadoop does not run on 25), or no Maven.
        ArtifactUnavailable: Maven could not get the artifacts.
        PortInUse, ServerFailed: as for any server.
    """
    jdk = find_jdk(17, 24)
    jars = class_path(*artifacts)
    port = choose_port(spec.port, NAME)
    configuration = write_configuration(spec, derby_url(spec), _PROPERTIES)
    return start_server(
        ServerSpec(
            name=NAME,
            command=(
                jdk.java,
                *jvm_options(spec),
                *ADD_OPENS,
                "-cp",
                os.pathsep.join([str(configuration), *map(str, (*spec.class_path, *jars))]),
                "org.apache.hadoop.hive.metastore.HiveMetaStore",
                "-p",
                str(port),
            ),
            directory=spec.directory,
            port=port,
        )
    )


_PROPERTIES = {
    "metastore.thrift.bind.host": LOOPBACK,
    "datanucleus.schema.autoCreateAll": "true",
    "metastore.schema.verification": "false",
    # HiveServer2 and planners ask for events; without it only a proxy user may.
    "hive.metastore.event.db.notification.api.auth": "false",
    # Compactors and cleaners are for ACID tables, whose locks a new Derby schema lacks.
    "metastore.housekeeping.threads.on": "false",
    "metastore.compactor.initiator.on": "false",
    "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
}
