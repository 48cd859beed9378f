"""Sparks with Iceberg's runtime, each in a Python of its own, that read through the HTTP door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from bridge.servers.java import find_jdk
from bridge.servers.maven import artifact_file, build_once, cache_directory, parse_artifact

_READS = Path(__file__).parents[1] / "engines" / "iceberg_reads.py"
_CLIENT = "4.1.3"
S3_FILE_IO = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of PySpark, and Iceberg's runtime for it."""

    pyspark: str
    runtime: str


SPARK_41 = Release("4.1.4", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0")
SPARK_40 = Release("4.0.5", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0")
SPARK_35 = Release("3.5.6", "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0")


def python_with(package: str, version: str) -> Path:
    """An environment of the cache with one package, made the first time."""

    def make(target: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        pip = [str(target / "bin" / "python"), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, f"{package}=={version}"], check=True)

    return build_once(cache_directory() / f"{package}-{version}", make) / "bin" / "python"


def open_spark(
    scratch: Path,
    release: Release = SPARK_41,
    *,
    jars: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> IcebergSpark:
    """A Spark of its own.

    Args:
        jars: coordinates beside Iceberg's runtime.
    """
    files = [str(artifact_file(parse_artifact(jar))) for jar in (release.runtime, *jars)]
    told = {"spark.jars": ",".join(files), **(settings or {})}
    return IcebergSpark(scratch, python_with("pyspark", release.pyspark), told, environment)


def open_connect(scratch: Path, port: int) -> IcebergSpark:
    """A client of the Spark that listens on a port; no JVM of its own."""
    python = python_with("pyspark-client", _CLIENT)
    return IcebergSpark(scratch, python, {"spark.remote": f"sc://127.0.0.1:{port}"})


class SparkFailed(Exception):
    """What Spark says of a statement."""


class IcebergSpark:
    """One session in a Python; it ends with the block.

    Args:
        settings: of the session.
        environment: of its process.
    """

    def __init__(
        self,
        scratch: Path,
        python: Path,
        settings: Mapping[str, str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        whole = {**os.environ, "JAVA_HOME": str(find_jdk(17).home), **(environment or {})}
        for name in ("SPARK_HOME", "PYTHONPATH", "PYSPARK_PYTHON"):
            whole.pop(name, None)
        self._log = (scratch / "spark.log").open("wb")
        self._process = subprocess.Popen(
            [str(python), str(_READS), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=scratch,
            env=whole,
            text=True,
        )
        self.version = self._answer()
        self._catalogs = 0

    def catalog(self, url: str, **options: str) -> str:
        """A catalog of its own behind a door; its name."""
        self._catalogs += 1
        name = f"spark.sql.catalog.c{self._catalogs}"
        settings = {
            name: "org.apache.iceberg.spark.SparkCatalog",
            f"{name}.type": "rest",
            f"{name}.uri": url,
            f"{name}.cache-enabled": "false",
            **{f"{name}.{key}": value for key, value in options.items()},
        }
        self("SELECT 1", **settings)
        return f"c{self._catalogs}"

    def table(self, url: str, **options: str) -> str:
        """The name of the table db.t behind a door, in a catalog of its own."""
        return f"{self.catalog(url, **options)}.db.t"

    def __call__(self, sql: str, **settings: str) -> list[list[Any]]:
        """The rows of a statement. Errors: SparkFailed."""
        self.begin(sql, **settings)
        found: list[list[Any]] = self._answer()
        return found

    def begin(self, sql: str, **settings: str) -> None:
        """Starts a statement; `end` waits for its rows."""
        assert self._process.stdin is not None
        print(json.dumps({"sql": sql, "set": settings}), file=self._process.stdin, flush=True)

    def end(self) -> list[list[Any]]:
        """The rows of the statement that was begun. Errors: SparkFailed."""
        found: list[list[Any]] = self._answer()
        return found

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@@"):
                answer = json.loads(line[2:])
                if "error" in answer:
                    raise SparkFailed(answer["error"])
                return answer["is"]
        raise AssertionError(f"Spark ended with {self._process.wait()}: see {self._log.name}")

    def __enter__(self) -> IcebergSpark:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()
