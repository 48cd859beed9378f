"""Entries of new files, from the pass that writes and verifies them.

A task holds every new file in memory when it has read it back. What the index needs of it is
gathered then, by the same code that a build uses. A file is read once more only if the index's
settings were changed meanwhile, or an earlier run has written it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from bridge.index.building.collect import Collector, FileTask, Reading, collect_chunk
from bridge.index.building.sample import Sampling
from bridge.index.generations.replacements import FileState
from bridge.index.generations.shard import Collected
from bridge.index.kinds import registry
from bridge.index.kinds.definition import IndexSettings
from bridge.kernel.errors import FileUnreadable
from bridge.storage.local_disk.spill import spill_directory
from bridge.storage.port import FileStat, Range, Storage


def reading_of(settings: IndexSettings, files: int) -> Reading:
    """What an index with some settings needs of so many files."""
    known = registry.kinds()
    kinds = tuple((known[d.kind], d) for d in settings.definitions if d.kind in known)
    return Reading("footer", kinds, settings.modes, Sampling.of(files))


class _InMemory:
    """A storage of one file, whose bytes are here."""

    def __init__(self, state: FileState, content: bytes) -> None:
        self._stat = FileStat(state.path, state.size, state.modified, state.etag)
        self._content = memoryview(content)

    def is_remote(self, uri: str) -> bool:
        return False

    def stat(self, uri: str) -> FileStat:
        return self._stat

    def read(self, uri: str) -> bytes:
        return bytes(self._content)

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        if any(end > len(self._content) for _, end in ranges):
            raise FileUnreadable(f"{uri} ends before a part of it", "it was cut")
        return [bytes(self._content[start:end]) for start, end in ranges]

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat]:
        return self.read_ranges(uri, ranges), self._stat


def gather_entry(
    number: int, state: FileState, content: bytes, format: str, reading: Reading
) -> Collected | None:
    """What the index needs of one file; None if it is to be read again.

    Args:
        number: by which the result refers to the file.
        content: all bytes of the file in this state.
    """
    task = FileTask(number, state.path, state.size, state.modified, state.etag, format)
    found = collect_chunk([task], cast(Storage, _InMemory(state, content)), reading)
    return None if found.files["problem"].null_count < len(found.files) else found


class Gathered:
    """What was gathered of groups, in temporary files until it is committed; a context manager."""

    def __init__(self) -> None:
        self._closing = ExitStack()
        self._directory: Path | None = None

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def put(self, group: int, content: bytes) -> None:
        """Keeps the bytes of a `Collected`; drops them where there is no room."""
        with suppress(OSError):  # the files are read again instead
            if self._directory is None:
                self._directory = self._closing.enter_context(spill_directory())
            draft = self._directory / f"{group}.draft"
            draft.write_bytes(content)
            draft.rename(self._directory / str(group))

    def get(self, group: int) -> Collected | None:
        """What `put` kept of a group."""
        if self._directory is None:
            return None
        try:
            return Collected.from_bytes((self._directory / str(group)).read_bytes())
        except FileNotFoundError:
            return None


Ready = Sequence[tuple[Callable[[], Collected | None], Sequence[FileState]]]


class ReadyCollector:
    """A `Collector` that has something already, and asks another one for the rest.

    Args:
        ready: gives what was gathered, each with the files that its numbers mean. One is in memory
            at a time.
        reading: how it was gathered.
    """

    def __init__(self, rest: Collector, reading: Reading, ready: Ready) -> None:
        self._rest, self._reading, self._ready = rest, reading, ready

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        by_uri = {task.uri: task for task in tasks}
        for give, files in self._ready if _alike(reading, self._reading) else ():
            mine = [by_uri.get(file.path) for file in files]
            if all(t is not None and _same(t, f) for t, f in zip(mine, files, strict=True)):
                found = give()
                if found is not None:
                    yield _renumbered(found, [by_uri.pop(file.path).file for file in files])
        if by_uri:
            yield from self._rest.collect(list(by_uri.values()), reading)


def _same(task: FileTask, file: FileState) -> bool:
    return (task.size, task.modified, task.etag) == (file.size, file.modified, file.etag)


def _alike(one: Reading, other: Reading) -> bool:
    """Whether both gather the same; they may sample other files."""

    def asked(reading: Reading) -> object:
        return reading.nan, [definition for _, definition in reading.kinds], dict(reading.modes)

    return asked(one) == asked(other)


def _renumbered(found: Collected, numbers: Sequence[int]) -> Collected:
    new = np.array([*numbers, -1], np.int64)  # -1 stays: a row of several files

    def table(old: pa.Table) -> pa.Table:
        place = old.schema.get_field_index("file")
        moved = pa.array(new[old["file"].to_numpy()])
        return old.set_column(place, old.schema.field(place), moved)

    payloads: Mapping[str, pa.Table] = {s: table(rows) for s, rows in found.payloads.items()}
    return Collected(table(found.files), table(found.columns), payloads)
