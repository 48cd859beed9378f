"""How the metastore describes a Hudi table, so that Hudi's own readers know it.

A copy-on-write table ``t`` has one record. A merge-on-read table has three:

=========  ==========================================================
``t_ro``   read optimised: base files alone
``t_rt``   real time: base files merged with their logs
``t``      the same as ``t_rt``
=========  ==========================================================

The columns are those of the newest commit's schema, in its order. The law, at every depth: a type
never becomes narrower, and a type that only spells the schema's own type otherwise (varchar for a
text, smallint for an Avro int, bigint for a timestamp) stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.kernel.errors import SchemaConflict
from bridge.kernel.types import BIGINT, INTEGER, STRING, TIMESTAMP, UNKNOWN, Field, Type
from bridge.sync.schemas.schema import show
from bridge.table.hudi.table_config import HudiTableConfig, TableType
from bridge.table.infer import common_type
from bridge.table.model import Column

READ_OPTIMIZED = "hoodie.query.as.ro.table"
LAST_COMMIT = "last_commit_time_sync"
LAST_COMPLETION = "last_commit_completion_time_sync"
_PACKAGES = ("org.apache.hudi.", "com.uber.hoodie.")
_ORC = "org.apache.hadoop.hive.ql.io.orc."
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet."
_BASE_FILES = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_MERGED = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"


@dataclass(frozen=True, slots=True)
class HudiView:
    """One record of a Hudi table.

    Attributes:
        suffix: of its name.
        read_optimized: it shows base files alone.
        input_format, output_format, serde: its classes.
    """

    suffix: str
    read_optimized: bool
    input_format: str
    output_format: str
    serde: str

    def serde_parameters(self, spelled: str) -> dict[str, str]:
        """The SerDe's parameters, given the table's location in the metastore's spelling."""
        optimized = str(self.read_optimized).lower()
        return {"serialization.format": "1", "path": spelled, READ_OPTIMIZED: optimized}


def views(config: HudiTableConfig) -> tuple[HudiView, ...]:
    """The records of a table; the one with the table's own name comes last."""
    if config.base_format == "orc":
        base = merged = f"{_ORC}OrcInputFormat"
        classes = (f"{_ORC}OrcOutputFormat", f"{_ORC}OrcSerde")
    else:
        base, merged = _BASE_FILES, _MERGED
        classes = (f"{_PARQUET}MapredParquetOutputFormat", f"{_PARQUET}serde.ParquetHiveSerDe")
    if config.table_type is TableType.COPY_ON_WRITE:
        return (HudiView("", False, base, *classes),)
    return (
        HudiView("_ro", True, base, *classes),
        HudiView("_rt", False, merged, *classes),
        HudiView("", False, merged, *classes),
    )


def is_hudi(properties: Mapping[str, str], input_format: str) -> bool:
    """Whether the metastore describes a table as one of Hudi."""
    provider = properties.get("spark.sql.sources.provider", "").lower()
    return provider == "hudi" or input_format.startswith(_PACKAGES)


def is_read_optimized(
    config: HudiTableConfig, serde_parameters: Mapping[str, str], input_format: str
) -> bool:
    """Whether an existing record of a merge-on-read table shows base files alone."""
    said = serde_parameters.get(READ_OPTIMIZED)
    if said is not None:
        return said.lower() == "true"
    known = input_format.startswith(_PACKAGES) and config.base_format == "parquet"
    return known and not input_format.endswith("RealtimeInputFormat")


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """How a table's columns follow the newest schema.

    Attributes:
        columns: after the change.
        lines: the changes, as in a diff.
    """

    columns: tuple[Column, ...]
    lines: tuple[str, ...] = ()


def follow_schema(
    table: str, registered: Sequence[Column], wanted: Sequence[Column]
) -> ColumnChanges:
    """Compares the columns of a record with those of the newest schema, both without keys.

    Args:
        table: its name, for errors.

    Errors:
        SchemaConflict: a type that the new one does not hold.
    """
    held = {c.name.lower(): c for c in registered}
    lines: list[str] = []
    columns: list[Column] = []
    for column in wanted:
        old = held.pop(column.name, None)
        if old is None:
            lines.append(f"+ column {column.name} {column.type}")
            columns.append(column)
            continue
        type_ = _followed(old.type, column.type)
        if type_ is None:
            raise SchemaConflict(
                f"{table}: {column.name} is {old.type} in the metastore and {column.type} in the "
                f"newest commit\n  table: {show(registered)}\n  commit: {show(wanted)}",
                "Hive cannot read the older partitions so: drop the table from the metastore "
                "(its files stay) and sync again",
            )
        if type_ != old.type:
            lines.append(f"~ column {column.name} {old.type} -> {type_}")
        columns.append(Column(column.name, type_, column.comment or old.comment))
    lines += [f"- column {name}" for name in held]
    return ColumnChanges(tuple(columns), tuple(lines))


def _followed(old: Type, new: Type) -> Type | None:
    """The type after the change; None if the new type does not hold the old one's values."""
    if old == new or old is UNKNOWN:
        return old
    spelled = (
        (old.is_text and new == STRING)
        or (old.is_integer and new == INTEGER)
        or (old == BIGINT and new == TIMESTAMP)
    )
    if spelled:
        return old
    if old.is_nested and old.kind is new.kind:
        held = {f.name.lower(): f for f in old.fields}
        fields = []
        for field in new.fields:
            known = held.get(field.name.lower(), field)
            type_ = _followed(known.type, field.type)
            if type_ is None:
                return None
            fields.append(Field(known.name, type_))
        return Type(new.kind, fields=tuple(fields))
    return new if common_type(old, new) == new else None
