"""Clustering of a `Lake`, in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bridge.clustering.execution import RunReport, ThreadRewriter, execute
from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.planning.advice import ClusteringAdvice, advise, chosen_files
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.row_sample import RowSample, read_sample
from bridge.clustering.planning.scheduling import Strategy, make_plan, pending_files
from bridge.clustering.planning.simulation import CurrentFiles
from bridge.clustering.rewriting.rewrite import Effort
from bridge.clustering.timeline import Timeline, new_instant
from bridge.expression.nodes import AlwaysTrue, Expression
from bridge.index.building.collect import ThreadCollector
from bridge.kernel.types import Field
from bridge.planner.predicate_log import Logged
from bridge.planner.request import ScanRequest
from bridge.storage.port import Storage
from tests.support.directories import in_directories
from tests.support.lake import NAME, Lake, owned

SMALL = Limits(target=1 << 20, small=1 << 20, most_per_group=1 << 20)


def timeline_of(lake: Lake, storage: Storage | None = None) -> Timeline:
    return Timeline(storage or lake.storage, lake.store().root)


def scheduled(lake: Lake, storage: Storage | None = None, **strategy: Any) -> ClusteringPlan:
    """A saved plan over the newest generation; one without groups is not saved."""
    used = storage or lake.storage
    index, timeline = lake.snapshot(), timeline_of(lake, used)
    pending = pending_files(timeline.list_unfinished(index.manifest))
    listed = in_directories(lake.all_partitions(), used, recursive=lake.recursive)()
    chosen = Strategy(**{"limits": SMALL, **strategy})
    while True:
        plan = make_plan(new_instant(), lake.table(), listed, index, chosen, pending)
        if not plan.groups or timeline.request(plan):
            return plan


def advised(lake: Lake, scans: Sequence[Logged], **strategy: Any) -> ClusteringAdvice:
    """What `cluster advise` says of the newest generation and some logged scans."""
    index, fields = lake.snapshot(), [Field(c.name, c.type) for c in lake.table().columns]
    listed = in_directories(lake.all_partitions(), lake.storage, recursive=lake.recursive)()
    pending = pending_files(timeline_of(lake).list_unfinished(index.manifest))

    def plan_of(layout: str, columns: tuple[str, ...]) -> ClusteringPlan:
        grouping = "overlap" if columns else "size"
        asked = {"limits": SMALL, **strategy, "layout": layout, "columns": columns}
        chosen = Strategy(**{**asked, "grouping": grouping})
        return make_plan("0" * 17, lake.table(), listed, index, chosen, pending)

    def sample_of(plans: Sequence[ClusteringPlan]) -> RowSample:
        files = chosen_files(plans, index, 20)
        return read_sample(lake.storage, files, fields, 10_000)

    current = CurrentFiles(listed, index, fields)
    return advise(scans, fields, current, plan_of, sample_of, 4096)


def executed(lake: Lake, plan: ClusteringPlan, storage: Storage | None = None) -> RunReport:
    used = storage or lake.storage
    return execute(
        plan,
        lake.table(),
        lake.store(used),
        timeline_of(lake, used),
        catalog=lake,
        rewriter=ThreadRewriter(used, Effort(threads=1)),
        collector=ThreadCollector(used),
    )


def clustered(lake: Lake, **strategy: Any) -> RunReport:
    """Schedules and executes a plan."""
    return executed(lake, scheduled(lake, **strategy))


def rows_in(path: Path) -> list[dict[str, Any]]:
    """The rows of a Parquet file; pages with checksums are checked."""
    return list(pq.ParquetFile(path, page_checksum_verification=True).read().to_pylist())


def read(
    lake: Lake, predicate: Expression | None = None, **request: Any
) -> tuple[Counter[tuple[Any, ...]], set[str]]:
    """The rows of all files that a scan reads, with their partition, and the files' names."""
    plan = lake.planner().plan(ScanRequest(NAME, predicate or AlwaysTrue(), **request))
    rows: Counter[tuple[Any, ...]] = Counter()
    files = owned(plan)
    for partition, uri in files:
        found = rows_in(Path(uri.removeprefix("file://")))
        rows.update((partition, *map(repr, row.values())) for row in found)
    return rows, {uri.removeprefix(f"{lake.location}/") for _, uri in files}
