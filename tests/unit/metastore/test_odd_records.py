"""A record of the metastore that lacks what others have is that table's refusal, and no failure."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.kernel.errors import UserError
from bridge.metastore._gen import ttypes
from bridge.metastore.catalog import HiveCatalog
from bridge.table.model import TableName

PARQUET = "org.apache.hadoop.hive.ql.io.parquet."


def record() -> ttypes.Table:
    return ttypes.Table(
        tableName="t",
        dbName="db",
        sd=ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("c", "bigint", None)],
            location="file:///x/y",
            inputFormat=f"{PARQUET}MapredParquetInputFormat",
            outputFormat=f"{PARQUET}MapredParquetOutputFormat",
            serdeInfo=ttypes.SerDeInfo("x", f"{PARQUET}serde.ParquetHiveSerDe", {}),
            parameters={},
        ),
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
    )


PLACES: dict[str, Callable[[ttypes.Table], Any]] = {
    "": lambda table: table,
    "sd": lambda table: table.sd,
    "serde": lambda table: table.sd.serdeInfo,
    "column": lambda table: table.sd.cols[0],
}
LACKING = [
    ("", "sd"),
    ("", "partitionKeys"),
    ("", "parameters"),
    ("", "tableType"),
    ("sd", "cols"),
    ("sd", "location"),
    ("sd", "inputFormat"),
    ("sd", "outputFormat"),
    ("sd", "serdeInfo"),
    ("sd", "parameters"),
    ("serde", "serializationLib"),
    ("serde", "parameters"),
    ("column", "type"),
    ("column", "comment"),
]


@pytest.mark.parametrize(("place", "field"), LACKING)
def test_a_record_that_lacks_a_field(place: str, field: str) -> None:
    lacking = record()
    setattr(PLACES[place](lacking), field, None)
    client: Any = SimpleNamespace(get_table=lambda schema, table: lacking)
    catalog = HiveCatalog(client)
    for ask in (catalog.table, catalog.view):
        try:
            ask(TableName("db", "t"))
        except UserError as refusal:
            assert "db.t" in refusal.message or refusal.hint
