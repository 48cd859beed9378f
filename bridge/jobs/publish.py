"""Publishes clustered partitions to engines without skipbridge, and cleans up afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bridge.clustering.cleaning import Cleaner
from bridge.clustering.publishing import Publisher
from bridge.clustering.scheduling import check_table
from bridge.config import Config
from bridge.errors import InvalidRequest, UnsupportedTable
from bridge.index.replacements import forget_replacements, read_replacements, replacements_of
from bridge.index.store import now_micros
from bridge.jobs.compose import is_location
from bridge.jobs.index_table import Progress, Say, index_table, opened
from bridge.jobs.places import MetastorePlaces, check_published
from bridge.metastore.catalog import HiveCatalog
from bridge.table.model import Table


def publish(
    config: Config, table: str, *, local: bool, progress: Progress, say: Say
) -> dict[str, Any]:
    """Switches each partition with clustered files to a directory that holds them.

    Late files of directories that were left are brought over first. At the end the index is
    refreshed, so that it knows the files by their new paths.

    Args:
        local: refreshes the index with threads of this process instead of Spark.

    Errors:
        InvalidRequest: the table is a directory that no metastore knows.
        UnsupportedTable: not of clustered files, bucketed, or with partition projection.
        StorageFailure, StorageFull, MetastoreUnavailable, IndexConflict: run it again.
    """
    with opened(config, table) as (storage, catalog, found, store):
        check_table(found)
        places = _places(catalog, found, table, store.root)
        manifest = store.latest()
        groups = [] if manifest is None else replacements_of(read_replacements(store, manifest))
        publisher = Publisher(
            found,
            storage,
            places,
            recursive=config.flag("planner.recursive"),
            settled=config.seconds("clustering.settled"),
            memory=config.size("clustering.memory"),
        )
        report = publisher.run(groups)
    made: dict[str, Any] = {"table": str(found.name), **asdict(report), "generation": -1}
    made["kept"] = [{"partition": name, "reason": reason} for name, reason in report.kept]
    if manifest is not None:
        refreshed = index_table(config, table, local=local, progress=progress, say=say, check=False)
        made["generation"] = refreshed["generation"]
        with opened(config, table) as (_, catalog, found, store):
            now = _places(catalog, found, table, store.root).all()
            forget_replacements(
                store,
                lambda group: all(
                    group.partition in now and file.path.startswith(f"{now[group.partition]}/")
                    for file in group.old
                ),
            )
    return made


def check(config: Config, table: str) -> None:
    """Tells before a long run whether `publish` would refuse the table.

    Errors: InvalidRequest, UnsupportedTable: see `publish`.
    """
    with opened(config, table) as (_, catalog, found, store):
        check_table(found)
        _places(catalog, found, table, store.root)


def clean(
    config: Config, table: str, retain: float, *, dry_run: bool, elsewhere: Sequence[str] = ()
) -> dict[str, Any]:
    """Deletes what clustering and publishing have left longer than ``retain`` seconds ago.

    Args:
        elsewhere: see `Cleaner`.

    Errors:
        IndexCorrupt, FileCorrupt: what must be kept cannot be told; nothing is deleted.
        StorageFailure, MetastoreUnavailable: run it again.
    """
    with opened(config, table) as (_, catalog, found, store):
        check_table(found)
        places = None
        if not is_location(table):
            places = _places(catalog, found, table, store.root)
        before = now_micros() - int(retain * 1e6)
        cleaner = Cleaner(
            found,
            store,
            places,
            before,
            records_before=now_micros() - int(config.seconds("clustering.records") * 1e6),
            recursive=config.flag("planner.recursive"),
            elsewhere=elsewhere,
            dry_run=dry_run,
        )
        return {"table": str(found.name), "dry_run": dry_run, **asdict(cleaner.run())}


def _places(catalog: object, found: Table, table: str, index_root: str) -> MetastorePlaces:
    if is_location(table):
        raise InvalidRequest(
            f"{table} is a directory: engines find its files without a metastore, so no single "
            "update could switch them to new ones",
            "register it (skipbridge table create or sync), and cluster it as schema.table",
        )
    if not isinstance(catalog, HiveCatalog):
        raise UnsupportedTable(
            f"{found.name} is not in a Hive metastore", "publish tables of a Hive metastore"
        )
    check_published(catalog.client.get_table(found.name.schema, found.name.table))
    return MetastorePlaces(catalog, found, index_root)
