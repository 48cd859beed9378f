"""Lists a table on Spark: executors list directories, the driver gets one row per directory.

The driver lists one directory level at a time until there are enough directories to distribute.
Each task then lists some subtrees and returns Arrow bytes with one row per directory, however many
files there are.
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
    """Like `bridge.table.discovered.list_directories`, distributed.

    Args:
        root: canonical URI.
        options: storage options; see `bridge.storage.routed.open_storage`.
        send_package: whether to send this package to the executors; False if it is installed there.

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
        except Exception as error:  # py4j wraps every error of an executor
            raise StorageFailure(
                f"the Spark job failed: {cause(error)}", "see the executors' logs"
            ) from error
        parts += [_from_bytes(bytes(blob)) for blob in blobs]
    return Discovered(root, combine(parts))


def _share_out(storage: Storage, root: str, wanted: int) -> tuple[list[pa.Table], list[str]]:
    """Rows of the upper directories, and the roots of the subtrees to distribute."""
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
