"""What clustering would bring to the queries of the predicate log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bridge.clustering.plan import ClusteringPlan, PlannedGroup
from bridge.clustering.planning.advice import ClusteringAdvice, advise, chosen_files
from bridge.clustering.planning.questions import Question, questions
from bridge.clustering.planning.row_sample import RowSample, read_sample
from bridge.clustering.planning.scheduling import (
    Strategy,
    check_table,
    make_plan,
    pending_files,
    usual_grouping,
)
from bridge.clustering.planning.simulated_filters import IndexedFiles
from bridge.clustering.planning.simulation import CurrentFiles
from bridge.clustering.timeline import Timeline
from bridge.expression.fold import TRUE
from bridge.index.building.listed import Listed
from bridge.index.generations.manifest import Shard, clustered_files
from bridge.index.generations.replacements import FileState
from bridge.index.generations.store import IndexStore
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.indexing.table import newest, open_indexed_table
from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import Field
from bridge.planner.predicate_log import Logged, read_log
from bridge.runtime.compose import index_limits, is_location, local_index_cache
from bridge.runtime.table_snapshot import table_files
from bridge.storage.port import Storage
from bridge.table.directory.catalog import SCHEMA as DIRECTORY_SCHEMA
from bridge.table.model import Catalog, CatalogTable

_UNLIMITED = 10**9
_SAMPLE_FILES = 200
"""Most files of which rows are read to simulate layouts."""
_SAMPLE_ROWS = 200_000
"""Rows of all these files together, about."""
NO_INSTANT = "0" * 17


@dataclass(slots=True)
class TableListing:
    """A table's files, listed once for a whole run.

    What others change later is not planned, and a group of files that they have replaced is
    rejected when it is to be committed. A metastore's record is read anew each time; of a directory
    all that is known comes from a listing.

    Attributes:
        held: None: nobody has listed the table yet.
        place: the same of a directory, as a table.
    """

    held: Listed | None = None
    place: tuple[Storage, Catalog, CatalogTable, IndexStore] | None = None

    @contextmanager
    def open_table(
        self, config: Config, table: str
    ) -> Iterator[tuple[Storage, Catalog, CatalogTable, IndexStore]]:
        """As `bridge.indexing.table.open_indexed_table`."""
        if self.place is None:
            with open_indexed_table(config, table) as found:
                self.place = found if is_location(table) else None
                yield found
        else:
            yield self.place


@dataclass(slots=True)
class Advisor:
    """Forecasts of one table in one state: its files, its newest index, its logged scans."""

    config: Config
    storage: Storage
    table: CatalogTable
    index: IndexSnapshot
    listed: Listed
    scans: Sequence[Logged]
    store: IndexStore

    @classmethod
    def open(
        cls,
        config: Config,
        storage: Storage,
        catalog: Catalog,
        table: CatalogTable,
        store: IndexStore,
        *,
        log: Path | None = None,
        listing: TableListing | None = None,
    ) -> Advisor:
        """Errors: GenerationNotFound, IndexCorrupt, StorageFailure and others."""
        is_directory = table.name.schema == DIRECTORY_SCHEMA
        manifest = newest(store, table, table.location if is_directory else str(table.name))
        index = IndexSnapshot.open(manifest, store, local_index_cache(config), index_limits(config))
        listed = None if listing is None else listing.held
        if listed is None:
            with table_files(config, storage, catalog, table) as list_files:
                listed = list_files()
        if listing is not None:
            listing.held = listed
        scans = read_logged_scans(config, table, log)
        return cls(config, storage, table, index, listed, scans, store)

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(c.name, c.type) for c in self.table.columns)

    @property
    def current(self) -> CurrentFiles:
        return CurrentFiles(self.listed, self.index, self.fields)

    @property
    def open_cost(self) -> int:
        return self.config.size("splits.open_cost")

    def sample(self, plans: Sequence[ClusteringPlan]) -> RowSample:
        """Rows of the files of some plans, with the columns that the log asks about."""
        asked = {column.lower() for scan in self.scans for column, _ in scan.asked}
        asked.update(column.lower() for plan in plans for column in plan.columns)
        wanted = [each for each in self.fields if each.name.lower() in asked]
        files = chosen_files(plans, self.index, _SAMPLE_FILES)
        return read_sample(self.storage, files, wanted, _SAMPLE_ROWS)

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

        def plan_of(name: str, columns: tuple[str, ...]) -> ClusteringPlan:
            chosen = replace(
                strategy,
                layout=name,
                columns=columns,
                grouping=grouping or usual_grouping(columns),
                limits=replace(strategy.limits, most_groups=_UNLIMITED),
                depth=strategy.depth if columns else None,
            )
            return make_plan(NO_INSTANT, self.table, self.listed, self.index, chosen, pending)

        return advise(self.scans, self.fields, self.current, plan_of, self.sample, self.open_cost)

    def dearer(
        self,
        plan: ClusteringPlan,
        groups: Sequence[tuple[PlannedGroup, Sequence[FileState]]],
        shards: tuple[Shard, ...],
    ) -> dict[int, str]:
        """Of which groups the logged queries are better off with the old files, and why.

        If nothing is logged: a scan of all rows, and for each sort column one value and a range
        that holds a tenth of the rows. By what is only assumed, no group is refused that holds a
        file which is to be packed (`Limits.packed`).

        Args:
            groups: with their new files.
            shards: entries of the new files.
        """
        if not self.scans:
            groups = [
                (group, new)
                for group, new in groups
                if min(state.size for state in group.files) >= plan.packed
            ]
        if not groups:
            return {}
        held = replace(plan, groups=tuple(group for group, _ in groups))
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
        place = {s.path: i for i, (_, states) in enumerate(groups) for s in states}
        number = np.array([place.get(path, -1) for path in new.paths.to_pylist()], np.int64)
        old = current.costs([group.files for group, _ in groups], self.open_cost)
        before, after = np.zeros(len(groups)), np.zeros(len(groups))
        for each in asked:
            before += each.weight * old(current.never_matching(each))
            kept = (number >= 0) & ~files.never(each.predicate)
            costs = new.sizes[kept] + self.open_cost
            after += each.weight * np.bincount(number[kept], costs, minlength=len(groups))
        return {
            groups[i][0].id: f"DEARER: queries would cost {_more(before[i], after[i])}; "
            "--dearer commits nevertheless"
            for i in np.flatnonzero(after > before).tolist()
        }


def _more(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):.1f} % more" if before else "something, and cost nothing"


def read_logged_scans(config: Config, table: CatalogTable, log: Path | None) -> list[Logged]:
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
) -> dict[str, Any]:
    """The candidates of a table as plain values, the best first. Writes nothing.

    Args:
        strategy: which files and partitions, and the sizes; its layout and columns do not count.
        grouping: None: the usual one of each layout.

    Errors:
        InvalidRequest: no scan of the table is logged.
        GenerationNotFound, UnsupportedTable, StorageFailure and others.
    """
    with open_indexed_table(config, table) as (storage, catalog, found, store):
        check_table(found)
        advisor = Advisor.open(config, storage, catalog, found, store, log=log)
        timeline = Timeline(storage, store.root)
        pending = pending_files(timeline.list_unfinished(advisor.index.manifest))
        pending += [] if strategy.again else timeline.list_refused()
        advice = advisor.advice(strategy, grouping, pending)
        return {"table": str(found.name), **advice_as_dict(advice)}


def advice_as_dict(advice: ClusteringAdvice) -> dict[str, Any]:
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
