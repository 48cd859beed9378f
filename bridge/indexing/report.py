"""Reports how effective a table's index is: opens it, lists the table, reads the log."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import Places
from bridge.formats.physical_column import parse_key
from bridge.index.building.listed import Listed
from bridge.index.generations.manifest import Manifest, Shard
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.definition import MINMAX
from bridge.index.reading.column_file import ColumnFile
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.indexing.table import newest, open_indexed_table
from bridge.kernel.config import Config
from bridge.kernel.types import TRINO, Field, Kind
from bridge.planner.answers.composite_statistics import join_statistics
from bridge.planner.answers.table_statistics import distinct_values
from bridge.planner.index_view import argument
from bridge.planner.predicate_log import Logged, read_log
from bridge.planner.reports.effectiveness import (
    Advice,
    Effectiveness,
    IndexEffect,
    advise,
    column_effect,
    index_effect,
)
from bridge.runtime.compose import index_limits, local_index_cache
from bridge.runtime.table_snapshot import table_files
from bridge.table.model import Column
from bridge.table.segments.format import NAME as SEGMENTS


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
    with open_indexed_table(config, table) as (storage, catalog, found, store):
        manifest = newest(store, found, table)
        cache = local_index_cache(config)
        serving = IndexSnapshot.open(manifest, store, cache, index_limits(config))
        with table_files(config, storage, catalog, found) as list_files:
            found_files = list_files()
        listed = found_files.files
        own, new = _read_now(serving, found_files)
        unknown = np.flatnonzero(serving.match(listed) < 0)
        failed = serving.count_failed(listed, unknown)
        scans = read_log(path, str(found.name)) if path is not None else []
        sizes = column_sizes(manifest, store)
        fields = tuple(Field(c.name, c.type) for c in found.columns)
        statistics = serving.statistics(fields, TRINO)
        rewritten = None
        if serving.clustered is not None:
            rewritten = cast(IndexSnapshot, serving.clustered.index).statistics(fields, TRINO)
        files = len(own) + len(new)
        data, written = _data(serving, own, new)
        effects = []
        for reference in list_leaves(found.columns):
            name = ".".join(reference.path)
            known = statistics.column(reference)
            read = known
            if rewritten is not None and len(new):
                read = join_statistics([(known, own), (rewritten.column(reference), new)])
            effect = column_effect(name, read, files, sizes.get(name.lower(), -1), scans)
            distinct, source = distinct_values(serving, name, known)
            effects.append(
                replace(
                    effect,
                    distinct=distinct,
                    distinct_source=source,
                    data=data.get(name.lower(), -1),
                )
            )
        result = Effectiveness(
            table=str(found.name),
            generation=manifest.generation,
            age_seconds=round(time.time() - manifest.created / 1e6),
            files=files,
            unknown_files=len(unknown) - failed,
            failed_files=failed,
            size=sum(blob.size for blob in manifest.blobs()),
            scans=len(scans),
            columns=tuple(effects),
            indexes=_indexes(manifest, scans),
            advice=(),
            clustered_files=len(new),
            replaced_files=serving.num_files - len(own),
            not_believed=tuple(serving.local.trust.not_believed()),
            written=written,
        )
        given = advise(result, str(found.name), shlex.quote(argument(found)))
        if found.table_format == SEGMENTS:
            given = tuple(_of_segments(one, argument(found)) for one in given)
        return replace(result, advice=given)


def _of_segments(advice: Advice, table: str) -> Advice:
    """Statements, since commands would not index the segments that are added later."""
    named = f"`{table}`" if "/" in table else table
    match advice.kind:
        case "bloom":
            name = re.sub(r"\W", "_", f"{advice.on}_bloom")
            text = f'CREATE INDEX {name} ON TABLE {named} ({advice.on}) AS "bloomfilter"'
        case "cluster":  # facts are not rewritten; which columns a view needs is the user's choice
            return replace(advice, how="")
        case "dead" | "reveal":
            text = f"SHOW INDEXES ON {named}"
        case _:
            return advice
    return replace(advice, how=shlex.join(["skipbridge", "sql", text]))


def _read_now(serving: IndexSnapshot, listed: Listed) -> tuple[Places, Places]:
    """Ordinals of the files that scans read: of the table's own, and of those that replace some."""
    clustered, none = serving.clustered, np.empty(0, np.int64)
    if clustered is None:
        return serving.all_ordinals, none
    ordinals = serving.match(listed.files)
    names = {name: i for i, name in enumerate(dict.fromkeys(listed.owners.to_pylist()))}
    place = np.array([names[name] for name in listed.owners.to_pylist()], np.int32)
    found = clustered.find_replaced(ordinals, place)
    if found is None:
        return serving.all_ordinals, none
    replaced, new, _ = found
    return np.setdiff1d(serving.all_ordinals, ordinals[replaced]), new


def _data(
    serving: IndexSnapshot, own: Places, new: Places
) -> tuple[dict[str, int], tuple[int, int] | None]:
    """Bytes by column in the files that scans read, and the times of the oldest and newest."""
    parts = [(serving, own)]
    if serving.clustered is not None:
        parts.append((cast(IndexSnapshot, serving.clustered.index), new))
    found: dict[str, int] = {}
    times = np.concatenate([index.modified[places] for index, places in parts])
    for index, places in parts:
        for name, each in index.column_bytes().items() if len(places) else ():
            known = each[places]
            if (known >= 0).any():
                found[name] = found.get(name, 0) + int(known[known >= 0].sum())
    times = times[times >= 0]
    return found, (int(times.min()), int(times.max())) if len(times) else None


def column_sizes(manifest: Manifest, store: IndexStore) -> dict[str, int]:
    """Bytes in storage by column and by member (``a.b``), in lower case."""
    found: dict[str, int] = {}
    for shard in every_shard(manifest):
        for key, size in ColumnFile(store, shard.columns).sizes().items():
            path = parse_key(key).path
            for depth in range(1, len(path) + 1):
                name = ".".join(path[:depth]).lower()
                found[name] = found.get(name, 0) + size
    return found


def list_leaves(
    columns: Sequence[Column | Field], above: tuple[str, ...] = ()
) -> list[BoundReference]:
    """Columns that a condition can name: members in the place of structs."""
    found: list[BoundReference] = []
    for column in columns:
        path = (*above, column.name)
        if column.type.kind is Kind.STRUCT:
            found += list_leaves(column.type.fields, path)
        else:
            found.append(BoundReference(path, column.type))
    return found


def every_shard(manifest: Manifest) -> tuple[Shard, ...]:
    """The shards of the table's own files, and of clustered ones."""
    clustering = manifest.clustering
    return manifest.shards if clustering is None else (*manifest.shards, *clustering.shards)


def _indexes(manifest: Manifest, scans: list[Logged]) -> tuple[IndexEffect, ...]:
    shards = every_shard(manifest)
    files = max(sum(shard.num_files - shard.dead for shard in shards), 1)
    settings = manifest.settings
    size = sum(shard.files.size + shard.columns.size for shard in shards)
    found = [index_effect(MINMAX, 1.0, size, settings.minmax_visible, scans)]
    for definition in settings.definitions:
        known = size = 0
        for shard in shards:
            payload = shard.payload(definition.signature)
            if payload is not None:
                known += shard.num_files - shard.dead  # replaced entries no longer count
                size += payload.header.size + (payload.body.size if payload.body else 0)
        found.append(index_effect(definition.name, known / files, size, definition.visible, scans))
    return tuple(found)
