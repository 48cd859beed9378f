"""Reports how effective a table's index is: opens it, lists the table, reads the log."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bridge.config import Config
from bridge.expression.nodes import BoundReference
from bridge.file_formats.physical_column import parse_key
from bridge.index.column_file import ColumnFile
from bridge.index.kinds.definition import MINMAX
from bridge.index.manifest import Manifest
from bridge.index.snapshot import IndexSnapshot
from bridge.index.store import IndexStore
from bridge.jobs.compose import index_limits, local_index_cache
from bridge.jobs.index_table import newest, opened
from bridge.jobs.table_snapshot import table_files
from bridge.planner.index_view import argument
from bridge.planner.predicate_log import Logged, read_log
from bridge.planner.table_statistics import distinct_values
from bridge.report.effectiveness import (
    Effectiveness,
    IndexEffect,
    advise,
    column_effect,
    index_effect,
)
from bridge.types import TRINO, Field


def report_index(config: Config, table: str, log: Path | None = None) -> Effectiveness:
    """How much the newest generation of a table's index helps.

    Args:
        log: log of predicates; None uses the configured one, if any.

    Errors:
        GenerationNotFound: there is no index.
        IndexCorrupt, StorageFailure: it cannot be read.
    """
    configured = config.text("planner.predicate_log")
    path = log or (Path(configured) if configured else None)
    with opened(config, table) as (storage, catalog, found, store):
        manifest = newest(store, found, table)
        cache = local_index_cache(config)
        serving = IndexSnapshot.open(manifest, store, cache, index_limits(config))
        with table_files(config, storage, catalog, found) as list_files:
            listed = list_files().files
        unknown = np.flatnonzero(serving.match(listed) < 0)
        failed = serving.count_failed(listed, unknown)
        scans = read_log(path, str(found.name)) if path is not None else []
        sizes = column_sizes(manifest, store)
        fields = tuple(Field(c.name, c.type) for c in found.columns)
        statistics = serving.statistics(fields, TRINO)
        effects = []
        for column in found.columns:
            known = statistics.column(BoundReference((column.name,), column.type))
            size = sizes.get(column.name.lower(), -1)
            effect = column_effect(column.name, known, serving.num_files, size, scans)
            distinct, source = distinct_values(serving, column.name, known)
            effects.append(replace(effect, distinct=distinct, distinct_source=source))
        result = Effectiveness(
            table=str(found.name),
            generation=manifest.generation,
            age_seconds=round(time.time() - manifest.created / 1e6),
            files=serving.num_files,
            unknown_files=len(unknown) - failed,
            failed_files=failed,
            size=sum(blob.size for blob in manifest.blobs()),
            scans=len(scans),
            columns=tuple(effects),
            indexes=_indexes(manifest, scans),
            advice=(),
        )
        return replace(result, advice=advise(result, str(found.name), shlex.quote(argument(found))))


def column_sizes(manifest: Manifest, store: IndexStore) -> dict[str, int]:
    """Bytes in storage by top-level column, in lower case."""
    found: dict[str, int] = {}
    for shard in manifest.shards:
        for key, size in ColumnFile(store, shard.columns).sizes().items():
            name = parse_key(key).path[0].lower()
            found[name] = found.get(name, 0) + size
    return found


def _indexes(manifest: Manifest, scans: list[Logged]) -> tuple[IndexEffect, ...]:
    files = max(manifest.num_files, 1)
    settings = manifest.settings
    size = sum(shard.files.size + shard.columns.size for shard in manifest.shards)
    found = [index_effect(MINMAX, 1.0, size, settings.minmax_visible, scans)]
    for definition in settings.definitions:
        known = size = 0
        for shard in manifest.shards:
            payload = shard.payload(definition.signature)
            if payload is not None:
                known += shard.num_files - shard.dead  # replaced entries no longer count
                size += payload.header.size + (payload.body.size if payload.body else 0)
        found.append(index_effect(definition.name, known / files, size, definition.visible, scans))
    return tuple(found)
