"""The Java projects' own tests, by Maven, where they lie; and Hive releases that compile only."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bridge.servers.java import find_jdk
from trino_plugin_gen.generate import generate, write
from trino_plugin_gen.versions import DEFAULT, supported

ROOT = Path(__file__).parents[2]


def maven(folder: str | Path, jdk: tuple[int, ...], *words: str) -> None:
    done = subprocess.run(
        ["mvn", "-q", "-B", *words],
        cwd=ROOT / folder,
        env={**os.environ, "JAVA_HOME": str(find_jdk(*jdk).home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


def test_the_connector_and_hudi_s_reader() -> None:
    maven("trino_plugin_gen/template", (25,), "package")
    maven("trino_plugin_gen/template", (25,), "-f", "hudi/pom.xml", "test")


@pytest.mark.full
@pytest.mark.parametrize("version", [v for v in supported() if v != DEFAULT])
def test_each_call_of_another_release_has_a_rule(version: int, tmp_path: Path) -> None:
    write(generate(version), tmp_path)
    maven(tmp_path, (25,), "-Dtest=TestMetadataRule", "test")


def test_the_hooks() -> None:
    maven("hive_hooks/java", (17, 24), "clean", "test")


@pytest.mark.full
def test_the_hooks_compile_for_hive_3() -> None:
    skip = ("-Dmaven.test.skip=true", "-Dhive.version=3.1.3")
    maven("hive_hooks/java", (17, 24), *skip, "clean", "compile")
