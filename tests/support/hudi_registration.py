"""Hudi tables in a metastore, registered as Hudi's own sync does it, for tests of engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import thrift_table
from bridge.storage.routed import open_storage
from bridge.table.hudi.table_config import TableType, load_table_config
from bridge.table.infer import type_of
from bridge.table.model import CatalogTable, Column, TableName
from tests.fixtures.hudi.text import encode_table
from tests.support.hudi_fixtures import Answer, HudiFixture

_HUDI = "org.apache.hudi.hadoop."
_BASE_ONLY = f"{_HUDI}HoodieParquetInputFormat"
_REALTIME = f"{_HUDI}realtime.HoodieParquetRealtimeInputFormat"


def register(
    client: MetastoreClient,
    name: TableName,
    location: Path,
    schema: pa.Schema,
    *,
    read_optimized: bool = False,
    copy: str = "",
) -> None:
    """Registers a table; no partition of it is registered.

    Args:
        copy: the URI of a copy of the location, which is registered in its place.
    """
    config = load_table_config(open_storage(), f"file://{location}")
    fields = [Column(f.name.lower(), type_of(f.type)) for f in schema]
    keys = tuple(
        column
        for field in config.partition_fields
        for column in fields
        if column.name == field.lower()
    )
    columns = tuple(c for c in fields if c not in keys)
    uri = copy or f"file://{location}"
    record = thrift_table(name, CatalogTable(name, columns, keys, uri))
    merges = config.table_type is TableType.MERGE_ON_READ and not read_optimized
    record.sd.inputFormat = _REALTIME if merges else _BASE_ONLY
    record.sd.serdeInfo.parameters = {
        "path": uri,
        "hoodie.query.as.ro.table": str(read_optimized).lower(),
    }
    record.parameters = {**record.parameters, "spark.sql.sources.provider": "hudi"}
    client.create_table(record)


def table_name(fixture: HudiFixture) -> str:
    """A name for the metastore."""
    return f"{fixture.name}_{fixture.bundle.replace('.', '_')}".lower()


def as_text(rows: list[list[Any]], answer: Answer, names: list[str]) -> list[list[object]]:
    """Rows of Trino in the types of Spark's answer, as text and in one order.

    Args:
        names: of Trino's columns.
    """
    fields = list(answer.schema)
    place = {name.lower(): i for i, name in enumerate(names)}
    arrays = [
        pa.array([_value(row[place[f.name.lower()]], f.type) for row in rows], f.type)
        for f in fields
    ]
    return encode_table(pa.Table.from_arrays(arrays, schema=answer.schema))


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(kind) and isinstance(value, int):
        return str(value)  # Spark shows the key of a Timestamp key generator as text
    if pa.types.is_struct(kind):
        return {f.name: _value(v, f.type) for f, v in zip(kind, value, strict=True)}
    if pa.types.is_list(kind):
        return [_value(v, kind.value_type) for v in value]
    if pa.types.is_map(kind):
        return [(_value(k, kind.key_type), _value(v, kind.item_type)) for k, v in value.items()]
    return value
