"""Columns of Hudi tables are found by name in any case: in base files, logs and the catalog.

Writers of one table may spell a column in different ways. Spark keeps the case of a DataFrame, a
catalog knows names in lower case, and Flink writes what its catalog says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.stack import Stack
from tests.support.hudi_registration import register
from tests.support.hudi_tables import HudiTable, Written
from tests.support.hudi_writer import avro_block, hfile_block, parquet_block

pytestmark = pytest.mark.full

SCHEMA = "hudi_name_case"
INSTANTS = [f"2026010100000{i}000" for i in range(3)]
Row = tuple[str, int, int]
# Key, value, event time. The second log row of ``b`` is older than the base file's, and a negative
# value stands for a deletion, as another column says.
BASE: list[Row] = [("a", 10, 5), ("b", 20, 5), ("c", 30, 5)]
LOGS: list[list[Row]] = [[("a", 11, 6), ("b", 21, 4), ("d", 40, 1)], [("d", 41, 2), ("c", -1, 6)]]
MERGED = {"a": 11, "b": 20, "d": 41}
ASKED = {
    "camelcase = 11": ["a"],
    "camelcase IN (10, 21, 40)": [],
    "camelcase = 41 AND ts = 2": ["d"],
    "camelcase IN (30, -1)": [],
    "camelcase IS NULL": [],
    "price = 20.5": ["b"],
}


class Spelling:
    """The table's columns with capitals, or without."""

    def __init__(self, capitals: bool) -> None:
        def name(text: str) -> str:
            return text if capitals else text.lower()

        fixed = {"type": "fixed", "name": "fixed", "namespace": f"t.t_record.{name('Price')}"}
        decimal = {**fixed, "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
        inner = {"name": name("Aa"), "type": ["null", "int"], "default": None}
        nest = {"type": "record", "name": name("Nest"), "namespace": "t", "fields": [inner]}
        kinds: list[tuple[str, Any, pa.DataType]] = [
            ("_hoodie_record_key", "string", pa.string()),
            ("k", "string", pa.string()),
            (name("CamelCase"), "int", pa.int32()),
            (name("Ts"), "long", pa.int64()),
            (name("Price"), decimal, pa.decimal128(9, 2)),
            (name("Nest"), nest, pa.struct([(name("Aa"), pa.int32())])),
            (name("Op"), "string", pa.string()),
        ]
        fields = [{"name": n, "type": ["null", kind], "default": None} for n, kind, _ in kinds]
        self.avro = {"type": "record", "name": "t_record", "namespace": "t", "fields": fields}
        self.arrow = pa.schema([(n, kind) for n, _, kind in kinds])

    def row(self, row: Row) -> dict[str, Any]:
        key, value, ts = row
        price = Decimal(value) + Decimal("0.50")
        nest = {self.arrow.field(5).type[0].name: value}
        op = "D" if value < 0 else "U"
        return dict(zip(self.arrow.names, (key, key, value, ts, price, nest, op), strict=True))

    def block(self, kind: str, instant: str, rows: list[Row]) -> bytes:
        told = [self.row(row) for row in rows]
        match kind:
            case "hfile":
                return hfile_block(instant, self.avro, told, "k")
            case "parquet":
                return parquet_block(instant, self.avro, pa.Table.from_pylist(told, self.arrow))
        return avro_block(instant, self.avro, told)


def made(root: Path, capitals: tuple[bool, bool, bool], block: str) -> HudiTable:
    """A slice of a base file and two logs, and one whose rows no condition asks for."""
    table = HudiTable(
        root,
        9,
        hoodie__table__recordkey__fields="k",
        hoodie__table__ordering__fields="Ts",
        hoodie__record__merge__mode="EVENT_TIME_ORDERING",
        hoodie__payload__delete__field="Op",
        hoodie__payload__delete__marker="D",
    )
    base, *logs = map(Spelling, capitals)
    files = []
    for group, rows in (("a", BASE), ("b", [("far", 1000, 1000)])):
        file = table.base("", f"{group}-0", INSTANTS[0])
        path = root / file.name
        pq.write_table(pa.Table.from_pylist([base.row(row) for row in rows], base.arrow), path)
        files.append(replace(file, size=path.stat().st_size))
    table.commit(INSTANTS[0], files, schema=json.dumps(base.avro), operation="INSERT")
    for instant, spelling, rows in zip(INSTANTS[1:], logs, LOGS, strict=True):
        log = table.log("", "a-0", instant, previous=INSTANTS[0])
        (root / log.name).write_bytes(spelling.block(block, instant, rows))
        written: Written = replace(log, size=(root / log.name).stat().st_size)
        table.commit(instant, [written], schema=json.dumps(spelling.avro))
    return table


@pytest.fixture(scope="module", autouse=True)
def schema(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(SCHEMA, f"file://{tmp_path_factory.mktemp('names')}")
    yield


@pytest.mark.parametrize(
    ("name", "capitals", "block"),
    [
        ("everywhere", (True, True, True), "avro"),
        ("not_in_a_log", (True, False, True), "avro"),
        ("not_in_a_log", (True, False, True), "hfile"),
        ("not_in_a_log", (True, False, True), "parquet"),
        ("in_old_files", (True, True, False), "avro"),
    ],
)
def test_names_are_found_in_any_case(
    stack: Stack, name: str, capitals: tuple[bool, bool, bool], block: str, tmp_path: Path
) -> None:
    lake = made(tmp_path / "t", capitals, block)
    known = TableName(SCHEMA, f"{name}_{block}")
    config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
    with MetastoreClient(stack.metastore_uri) as client:
        register(client, known, lake.root, pa.schema(list(Spelling(False).arrow)[1:]))
    quiet = {"progress": lambda done, total: None, "say": lambda text: None}
    index_table(config, str(known), local=True, **quiet)  # type: ignore[arg-type]
    rows = [[k, v, Decimal(v) + Decimal("0.5"), v] for k, v in MERGED.items()]
    sql = f"SELECT k, camelcase, price, nest.aa FROM {known} WHERE camelcase < 1000 ORDER BY k"
    assert stack.query(sql) == rows
    with bridge.connect(metastore_uri=stack.metastore_uri) as session:
        table = session.table(str(known))
        found = table.scan("camelcase < 1000").to_arrow().sort_by("k").to_pylist()
        assert [[r["k"], r["camelcase"], r["price"], r["nest"]["aa"]] for r in found] == rows
        for condition, keys in ASKED.items():
            assert stack.query(f"SELECT k FROM {known} WHERE {condition}") == [[k] for k in keys]
            assert table.scan(condition).to_arrow()["k"].to_pylist() == keys, condition
    # HFile blocks have no statistics.
    kept = 2 if block == "hfile" else 1
    assert stack.kept_files(f"SELECT k FROM {known} WHERE camelcase = 1000") == kept
