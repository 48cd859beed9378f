"""What exists: tables, partitions and files, whoever keeps the catalogue of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from bridge.types import Field, Type


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, as the catalogue declares it."""

    name: str
    type: Type
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class TableName:
    """``schema.table``; both in lower case, as Hive keeps them."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table as its catalogue describes it.

    Attributes:
        columns: data columns; partition keys are apart.
        partition_keys: in the order of the directory levels; empty when not partitioned.
        location: canonical URI of its root.
        format: ``parquet`` or the reason for refusal has been raised before.
        properties: the catalogue's table properties.
        table_format: a name in `bridge.table.registry`.
    """

    name: TableName
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...]
    location: str
    format: str = "parquet"
    properties: dict[str, str] = field(default_factory=dict)
    table_format: str = "directory"

    @property
    def schema(self) -> tuple[Field, ...]:
        """Data columns, then partition keys."""
        return tuple(Field(c.name, c.type) for c in (*self.columns, *self.partition_keys))


@dataclass(frozen=True, slots=True)
class View:
    """A view that Trino made; every Trino that reads the catalogue reads it.

    Attributes:
        definition: JSON in Trino's own words.
        owner: who made it; None where the catalogue does not tell.
    """

    name: TableName
    definition: str
    owner: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition.

    Attributes:
        name: as the catalogue spells it (escaped): ``month=1/day=2``; empty for an unpartitioned
            table.
        values: unescaped text by partition key; None is NULL.
        location: canonical URI, wherever it lies.
    """

    name: str
    values: tuple[str | None, ...]
    location: str


@dataclass(frozen=True, slots=True)
class PartitionBatch:
    """Partitions fetched together, and the names asked for that the catalogue did not know any
    more.
    """

    partitions: tuple[Partition, ...]
    missing: tuple[str, ...] = ()


class Catalog(Protocol):
    """Where tables are described: a Hive Metastore, or a directory taken as a table.

    ``age`` is for how many seconds before the call an answer may have been true; 0: it is true at
    some moment after the call began.
    """

    def schemas(self) -> list[str]: ...

    def tables(self, schema: str) -> list[str]:
        """Names of tables and views. Errors: SchemaNotFound."""
        ...

    def views(self, schema: str) -> list[str]:
        """Those among `tables` that are views. Errors: SchemaNotFound."""
        ...

    def view(self, name: TableName) -> View | None:
        """A view that Trino made, None for whatever else bears the name.

        Errors:
            SchemaNotFound, TableNotFound.
        """
        ...

    def table(self, name: TableName, age: float = 0.0) -> Table:
        """Errors: SchemaNotFound, TableNotFound, UnsupportedTable."""
        ...

    def partition_names(self, table: Table, age: float = 0.0) -> list[str]:
        """Names of all partitions; ``[""]`` for an unpartitioned table."""
        ...

    def partitions(self, table: Table, names: list[str], age: float = 0.0) -> PartitionFetch:
        """Fetches partitions lazily in batches of growing size, in the order of ``names``."""
        ...

    def forget(self, name: TableName) -> None:
        """Whatever is remembered of a table is not used again."""
        ...


class PartitionFetch(Protocol):
    """An iterator of batches that can be stopped; close() stops calls that are under way."""

    def __iter__(self) -> PartitionFetch: ...

    def __next__(self) -> PartitionBatch: ...

    def close(self) -> None: ...
