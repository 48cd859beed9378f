"""What a hook replaces in a record of the metastore, what it refuses, and the way back."""

from __future__ import annotations

import pytest

from bridge.errors import UnsupportedTable
from bridge.jobs.sync.metastore import registered_table
from bridge.metastore._gen import ttypes
from bridge.metastore.classify import storage_format
from bridge.metastore.hooks import (
    HOOKS,
    Survey,
    hook,
    is_hooked,
    is_marked,
    obstacle,
    refuse_unhookable,
    unhook,
)

PARQUET_HOOK = "io.skipbridge.hive.BridgeParquetInputFormat"
TEXT_HOOK = "io.skipbridge.hive.BridgeTextInputFormat"
QL = "org.apache.hadoop.hive.ql.io"
PARQUET = f"{QL}.parquet.MapredParquetInputFormat"
OLD_PARQUET = "parquet.hive.DeprecatedParquetInputFormat"
PARQUET_SERDE = f"{QL}.parquet.serde.ParquetHiveSerDe"


def descriptor(
    input_format: str | None = PARQUET, serde: str = PARQUET_SERDE, **changes: object
) -> ttypes.StorageDescriptor:
    made = ttypes.StorageDescriptor(
        location="file:/t",
        inputFormat=input_format,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(serializationLib=serde),
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def table(sd: ttypes.StorageDescriptor | None = None, **changes: object) -> ttypes.Table:
    made = ttypes.Table(
        dbName="d", tableName="t", tableType="EXTERNAL_TABLE", sd=sd or descriptor(), parameters={}
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def partition(sd: ttypes.StorageDescriptor | None = None, **parameters: str) -> ttypes.Partition:
    return ttypes.Partition(
        dbName="d", tableName="t", values=["1"], sd=sd or descriptor(), parameters=dict(parameters)
    )


@pytest.mark.parametrize("original", list(HOOKS))
def test_there_and_back(original: str) -> None:
    record = table(descriptor(original), parameters={"numRows": "7"})
    before = table(descriptor(original), parameters={"numRows": "7"})
    assert hook(record) and is_hooked(record.sd) and is_marked(record)
    assert record.sd.inputFormat == HOOKS[original]
    assert not hook(record), "a second time"
    assert unhook(record)
    assert record == before
    assert not unhook(record)
    assert record == before


def test_records_without_properties() -> None:
    record = partition()
    record.parameters = None
    assert hook(record) and unhook(record)
    assert record.sd.inputFormat == PARQUET and record.parameters == {}


def test_a_partition_that_inherited_goes_back_to_the_tables_class() -> None:
    added = partition(descriptor(PARQUET_HOOK))
    assert unhook(added, OLD_PARQUET)
    assert added.sd.inputFormat == OLD_PARQUET
    lost = partition(descriptor(PARQUET_HOOK))
    assert unhook(lost, None)
    assert lost.sd.inputFormat == PARQUET
    # Of another format than what is remembered: that memory is of no use.
    text = partition(descriptor(TEXT_HOOK))
    assert unhook(text, PARQUET)
    assert text.sd.inputFormat == "org.apache.hadoop.mapred.TextInputFormat"


def test_a_format_set_by_hand_since_is_not_overwritten() -> None:
    record = table()
    hook(record)
    record.sd.inputFormat = f"{QL}.orc.OrcInputFormat"
    assert unhook(record)
    assert record.sd.inputFormat == f"{QL}.orc.OrcInputFormat"
    assert not is_marked(record)


def test_a_hook_of_a_later_version_is_not_guessed_at() -> None:
    record = table(descriptor("io.skipbridge.hive.BridgeRcFileInputFormat"))
    with pytest.raises(UnsupportedTable, match="BridgeRcFileInputFormat"):
        unhook(record)


def test_a_table_of_another_table_format_is_refused() -> None:
    """Hive lists its directories, which hold files of other versions too."""
    record = table(parameters={"skipbridge.table_format": "manifest"})
    with pytest.raises(UnsupportedTable, match=r"d\.t is of the table format 'manifest'"):
        refuse_unhookable(record)
    with pytest.raises(UnsupportedTable, match="manifest"):
        registered_table(record)
    refuse_unhookable(table(parameters={"skipbridge.table_format": "directory"}))


def test_a_hooked_table_is_of_the_format_that_it_was() -> None:
    for input_format, serde, kind in (
        (PARQUET, PARQUET_SERDE, "parquet"),
        (f"{QL}.orc.OrcInputFormat", f"{QL}.orc.OrcSerde", "orc"),
        ("org.apache.hadoop.mapred.TextInputFormat", "a.LazySimpleSerDe", "text"),
        ("org.apache.hadoop.mapred.TextInputFormat", "a.OpenCSVSerde", "csv"),
        ("org.apache.hadoop.mapred.TextInputFormat", "a.JsonSerDe", "json"),
    ):
        record = table(descriptor(input_format, serde))
        assert storage_format(record.sd) == kind
        hook(record)
        assert storage_format(record.sd) == kind


REFUSED = {
    "ACID": table(parameters={"transactional": "true"}),
    "Iceberg": table(parameters={"table_type": "ICEBERG"}),
    "Delta": table(parameters={"spark.sql.sources.provider": "delta"}),
    "Hudi": table(descriptor("org.apache.hudi.hadoop.HoodieParquetInputFormat")),
    "view": table(tableType="VIRTUAL_VIEW"),
    "storage handler": table(parameters={"storage_handler": "x.KuduStorageHandler"}),
    "symbolic links": table(descriptor(f"{QL}.SymlinkTextInputFormat", "x.LazySimpleSerDe")),
    "directory a value": table(descriptor(storedAsSubDirectories=True)),
    "bucketed": table(descriptor(numBuckets=8, bucketCols=["k"])),
    "which no hook extends": table(descriptor("com.acme.MapredParquetInputFormat")),
    "avro": table(descriptor(f"{QL}.avro.AvroContainerInputFormat", "x.AvroSerDe")),
    "location": table(descriptor(location="")),
}


@pytest.mark.parametrize("word", list(REFUSED))
def test_refused(word: str) -> None:
    with pytest.raises(UnsupportedTable) as error:
        refuse_unhookable(REFUSED[word])
    assert word in error.value.message
    assert error.value.hint


def test_partitions_left_as_they_are() -> None:
    columns = [ttypes.FieldSchema("a", "int"), ttypes.FieldSchema("b", "int")]
    own = [ttypes.FieldSchema("a", "int"), ttypes.FieldSchema("b", "tinyint")]
    of = table(descriptor(cols=columns))
    orc = descriptor(f"{QL}.orc.OrcInputFormat", f"{QL}.orc.OrcSerde")
    skewed = ttypes.SkewedInfo(skewedColNames=["k"])
    cases = {
        "p=1": (partition(), ""),
        "p=2": (partition(orc), "format orc, the table parquet"),
        "p=3": (partition(descriptor(numBuckets=4)), "bucketed"),
        "p=4": (partition(descriptor(skewedInfo=skewed)), "skewed"),
        "p=5": (partition(is_archived="true"), "archived"),
        "p=6": (partition(descriptor(None)), "without a storage descriptor"),
        "p=7": (partition(descriptor(PARQUET_HOOK)), ""),
        "p=8": (partition(descriptor(cols=columns)), ""),
        "p=9": (partition(descriptor(cols=own)), "columns of its own"),
    }
    survey = Survey()
    for name, (record, reason) in cases.items():
        assert obstacle(record, of) == reason, name
        survey.count(name, record, of)
    assert (survey.plain, survey.hooked, survey.total) == (2, 1, 9)
    assert survey.left == {reason: 1 for _, reason in cases.values() if reason}
    survey.count("p=10", partition(descriptor(PARQUET_HOOK, cols=columns[:1])), of)
    assert (survey.hooked, survey.altered, survey.examples["altered"]) == (2, 1, ["p=10"])
    total = Survey()
    for _ in range(5):
        total.add(survey)
    assert total.total == 50 and total.left["skewed"] == 5 and total.altered == 5
    assert total.examples["skewed"] == ["p=4"] * 3
