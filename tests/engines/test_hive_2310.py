"""Hive 2.3.10's command line, which has no server here: its plans skip files, fetched and in
MapReduce (nightly: it takes 170 MB of jars).
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.servers.java import ADD_OPENS, find_jdk
from bridge.servers.maven import class_path, parse_artifact
from bridge.table.model import TableName
from tests.engines.conftest import RunningMetastore
from tests.engines.hive_sales import write_sales
from tests.engines.hive_stack import HOOK, age, index, planner_under_test, register
from tests.support.built import built_jar

pytestmark = pytest.mark.full

VERSION = "2.3.10"
SALES = TableName("older", "sales")
QUERIES = (
    f"SELECT k, s FROM {SALES} WHERE k = 77",
    f"SELECT count(*), sum(k) FROM {SALES} WHERE k < 25",
    f"SELECT one.k, two.s FROM {SALES} one JOIN {SALES} two ON one.k = two.k "
    "WHERE one.k = 7 AND two.k < 20",
)
_LEFT_OUT = (
    *("jdk.tools:jdk.tools", "org.pentaho:*", "org.apache.hbase:*", "org.apache.spark:*"),
    *("org.apache.hive:hive-llap-server", "org.apache.hive:hive-llap-tez"),
    *("org.apache.hive:spark-client", "org.apache.slider:*", "org.eclipse.jetty.aggregate:*"),
    *("org.slf4j:slf4j-log4j12", "org.slf4j:slf4j-reload4j", "log4j:log4j"),
    *("org.apache.logging.log4j:log4j-web", "org.apache.calcite.avatica:avatica-metrics"),
)
_JARS = (
    *(f"org.apache.hive:hive-cli:{VERSION}", f"org.apache.hive:hive-exec:{VERSION}"),
    *("org.apache.hadoop:hadoop-client:3.3.6", "ch.qos.reload4j:reload4j:1.2.22"),
    *(f"org.apache.logging.log4j:log4j-{p}:2.24.1" for p in ("1.2-api", "core", "slf4j-impl")),
)
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %p %c{1}: %m%n
"""
# Parquet's own messages would otherwise go between the rows.
_PARQUET_LOGGING = """\
org.apache.parquet.handlers = java.util.logging.ConsoleHandler
java.util.logging.ConsoleHandler.level = SEVERE
"""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The command line over a metastore; each question is a process of its own."""

    directory: Path
    jar: Path
    settings: dict[str, str]

    def ask(self, more: dict[str, str]) -> tuple[list[str], list[tuple[int, int]]]:
        """Rows of all queries, and what was read of how many files by each listing."""
        settings = {**self.settings, **more}
        jars = class_path(*(parse_artifact(jar, *_LEFT_OUT) for jar in _JARS))
        conf = self.directory / "conf"
        conf.mkdir(exist_ok=True)
        (conf / "hive-log4j2.properties").write_text(_LOGGING)
        parquet = self.directory / "logging.properties"
        parquet.write_text(_PARQUET_LOGGING)
        done = subprocess.run(
            [
                *(find_jdk(17, 24).java, "-Xmx700m", *ADD_OPENS),
                f"-Djava.util.logging.config.file={parquet}",
                *("-cp", os.pathsep.join(map(str, (conf, self.jar, *jars)))),
                "org.apache.hadoop.hive.cli.CliDriver",
                *(word for k, v in settings.items() for word in ("--hiveconf", f"{k}={v}")),
                *("-e", ";".join(QUERIES)),
            ],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        scans = re.findall(r"skipbridge: \S+ reads (\d+) of (\d+) files", done.stderr)
        rows = [line for line in done.stdout.splitlines() if re.match(r"\d+\t", line)]
        return rows, [(int(r), int(n)) for r, n in scans]


@pytest.mark.nightly
@pytest.mark.parametrize("conversion", ["more", "none"])
def test_plans_skip_files(metastore: RunningMetastore, tmp_path: Path, conversion: str) -> None:
    table, partitions = write_sales(tmp_path / "table", SALES)
    age(tmp_path)
    with metastore.client() as client:
        if SALES.schema in client.get_all_databases() and SALES.table in client.get_all_tables(
            SALES.schema
        ):
            client.drop_table(SALES.schema, SALES.table)
    register(metastore.uri, SALES, table, partitions)
    index(metastore.uri, SALES)
    jar = built_jar(VERSION)
    with planner_under_test(metastore.uri, tmp_path / "cache") as planner:
        hive = CommandLine(
            tmp_path,
            jar,
            {
                "hive.metastore.uris": metastore.uri,
                "fs.defaultFS": "file:///",
                "hive.exec.scratchdir": str(tmp_path / "scratch"),
                "hive.async.log.enabled": "false",
                "hive.optimize.index.filter": "true",
                "hive.fetch.task.conversion": conversion,
                "hive.exec.submit.local.task.via.child": "false",
                "mapreduce.framework.name": "local",
                "skipbridge.planner": planner.endpoint,
            },
        )
        rows, scans = hive.ask({"hive.exec.pre.hooks": HOOK})
        expected, unhooked = hive.ask({})
    assert rows == expected == ["77\td-077", "25\t300", "7\ta-007"]
    assert not unhooked
    assert sum(read for read, _ in scans) <= 6 < sum(listed for _, listed in scans)
