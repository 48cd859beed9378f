"""What clustering would bring, and what it has brought, to the queries of the predicate log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bridge.clustering.advice import (
    ClusteringAdvice,
    Sampling,
    advise,
    chosen_files,
    gain,
)
from bridge.clustering.plan import Plan, PlannedGroup
from bridge.clustering.questions import Asked, Question, questions
from bridge.clustering.registry import layout
from bridge.clustering.row_sample import RowSample, read_sample
from bridge.clustering.scheduling import (
    Strategy,
    check_table,
    make_plan,
    pending_files,
    usual_grouping,
)
from bridge.clustering.simulated_filters import IndexedFiles
from bridge.clustering.simulation import CurrentFiles, Forecast, forecasts, simulated
from bridge.clustering.timeline import Timeline
from bridge.config import Config
from bridge.errors import InvalidRequest
from bridge.expression.fold import TRUE
from bridge.index.listed import Listed
from bridge.index.manifest import Shard, clustered_files
from bridge.index.snapshot import IndexSnapshot
from bridge.index.store import IndexStore
from bridge.jobs.compose import index_limits, local_index_cache
from bridge.jobs.index_table import newest, opened
from bridge.jobs.table_snapshot import table_files
from bridge.planner.predicate_log import Logged, read_log
from bridge.storage.port import Storage
from bridge.table.model import Catalog, Table
from bridge.types import Field

_UNLIMITED = 10**9
_NO_INSTANT = "0" * 17


@dataclass(frozen=True, slots=True)
class Auto:
    """How the layout is chosen from the predicate log.

    Attributes:
        grouping: None: the usual one of each layout.
        least_gain: share of the cost of scans that a rewrite must save.
        log: of predicates; None: the configured one.
    """

    grouping: str | None = None
    least_gain: float = 0.1
    log: Path | None = None
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(slots=True)
class Advisor:
    """Forecasts of one table in one state: its files, its newest index, its logged scans."""

    config: Config
    storage: Storage
    table: Table
    index: IndexSnapshot
    listed: Listed
    scans: Sequence[Logged]
    sampling: Sampling
    store: IndexStore

    @classmethod
    def open(
        cls,
        config: Config,
        storage: Storage,
        catalog: Catalog,
        table: Table,
        store: IndexStore,
        *,
        log: Path | None = None,
        sampling: Sampling | None = None,
    ) -> Advisor:
        """Errors: GenerationNotFound, IndexCorrupt, StorageFailure and others."""
        manifest = newest(store, table, str(table.name))
        index = IndexSnapshot.open(manifest, store, local_index_cache(config), index_limits(config))
        with table_files(config, storage, catalog, table) as list_files:
            listed = list_files()
        scans = logged(config, table, log)
        sampling = sampling or Sampling()
        return cls(config, storage, table, index, listed, scans, sampling, store)

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(c.name, c.type) for c in self.table.columns)

    @property
    def current(self) -> CurrentFiles:
        return CurrentFiles(self.listed, self.index, self.fields)

    @property
    def open_cost(self) -> int:
        return self.config.size("splits.open_cost")

    def sample(self, plans: Sequence[Plan]) -> RowSample:
        """Rows of the files of some plans, with the columns that the log asks about."""
        asked = {column.lower() for scan in self.scans for column, _ in scan.asked}
        asked.update(column.lower() for plan in plans for column in plan.columns)
        wanted = [each for each in self.fields if each.name.lower() in asked]
        files = chosen_files(plans, self.index, self.sampling.files, self.table.format)
        return read_sample(self.storage, files, wanted, self.sampling.rows)

    def advice(
        self, strategy: Strategy, grouping: str | None, pending: Sequence[Any]
    ) -> ClusteringAdvice:
        """Simulates all candidates, each over all files that several runs would rewrite.

        Errors:
            InvalidRequest: no scan of the table is logged.
        """
        if not self.scans:
            raise InvalidRequest(
                f"no predicate on {self.table.name} is logged: what queries ask is not known",
                "set planner.predicate_log for the planner, or give --log FILE",
            )

        def plan_of(name: str, columns: tuple[str, ...]) -> Plan:
            chosen = replace(
                strategy,
                layout=name,
                columns=columns,
                grouping=grouping or usual_grouping(columns),
                limits=replace(strategy.limits, most_groups=_UNLIMITED),
                depth=strategy.depth if columns else None,
            )
            return make_plan(_NO_INSTANT, self.table, self.listed, self.index, chosen, pending)

        return advise(self.scans, self.fields, self.current, plan_of, self.sample, self.open_cost)

    def forecast(self, plan: Plan) -> tuple[Asked, Forecast, Forecast]:
        """The questions, and the table before and after a plan."""
        sample = self.sample([plan])
        asked = questions(self.scans, self.fields, sample)
        current, by = self.current, layout(plan.layout, len(plan.columns))
        new = simulated(plan, sample, by, current.filters)
        before, after = forecasts(asked.questions, current, [None, (plan, new)], self.open_cost)
        return asked, before, after

    def dearer(self, plan: Plan, groups: Sequence[PlannedGroup], shards: tuple[Shard, ...]) -> str:
        """Why the logged queries are better off with the old files; empty if they are not.

        If nothing is logged: a scan of all rows, and for each sort column one value and a range
        that holds a tenth of the rows.

        Args:
            shards: entries of the new files of these groups.
        """
        held = replace(plan, groups=tuple(groups))
        scans = self.scans or [
            Logged("", 0.0, 1, 1, tuple((column, op) for op in ops), ())
            for column in plan.columns
            for ops in (("=",), (">=", "<="))
        ]
        sample = replace(self, scans=scans).sample([held])
        asked = list(questions(scans, self.fields, sample).questions)
        if not self.scans:
            asked.append(Question(TRUE, 1.0))
        current, manifest = self.current, clustered_files(self.index.manifest, shards)
        cache, limits = local_index_cache(self.config), index_limits(self.config)
        new = IndexSnapshot.open(manifest, self.store, cache, limits)
        files = IndexedFiles(new, self.fields)
        old = {state.path for group in groups for state in group.files}
        every, others = current.sums(frozenset()), current.sums(old)
        before = after = 0.0
        for each in asked:
            never = current.asking(each)
            count, size = np.subtract(every.kept(never), others.kept(never))
            before += each.weight * (size + count * self.open_cost)
            left = ~files.never(each.predicate)
            cost = float(new.sizes[left].sum()) + int(left.sum()) * self.open_cost
            after += each.weight * cost
        if after <= before:
            return ""
        return f"DEARER: queries would cost {100 * (after / max(before, 1) - 1):.1f} % more"

    def measured(self, asked: Asked) -> Forecast:
        """The table as it is now, by the same questions."""
        return forecasts(asked.questions, self.current, [None], self.open_cost)[0]


def logged(config: Config, table: Table, log: Path | None) -> list[Logged]:
    """The logged scans of a table; none if there is no log."""
    configured = config.text("planner.predicate_log")
    path = log or (Path(configured) if configured else None)
    return [] if path is None else read_log(path, str(table.name))


def advise_clustering(
    config: Config,
    table: str,
    strategy: Strategy,
    grouping: str | None = None,
    *,
    log: Path | None = None,
    sampling: Sampling | None = None,
) -> dict[str, Any]:
    """The candidates of a table as plain values, the best first. Writes nothing.

    Args:
        strategy: which files and partitions, and the sizes; its layout and columns do not count.
        grouping: None: the usual one of each layout.

    Errors:
        InvalidRequest: no scan of the table is logged.
        GenerationNotFound, UnsupportedTable, StorageFailure and others.
    """
    with opened(config, table) as (storage, catalog, found, store):
        check_table(found)
        advisor = Advisor.open(config, storage, catalog, found, store, log=log, sampling=sampling)
        pending = pending_files(Timeline(storage, store.root), advisor.index.manifest)
        return {"table": str(found.name), **advised(advisor.advice(strategy, grouping, pending))}


def advised(advice: ClusteringAdvice) -> dict[str, Any]:
    """Advice as plain values."""
    asked = advice.asked
    return {
        "scans": asked.scans,
        "regarded": asked.regarded,
        "with_values": asked.values,
        "sampled_files": advice.sampled_files,
        "sampled_rows": advice.sampled_rows,
        "now": asdict(advice.now),
        "candidates": [asdict(each) for each in advice.candidates],
    }


def effect(
    before: Forecast, expected: Forecast, measured: Forecast | None = None
) -> dict[str, Any]:
    """What a plan brings to the logged scans, as plain values."""
    found = {
        "before": asdict(before),
        "expected": asdict(expected),
        "expected_gain": gain(before, expected),
    }
    if measured is not None:
        found["measured"] = asdict(measured)
        found["measured_gain"] = gain(before, measured)
    return found
