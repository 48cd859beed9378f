"""Listing a table on Spark: executors list directories, the driver gets a row for each.

One directory level is listed at a time until there are enough of them to share out; each task then
lists what lies below some, and hands back Arrow bytes of a row a directory, whatever number of
files they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from bridge.errors import BridgeError, StorageFailure
from bridge.spark.build_index import cause, ship_package
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.table.discovered import SCHEMA, Discovered, combine, is_visible, summaries, summarise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SLICES_PER_CORE = 8
_LEVELS = 4


def list_with_spark(
    session: SparkSession,
    root: str,
    options: Mapping[str, str] | None = None,
    *,
    send_package: bool = True,
) -> Discovered:
    """The same as `bridge.table.discovered.list_directories`, by many machines.

    Args:
        root: canonical URI.
        options: of the storage, see `bridge.storage.routed.open_storage`.
        send_package: send this package to the executors; False where it is installed there.

    Errors:
        StorageFailure.
    """
    context = session.sparkContext
    if send_package:
        ship_package(context)
    given = dict(options or {})
    slices = max(context.defaultParallelism, 1) * _SLICES_PER_CORE
    parts, leaves = _share_out(open_storage(options=given), root, slices)

    def read(prefixes: Iterator[str]) -> Iterator[bytes]:
        storage = open_storage(options=given)
        rows = combine(table for prefix in prefixes for table in summaries(storage, prefix, root))
        yield _to_bytes(rows)

    if leaves:
        try:
            tasks = context.parallelize(leaves, min(slices, len(leaves)))
            blobs = tasks.mapPartitions(read).collect()
        except BridgeError:
            raise
        except Exception as error:  # py4j wraps whatever an executor raised
            raise StorageFailure(
                f"the Spark job failed: {cause(error)}", "see the executors' logs"
            ) from error
        parts += [_from_bytes(bytes(blob)) for blob in blobs]
    return Discovered(root, combine(parts))


def _share_out(storage: Storage, root: str, wanted: int) -> tuple[list[pa.Table], list[str]]:
    """Rows of the directories above, and the directories below which is to be listed."""
    parts: list[pa.Table] = []
    level = [root]
    for _ in range(_LEVELS):
        if len(level) >= wanted:
            break
        below: list[str] = []
        for directory in level:
            for page in storage.pages(directory, recursive=False):
                parts.append(summarise(page, root))
            below += [d for d in storage.list_directories(directory) if is_visible(d)]
        level = below
    return parts, level


def _to_bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _from_bytes(blob: bytes) -> pa.Table:
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()
