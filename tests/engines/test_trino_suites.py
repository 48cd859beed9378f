"""Trino's published connector suites, in three nodes of Trino 476, against the built plugin.

The Maven project is tests/trino_suites. Some of it runs; all of it with --tier=nightly.
SKIPBRIDGE_SUITES names classes, with commas, to run those alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.java import find_jdk
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK
from tests.engines.suite_tables import SuiteTables, served
from tests.tiers import nightly

pytestmark = pytest.mark.full

_PROJECT = Path(__file__).parents[1] / "trino_suites"
# Chosen for the widest cover in the least time. Partition pruning by joins has tests of our own.
_SOME = (
    "TestSkipbridgeConnectorTest",
    "!TestSkipbridgeConnectorTest#testTableSampleBernoulli",
    "TestComplexTypesPredicatePushDown",
)


@pytest.fixture(scope="module")
def properties(
    plugin_476: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """What the suites are told: addresses of the planner and of who makes tables.

    The metastore is their own: they look into information_schema for tables of any schema.
    """
    directory = tmp_path_factory.mktemp("suites")
    spec = MetastoreSpec(directory / "metastore", directory / "warehouse", port=0, in_memory=True)
    with start_embedded_metastore(spec) as metastore:
        yield from _served(directory, f"thrift://{LOOPBACK}:{metastore.port}", plugin_476)


def _served(directory: Path, metastore: str, plugin: Path) -> Iterator[dict[str, str]]:
    tables = SuiteTables(directory / "tables", metastore)
    tables.write_tpch()
    environment = {
        "SKIPBRIDGE_CACHE": str(directory / "cache"),
        # Small enough that files are cut in ranges, and many files make several splits.
        "SKIPBRIDGE_SPLITS_TARGET_BYTES": "256KiB",
        "SKIPBRIDGE_SPLITS_OPEN_COST": "4KiB",
    }
    planner = start_planner(directory / "planner", metastore, environment=environment)
    try:
        with served(tables) as address:
            yield {
                "skipbridge.planner": f"{LOOPBACK}:{planner.port}",
                "skipbridge.plugins": str(plugin.parent),
                "skipbridge.tables": address,
            }
    finally:
        planner.stop()


def test_trino_suites(properties: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "suites"
    shutil.copytree(_PROJECT, project, ignore=shutil.ignore_patterns("target"))
    words = [f"-D{name}={value}" for name, value in properties.items()]
    chosen = os.environ.get("SKIPBRIDGE_SUITES") or ("" if nightly() else ",".join(_SOME))
    if chosen:
        words.append(f"-Dtest={chosen}")
    with (tmp_path / "maven.log").open("wb") as log:
        done = subprocess.run(
            ["mvn", "-B", "-q", *words, "test"],
            cwd=project,
            env={**os.environ, "JAVA_HOME": str(find_jdk(25).home)},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    run, failed = _results(project / "target" / "surefire-reports")
    assert not failed, "\n".join(f"{name}: {cause}" for name, cause in sorted(failed.items()))
    assert run and done.returncode == 0, (tmp_path / "maven.log").read_text("utf-8")[-5000:]


def _results(reports: Path) -> tuple[int, dict[str, str]]:
    """How many tests ran, and the first lines of those that failed."""
    run = 0
    failed: dict[str, str] = {}
    for file in reports.glob("TEST-*.xml"):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            run += case.find("skipped") is None
            for problem in (*case.iter("failure"), *case.iter("error")):
                name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
                failed[name] = "\n  ".join((problem.text or "").splitlines()[:8])
    return run, failed
