"""Which columns Hive reads from a view as from facts: only what was compared."""

import pytest

from bridge.engines.hive.hot_columns import reads_alike
from bridge.engines.registry import engine
from bridge.kernel.types import parse_hive_type

NEVER = ("char(3)", "date", "timestamp", "binary", "array<int>", "struct<x:int>", "map<int,int>")


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json", "text", "avro", "new"])
def test_other_formats_and_types_are_read_from_facts(format: str) -> None:
    known = format in ("parquet", "orc", "csv")
    for plain in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string"):
        assert reads_alike(format, parse_hive_type(plain)) == known
    assert reads_alike(format, parse_hive_type("decimal(9,2)")) == (format == "csv")
    assert reads_alike(format, parse_hive_type("varchar(3)")) == (format in ("csv", "parquet"))
    assert not any(reads_alike(format, parse_hive_type(type)) for type in NEVER)


def test_the_connector_reads_every_type_alike() -> None:
    trino = engine("trino")
    assert trino.reads_hot_columns and trino.reads_alike("json", parse_hive_type("char(3)"))
    assert not engine("hive").reads_hot_columns
