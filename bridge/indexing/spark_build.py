"""Collects file statistics on Spark: executors read footers and data, the driver gets columns.

An executor runs the same `collect_chunk` as a local thread. It returns one blob of Arrow bytes per
task, so neither rows nor objects per file are transferred.
"""

from __future__ import annotations

import atexit
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import bridge
from bridge.formats.file_format import FileFormat
from bridge.formats.registry import file_format
from bridge.index.building.collect import (
    CHUNK,
    REMOTE_CHUNK,
    Beside,
    BesidePart,
    FileTask,
    Reading,
    any_remote,
    chunks_of,
    collect_beside,
)
from bridge.index.generations.shard import Collected
from bridge.kernel.errors import BridgeError, StorageFailure
from bridge.kernel.threads import Threads
from bridge.storage.local_disk.spill import spill_directory
from bridge.storage.port import Storage
from bridge.storage.reading.ahead import REQUESTS
from bridge.storage.routed import open_storage

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_TASKS_PER_CORE = 8
_SHIPPED = "bridge_for_executors"


class SparkCollector:
    """A `Collector` on a Spark session.

    Args:
        options: storage options; see `bridge.storage.routed.open_storage`.
        ship: whether to send this package to the executors; False if it is installed there.
        requests: most requests in flight per core, on HDFS and object stores.
        beside: makes something else of the files where they are read.
    """

    def __init__(
        self,
        session: SparkSession,
        options: Mapping[str, str] | None = None,
        *,
        ship: bool = True,
        requests: int = REQUESTS,
        beside: Beside | None = None,
    ) -> None:
        self._context = session.sparkContext
        self._options = dict(options or {})
        self._requests = requests
        self._beside = beside
        self._ships = ship
        if ship:
            ship_package(self._context)

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        formats = {name: file_format(name) for name in {task.format for task in tasks}}
        if self._ships:
            _ship_plugins(self._context, reading, formats)
        cores = max(self._context.defaultParallelism, 1)
        remote = any_remote(open_storage(options=self._options), tasks)
        most = max(1, min(REMOTE_CHUNK if remote else CHUNK, -(-len(tasks) // (2 * cores))))
        chunks = chunks_of(tasks, most, cores, self._beside is not None)
        wave = cores * _TASKS_PER_CORE
        waves = [chunks[i : i + wave] for i in range(0, len(chunks), wave)]
        # Two jobs at a time: no core is idle at the end of a job, and the driver holds the results
        # of at most two jobs.
        with Threads(2, "build") as pool:
            pending = [pool.submit(self._run, part, reading, formats) for part in waves[:2]]
            for number in range(len(waves)):
                blobs = pending[number].result()
                if number + 2 < len(waves):
                    pending.append(pool.submit(self._run, waves[number + 2], reading, formats))
                pending[number] = pool.submit(list)  # frees the blobs
                for blob, other in blobs:
                    if self._beside is not None:
                        self._beside.accept_result(other)
                    yield Collected.from_bytes(blob)

    def _run(
        self,
        chunks: Sequence[list[FileTask]],
        reading: Reading,
        formats: Mapping[str, FileFormat],
    ) -> list[tuple[bytes, object]]:
        options, requests, beside = self._options, self._requests, self._beside
        tasks = [
            (chunk, None if beside is None else beside.part([task.uri for task in chunk]))
            for chunk in chunks
        ]

        def read(
            parts: Iterator[tuple[list[FileTask], BesidePart | None]],
        ) -> Iterator[tuple[bytes, object]]:
            storage = storage_here(tuple(sorted(options.items())))
            for chunk, other in parts:
                found, made = collect_beside(chunk, storage, reading, other, formats, requests)
                yield found.to_bytes(), made

        try:
            blobs = self._context.parallelize(tasks, len(tasks)).mapPartitions(read).collect()
        except BridgeError:
            raise
        except Exception as error:  # py4j wraps every error of an executor
            raise StorageFailure(
                f"the Spark job failed: {cause(error)}", "see the executors' logs"
            ) from error
        return [(bytes(blob), made) for blob, made in blobs]


@cache
def storage_here(options: tuple[tuple[str, str], ...]) -> Storage:
    """One per executor process: its connections serve all tasks that run there."""
    return open_storage(options=dict(options))


def _ship_plugins(
    context: SparkContext, reading: Reading, formats: Mapping[str, FileFormat]
) -> None:
    """Sends the modules of index kinds and file formats from other distributions."""
    modules = [type(kind).__module__ for kind, _ in reading.kinds]
    modules += [type(listener).__module__ for listener in reading.listeners]
    modules += [f.collect.__module__ for f in formats.values() if f.collect is not None]
    ship_modules(context, modules)


def ship_modules(context: SparkContext, modules: Sequence[str]) -> None:
    """Sends modules of other distributions than this one to the executors, each once."""
    for module in modules:
        top = module.partition(".")[0]
        file = sys.modules[top].__file__
        if top in ("bridge", "__main__") or file is None:
            continue
        name = f"{top}_for_executors.zip"
        if any(name in str(path) for path in context._python_includes or ()):
            continue
        target = _shipping() / name
        source = Path(file)
        found = sorted(source.parent.rglob("*.py")) if source.name == "__init__.py" else [source]
        root = source.parent.parent if source.name == "__init__.py" else source.parent
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in found:
                archive.write(path, path.relative_to(root))
        context.addPyFile(str(target))


def cause(error: Exception) -> str:
    """The last line of the executor's traceback, or the first line of the error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [
        line for line in lines if line.startswith(("bridge.kernel.errors.", "ModuleNotFoundError"))
    ]
    return (named or lines or [type(error).__name__])[0].removeprefix("bridge.kernel.errors.")


@cache
def _shipping() -> Path:
    """Where archives lie as long as this process: Spark sends them when executors ask."""
    closing = ExitStack()
    atexit.register(closing.close)
    return closing.enter_context(spill_directory())


def ship_package(context: SparkContext) -> None:
    """Adds this package to the executors' path, once per Spark context."""
    if any(_SHIPPED in str(path) for path in context._python_includes or ()):
        return
    root = Path(bridge.__file__).parent
    target = _shipping() / f"{_SHIPPED}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*.py")):
            archive.write(path, Path("bridge") / path.relative_to(root))
    context.addPyFile(str(target))
