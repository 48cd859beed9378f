"""Runs Hudi's own table services in a Spark 3.5 of its own process.

Hudi has no bundle for Spark 4, so the Spark of this Python does not do. The child runs
``driver.py`` with a Python that has PySpark 3.5, or with the Python of a Spark home.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.kernel.errors import EnvironmentMissing, ExternalError, InvalidConfiguration
from bridge.servers.java import find_jdk
from bridge.servers.maven import Artifact, artifact_file

_RELEASES = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}
"""The bundle for each table version: the release line that writes it by default."""
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[-.]\w+)*")
_JAR = re.compile(r"hudi-spark(\d\.\d)-bundle_(2\.1[23])-(\d+\.\d+\.\d+)[^/]*\.jar")
_DRIVER = Path(__file__).with_name("driver.py")
_PROBE = "import pyspark as p; print(p.__version__); print(p.__path__[0])"
_REMEDY = (
    "give the setting hudi.spark: a Python that has PySpark 3.5 (python3.11 -m venv v; v/bin/pip "
    "install pyspark==3.5.6), or the home of a Spark 3.5"
)
_CLASS_PATH = "spark.driver.extraClassPath"
_KRYO = "org.apache.spark.serializer.KryoSerializer"
_SETTINGS = {
    "spark.app.name": "skipbridge cluster",
    "spark.master": "local[*]",
    "spark.serializer": _KRYO,
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LOCAL = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


class HudiFailed(ExternalError):
    """Hudi's own service failed, or the process that ran it."""

    code = "HUDI_FAILED"


@dataclass(frozen=True, slots=True)
class HudiSpark:
    """A Spark 3.5 and a bundle of Hudi for it.

    Attributes:
        python: runs the driver.
        environment: added to this process's.
        bundle: the jar.
        release: of Hudi; empty if the jar's name does not tell it.
    """

    python: str
    environment: Mapping[str, str]
    bundle: Path
    release: str

    def call(
        self,
        command: str,
        base: str,
        options: Mapping[str, str],
        *,
        instant: str = "",
        extra: Mapping[str, str] | None = None,
        spark: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Runs one command of the driver and waits for it; if this process dies, it ends too.

        Args:
            base: of the table, as Hadoop spells it.
            options: of Hudi's write client.
            extra: kept in the requested instant.
            spark: settings that override the usual ones.

        Errors:
            HudiFailed.
        """
        settings = {**_SETTINGS, **(spark or {})}
        if settings["spark.master"].startswith("local"):
            settings = {**_LOCAL, **settings}
        jars = [str(self.bundle), *filter(None, [settings.get("spark.jars")])]
        settings["spark.jars"] = ",".join(jars)
        # Threads of Java's common pool see no class of `spark.jars`, and Avro then takes Hudi's
        # records for generic ones.
        paths = [str(self.bundle), *filter(None, [settings.get(_CLASS_PATH)])]
        settings[_CLASS_PATH] = os.pathsep.join(paths)
        request = {
            "command": command,
            "base": base,
            "instant": instant,
            "options": dict(options),
            "extra": dict(extra or {}),
            "spark": settings,
        }
        with tempfile.TemporaryDirectory(prefix="skipbridge-hudi-") as directory:
            settings.setdefault("spark.sql.warehouse.dir", f"{directory}/warehouse")
            asked, reply = Path(directory) / "request.json", Path(directory) / "reply.json"
            log = Path(directory) / "spark.log"
            asked.write_text(json.dumps(request), "utf-8")
            status = self._run([str(asked), str(reply)], log, Path(directory))
            return _read(reply, log, status, command)

    def _run(self, arguments: list[str], log: Path, directory: Path) -> int:
        environment = {**os.environ, **self.environment, "PYSPARK_PYTHON": self.python}
        environment["PYSPARK_DRIVER_PYTHON"] = self.python
        with log.open("wb") as out:
            child = subprocess.Popen(
                [self.python, str(_DRIVER), *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
            try:
                return child.wait()
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)  # what a failed driver left, if anything
                child.wait()
                assert child.stdin is not None
                child.stdin.close()


def _read(reply: Path, log: Path, status: int, command: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(reply.read_text("utf-8"))
    except (OSError, ValueError):
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        said = " | ".join(lines[-3:]) or "it printed nothing"
        raise HudiFailed(
            f"the process that ran Hudi's {command} ended with status {status}: {said[:600]}",
            "the table is as it was, or its clustering is inflight: skipbridge cluster show",
        ) from None
    if "error" in found:
        raise HudiFailed(
            f"Hudi's {command} failed: {found['error']}",
            "the table is as it was, or its clustering is inflight: skipbridge cluster show",
        )
    result: dict[str, Any] = found["result"]
    return result


def find_hudi_spark(spark: str, bundle: str, table_version: int) -> HudiSpark:
    """The Spark and the bundle that the settings name.

    Args:
        spark: a Python, or the home of a Spark; empty: ``SPARK_HOME``, else this Python.
        bundle: a jar or a release of Hudi; empty: the release that writes the table version.

    Errors:
        EnvironmentMissing: no Spark 3.5, or no JDK for it.
        InvalidConfiguration: no such bundle, or it is too old for the table.
        ArtifactUnavailable: Maven cannot download the bundle.
    """
    python, environment, home = _spark(spark)
    scala = "2.13" if any(home.glob("jars/scala-library-2.13*.jar")) else "2.12"
    release = bundle or _RELEASES[table_version]
    jar = None
    if bundle and (bundle.endswith(".jar") or "/" in bundle):
        jar = Path(bundle).expanduser().absolute()
        if not jar.is_file():
            raise InvalidConfiguration(
                f"hudi.bundle is {bundle}, and there is no such file",
                "give a jar as Maven names it, or a release such as 1.2.0",
            )
        named = _JAR.fullmatch(jar.name)
        release = named[3] if named else ""
        if named and (named[1], named[2]) != ("3.5", scala):
            raise InvalidConfiguration(
                f"hudi.bundle is {jar.name}, and this Spark is 3.5 with Scala {scala}",
                f"give a jar hudi-spark3.5-bundle_{scala}, or leave it out",
            )
    elif not _VERSION.fullmatch(release):
        raise InvalidConfiguration(
            f"hudi.bundle is {bundle!r}, neither a jar nor a release", "give one such as 1.2.0"
        )
    least = 1 if table_version >= 8 else 0
    if release and int(release.split(".")[0]) < least:
        raise InvalidConfiguration(
            f"hudi.bundle is {release}, which does not know table version {table_version}",
            f"leave it out, or give {_RELEASES[table_version]} or later",
        )
    if jar is None:
        jar = artifact_file(
            Artifact("org.apache.hudi", f"hudi-spark3.5-bundle_{scala}", release)
        ).absolute()
    jdk = find_jdk(11, 17)
    return HudiSpark(python, {**environment, "JAVA_HOME": str(jdk.home)}, jar, release)


def _spark(given: str) -> tuple[str, dict[str, str], Path]:
    """The Python that runs the driver, its environment, and the home of Spark."""
    place = given or os.environ.get("SPARK_HOME", "")
    origin = f"hudi.spark is {given}" if given else f"SPARK_HOME is {place}"
    if place and (home := Path(place).expanduser().absolute()).is_dir():
        found = sorted(home.glob("jars/spark-core_2.1[23]-*.jar"))
        version = found[0].stem.partition("-")[2].partition("-")[2] if found else ""
        archives = sorted(home.glob("python/lib/py4j-*.zip"))
        if version.startswith("3.5.") and archives:
            path = os.pathsep.join([str(home / "python"), str(archives[0])])
            python = os.environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable
            return python, {"SPARK_HOME": str(home), "PYTHONPATH": path}, home
        if given:
            held = f"holds Spark {version}" if version else "is no home of Spark"
            raise EnvironmentMissing(f"{origin}, which {held}; Hudi needs 3.5", _REMEDY)
    python = str(Path(given).expanduser().absolute()) if given else sys.executable
    clean = {"PYTHONPATH": "", "SPARK_HOME": ""}
    version, package = _installed(python, clean)
    if version.startswith("3.5."):
        return python, {"PYTHONPATH": "", "SPARK_HOME": package}, Path(package)
    held = f"PySpark {version}" if version else "no PySpark"
    where = origin if given else f"this Python, {python}"
    raise EnvironmentMissing(f"{where} has {held}; Hudi's services need Spark 3.5", _REMEDY)


def _installed(python: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Version and directory of PySpark in a Python; empty if there is none."""
    try:
        said = subprocess.run(
            [python, "-c", _PROBE],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, **environment},
        )
    except (OSError, subprocess.TimeoutExpired):
        return "", ""
    lines = said.stdout.split("\n")
    return (lines[0], lines[1]) if said.returncode == 0 and len(lines) > 1 else ("", "")
