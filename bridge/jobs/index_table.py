"""Builds, describes and cleans the index of one table, in any catalogue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from bridge.config import Config
from bridge.errors import (
    GenerationNotFound,
    IndexCorrupt,
    InvalidConfiguration,
    UnsupportedTable,
)
from bridge.file_formats.registry import indexed_formats, spelled
from bridge.index.alter_index import change_settings, drop_index
from bridge.index.build import BuildReport, build_index
from bridge.index.collect import Beside, Collector, ThreadCollector
from bridge.index.entries import live_entries
from bridge.index.kinds.definition import Definition, IndexSettings
from bridge.index.kinds.request import RequestedIndexes, by_properties
from bridge.index.manifest import Manifest
from bridge.index.replacements import read_replacements
from bridge.index.store import IndexStore
from bridge.jobs.compose import index_store, is_location, resolve, storage_of, storage_options
from bridge.jobs.spark_log_filter import filter_spark_log
from bridge.jobs.table_snapshot import table_files
from bridge.storage.port import Storage
from bridge.table.model import Catalog, Table
from bridge.table.segments.format import NAME as SEGMENTS
from bridge.table.segments.format import described
from bridge.table.segments.log import SegmentLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
Say = Callable[[str], None]
NOTHING_NEW = RequestedIndexes()


@contextmanager
def opened(config: Config, table: str) -> Iterator[tuple[Storage, Catalog, Table, IndexStore]]:
    """Opens what a command on one table's index needs. Errors: UnsupportedTable and others."""
    storage = storage_of(config)
    catalog, name = resolve(config, table, storage)
    found = catalog.table(name)
    if found.table_format == SEGMENTS and not is_location(table):
        # The log tells the columns; the metastore's copy may lag behind.
        found = described(found, SegmentLog(storage, found.location).latest())
    if found.format not in indexed_formats():
        raise UnsupportedTable(
            f"{name} is stored as {found.format}",
            f"skipbridge indexes {spelled(indexed_formats())} tables",
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
    local: bool = False,
    full: bool = False,
    asked: RequestedIndexes = NOTHING_NEW,
    spark: SparkSession | None = None,
    progress: Progress,
    say: Say,
    check: bool = True,
) -> dict[str, Any]:
    """Indexes new and changed files, removes deleted ones, and commits one new generation.

    Args:
        nan: ``footer`` or ``scan``, see `bridge.index.build`.
        local: uses threads of this process instead of Spark.
        full: reads every file again.
        asked: indexes to add or drop; the table's properties may request others.
        spark: a session of the caller, which stays open; takes precedence over ``local``.
        check: verifies the whole index first, and rebuilds it if it is damaged.

    Errors:
        ColumnNotFound, InvalidConfiguration: a requested index cannot be built.
        TableNotFound, UnsupportedTable, IndexConflict, StorageFull, EnvironmentMissing (no Spark).
    """
    with opened(config, table) as (storage, catalog, found, store):
        asked = asked.check(found)
        wanted, useless = by_properties(found.properties).sifted(found)
        for reason in useless:
            say(f"a property of {found.name} requests an index that cannot be built: {reason}")
        broken = None if full or not check else _damage(store)
        if broken is not None:
            say(f"the index is damaged and is rebuilt: {broken}")
        with (
            table_files(config, storage, catalog, found) as list_files,
            collector_of(config, storage, local, spark) as collector,
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
                files_per_commit=config.integer("index.files_per_commit"),
                shard_entries=config.integer("index.shard_entries"),
            )
    return told(report, str(found.name), say)


def told(report: BuildReport, table: str, say: Say) -> dict[str, Any]:
    """A build's report as plain values; also tells the user about files that were not indexed."""
    for uri, reason in report.failed[:10]:
        say(f"not indexed, will be read by every query: {failure(uri, reason)}")
    if len(report.failed) > 10:
        say(f"... and {len(report.failed) - 10} more")
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
    from bridge.spark.session import open_session

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
    requests = config.integer("index.requests")
    with spark_session(local, spark) as session:
        if session is None:
            yield ThreadCollector(storage, requests=requests, beside=beside)
            return
        from bridge.spark.build_index import SparkCollector

        options = storage_options(config)
        yield SparkCollector(session, options, requests=requests, beside=beside)


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
    with opened(config, table) as (_, _, _, store):
        manifest, broken = store.readable()
        return manifest is not None and broken is None


def newest(store: IndexStore, found: Table, table: str) -> Manifest:
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
            f"{found.name} has no index below {store.root}", f"skipbridge index build {table}"
        )
    return manifest


def describe_index(config: Config, table: str) -> dict[str, Any]:
    """The newest generation of a table's index.

    Errors:
        GenerationNotFound: there is no index.
        IndexCorrupt: the index cannot be read.
    """
    with opened(config, table) as (_, _, found, store):
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
    with opened(config, table) as (_, _, found, store):
        manifest = newest(store, found, table)
        files = live_entries(manifest, store).files
        rows = files.filter(files["problem"].is_valid()).select(["path", "problem"])
        return [{"file": row["path"], "reason": row["problem"]} for row in rows.to_pylist()]


def _described(definition: Definition) -> str:
    return definition.signature + ("" if definition.visible else " (invisible)")


def clean_index(config: Config, table: str, keep: int) -> int:
    """Deletes all but the newest generations; returns the number of deleted files."""
    with opened(config, table) as (_, _, _, store):
        return store.clean(keep=keep)


def show_index_to_planners(config: Config, table: str, index: str, visible: bool) -> dict[str, Any]:
    """Makes one index, or ``minmax``, visible or invisible to planners; it stays up to date.

    Errors:
        GenerationNotFound: there is no index.
        InvalidConfiguration: the index does not exist.
    """
    with opened(config, table) as (_, _, found, store):
        manifest = change_settings(store, lambda held: held.showing(index, visible))
        return {"table": str(found.name), "index": index, "visible": visible,
                "generation": manifest.generation}  # fmt: skip


def drop_from_index(config: Config, table: str, index: str | None) -> dict[str, Any]:
    """Drops one index other than min/max, or all indexes.

    Errors:
        GenerationNotFound: there is no index.
        InvalidConfiguration: the index does not exist, or a table property requests it.
    """
    with opened(config, table) as (_, _, found, store):
        if index is None:
            if not store.generations():  # a damaged generation counts: it can be dropped
                raise GenerationNotFound(f"{found.name} has no index below {store.root}", "")
            return {"table": str(found.name), "files": drop_index(store)}
        asked = by_properties(found.properties).sifted(found)[0].change(IndexSettings())
        if any(d.name.lower() == index.lower() for d in asked.definitions):
            raise InvalidConfiguration(
                f"a property of {found.name} requests {index}",
                "take it out of the table's property skipbridge.index.<kind> first",
            )
        manifest = change_settings(store, lambda held: held.without(index))
        return {"table": str(found.name), "index": index, "generation": manifest.generation}
