"""Builds views on Spark: executors read facts and write the views' files, the driver commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bridge.indexing.spark_build import cause, ship_package
from bridge.kernel.errors import BridgeError, StorageFailure
from bridge.segments.views.build import Built, Runner, ViewTask, build_chunk
from bridge.storage.routed import open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def on_spark(
    session: SparkSession, options: Mapping[str, str] | None = None, *, ship: bool = True
) -> Runner:
    """Runs each chunk as one task.

    A task that Spark repeats writes files of new names; those of the first attempt are garbage.

    Args:
        options: storage options; see `bridge.storage.routed.open_storage`.
        ship: whether to send this package to the executors; False if it is installed there.
    """
    context, given = session.sparkContext, dict(options or {})
    if ship:
        ship_package(context)

    def run(chunks: Sequence[ViewTask]) -> Iterator[list[Built]]:
        def build(parts: Iterator[ViewTask]) -> Iterator[list[Built]]:
            storage = open_storage(options=given)
            for part in parts:
                yield build_chunk(part, storage)

        if not chunks:
            return
        try:
            found = context.parallelize(list(chunks), len(chunks)).mapPartitions(build).collect()
        except BridgeError:
            raise
        except Exception as error:  # py4j wraps every error of an executor
            raise StorageFailure(
                f"the Spark job failed: {cause(error)}", "see the executors' logs"
            ) from error
        yield from found

    return run
