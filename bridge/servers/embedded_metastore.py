"""The metastore included in PySpark: Hive 2.3.10 on Derby, without downloads.

It listens only on the loopback address. Hive's own main class would listen on all addresses without
authentication.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from bridge.kernel.errors import EnvironmentMissing
from bridge.servers.java import ADD_OPENS, find_jdk
from bridge.servers.process import Server, ServerSpec, choose_port, start_server

NAME = "metastore"
FILE_SYSTEMS = "hive.skipbridge.file.systems"
"""The property in which this metastore lists the URI schemes it has file systems for."""
_FILE_SYSTEMS = ("file", "hdfs", "viewfs", "webhdfs")
_LAUNCHER = Path(__file__).with_name("LoopbackMetastore.java")
LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class MetastoreSpec:
    """A metastore to start.

    Attributes:
        directory: holds its configuration, log, pid file and, unless ``in_memory``, its database.
        warehouse: default location of managed tables and databases, a directory or a URI;
            ``<directory>/warehouse`` by default.
        port: 0 for any free port.
        in_memory: the database is lost when the server ends.
        heap: the JVM's heap size in Java's syntax.
        properties: more entries of its hive-site.xml.
        class_path: more jars, such as a database driver or a listener.
    """

    directory: Path
    warehouse: Path | str | None = None
    port: int = 9083
    in_memory: bool = False
    heap: str = "512m"
    properties: Mapping[str, str] | None = None
    class_path: tuple[Path, ...] = ()
    log_level: str = "warn"


def start_embedded_metastore(spec: MetastoreSpec) -> Server:
    """Starts it and returns once it listens.

    Errors:
        EnvironmentMissing: no JDK 17 or newer, or no PySpark.
        PortInUse: the port is in use.
        ServerFailed: it did not start.
    """
    jdk = find_jdk(17)
    jars = pyspark_jars()
    port = choose_port(spec.port, NAME)
    configuration = write_configuration(spec, derby_url(spec), _properties())
    return start_server(
        ServerSpec(
            name=NAME,
            command=(
                jdk.java,
                *jvm_options(spec),
                *ADD_OPENS,
                "-cp",
                os.pathsep.join([str(configuration), *map(str, spec.class_path), f"{jars}/*"]),
                str(_LAUNCHER),
                str(port),
            ),
            directory=spec.directory,
            port=port,
        )
    )


def pyspark_jars() -> Path:
    """The jars of the installed PySpark, found without importing it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise EnvironmentMissing(
            "the embedded metastore is inside PySpark, which is not installed",
            "pip install 'skipbridge[spark]'",
        )
    return Path(found.origin).parent / "jars"


def jvm_options(spec: MetastoreSpec) -> tuple[str, ...]:
    return (
        f"-Xmx{spec.heap}",
        # Derby parses `a OR b OR ...` by recursion: 4.0's drop of 1,000 partitions overflows 1 MB.
        "-Xss8m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",  # short-lived: fast startup matters more than peak speed
        f"-Dderby.stream.error.file={spec.directory / 'derby.log'}",
        f"-Djava.io.tmpdir={ensure_private_directory(spec.directory / 'tmp')}",
    )


def derby_url(spec: MetastoreSpec) -> str:
    if spec.in_memory:
        # The name must be unique only within the JVM.
        digest = hashlib.sha256(str(spec.directory).encode()).hexdigest()[:12]
        return f"jdbc:derby:memory:skipbridge{digest};create=true"
    return f"jdbc:derby:;databaseName={spec.directory / 'metastore_db'};create=true"


def write_configuration(spec: MetastoreSpec, url: str, more: Mapping[str, str]) -> Path:
    """Writes hive-site.xml and the logging configuration; returns their directory."""
    directory = ensure_private_directory(spec.directory / "conf")
    warehouse = spec.directory / "warehouse" if spec.warehouse is None else spec.warehouse
    if isinstance(warehouse, Path):
        warehouse = ensure_private_directory(warehouse).resolve().as_uri()
    properties = {
        "javax.jdo.option.ConnectionURL": url,
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "hive.metastore.warehouse.dir": warehouse,
        # Locations without a scheme are on the local file system.
        "fs.defaultFS": "file:///",
        **more,
        **(spec.properties or {}),
    }
    given = [key.split(".")[1] for key in properties if re.fullmatch(r"fs\.\w+\.impl", key)]
    properties.setdefault(FILE_SYSTEMS, ",".join(dict.fromkeys((*_FILE_SYSTEMS, *given))))
    for name in ("hive-site.xml", "metastore-site.xml"):
        (directory / name).write_text(site(properties), "utf-8")
    (directory / "log4j2.properties").write_text(LOGGING.format(level=spec.log_level), "utf-8")
    (directory / "hive-log4j2.properties").write_text(LOGGING.format(level=spec.log_level), "utf-8")
    return directory


def _properties() -> dict[str, str]:
    return {
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        # Asynchronous logging needs a library that PySpark does not include.
        "hive.async.log.enabled": "false",
        # Setting permissions forks a process per directory, and they are inherited anyway.
        "hive.warehouse.subdir.inherit.perms": "false",
        # PySpark does not include BoneCP, the default of Hive 2.3.
        "datanucleus.connectionPoolingType": "dbcp",
    }


def site(properties: Mapping[str, str]) -> str:
    """A Hadoop configuration file."""
    entries = "".join(
        f"  <property><name>{escape(k)}</name><value>{escape(v)}</value></property>\n"
        for k, v in sorted(properties.items())
    )
    return f"<configuration>\n{entries}</configuration>\n"


def ensure_private_directory(directory: Path) -> Path:
    """Creates the directory, accessible only to this user, if it does not exist."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory
