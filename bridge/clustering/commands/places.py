"""The locations of one table in a Hive metastore, read and switched.

A metastore cannot switch a location on the condition of its old value. Each switch therefore reads
the record immediately before and after it. A change of the same record by somebody else in between
those two calls may be lost, as with any two alterations in Hive.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import closing

from bridge.clustering.commands.other_tables import other_tables
from bridge.clustering.publication.places import OtherTable
from bridge.kernel.errors import UnsupportedTable
from bridge.metastore import records
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.conditional_alter import alter_unless_changed
from bridge.runtime.compose import INDEX_ROOT_PROPERTY
from bridge.storage.uri import canonical
from bridge.table.model import CatalogTable

_ACCURATE = "COLUMN_STATS_ACCURATE"
"""While it is set, Hive answers counts from the metastore."""
_UNCHECKED = {"DO_NOT_UPDATE_STATS": "true"}
_SPARK_PATH = "path"
"""Where Spark records a table's location besides, in the properties of its SerDe."""


class MetastorePlaces:
    """Implements `bridge.clustering.publication.places.Places`.

    Args:
        index_root: of the table's index; recorded in the table's properties when the location of an
            unpartitioned table is switched, so that the index does not move with it.
    """

    def __init__(self, catalog: HiveCatalog, table: CatalogTable, index_root: str) -> None:
        self._catalog, self._table, self._index_root = catalog, table, index_root
        self._key = (table.name.schema, table.name.table)

    def all(self) -> dict[str, str]:
        table = self._catalog.table(self._table.name)
        names = self._catalog.partition_names(table)
        with closing(self._catalog.partitions(table, names)) as batches:
            return {p.name: p.location for batch in batches for p in batch.partitions}

    def others(self, near: Callable[[str], bool]) -> list[OtherTable]:
        return other_tables(self._catalog.client, self._table.name, near)

    def of(self, partition: str) -> str | None:
        record = self._read(partition)
        return None if record is None else canonical(record.sd.location)

    def move(self, partition: str, old: str, new: str) -> bool:
        record = self._read(partition)
        if record is None or canonical(record.sd.location) != old:
            return False
        amended = copy.deepcopy(record)
        amended.sd.location = _spelled(record.sd.location, old, new)
        _distrusted(amended)
        if isinstance(amended, records.Table):
            amended.parameters[INDEX_ROOT_PROPERTY] = self._index_root
            options = amended.sd.serdeInfo.parameters or {}
            if _SPARK_PATH in options and canonical(options[_SPARK_PATH]) == old:
                options[_SPARK_PATH] = _spelled(options[_SPARK_PATH], old, new)
        if not self._write(record, amended):
            return False
        self._catalog.forget(self._table.name)
        return self.of(partition) == new

    def _read(self, partition: str) -> records.Table | records.Partition | None:
        client = self._catalog.client
        if not self._table.partition_keys:
            return client.get_table(*self._key)
        found = client.get_partitions_by_names(*self._key, [partition]).partitions
        return found[0] if found else None

    def _write(
        self,
        record: records.Table | records.Partition,
        amended: records.Table | records.Partition,
    ) -> bool:
        """False if the record was altered meanwhile, as far as the metastore can tell."""
        client = self._catalog.client
        if isinstance(record, records.Table):
            return alter_unless_changed(client, record, amended)
        client.alter_partitions(*self._key, [amended], _UNCHECKED)
        return True


def check_published(record: records.Table) -> None:
    """Errors: UnsupportedTable: engines find files of this table by more than its locations."""
    name = f"{record.dbName}.{record.tableName}"
    options = {key.lower(): value for key, value in (record.parameters or {}).items()}
    purged = options.get("external.table.purge", "").lower() == "true"
    if purged or record.tableType == "MANAGED_TABLE":
        what = "has external.table.purge" if purged else "is a managed table"
        raise UnsupportedTable(
            f"{name} {what}: DROP deletes the directory in force, and after a repair, or a DROP "
            "PARTITION and INSERT, the one that was left would be read again",
            f"ALTER TABLE {name} SET TBLPROPERTIES ('EXTERNAL'='TRUE', "
            "'external.table.purge'='false'), or read it through skipbridge",
        )
    if record.sd.bucketCols and (record.sd.numBuckets or 0) > 0:
        raise UnsupportedTable(
            f"{name} is bucketed by {', '.join(record.sd.bucketCols)}; engines find buckets by "
            "the names of files, and clustered files have other names",
            "read it through skipbridge, or write it anew without buckets",
        )
    if (
        record.partitionKeys
        and options.get("spark.sql.sources.provider", "hive").lower() != "hive"
        and options.get("spark.sql.partitionprovider") != "catalog"
    ):
        raise UnsupportedTable(
            f"{name} is a table of Spark whose partitions Spark finds by listing directories",
            f"run MSCK REPAIR TABLE {name} in Spark, which lets it ask the metastore",
        )
    if "projection.enabled" in options:
        raise UnsupportedTable(
            f"{name} computes the locations of its partitions (partition projection)",
            "read it through skipbridge",
        )


def _distrusted(
    record: records.Table | records.Partition,
) -> records.Table | records.Partition:
    record.parameters = {k: v for k, v in (record.parameters or {}).items() if k != _ACCURATE}
    return record


def _spelled(text: str, old: str, new: str) -> str:
    """A canonical URI in the spelling of a location on the same store.

    >>> _spelled("s3a://b/t/p=1", "s3://b/t/p=1", "s3://b/t/x/p=1")
    's3a://b/t/x/p=1'
    """
    scheme, _, rest = old.partition("://")
    authority = rest.partition("/")[0]
    path = new.removeprefix(f"{scheme}://{authority}")
    if text.startswith("/"):
        return path
    given, _, rest = text.partition(":")
    if not rest.startswith("//"):
        return f"{given}:{path}"
    return f"{given}://{rest[2:].partition('/')[0]}{path}"
