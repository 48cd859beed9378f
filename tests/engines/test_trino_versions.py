"""A real Trino reads versions of a table of a format that another distribution brings."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, DOUBLE, STRING
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, TableName
from bridge.table.registry import table_formats
from tests.engines.stack import Stack
from tests.support.toy_tables import PLUGIN
from tests.support.wheels import install, wheel_of

pytestmark = pytest.mark.full

FILES = 6


@pytest.fixture(scope="module")
def table(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Table laws.versions: version 1 has files 0 to 2, version 2 all, version 3 a row filter."""
    root = tmp_path_factory.mktemp("versions")
    site = root / "site"
    install(wheel_of(PLUGIN, root), site)
    directory = root / "table"
    for i in range(FILES):
        write(directory / f"p=1/f{i}.parquet", [10 * i + k for k in range(5)])
    write(directory / "p=1/stray.parquet", [1, 2, 3])
    commit(directory, 1, files(range(3)), at=1_000_000)
    commit(directory, 2, files(range(FILES)), at=2_000_000)
    commit(directory, 3, files(range(FILES)), at=3_000_000, where="x >= 12 AND x <> 33")
    columns = (Column("x", BIGINT), Column("s", STRING), Column("d", DOUBLE))
    described = CatalogTable(TableName("laws", "versions"), columns, (), f"file://{directory}")
    with MetastoreClient(stack.metastore_uri) as client:
        register_table(client, described.name, described, [])
        registered = client.get_table("laws", "versions")
        registered.parameters["toy.versions"] = "true"
        client.alter_table("laws", "versions", registered)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        table_formats.cache_clear()
        config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
        report = index_table(
            config,
            "laws.versions",
            local=True,
            progress=lambda done, total: None,
            say=lambda text: None,
        )
        assert report["files"] == FILES and not report["failed"]
    table_formats.cache_clear()
    stack.stop_planner()
    stack.python_path = str(site)
    stack.start_planner()
    yield directory
    stack.stop_planner()
    stack.python_path = ""
    stack.start_planner()


def write(path: Path, values: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = pa.array([None if x % 5 == 4 else f"s{x}" for x in values], pa.string())
    columns = {"x": pa.array(values, pa.int64()), "s": texts, "d": pa.array(values, pa.float64())}
    pq.write_table(pa.table(columns), path)
    past = time.time() - 60
    os.utime(path, (past, past))


def files(numbers: Any, format: str = "parquet", **more: Any) -> list[dict[str, Any]]:
    return [{"path": f"p=1/f{i}.parquet", "format": format, **more} for i in numbers]


def commit(
    directory: Path, number: int, slices: list[dict[str, Any]], *, at: int, where: str = ""
) -> None:
    folder = directory / "_versions"
    folder.mkdir(exist_ok=True)
    partitions = [{"name": "", "slices": slices}]
    manifest = {"committed_at": at, "filter": where, "partitions": partitions}
    (folder / f"{number}.json").write_text(json.dumps(manifest))


def xs(rows: list[Any]) -> list[int]:
    return [row[0] for row in rows]


EVERY = [10 * i + k for i in range(FILES) for k in range(5)]
NEWEST = [x for x in EVERY if x >= 12 and x != 33]


@pytest.mark.usefixtures("table")
def test_each_version_has_its_rows(stack: Stack) -> None:
    read = "SELECT x FROM laws.versions {} ORDER BY x"
    assert xs(stack.query(read.format(""))) == NEWEST
    assert xs(stack.query(read.format("FOR VERSION AS OF 2"))) == EVERY
    assert xs(stack.query(read.format("FOR VERSION AS OF '1'"))) == EVERY[:15]
    then = "FOR TIMESTAMP AS OF TIMESTAMP '1970-01-01 00:25:00 UTC'"
    assert xs(stack.query(read.format(then))) == EVERY[:15]
    with pytest.raises(Exception, match="READ_VERSION_NOT_FOUND"):
        stack.query(read.format("FOR VERSION AS OF 17"))


@pytest.mark.usefixtures("table")
def test_two_versions_are_joined_in_one_query(stack: Stack) -> None:
    found = stack.query(
        "SELECT count(*), count(o.x), min(n.x) FROM laws.versions n "
        "LEFT JOIN laws.versions FOR VERSION AS OF 1 o ON o.x = n.x"
    )
    assert found == [[len(NEWEST), len([x for x in NEWEST if x < 30]), 12]]
    gone = stack.query(
        "SELECT x FROM laws.versions FOR VERSION AS OF 2 EXCEPT SELECT x FROM laws.versions"
    )
    assert sorted(xs(gone)) == [x for x in EVERY if x not in NEWEST]
    explained = stack.query(
        "EXPLAIN SELECT 1 FROM laws.versions FOR VERSION AS OF 2 a"
        " JOIN laws.versions FOR VERSION AS OF '1' b ON a.x = b.x"
    )
    text = "\n".join(row[0] for row in explained)
    assert "laws.versions at version:1" in text and "laws.versions at version:2" in text


@pytest.mark.usefixtures("table")
def test_files_of_a_version_are_skipped(stack: Stack) -> None:
    read = "SELECT s FROM laws.versions {} WHERE x BETWEEN 20 AND 31"
    assert stack.kept_files(read.format("")) == 2
    assert stack.kept_files(read.format("FOR VERSION AS OF 1")) == 1
    assert stack.kept_files("SELECT s FROM laws.versions") == 5  # file 0 is outside the filter


@pytest.mark.usefixtures("table")
def test_counts_limits_and_orders_know_the_row_filter(stack: Stack) -> None:
    assert stack.query("SELECT count(*), min(x), max(x) FROM laws.versions") == [
        [len(NEWEST), 12, 54]
    ]
    assert stack.query("SELECT count(*) FROM laws.versions FOR VERSION AS OF 2") == [[30]]
    assert xs(stack.query("SELECT x FROM laws.versions ORDER BY x LIMIT 3")) == [12, 13, 14]
    found = xs(stack.query("SELECT x FROM laws.versions LIMIT 20"))
    assert len(found) == 20 and set(found) <= set(NEWEST)
    assert stack.query("SELECT count(s) FROM laws.versions WHERE s IS NOT NULL") == [
        [len([x for x in NEWEST if x % 5 != 4])]
    ]


def test_logs_and_unknown_formats_and_filters_are_refused_by_name(
    stack: Stack, table: Path
) -> None:
    (table / "p=1/f1.del").write_text("0")
    deletes = [*files([0]), *files([1], deletes=["p=1/f1.del"])]
    commit(table, 4, deletes, at=4_000_000)
    with pytest.raises(Exception, match=r"MERGE_ON_READ.*f1\.del|f1\.del.*MERGE_ON_READ"):
        stack.query("SELECT x FROM laws.versions")
    commit(table, 5, [*files([0]), *files([1], "hudi_log")], at=5_000_000)
    with pytest.raises(Exception, match="UNSUPPORTED_FORMAT"):
        stack.query("SELECT x FROM laws.versions")
    commit(table, 6, files([0]), at=6_000_000, where="d > 2.5")
    with pytest.raises(Exception, match="ROW_FILTER_UNSUPPORTED"):
        stack.query("SELECT x FROM laws.versions")
    commit(table, 7, files([0]), at=7_000_000, where="x < 2 OR s = 's3'")
    with pytest.raises(Exception, match=r"UNSUPPORTED_TABLE.*row filter"):
        stack.query("SELECT x FROM laws.versions")
    assert (
        xs(stack.query("SELECT x FROM laws.versions FOR VERSION AS OF 1 ORDER BY 1"))
        == (EVERY[:15])
    )
    fifth = "SELECT x FROM laws.versions FOR VERSION AS OF 5 WHERE x < 4 ORDER BY x"
    assert xs(stack.query(fifth)) == [0, 1, 2, 3]


def test_a_damaged_manifest_and_a_lost_file_are_errors(stack: Stack, table: Path) -> None:
    lost = {"path": "p=1/lost.parquet", "format": "parquet"}
    commit(table, 8, [*files([0]), lost], at=8_000_000)
    with pytest.raises(Exception, match="names a file that is gone"):
        stack.query("SELECT x FROM laws.versions")
    (table / "_versions" / "9.json").write_text("{")
    with pytest.raises(Exception, match="FILE_CORRUPT"):
        stack.query("SELECT x FROM laws.versions")
    for number in range(4, 10):
        (table / "_versions" / f"{number}.json").unlink()
    assert xs(stack.query("SELECT x FROM laws.versions ORDER BY x")) == NEWEST
