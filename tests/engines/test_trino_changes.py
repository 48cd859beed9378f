"""A real Trino reads the changes of a table, its history, and its base files alone.

The table is of the toy format: each row tells the version in which it was written.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, INTEGER, STRING
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, TableName
from bridge.table.registry import table_formats
from tests.engines.stack import Stack
from tests.support.toy_tables import PLUGIN
from tests.support.wheels import install, wheel_of

Row = tuple[int, int, int]
"""x, the version that wrote it, and the partition key."""
FILES: dict[str, list[Row]] = {
    "p=1/a.parquet": [(x, 1, 1) for x in range(10)],
    "p=2/b.parquet": [(x, 1, 2) for x in range(10, 20)],
    "p=2/c.parquet": [(x, 2, 2) for x in range(20, 30)],
    # rewrites a: half of its rows, and new ones
    "p=1/d.parquet": [*((x, 1, 1) for x in range(5)), *((x, 3, 1) for x in range(30, 33))],
    "p=3/e.parquet": [(x, 4, 3) for x in range(40, 50)],
}
VERSIONS = {1: "ab", 2: "abc", 3: "bcd", 4: "bcde"}


def rows_of(version: int) -> list[Row]:
    return [row for path, rows in FILES.items() if path[4] in VERSIONS[version] for row in rows]


def changed(after: int, until: int) -> list[Row]:
    return sorted(row for row in rows_of(until) if after < row[1] <= until)


@contextmanager
def versioned(stack: Stack, root: Path, name: str) -> Iterator[Path]:
    """A table of the schema ``laws``; the stack's planner knows its format meanwhile."""
    site, directory = root / "site", root / "table"
    install(wheel_of(PLUGIN, root), site)
    for path, rows in FILES.items():
        write(directory / path, rows)
    for number, letters in VERSIONS.items():
        commit(directory, number, [path for path in FILES if path[4] in letters])
    columns = (Column("x", BIGINT), Column("v", BIGINT), Column("s", STRING))
    keys = (Column("p", INTEGER),)
    described = CatalogTable(TableName("laws", name), columns, keys, f"file://{directory}")
    with MetastoreClient(stack.metastore_uri) as client:
        register_table(client, described.name, described, [])
        registered = client.get_table("laws", name)
        registered.parameters["toy.versions"] = "true"
        client.alter_table("laws", name, registered)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        table_formats.cache_clear()
        index_table(
            Config({"metastore.uri": Setting(stack.metastore_uri, "test")}),
            f"laws.{name}",
            local=True,
            progress=lambda done, total: None,
            say=lambda text: None,
        )
    table_formats.cache_clear()
    stack.stop_planner()
    stack.python_path = str(site)
    stack.start_planner()
    yield directory
    stack.stop_planner()
    stack.python_path = ""
    stack.start_planner()


def write(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        "x": pa.array([x for x, _, _ in rows], pa.int64()),
        "v": pa.array([v for _, v, _ in rows], pa.int64()),
        "s": pa.array([f"s{x}" for x, _, _ in rows], pa.string()),
    }
    pq.write_table(pa.table(columns), path)
    past = time.time() - 60
    os.utime(path, (past, past))


def commit(directory: Path, number: int, paths: Sequence[str], **more: Any) -> None:
    folder = directory / "_versions"
    folder.mkdir(exist_ok=True)
    partitions: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        added = max(v for _, v, _ in FILES[path])
        held = {"path": path, "format": "parquet", "added": added, **more}
        partitions.setdefault(path.partition("/")[0], []).append(held)
    manifest = {
        "committed_at": number * 1_000_000,
        "written_in": "v",
        "partitions": [{"name": name, "slices": held} for name, held in partitions.items()],
    }
    (folder / f"{number}.json").write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def table(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with versioned(stack, tmp_path_factory.mktemp("changes"), "changes") as directory:
        yield directory


def call(after: object, until: object = None, name: str = "changes") -> str:
    end = "" if until is None else f", end_version => '{until}'"
    return (
        f"TABLE(bridge.system.table_changes(schema_name => 'laws', table_name => '{name}', "
        f"start_version => '{after}'{end}))"
    )


def read(stack: Stack, sql: str) -> list[Row]:
    return sorted((x, v, p) for x, v, p in stack.query(f"SELECT x, v, p FROM {sql}"))


@pytest.mark.usefixtures("table")
def test_changes_are_the_rows_written_between_two_versions(stack: Stack) -> None:
    for after in range(5):
        assert read(stack, call(after)) == changed(after, 4)
        for until in VERSIONS:
            assert read(stack, call(after, until)) == changed(after, until)
    positional = "TABLE(bridge.system.table_changes('laws', 'changes', '1', '3'))"
    assert read(stack, positional) == changed(1, 3)
    assert read(stack, positional.replace(", '3'", "")) == changed(1, 4)
    assert read(stack, positional.replace("'3'", "NULL")) == changed(1, 4)
    assert read(stack, positional.replace("laws", "LAWS")) == changed(1, 3)
    # the columns in the table's order, without the hidden ones
    assert stack.query(f"SELECT * FROM {positional} AS t (a, b, c, d) WHERE a = 31") == [
        [31, 3, "s31", 1]
    ]


@pytest.mark.usefixtures("table")
def test_a_call_is_an_ordinary_scan(stack: Stack) -> None:
    """Filters, limits, aggregates and joins reach the planner, which skips files by them."""
    since_1 = call(1)
    assert stack.kept_files(f"SELECT s FROM {since_1}") == 3  # a and b hold rows of version 1 alone
    assert stack.kept_files(f"SELECT s FROM {since_1} WHERE p = 3") == 1
    assert stack.kept_files(f"SELECT s FROM {since_1} WHERE x BETWEEN 40 AND 45") == 1
    assert read(stack, f"{since_1} WHERE x < 30") == [r for r in changed(1, 4) if r[0] < 30]
    plan = stack.query(f"EXPLAIN SELECT x FROM {since_1} WHERE p = 3")
    explained = "\n".join(row[0] for row in plan)
    assert "laws.changes at changes:1.." in explained and "TableFunction" not in explained
    assert stack.query(f"SELECT count(*), min(x), max(p) FROM {call(2, 3)}") == [[3, 30, 1]]
    assert stack.query(f"SELECT p, count(*) FROM {since_1} GROUP BY p ORDER BY p") == [
        [1, 3],
        [2, 10],
        [3, 10],
    ]
    limited = stack.query(f"SELECT x FROM {call(2)} LIMIT 12")
    assert len(limited) == 12 and {x for (x,) in limited} <= {r[0] for r in changed(2, 4)}
    first = stack.query(f"SELECT x FROM {call(2)} ORDER BY x DESC LIMIT 2")
    assert first == [[49], [48]]
    joined = (
        f"SELECT c.x FROM {since_1} c JOIN (VALUES BIGINT '41', BIGINT '99') k (x) ON c.x = k.x"
    )
    assert stack.query(joined) == [[41]]
    assert stack.kept_files(joined) == 1
    before = stack.query(
        f"SELECT count(*) FROM {call(0, 4)} n JOIN laws.changes FOR VERSION AS OF 1 o ON o.x = n.x"
    )
    assert before == [[15]]


@pytest.mark.usefixtures("table")
def test_wrong_arguments_are_one_clear_error_each(stack: Stack) -> None:
    function = "SELECT * FROM TABLE(bridge.system.table_changes({}))"
    for arguments, message in (
        ("'laws', 'changes', NULL", "start_version is NULL"),
        ("'laws', 'changes', ''", "start_version is empty"),
        ("'laws', 'changes', '1', ''", "end_version is empty"),
        ("'laws', NULL, '1'", "table_name is NULL"),
        ("'', 'changes', '1'", "schema_name is empty"),
        ("'laws', 'changes', '1..2'", "does not name a version"),
        ("'laws', 'changes', '1;read_optimized'", "does not name a version"),
        ("'laws', 'nothing', '1'", "laws.nothing.*not"),
        ("'nowhere', 'changes', '1'", "nowhere.changes.*not"),
        ("'laws', 'changes$files', '1'", "not"),
        ("'laws', 'everything', '1'", "READ_VERSION_UNSUPPORTED|keeps no older versions"),
        ("'laws', 'changes', 'first'", "has no version 'first'"),
        ("'laws', 'changes', '1', '17'", "has no changes:1..17"),
        ("'laws', 'changes'", "(?i)start_version"),
    ):
        with pytest.raises(Exception, match=message):
            stack.query(function.format(arguments))


@pytest.mark.usefixtures("table")
def test_the_history_and_its_files(stack: Stack) -> None:
    timeline = stack.query(
        "SELECT instant, completion, action, state, size > 0, modified < current_timestamp "
        'FROM laws."changes$timeline" ORDER BY instant'
    )
    assert timeline == [[str(n), None, "commit", "completed", True, True] for n in VERSIONS]
    files = stack.query('SELECT path, logs, log_bytes, "commit" FROM laws."changes$files"')
    told = {path[-9]: rest for path, *rest in files}
    assert told == {"b": [0, 0, "1"], "c": [0, 0, "2"], "d": [0, 0, "3"], "e": [0, 0, "4"]}
    with pytest.raises(Exception, match=r"laws\.everything has no timeline"):
        stack.query('SELECT * FROM laws."everything$timeline"')
    assert stack.query('SELECT DISTINCT logs, "commit" FROM laws."everything$files"') == [[0, None]]


def test_a_session_reads_base_files_alone(stack: Stack, table: Path) -> None:
    (table / "p=3/e.del").write_text("0")
    commit(table, 5, list(FILES)[1:], deletes=["p=3/e.del"])
    try:
        with pytest.raises(Exception, match="MERGE_ON_READ"):
            stack.query("SELECT x FROM laws.changes")
        optimized = {"read_optimized": "true"}
        expected = sorted([x] for x, _, _ in rows_of(4))
        assert stack.query("SELECT x FROM laws.changes ORDER BY x", optimized) == expected
        both = f"SELECT count(*) FROM laws.changes c JOIN {call(0)} d ON c.x = d.x"
        assert stack.query(both, optimized) == [[len(expected)]]
        then = "SELECT count(*) FROM laws.changes FOR VERSION AS OF 1"
        assert stack.query(then, optimized) == [[20]]
        # a table without logs is what it is
        whole = "SELECT count(*), max(id) FROM laws.everything"
        assert stack.query(whole, optimized) == stack.query(whole)
        logs = stack.query(
            'SELECT partition, files, logs, log_bytes, rows FROM laws."changes$partitions"'
        )
        assert sorted(logs) == [
            ["p=1", 1, 1, 1, None],
            ["p=2", 2, 2, 2, None],
            ["p=3", 1, 1, 1, None],
        ]
    finally:
        (table / "_versions" / "5.json").unlink()


def test_trino_483_reads_changes_too(
    stack_483: Stack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with versioned(stack_483, tmp_path_factory.mktemp("changes483"), "changes_483"):
        assert read(stack_483, call(1, 3, "changes_483")) == changed(1, 3)
        since = call(1, name="changes_483")
        assert read(stack_483, f"{since} WHERE p = 1") == [r for r in changed(1, 4) if r[2] == 1]
        assert stack_483.kept_files(f"SELECT s FROM {since} WHERE p = 1") == 1
        timeline = stack_483.query('SELECT count(*) FROM laws."changes_483$timeline"')
        assert timeline == [[len(VERSIONS)]]
        with pytest.raises(Exception, match="keeps no older versions"):
            stack_483.query(f"SELECT * FROM {call(1, name='everything')}")
