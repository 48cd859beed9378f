"""Tables, partitions and the catalog that describes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from bridge.kernel.types import Field
from bridge.table.reader_spec import Column as Column
from bridge.table.reader_spec import ReaderSpec


@dataclass(frozen=True, slots=True)
class TableName:
    """``schema.table``, both in lower case as in Hive."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as its catalog describes it.

    Attributes:
        columns: data columns, without partition keys.
        partition_keys: in the order of the directory levels; empty if not partitioned.
        location: canonical URI of its root.
        format: name of the file format; unsupported formats were refused before.
        properties: the catalog's table properties, and those of its SerDe: for the table format
            ``directory`` only those by which Hive finds columns by their places.
        table_format: a name in `bridge.table.registry`.
        input_format: Hive's class for it; empty without a metastore.
        reader_properties: what readers of its files need to know, sorted; see `ReaderSpec`.
        created: when the catalog's entry was made, in seconds; 0 if it does not say.
    """

    name: TableName
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...]
    location: str
    format: str = "parquet"
    properties: dict[str, str] = field(default_factory=dict)
    table_format: str = "directory"
    input_format: str = ""
    reader_properties: tuple[tuple[str, str], ...] = ()
    created: int = 0

    @property
    def reader(self) -> ReaderSpec:
        """How its files are read, where a partition does not say otherwise."""
        return ReaderSpec(self.format, self.reader_properties)

    @property
    def schema(self) -> tuple[Field, ...]:
        """Data columns, then partition keys."""
        return tuple(Field(c.name, c.type) for c in (*self.columns, *self.partition_keys))


@dataclass(frozen=True, slots=True)
class View:
    """A view created by Trino; every Trino on the same catalog can read it.

    Attributes:
        definition: JSON in Trino's own format.
        owner: its creator; None if the catalog does not say.
    """

    name: TableName
    definition: str
    owner: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition.

    Attributes:
        name: escaped, as the catalog spells it: ``month=1/day=2``; empty for an unpartitioned
            table.
        values: unescaped text by partition key; None is NULL.
        location: canonical URI, inside or outside the table's directory.
        reader: how its files are read; None: as the table's.
    """

    name: str
    values: tuple[str | None, ...]
    location: str
    reader: ReaderSpec | None = None


@dataclass(frozen=True, slots=True)
class PartitionBatch:
    """Partitions fetched together, and requested names that the catalog no longer knows."""

    partitions: tuple[Partition, ...]
    missing: tuple[str, ...] = ()


class OneBatch:
    """A `PartitionFetch` of partitions that are known already."""

    def __init__(self, batch: PartitionBatch) -> None:
        self._batches = iter((batch,))

    def __iter__(self) -> OneBatch:
        return self

    def __next__(self) -> PartitionBatch:
        return next(self._batches)

    def close(self) -> None:
        """Nothing is in flight."""


class Catalog(Protocol):
    """Describes tables: a Hive Metastore, or a directory used as a table.

    ``age`` is the maximum age of an answer in seconds; 0 means that the answer was true at some
    moment after the call began.
    """

    def schemas(self) -> list[str]: ...

    def tables(self, schema: str) -> list[str]:
        """Names of tables and views. Errors: SchemaNotFound."""
        ...

    def views(self, schema: str) -> list[str]:
        """Those among `tables` that are views. Errors: SchemaNotFound."""
        ...

    def view(self, name: TableName) -> View | None:
        """A view created by Trino; None if the name belongs to anything else.

        Errors:
            SchemaNotFound, TableNotFound.
        """
        ...

    def table(self, name: TableName, age: float = 0.0) -> CatalogTable:
        """Errors: SchemaNotFound, TableNotFound, UnsupportedTable."""
        ...

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        """Names of all partitions; ``[""]`` for an unpartitioned table."""
        ...

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> PartitionFetch:
        """Fetches partitions lazily in batches of growing size, in the order of ``names``."""
        ...

    def forget(self, name: TableName) -> None:
        """Discards everything cached about a table."""
        ...


class PartitionFetch(Protocol):
    """An iterator of batches; close() stops calls in flight."""

    def __iter__(self) -> PartitionFetch: ...

    def __next__(self) -> PartitionBatch: ...

    def close(self) -> None: ...
