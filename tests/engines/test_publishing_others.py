"""What others do to published tables: discovery by the metastore, `hadoop fs -rm`."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.clustering.commands import run as cluster
from bridge.clustering.commands.places import MetastorePlaces
from bridge.clustering.commands.publish import clean, list_left_files, originals, publish
from bridge.clustering.planning.scheduling import Strategy
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import STRING
from bridge.metastore.catalog import HiveCatalog
from bridge.runtime.create_table import register_table
from bridge.servers.java import find_jdk
from bridge.servers.maven import class_path
from bridge.table.model import CatalogTable, Column, Partition, TableName
from bridge.table.partition import partition_name
from tests.engines.conftest import RunningMetastore
from tests.engines.test_publishing import COLUMNS, put
from tests.support.servers.hiveserver2 import ARTIFACTS

pytestmark = [pytest.mark.full, pytest.mark.engine]
DISCOVER = Path(__file__).parent / "java" / "DiscoverPartitions.java"
HOW_TO = Path(__file__).parents[2] / "docs/how-to/publishing-clean.md"


class Published:
    """A table of two partitions, or of one directory, as its commands see it.

    Args:
        days: the values of the key; None is NULL.
    """

    def __init__(
        self,
        metastore: RunningMetastore,
        name: str,
        root: Path,
        keys: bool,
        days: Sequence[str | None] = ("1", "2"),
    ) -> None:
        self.name, self.root, self.metastore = TableName("others", name), root, metastore
        self.config = Config({"metastore.uri": Setting(metastore.uri, "test")})
        names = [partition_name(["day"], [day]) for day in days] if keys else []
        self.homes = {each: root / each for each in names} or {"": root}
        for number, directory in enumerate(self.homes.values()):
            directory.mkdir(parents=True)
            for i in range(4):
                put(directory / f"f{i}.parquet", number * 400 + i * 100, 100)
        self.table = CatalogTable(
            self.name,
            COLUMNS,
            (Column("day", STRING),) if keys else (),
            f"file://{root}",
        )
        pairs = zip(days, names, strict=True) if keys else ()
        parts = [Partition(n, (day,), f"file://{self.homes[n]}") for day, n in pairs]
        with metastore.client() as client:
            client.create_database(self.name.schema)
            register_table(client, self.name, self.table, parts)
            record = client.get_table(self.name.schema, self.name.table)
            record.parameters["discover.partitions"] = "true"
            client.alter_table(self.name.schema, self.name.table, record)
        index_table(self.config, str(self.name), local=True, progress=_quiet, say=print)

    def places(self) -> dict[str, str]:
        with self.metastore.client() as client, HiveCatalog(client) as catalog:
            return MetastorePlaces(catalog, self.table, "").all()

    def clustered(self) -> None:
        made = cluster.schedule(self.config, str(self.name), Strategy("", ("x",), "time"), print)
        run = cluster.run(self.config, str(self.name), made["instant"], local=True, progress=_quiet)
        assert run["state"] == "completed" and not run["rejected"], run["rejected"]

    def published(self) -> list[str]:
        made = publish(
            self.config, str(self.name), local=True, settled=0.0, progress=_quiet, say=print
        )
        return list(made["published"])


def test_discovery_by_the_metastore_changes_nothing(
    metastore_401: RunningMetastore, tmp_path: Path
) -> None:
    """It registers what is new, so it has seen the table; also after the originals are deleted."""
    found = Published(metastore_401, "discovered", tmp_path / "t", True)

    def discover() -> None:
        command = [*_java(tmp_path / "conf"), str(DISCOVER), metastore_401.uri]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]

    found.clustered()
    assert sorted(found.published()) == ["day=1", "day=2"]
    before = found.places()
    for day in (3, 4):
        (found.root / f"day={day}").mkdir()
        put(found.root / f"day={day}/f.parquet", day * 1000, 10)
        discover()
        before[f"day={day}"] = f"file://{found.root}/day={day}"
        assert found.places() == before
        if day == 3:
            time.sleep(1.1)
            clean(found.config, str(found.name), -5.0, dry_run=False)
            listed = originals(found.config, str(found.name), -5.0)["files"]
            assert len(listed) == 8
            for uri in listed:
                Path(uri.removeprefix("file://")).unlink()
    assert not list_left_files(found.config, str(found.name))


def test_each_command_names_a_late_file_until_it_is_accepted(
    metastore_401: RunningMetastore, tmp_path: Path
) -> None:
    found = Published(metastore_401, "late", tmp_path / "t", True)
    name, late = str(found.name), found.root / "day=1/it's late.parquet"
    found.clustered()
    assert sorted(found.published()) == ["day=1", "day=2"]
    put(late, 9000, 3)
    commands = [
        ["cluster", "publish", name, "--local", "--settled", "0"],
        ["cluster", "revert", name, "--local", "--partition", "day=9"],
        ["cluster", "show", name],
        ["index", "refresh", name],
        ["sync", name, "--location", str(found.root)],
        ["doctor", name],
    ]

    def said(words: list[str], status: int) -> str:
        done = CliRunner().invoke(cli, [*words, "--metastore-uri", metastore_401.uri])
        assert done.exit_code == status, done.output
        return done.output

    for words in commands:
        told = said(words, 3)
        insert, accept = told.find("INSERT INTO `others`.`late` PARTITION"), told.find("accept")
        assert 0 <= told.find(f"file://{late}") < insert < accept, told
    (accept,) = [each["accept"] for each in list_left_files(found.config, name)]
    said(shlex.split(accept)[1:], 0)
    for words in commands:
        assert late.name not in said(words, 0)
    with metastore_401.client() as client:
        client.drop_partitions(found.name.schema, found.name.table, ["day=2"])
    for words in commands:
        told = said(words, 3)
        assert f"file://{found.root}/day=2/.skipbridge_left: its partition was dropped" in told
    assert sorted(found.places()) == ["day=1"]


def test_the_how_to_deletes_the_listed_files_and_no_others(tmp_path: Path) -> None:
    """By `hadoop fs -rm`, which takes names as patterns."""
    names = ["a*", "a[1]", "{p,q}", "b?", "back\\slash", "two  words", "quo'te", 'quo"te', "%41",
             "x^y", "[!x]", "é", "c,d", "e#f", "$(g)", "h;i"]  # fmt: skip
    others = ["ab", "a1", "p", "q", "bc", "A", "backslash", "two", "words", "x", "z", "c", "e"]
    for name in (*names, *others):
        (tmp_path / name).write_text(name)
    (line,) = [each for each in HOW_TO.read_text().splitlines() if "hadoop fs -rm" in each]
    tool = tmp_path / ".bin" / "hadoop"
    command = shlex.join([*_java(tmp_path / ".bin"), "org.apache.hadoop.fs.FsShell"])
    tool.write_text(f'#!/bin/sh\nshift\nexec {command} "$@"\n')
    tool.chmod(0o755)
    listed = "".join(f"file://{tmp_path}/{name}\n" for name in names)
    subprocess.run(
        ["bash", "-c", line.partition("|")[2]],
        input=listed.encode(),
        env={"PATH": f"{tool.parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        check=True,
    )
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == sorted(others)


def _java(settings: Path) -> list[str]:
    """Java with Hive's and Hadoop's classes.

    Args:
        settings: a directory, which is made; Hadoop asks for one.
    """
    settings.mkdir(exist_ok=True)
    (settings / "core-site.xml").write_text("<configuration/>")
    jars = ":".join(str(jar) for jar in (settings, *class_path(*ARTIFACTS)))
    return [find_jdk(17, 24).java, "-cp", jars]


def _quiet(done: int, total: int) -> None:
    """No progress is shown."""
