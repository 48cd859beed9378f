"""Switched locations in the metastore's records, and what a sync makes of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from bridge.clustering.commands.places import MetastorePlaces, check_published
from bridge.clustering.publication.publisher import Publisher, PublishReport
from bridge.index.generations.replacements import Replacement, states_of
from bridge.kernel.errors import InvalidRequest, UnsupportedTable
from bridge.metastore._gen import ttypes
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.client import FoundPartitions
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.model import CatalogTable
from tests.support.sync_lake import NAME, SCHEMAS, ModelMetastore, SyncLake

PARTS = "p=1/q=x"


class Metastore(ModelMetastore):
    """With the calls by which a catalog looks locations up; there is no other table."""

    def get_all_databases(self) -> list[str]:
        return []

    def get_partition_locations(
        self, database: str, table: str, names: list[str], cancellation: object = None
    ) -> FoundPartitions:
        return self.get_partitions_by_names(database, table, names)


def lake_of(base: Path, *directories: str, **options: Any) -> SyncLake:
    lake = SyncLake(base, Metastore())
    for directory in directories:
        for i in range(2):
            put(lake.root / directory / f"f{i}.parquet")
    lake.sync(**options)
    return lake


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(next(iter(SCHEMAS.values()))[0])


def table_of(lake: SyncLake) -> CatalogTable:
    return HiveCatalog(lake.metastore).table(NAME)


def places_of(lake: SyncLake) -> MetastorePlaces:
    return MetastorePlaces(HiveCatalog(lake.metastore), table_of(lake), "file:///index")


def publish(lake: SyncLake, *partitions: str) -> PublishReport:
    """As if two files of each partition had been clustered."""
    storage, groups = LocalStorage(), []
    places = places_of(lake)
    for name in partitions:
        old = states_of(storage.list_all(places.all()[name], recursive=False))
        new = lake.root / ".skipbridge_clustered/20200101000000000" / name
        for i in range(len(old)):
            put(new / f"c{i}.parquet-data")
        made = states_of(storage.list_all(f"file://{new}", recursive=False))
        groups.append(Replacement(name, tuple(old), tuple(made)))
    return Publisher(table_of(lake), storage, places, settled=0.0).publish(groups)


def test_a_partition_is_switched_in_its_own_spelling(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "p=1/q=x", "p=2/q=y")
    record = next(iter(lake.metastore.partitions.values()))
    record.sd.location = f"file:{lake.root}/{PARTS}"  # as Hadoop prints it
    record.parameters["COLUMN_STATS_ACCURATE"] = '{"BASIC_STATS":"true"}'
    assert publish(lake, PARTS).published == [PARTS]
    (first, second) = lake.metastore.partitions.values()
    assert first.sd.location.startswith(f"file:{lake.root}/.skipbridge_clustered/published-")
    assert first.sd.location.endswith(f"/{PARTS}")
    assert "COLUMN_STATS_ACCURATE" not in first.parameters and first.parameters["numFiles"]
    assert second.sd.location == f"file://{lake.root}/p=2/q=y"


@pytest.mark.rule("38")
def test_sync_leaves_published_partitions_and_left_directories(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "p=1/q=x", "p=2/q=y")
    publish(lake, PARTS)
    before = lake.metastore.contents()
    for options in ({}, {"full": True}, {"relocate": True}):
        report = lake.sync(**options)
        assert lake.metastore.contents() == before
        assert not (report.added or report.updated or report.dropped)
    # The old directory goes; then the new one is emptied.
    shutil.rmtree(lake.root / "p=1")
    lake.sync(full=True)
    assert lake.metastore.contents() == before
    for path in (lake.root / ".skipbridge_clustered").rglob("*-data"):
        path.unlink()
    lake.sync(full=True, relocate=True)
    assert lake.metastore.contents() == before


def test_sync_does_not_register_what_was_left(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "p=1/q=x", "p=2/q=y")
    publish(lake, PARTS)
    del lake.metastore.partitions["1", "x"]
    report = lake.sync()
    assert not report.added
    ((name, _, reason),) = report.kept
    assert name == PARTS and "was left when its partition was published" in reason
    shutil.rmtree(lake.root / PARTS)
    put(lake.root / PARTS / "fresh.parquet")  # the partition's second life
    assert lake.sync().added == [PARTS]


def test_sync_goes_on_when_every_partition_is_published_and_cleaned(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "p=1/q=x", "p=2/q=y")
    publish(lake, PARTS, "p=2/q=y")
    before = lake.metastore.contents()
    shutil.rmtree(lake.root / "p=1")
    shutil.rmtree(lake.root / "p=2")
    report = lake.sync(full=True, drop_all=False)
    assert (report.added, report.dropped, report.updated) == ([], [], [])
    assert lake.metastore.contents() == before
    put(lake.root / "p=3/q=z/f.parquet")
    assert lake.sync(drop_all=False).added == ["p=3/q=z"]


def test_an_unpartitioned_table_is_switched_with_its_index_and_sparks_path(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "", keys=())
    lake.metastore.record.sd.serdeInfo.parameters["path"] = f"file:{lake.root}"
    assert publish(lake, "").published == [""]
    record = lake.metastore.record
    new = record.sd.location
    assert new.startswith(f"file://{lake.root}/.skipbridge_clustered/published-")
    assert record.sd.serdeInfo.parameters["path"] == new.replace("file://", "file:")
    assert record.parameters["skipbridge.index_root"] == "file:///index"
    for options in ({}, {"full": True}, {"move": True}):
        lake.sync(keys=(), **options)
        assert lake.metastore.record.sd.location == new
    lake.metastore.record = None  # the table is dropped: its old files are not the table
    with pytest.raises(InvalidRequest, match="was left when its table was published"):
        lake.sync(keys=())


@pytest.mark.rule("44")
def test_a_location_that_somebody_else_switched_is_left(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, "p=1/q=x")
    places = places_of(lake)
    assert not places.move(PARTS, "file:///elsewhere", "file:///new")
    assert not places.move("p=9/q=x", "file:///elsewhere", "file:///new")
    assert places.of(PARTS) == f"file://{lake.root}/{PARTS}"


@pytest.mark.parametrize(
    ("provider", "partitions", "refused"),
    [("parquet", None, True), ("parquet", "catalog", False), ("hive", None, False)],
)
def test_tables_whose_partitions_spark_lists_are_refused(
    provider: str, partitions: str | None, refused: bool
) -> None:
    """Spark would miss all rows of a published partition, and find none once it is cleaned."""
    properties = {"spark.sql.sources.provider": provider}
    if partitions is not None:
        properties["spark.sql.partitionProvider"] = partitions
    record = ttypes.Table(
        dbName="d",
        tableName="t",
        sd=ttypes.StorageDescriptor(),
        partitionKeys=[ttypes.FieldSchema(name="p", type="int")],
        parameters=properties,
    )
    if not refused:
        check_published(record)
        return
    with pytest.raises(UnsupportedTable, match=r"d\.t is a table of Spark"):
        check_published(record)


@pytest.mark.parametrize(
    ("kind", "properties", "what"),
    [
        ("MANAGED_TABLE", {}, "is a managed table"),
        ("EXTERNAL_TABLE", {"external.table.purge": "TRUE"}, "has external.table.purge"),
    ],
)
def test_tables_whose_drop_deletes_data_are_refused_by_name(
    kind: str, properties: dict[str, str], what: str
) -> None:
    record = ttypes.Table(
        dbName="d",
        tableName="t",
        sd=ttypes.StorageDescriptor(),
        parameters=properties,
        tableType=kind,
    )
    with pytest.raises(UnsupportedTable, match=rf"d\.t {what}: DROP deletes"):
        check_published(record)


def test_bucketed_tables_are_refused_by_name() -> None:
    descriptor = ttypes.StorageDescriptor(bucketCols=["id"], numBuckets=4)
    record = ttypes.Table(dbName="d", tableName="t", sd=descriptor, parameters={})
    with pytest.raises(UnsupportedTable, match=r"d\.t is bucketed by id"):
        check_published(record)
