"""Hooks and unhooks metastore records: Hive then reads them through skipbridge's input formats.

A hook replaces only the input format, by a subclass of the class that it replaces. What Hive
writes, how it decodes rows and what other engines see of the files does not change. A property
records the former class, so that unhooking is exact. Partitions have their own input format: one
that Hive adds later takes the table's, without the property, and returns to the class that the
table records.

Records are changed in place: fetch, change, write back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.errors import UnsupportedTable
from bridge.file_formats.registry import file_formats, hive_hooks, indexed_formats
from bridge.metastore._gen import ttypes
from bridge.metastore.classify import (
    refuse_other_table_formats,
    refuse_unsupported,
    storage_format,
)

PLAN_HOOK = "io.skipbridge.hive.SkipFilesHook"
"""The other way to hook: `hive.exec.pre.hooks` names this class, and no record is changed."""
ORIGINAL_PROPERTY = "skipbridge.hive.original_input_format"
_PACKAGE = "io.skipbridge.hive."
_HIVE_CLASSES = [known.hive for known in file_formats().values() if known.hive is not None]
HOOKS = hive_hooks()
_STOCK = {
    classes.hook: classes.input_formats[0] for classes in _HIVE_CLASSES if classes.hook is not None
}
# Statistics stay, and no file is inspected: only a class name changes.
KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
_EXAMPLES = 3


@dataclass(slots=True)
class Survey:
    """The state of partitions: counts, with a few example names of each kind.

    Attributes:
        plain: could be hooked and are not.
        hooked: already hooked.
        altered: hooked, and altered since in a way for which they would be left alone.
        left: counts of the others, by the reason why they are left alone.
    """

    plain: int = 0
    hooked: int = 0
    altered: int = 0
    left: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.plain + self.hooked + sum(self.left.values())

    def add(self, other: Survey) -> None:
        """Adds the counts of another survey."""
        self.plain += other.plain
        self.hooked += other.hooked
        self.altered += other.altered
        for reason, count in other.left.items():
            self.left[reason] = self.left.get(reason, 0) + count
        for kind, names in other.examples.items():
            mine = self.examples.setdefault(kind, [])
            mine.extend(names[: _EXAMPLES - len(mine)])

    def count(self, name: str, partition: ttypes.Partition, of: ttypes.Table) -> None:
        reason = obstacle(partition, of)
        if is_hooked(partition.sd):
            self.hooked += 1
            self.altered += bool(reason)
            kind = "altered" if reason else "hooked"
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
    """Whether Hive reads it through one of our classes."""
    return descriptor is not None and (descriptor.inputFormat or "").startswith(_PACKAGE)


def is_marked(record: ttypes.Table | ttypes.Partition) -> bool:
    """Whether it records a former input format: it is hooked, or being unhooked."""
    return ORIGINAL_PROPERTY in (record.parameters or {})


def _hookable() -> frozenset[str]:
    """Formats whose files say themselves how they are read. Hive may know a newer declaration of
    others than a planner."""
    return frozenset(name for name in indexed_formats() if file_formats()[name].chunks is None)


def refuse_unhookable(table: ttypes.Table) -> None:
    """Errors: UnsupportedTable: Hive would read wrong rows through a hook, or gain nothing."""
    refuse_unsupported(table, _hookable())
    refuse_other_table_formats(table)
    name = f"{table.dbName}.{table.tableName}"
    if table.sd.numBuckets and table.sd.numBuckets > 0:
        # Bucket joins number a partition's files by their position in the listing.
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
    """Why a partition is left alone; empty if it can be hooked."""
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
    if found == "parquet" and descriptor.cols and _columns(descriptor) != _columns(table.sd):
        # Hive may read them as the partition says, which an index does not know.
        return "columns of its own"
    return ""


def _columns(descriptor: ttypes.StorageDescriptor) -> list[tuple[str, str]]:
    return [(c.name.lower(), c.type.lower()) for c in descriptor.cols or []]


def hook(record: ttypes.Table | ttypes.Partition) -> bool:
    """Hooks the record; False if it is hooked already."""
    if is_hooked(record.sd):
        return False
    original = record.sd.inputFormat
    record.sd.inputFormat = HOOKS[original]
    record.parameters = {**(record.parameters or {}), ORIGINAL_PROPERTY: original}
    return True


def unhook(record: ttypes.Table | ttypes.Partition, inherited: str | None = None) -> bool:
    """Unhooks the record and removes its property; False if there is nothing to do.

    Args:
        inherited: the class that the table records, for partitions that Hive added since.
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
    """Removes the recorded class."""
    record.parameters = {
        k: v for k, v in (record.parameters or {}).items() if k != ORIGINAL_PROPERTY
    }
