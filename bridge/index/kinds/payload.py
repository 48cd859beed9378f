"""The rows of a definition: their files in storage, and the planner's local copy.

In storage a definition has one or two immutable files per shard, named by the manifest:

``header``  Parquet: one row per file and part (``file``, the fields of the kind's schema, and the
            location of the row's bytes). Read as a whole and checked against the manifest.
``body``    the rows' bytes, concatenated. Ranges are read for the requested files and checked
            against the checksums in the header.

Locally the headers of all shards are one mapped Arrow file in the generation's directory, by
ordinal. Bodies are sparse files that are filled on request and shared by all generations.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.parquet.tables import table_from_bytes, table_to_bytes
from bridge.index.reading.pack import sync
from bridge.kernel.errors import IndexCorrupt, StorageFailure, StorageFull
from bridge.storage.local_disk.local_errors import refuse_exhausted
from bridge.storage.local_disk.mapped_file import MappedFile

Int64 = npt.NDArray[np.int64]

FILE = pa.field("file", pa.int64(), nullable=False)
"""The file's ordinal in the shard; -1 if the row covers several files."""
BODY = pa.field("body", pa.large_binary(), nullable=False)
PLACE = (
    pa.field("body_offset", pa.int64(), nullable=False),
    pa.field("body_length", pa.int64(), nullable=False),
    pa.field("body_check", pa.int64(), nullable=False),  # CRC-32
)
_PLACES = ("body_row", "body_offset", "body_length", "body_check")
_GAP = 64 * 1024
_BATCH = 32 * 1024 * 1024
_REMEDY = "skipbridge index build rebuilds it"


_HEAD = 64
"""Bytes before the rows in a local copy, as Arrow aligns its buffers."""


class _Blob(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str: ...


class _Store(Protocol):
    """The index in storage, see `bridge.index.generations.store.IndexStore`."""

    def read_blob(self, blob: Any) -> bytes: ...

    def read_slices(self, blob: Any, ranges: Sequence[tuple[int, int]]) -> list[bytes]: ...


def rows_schema(schema: pa.Schema, has_body: bool) -> pa.Schema:
    """The schema of gathered rows."""
    return pa.schema([FILE, *schema, *([BODY] if has_body else [])])


def header_bytes(rows: pa.Table, has_body: bool) -> tuple[bytes, bytes | None]:
    """Serialises gathered rows as header and body."""
    rows = rows.sort_by("file").combine_chunks()
    body = None
    if has_body:
        bodies = rows["body"].combine_chunks()
        bodies = bodies.chunk(0) if isinstance(bodies, pa.ChunkedArray) else bodies
        lengths = pc.binary_length(bodies).to_numpy().astype(np.int64)
        parts = [bodies[i].as_buffer() for i in range(len(bodies))]
        sums = np.array([zlib.crc32(part) for part in parts], np.int64)
        body = b"".join(part.to_pybytes() for part in parts)
        ends = np.cumsum(lengths)
        rows = rows.drop_columns(["body"])
        for field, values in zip(PLACE, (ends - lengths, lengths, sums), strict=True):
            rows = rows.append_column(field, pa.array(values))
    return table_to_bytes(rows), body


def read_header(raw: bytes) -> pa.Table:
    """Reads a header. Errors: IndexCorrupt."""
    try:
        return table_from_bytes(raw)
    except pa.ArrowException as error:
        raise IndexCorrupt(f"an index file cannot be read: {error}", _REMEDY) from error


def with_bodies(header: pa.Table, body: bytes) -> pa.Table:
    """Restores gathered rows from the header and body of a shard."""
    offsets, lengths = header["body_offset"].to_pylist(), header["body_length"].to_pylist()
    bodies = [body[o : o + n] for o, n in zip(offsets, lengths, strict=True)]
    rows = header.drop_columns([field.name for field in PLACE])
    return rows.append_column(BODY, pa.array(bodies, pa.large_binary()))


@dataclass(frozen=True, slots=True)
class ShardPart:
    """A shard's share of a definition.

    Attributes:
        slots: the generation's ordinal of each file of the shard; -1: dead.
    """

    header: _Blob
    body: _Blob | None
    slots: Int64


class Payload:
    """A definition's rows for all live files of a generation.

    Attributes:
        num_files: number of files of the generation.
        rows: the kind's fields and ``ordinal``, sorted by ordinal; mapped, not copied.
        ordinal: the file's ordinal, by row; -1 if the row covers several files.
    """

    def __init__(
        self, num_files: int, rows: pa.Table, bodies: Sequence[Body], covered: int
    ) -> None:
        self.num_files = num_files
        self.rows = rows
        self.ordinal: Int64 = rows["ordinal"].to_numpy()
        self.covered = covered
        self._bodies = bodies

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)

    @property
    def open_files(self) -> int:
        """Most files that it keeps open or mapped: two of a body are both."""
        return 1 + 4 * len(self._bodies)

    def bodies(self, rows: Int64) -> list[tuple[Int64, npt.NDArray[np.uint8], Int64, Int64]]:
        """The bytes of some rows, grouped by body file.

        Returns:
            For each body file: positions in ``rows``, the bytes of the file (zeros where nothing
            was requested), and the offset and length of each row's bytes.

        Errors:
            IndexCorrupt, StorageFailure.
        """
        if not len(rows):
            return []
        part = self.rows["body_part"].to_numpy()[rows]
        columns = [self.rows[name].to_numpy()[rows] for name in _PLACES]
        found = []
        for number, body in enumerate(self._bodies):
            mine = np.flatnonzero(part == number)
            if len(mine):
                place, offsets, lengths, checks = (c[mine] for c in columns)
                body.ensure(place, offsets, lengths, checks)
                found.append((mine, body.data, offsets, lengths))
        return found


class Body:
    """One body as a sparse local file, shared by processes. Bytes are verified before use."""

    def __init__(self, store: _Store, blob: _Blob, rows: int, cache: Path) -> None:
        self._store, self._blob, self._rows = store, blob, rows
        self._directory = cache / f"body-{blob.sha256}"
        self._lock = threading.Lock()
        self._data: npt.NDArray[np.uint8] | None = None
        self._there: npt.NDArray[np.uint8] | None = None
        self._files: list[BinaryIO] = []
        self._checked = np.zeros(rows, np.bool_)

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        assert self._data is not None
        return self._data

    def ensure(self, rows: Int64, offsets: Int64, lengths: Int64, checks: Int64) -> None:
        """Fetches the bytes of some rows if they are missing.

        Errors:
            IndexCorrupt, StorageFailure, StorageFull.
        """
        if self._checked[rows].all():
            return
        with self._lock:
            self._open()
            assert self._data is not None and self._there is not None
            new = np.flatnonzero(~self._checked[rows])
            # Verify bytes fetched by another process: it may have died while writing them.
            for i in new[self._there[rows[new]] != 0].tolist():
                span = self._data[offsets[i] : offsets[i] + lengths[i]]
                if zlib.crc32(span.data) == checks[i]:
                    self._checked[rows[i]] = True
            missing = new[~self._checked[rows[new]]]
            missing = missing[np.argsort(offsets[missing], kind="stable")]
            for group in _batches(offsets[missing], lengths[missing]):
                self._fetch(missing[group], rows, offsets, lengths, checks)

    def _fetch(
        self, picked: Int64, rows: Int64, offsets: Int64, lengths: Int64, checks: Int64
    ) -> None:
        assert self._data is not None
        body, there = (file.fileno() for file in self._files)
        spans = _spans(offsets[picked], lengths[picked])
        for (start, end), part in zip(
            spans, self._store.read_slices(self._blob, spans), strict=True
        ):
            with _as_storage(self._directory):
                os.pwrite(body, part, start)
            assert len(part) == end - start
        for i in picked.tolist():
            span = self._data[offsets[i] : offsets[i] + lengths[i]]
            if zlib.crc32(span.data) != checks[i]:
                raise IndexCorrupt(f"{self._blob.name} does not match its checksum", _REMEDY)
        with _as_storage(self._directory):
            for row in rows[picked].tolist():
                os.pwrite(there, b"\1", row)
        self._checked[rows[picked]] = True

    def _open(self) -> None:
        if self._data is not None:
            return
        with _as_storage(self._directory):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            there, marks = self._sparse("there", max(self._rows, 1))
            body, data = self._sparse("body", max(self._blob.size, 1))
            meta = self._directory / "meta.json"
            meta.write_text(json.dumps({"body": self._blob.name}))
        self._files, self._there, self._data = [body, there], marks, data

    def _sparse(self, name: str, size: int) -> tuple[BinaryIO, npt.NDArray[np.uint8]]:
        """Maps a sparse file of at least ``size`` bytes.

        Writes go through the file descriptor: a full disk is then an error, while a write to the
        map would kill the process. So would a read of it after another process has made the file
        shorter: of one body, generations with fewer live files need fewer rows.
        """
        path = self._directory / name
        path.touch(mode=0o600)
        file = path.open("r+b")
        if path.stat().st_size < size:
            if name == "body":  # of this size for every process
                file.truncate(size)
            else:  # at worst a mark is lost, and its row is fetched again
                os.pwrite(file.fileno(), b"\0", size - 1)
        mapped = MappedFile(str(path), shared=True)
        return file, np.frombuffer(mapped.buffer, np.uint8, size)


@contextlib.contextmanager
def _as_storage(place: Path) -> Iterator[None]:
    """Turns errors of the local disk into errors that the planner handles."""
    try:
        yield
    except OSError as error:
        refuse_exhausted(error)
        kind = StorageFull if error.errno == 28 else StorageFailure
        raise kind(f"{place}: {error}", "set planner.cache_dir") from error


def _batches(offsets: Int64, lengths: Int64) -> list[Int64]:
    """Splits positions into runs of at most `_BATCH` bytes."""
    if not len(offsets):
        return []
    run = np.cumsum(lengths) // _BATCH
    edges = np.flatnonzero(np.diff(run)) + 1
    return [np.asarray(g, np.int64) for g in np.split(np.arange(len(offsets)), edges)]


def _spans(offsets: Int64, lengths: Int64) -> list[tuple[int, int]]:
    """Byte ranges that cover all rows, with neighbours joined. ``offsets`` ascend."""
    ends = offsets + lengths
    apart = np.flatnonzero(offsets[1:] - ends[:-1] > _GAP) + 1
    starts = offsets[np.concatenate([[0], apart])]
    stops = ends[np.concatenate([apart - 1, [len(ends) - 1]])]
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def open_payload(
    signature: str,
    schema: pa.Schema,
    parts: Sequence[ShardPart],
    num_files: int,
    store: _Store,
    directory: Path,
) -> Payload:
    """Opens the local copy of a definition, and writes it first if it is missing.

    Args:
        schema: the schema of the kind's rows; see `rows_schema`.
        directory: the directory of the generation's local copy.

    Errors:
        IndexCorrupt, StorageFailure, StorageFull.
    """
    path = directory / f"kind-{hashlib.sha256(signature.encode()).hexdigest()[:32]}.arrow"
    rows = _mapped(path)
    if rows is None:
        _write(path, _joined(parts, store) if parts else _nothing(schema))
        rows = _mapped(path)
    if rows is None:
        raise StorageFailure(f"{path} vanished while it was opened", "try again")
    blobs = [part.body for part in parts if part.body is not None]
    bodies = []
    for number, blob in enumerate(blobs):
        held = rows["body_row"].to_numpy()[rows["body_part"].to_numpy() == number]
        bodies.append(Body(store, blob, int(held.max(initial=-1)) + 1, directory.parent))
    covered = int(sum(np.count_nonzero(p.slots >= 0) for p in parts))
    return Payload(num_files, rows, bodies, covered)


def _mapped(path: Path) -> pa.Table | None:
    try:
        with pa.memory_map(str(path)) as source:
            whole = source.read_buffer()
        rows = whole.slice(_HEAD)
        # Arrow would follow damaged offsets out of the map, and end the process.
        if whole.slice(0, _HEAD).to_pybytes() != _head(zlib.crc32(rows)):
            return None
        return pa.ipc.open_file(rows).read_all()
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        refuse_exhausted(error)
        return None  # missing or damaged: write it again


def _joined(parts: Sequence[ShardPart], store: _Store) -> pa.Table:
    tables: list[pa.Table] = []
    number = 0
    for part in parts:
        header = read_header(store.read_blob(part.header))
        file = header["file"].to_numpy()
        if len(file) and (file.min() < -1 or file.max() >= len(part.slots)):
            raise IndexCorrupt("an index file names a file it does not have", _REMEDY)
        ordinal = np.where(file >= 0, np.append(part.slots, -1)[file], -1)
        alive = (ordinal >= 0) | (file < 0)
        header = header.set_column(0, "ordinal", pa.array(ordinal))
        if part.body is not None:
            place = np.arange(len(file), dtype=np.int64)
            header = header.append_column("body_row", pa.array(place))
            header = header.append_column("body_part", pa.array(np.full(len(file), number)))
            number += 1
        tables.append(header.filter(pa.array(alive)))
    return pa.concat_tables(tables).unify_dictionaries().sort_by("ordinal").combine_chunks()


def _nothing(schema: pa.Schema) -> pa.Table:
    """An empty table for a definition that no shard has yet."""
    fields = [
        pa.field("ordinal", pa.int64()),
        *(f for f in schema if f.name not in ("file", "body")),
    ]
    if BODY.name in schema.names:
        fields += [*PLACE, pa.field("body_row", pa.int64()), pa.field("body_part", pa.int64())]
    return pa.schema(fields).empty_table()


def _write(path: Path, rows: pa.Table) -> None:
    with _as_storage(path):
        handle, aside = tempfile.mkstemp(prefix=".kind-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(bytes(_HEAD))
                summed = _Summed(file)
                with pa.ipc.new_file(pa.PythonFile(summed, "w"), rows.schema) as writer:
                    writer.write_table(rows)
                file.seek(0)
                file.write(_head(summed.check))
            sync(Path(aside))
            Path(aside).replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(aside).unlink()


def _head(check: int) -> bytes:
    """What a local copy begins with: the checksum of the Arrow file behind it."""
    return (b"skipbridge.kind\0" + struct.pack("<I", check)).ljust(_HEAD, b"\0")


class _Summed:
    """The rest of a file, written through; ``check`` is its CRC-32."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._size = file, 0
        self.check = 0

    def write(self, data: bytes) -> int:
        self.check = zlib.crc32(data, self.check)
        self._size += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._size

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """The file is flushed when it is closed."""

    def close(self) -> None:
        """The caller closes the file."""


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Gathered rows as an Arrow table."""
    return pa.table(
        [pa.array([row[field.name] for row in rows], field.type) for field in schema],
        schema=schema,
    )
