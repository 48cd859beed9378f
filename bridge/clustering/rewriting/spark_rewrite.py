"""Rewrites groups of files on Spark: one task per group; executors write, the driver commits."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from bridge.clustering import registry
from bridge.clustering.execution import yield_results
from bridge.clustering.layouts.layout import Layout
from bridge.clustering.rewriting.rewrite import (
    CountFiles,
    Effort,
    GroupResult,
    GroupTask,
    rewrite_group,
)
from bridge.indexing.spark_build import cause, ship_modules, ship_package, storage_here
from bridge.kernel.errors import BridgeError, StorageFailure
from bridge.kernel.threads import Threads

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

    def rewrite(
        self, tasks: Sequence[GroupTask], seen: CountFiles = lambda count: None
    ) -> Generator[GroupResult, None, None]:
        layouts = {t.layout: registry.layout(t.layout, len(t.columns)) for t in tasks}
        if self._ships:
            ship_modules(self._context, [type(each).__module__ for each in layouts.values()])
            kinds = [kind for t in tasks[:1] if t.reading for kind, _ in t.reading.kinds]
            ship_modules(self._context, [type(kind).__module__ for kind in kinds])
        # Each group is a job of its own, so that its result is recorded as soon as it is there.
        cores = max(self._context.defaultParallelism, 1)
        at_once = min(cores, len(tasks)) or 1
        effort = replace(self._effort, threads=max(1, self._cores(cores) // at_once))
        with NamedTemporaryFile(prefix="skipbridge-") as log, Threads(at_once, "rewrite") as pool:
            # Executors on this machine write a byte for each file that they have read.
            shared = log.name if self._context.master.startswith("local") else None
            running = {
                pool.submit(self._run, task, layouts[task.layout], effort, shared): task.id
                for task in tasks
            }
            yield from yield_results(running, lambda: seen(len(log.read())))

    def _cores(self, cores: int) -> int:
        """Cores of one machine."""
        if self._context.master.startswith("local"):
            return cores
        return int(self._context.getConf().get("spark.executor.cores", "1") or 1)

    def _run(self, task: GroupTask, layout: Layout, effort: Effort, log: str | None) -> GroupResult:
        options = tuple(sorted(self._options.items()))

        def count_files(count: int) -> None:
            if log is not None:
                with suppress(OSError):  # the driver has ended
                    file = os.open(log, os.O_WRONLY | os.O_APPEND)
                    os.write(file, b"." * count)
                    os.close(file)

        def work(parts: Iterator[GroupTask]) -> Generator[GroupResult, None, None]:
            for part in parts:
                yield rewrite_group(part, storage_here(options), layout, effort, seen=count_files)

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
