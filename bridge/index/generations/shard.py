"""Shards: the entries of one build, as two immutable Parquet files.

``files``: one row per file, sorted by path. The row number is the file's ordinal in the shard.
``columns``: one row per leaf column of each file, sorted by (column, file). Row groups are small
and end between columns, and the footer locates each column, so a reader of few columns reads
little: see `bridge.index.reading.column_file`.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.parquet.tables import table_from_bytes, table_to_bytes, table_writer
from bridge.formats.physical_column import encode, parse_key
from bridge.formats.statistics import FileStatistics

_TEXTS = pa.dictionary(pa.int32(), pa.large_string())
"""Of long texts that most files share."""
FILES = pa.schema(
    [
        pa.field("path", pa.large_string(), nullable=False),  # relative to the root, or a URI
        pa.field("partition", pa.large_string(), nullable=False),  # its owners, see `listed`
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modified", pa.int64(), nullable=False),  # microseconds
        pa.field("etag", pa.large_string()),
        pa.field("rows", pa.int64(), nullable=False),  # -1: not known
        pa.field("trusted", pa.bool_(), nullable=False),
        pa.field("row_groups", pa.large_list(pa.int64())),  # offsets; large files only
        pa.field("problem", pa.large_string()),  # why it, or some of it, could not be read
        pa.field("recipe", pa.large_string()),  # digest of how the table says it is read
        pa.field("writer", pa.large_string()),  # who states the statistics; null: they were read
        pa.field("group_rows", pa.int64()),  # of the largest row group; null: unknown
        pa.field(
            "shown", pa.large_string()
        ),  # `bridge.index.building.evidence`; null: nothing was sought
        pa.field("stored", _TEXTS),  # `FileStatistics.stored`
    ]
)
COLUMNS = pa.schema(
    [
        pa.field("column", pa.dictionary(pa.int32(), pa.large_string()), nullable=False),
        pa.field("file", pa.int64(), nullable=False),
        pa.field("lower", pa.large_binary()),
        pa.field("upper", pa.large_binary()),
        pa.field("exact", pa.bool_(), nullable=False),
        pa.field("nulls", pa.int64()),
        pa.field("nans", pa.int64()),
        pa.field("basis", pa.int8(), nullable=False),  # bits of `LeafStatistics.basis`
        pa.field("size", pa.int64(), nullable=False),
    ]
)
OUTCOME = pa.schema(
    [
        pa.field("file", pa.int64(), nullable=False),  # the task's number
        pa.field("rows", pa.int64(), nullable=False),  # -1: nothing was learned of the file
        pa.field("row_groups", pa.large_list(pa.int64())),
        pa.field("problem", pa.large_string()),  # why it, or some of it, could not be read
        pa.field("writer", pa.large_string()),  # as in `FILES`
        pa.field("group_rows", pa.int64()),  # as in `FILES`
        pa.field("shown", pa.large_string()),  # as in `FILES`
        pa.field("stored", _TEXTS),  # as in `FILES`
    ]
)
_DICTIONARY = 64 << 20
"""Bytes of distinct texts that a file of entries has once."""
_GROUP_ROWS = 8192
_COLUMNS_PER_GROUP = 32
DIRECTORY = b"skipbridge.columns"
_PACKED = ("file", "nulls", "nans", "size")


@dataclass(frozen=True, slots=True)
class Collected:
    """What was read from some files.

    Attributes:
        files: one row per file (`OUTCOME`).
        columns: one row per column of each file (`COLUMNS`).
        payloads: rows of the definitions other than min/max, by signature.
    """

    files: pa.Table
    columns: pa.Table
    payloads: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return int(sum(table.nbytes for table in self.payloads.values()))

    def to_bytes(self) -> bytes:
        """Serialises it for the transfer from a Spark executor to the driver."""
        parts = [_ipc(t) for t in (self.files, self.columns, *self.payloads.values())]
        head = json.dumps([list(self.payloads), [len(part) for part in parts]]).encode()
        return struct.pack("<q", len(head)) + head + b"".join(parts)

    @staticmethod
    def from_bytes(raw: bytes) -> Collected:
        (length,) = struct.unpack_from("<q", raw)
        view = pa.py_buffer(raw)
        signatures, sizes = json.loads(raw[8 : 8 + length])
        tables, at = [], 8 + length
        for size in sizes:
            tables.append(pa.ipc.open_stream(view.slice(at, size)).read_all())
            at += size
        return Collected(tables[0], tables[1], dict(zip(signatures, tables[2:], strict=True)))

    @staticmethod
    def concatenate(parts: Sequence[Collected]) -> Collected:
        signatures = dict.fromkeys(s for part in parts for s in part.payloads)
        return Collected(
            pa.concat_tables([OUTCOME.empty_table(), *(p.files for p in parts)]),
            pa.concat_tables([COLUMNS.empty_table(), *(p.columns for p in parts)]),
            {
                s: pa.concat_tables([p.payloads[s] for p in parts if s in p.payloads])
                for s in signatures
            },
        )


def _ipc(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries().combine_chunks())
    return sink.getvalue()


class CollectedBuilder:
    """Gathers file statistics in lists per leaf column, and encodes each list at once."""

    def __init__(self) -> None:
        self._files: list[tuple[Any, ...]] = []
        self._columns: dict[str, tuple[list[Any], ...]] = {}

    def add(self, file: int, footer: FileStatistics, problem: str | None = None) -> None:
        """Adds the statistics of a file; ``problem``: why they are incomplete."""
        kept = footer.rows, footer.row_groups, problem, footer.writer
        self._files.append((file, *kept, footer.group_rows, footer.shown, footer.stored))
        for leaf in footer.leaves:
            lists = self._columns.get(leaf.key)
            if lists is None:
                lists = self._columns[leaf.key] = ([], [], [], [], [], [], [], [])
            lists[0].append(file)
            lists[1].append(leaf.lower)
            lists[2].append(leaf.upper)
            lists[3].append(leaf.exact)
            lists[4].append(leaf.nulls)
            lists[5].append(leaf.nans)
            lists[6].append(leaf.basis)
            lists[7].append(leaf.size)

    def add_failure(self, file: int, problem: str) -> None:
        self._files.append((file, -1, None, problem, None, None, None, None))

    def finish(self) -> Collected:
        columns = list(zip(*self._files, strict=True)) or [()] * len(OUTCOME)
        files = pa.table(
            [pa.array(list(c), f.type) for c, f in zip(columns, OUTCOME, strict=True)],
            schema=OUTCOME,
        )
        dictionary = pa.array(list(self._columns), pa.large_string())
        parts = []
        for i, (key, lists) in enumerate(self._columns.items()):
            physical = parse_key(key).type.physical
            codes = pa.array(np.full(len(lists[0]), i, np.int32))
            arrays = [
                pa.DictionaryArray.from_arrays(codes, dictionary),
                pa.array(lists[0], pa.int64()),
                encode(physical, lists[1]),
                encode(physical, lists[2]),
                pa.array(lists[3], pa.bool_()),
                pa.array(lists[4], pa.int64()),
                pa.array(lists[5], pa.int64()),
                pa.array(lists[6], pa.int8()),
                pa.array(lists[7], pa.int64()),
            ]
            parts.append(pa.table(arrays, schema=COLUMNS))
        return Collected(files, pa.concat_tables([COLUMNS.empty_table(), *parts]))


def sort_columns(columns: pa.Table) -> pa.Table:
    """Sorts rows by (column, file), and the dictionary by its text."""
    columns = columns.unify_dictionaries().combine_chunks()
    if not columns.num_rows:
        return COLUMNS.empty_table()
    coded = columns["column"].chunk(0)
    words = coded.dictionary
    order = pc.sort_indices(words).to_numpy()
    numbers = columns["file"].to_numpy()
    if (order == np.arange(len(order))).all() and _ascending(coded.indices.to_numpy(), numbers):
        return columns  # already sorted
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    codes = place[coded.indices.to_numpy()]
    rows = np.lexsort((numbers, codes))
    sorted_codes = pa.DictionaryArray.from_arrays(
        pa.array(codes[rows]), words.take(pa.array(order))
    )
    taken = columns.drop_columns(["column"]).take(pa.array(rows))
    return pa.table([sorted_codes, *taken.columns], schema=COLUMNS)


def _ascending(codes: npt.NDArray[np.int32], files: npt.NDArray[np.int64]) -> bool:
    step = np.diff(codes)
    return bool(((step > 0) | ((step == 0) & (np.diff(files) >= 0))).all())


def write_files(files: pa.Table) -> bytes:
    return table_to_bytes(
        files,
        row_group_size=1_000_000,
        use_dictionary=["partition", "writer", "stored"],
        dictionary_pagesize_limit=_DICTIONARY,
    )


def write_columns(columns: pa.Table) -> bytes:
    """The sorted columns as Parquet, with a directory in the footer.

    A row group holds whole columns.

    Row groups have about 8,192 rows. In a large table each column has a row group of its own. In a
    small table columns share row groups of about 100 kB, which one request reads.
    """
    columns = sort_columns(columns)
    sink = io.BytesIO()
    with table_writer(
        sink,
        COLUMNS,
        compression="zstd",
        use_dictionary=["column"],
        write_statistics=["column"],
        column_encoding=dict.fromkeys(_PACKED, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    ) as writer:
        starts = column_starts(columns)
        for begin, end in _groups(starts):
            writer.write_table(columns.slice(begin, end - begin), row_group_size=end - begin)
        keys = zip(key_texts(columns), np.diff(starts).tolist(), strict=True)
        text = json.dumps(list(keys), ensure_ascii=False, separators=(",", ":"))
        packed = base64.b64encode(zlib.compress(text.encode())).decode()
        writer.add_key_value_metadata({DIRECTORY.decode(): packed})
    return sink.getvalue()


def _groups(starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Row ranges of row groups: one column, or several columns of up to `_GROUP_ROWS` rows."""
    first = 0
    for i in range(1, len(starts)):
        last = i == len(starts) - 1
        full = i - first >= _COLUMNS_PER_GROUP
        if last or full or starts[i + 1] - starts[first] > _GROUP_ROWS:
            yield starts[first], starts[i]
            first = i


def footer_size(raw: bytes) -> int:
    """The size of a Parquet file's footer in bytes, with its length and magic."""
    return int.from_bytes(raw[-8:-4], "little") + 8


def parse_directory(packed: bytes) -> list[tuple[str, int]]:
    """The key and the number of rows of each column, in file order."""
    text = zlib.decompress(base64.b64decode(packed))
    return [(key, rows) for key, rows in json.loads(text)]


def column_starts(columns: pa.Table) -> list[int]:
    """The first row of each column of sorted columns, and finally the number of rows."""
    if not columns.num_rows:
        return [0]
    codes = columns["column"].combine_chunks()
    codes = (codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes).indices.to_numpy()
    edges = np.flatnonzero(np.diff(codes)) + 1
    return [0, *edges.tolist(), len(codes)]


def read_files(raw: bytes) -> pa.Table:
    return table_from_bytes(raw, read_dictionary=["stored"]).select(FILES.names).cast(FILES)


def read_columns(raw: bytes) -> pa.Table:
    table = table_from_bytes(raw, read_dictionary=["column"])
    return sort_columns(table.cast(COLUMNS)) if len(table) else COLUMNS.empty_table()


def key_texts(columns: pa.Table) -> list[str]:
    """The key of each column of sorted columns, in the order of `column_starts`."""
    if not columns.num_rows:
        return []
    coded = columns["column"].combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    starts = column_starts(columns)[:-1]
    return [coded[i].as_py() for i in starts]


def tombstones_to_bytes(dead: Mapping[str, Iterable[int]]) -> bytes:
    """Dead ordinals by shard."""
    packed = {shard: sorted(int(i) for i in ordinals) for shard, ordinals in dead.items()}
    table = pa.table(
        {
            "shard": pa.array(
                [s for s, ordinals in packed.items() for _ in ordinals], pa.large_string()
            ),
            "file": pa.array([i for ordinals in packed.values() for i in ordinals], pa.int64()),
        }
    )
    return table_to_bytes(table)


def tombstones_from_bytes(raw: bytes) -> dict[str, list[int]]:
    dead: dict[str, list[int]] = {}
    table = table_from_bytes(raw)
    for shard, ordinal in zip(table["shard"].to_pylist(), table["file"].to_pylist(), strict=True):
        dead.setdefault(shard, []).append(ordinal)
    return dead
