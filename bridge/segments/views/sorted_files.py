"""Writes rows as sorted Parquet files of about one size, in bounded memory.

Rows are gathered into runs. A run is sorted in memory. With LOCAL_SORT each run becomes files of
its own. With GLOBAL_SORT the runs are kept in a temporary directory and merged at the end.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.parquet.tables import table_writer
from bridge.segments.views.definition import SortScope, ViewDefinition
from bridge.storage.local_disk.spill import spill_directory

RUN_BYTES = 128 << 20
"""Bytes of rows that are sorted at once."""
_GROUP_BYTES = 16 << 20
_GROUP_ROWS = 256 * 1024
_MERGED_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of a view, before it has a place in storage.

    Attributes:
        number: its place in the order of the view's files.
    """

    number: int
    content: bytes
    rows: int


Emit = Callable[[WrittenFile], None]


class SortedFiles:
    """Takes batches of one schema and emits files.

    Args:
        emit: takes each file as soon as it is whole.
        run_bytes: memory of one run.
    """

    def __init__(
        self,
        view: ViewDefinition,
        schema: pa.Schema,
        emit: Emit,
        *,
        run_bytes: int = RUN_BYTES,
        first: int = 0,
    ) -> None:
        self._schema = schema
        self._keys = [(c, "ascending") for c in view.sort_columns if c in schema.names]
        self._scope = view.sort_scope if self._keys else SortScope.NO_SORT
        self._run_bytes = run_bytes
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._out = _Output(view, schema, emit, first)
        self._closing = ExitStack()
        self._directory: Path | None = None
        self._runs: list[Path] = []
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes one batch of the schema."""
        self._held.append(batch)
        self._bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._bytes >= self._run_bytes:
            self._end_run(last=False)

    def finish(self) -> None:
        """Writes what is held."""
        try:
            self._end_run(last=True)
            if self._runs:
                for part in _merged([_run(path) for path in self._runs], self._keys):
                    self._out.add(part)
            self._out.close()
        finally:
            self.discard()

    def discard(self) -> None:
        """Frees memory and temporary files."""
        self._held = []
        self._directory = None
        self._closing.close()

    def _end_run(self, *, last: bool) -> None:
        if not self._held:
            return
        run = pa.Table.from_batches(self._held, schema=self._schema)
        self._held, self._bytes = [], 0
        if self._keys and self._scope is not SortScope.NO_SORT:
            run = run.take(pc.sort_indices(run, sort_keys=self._keys))
        if self._scope is SortScope.GLOBAL_SORT and (self._runs or not last):
            self._spill(run)
            return
        self._out.add(run)
        if self._scope is SortScope.LOCAL_SORT:
            self._out.end_file()  # the next run begins with small values again

    def _spill(self, run: pa.Table) -> None:
        if self._directory is None:
            self._directory = self._closing.enter_context(spill_directory())
        path = self._directory / f"{len(self._runs)}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, run.schema) as writer:
            writer.write_table(run, max_chunksize=_MERGED_ROWS)
        self._runs.append(path)


def _run(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)


def _merged(
    runs: list[Iterator[pa.RecordBatch]], keys: list[tuple[str, str]]
) -> Iterator[pa.Table]:
    """Merges sorted runs.

    The next rows of all runs are sorted together. Those up to the first end of a run's rows are
    next in the whole order, because each run's later rows come after its end.
    """
    heads: list[pa.Table | None] = [_next(run) for run in runs]
    while True:
        live = [i for i, head in enumerate(heads) if head is not None]
        if not live:
            return
        parts = [heads[i] for i in live]
        whole = pa.concat_tables(parts)
        order = pc.sort_indices(whole, sort_keys=keys).to_numpy()
        place = _places(order)
        sure, begin = len(order), 0
        bounds = []
        for part in parts:
            assert part is not None
            end = begin + part.num_rows
            bounds.append((begin, end))
            # Ties are resolved by place, so that a run's rows keep their order.
            sure = min(sure, int(place[begin:end].max()) + 1)
            begin = end
        yield whole.take(pa.array(order[:sure]))
        for i, (begin, end) in zip(live, bounds, strict=True):
            left = whole.slice(begin, end - begin).filter(pa.array(place[begin:end] >= sure))
            heads[i] = left if left.num_rows else _next(runs[i])


def _places(order: Any) -> Any:
    import numpy as np

    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _next(run: Iterator[pa.RecordBatch]) -> pa.Table | None:
    for batch in run:
        if batch.num_rows:
            return pa.Table.from_batches([batch])
    return None


@dataclass(slots=True)
class _Output:
    """Cuts rows into row groups and files."""

    view: ViewDefinition
    schema: pa.Schema
    emit: Emit
    number: int
    _pending: list[pa.Table] = field(default_factory=list)
    _pending_bytes: int = 0
    _pending_rows: int = 0
    _sink: io.BytesIO | None = None
    _writer: Any = None
    _rows: int = 0

    def add(self, table: pa.Table) -> None:
        size = max(table.nbytes, 1)
        step = max(1, min(_GROUP_ROWS, self._group_bytes * table.num_rows // size))
        for start in range(0, table.num_rows, step):
            piece = table.slice(start, step)
            self._pending.append(piece)
            self._pending_bytes += piece.nbytes
            self._pending_rows += piece.num_rows
            if self._pending_bytes >= self._group_bytes or self._pending_rows >= _GROUP_ROWS:
                self._flush()

    @property
    def _group_bytes(self) -> int:
        return min(_GROUP_BYTES, self.view.file_bytes)

    def end_file(self) -> None:
        self._flush()
        self._end()

    close = end_file

    def _flush(self) -> None:
        if not self._pending:
            return
        group = pa.concat_tables(self._pending).combine_chunks()
        self._pending, self._pending_bytes, self._pending_rows = [], 0, 0
        if self._writer is None:
            self._sink = io.BytesIO()
            self._writer = table_writer(self._sink, self.schema, **self._options())
        self._writer.write_table(group, row_group_size=max(group.num_rows, 1))
        self._rows += group.num_rows
        assert self._sink is not None
        if self._sink.tell() >= self.view.file_bytes:
            self._end()

    def _options(self) -> dict[str, Any]:
        dictionary: Any = True
        if self.view.dictionary is not None:
            dictionary = [name for name in self.view.dictionary if name in self.schema.names]
        return {
            "version": "2.6",  # else nanoseconds would be changed
            "store_schema": False,
            "compression": "zstd",
            "use_dictionary": dictionary or False,
            "write_page_index": True,
        }

    def _end(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        assert self._sink is not None
        content = self._sink.getvalue()
        self.emit(WrittenFile(self.number, content, self._rows))
        self.number += 1
        self._sink = self._writer = None
        self._rows = 0
