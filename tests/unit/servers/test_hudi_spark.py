"""The process that runs Hudi's services: how it is found, and how it ends. No Spark takes part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.clustering.hudi import spark as hudi_spark
from bridge.clustering.hudi.spark import HudiFailed, HudiSpark, find_hudi_spark
from bridge.kernel.errors import EnvironmentMissing, InvalidConfiguration


def _home(tmp_path: Path, version: str, scala: str = "2.12") -> Path:
    """What a Spark of that version looks like from outside."""
    home = tmp_path / f"spark-{version}"
    (home / "jars").mkdir(parents=True)
    (home / "python" / "lib").mkdir(parents=True)
    (home / "jars" / f"spark-core_{scala}-{version}.jar").touch()
    (home / "jars" / f"scala-library-{scala}.18.jar").touch()
    (home / "python" / "lib" / "py4j-0.10.9.7-src.zip").touch()
    return home


def _bundle(tmp_path: Path, name: str = "hudi-spark3.5-bundle_2.12-1.2.0.jar") -> str:
    (tmp_path / name).touch()
    return str(tmp_path / name)


def test_a_home_of_spark_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, bundle = _home(tmp_path, "3.5.6"), _bundle(tmp_path)
    found = find_hudi_spark(str(home), bundle, 9)
    assert found.environment["SPARK_HOME"] == str(home) and found.release == "1.2.0"
    assert found.environment["PYTHONPATH"].startswith(str(home / "python"))
    monkeypatch.setenv("SPARK_HOME", str(home))
    assert find_hudi_spark("", bundle, 9).environment["SPARK_HOME"] == str(home)


def test_other_versions_are_refused_by_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with pytest.raises(EnvironmentMissing, match=r"which holds Spark 4\.0\.1; Hudi needs 3\.5"):
        find_hudi_spark(str(_home(tmp_path, "4.0.1")), "", 9)
    with pytest.raises(EnvironmentMissing, match="which is no home of Spark"):
        find_hudi_spark(str(tmp_path), "", 9)
    with pytest.raises(EnvironmentMissing, match="/nowhere has no PySpark"):
        find_hudi_spark("/nowhere", "", 9)


@pytest.mark.parametrize(
    ("bundle", "version", "said"),
    [
        ("hudi-spark3.5-bundle_2.13-1.2.0.jar", 9, "is 3.5 with Scala 2.12"),
        ("hudi-spark4.0-bundle_2.12-1.2.0.jar", 9, "is 3.5 with Scala 2.12"),
        ("hudi-spark3.5-bundle_2.12-0.15.0.jar", 8, "does not know table version 8"),
        ("latest", 6, "neither a jar nor a release"),
        ("missing.jar", 6, "there is no such file"),
        ("0.15.0", 9, "does not know table version 9"),
    ],
)
def test_bundles_that_do_not_fit(tmp_path: Path, bundle: str, version: int, said: str) -> None:
    given = _bundle(tmp_path, bundle) if bundle.startswith("hudi-") else bundle
    with pytest.raises(InvalidConfiguration, match=said):
        find_hudi_spark(str(_home(tmp_path, "3.5.6")), given, version)


def _child(tmp_path: Path, body: str) -> HudiSpark:
    """A child whose pyspark is this module."""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(body)
    environment = {"PYTHONPATH": str(tmp_path)}
    return HudiSpark(sys.executable, environment, Path("/none.jar"), "1.2.0")


def test_a_child_that_dies_is_one_error(tmp_path: Path) -> None:
    child = _child(tmp_path, "import os; print('no memory', flush=True); os._exit(9)")
    with pytest.raises(HudiFailed, match="ended with status 9: no memory"):
        child.call("run", "file:///t", {}, instant="1")


def test_an_error_of_the_child_is_told(tmp_path: Path) -> None:
    with pytest.raises(HudiFailed, match="Hudi's schedule failed: ValueError: so it is"):
        _child(tmp_path, "raise ValueError('so it is')").call("schedule", "file:///t", {})


_COMMAND = """
import os, sys

class SparkConf:
    def __init__(self, loadDefaults=True):
        pass
    def setAll(self, pairs):
        self.pairs = sorted(pairs)
        return self

class SparkContext:
    @staticmethod
    def _ensure_initialized(conf):
        left = os.path.exists(sys.argv[1])
        raise ValueError(f"{conf.pairs}, request there: {left}")
"""
"""A PySpark that tells what it would start a JVM with."""


def test_secrets_are_on_no_command_line_and_the_request_is_gone(tmp_path: Path) -> None:
    child = _child(tmp_path, _COMMAND)
    (tmp_path / "pyspark" / "sql.py").write_text("SparkSession = None")
    settings = {
        "spark.driver.memory": "1g",
        "spark.hadoop.fs.s3a.secret.key": "hidden",
        "spark.hadoop.fs.s3a.access.key": "hidden",
        "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": "hidden",
        "spark.hadoop.fs.azure.sas.fixed": "hidden",
        "spark.ssl.keyPassword": "hidden",
        "spark.hadoop.fs.s3a.session.token": "hidden",
    }
    with pytest.raises(HudiFailed) as failed:
        child.call("schedule", "file:///t", {}, spark=settings)
    said = str(failed.value)
    assert "('spark.driver.memory', '1g')" in said and "request there: False" in said
    assert "hidden" not in said


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    child = _child(tmp_path, "import threading; threading.Event().wait()")
    (tmp_path / "request.json").write_text(
        json.dumps({"command": "run", "base": "", "instant": "", "options": {}, "spark": {}})
    )
    driver = Path(hudi_spark.__file__).with_name("driver.py")
    process = subprocess.Popen(
        [sys.executable, str(driver), str(tmp_path / "request.json"), str(tmp_path / "reply.json")],
        stdin=subprocess.PIPE,
        env={**os.environ, **child.environment},
    )
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(120) == 3
    assert not (tmp_path / "reply.json").exists()
