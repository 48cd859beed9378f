"""A Spark 4.1 with Iceberg's runtime, in a Python of its own, that reads through the HTTP door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from bridge.servers.java import find_jdk
from bridge.servers.maven import artifact_file, build_once, cache_directory, parse_artifact

_PYSPARK = "4.1.4"
_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_READS = Path(__file__).parents[1] / "engines" / "iceberg_reads.py"


def python_with_spark_41() -> Path:
    """An environment of the cache, made the first time."""

    def make(target: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        pip = [str(target / "bin" / "python"), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, f"pyspark=={_PYSPARK}"], check=True)

    return build_once(cache_directory() / f"pyspark-{_PYSPARK}", make) / "bin" / "python"


class SparkFailed(Exception):
    """What Spark says of a statement."""


class IcebergSpark:
    """One session; it ends with the block."""

    def __init__(self, scratch: Path, zone: str = "UTC") -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        jar = artifact_file(parse_artifact(_RUNTIME))
        environment = {**os.environ, "JAVA_HOME": str(find_jdk(17).home)}
        for name in ("SPARK_HOME", "PYTHONPATH", "PYSPARK_PYTHON"):
            environment.pop(name, None)
        self._log = (scratch / "spark.log").open("wb")
        self._process = subprocess.Popen(
            [str(python_with_spark_41()), str(_READS), str(jar), zone],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=scratch,
            env=environment,
            text=True,
        )
        self.version = self._answer()
        self._catalogs = 0

    def table(self, url: str) -> str:
        """The name of the table db.t behind a door, in a catalogue of its own."""
        self._catalogs += 1
        name = f"spark.sql.catalog.c{self._catalogs}"
        settings = {
            name: "org.apache.iceberg.spark.SparkCatalog",
            f"{name}.type": "rest",
            f"{name}.uri": url,
            f"{name}.cache-enabled": "false",
        }
        self("SELECT 1", **settings)
        return f"c{self._catalogs}.db.t"

    def __call__(self, sql: str, **settings: str) -> list[list[Any]]:
        """The rows of a statement. Errors: SparkFailed."""
        assert self._process.stdin is not None
        print(json.dumps({"sql": sql, "set": settings}), file=self._process.stdin, flush=True)
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
