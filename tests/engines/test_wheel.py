"""The wheel in an empty environment: the tutorial's first steps, without PySpark and a checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bridge
from bridge.trino.plugin import supported_versions

pytestmark = [pytest.mark.full, pytest.mark.engine]
CHECKOUT = Path(bridge.__file__).parents[1]
Run = Callable[..., str]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs the `skipbridge` of the wheel in a directory of its own, and returns its output."""
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", place, CHECKOUT], check=True
    )
    (wheel,) = place.glob("skipbridge-*.whl")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    pip = [place / "venv" / "bin" / "python", "-m", "pip", "install", "-q"]
    subprocess.run([*pip, wheel], check=True)
    cache = {"SKIPBRIDGE_CACHE": str(place / "cache")}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | cache

    def run(*words: object, status: int = 0, **more: str) -> str:
        done = subprocess.run(
            [place / "venv" / "bin" / "skipbridge", *map(str, words)],
            cwd=place,
            env=environment | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + (done.stderr if status else "")

    page = (CHECKOUT / "docs" / "tutorial.md").read_text("utf-8")
    script = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert script is not None
    python = place / "venv" / "bin" / "python"
    subprocess.run([python, "-c", script[1]], cwd=place, env=environment, check=True)
    yield run


def test_an_answer_without_any_server(command: Run) -> None:
    where = "month = 3 AND day = 8 AND dep_delay > 60"
    before = json.loads(command("explain", "./flights", where, "--output", "json"))
    assert before["files"] == {"total": 28, "kept": 28}
    command("index", "build", "./flights")
    after = json.loads(command("explain", "./flights", where, "--output", "json"))
    assert after["files"] == {"total": 28, "kept": 1}
    command("index", "build", "./flights", "--bloom", "tailnum")
    found = json.loads(command("explain", "./flights", "tailnum = 'N00042'", "--output", "json"))
    assert found["files"]["kept"] < 60


def test_a_command_names_the_extra_that_it_lacks(command: Run) -> None:
    lacks = "pip install 'skipbridge[{}]'"
    assert lacks.format("spark") in command("index", "build", "./flights", "--spark", status=2)
    told = command("cluster", "run", "./flights", "--now", "--by", "day", status=2)
    assert lacks.format("spark") in told and "--local" in told
    assert lacks.format("spark") in command("metastore", "start", "--port", 0, status=2)
    assert lacks.format("trino") in command("doctor", "--trino", "127.0.0.1:1", status=1)
    assert lacks.format("hive") in command("doctor", "--hive", "127.0.0.1:1", status=1)
    assert lacks.format("hdfs") in command("explain", "hdfs://nowhere:1/t", status=2)


def test_a_table_of_the_metastore(command: Run) -> None:
    """Steps 5 and 6, and what the wheel holds for step 7 and 8."""
    uri = command("metastore", "start", "--hive", "4.0.1", "--detach", "--port", 0).strip()
    try:
        known = {"SKIPBRIDGE_METASTORE_URI": uri}
        told = command("sync", "demo.flights", "--location", "flights", **known)
        assert "demo.flights created: 4 columns, 12 partitions added" in told
        assert "12 unchanged" in command("sync", "demo.flights", **known)
        found = json.loads(
            command("explain", "demo.flights", "day = 8", "--output", "json", **known)
        )
        assert found["files"] == {"total": 336, "kept": 12}
    finally:
        command("metastore", "stop")
    assert command("plugin", "versions").split() == ["476", "483"]


def test_the_java_projects_travel_whole(command: Run) -> None:
    """Both compile the sources of `jvm_client`, which lie beside them."""
    jar = command("hive", "jar", "--to", "jars").splitlines()[0]
    assert jar.endswith("skipbridge-hive-4.0.1.jar")


LIBRARIES = {
    "skipbridge": "trino-skipbridge",
    "Trino and its libraries": "trino-.*",
    "Airlift": "bootstrap|concurrent|configuration|http-client|json|log|log-manager|node"
    "|secrets-spi|security|stats",
    "AWS SDK for Java": "annotations|apache5?-client|arns|auth|aws-.*|checksums.*|crt-core"
    "|endpoints-spi|http-(auth.*|client-spi)|identity-spi|json-utils|metrics-spi|profiles|protocol-core|regions"
    "|retries.*|s3|sdk-core|sts|third-party-jackson-core|utils|utils-lite",
    "Avro": "avro",
    "Commons": "commons-.*",
    "HttpComponents": "http(client|core).*",
    "Log4j API": "log4j-api",
    "ORC": "orc-format",
    "Parquet": "parquet-.*",
    "error-prone": "error_prone_annotations",
    "Google Guava and Guice": "guava|guice|failureaccess",
    "Hibernate Validator": "hibernate-validator",
    "J2ObjC annotations": "j2objc-annotations",
    "Jackson": "jackson-.*",
    "Jakarta Inject and Validation": "jakarta.(inject|validation)-api",
    "Jakarta Annotations": "jakarta.annotation-api",
    "JBoss Logging": "jboss-logging",
    "JToml": "jtoml-all",
    "JTS Topology Suite": "jts-.*",
    "Joda-Time": "joda-time",
    "JSpecify": "jspecify",
    "modernizer": "modernizer-maven-annotations",
    "OpenTelemetry": "opentelemetry-.*",
    "Jetty": "jetty-.*",
    "Logback": "logback-core",
    "SLF4J": "slf4j-.*|jcl-over-slf4j|log4j-(over|to)-slf4j",
    "Checker Framework": "checker-qual",
    "Reactive Streams": "reactive-streams",
    "ANTLR 4 runtime": "antlr4-runtime",
    "ASM": "asm",
    "Protocol Buffers": "protobuf-java",
    "AOP Alliance": "aopalliance",
    **{
        name: f"{name}.*"
        for name in (
            "aircompressor", "classmate", "fastutil", "jmxutils", "json-simple", "lz4-java",
            "recsup", "snappy-java", "tomlj", "units", "zero-allocation-hashing", "eventstream",
            "java-string-similarity", "zstd-jni", "HdrHistogram", "allgood-consistent-hash",
        )
    },
}  # fmt: skip
"""What NOTICE says, by the names of jars."""


@pytest.mark.parametrize("version", supported_versions())
def test_the_notice_names_every_library_of_a_connector(command: Run, version: str) -> None:
    built = command("plugin", "build", "--trino-version", version, "--to", f"trino-{version}")
    jars = [path.name for path in Path(built.splitlines()[-1]).glob("*.jar")]
    notice = (CHECKOUT / "NOTICE").read_text("utf-8")
    told = "|".join(names for words, names in LIBRARIES.items() if words in notice)
    assert len(jars) > 100
    assert [name for name in jars if not re.fullmatch(rf"({told})-\d.*\.jar", name)] == []
