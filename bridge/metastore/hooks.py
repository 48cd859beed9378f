"""Which tables and partitions Hive reads through skipbridge's input formats, and how they get there
and back.

A hook replaces the input format alone, by a subclass of the very class it replaces: what Hive
writes, how rows are decoded and what other engines see of the files stays. The class that was there
is kept in a property beside it, so that the way back is exact. Partitions carry an input format of
their own: one that Hive adds later takes the table's, without the property, and goes back to what
the table remembers.

Records are changed in place: fetch, change, hand back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.errors import UnsupportedTable
from bridge.file_formats.registry import file_formats, indexed_formats
from bridge.metastore._gen import ttypes
from bridge.metastore.classify import (
    refuse_other_table_formats,
    refuse_unsupported,
    storage_format,
)

ORIGINAL_PROPERTY = "skipbridge.hive.original_input_format"
_PACKAGE = "io.skipbridge.hive."
_HIVE_CLASSES = [known.hive for known in file_formats().values() if known.hive is not None]
# A hook extends the class in whose place it comes (the older Parquet name had the same reader). Of
# classes that are not here nobody knows what else they do: they are left alone.
HOOKS = {
    input_format: classes.hook
    for classes in _HIVE_CLASSES
    if classes.hook is not None
    for input_format in classes.input_formats
}
_STOCK = {
    classes.hook: classes.input_formats[0] for classes in _HIVE_CLASSES if classes.hook is not None
}
# Statistics stay as they are, and no file is looked at: only a class name changes.
KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
_EXAMPLES = 3


@dataclass(slots=True)
class Survey:
    """What partitions are, counted; a few names of each kind.

    Attributes:
        plain: can be hooked and are not.
        hooked: already.
        left: by the reason why they stay as they are.
    """

    plain: int = 0
    hooked: int = 0
    left: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.plain + self.hooked + sum(self.left.values())

    def add(self, other: Survey) -> None:
        """Takes another's counts over."""
        self.plain += other.plain
        self.hooked += other.hooked
        for reason, count in other.left.items():
            self.left[reason] = self.left.get(reason, 0) + count
        for kind, names in other.examples.items():
            mine = self.examples.setdefault(kind, [])
            mine.extend(names[: _EXAMPLES - len(mine)])

    def count(self, name: str, partition: ttypes.Partition, of: ttypes.Table) -> None:
        reason = obstacle(partition, of)
        if is_hooked(partition.sd):
            self.hooked += 1
            kind = "hooked"
        elif reason:
            self.left[reason] = self.left.get(reason, 0) + 1
            kind = reason
        else:
            self.plain += 1
            kind = "plain"
        shown = self.examples.setdefault(kind, [])
        if len(shown) < _EXAMPLES:
            shown.append(name)


def is_hooked(descriptor: ttypes.StorageDescriptor | None) -> bool:
    """Whether Hive reads it through a class of ours."""
    return descriptor is not None and (descriptor.inputFormat or "").startswith(_PACKAGE)


def is_marked(record: ttypes.Table | ttypes.Partition) -> bool:
    """Whether it remembers another input format: hooked, or on the way back."""
    return ORIGINAL_PROPERTY in (record.parameters or {})


def refuse_unhookable(table: ttypes.Table) -> None:
    """Errors: UnsupportedTable if Hive would read wrong rows through a hook, or gain nothing."""
    refuse_unsupported(table, indexed_formats())
    refuse_other_table_formats(table)
    name = f"{table.dbName}.{table.tableName}"
    if table.sd.numBuckets and table.sd.numBuckets > 0:
        # Bucket joins number the files of a partition by their place in the listing.
        raise UnsupportedTable(
            f"{name} is bucketed ({table.sd.numBuckets} buckets by "
            f"{', '.join(table.sd.bucketCols or [])}): bucket joins need every file in its place",
            "leave it as it is, or copy it into a table that is not bucketed",
        )
    if not is_hooked(table.sd) and table.sd.inputFormat not in HOOKS:
        raise UnsupportedTable(
            f"{name} is read through {table.sd.inputFormat}, which no hook extends",
            f"hooks extend {', '.join(dict.fromkeys(_STOCK.values()))}",
        )


def obstacle(partition: ttypes.Partition, table: ttypes.Table) -> str:
    """Why a partition stays as it is; empty if it can be hooked."""
    descriptor = partition.sd
    if descriptor is None or not descriptor.inputFormat:
        return "without a storage descriptor"
    found, wanted = storage_format(descriptor), storage_format(table.sd)
    if found != wanted:
        return f"format {found}, the table {wanted}"
    if descriptor.numBuckets and descriptor.numBuckets > 0:
        return "bucketed"
    if descriptor.skewedInfo is not None and descriptor.skewedInfo.skewedColNames:
        return "skewed"
    if (partition.parameters or {}).get("is_archived", "").lower() == "true":
        return "archived"
    if not is_hooked(descriptor) and descriptor.inputFormat not in HOOKS:
        return f"input format {descriptor.inputFormat}"
    return ""


def hook(record: ttypes.Table | ttypes.Partition) -> bool:
    """Puts the hook in; false if it is there already."""
    if is_hooked(record.sd):
        return False
    original = record.sd.inputFormat
    record.sd.inputFormat = HOOKS[original]
    record.parameters = {**(record.parameters or {}), ORIGINAL_PROPERTY: original}
    return True


def unhook(record: ttypes.Table | ttypes.Partition, inherited: str | None = None) -> bool:
    """Takes the hook out, and what it left in the properties; false if there is nothing to do.

    Args:
        inherited: the class that the table remembers, for partitions that Hive added since.
    """
    remembered = (record.parameters or {}).get(ORIGINAL_PROPERTY)
    if not is_hooked(record.sd) and remembered is None:
        return False
    if is_hooked(record.sd):
        ours = record.sd.inputFormat
        fitting = [c for c in (remembered, inherited) if c is not None and HOOKS.get(c) == ours]
        if not fitting and ours not in _STOCK:
            raise UnsupportedTable(
                f"{record.dbName}.{record.tableName} is read through {ours}, which this version "
                "does not know",
                "use the version of skipbridge that hooked it",
            )
        record.sd.inputFormat = fitting[0] if fitting else _STOCK[ours]
    forget(record)
    return True


def forget(record: ttypes.Table | ttypes.Partition) -> None:
    """Drops the remembered class."""
    record.parameters = {
        k: v for k, v in (record.parameters or {}).items() if k != ORIGINAL_PROPERTY
    }
