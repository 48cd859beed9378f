"""What protocol 2 tells a real Trino of a table: versions, a row filter, readers and logs.

No table format here has them, so the real planner's answers are altered on their way. The connector
and Trino are what is tested.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.config import Config, Setting
from bridge.jobs.serve import RunningService
from bridge.service._gen import ttypes
from bridge.table.model import Column
from bridge.types import BIGINT, STRING
from tests.engines.stack import Stack, register

# Statistics know nothing of what is altered here.
SCANNED = {"metadata_answers_enabled": "false"}


@dataclass
class Altered:
    """The planner in front of Trino, and what it says beside the truth."""

    stack: Stack
    row_filter: str = ""
    format: str = "parquet"
    logs: int = 0
    asked: list[str] = field(default_factory=list)

    def query(self, sql: str) -> list[Any]:
        return self.stack.query(sql, SCANNED)

    def refused(self, sql: str) -> str:
        with pytest.raises(Exception) as error:
            self.query(sql)
        return str(error.value)


def domain(column: str, type: str, **values: Any) -> str:
    said = {"column": column, "type": type, "null_allowed": False, **values}
    return json.dumps({"version": 1, "none": False, "domains": [said]})


def logs_of_the_first_file(files: int, logs: int) -> bytes:
    """The part of a payload that bridge.thrift describes last."""
    if not logs:
        return b""
    path = b"file:///t/.1.log"
    first = [0] + [logs] * files
    offsets = [len(path) * i for i in range(logs + 1)]
    return b"".join(
        (
            struct.pack(f"<{files + 1}i", *first),
            struct.pack(f"<{2 * logs}q", *[1] * (2 * logs)),
            struct.pack(f"<{logs + 1}i", *offsets),
            path * logs,
        )
    )


def alter(service: RunningService, altered: Altered) -> None:
    """Versions 1 and 2 of table ``kept`` are tables of their own."""
    handler: Any = service.handler
    own = {
        name: getattr(handler, name)
        for name in ("get_table", "get_statistics", "plan", "next_splits")
    }

    def stored(request: ttypes.PlanRequest) -> ttypes.PlanRequest:
        altered.asked.append(request.read_version)
        if request.read_version.startswith("version:"):
            request.table_name += "_v" + request.read_version.removeprefix("version:")
            request.read_version = ""
        return request

    def get_table(schema: str, table: str, *rest: Any) -> ttypes.Table:
        engine_name, query_id, read_version, protocol = rest
        request = stored(ttypes.PlanRequest(table_name=table, read_version=read_version))
        found: ttypes.Table = own["get_table"](
            schema, request.table_name, engine_name, query_id, request.read_version, protocol
        )
        found.snapshot_id = f"snapshot of {request.table_name}"
        return found

    def plan(request: ttypes.PlanRequest) -> ttypes.Plan:
        request = stored(request)
        if not request.table_name.startswith("kept"):
            return own["plan"](request)  # type: ignore[no-any-return]
        assert request.snapshot_id == f"snapshot of {request.table_name}"
        opened: ttypes.Plan = own["plan"](request)
        opened.row_filter = altered.row_filter
        return opened

    def next_splits(handle: str, token: int, *rest: int) -> ttypes.SplitBatch:
        batch = own["next_splits"](handle, token, *rest)
        if batch.file_count:
            batch.readers = [ttypes.ReaderSpec(altered.format, {}, None)]
            batch.payload += logs_of_the_first_file(batch.file_count, altered.logs)
            batch.log_count = altered.logs
        return batch  # type: ignore[no-any-return]

    handler.get_table, handler.plan, handler.next_splits = get_table, plan, next_splits
    handler.get_statistics = lambda request: own["get_statistics"](stored(request))


@pytest.fixture(scope="module")
def planner(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Altered]:
    home = tmp_path_factory.mktemp("slices")
    columns = (Column("x", BIGINT), Column("s", STRING))
    for name, offset in (("kept", 0), ("kept_v1", 100), ("kept_v2", 200)):
        for part in range(2):
            (home / name).mkdir(exist_ok=True)
            x = [offset + 10 * part + i for i in range(5)]
            s = [None if i == 4 else f"s{i}" for i in range(5)]
            table = pa.table({"x": pa.array(x, pa.int64()), "s": pa.array(s, pa.string())})
            pq.write_table(table, home / name / f"{part}.parquet")
        register(stack, name, home / name, columns)
    stack.stop_planner()
    config = {
        "metastore.uri": stack.metastore_uri,
        "service.port": str(stack.planner_port),
        "planner.cache_dir": str(home / "cache"),
    }
    service = RunningService(Config({key: Setting(text, "test") for key, text in config.items()}))
    altered = Altered(stack)
    alter(service, altered)
    service.start()
    try:
        yield altered
    finally:
        service.stop()
        stack.start_planner()


@pytest.fixture(autouse=True)
def unaltered(planner: Altered) -> Iterator[None]:
    yield
    planner.row_filter, planner.format, planner.logs = "", "parquet", 0


def test_two_versions_of_one_table_in_one_query(planner: Altered) -> None:
    sql = (
        "SELECT n.x, a.x, b.x FROM laws.kept n"
        " JOIN laws.kept FOR VERSION AS OF 1 a ON a.x = n.x + 100"
        " JOIN laws.kept FOR VERSION AS OF '2' b ON b.x = a.x + 100 WHERE n.x >= 11 ORDER BY 1"
    )
    assert planner.query(sql) == [[x, x + 100, x + 200] for x in (11, 12, 13, 14)]
    assert {"", "version:1", "version:2"} <= set(planner.asked)
    explained = "\n".join(row[0] for row in planner.query(f"EXPLAIN {sql}"))
    assert "laws.kept at version:1" in explained and "laws.kept at version:2" in explained


def test_a_time_is_refused_by_a_directory(planner: Altered) -> None:
    refused = planner.refused(
        "SELECT * FROM laws.kept FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00.123 UTC'"
    )
    assert "laws.kept keeps no older versions, 'time:1704067200123' was asked for" in refused


def test_rows_outside_the_row_filter_are_never_returned(planner: Altered) -> None:
    planner.row_filter = domain("x", "bigint", ranges=[{"low": 3, "low_inclusive": False}])
    assert planner.query("SELECT x FROM laws.kept ORDER BY x") == [
        [x] for x in (4, 10, 11, 12, 13, 14)
    ]
    # The column that it names is not one that the query reads.
    assert planner.query("SELECT count(s), count(*) FROM laws.kept") == [[4, 6]]
    assert planner.query("SELECT count(*) FROM laws.kept") == [[6]]
    found = planner.query("SELECT \"$path\" FROM laws.kept WHERE s = 's0'")
    assert len(found) == 1 and found[0][0].endswith("/kept/1.parquet")
    planner.row_filter = domain("s", "varchar", values=["s0", "s3"], inclusive=True)
    assert planner.query("SELECT x FROM laws.kept WHERE x < 12 ORDER BY x") == [[0], [3], [10]]
    planner.row_filter = '{"version": 1, "none": true, "domains": []}'
    assert planner.query("SELECT x FROM laws.kept") == []


@pytest.mark.parametrize(
    "said",
    [
        domain("x", "double", all=True),
        '{"version": 1, "expression": {"opaque": "f(x)"}}',
    ],
)
def test_a_row_filter_that_cannot_be_applied_is_refused(planner: Altered, said: str) -> None:
    planner.row_filter = said
    refused = planner.refused("SELECT x FROM laws.kept")
    assert "SKIPBRIDGE_ROW_FILTER_UNSUPPORTED" in refused and "cannot apply" in refused


def test_logs_and_readers_that_the_connector_lacks_are_refused_by_name(planner: Altered) -> None:
    planner.logs = 2
    refused = planner.refused("SELECT x FROM laws.kept")
    assert "SKIPBRIDGE_MERGE_ON_READ" in refused and "file:///t/.1.log" in refused
    planner.logs, planner.format = 0, "avro"
    refused = planner.refused("SELECT count(*) FROM laws.kept")
    assert "SKIPBRIDGE_UNSUPPORTED_FORMAT" in refused and "has the format avro" in refused
