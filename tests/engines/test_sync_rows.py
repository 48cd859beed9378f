"""The law of sync and rivals, in rows: Trino and Spark read each of them once, and hide none."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
import trino

from bridge.sync.report import warnings
from tests.engines.conftest import RunningMetastore
from tests.engines.stack import Stack, ask
from tests.engines.stock_readers import ask_spark
from tests.engines.sync_real_lake import RealLake, RealMetastore, write
from tests.engines.test_sync_rivals import Draw
from tests.tiers import examples, seed

pytestmark = [pytest.mark.full, pytest.mark.rule("43", "44", "45")]

_IN_TRINO = examples(4, 24, 400)
_IN_SPARK = examples(2, 10, 120)
_QUERY = "SELECT {}, count(*) FROM {} GROUP BY 1"
Read = Callable[[list[str]], list[list[list[object]]]]


def ask_rows(running: RunningMetastore, base: Path, numbers: range, path: str, read: Read) -> None:
    """Tells stories, then counts the rows of each file in all tables that are left.

    Args:
        path: the SQL of a row's file.
        read: runs queries.
    """
    told: dict[int, tuple[Draw, str]] = {}
    for number in numbers:
        draw = Draw(number, base / str(number), running, quiet=number % 3 == 0)
        try:
            wrong = draw.tell()
            assert not wrong, f"seed {number}: {wrong}"
            if draw.last is not None and draw.last.report is not None:
                told[number] = draw, _QUERY.format(path, draw.world.name)
        finally:
            draw.proxy.__exit__(None, None, None)
    wrong = []
    seen: Counter[str] = Counter()
    answers = read([query for _, query in told.values()])
    for (number, (draw, _)), answer in zip(told.items(), answers, strict=True):
        found = {_path(str(file)): int(str(rows)) for file, rows in answer}
        assert draw.last is not None and draw.last.report is not None
        expected = draw.rivals.rows(draw.last.report)
        wrong += [
            f"seed {number}: {file}: {found.get(file, 0)} rows of {expected.get(file)}"
            for file in sorted({*found, *expected})
            if found.get(file, 0) not in expected.get(file, {0})
        ]
        seen.update({"files": len(found), "unread": sum(f not in found for f in expected)})
        draw.client.close()
    print(f"{len(told)} tables", json.dumps(seen))
    assert not wrong, "\n".join(wrong)
    assert seen["files"] >= 3 * len(numbers)


def _path(uri: str) -> Path:
    return Path("/" + uri.removeprefix("file:").lstrip("/"))


def test_trino_reads_each_row_once(
    stack: Stack, metastore: RunningMetastore, tmp_path: Path
) -> None:
    session = {"ignore_absent_partitions": "true"}

    def read(queries: list[str]) -> list[list[list[object]]]:
        return [ask(stack.trino_port, query, "hive", session) for query in queries]

    start = seed(20_000)
    ask_rows(metastore, tmp_path, range(start, start + _IN_TRINO), '"$path"', read)


def test_spark_reads_each_row_once(metastore_401: RunningMetastore, tmp_path: Path) -> None:
    def read(queries: list[str]) -> list[list[list[object]]]:
        found = ask_spark(metastore_401.uri, tmp_path / "spark", queries)
        return [[[unquote(str(file)), rows] for file, rows in each] for each in found]

    start = seed(30_000)
    ask_rows(metastore_401, tmp_path, range(start, start + _IN_SPARK), "input_file_name()", read)


def test_trino_fails_over_a_place_that_is_gone_unless_told(
    stack: Stack, metastore: RunningMetastore, tmp_path: Path
) -> None:
    """As the report of a sync says while such a partition waits to be dropped."""
    with metastore.client() as client:
        lake = RealLake(tmp_path, RealMetastore(client, "absent_place"))
        write(lake.root, "p=1", "p=2")
        lake.sync()
        shutil.rmtree(lake.root / "p=2")
        report = lake.sync(drop_now=False, drop_all=False)
    assert [name for name, _, _ in report.waiting] == ["p=2"]
    assert any("hive.ignore-absent-partitions" in line for line in warnings(report))
    query = "SELECT count(*) FROM absent_place.t"
    with pytest.raises(trino.exceptions.TrinoQueryError, match="ocation does not exist"):
        ask(stack.trino_port, query, "hive")
    assert ask(stack.trino_port, query, "hive", {"ignore_absent_partitions": "true"}) == [[2]]
