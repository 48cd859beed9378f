"""A scan: the files that may hold a row, and the rows of them that satisfy the condition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bridge.app.api.file_reader import ScannedFile, as_recorded, read_file, read_merged
from bridge.app.api.html import page
from bridge.app.api.parallel import in_order
from bridge.app.api.partition_keys import key_values
from bridge.app.api.planning import OpenScan, explain_scan
from bridge.app.api.row_filter import SEMANTICS, RowFilter, row_filter
from bridge.app.api.scan_options import ScanOptions
from bridge.app.api.scan_report import ScanReport
from bridge.expression.bind import Scope
from bridge.expression.format import format as spelled
from bridge.expression.nodes import And, Reference
from bridge.expression.residual import column_names
from bridge.formats.registry import file_format
from bridge.formats.rows import BATCH_BYTES, BATCH_ROWS
from bridge.kernel.arrow_types import arrow_type
from bridge.kernel.errors import EnvironmentMissing, InvalidRequest, UnsupportedType
from bridge.kernel.types import Field
from bridge.planner.attributes import HIDDEN_COLUMNS, MODIFIED_COLUMN, PATH_COLUMN, SIZE_COLUMN
from bridge.planner.partitions import PARTITION_COLUMN
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import split_settings
from bridge.table.model import CatalogTable as Definition
from bridge.table.model import Column, Partition
from bridge.table.recipes import recipe_of
from bridge.table.slices import SliceBatch
from bridge.table.snapshot import MergedSlice

if TYPE_CHECKING:
    import duckdb
    import pandas

    from bridge.app.api.context import SessionContext
    from bridge.planner.planner import Planner

_THREADS = 8
_Task = tuple[ScannedFile | MergedSlice, Mapping[str, Any]]
_FILES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modified", pa.timestamp("us", "UTC")),
    ]
)


class Scan:
    """One scan of one table; made by `Table.scan`.

    Every method plans anew: two calls see the table as it is at each of them.
    """

    def __init__(self, session: SessionContext, table: str, asked: ScanOptions) -> None:
        self._session = session
        self._table = table
        self._asked = asked

    @property
    def schema(self) -> pa.Schema:
        """The columns that it returns. Errors: ColumnNotFound, InvalidRequest."""
        return output_schema(self._session._definition(self._table), self._asked.columns)

    def explain(self) -> ScanReport:
        """Which files it reads and why: what each stage of planning was given and kept.

        No data is read. ``to_dict()`` gives plain values, a notebook shows a table.

        Errors:
            ColumnNotFound, MetastoreUnavailable, StorageFailure and their like.
        """
        planner, request = self._request()
        return explain_scan(planner, request, self._needed, split_settings(self._session._config))

    def files(self) -> pa.Table:
        """The files that may hold a row: ``path``, ``size``, ``modified``, and for a partitioned
        table a struct ``partition`` of the keys' values.

        Errors: as `explain`.
        """
        scan = self._open()
        keys = scan.table.partition_keys
        schema = _FILES
        if keys:
            shape = [pa.field(k.name, arrow_type(k.type)) for k in keys]
            schema = schema.append(pa.field("partition", pa.struct(shape)))
        parts = []
        for batch in scan.batches():
            columns = [
                batch.files.paths.cast(pa.string()),
                pa.array(batch.files.sizes),
                _times(batch.files.modified),
            ]
            if keys:
                values = [self._key_values(scan.table, p) for p in batch.partitions]
                rows = [{k.name: v[k.name] for k in keys} for v in values]
                known = pa.array(rows, schema.field("partition").type)
                columns.append(known.take(pa.array(batch.partition)))
            parts.append(pa.table(columns, schema=schema))
        return pa.concat_tables([schema.empty_table(), *parts])

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches, in bounded memory.

        Files are read by several threads, a few batches ahead of the caller. The order of rows is
        that of the files' paths within a partition. To stop early, delete the reader: threads and
        memory go with it. Its ``close`` alone does not tell them, a limit of pyarrow.

        Errors:
            InvalidPredicate: a part of the condition cannot be computed here.
            ColumnNotFound, and while it is read FileCorrupt, FileUnreadable, SchemaConflict,
            StorageFailure: never a part of the rows without an error.
        """
        asked = self._asked
        scan = self._open(asked.limit)
        schema = output_schema(scan.table, asked.columns)
        fields = [*scan.table.schema, *HIDDEN_COLUMNS]
        condition = And((asked.expression, scan.row_filter))
        keep = row_filter(condition, fields, asked.semantics)
        batches = self._rows(scan, schema, keep)
        if asked.limit is not None:
            batches = _limited(batches, asked.limit)
        return pa.RecordBatchReader.from_batches(schema, _joined(batches, schema))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table. Errors: as `to_reader`."""
        with self.to_reader() as reader:
            return reader.read_all()

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """The rows as a pandas frame.

        Args:
            options: of `pyarrow.Table.to_pandas`.

        Errors:
            EnvironmentMissing: pandas is not installed.
            as `to_reader`.
        """
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise EnvironmentMissing("pandas is not installed", "pip install pandas") from error
        return self.to_arrow().to_pandas(**options)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> Any:
        """The rows as a relation of DuckDB, which SQL and its methods take further.

        Args:
            connection: None takes DuckDB's default one.

        Errors:
            EnvironmentMissing: duckdb is not installed.
            as `to_reader`.
        """
        try:
            import duckdb
        except ImportError as error:
            raise EnvironmentMissing("duckdb is not installed", "pip install duckdb") from error
        return duckdb.from_arrow(
            self.to_arrow(), connection=connection or duckdb.default_connection()
        )

    def __repr__(self) -> str:
        return f"<bridge.Scan of {self._table!r} where {self._where()}>"

    def _repr_html_(self) -> str:
        asked = self._asked
        rows = [
            ("where", self._where()),
            ("columns", ", ".join(asked.columns) if asked.columns is not None else "all"),
            ("limit", "none" if asked.limit is None else asked.limit),
            ("semantics", asked.semantics),
        ]
        return page(f"scan of {self._table}", rows)

    def _where(self) -> str:
        return spelled(self._asked.expression)

    def _open(self, limit: int | None = None) -> OpenScan:
        return OpenScan(*self._request(limit), self._needed)

    def _needed(self, definition: Definition) -> frozenset[str] | None:
        """The columns that rows are made of and chosen by; None if that is not known."""
        asked = self._asked
        compared = column_names(asked.expression)
        if compared is None or asked.dropped:
            return None
        columns = asked.columns
        if columns is None:
            columns = tuple(c.name for c in (*definition.columns, *definition.partition_keys))
        return compared | {name.lower() for name in columns}

    def _request(self, limit: int | None = None) -> tuple[Planner, ScanRequest]:
        asked = self._asked
        planner, name = self._session._planner(self._table)
        request = ScanRequest(
            table=name,
            predicate=asked.expression,
            dropped=asked.dropped,
            semantics=SEMANTICS[asked.semantics],
            absent_is_empty=asked.semantics != "trino",
            engine=asked.semantics,
            pruning=asked.pruning,
            strict=asked.strict,
            freshness=self._session._freshness(self._table, asked.freshness),
            generation=asked.generation,
            limit=limit,
            read=asked.read,
        )
        return planner, request

    def _rows(self, scan: OpenScan, schema: pa.Schema, keep: RowFilter) -> Iterator[pa.RecordBatch]:
        definition = scan.table
        wanted = {*schema.names, *keep.columns}
        columns = [c for c in definition.columns if c.name in wanted]

        def read(task: _Task) -> Iterator[pa.RecordBatch]:
            file, constants = task
            storage, semantics = self._session._storage, self._asked.semantics
            if isinstance(file, ScannedFile):
                parts = read_file(storage, file, columns, definition.columns, semantics)
                if scan.recorded:
                    parts = as_recorded(storage, file, parts)
            else:
                parts = read_merged(storage, file, columns, definition)
            for found, rows in parts:
                known = {n: pa.repeat(s, rows) for n, s in constants.items() if n in wanted}
                known.update(found)
                mask = keep.mask(known, rows)
                if not mask.any():
                    continue
                every = bool(mask.all())
                chosen = None if every else pa.array(mask)
                arrays = [known[n] if every else known[n].filter(chosen) for n in schema.names]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        def tasks() -> Iterator[_Task]:
            with closing(scan.batches()) as batches:  # type: ignore[type-var]
                for batch in batches:
                    yield from self._tasks(definition, batch)

        yield from in_order(tasks(), read, _THREADS)

    def _tasks(self, definition: Definition, batch: SliceBatch) -> Iterator[_Task]:
        files = batch.files
        logs = _logs(batch)
        readers = np.zeros(len(files), np.int32) if batch.reader is None else batch.reader
        constants: dict[int, dict[str, Any]] = {}
        owners, numbers = batch.partition.tolist(), readers.tolist()
        for number, stat, owner, reader in zip(
            range(len(files)), files.stats(), owners, numbers, strict=True
        ):
            uri, size, modified = stat.uri, stat.size, stat.modified
            if owner not in constants:
                partition = batch.partitions[owner]
                constants[owner] = {
                    **self._key_values(definition, partition),
                    PARTITION_COLUMN: pa.scalar(partition.name, pa.string()),
                }
            hidden = {
                PATH_COLUMN: pa.scalar(uri, pa.string()),
                SIZE_COLUMN: pa.scalar(size, pa.int64()),
                # Engines see milliseconds.
                MODIFIED_COLUMN: pa.scalar(
                    None if modified < 0 else modified // 1000 * 1000, pa.int64()
                ).cast(pa.timestamp("us", "UTC")),
            }
            spec = batch.readers[reader]
            recipe = recipe_of(spec, definition.columns)
            file: ScannedFile | MergedSlice = ScannedFile(
                uri, size, modified, spec.format, stat.etag, recipe
            )
            if logs[number] or not uri or spec.base or file_format(spec.format).of_slices:
                file = MergedSlice((uri, size) if uri else None, logs[number], spec)
            if logs[number] or not uri:
                hidden = {name: pa.scalar(None, value.type) for name, value in hidden.items()}
            yield file, {**constants[owner], **hidden}

    def _key_values(self, definition: Definition, partition: Partition) -> dict[str, Any]:
        """The partition's keys as scalars. Errors: as `key_values`."""
        keys = definition.partition_keys
        return key_values(self._table, keys, partition, self._asked.semantics)


def _logs(batch: SliceBatch) -> list[tuple[tuple[str, int], ...]]:
    """URI and length of the logs of each slice."""
    if batch.logs is None:
        return [()] * len(batch)
    files, offsets = batch.logs.files, batch.logs.offsets.tolist()
    every = list(zip(files.paths.to_pylist(), files.sizes.tolist(), strict=True))
    return [tuple(every[begin:end]) for begin, end in pairwise(offsets)]


def _times(modified: np.ndarray) -> pa.Array:
    """Modification times; null where nobody knows it."""
    return pa.array(modified, mask=modified < 0).cast(_FILES.field("modified").type)


def output_schema(definition: Definition, columns: tuple[str, ...] | None) -> pa.Schema:
    """The columns of a scan.

    Columns of a type that Hive does not have are left out, unless they are named.

    Errors:
        ColumnNotFound.
        InvalidRequest: a column is named twice, or none is.
        UnsupportedType: a column that is named cannot be read.
    """
    every = (*definition.columns, *definition.partition_keys)
    if columns is None:
        known = [(c.name, arrow_type(c.type)) for c in every]
        return pa.schema([pa.field(name, t) for name, t in known if t is not None])
    hidden = [Column(f.name, f.type) for f in HIDDEN_COLUMNS]
    scope = Scope([Field(c.name, c.type) for c in (*every, *hidden)], (), case_sensitive=False)
    fields: list[pa.Field] = []
    if not columns:
        raise InvalidRequest("a scan of no columns", "name one, such as $path, or leave it out")
    for name in columns:
        reference = scope.resolve(Reference((name,)))
        target = arrow_type(reference.type)
        if target is None:
            raise UnsupportedType(
                f"column {name} is of a type that Hive does not have, which is not read here",
                "leave it out; for a scan, write it as string, bigint or float",
            )
        if any(f.name == reference.path[0] for f in fields):
            raise InvalidRequest(f"column {name} is named twice", "name it once")
        fields.append(pa.field(reference.path[0], target))
    return pa.schema(fields)


def _limited(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    with closing(batches) as found:  # type: ignore[type-var]
        left = limit
        while left > 0:
            batch = next(found, None)
            if batch is None:
                return
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)


def _joined(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Small batches put together: a table of many small files is no stream of crumbs."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    with closing(batches) as found:  # type: ignore[type-var]
        for batch in itertools.chain(found, [None]):
            if batch is not None:
                held.append(batch)
                rows += batch.num_rows
                size += batch.nbytes
            if held and (batch is None or rows >= BATCH_ROWS or size >= BATCH_BYTES):
                yield held[0] if len(held) == 1 else pa.concat_batches(held)
                held, rows, size = [], 0, 0
