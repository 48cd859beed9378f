"""Records that a version before 0.1.0 hooked: which they are, and the statements that free them."""

from __future__ import annotations

import pytest

from bridge.formats.registry import hive_hooks
from bridge.metastore._gen import ttypes
from bridge.metastore.classify import storage_format
from bridge.metastore.hooks import former_input_format, freeing_statements, is_hooked
from tests.support.hooked_records import hook

PARQUET_HOOK = "io.skipbridge.hive.BridgeParquetInputFormat"
TEXT_HOOK = "io.skipbridge.hive.BridgeTextInputFormat"
QL = "org.apache.hadoop.hive.ql.io"
PARQUET = f"{QL}.parquet.MapredParquetInputFormat"
OLD_PARQUET = "parquet.hive.DeprecatedParquetInputFormat"
PARQUET_SERDE = f"{QL}.parquet.serde.ParquetHiveSerDe"


def descriptor(
    input_format: str | None = PARQUET, serde: str = PARQUET_SERDE
) -> ttypes.StorageDescriptor:
    return ttypes.StorageDescriptor(
        location="file:/t",
        inputFormat=input_format,
        outputFormat="o.Format",
        serdeInfo=ttypes.SerDeInfo(serializationLib=serde),
    )


def table(input_format: str | None = PARQUET, **parameters: str) -> ttypes.Table:
    return ttypes.Table(
        dbName="d", tableName="t", sd=descriptor(input_format), parameters=dict(parameters)
    )


@pytest.mark.parametrize("original", list(hive_hooks()))
def test_the_former_class_comes_back(original: str) -> None:
    record = table(original, numRows="7")
    assert not list(freeing_statements(record, []))
    hook(record)
    assert is_hooked(record.sd)
    assert former_input_format(record, None) == original
    first, last = freeing_statements(record, [])
    assert first == (
        f"ALTER TABLE `d`.`t` SET FILEFORMAT INPUTFORMAT '{original}' "
        f"OUTPUTFORMAT 'o.Format' SERDE '{PARQUET_SERDE}'"
    )
    assert last.startswith("ALTER TABLE `d`.`t` UNSET TBLPROPERTIES IF EXISTS (")


def test_a_partition_that_inherited_goes_back_to_the_tables_class() -> None:
    assert former_input_format(table(PARQUET_HOOK), OLD_PARQUET) == OLD_PARQUET
    assert former_input_format(table(PARQUET_HOOK), None) == PARQUET
    # Of another format than what is noted: that note is of no use.
    text = "org.apache.hadoop.mapred.TextInputFormat"
    assert former_input_format(table(TEXT_HOOK), PARQUET) == text


def test_only_what_is_hooked_is_altered() -> None:
    """An unhook that was interrupted: the table is as it was, save its note, and one partition."""
    of = table(PARQUET)
    of.partitionKeys = [ttypes.FieldSchema("p", "string")]
    of.parameters["skipbridge.hive.original_input_format"] = PARQUET
    plain = ttypes.Partition(values=["1"], sd=descriptor(), parameters={})
    left = ttypes.Partition(values=["it's;"], sd=descriptor(PARQUET_HOOK), parameters={})
    one, last = freeing_statements(of, [plain, left])
    assert "PARTITION (`p` = 'it\\'s\\073') SET FILEFORMAT" in one and "UNSET" in last


def test_partitions_of_a_table_that_was_altered_by_hand() -> None:
    of = table(PARQUET)
    of.partitionKeys = [ttypes.FieldSchema("p", "string")]
    left = ttypes.Partition(values=["1"], sd=descriptor(PARQUET_HOOK), parameters={})
    (one,) = freeing_statements(of, [left])
    assert f"PARTITION (`p` = '1') SET FILEFORMAT INPUTFORMAT '{PARQUET}'" in one


def test_a_table_of_the_storage_handler_is_no_hooked_one() -> None:
    handler = "io.skipbridge.hive.BridgeStorageHandler"
    assert not list(freeing_statements(table(PARQUET_HOOK, storage_handler=handler), []))


def test_a_hooked_table_is_of_the_format_that_it_was() -> None:
    for input_format, serde, kind in (
        (PARQUET, PARQUET_SERDE, "parquet"),
        (f"{QL}.orc.OrcInputFormat", f"{QL}.orc.OrcSerde", "orc"),
        ("org.apache.hadoop.mapred.TextInputFormat", "a.LazySimpleSerDe", "text"),
        ("org.apache.hadoop.mapred.TextInputFormat", "a.OpenCSVSerde", "csv"),
        ("org.apache.hadoop.mapred.TextInputFormat", "a.JsonSerDe", "json"),
    ):
        record = table()
        record.sd = descriptor(input_format, serde)
        assert storage_format(record.sd) == kind
        hook(record)
        assert storage_format(record.sd) == kind
