"""Collecting: reading what the index needs from files, on any engine.

A `Collector` spreads tasks; what it does with each chunk is `collect_chunk`, the same code in a
thread here and in a Spark executor there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, Protocol

from bridge.errors import FileCorrupt, FileUnreadable
from bridge.index.footer import TAIL, Footer, FooterReader, footer_length
from bridge.index.scan import complete_from_data
from bridge.index.shard import Collected, CollectedBuilder
from bridge.storage.port import FileStat, Storage

Nan = Literal["footer", "scan"]
CHUNK = 256
_CHANGED = "FILE_CHANGED: written while it was read"


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to read, as the listing saw it; ``file`` is the number the answer refers to."""

    file: int
    uri: str
    size: int
    modified: int
    etag: str | None = None


class Collector(Protocol):
    """Spreads the reading of files over threads or machines."""

    def collect(self, tasks: Sequence[FileTask], nan: Nan) -> Iterator[Collected]:
        """What the files say, in any order; every task is answered once."""
        ...


class ThreadCollector:
    """Reads in this process; for small refreshes and tests."""

    def __init__(self, storage: Storage, threads: int = 8) -> None:
        self._storage = storage
        self._threads = threads

    def collect(self, tasks: Sequence[FileTask], nan: Nan) -> Iterator[Collected]:
        chunks = [tasks[i : i + CHUNK] for i in range(0, len(tasks), CHUNK)]
        if len(chunks) == 1:
            yield collect_chunk(chunks[0], self._storage, nan)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(lambda chunk: collect_chunk(chunk, self._storage, nan), chunks)


def collect_chunk(tasks: Sequence[FileTask], storage: Storage, nan: Nan) -> Collected:
    """Reads some files one after another.

    A file that is damaged, gone, or not the one that was listed has no entry but a reason.

    Errors:
        StorageFailure: the storage cannot be reached; nothing is known about any file then.
    """
    reader = FooterReader()
    builder = CollectedBuilder()
    for task in tasks:
        try:
            footer = _read(task, storage, reader, nan)
        except (FileCorrupt, FileUnreadable) as error:
            after = storage.stat(task.uri)
            changed = after is not None and not _same(task, after)
            builder.failed(task.file, _CHANGED if changed else f"{error.code}: {error.message}")
            continue
        # The listing is the look before, this one is the look after (correctness 19).
        after = storage.stat(task.uri)
        if after is not None and _same(task, after):
            builder.add(task.file, footer)
        else:
            builder.failed(task.file, _CHANGED)
    return builder.finish()


def _same(task: FileTask, after: FileStat) -> bool:
    if (after.size, after.modified) != (task.size, task.modified):
        return False
    return not (task.etag and after.etag) or task.etag == after.etag


def _read(task: FileTask, storage: Storage, reader: FooterReader, nan: Nan) -> Footer:
    start = max(0, task.size - TAIL)
    (tail,) = storage.read_ranges(task.uri, [(start, task.size)])
    length = footer_length(tail, task.uri)
    if length > len(tail):
        if length > task.size:
            raise FileCorrupt(f"{task.uri} is cut short: its footer alone has {length} bytes", "")
        (head,) = storage.read_ranges(task.uri, [(task.size - length, start)])
        tail = head + tail
    footer = reader.read(tail, task.size, task.uri)
    if nan == "scan":
        complete_from_data(footer, storage, task.uri, task.size, tail)
    return footer
