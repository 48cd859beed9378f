"""The law of merging, case by case: a condition applies to merged rows, in Trino and in Python.

Each table is one slice, whose base file and log differ in what decides a condition. It has an index
of both, or of the base file alone. And the cases of both mergers (`tests.support.hudi_merge_cases`)
by the connector's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trino.exceptions import TrinoQueryError

import bridge
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.support import hudi_merge_cases
from tests.support.hudi_registration import register
from tests.support.hudi_tables import HudiTable
from tests.support.hudi_writer import avro_block, hfile_block, parquet_block

SCHEMA = "hudi_merge_law"
EVENT, COMMIT = "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"
_FIELDS: dict[str, tuple[Any, pa.DataType]] = {
    "_hoodie_record_key": ("string", pa.string()),
    "k": ("string", pa.string()),
    "age": ("int", pa.int32()),
    "ts": ("long", pa.int64()),
    "_hoodie_is_deleted": ("boolean", pa.bool_()),
}
_AVRO = {
    "type": "record",
    "name": "t",
    "fields": [{"name": n, "type": ["null", t], "default": None} for n, (t, _) in _FIELDS.items()],
}
_ARROW = pa.schema([(name, kind) for name, (_, kind) in _FIELDS.items()])
BASE_AT, LOG_AT = "20260101000000000", "20260101000001000"
Row = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Case:
    """``asked`` maps conditions to the keys that match; ``gone``: keys the log deletes."""

    mode: str
    base: tuple[Row, ...]
    log: tuple[Row, ...]
    asked: dict[str, list[str]]
    gone: tuple[str, ...] = ()


CASES = {
    # The base row counts: were it filtered out before, the older log row would come back.
    "late_log": Case(
        EVENT, (("k", 23, 3),), (("k", 25, 1),), {"age = 25": [], "age = 23": ["k"], "ts = 1": []}
    ),
    "moves_in": Case(EVENT, (("k", 10, 1),), (("k", 50, 2),), {"age = 50": ["k"], "age < 20": []}),
    "moves_out": Case(COMMIT, (("k", 50, 2),), (("k", 10, 1),), {"age = 50": [], "ts = 1": ["k"]}),
    "deleted": Case(
        COMMIT,
        (("k", 10, 1), ("other", 99, 1)),
        (),
        {"age = 10": [], "age = 99": ["other"], "age IS NULL": []},
        gone=("k",),
    ),
    "inserted": Case(
        EVENT, (("k", 10, 1),), (("new", 70, 1),), {"age = 70": ["new"], "age = 10": ["k"]}
    ),
}


def _row(row: Row, deleted: bool = False) -> dict[str, Any]:
    key, age, ts = row
    return dict(zip(_FIELDS, (key, key, age, ts, deleted), strict=True))


BLOCKS = {
    "avro": lambda rows: avro_block(LOG_AT, _AVRO, rows),
    "hfile": lambda rows: hfile_block(LOG_AT, _AVRO, rows, "k"),
    "parquet": lambda rows: parquet_block(LOG_AT, _AVRO, pa.Table.from_pylist(rows, _ARROW)),
}


class Lake:
    """A slice, and one more without logs whose rows no condition asks for."""

    def __init__(self, root: Path, case: Case, block: str) -> None:
        self.table = HudiTable(
            root,
            8,
            hoodie__table__recordkey__fields="k",
            hoodie__table__precombine__field="ts",
            hoodie__record__merge__mode=case.mode,
        )
        self._case, self._block = case, block
        files = []
        for group, rows in (("a", case.base), ("b", (("far", 1000, 1000),))):
            file = self.table.base("", f"{group}-0", BASE_AT)
            path = root / file.name
            pq.write_table(pa.Table.from_pylist([_row(row) for row in rows], _ARROW), path)
            files.append(replace(file, size=path.stat().st_size))
        self.table.commit(BASE_AT, files, schema=json.dumps(_AVRO), operation="INSERT")

    def log(self) -> None:
        case, log = self._case, self.table.log("", "a-0", LOG_AT, previous=BASE_AT)
        rows = [_row(row) for row in case.log]
        rows += [_row((key, 10, 9), deleted=True) for key in case.gone]
        path = self.table.root / log.name
        path.write_bytes(BLOCKS[self._block](rows))
        size = path.stat().st_size
        self.table.commit(LOG_AT, [replace(log, size=size)], schema=json.dumps(_AVRO))


@pytest.fixture(scope="module", autouse=True)
def schema(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{tmp_path_factory.mktemp('law')}")
    yield


@pytest.mark.parametrize(
    ("name", "block", "log_is_indexed"),
    [
        *((name, "avro", indexed) for name in CASES for indexed in (True, False)),
        *(
            (name, block, True)
            for name in ("late_log", "deleted")
            for block in ("hfile", "parquet")
        ),
    ],
)
def test_conditions_apply_to_merged_rows(
    stack: Stack, name: str, block: str, log_is_indexed: bool, tmp_path: Path
) -> None:
    case = CASES[name]
    lake = Lake(tmp_path / "t", case, block)
    known = TableName(SCHEMA, f"{name}_{block}_{log_is_indexed}".lower())
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    with MetastoreClient(stack.metastore_uri) as client:
        columns = pa.schema([("k", pa.string()), ("age", pa.int32()), ("ts", pa.int64())])
        register(client, known, lake.table.root, columns)
    if log_is_indexed:
        lake.log()
    quiet = {"progress": lambda done, total: None, "say": lambda text: None}
    index_table(config, str(known), local=True, **quiet)  # type: ignore[arg-type]
    if not log_is_indexed:
        lake.log()
    with bridge.connect(metastore_uri=stack.metastore_uri) as session:
        table = session.table(str(known))
        for condition, keys in case.asked.items():
            sql = f"SELECT k FROM {known} WHERE {condition}"
            assert stack.query(sql) == [[key] for key in keys], condition
            assert table.scan(condition).to_arrow()["k"].to_pylist() == keys, condition
        # HFile blocks have no statistics.
        kept = 1 if log_is_indexed and block != "hfile" else 2
        assert stack.kept_files(f"SELECT age FROM {known} WHERE age = 1000") == kept


@pytest.mark.parametrize("name", hudi_merge_cases.CASES)
@pytest.mark.rule("51")
def test_51_a_slice_shows_its_rows_or_says_why_not(stack: Stack, name: str, tmp_path: Path) -> None:
    case = hudi_merge_cases.CASES[name]
    table = case.write(tmp_path / "t")
    known = TableName(SCHEMA, f"both_{name}")
    with MetastoreClient(stack.metastore_uri) as client:
        register(client, known, table.root, hudi_merge_cases.COLUMNS)
    sql = f"SELECT name FROM {known} ORDER BY name"
    if case.refused:
        with pytest.raises(TrinoQueryError, match=case.refused):
            stack.query(sql)
        return
    assert stack.query(sql) == [[shown] for shown in sorted(case.shown)]
