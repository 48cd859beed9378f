"""Tables that a version before 0.1.0 hooked, and the statements that free them.

It replaced the input format of a table and of its partitions by a class of skipbridge's
jar, and noted the former class in a property. Such a table is still read by every engine as before,
and by Hive with the jar alone. Hive's plans are hooked today, and nothing writes such records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bridge.formats.registry import file_formats
from bridge.metastore._gen import ttypes

PLAN_HOOK = "io.skipbridge.hive.SkipFilesHook"
"""The class that `hive.exec.pre.hooks` names."""
ORIGINAL_PROPERTY = "skipbridge.hive.original_input_format"
_PACKAGE = "io.skipbridge.hive."
_HANDLER = "storage_handler"
_HIVE_CLASSES = [known.hive for known in file_formats().values() if known.hive is not None]


def is_hooked(descriptor: ttypes.StorageDescriptor | None) -> bool:
    """Whether the record names one of our input formats."""
    return descriptor is not None and (descriptor.inputFormat or "").startswith(_PACKAGE)


def freeing_statements(
    table: ttypes.Table, partitions: Iterable[ttypes.Partition]
) -> Iterator[str]:
    """HiveQL, without semicolons, that gives the former input formats back.

    None for a table that was not hooked, nor for one of a storage handler of ours. A partition that
    notes no class of its own returns to the one that the table notes. HiveQL cannot unset
    properties of partitions; what remains there is without effect.
    """
    if (table.parameters or {}).get(_HANDLER):
        return
    quoted = f"{_identifier(table.dbName)}.{_identifier(table.tableName)}"
    noted = (table.parameters or {}).get(ORIGINAL_PROPERTY)
    if is_hooked(table.sd):
        yield f"ALTER TABLE {quoted} {_file_format(table, noted)}"
    for partition in partitions:
        if is_hooked(partition.sd):
            values = ", ".join(
                f"{_identifier(key.name)} = {_literal(value)}"
                for key, value in zip(table.partitionKeys, partition.values, strict=True)
            )
            yield f"ALTER TABLE {quoted} PARTITION ({values}) {_file_format(partition, noted)}"
    if noted is not None:
        yield f"ALTER TABLE {quoted} UNSET TBLPROPERTIES IF EXISTS ({_literal(ORIGINAL_PROPERTY)})"


def former_input_format(record: ttypes.Table | ttypes.Partition, inherited: str | None) -> str:
    """The class that a hooked record had: its own note, the table's, or the stock one.

    A note of a class that the hook does not extend is of another format, and does not count.
    """
    ours = record.sd.inputFormat
    extended = next((c.input_formats for c in _HIVE_CLASSES if c.hook == ours), ())
    noted = (record.parameters or {}).get(ORIGINAL_PROPERTY)
    fitting = [c for c in (noted, inherited) if c in extended]
    return fitting[0] if fitting else next(iter(extended), noted or inherited or ours)


def _file_format(record: ttypes.Table | ttypes.Partition, inherited: str | None) -> str:
    descriptor = record.sd
    return (
        f"SET FILEFORMAT INPUTFORMAT {_literal(former_input_format(record, inherited))} "
        f"OUTPUTFORMAT {_literal(descriptor.outputFormat)} "
        f"SERDE {_literal(descriptor.serdeInfo.serializationLib)}"
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
