from __future__ import annotations

import pyarrow as pa
import pytest

from bridge.kernel.errors import SchemaConflict, UnsupportedTable
from bridge.metastore._gen import ttypes
from bridge.sync.writing.metastore import registered_table
from bridge.table.infer import merge_schemas

ORC = "org.apache.hadoop.hive.ql.io.orc."


def orc_table(**properties: str) -> ttypes.Table:
    descriptor = ttypes.StorageDescriptor(
        location="file:/t",
        inputFormat=ORC + "OrcInputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib=ORC + "OrcSerde"),
    )
    return ttypes.Table(
        dbName="d",
        tableName="t",
        tableType="EXTERNAL_TABLE",
        sd=descriptor,
        parameters=properties,
    )


def test_a_table_of_another_table_format_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match=r"d\.t is of the table format 'manifest'"):
        registered_table(orc_table(**{"skipbridge.table_format": "manifest"}))


def test_acid_comes_before_orc() -> None:
    with pytest.raises(UnsupportedTable, match="an ACID table"):
        registered_table(orc_table(transactional="true"))


def test_a_column_of_no_type_conflicts_in_words() -> None:
    text, nulls = pa.schema([("c", pa.string())]), pa.schema([("c", pa.time32("s"))])
    with pytest.raises(SchemaConflict) as refused:
        merge_schemas([("file:///a", text), ("file:///b", nulls)])
    assert "c' is string in file:///a and of a type that Hive does not have" in str(refused.value)
