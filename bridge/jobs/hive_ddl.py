"""Hooks and unhooks as HiveQL, for users who alter tables by reviewed scripts."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.config import Config
from bridge.jobs.compose import metastore_of
from bridge.jobs.hive import open_hooked
from bridge.metastore import records
from bridge.metastore.hooks import (
    ORIGINAL_PROPERTY,
    hook,
    is_marked,
    obstacle,
    refuse_unhookable,
    unhook,
)


def statements(config: Config, name: str, *, undo: bool) -> Iterator[str]:
    """The statements that do what `hook_table` does, or with ``undo`` what `unhook_table` does.

    The statements have no semicolons. HiveQL cannot set properties of partitions: partitions hooked
    this way return to the class that the table records.

    Errors (while iterating):
        as `hook_table` and `unhook_table`.
    """
    with metastore_of(config) as client:
        of = open_hooked(client, config, name)
        table = of.table
        if not undo:
            refuse_unhookable(table)
        quoted = f"{_identifier(of.name.schema)}.{_identifier(of.name.table)}"
        remembered = (table.parameters or {}).get(ORIGINAL_PROPERTY)
        was, marked = table.sd.inputFormat, is_marked(table)
        unhook(table) if undo else hook(table)
        if was != table.sd.inputFormat:
            yield f"ALTER TABLE {quoted} {_file_format(table.sd)}"
            if not undo:
                entry = f"{_literal(ORIGINAL_PROPERTY)} = {_literal(was)}"
                yield f"ALTER TABLE {quoted} SET TBLPROPERTIES ({entry})"
        for found in of.batches():
            for partition in found.partitions:
                was = partition.sd.inputFormat if partition.sd is not None else None
                if undo:
                    unhook(partition, remembered)
                elif not obstacle(partition, table):
                    hook(partition)
                if partition.sd is not None and was != partition.sd.inputFormat:
                    values = _partition(table, partition)
                    yield f"ALTER TABLE {quoted} PARTITION ({values}) {_file_format(partition.sd)}"
        if undo and marked:
            yield (
                f"ALTER TABLE {quoted} UNSET TBLPROPERTIES IF EXISTS "
                f"({_literal(ORIGINAL_PROPERTY)})"
            )


def _file_format(descriptor: records.StorageDescriptor) -> str:
    return (
        f"SET FILEFORMAT INPUTFORMAT {_literal(descriptor.inputFormat)} "
        f"OUTPUTFORMAT {_literal(descriptor.outputFormat)} "
        f"SERDE {_literal(descriptor.serdeInfo.serializationLib)}"
    )


def _partition(table: records.Table, partition: records.Partition) -> str:
    return ", ".join(
        f"{_identifier(key.name)} = {_literal(value)}"
        for key, value in zip(table.partitionKeys, partition.values, strict=True)
    )


def _identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    """A HiveQL string literal: escapes with backslashes; a semicolon would end the statement.

    >>> print(_literal("it's"), _literal("a;b"))
    'it\\'s' 'a\\073b'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return "'" + escaped.replace(";", "\\073") + "'"
