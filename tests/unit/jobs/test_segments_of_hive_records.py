"""How the metastore's records say that a Hive table's files are read, as a segment reads them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bridge.kernel.errors import InvalidRequest, UnsupportedTable
from bridge.kernel.types import parse_hive_type
from bridge.metastore import records
from bridge.metastore.reader_properties import PartitionReaders, table_properties
from bridge.segments.commands.hive_tables import _chosen, _one_reader
from bridge.table.model import CatalogTable, Column, TableName
from bridge.table.reader_spec import ReaderSpec
from bridge.table.segments.manifest import Properties

TEXT = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
CSV = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
JSON = "org.apache.hadoop.hive.serde2.JsonSerDe"
Declared = list[tuple[str, str]]


def descriptor(serde: str, columns: Declared, told: dict[str, str]) -> records.StorageDescriptor:
    return records.StorageDescriptor(
        cols=[records.FieldSchema(name, type) for name, type in columns],
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        serdeInfo=records.SerDeInfo(serializationLib=serde, parameters=told),
    )


def table(
    format: str, columns: Declared, keys: Sequence[tuple[str, str]] = (), told: Properties = ()
) -> CatalogTable:
    made, held = (
        tuple(Column(name, parse_hive_type(type)) for name, type in some)
        for some in (columns, keys)
    )
    name = TableName("s", "t")
    return CatalogTable(name, made, held, "file:///t", format, reader_properties=told)


def read(
    format: str, serde: str, columns: Declared, told: dict[str, str], own: Declared | None = None
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Properties of a segment, and columns, of a partition that has other columns perhaps."""
    record = records.Table(sd=descriptor(serde, columns, told), parameters={})
    found = table(format, columns, told=table_properties(record))
    partition = records.Partition(sd=descriptor(serde, own or columns, told), parameters={})
    reader = PartitionReaders(found).reader(partition, format)
    assert isinstance(reader, ReaderSpec)
    _, properties, shown = _one_reader(found, {reader: "day=1"})
    return properties, [(c.name, str(c.type)) for c in shown]


@pytest.mark.parametrize(
    ("told", "delimiter"),
    [
        ({}, None),
        ({"serialization.format": "1"}, None),
        ({"serialization.format": ","}, ","),
        ({"serialization.format": "44"}, ","),
        ({"serialization.format": "1", "field.delim": "|"}, "|"),
        ({"field.delim": "9"}, "\t"),
    ],
)
def test_text_is_split_where_hive_splits_it(told: dict[str, str], delimiter: str | None) -> None:
    properties, _ = read("text", TEXT, [("a", "string")], told)
    assert properties == ({} if delimiter is None else {"text.delimiter": delimiter})


@pytest.mark.parametrize(
    ("format", "serde", "told"),
    [("text", TEXT, {"field.delim": "\\t"}), ("csv", CSV, {"separatorChar": "\\t"})],
)
def test_what_a_serde_takes_for_other_characters_is_refused(
    format: str, serde: str, told: dict[str, str]
) -> None:
    with pytest.raises(UnsupportedTable, match="other characters"):
        read(format, serde, [("a", "string")], told)


AB = [("a", "string"), ("b", "string")]


@pytest.mark.parametrize(
    ("format", "serde", "own", "shown"),
    [
        ("text", TEXT, [("a", "int"), ("c", "string")], [("a", "int"), ("b", "string")]),
        ("text", TEXT, [("a", "string")], [("a", "string")]),
        ("csv", CSV, [("b", "string"), ("a", "string")], AB),
        ("json", JSON, [("b", "string"), ("a", "string")], []),
        ("json", JSON, [("a", "string")], [("a", "string")]),
    ],
)
def test_a_column_is_what_the_partition_has_at_its_place(
    format: str, serde: str, own: Declared, shown: Declared
) -> None:
    properties, found = read(format, serde, AB, {}, own)
    assert found == shown
    assert format != "csv" or properties["csv.header"] == "a,b"


@pytest.mark.parametrize(
    ("type", "names", "text", "kept"),
    [
        ("char(3)", ["k=abc", "k=xyz"], "xyz", ["k=xyz"]),
        ("double", ["k=1.5", "k=2.5"], "1.5", ["k=1.5"]),
        ("double", ["k=1.5", "k=2.5"], "other", []),
        ("varchar(3)", ["k=abcd", "k=wxyz"], "wxyz", ["k=wxyz"]),
        ("int", ["k=01", "k=2"], "1", ["k=01"]),
        ("string", ["k=a%2Fb", "k=b"], "a/b", ["k=a%2Fb"]),
        ("string", ["k=__HIVE_DEFAULT_PARTITION__", "k=b"], "__HIVE_DEFAULT_PARTITION__", None),
    ],
)
def test_partitions_are_chosen_by_value_or_by_spelling(
    type: str, names: list[str], text: str, kept: list[str] | None
) -> None:
    found = table("text", [("a", "string")], [("k", type)])
    if kept == []:
        with pytest.raises(InvalidRequest, match="no partition k=other"):
            _chosen(found, names, {"K": text})
        return
    assert _chosen(found, names, {"K": text}) == (names[:1] if kept is None else kept)


def test_a_table_whose_partitions_nobody_recorded() -> None:
    one = table("parquet", [("id", "int")], [("day", "date")])
    with pytest.raises(InvalidRequest, match="metastore has no partition") as refused:
        _chosen(one, [], {})
    assert "MSCK REPAIR TABLE" in str(refused.value)
