"""Rewrites groups of files on Spark: one task per group; executors write, the driver commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from bridge.clustering import registry
from bridge.clustering.execution import finished
from bridge.clustering.layouts.layout import Layout
from bridge.clustering.rewrite import Effort, GroupResult, GroupTask, rewrite_group
from bridge.errors import BridgeError, StorageFailure
from bridge.spark.build_index import cause, ship_modules, ship_package, storage_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkRewriter:
    """A `Rewriter` on a Spark session.

    Args:
        options: storage options; see `bridge.storage.routed.open_storage`.
        effort: of one task; its threads are chosen here: tasks fewer than cores share the cores.
        ship: whether to send this package to the executors; False if it is installed there.
    """

    def __init__(
        self,
        session: SparkSession,
        options: Mapping[str, str] | None = None,
        effort: Effort | None = None,
        *,
        ship: bool = True,
    ) -> None:
        self._effort = effort or Effort()
        self._context = session.sparkContext
        self._options = dict(options or {})
        self._ships = ship
        if ship:
            ship_package(self._context)

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[GroupResult]:
        layouts = {t.layout: registry.layout(t.layout, len(t.columns)) for t in tasks}
        if self._ships:
            ship_modules(self._context, [type(each).__module__ for each in layouts.values()])
            kinds = [kind for t in tasks[:1] if t.reading for kind, _ in t.reading.kinds]
            ship_modules(self._context, [type(kind).__module__ for kind in kinds])
        # Each group is a job of its own, so that its result is recorded as soon as it is there.
        cores = max(self._context.defaultParallelism, 1)
        at_once = min(cores, len(tasks)) or 1
        effort = replace(self._effort, threads=max(1, self._cores(cores) // at_once))
        with ThreadPoolExecutor(at_once) as pool:
            running = {pool.submit(self._run, task, layouts[task.layout], effort) for task in tasks}
            yield from finished(running)

    def _cores(self, cores: int) -> int:
        """Cores of one machine."""
        if self._context.master.startswith("local"):
            return cores
        return int(self._context.getConf().get("spark.executor.cores", "1") or 1)

    def _run(self, task: GroupTask, layout: Layout, effort: Effort) -> GroupResult:
        options = tuple(sorted(self._options.items()))

        def work(parts: Iterator[GroupTask]) -> Iterator[GroupResult]:
            for part in parts:
                yield rewrite_group(part, storage_here(options), layout, effort)

        try:
            found = self._context.parallelize([task], 1).mapPartitions(work).collect()
        except BridgeError:
            raise
        except Exception as error:  # py4j wraps every error of an executor
            raise StorageFailure(
                f"the Spark job failed: {cause(error)}", "see the executors' logs"
            ) from error
        result: GroupResult = found[0]
        return result
