"""Rows on their way from old files to new ones, in bounded memory.

Each old file is decoded once. Its rows wait in memory, or, beyond a limit, in a temporary file:
first as they came, until the order of all rows is known, then put together by the place to which
they go: a part of a new file. The rows of a place are then gathered from all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.storage.local_disk.spill import spill_directory

Int64 = npt.NDArray[np.int64]
_OFFSETS = 2**31


class Room:
    """Bytes of rows that may be in memory; the groups that a process rewrites share them."""

    def __init__(self, size: int) -> None:
        self._left, self._lock = size, threading.Lock()

    def take(self, size: int) -> bool:
        """Whether there was room; if so, it is taken."""
        with self._lock:
            fits = size <= self._left
            self._left -= size if fits else 0
            return fits

    def give(self, size: int) -> None:
        with self._lock:
            self._left += size


class WaitingRows:
    """Rows that wait, put together by places that begin at the cuts."""

    in_memory = True

    def part(self, number: int) -> pa.Table:
        """The rows of one place."""
        raise NotImplementedError

    def drop(self) -> None:
        """Gives back what it holds. Tables that it gave stay valid."""
        raise NotImplementedError


class _InMemory(WaitingRows):
    def __init__(self, room: Room, table: pa.Table, cuts: Int64) -> None:
        self._room, self._size = room, table.nbytes
        self._table, self._cuts = table, cuts.tolist()

    def part(self, number: int) -> pa.Table:
        begin, end = self._cuts[number], self._cuts[number + 1]
        return self._table.slice(begin, end - begin)

    def drop(self) -> None:
        self._room.give(self._size)
        self._size, self._table = 0, None


class _Spilled(WaitingRows):
    """A temporary file: one run of batches per place."""

    in_memory = False

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

    def drop(self) -> None:
        self._file.unlink(missing_ok=True)


class Waits:
    """Where rows wait; a context manager that deletes its temporary files."""

    def __init__(self, room: Room) -> None:
        self._room, self._lock = room, threading.Lock()
        self._closing = ExitStack()
        self._directory: Path | None = None
        self._numbers = count()
        self._held: list[WaitingRows] = []

    def __enter__(self) -> Waits:
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._held:
            if isinstance(each, _InMemory):
                each.drop()
        self._closing.close()

    def keep(self, table: pa.Table, cuts: Int64 | None = None) -> WaitingRows:
        """Takes rows, from several threads."""
        cuts = np.array([0, len(table)]) if cuts is None else cuts
        found: WaitingRows
        if self._room.take(table.nbytes):
            found = _InMemory(self._room, table, cuts)
        else:
            with self._lock:
                if self._directory is None:
                    self._directory = self._closing.enter_context(spill_directory())
                file = self._directory / f"{next(self._numbers)}.arrow"
            found = _Spilled(file, table, cuts)
        with self._lock:
            self._held.append(found)
        return found


class GatheredRows:
    """The rows of some places of a `Shuffle`, one after another, as often as they are asked for.

    Those for which there is room stay in memory until the end; a context manager.
    """

    def __init__(self, shuffle: Shuffle, places: Sequence[int], room: Room) -> None:
        self._shuffle, self._places, self._room = shuffle, places, room
        self._held: dict[int, pa.Table] = {}

    def __enter__(self) -> GatheredRows:
        return self

    def __exit__(self, *error: object) -> None:
        self._room.give(sum(table.nbytes for table in self._held.values()))
        self._held.clear()

    def __iter__(self) -> Iterator[pa.Table]:
        for place in self._places:
            table = self._held.get(place)
            if table is None:
                table = self._shuffle.gather(place)
                if self._room.take(table.nbytes):
                    self._held[place] = table
            yield table


class Shuffle:
    """The rows of old files of one schema.

    Args:
        order: the rows, as positions in the tables one after another; None: as they are.
        counts: how many rows each table has.
        edges: where the places begin in the order, and the number of rows.
        waits: where rows wait.
    """

    def __init__(
        self, order: Int64 | None, counts: Sequence[int], edges: Sequence[int], waits: Waits
    ) -> None:
        self._order, self._waits = order, waits
        self._begins = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self._edges = np.asarray(edges, np.int64)
        self._tables: list[WaitingRows | None] = [None] * len(counts)
        self._goes_to: npt.NDArray[np.uint32] | None = None
        if order is not None and len(edges) > 2:
            self._goes_to = np.empty(len(order), np.uint32)
            for i in range(len(edges) - 1):
                self._goes_to[order[edges[i] : edges[i + 1]]] = i

    def add(self, number: int, table: pa.Table) -> None:
        """Takes the rows of one table; they may come in any order, and from several threads."""
        begin, end = int(self._begins[number]), int(self._begins[number + 1])
        if len(table) != end - begin:
            raise ValueError(f"a table has {len(table)} rows now, and had {end - begin} before")
        if self._goes_to is not None:
            here = self._goes_to[begin:end]
            order = np.argsort(here, kind="stable")
            table = _taken(table, order)
            cuts = np.searchsorted(here[order], np.arange(len(self._edges)))
        elif self._order is not None:
            cuts = np.array([0, len(table)])
        else:
            cuts = np.clip(self._edges - begin, 0, len(table))
        self._tables[number] = self._waits.keep(table, cuts)

    def drop(self) -> None:
        for table in self._tables:
            if table is not None:
                table.drop()

    def gather(self, number: int) -> pa.Table:
        """The rows of one place, in order. All tables must have been added."""
        parts = [table.part(number) for table in self._tables if table is not None]
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
