"""Rows on their way from old files to new ones, in bounded memory.

Each old file is decoded once. Its rows are put together by the new file to which they go, and wait
in memory, or, beyond a limit, in a temporary file. A new file's rows are then gathered from all of
them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.storage.spill import spill_directory

Int64 = npt.NDArray[np.int64]
_OFFSETS = 2**31


class _InMemory:
    """The rows of one old file, put together by new files that begin at the cuts."""

    def __init__(self, table: pa.Table, cuts: Int64) -> None:
        self._table, self._cuts = table, cuts.tolist()

    def part(self, number: int) -> pa.Table:
        begin, end = self._cuts[number], self._cuts[number + 1]
        return self._table.slice(begin, end - begin)


class _Spilled:
    """The same in a temporary file: one run of batches per new file."""

    def __init__(self, file: Path, table: pa.Table, cuts: Int64) -> None:
        self._file, self._schema = file, table.schema
        self._batches = [0]
        whole = table.unify_dictionaries()  # such a file has one dictionary per column
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
                held = whole.slice(begin, end - begin).to_batches() if end > begin else []
                for batch in held:
                    writer.write_batch(batch)
                self._batches.append(self._batches[-1] + len(held))

    def part(self, number: int) -> pa.Table:
        places = range(self._batches[number], self._batches[number + 1])
        with pa.memory_map(str(self._file)) as source, pa.ipc.open_file(source) as reader:
            return pa.Table.from_batches([reader.get_batch(i) for i in places], self._schema)


class Shuffle:
    """The rows of old files of one schema; a context manager that deletes its temporary files.

    Args:
        order: the rows, as positions in the files one after another; None: as they are.
        counts: how many rows each file has.
        edges: where the new files begin in the order, and the number of rows.
        memory: bytes of rows to hold in memory.
    """

    def __init__(
        self, order: Int64 | None, counts: Sequence[int], edges: Sequence[int], memory: int
    ) -> None:
        self._order = order
        self._begins = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self._edges = np.asarray(edges, np.int64)
        self._memory = memory
        self._lock = threading.Lock()
        self._files: list[_InMemory | _Spilled | None] = [None] * len(counts)
        self._closing = ExitStack()
        self._directory: Path | None = None
        self._goes_to: npt.NDArray[np.uint32] | None = None
        if order is not None and len(edges) > 2:
            self._goes_to = np.empty(len(order), np.uint32)
            for i in range(len(edges) - 1):
                self._goes_to[order[edges[i] : edges[i + 1]]] = i

    def __enter__(self) -> Shuffle:
        return self

    def __exit__(self, *error: object) -> None:
        self._files = []
        self._closing.close()

    def add(self, number: int, table: pa.Table) -> None:
        """Takes the rows of one file; files may come in any order, and from several threads."""
        begin, end = int(self._begins[number]), int(self._begins[number + 1])
        if len(table) != end - begin:
            raise ValueError(f"a file has {len(table)} rows now, and had {end - begin} before")
        if self._goes_to is not None:
            here = self._goes_to[begin:end]
            order = np.argsort(here, kind="stable")
            table = _taken(table, order)
            cuts = np.searchsorted(here[order], np.arange(len(self._edges)))
        elif self._order is not None:
            cuts = np.array([0, len(table)])
        else:
            cuts = np.clip(self._edges - begin, 0, len(table))
        size = table.nbytes
        with self._lock:
            spill = size > self._memory
            self._memory -= 0 if spill else size
        held = self._spilled(number, table, cuts) if spill else _InMemory(table, cuts)
        self._files[number] = held

    def _spilled(self, number: int, table: pa.Table, cuts: Int64) -> _Spilled:
        with self._lock:
            if self._directory is None:
                self._directory = self._closing.enter_context(spill_directory())
        return _Spilled(self._directory / f"{number}.arrow", table, cuts)

    def gather(self, number: int) -> pa.Table:
        """The rows of one new file, in order. All files must have been added."""
        parts = [file.part(number) for file in self._files if file is not None]
        table = pa.concat_tables(_alike(parts))
        if self._order is None:
            return table
        rows = self._order[self._edges[number] : self._edges[number + 1]]
        # The parts hold the rows by their positions.
        place = np.empty(len(rows), np.int64)
        place[np.argsort(rows)] = np.arange(len(rows))
        return _taken(table.unify_dictionaries(), place)


def _alike(parts: list[pa.Table]) -> list[pa.Table]:
    """The parts in one schema: a text column that only some of them hold as codes is decoded."""
    if len({tuple(part.schema.types) for part in parts}) == 1:
        return parts
    fields = []
    for i, field in enumerate(parts[0].schema):
        types = {part.schema.field(i).type for part in parts}
        coded = [type for type in types if pa.types.is_dictionary(type)]
        if coded and len(types) > 1:
            field = field.with_type(coded[0].value_type)
        fields.append(field)
    schema = pa.schema(fields)
    return [part.replace_schema_metadata(None).cast(schema) for part in parts]


def _taken(table: pa.Table, order: Int64) -> pa.Table:
    """Rows of a table in an order, in parts that are small enough for 32-bit offsets."""
    if table.nbytes < _OFFSETS // 2:
        table = table.combine_chunks()
    step = max(1, int(len(order) * (_OFFSETS // 4) / max(table.nbytes, 1)))
    parts = [table.take(pa.array(order[i : i + step])) for i in range(0, len(order), step)]
    return pa.concat_tables(parts) if parts else table.slice(0, 0)
