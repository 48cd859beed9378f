"""What readers of text, Avro and similar files are told of a record of the metastore.

As in Trino's hive connector: the parameters of the partition's SerDe, then the table's own
parameters, which take precedence; and the table's columns. Parameters of a partition itself are
not used by Trino, but Hive uses them. They are told apart, so that nobody relies on statistics of
files that the two engines read differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.formats.registry import file_formats
from bridge.kernel.errors import MetastoreFailure
from bridge.kernel.types import Type, parse_hive_type
from bridge.metastore._gen import ttypes
from bridge.table.hive_properties import (
    INPUT_FORMAT,
    OPEN_CSV,
    SERDE,
    relevant,
    without_hook,
)
from bridge.table.model import CatalogTable, Column
from bridge.table.reader_spec import COLUMN_TYPES, COLUMNS, ReaderSpec

PARTITION_PARAMETERS = "skipbridge.partition-parameters"
"""``name=value`` of each parameter of the partition that Hive heeds and Trino does not."""

_UNUSED = ("path", "serialization.class")
"""Parameters of SerDes that say nothing about how a file is read."""


def is_described(format: str) -> bool:
    """Whether readers of the format are told what the metastore says of the files."""
    known = file_formats().get(format)
    return known is not None and known.described


def table_properties(table: ttypes.Table) -> tuple[tuple[str, str], ...]:
    """What readers of the table's own files are told, sorted."""
    parameters = relevant(table.parameters)
    return _sorted(
        {
            **_merged(_serde_parameters(table.sd), parameters),
            **_classes(table.sd),
            **_columns(declared_columns(table.sd)),
        }
    )


class PartitionReaders:
    """How the files of a table's partitions are read; equal answers are one object."""

    def __init__(self, table: CatalogTable) -> None:
        self._table = table
        self._of_table = dict(table.reader_properties)
        self._parameters = relevant(table.properties)
        self._columns = _shape(table.columns)
        self._known: dict[ReaderSpec, ReaderSpec] = {}

    def reader(self, partition: ttypes.Partition, format: str) -> ReaderSpec | None:
        """None if its files are read as the table's.

        Errors:
            MetastoreFailure: its record lacks columns.
        """
        if not is_described(format):
            return None if format == self._table.format else self._one(ReaderSpec(format))
        descriptor = partition.sd
        if descriptor.cols is None:
            raise MetastoreFailure(
                f"a partition of {self._table.name} has no columns in the metastore",
                "add the partition again",
            )
        properties = _serde_parameters(descriptor)
        if (properties.get("avro.schema.url") or format == "avro") and self._of_table:
            # As in Trino: the table's schema of Avro files holds for all partitions.
            properties |= {k: v for k, v in self._of_table.items() if k.startswith("avro.")}
        properties = _merged(properties, self._parameters)
        properties |= _classes(descriptor)
        schema = {k: self._of_table[k] for k in (COLUMNS, COLUMN_TYPES) if k in self._of_table}
        properties |= schema or _described_columns(self._table.columns)
        own = {k: v for k, v in relevant(partition.parameters).items() if properties.get(k) != v}
        if own:
            properties[PARTITION_PARAMETERS] = "\n".join(f"{k}={v}" for k, v in sorted(own.items()))
        columns: tuple[Column, ...] | None = _model_columns(declared_columns(descriptor))
        if columns is not None and _shape(columns) == self._columns:
            columns = None
        return self._one(ReaderSpec(format, _sorted(properties), columns))

    def _one(self, spec: ReaderSpec) -> ReaderSpec:
        return self._known.setdefault(spec, spec)


def declared_columns(descriptor: ttypes.StorageDescriptor) -> list[ttypes.FieldSchema]:
    """The columns as engines see them: all those of Hive's OpenCSVSerde are texts."""
    info = descriptor.serdeInfo
    if info is None or info.serializationLib != OPEN_CSV:
        return list(descriptor.cols or [])
    return [ttypes.FieldSchema(f.name, "string", f.comment) for f in descriptor.cols or []]


def _serde_parameters(descriptor: ttypes.StorageDescriptor) -> dict[str, str]:
    info = descriptor.serdeInfo
    found: Mapping[str, str] = (info.parameters if info is not None else None) or {}
    return {k: v or "" for k, v in found.items() if k not in _UNUSED}


def _merged(serde: Mapping[str, str], table: Mapping[str, str]) -> dict[str, str]:
    """The SerDe's parameters and the table's, of which Trino takes the latter.

    What it does not take is told as ``other.name``: another engine may take it.
    """
    lost = {f"other.{k}": v for k, v in serde.items() if table.get(k, v) != v}
    return {**serde, **table, **lost}


def _classes(descriptor: ttypes.StorageDescriptor) -> dict[str, str]:
    info = descriptor.serdeInfo
    return {
        SERDE: (info.serializationLib if info is not None else None) or "",
        INPUT_FORMAT: without_hook(descriptor.inputFormat or ""),
    }


def _columns(fields: Sequence[ttypes.FieldSchema]) -> dict[str, str]:
    return {
        COLUMNS: ",".join(f.name for f in fields),
        COLUMN_TYPES: ":".join(f.type for f in fields),
    }


def _described_columns(columns: Sequence[Column]) -> dict[str, str]:
    return {
        COLUMNS: ",".join(c.name for c in columns),
        COLUMN_TYPES: ":".join(str(c.type) for c in columns),
    }


def _model_columns(fields: Sequence[ttypes.FieldSchema]) -> tuple[Column, ...]:
    return tuple(Column(f.name, parse_hive_type(f.type)) for f in fields)


def _shape(columns: Sequence[Column]) -> list[tuple[str, Type]]:
    return [(c.name.lower(), c.type) for c in columns]


def _sorted(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(properties.items()))
