"""Builds, describes and cleans the index of one table, in any catalog."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from bridge.formats.registry import indexed_formats, spell_formats
from bridge.index.building.alter_index import change_settings, drop_index
from bridge.index.building.build import BuildReport, build_index, refresh_partitions
from bridge.index.building.collect import Beside, Collector, FileTask, Reading, ThreadCollector
from bridge.index.generations.entries import live_entries
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.replacements import DIRECTORY as REWRITTEN
from bridge.index.generations.replacements import location_before_publishing, read_replacements
from bridge.index.generations.shard import Collected
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.definition import IndexSettings, KindDefinition
from bridge.index.kinds.request import RequestedIndexes, by_properties
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    EnvironmentMissing,
    GenerationNotFound,
    IndexCorrupt,
    InvalidConfiguration,
    UnsupportedTable,
)
from bridge.planner.reports.text import human_bytes
from bridge.runtime.compose import index_store, is_location, resolve, storage_of, storage_options
from bridge.runtime.spark_log_filter import filter_spark_log
from bridge.runtime.table_snapshot import table_files
from bridge.storage.port import Storage
from bridge.storage.uri import join
from bridge.table.model import Catalog, CatalogTable
from bridge.table.registry import DIRECTORY
from bridge.table.segments.format import NAME as SEGMENTS
from bridge.table.segments.format import segment_table
from bridge.table.segments.log import SegmentLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
Say = Callable[[str], None]
FILES_PER_COMMIT = 50_000
"""Files after which a build commits. One that dies loses what it has read since, and each commit
costs planners a new local copy.
"""
NOTHING_NEW = RequestedIndexes()


@contextmanager
def open_indexed_table(
    config: Config, table: str
) -> Iterator[tuple[Storage, Catalog, CatalogTable, IndexStore]]:
    """Opens what a command on one table's index needs. Errors: UnsupportedTable and others."""
    storage = storage_of(config)
    catalog, name = resolve(config, table, storage)
    found = catalog.table(name)
    if found.table_format == SEGMENTS and not is_location(table):
        # The log tells the columns; the metastore's copy may lag behind.
        found = segment_table(found, SegmentLog(storage, found.location).latest())
    if found.format not in indexed_formats():
        raise UnsupportedTable(
            f"{name} is stored as {found.format}",
            f"skipbridge indexes {spell_formats(indexed_formats())} tables",
        )
    if not is_location(table) and storage.is_remote(found.location):
        # A wrong key, region, endpoint or bucket fails now, not after Spark has started.
        next(storage.pages(found.location), None)
    yield storage, catalog, found, index_store(config, storage, found)


def index_table(
    config: Config,
    table: str,
    *,
    nan: Literal["footer", "scan"] = "footer",
    local: bool | None = False,
    full: bool = False,
    asked: RequestedIndexes = NOTHING_NEW,
    spark: SparkSession | None = None,
    progress: Progress,
    say: Say,
    check: bool = True,
) -> dict[str, Any]:
    """Indexes new and changed files, removes deleted ones, and commits one new generation.

    Args:
        nan: ``footer`` or ``scan``, see `bridge.index.building.build`.
        local: uses threads of this process instead of Spark; None chooses by the work and says so.
        full: reads every file again.
        asked: indexes to add or drop; the table's properties may request others.
        spark: a session of the caller, which stays open; takes precedence over ``local``.
        check: verifies the whole index first, and rebuilds it if it is damaged.

    Errors:
        ColumnNotFound, InvalidConfiguration: a requested index cannot be built.
        TableNotFound, UnsupportedTable, IndexConflict, StorageFull, EnvironmentMissing (no Spark).
    """
    with open_indexed_table(config, table) as (storage, catalog, found, store):
        asked = asked.check(found)
        wanted, useless = by_properties(found.properties).sift(found)
        for reason in useless:
            say(f"a property of {found.name} requests an index that cannot be built: {reason}")
        broken = None if full or not check else _damage(store)
        if broken is not None:
            say(f"the index is damaged and is rebuilt: {broken}")
        with (
            table_files(config, storage, catalog, found, refuse=False) as list_files,
            (
                chosen_collector(config, storage, say)
                if local is None and spark is None
                else collector_of(config, storage, bool(local), spark)
            ) as collector,
        ):
            report = build_index(
                found,
                list_files,
                store,
                collector=collector,
                nan=nan,
                progress=progress,
                full=full or broken is not None,
                settings=lambda held: asked.change(wanted.change(held)),
                files_per_commit=FILES_PER_COMMIT,
            )
    return report_build(report, str(found.name), say)


def refresh_written(config: Config, table: str, names: Collection[str], *, say: Say) -> None:
    """Refreshes an index after some partitions were written. A table without an index gets none.

    Args:
        names: the partitions; none: the whole table.

    Errors:
        IndexCorrupt: the index must be rebuilt first.
        TableNotFound, UnsupportedTable, IndexConflict, StorageFull, StorageFailure.
    """
    with open_indexed_table(config, table) as (storage, catalog, found, store):
        if found.table_format != DIRECTORY or store.latest() is None:
            return
        collector = ThreadCollector(storage, threads=1)  # the process plans queries meanwhile
        among = names or None
        with table_files(config, storage, catalog, found, refuse=False, among=among) as list_files:
            if names:
                report = refresh_partitions(found, names, list_files, store, collector=collector)
            else:
                report = build_index(
                    found,
                    list_files,
                    store,
                    collector=collector,
                    files_per_commit=FILES_PER_COMMIT,
                )
    report_build(report, str(found.name), say)


def report_build(report: BuildReport, table: str, say: Say) -> dict[str, Any]:
    """A build's report as plain values; also tells the user about files that were not indexed."""
    for name, reason in report.refused[:10]:
        say(f"not indexed, and no query reads it: partition {name}: {reason}")
    for uri, reason in report.failed[:10]:
        say(f"not indexed, will be read by every query: {failure(uri, reason)}")
    if max(len(report.failed), len(report.refused)) > 10:
        say(f"... in all {len(report.failed)} files and {len(report.refused)} partitions")
    if report.untrusted > len(report.failed):
        say(
            f"{report.untrusted - len(report.failed)} files were written only just now and are not"
            " trusted yet; the next refresh takes them up"
        )
    return {
        "table": table,
        "generation": report.generation,
        "committed": report.committed,
        "files": report.files,
        "read": report.read,
        "removed": report.removed,
        "failed": [{"file": uri, "reason": reason} for uri, reason in report.failed],
        "refused": [{"partition": name, "reason": reason} for name, reason in report.refused],
        "bytes_written": report.bytes_written,
        "seconds": round(report.seconds, 3),
    }


def _damage(store: IndexStore) -> str | None:
    """Describes damage of the newest generation and where its settings come from; None if intact.

    A build takes over entries of the newest generation without reading its columns. On a damaged
    generation it would commit nothing, or keep the damage.
    """
    manifest, broken = store.readable()
    if broken is not None:
        if manifest is None:
            return (
                f"{broken.message}; no older generation is left that records which "
                "indexes it held beside min/max: request these indexes again"
            )
        held = ", ".join(_described(d) for d in manifest.settings.definitions) or "min/max alone"
        return (
            f"{broken.message}; its settings are those of generation {manifest.generation}: {held}"
        )
    try:
        for blob in manifest.blobs() if manifest is not None else ():
            store.read_blob(blob)
    except IndexCorrupt as e:
        return e.message
    return None


@contextmanager
def spark_session(local: bool, spark: SparkSession | None) -> Iterator[SparkSession | None]:
    """The caller's session, or a new one that ends here; None: work in this process."""
    if spark is not None or local:
        yield spark
        return
    # PySpark is an extra, needed only to build with Spark.
    from bridge.runtime.spark_session import open_session

    with filter_spark_log():
        session = open_session(name="skipbridge")
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def collector_of(
    config: Config,
    storage: Storage,
    local: bool,
    spark: SparkSession | None,
    beside: Beside | None = None,
) -> Iterator[Collector]:
    """Reads files on the caller's session, in this process, or on a new Spark session.

    Args:
        beside: makes something else of the files where they are read.
    """
    with spark_session(local, spark) as session:
        if session is None:
            yield ThreadCollector(storage, beside=beside)
            return
        from bridge.indexing.spark_build import SparkCollector

        options = storage_options(config)
        yield SparkCollector(session, options, beside=beside)


SPARK_FILES = 20_000
"""Files to read from which Spark is worth its start. On two cores threads take 20 s for them."""
SPARK_BYTES = 2 * 1024**3
"""The same for the sizes of files that are read beyond their footers. Bytes."""


@contextmanager
def chosen_collector(config: Config, storage: Storage, say: Say) -> Iterator[Collector]:
    """Reads files in this process or, where many are to be read, on a new Spark session."""
    with ExitStack() as stack:
        yield _ChosenByWork(config, storage, stack, say)


class _ChosenByWork:
    """A `Collector` that starts Spark only when the first files to read are worth its start."""

    def __init__(self, config: Config, storage: Storage, stack: ExitStack, say: Say) -> None:
        self._config, self._storage, self._stack, self._say = config, storage, stack, say
        self._chosen: Collector | None = None

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        if self._chosen is None:
            self._chosen = self._choose(tasks, reading)
        return self._chosen.collect(tasks, reading)

    def _choose(self, tasks: Sequence[FileTask], reading: Reading) -> Collector:
        size = bytes_beyond_footers(tasks, reading)
        if len(tasks) >= SPARK_FILES or size >= SPARK_BYTES:
            work = f"{len(tasks):,} files" + (f" of {human_bytes(size)}" if size else "")
            try:
                found = self._stack.enter_context(
                    collector_of(self._config, self._storage, False, None)
                )
            except EnvironmentMissing as e:
                self._say(f"reading {work} with threads; Spark would be faster, but {e.message}")
            else:
                self._say(f"reading {work} with Spark; --local uses threads of this process")
                return found
        return self._stack.enter_context(collector_of(self._config, self._storage, True, None))


def bytes_beyond_footers(tasks: Sequence[FileTask], reading: Reading) -> int:
    """The sizes of the files of which more than a footer is read."""
    every = reading.nan == "scan" or bool(reading.kinds)
    return sum(task.size for task in tasks if every or task.recipe is not None)


def failure(uri: str, reason: str) -> str:
    """An unreadable file and the reason, in one line that names the file once.

    >>> failure("file:///t/a", "FILE_CORRUPT: file:///t/a is not a Parquet file")
    'FILE_CORRUPT: file:///t/a is not a Parquet file'
    >>> failure("file:///t/a", "not finished")
    'file:///t/a: not finished'
    """
    return reason if uri in reason else f"{uri}: {reason}"


def has_index(config: Config, table: str) -> bool:
    """Whether the table has an index that can be opened.

    Errors:
        TableNotFound, UnsupportedTable, StorageFailure.
        IndexNewer: a later version of this program wrote the index.
    """
    with open_indexed_table(config, table) as (_, _, _, store):
        manifest, broken = store.readable()
        return manifest is not None and broken is None


def newest(store: IndexStore, found: CatalogTable, table: str) -> Manifest:
    """The newest generation of a table's index.

    Args:
        table: the table as the user named it.

    Errors:
        GenerationNotFound: there is no index.
        IndexCorrupt: the index cannot be read.
    """
    manifest = store.latest()
    if manifest is None:
        raise GenerationNotFound(
            f"{found.name} has no index below {store.root}",
            f"skipbridge index build {shlex.quote(table)}",
        )
    return manifest


def describe_index(config: Config, table: str) -> dict[str, Any]:
    """The newest generation of a table's index.

    Errors:
        GenerationNotFound: there is no index.
        IndexCorrupt: the index cannot be read.
    """
    with open_indexed_table(config, table) as (_, _, found, store):
        manifest = newest(store, found, table)
        return {
            "table": str(found.name),
            "root": store.root,
            "generation": manifest.generation,
            "files": manifest.num_files,
            **_clustered(manifest, store),
            "shards": len(manifest.shards),
            "indexes": [
                "minmax" + ("" if manifest.settings.minmax_visible else " (invisible)"),
                *(_described(d) for d in manifest.settings.definitions),
            ],
            "modes": dict(manifest.settings.modes),
            "complete": manifest.complete,
            "bytes": sum(blob.size for blob in manifest.blobs()),
            "age_seconds": round(time.time() - manifest.created / 1e6),
        }


def _clustered(manifest: Manifest, store: IndexStore) -> dict[str, int]:
    """Files that clustering wrote, and those in place of which they are read if all are listed."""
    if manifest.clustering is None:
        return {}
    new = read_replacements(store, manifest)["new"].to_numpy(zero_copy_only=False)
    return {"clustered_files": int(new.sum()), "replaced_files": int((~new).sum())}


def failed_files(config: Config, table: str) -> list[dict[str, Any]]:
    """Files that could not be read when they were indexed, with the reason, by path.

    Errors:
        GenerationNotFound: there is no index.
        IndexCorrupt: the index cannot be read.
    """
    with open_indexed_table(config, table) as (_, _, found, store):
        manifest = newest(store, found, table)
        files = live_entries(manifest, store).files
        rows = files.filter(files["problem"].is_valid()).select(["path", "problem"])
        return [{"file": row["path"], "reason": row["problem"]} for row in rows.to_pylist()]


def _described(definition: KindDefinition) -> str:
    return definition.signature + ("" if definition.visible else " (invisible)")


def clean_index(config: Config, table: str, keep: int) -> int:
    """Deletes all but the newest generations; returns the number of deleted files."""
    with open_indexed_table(config, table) as (_, _, _, store):
        return store.clean(keep=keep)


def show_index_to_planners(config: Config, table: str, index: str, visible: bool) -> dict[str, Any]:
    """Makes one index, or ``minmax``, visible or invisible to planners; it stays up to date.

    Errors:
        GenerationNotFound: there is no index.
        InvalidConfiguration: the index does not exist.
    """
    with open_indexed_table(config, table) as (_, _, found, store):
        manifest = change_settings(store, lambda held: held.with_visibility(index, visible))
        return {"table": str(found.name), "index": index, "visible": visible,
                "generation": manifest.generation}  # fmt: skip


def list_clustered(config: Config, table: str) -> list[str]:
    """Directories of rewritten files below a table, which queries find by its index alone."""
    with open_indexed_table(config, table) as (storage, _, found, _):
        root = join(location_before_publishing(found.location), REWRITTEN)
        return [
            uri.rstrip("/")
            for uri in storage.list_directories(root)
            if uri.rstrip("/").rpartition("/")[2].isdigit()
            and len(storage.list_all(uri, recursive=True).paths)
        ]


def drop_from_index(config: Config, table: str, index: str | None) -> dict[str, Any]:
    """Drops one index other than min/max, or all indexes.

    Errors:
        GenerationNotFound: there is no index.
        InvalidConfiguration: the index does not exist, or a table property requests it.
    """
    with open_indexed_table(config, table) as (_, _, found, store):
        if index is None:
            if not store.generations():  # a damaged generation counts: it can be dropped
                raise GenerationNotFound(f"{found.name} has no index below {store.root}", "")
            return {"table": str(found.name), "files": drop_index(store)}
        asked = by_properties(found.properties).sift(found)[0].change(IndexSettings())
        if any(d.name.lower() == index.lower() for d in asked.definitions):
            raise InvalidConfiguration(
                f"a property of {found.name} requests {index}",
                "take it out of the table's property skipbridge.index.<kind> first",
            )
        manifest = change_settings(store, lambda held: held.without(index))
        return {"table": str(found.name), "index": index, "generation": manifest.generation}
