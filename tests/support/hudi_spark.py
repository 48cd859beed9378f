"""A Python with PySpark 3.5, and a Spark in it that writes and reads Hudi tables for tests."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from bridge.servers.java import find_jdk
from bridge.servers.maven import Artifact, artifact_file, build_once, cache_directory

_ROOT = Path(__file__).parents[2]
_PYSPARK = "pyspark==3.5.6"
_RELEASES = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}
"""The release line of Hudi that writes each table version by default."""


def python_with_spark_35() -> Path:
    """What ``SKIPBRIDGE_HUDI_SPARK`` names, or an environment of the cache, made the first time."""
    named = os.environ.get("SKIPBRIDGE_HUDI_SPARK")
    if named:
        return Path(named)

    def make(target: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        pip = [str(target / "bin" / "python"), "-m", "pip", "install", "-q", _PYSPARK]
        subprocess.run(pip, check=True)

    return build_once(cache_directory() / "pyspark-3.5.6", make) / "bin" / "python"


def hudi_bundle(version: int) -> Path:
    """The bundle for Spark 3.5 of the release that writes this table version."""
    name = "hudi-spark3.5-bundle_2.12"
    return artifact_file(Artifact("org.apache.hudi", name, _RELEASES[version])).absolute()


def environment_of(python: Path) -> dict[str, str]:
    """In which that Python runs its own Spark."""
    home = str(_home(python))
    java = str(find_jdk(11, 17).home)
    return {**os.environ, "PYTHONPATH": str(_ROOT), "SPARK_HOME": home, "JAVA_HOME": java}


def spark_sql(python: Path, version: int) -> str:
    """What a user would set `hudi.spark` to."""
    words = [
        "env",
        f"JAVA_HOME={find_jdk(11, 17).home}",
        f"SPARK_HOME={_home(python)}",
        str(_home(python) / "bin" / "spark-sql"),
        *("--master", "local[2]", "--driver-memory", "1g"),
        *("--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.driver.extraJavaOptions=-Duser.timezone=UTC -XX:+UseSerialGC"),
        *("--jars", str(hudi_bundle(version)), "--driver-class-path", str(hudi_bundle(version))),
        *("--hiveconf", "hoodie.parquet.bloom.filter.enabled=false"),
    ]
    return shlex.join(words)


def _home(python: Path) -> Path:
    return next(python.parents[1].glob("lib/python3*/site-packages/pyspark"))


class HudiStory:
    """A process of ``tests/engines/hudi_story.py``; ends with the block."""

    def __init__(self, spark: Path, version: int, scratch: Path) -> None:
        self.version = version
        scratch.mkdir(parents=True, exist_ok=True)
        self._log = (scratch / "story.log").open("wb")
        self._process = subprocess.Popen(
            [str(spark), "-m", "tests.engines.hudi_story", str(hudi_bundle(version)), str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=_ROOT,
            env=environment_of(spark),
            text=True,
            start_new_session=True,
        )
        self._answer()

    def __call__(self, do: str, path: Path, **more: Any) -> Any:
        """One step of the story. Errors: AssertionError: Spark's own."""
        assert self._process.stdin is not None
        asked = json.dumps({"do": do, "path": str(path), **more})
        print(asked, file=self._process.stdin, flush=True)
        answer = self._answer()
        assert "is" in answer, answer["error"]
        return answer["is"]

    def kill(self, begun: Callable[[], bool], do: str, path: Path, **more: Any) -> None:
        """Begins a step, and kills Spark (SIGKILL) as soon as it has begun."""
        assert self._process.stdin is not None
        asked = json.dumps({"do": do, "path": str(path), **more})
        print(asked, file=self._process.stdin, flush=True)
        for _ in range(60_000):
            if begun():
                break
            assert self._process.poll() is None, self._log.name
            time.sleep(0.002)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@@"):
                return json.loads(line[2:])
        raise AssertionError(f"Spark ended with {self._process.wait()}: see {self._log.name}")

    def __enter__(self) -> HudiStory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._log.close()
