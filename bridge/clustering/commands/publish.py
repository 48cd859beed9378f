"""Publishes clustered partitions to engines without skipbridge, and looks after what they left."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from bridge.clustering.cleaning import Cleaner
from bridge.clustering.commands.left_text import describe, lines
from bridge.clustering.commands.places import MetastorePlaces, check_published
from bridge.clustering.planning.scheduling import check_table
from bridge.clustering.publication.left import Left, left_files
from bridge.clustering.publication.originals import originals as unneeded
from bridge.clustering.publication.publisher import Publisher, PublishReport
from bridge.clustering.publication.switches import Switches
from bridge.clustering.timeline import Timeline
from bridge.index.generations.replacements import (
    forget_replacements,
    read_replacements,
    replacements_of,
    was_published,
)
from bridge.index.generations.store import IndexStore, now_micros
from bridge.indexing.table import Progress, Say, index_table, open_indexed_table
from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidRequest, SchemaNotFound, TableNotFound, UnsupportedTable
from bridge.metastore.catalog import HiveCatalog
from bridge.runtime.compose import absolute_location, is_location, storage_of
from bridge.storage.port import Storage
from bridge.storage.uri import canonical
from bridge.table.model import CatalogTable

_RECORDS_KEPT = 30 * 86_400_000_000
"""Microseconds for which records of plans that ended stay: they say how files were made."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What a command on one table of a metastore needs."""

    storage: Storage
    table: CatalogTable
    store: IndexStore
    places: MetastorePlaces
    switches: Switches


@contextmanager
def _opened(config: Config, table: str, *, checked: bool = False) -> Iterator[_Work]:
    """Args: checked: refuses tables that cannot be published."""
    with open_indexed_table(config, table) as (storage, catalog, found, store):
        check_table(found)
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
        if checked:
            check_published(catalog.client.get_table(found.name.schema, found.name.table))
        places = MetastorePlaces(catalog, found, store.root)
        switches = Switches(storage, found.location, str(found.name))
        yield _Work(storage, found, store, places, switches)


def publish(
    config: Config,
    table: str,
    *,
    local: bool,
    settled: float | None = None,
    progress: Progress,
    say: Say,
) -> dict[str, Any]:
    """Switches each quiet partition with clustered files to a new directory that holds them.

    At the end the index is refreshed, so that it knows the files by their new paths.

    Args:
        local: refreshes the index with threads of this process instead of Spark.
        settled: seconds for which nothing in a partition may have changed; None: as configured.

    Errors:
        InvalidRequest: the table is a directory that no metastore knows.
        UnsupportedTable: its DROP deletes data, it is not of clustered files, bucketed, or with
            partition projection.
        StorageFailure, StorageFull, MetastoreUnavailable, IndexConflict: run it again.
    """
    with _opened(config, table, checked=True) as work:
        manifest = work.store.latest()
        held = [] if manifest is None else read_replacements(work.store, manifest)
        groups = replacements_of(held) if manifest is not None else []
        report = _publisher(config, work, settled).publish(groups)
    return _finished(config, table, report, local=local, progress=progress, say=say)


def revert(
    config: Config,
    table: str,
    patterns: Sequence[str] = (),
    *,
    local: bool,
    settled: float | None = None,
    progress: Progress,
    say: Say,
) -> dict[str, Any]:
    """Switches published partitions back to the directories that they were published from.

    Args:
        patterns: of names of partitions, as ``day=2026-01-*``; empty: all.

    Errors: as `publish`.
    """
    with _opened(config, table, checked=True) as work:
        wanted: Collection[str] | None = None
        if patterns:
            names = work.places.all()
            wanted = {n for n in names if any(fnmatchcase(n, each) for each in patterns)}
        report = _publisher(config, work, settled).revert(wanted)
    return _finished(config, table, report, local=local, progress=progress, say=say)


def _publisher(config: Config, work: _Work, settled: float | None) -> Publisher:
    return Publisher(
        work.table,
        work.storage,
        work.places,
        recursive=config.flag("planner.recursive"),
        settled=config.seconds("clustering.settled") if settled is None else settled,
        memory=config.size("clustering.memory"),
        verify=config.flag("clustering.verify"),
    )


def _finished(
    config: Config,
    table: str,
    report: PublishReport,
    *,
    local: bool,
    progress: Progress,
    say: Say,
) -> dict[str, Any]:
    """Brings the index up to date after locations were switched."""
    with _opened(config, table) as work:
        made: dict[str, Any] = {"table": str(work.table.name), **asdict(report), "generation": -1}
        made["kept"] = [{"partition": name, "reason": reason} for name, reason in report.kept]
        made["left"] = _left(config, work)
        indexed = work.store.latest() is not None
    if indexed and report.published:
        refreshed = index_table(config, table, local=local, progress=progress, say=say, check=False)
        made["generation"] = refreshed["generation"]
        with _opened(config, table) as work:
            now = work.places.all()
            forgotten = forget_replacements(
                work.store,
                lambda group: all(
                    group.partition in now and file.path.startswith(f"{now[group.partition]}/")
                    for file in group.old
                ),
            )
            # A generation with files of writers is a commit of theirs.
            own = refreshed["committed"] and refreshed["read"] <= report.files
            mine = [refreshed["generation"]] if own else []
            newest = work.store.latest()
            mine += [newest.generation] if forgotten and newest is not None else []
            Timeline(work.storage, work.store.root).own(mine)
    return made


def check(config: Config, table: str) -> None:
    """Tells before a long run whether `publish` would refuse the table.

    Errors: InvalidRequest, UnsupportedTable: see `publish`.
    """
    with _opened(config, table, checked=True):
        return


def list_left_files(config: Config, table: str) -> list[dict[str, Any]]:
    """What lies in directories that were left and is in no directory in force; see `Left`.

    Empty for tables that cannot have been published.

    Errors: FileCorrupt, StorageFailure, MetastoreUnavailable.
    """
    if is_location(table):
        return []
    with open_indexed_table(config, table) as (storage, catalog, found, store):
        if not isinstance(catalog, HiveCatalog):
            return []
        places = MetastorePlaces(catalog, found, store.root)
        switches = Switches(storage, found.location, str(found.name))
        return _left(config, _Work(storage, found, store, places, switches))


def _left(config: Config, work: _Work) -> list[dict[str, Any]]:
    return [describe(each, work.table, work.storage) for each in _listed(config, work)]


def _listed(config: Config, work: _Work) -> list[Left]:
    held = work.switches.load()
    if not held:
        return []
    return left_files(work.storage, work.switches, held, work.places.all())


def accept(config: Config, table: str, files: Sequence[str]) -> dict[str, Any]:
    """Ends the listing of files in left directories, as long as they stay as they are.

    Args:
        files: as they are listed.

    Errors:
        InvalidRequest: a file is not listed; nothing is accepted.
    """
    with _opened(config, table) as work:
        listed = {each.state.path: each for each in _listed(config, work)}
        wanted = [canonical(absolute_location(file)) for file in files]
        for each in wanted:
            if each not in listed:
                raise InvalidRequest(
                    f"{each} is not listed: no left directory of {work.table.name} has it, or it "
                    "was accepted before",
                    f"skipbridge cluster show {table} lists what is to be decided",
                )
        work.switches.accept(listed[each].state for each in wanted)
        present = set(work.places.all().values())
        for each in wanted:
            directory = each.rpartition("/")[0]
            if not listed[each].is_file and directory in present:
                work.switches.unmark(directory)  # it is in force, as somebody has decided
        return {"table": str(work.table.name), "accepted": wanted}


def originals(config: Config, table: str, retain: float) -> dict[str, Any]:
    """Files in left directories that nobody needs any more; deletes nothing.

    Args:
        retain: seconds for which a directory must have been left.

    Errors:
        IndexCorrupt, FileCorrupt: what is needed cannot be told.
        StorageFailure, MetastoreUnavailable: run it again.
    """
    with _opened(config, table) as work:
        before = now_micros() - int(retain * 1e6)
        in_use = Cleaner(work.table, work.store, work.places, before, dry_run=True).files_in_use()
        found = unneeded(
            work.storage,
            work.switches,
            work.places,
            in_use,
            before,
            recursive=config.flag("planner.recursive"),
        )
    needed = [{"partition": name, "reason": reason} for name, reason in found.needed]
    return {"table": str(work.table.name), **asdict(found), "needed": needed}


def clean(config: Config, table: str, retain: float, *, dry_run: bool) -> dict[str, Any]:
    """Deletes what clustering and publishing have written, and nobody has read for so long.

    Args:
        retain: seconds.

    Errors:
        IndexCorrupt, FileCorrupt: what must be kept cannot be told; nothing is deleted.
        StorageFailure, MetastoreUnavailable: run it again.
    """
    with open_indexed_table(config, table) as (_, catalog, found, store):
        check_table(found)
        places = None
        if isinstance(catalog, HiveCatalog):
            places = MetastorePlaces(catalog, found, store.root)
        before = now_micros() - int(retain * 1e6)
        cleaner = Cleaner(
            found,
            store,
            places,
            before,
            records_before=now_micros() - _RECORDS_KEPT,
            dry_run=dry_run,
        )
        return {"table": str(found.name), "dry_run": dry_run, **asdict(cleaner.run())}


def left_lines(config: Config, table: str, location: str) -> list[str]:
    """What is said of files that no engine reads, in directories that a table was published from.

    Args:
        location: of the table, whether or not it is registered.
    """
    if not was_published(storage_of(config), canonical(location)):
        return []
    try:
        return [line for each in list_left_files(config, table) for line in lines(each)]
    except (TableNotFound, SchemaNotFound):  # it would be registered
        return []
