"""How new Parquet files are encoded: for those who read them, by the rows that are written.

Types, codecs and bloom filters are those of an old file. Its dictionaries say nothing: a file of a
few rows had no use for them. Each row group is encoded by itself from its rows alone, so the same
rows give the same bytes, in whatever parts they arrive.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import signature
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bridge.formats.data_files import Rejected, Writing
from bridge.kernel.arrow_types import flat

_CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}
_ZSTD_LEVEL = 3
"""As zstd itself, Trino and parquet-java; Arrow's is 1."""
_GROUP_ROWS = 1_000_000
"""Rows of a row group at most: readers share out row groups, and skip them."""
_DICTIONARY = 2 << 20
"""Bytes of a dictionary at most. Beyond them, Arrow writes the rest of the column plain."""
_PAYS = 0.8
"""A dictionary pays if a column takes at most this share of its plain size."""
_OFTEN = 20
"""It also pays if each value is there so often: readers group and filter by codes."""
_RUN = 8
"""Equal values one after another, from which on codes are counted instead of repeated."""
_FALSE = 0.01
"""The share of absent values that a bloom filter does not exclude."""
_OPTIONS = signature(pq.ParquetWriter.__init__).parameters
_PAGE_ROWS = 20_000
"""Rows of a page at most, as parquet-java: the page index has bounds of so many. Arrow also ends
a page at 1 MiB."""
_WRITES_BLOOMS = "bloom_filter_options" in _OPTIONS
_WIDTHS = {"INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


def group_cuts(rows: int, most: float) -> list[int]:
    """Where the row groups of a new file begin, and the number of its rows; at least one group.

    Args:
        most: rows of a row group.

    >>> group_cuts(3001, 1000), group_cuts(0, 1000)
    ([0, 751, 1502, 2253, 3001], [0, 0])
    """
    count = max(1, -(-rows // int(max(1, min(most, _GROUP_ROWS)))))
    return [*range(0, max(rows, 1), max(1, -(-rows // count))), rows]


def encode_parquet(
    groups: Iterable[pa.Table],
    like: pq.ParquetFile,
    writing: Writing,
    properties: Mapping[bytes, bytes],
) -> bytes:
    """A new file.

    Args:
        groups: the rows of each row group; asked for twice, and one is held at a time.
        like: an old file, whose types, codecs and bloom filters it takes over.
        properties: of its footer.

    Errors:
        Rejected: this release of Arrow does not write the bloom filters that are asked for.
    """
    leaves = [like.schema.column(i) for i in range(len(like.schema))]
    decimals = {leaf.physical_type for leaf in leaves if leaf.converted_type == "DECIMAL"}
    types: dict[str, Any] = {
        "use_deprecated_int96_timestamps": "INT96" in {leaf.physical_type for leaf in leaves},
        "store_decimal_as_integer": bool(decimals & {"INT32", "INT64"}),
        "store_schema": False,
        "version": "2.6",
    }
    values = map(_values, groups)
    group = next(values)
    schema = group.schema
    stored = _stored(schema, types)
    codecs = _codecs(like, writing, [leaf.path for leaf in stored])
    sizes = [_Sizes(leaf, codecs[leaf.path] != "none") for leaf in stored]
    blooms = dict.fromkeys(_bloom_paths(schema.names, like, writing), 1)
    while group is not None:
        for size, array in zip(sizes, (a for c in group.columns for a in _leaves(c)), strict=True):
            size.add(array)
        for path in blooms:
            blooms[path] = max(blooms[path], _distinct(group, path))
        group = next(values, None)
    written = dict(properties)
    if b"ARROW:schema" in (like.metadata.metadata or {}):
        # As the old file has it: the table may hold codes instead of text.
        described = like.schema_arrow.remove_metadata().serialize().to_pybytes()
        written[b"ARROW:schema"] = base64.b64encode(described)
    sink = BytesIO()
    with pq.ParquetWriter(
        sink,
        schema,
        compression=codecs,
        compression_level={p: _ZSTD_LEVEL for p, codec in codecs.items() if codec == "zstd"},
        use_dictionary=[size.path for size in sizes if size.pays] or False,
        dictionary_pagesize_limit=_DICTIONARY,
        write_page_index=True,
        **types,
        **({"max_rows_per_page": _PAGE_ROWS} if "max_rows_per_page" in _OPTIONS else {}),
        **({"bloom_filter_options": _filters(blooms)} if blooms else {}),
    ) as writer:
        for group in map(_values, groups):
            writer.write_table(group, row_group_size=max(1, len(group)))
        if written:
            writer.add_key_value_metadata(written)
    return sink.getvalue()


def _values(group: pa.Table) -> pa.Table:
    """Rows in one piece, with values in place of codes."""
    types = [t.value_type if pa.types.is_dictionary(t) else t for t in group.schema.types]
    fields = [f.with_type(t) for f, t in zip(group.schema, types, strict=True)]
    return group.replace_schema_metadata(None).cast(pa.schema(fields)).combine_chunks()


def _stored(schema: pa.Schema, types: Mapping[str, Any]) -> list[Any]:
    """The leaves of a new file, as they are stored."""
    sink = BytesIO()
    pq.ParquetWriter(sink, schema, **types).close()
    found = pq.ParquetFile(sink).schema
    return [found.column(i) for i in range(len(found))]


def _leaves(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The values of the leaves of a column, in the order of Parquet's schema."""
    if isinstance(column.type, pa.ExtensionType):
        column = column.cast(column.type.storage_type)
    type = column.type
    if pa.types.is_struct(type):
        for inner in column.flatten():
            yield from _leaves(inner)
    elif pa.types.is_map(type):
        entries = [(c.offsets[0].as_py(), c.offsets[-1].as_py(), c) for c in column.chunks]
        for name, inner in (("keys", type.key_type), ("items", type.item_type)):
            parts = [getattr(chunk, name).slice(a, b - a) for a, b, chunk in entries]
            yield from _leaves(pa.chunked_array(parts, inner))
    elif (
        pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type)
    ):
        yield from _leaves(pc.list_flatten(column))
    elif pa.types.is_dictionary(type):
        yield column.cast(type.value_type)
    else:
        yield column


class _Sizes:
    """About how large a leaf is with a dictionary and without one, over all row groups."""

    def __init__(self, leaf: Any, compressed: bool) -> None:
        self.path = leaf.path
        self._text = leaf.physical_type == "BYTE_ARRAY"
        self._width = float(_WIDTHS.get(leaf.physical_type, leaf.length or 0))
        self._compressed = compressed
        self._coded = self._plain = 0.0
        self._values = self._distinct = 0

    @property
    def pays(self) -> bool:
        """Also of a column without values: its dictionary is empty."""
        return self._coded <= _PAYS * self._plain or self._distinct * _OFTEN <= self._values

    def add(self, values: pa.ChunkedArray) -> None:
        """Adds a row group."""
        values = values.drop_null()
        count = len(values)
        if not count or not (self._text or self._width):  # a boolean takes a bit
            return
        width = self._width
        if self._text:
            width = 4 + pc.sum(pc.binary_length(values)).as_py() / count
        runs = 1 + (pc.sum(pc.not_equal(values[1:], values[:-1])).as_py() or 0)
        # A codec makes about one value of equal ones.
        plain = width * (runs if self._compressed else count)
        distinct, most = count, int(_DICTIONARY / width)
        if pc.count_distinct(values[: most + most // 4]).as_py() <= most:
            distinct = pc.count_distinct(values).as_py()
        codes = count * distinct.bit_length() / 8
        if runs * _RUN <= count:
            codes = min(codes, runs * 4.0)
        fits = distinct <= most
        self._coded += distinct * width + codes if fits else plain
        self._plain += plain
        self._values += count
        self._distinct += distinct if fits else count


def _chunks(file: pq.ParquetFile) -> list[Any]:
    """The column chunks of the first row group; none if the file is empty."""
    if not file.metadata.num_row_groups:
        return []
    group = file.metadata.row_group(0)
    return [group.column(i) for i in range(group.num_columns)]


def _bloom_paths(names: Sequence[str], like: pq.ParquetFile, writing: Writing) -> list[str]:
    """The paths of the columns that get bloom filters.

    A column that is stored in another way than engines look values up has none.

    Errors:
        Rejected: they are asked for, and this release of Arrow does not write them.
    """
    wanted = {name.lower() for name in writing.bloom}
    paths = [name for name in names if name.lower() in wanted]
    for chunk in _chunks(like):  # an older Arrow does not tell
        if getattr(chunk, "bloom_filter_offset", None) is not None:
            paths.append(chunk.path_in_schema)
    if paths and not _WRITES_BLOOMS:
        if not wanted:
            return []
        raise Rejected(
            f"UNSUPPORTED: pyarrow {pa.__version__} writes no bloom filters; install a later one"
        )
    stored = dict(writing.stored)
    leaves = [like.schema.column(i) for i in range(len(like.schema))]
    sure = {leaf.path for leaf in leaves if leaf.physical_type in stored.get(leaf.path.lower(), ())}
    return sorted(sure.intersection(paths))


def _distinct(group: pa.Table, path: str) -> int:
    """How many values a column of a row group has at most."""
    if group.column_names.count(path) != 1:
        return len(group)
    return min(len(group), int(pc.count_distinct(flat(group.column(path))).as_py()))


def _filters(values: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The options of bloom filters for so many values a row group."""
    return {path: {"ndv": count, "fpp": _FALSE} for path, count in values.items()}


def _codecs(like: pq.ParquetFile, writing: Writing, paths: Sequence[str]) -> dict[str, str]:
    """The codec of each leaf of a new file."""
    held = {chunk.path_in_schema: chunk.compression for chunk in _chunks(like)}
    usual = writing.compression or next(iter(held.values()), "snappy")
    if writing.compression:
        held = {}
    found = {path: held.get(path, usual) for path in paths}
    return {path: _CODECS.get(codec, codec).lower() for path, codec in found.items()}
