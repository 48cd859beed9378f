"""What readers are told of records of the metastore."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bridge.formats.lines.text_lines import is_whole
from bridge.kernel.errors import MetastoreFailure
from bridge.kernel.types import BIGINT, INTEGER, STRING
from bridge.metastore._gen import ttypes
from bridge.metastore.reader_properties import (
    PARTITION_PARAMETERS,
    PartitionReaders,
    declared_columns,
    is_described,
    table_properties,
)
from bridge.table.model import CatalogTable, Column, TableName
from bridge.table.reader_spec import ReaderSpec

TEXT = "org.apache.hadoop.mapred.TextInputFormat"
CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
TEXTS = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
FIELDS = [("a", "string"), ("b", "bigint")]
COLUMNS = (Column("a", STRING), Column("b", BIGINT))


def descriptor(
    serde: Mapping[str, str],
    fields: list[tuple[str, str]] | None = FIELDS,
    library: str = TEXTS,
) -> ttypes.StorageDescriptor:
    cols = None if fields is None else [ttypes.FieldSchema(n, t, "") for n, t in fields]
    info = ttypes.SerDeInfo(serializationLib=library, parameters=dict(serde))
    return ttypes.StorageDescriptor(cols=cols, inputFormat=TEXT, serdeInfo=info)


def partition(
    serde: Mapping[str, str],
    fields: list[tuple[str, str]] | None = FIELDS,
    parameters: Mapping[str, str] | None = None,
) -> ttypes.Partition:
    return ttypes.Partition(sd=descriptor(serde, fields), parameters=dict(parameters or {}))


def readers(format: str = "text", parameters: Mapping[str, str] | None = None) -> PartitionReaders:
    record = ttypes.Table(sd=descriptor({"quoteChar": "'"}), parameters=dict(parameters or {}))
    given = table_properties(record) if is_described(format) else ()
    name = TableName("s", "t")
    return PartitionReaders(
        CatalogTable(name, COLUMNS, (), "file:///t", format, dict(parameters or {}), "", "", given)
    )


def told(spec: ReaderSpec | None) -> dict[str, str]:
    assert spec is not None
    return dict(spec.properties)


def test_a_table_tells_its_serde_and_its_own_parameters() -> None:
    record = ttypes.Table(
        sd=descriptor({"separatorChar": ";", "path": "file:///x"}, library=CSV),
        parameters={"skip.header.line.count": "1", "separatorChar": "|", "numRows": "3"},
    )
    assert dict(table_properties(record)) == {
        "serialization.lib": CSV,
        "file.inputformat": TEXT,
        "columns": "a,b",
        "columns.types": "string:string",
        "separatorChar": "|",
        "other.separatorChar": ";",
        "skip.header.line.count": "1",
    }


def test_a_partition_has_its_own_serde_and_the_tables_parameters() -> None:
    of = readers(parameters={"skip.header.line.count": "1"})
    first = of.reader(partition({"separatorChar": ";"}), "text")
    assert told(first)["separatorChar"] == ";" and "quoteChar" not in told(first)
    assert told(first)["skip.header.line.count"] == "1"
    assert told(first)["columns"] == "a,b"
    assert first is not None and first.columns is None
    assert of.reader(partition({"separatorChar": ";"}), "text") is first, "one object"


def test_parameters_of_a_partition_are_told_apart() -> None:
    of = readers(parameters={"skip.header.line.count": "1"})
    same = of.reader(
        partition({}, parameters={"skip.header.line.count": "1", "numRows": "2"}), "csv"
    )
    assert PARTITION_PARAMETERS not in told(same)
    other = of.reader(partition({}, parameters={"skip.header.line.count": "2"}), "text")
    assert told(other)[PARTITION_PARAMETERS] == "skip.header.line.count=2"
    assert told(other)["skip.header.line.count"] == "1"


def test_a_partition_with_other_types_tells_its_columns() -> None:
    found = readers().reader(partition({}, [("a", "string"), ("b", "int")]), "text")
    assert found is not None and found.columns == (Column("a", STRING), Column("b", INTEGER))
    assert told(found)["columns.types"] == "string:bigint", "the table's"


def test_partitions_of_other_formats() -> None:
    of = readers("parquet", {"skip.header.line.count": "1"})
    assert of.reader(partition({}), "parquet") is None
    assert of.reader(partition({}), "orc") == ReaderSpec("orc")
    found = of.reader(partition({"separatorChar": ";"}), "text")
    assert found is not None and found.format == "text"
    assert told(found)["separatorChar"] == ";" and told(found)["columns"] == "a,b"
    assert told(found)["skip.header.line.count"] == "1"


def test_a_partition_without_columns_is_an_error() -> None:
    with pytest.raises(MetastoreFailure, match="no columns"):
        readers().reader(partition({}, None), "text")


def test_a_digest_tells_whether_files_are_read_alike() -> None:
    one = ReaderSpec("csv", (("columns", "a"), ("separatorChar", ",")))
    assert one.digest == ReaderSpec("csv", (("columns", "a,b"), ("separatorChar", ","))).digest
    assert one.digest != ReaderSpec("csv", (("columns", "a"), ("separatorChar", ";"))).digest
    assert one.digest != ReaderSpec("text", one.properties).digest
    assert ReaderSpec("parquet").digest == ""
    joined = ReaderSpec("csv", (("a", "bc"),)), ReaderSpec("csv", (("ab", "c"),))
    assert joined[0].digest != joined[1].digest


@pytest.mark.parametrize(
    ("properties", "path", "whole"),
    [
        ({}, "a.csv", False),
        ({}, "a.csv.gz", True),
        ({}, "a.zst", True),
        ({}, "a.zip", False),
        ({"skip.header.line.count": "1"}, "a", False),
        ({"skip.header.line.count": "2"}, "a", True),
        ({"skip.header.line.count": "x"}, "a", True),
        ({"skip.footer.line.count": "1"}, "a", True),
    ],
)
def test_files_that_one_task_reads(properties: dict[str, str], path: str, whole: bool) -> None:
    assert is_whole(properties, path) is whole


def test_columns_of_csv_are_texts() -> None:
    found = [(f.name, f.type) for f in declared_columns(descriptor({}, library=CSV))]
    assert found == [("a", "string"), ("b", "string")]
    part = ttypes.Partition(sd=descriptor({}, library=CSV), parameters={})
    spec = readers("parquet").reader(part, "csv")
    assert spec is not None and spec.columns == (Column("a", STRING), Column("b", STRING))


def test_what_trino_does_not_take_is_told_apart() -> None:
    of = readers(parameters={"field.delim": "|"})
    assert told(of.reader(partition({"field.delim": ";"}), "text"))["other.field.delim"] == ";"
    assert "other.field.delim" not in told(of.reader(partition({"field.delim": "|"}), "text"))


def test_a_hook_does_not_change_how_files_are_read() -> None:
    plain, hooked = partition({}), partition({})
    hooked.sd.inputFormat = "io.skipbridge.hive.BridgeTextInputFormat"
    of = readers()
    assert of.reader(plain, "text") is of.reader(hooked, "text")
