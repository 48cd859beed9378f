from __future__ import annotations

import base64

import pytest

from bridge.formats.registry import indexed_formats
from bridge.kernel.errors import UnsupportedTable
from bridge.metastore._gen import ttypes
from bridge.metastore.classify import refusal, refuse_unsupported, storage_format, trino_view

HIVE = "org.apache.hadoop.hive.ql.io."
PARQUET = (HIVE + "parquet.MapredParquetInputFormat", HIVE + "parquet.serde.ParquetHiveSerDe")


def table(
    properties: dict[str, str] | None = None,
    classes: tuple[str, str] = PARQUET,
    location: str = "file:/t",
    **changes: object,
) -> ttypes.Table:
    descriptor = ttypes.StorageDescriptor(
        location=location,
        inputFormat=classes[0],
        serdeInfo=ttypes.SerDeInfo(serializationLib=classes[1]),
    )
    found = ttypes.Table(
        dbName="d", tableName="t", tableType="EXTERNAL_TABLE", sd=descriptor, parameters=properties
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    "plain",
    [
        table(),
        table({}),
        table({"transactional": "false", "table_type": "EXTERNAL"}),
        table({"spark.sql.sources.provider": "parquet"}),
        table(classes=("parquet.hive.DeprecatedParquetInputFormat", "x.ParquetHiveSerDe")),
        table(classes=("io.skipbridge.hive.SkippingInputFormat", PARQUET[1])),
    ],
)
def test_plain_parquet_tables_are_read(plain: ttypes.Table) -> None:
    assert refusal(plain) is None
    refuse_unsupported(plain)
    assert storage_format(plain.sd) == "parquet"


@pytest.mark.parametrize(
    ("other", "kind", "value"),
    [
        (table(tableType="VIRTUAL_VIEW"), "a view", "VIRTUAL_VIEW"),
        (table(tableType="MATERIALIZED_VIEW"), "a view", "MATERIALIZED_VIEW"),
        (table({"transactional": "TRUE"}), "an ACID table", "transactional=TRUE"),
        (table({"table_type": "ICEBERG"}), "an Iceberg table", "table_type=ICEBERG"),
        (
            table({"storage_handler": "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"}),
            "an Iceberg table",
            "HiveIcebergStorageHandler",
        ),
        (table({"spark.sql.sources.provider": "DELTA"}), "a Delta table", "DELTA"),
        (table({"Spark.SQL.sources.provider": "hudi"}), "a Hudi table", "hudi"),
        (
            table(classes=("org.apache.hudi.hadoop.HoodieParquetInputFormat", PARQUET[1])),
            "a Hudi table",
            "HoodieParquetInputFormat",
        ),
        (table({"storage_handler": "x.HBase"}), "kept by a storage handler", "x.HBase"),
        (table({"projection.enabled": "true"}), "projected partitions", "projection.enabled"),
        (
            table(classes=(HIVE + "SymlinkTextInputFormat", PARQUET[1])),
            "symbolic links",
            "SymlinkTextInputFormat",
        ),
        (
            table(classes=("org.apache.hadoop.mapred.TextInputFormat", "x.OpenCSVSerde")),
            "not a Parquet table",
            "format csv",
        ),
        (table(classes=(PARQUET[0], "x.Other")), "not a Parquet table", "x.Other"),
        (table(location=""), "without a location", "location"),
        (table(sd=None), "not a Parquet table", "none"),
    ],
)
def test_others_are_refused_by_what_shows_it(other: ttypes.Table, kind: str, value: str) -> None:
    with pytest.raises(UnsupportedTable, match=kind) as caught:
        refuse_unsupported(other)
    assert caught.value.message.startswith("d.t is ")
    assert value in caught.value.message
    assert caught.value.hint


def test_list_bucketing_is_refused() -> None:
    skewed = table()
    skewed.sd.storedAsSubDirectories = True
    with pytest.raises(UnsupportedTable, match="skewed"):
        refuse_unsupported(skewed)


def test_orc_is_for_those_who_ask_for_it() -> None:
    orc = (HIVE + "orc.OrcInputFormat", HIVE + "orc.OrcSerde")
    with pytest.raises(UnsupportedTable, match="not a Parquet table"):
        refuse_unsupported(table(classes=orc))
    refuse_unsupported(table(classes=orc), indexed_formats())
    regex = ("org.apache.hadoop.mapred.TextInputFormat", "x.RegexSerDe")
    with pytest.raises(UnsupportedTable, match="not a text, Parquet, ORC, JSON, CSV or Avro table"):
        refuse_unsupported(table(classes=regex), indexed_formats())
    with pytest.raises(UnsupportedTable, match="ACID"):
        refuse_unsupported(table({"transactional": "true"}, classes=orc), indexed_formats())


def test_views_of_trino_are_told_from_those_of_hive() -> None:
    definition = '{"originalSql": "SELECT 1 AS \u00e4"}'
    encoded = base64.b64encode(definition.encode()).decode()
    made = {"presto_view": "true", "comment": "Presto View"}
    view = table(made, tableType="VIRTUAL_VIEW", viewOriginalText=f"/* Presto View: {encoded} */")
    assert trino_view(view) == definition
    for other in (
        table({}, tableType="VIRTUAL_VIEW", viewOriginalText="SELECT 1"),
        table(made, tableType="VIRTUAL_VIEW", viewOriginalText="SELECT 1"),
        table(made, tableType="VIRTUAL_VIEW", viewOriginalText="/* Presto View: %% */"),
        table(made, tableType="VIRTUAL_VIEW"),
        table(made),
    ):
        assert trino_view(other) is None
    with pytest.raises(UnsupportedTable, match="a view of Trino"):
        refuse_unsupported(view)
    hives = table({}, tableType="VIRTUAL_VIEW", viewOriginalText="SELECT 1")
    with pytest.raises(UnsupportedTable, match=r"d\.t is a view of Hive"):
        refuse_unsupported(hives)
