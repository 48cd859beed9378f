"""Records as a version before 0.1.0 altered them: our input formats in place of Hive's."""

from __future__ import annotations

from bridge.formats.registry import hive_hooks
from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.metastore.hooks import ORIGINAL_PROPERTY
from bridge.table.model import TableName


def hook(record: ttypes.Table | ttypes.Partition) -> None:
    """Changes it in place."""
    original = record.sd.inputFormat
    record.sd.inputFormat = hive_hooks()[original]
    record.parameters = {**(record.parameters or {}), ORIGINAL_PROPERTY: original}


def hook_table(uri: str, name: TableName) -> None:
    """The table and all its partitions."""
    with MetastoreClient(uri) as client:
        table = client.get_table(name.schema, name.table)
        partitions: list[ttypes.Partition] = []
        if table.partitionKeys:
            names = client.get_partition_names(name.schema, name.table)
            found = client.get_partitions_by_names(name.schema, name.table, names)
            partitions = list(found.partitions)
        for record in (table, *partitions):
            hook(record)
        client.alter_table(name.schema, name.table, table)
        client.alter_partitions(name.schema, name.table, partitions)
