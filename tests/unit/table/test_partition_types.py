"""Partitions with types of their own: what readers are told, and what is known of files."""

from __future__ import annotations

from io import BytesIO

import fastavro
import pytest

from bridge.kernel.types import BIGINT, INTEGER, STRING
from bridge.metastore import records
from bridge.metastore.reader_properties import PartitionReaders
from bridge.runtime.create_table import thrift_table
from bridge.table.model import CatalogTable, Column, TableName
from bridge.table.recipes import recipe_of
from tests.support.text_files import read

_TABLE = (Column("a", BIGINT), Column("b", STRING))
_OWN = (Column("a", INTEGER), Column("b", STRING))


def _avro() -> bytes:
    fields = [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]
    sink = BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, [{"a": 7, "b": "x"}])
    return sink.getvalue()


FILES = {"text": b"7\x01x\n", "json": b'{"a": 7, "b": "x"}\n', "avro": _avro()}


def partition(format: str, columns: tuple[Column, ...]) -> records.Partition:
    name = TableName("d", "t")
    found = records.Partition(values=["1"], parameters={})
    found.sd = thrift_table(name, CatalogTable(name, columns, (), "file:///t/p=1", format)).sd
    return found


def table(format: str) -> CatalogTable:
    return CatalogTable(TableName("d", "t"), _TABLE, (Column("p", INTEGER),), "file:///t", format)


@pytest.mark.rule("33")
@pytest.mark.parametrize("format", FILES)
def test_33_nothing_is_known_of_a_file_that_is_read_by_its_partitions_types(format: str) -> None:
    """An engine converts what it reads so: 3000000000 is NULL, or an error, and no bigint."""
    readers = PartitionReaders(table(format))
    same, own = (readers.reader(partition(format, of), format) for of in (_TABLE, _OWN))
    assert same is not None and own is not None
    assert same.columns is None and own.columns == _OWN
    known, unknown = (recipe_of(spec, _TABLE) for spec in (same, own))
    assert known is not None and unknown is not None
    assert read(known, FILES[format]) is not None
    assert read(unknown, FILES[format]) is None


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_files_that_tell_their_types_are_read_by_those(format: str) -> None:
    assert PartitionReaders(table(format)).reader(partition(format, _OWN), format) is None
