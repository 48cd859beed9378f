"""What a `Strategy` is in Hudi's words, and which partitions of a Hudi table are worth a plan.

Hudi plans and rewrites by itself: this module gives it options and a choice of partitions. What
Hudi cannot do is refused by name. Hudi keeps the sort columns of a plan alone, and whoever executes
it must give the rest again: a small file below the index's root keeps it. Versions before 0.1.0
kept it in the plan's extra metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from bridge.clustering.planning.scheduling import Strategy, sort_field, with_usual
from bridge.clustering.registry import layout
from bridge.kernel.errors import FileCorrupt, InvalidRequest, UnsupportedTable
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.table_config import HudiTableConfig
from bridge.table.hudi.timeline.clusterings import SORT_COLUMNS, HudiClustering
from bridge.table.model import CatalogTable

_PLAN = "hoodie.clustering.plan.strategy."
_CURVE = "hoodie.layout.optimize.strategy"
_BLOCK, _CODEC = "hoodie.parquet.block.size", "hoodie.parquet.compression.codec"
_REGEX = f"{_PLAN}partition.regex.pattern"
_CURVES = {"binpack": "LINEAR", "linear": "LINEAR", "zorder": "ZORDER", "hilbert": "HILBERT"}
_CODECS = {"none": "uncompressed", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd"}
_KEPT = frozenset(
    {
        f"{_PLAN}{name}"
        for name in (
            "small.file.limit",
            "target.file.max.bytes",
            "max.bytes.per.group",
            "max.num.groups",
            "single.group.clustering.enabled",
            "sort.columns",
        )
    }
    | {_CURVE, _BLOCK, _CODEC}
)
"""Options that are taken from a plan when it is executed; a plan is a file that others write."""
_INDEXES = {
    "column_stats": ("hoodie.metadata.index.column.stats.enable",),
    "bloom_filters": ("hoodie.metadata.index.bloom.filter.enable",),
    "record_index": (
        "hoodie.metadata.record.index.enable",
        "hoodie.metadata.global.record.level.index.enable",
    ),
    "partition_stats": ("hoodie.metadata.index.partition.stats.enable",),
}
_VERSION, _NOW = "skipbridge.version", "1"
"""Of what a plan keeps. A plan cannot be made anew: every later release reads this version, too."""
_LAYOUT, _COLUMNS, _OPTIONS = "skipbridge.layout", "skipbridge.columns", "skipbridge.options"
_BUCKET = re.compile(r"000\d{5}-.*")


@dataclass(frozen=True, slots=True)
class Laid:
    """How a clustering orders rows: as its scheduler said, else as Hudi keeps it."""

    layout: str
    columns: tuple[str, ...]


def check_hudi(view: FileSystemView, slices: FileSlices, evolved: bool) -> None:
    """Refuses tables that Hudi's clustering would damage, or that were not tried.

    Args:
        evolved: columns were renamed, retyped, or dropped and added again.

    Errors:
        UnsupportedTable.
    """
    config = view.config
    remedy = "cluster it with Hudi's own tools, if its release can"
    what = ""
    if config.base_format != "parquet":
        what = f"has base files of {config.base_format}"
    elif not config.has_meta_fields:
        what = "has no meta fields (hoodie.populate.meta.fields=false)"
    elif evolved:
        what = "has columns that were renamed, retyped, or dropped and added again"
    elif len(slices) and all(_BUCKET.fullmatch(each) for each in slices.file_ids.to_pylist()):
        what = (
            "has the bucket index, whose writers find rows by the names of file groups "
            f"({slices.file_ids[0].as_py()})"
        )
    if what:
        raise UnsupportedTable(f"Hudi table {config.base} {what}", remedy)


def with_usual_of_hudi(strategy: Strategy) -> Strategy:
    """The strategy with Hudi's usual layout and grouping where it names none."""
    return with_usual(replace(strategy, grouping=strategy.grouping or "size"), "hilbert")


def strategy_options(
    strategy: Strategy, table: CatalogTable, names: Iterable[str]
) -> dict[str, str]:
    """The options of Hudi that a strategy stands for, both of scheduling and of execution.

    Args:
        names: of the columns as the table's schema spells them.

    Errors:
        InvalidRequest: Hudi has no such option.
        ColumnNotFound, InvalidConfiguration.
    """
    curve = _CURVES.get(strategy.layout)
    limits = strategy.limits
    refused = {
        f"--layout {strategy.layout}": curve is None,
        f"--group {strategy.grouping}": strategy.grouping != "size",
        "--keep": bool(strategy.filters),
        "--again": strategy.again,
        "--overlap-depth": strategy.depth is not None,
        "--bloom-filter": bool(strategy.bloom),
        "--oldest-first": not strategy.partitions.newest_first,
        f"--min-files {limits.fewest_files}": limits.fewest_files > 2,
        f"--compression {strategy.compression}": (
            strategy.compression is not None and strategy.compression not in _CODECS
        ),
    }
    for option, given in refused.items():
        if given:
            raise InvalidRequest(
                f"{table.name} is a Hudi table, whose clustering cannot do {option}",
                "leave it out: Hudi groups small files of a partition by size, and orders rows "
                "linear, zorder or hilbert",
            )
    fields = [sort_field(table, name) for name in strategy.columns]
    layout(strategy.layout, len(fields))
    spelled = {name.lower(): name for name in names}
    options = {
        f"{_PLAN}small.file.limit": str(min(limits.small, limits.target + 1)),
        f"{_PLAN}target.file.max.bytes": str(limits.target),
        f"{_PLAN}max.bytes.per.group": str(limits.most_per_group),
        f"{_PLAN}max.num.groups": str(limits.most_groups),
        f"{_PLAN}single.group.clustering.enabled": str(limits.fewest_files == 1).lower(),
        _BLOCK: str(strategy.row_group_bytes),
        _CURVE: str(curve),
    }
    if fields:
        options[SORT_COLUMNS] = ",".join(spelled.get(f.name.lower(), f.name) for f in fields)
    if strategy.compression is not None:
        options[_CODEC] = _CODECS[strategy.compression]
    return options


def table_options(config: HudiTableConfig) -> dict[str, str]:
    """Options under which Hudi clusters a table and does nothing else to it.

    Its version stays, nothing is cleaned or archived, and the metadata table keeps its indexes:
    Hudi would delete those that its options do not name.
    """
    held = config.metadata_partitions
    options = {
        "hoodie.embed.timeline.server": "false",
        "hoodie.write.markers.type": "DIRECT",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.table.version": str(config.version),
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clustering.inline": "false",
        "hoodie.clustering.async.enabled": "false",
        "hoodie.clustering.preserve.commit.metadata": "true",
        # Else Hudi looks only at partitions written since the last clustering, whichever it chose.
        "hoodie.table.services.incremental.enabled": "false",
        "hoodie.metadata.enable": str(bool(held)).lower(),
    }
    for index, keys in _INDEXES.items():
        options.update({key: str(index in held).lower() for key in keys})
    return options


def kept_in_plan(strategy: Strategy, options: Mapping[str, str]) -> dict[str, str]:
    """What is kept of a plan besides what Hudi writes into it."""
    return {
        _VERSION: _NOW,
        _LAYOUT: strategy.layout,
        _COLUMNS: json.dumps(list(strategy.columns)),
        _OPTIONS: json.dumps(dict(options), sort_keys=True),
    }


def plan_options(plan: HudiClustering) -> dict[str, str]:
    """The options that a plan keeps; none if it is not one of skipbridge's. Errors: FileCorrupt."""
    text = plan.extra.get(_OPTIONS)
    if text is None:
        return {}
    if (version := plan.extra.get(_VERSION, _NOW)) != _NOW:
        raise FileCorrupt(
            f"the plan {plan.instant.requested} keeps options of version {version}, this program "
            f"reads {_NOW}",
            "upgrade this program",
        )
    try:
        held = json.loads(text).items()
        return {key: str(value) for key, value in held if key in _KEPT}
    except (ValueError, AttributeError) as error:
        raise FileCorrupt(
            f"the plan {plan.instant.requested} keeps options that cannot be read: {text[:80]!r}",
            "roll it back with Hudi, or restore the record",
        ) from error


def layout_of_clustering(plan: HudiClustering) -> Laid:
    """How a clustering orders rows."""
    columns = plan.columns
    with suppress(ValueError, TypeError):  # as Hudi keeps them, then
        columns = tuple(map(str, json.loads(plan.extra.get(_COLUMNS, "")))) or columns
    return Laid(plan.extra.get(_LAYOUT) or ("linear" if columns else "binpack"), columns)


def partition_names(config: HudiTableConfig, paths: Iterable[str]) -> dict[str, str]:
    """Paths of partitions by the name that they are selected by: ``day=2026-01-01``."""
    found = {}
    for path in paths:
        levels = path.split("/")
        name = path
        if not config.hive_style and len(levels) == len(config.partition_fields):
            pairs = zip(config.partition_fields, levels, strict=True)
            name = "/".join(f"{field}={level}" for field, level in pairs)
        found[name] = path
    return found


def small_slices(
    view: FileSystemView, slices: FileSlices, strategy: Strategy, held: Iterable[HudiClustering]
) -> dict[str, int]:
    """The partitions that are worth a plan, by path, with the number of their small slices.

    Such a partition has enough small slices that wait in no other plan, and one of them at least
    was not written by a clustering that laid it out like this. So a table at rest is not rewritten
    again and again.

    Args:
        held: the clusterings of the timeline.
    """
    same = Laid(strategy.layout, strategy.columns)
    waiting: set[tuple[str, str]] = set()
    alike: set[str] = set()
    for each in held:
        if each.commit is None:
            waiting.update((s.partition, s.file_id) for s in each.slices)
        elif layout_of_clustering(each) == same:
            alike.add(each.instant.requested)
    chosen: dict[str, tuple[int, bool]] = {}
    eligible = strategy.limits.eligible(slices.base_sizes)
    ids, instants = slices.file_ids.to_pylist(), slices.base_instants.to_pylist()
    for i in np.flatnonzero(eligible).tolist():
        path = slices.partitions[slices.partition[i]]
        if (path, ids[i]) in waiting:
            continue
        count, anew = chosen.get(path, (0, False))
        chosen[path] = (count + 1, anew or instants[i] not in alike)
    names = partition_names(view.config, slices.partitions)
    found = {}
    for name in strategy.partitions.of(list(names)):
        count, anew = chosen.get(names[name], (0, False))
        if count >= strategy.limits.fewest_files and anew:
            found[names[name]] = count
    return found


def partition_options(chosen: Collection[str], known: Collection[str]) -> dict[str, str]:
    """The option by which Hudi plans these partitions alone; none if they are all.

    Args:
        chosen, known: paths.
    """
    if set(chosen) == set(known):
        return {}
    return {_REGEX: "|".join(map(_pattern, sorted(chosen)))}


def _pattern(path: str) -> str:
    r"""A pattern of Java's that matches this text alone, without ``,`` and ``=``.

    >>> _pattern("a=1")
    'a\\x{3d}1'
    """
    return "".join(
        c if (c.isascii() and c.isalnum()) or c in "_/-" else f"\\x{{{ord(c):x}}}" for c in path
    )
